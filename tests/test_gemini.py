"""Gemini CLI's conversations are read whole, however often their files repeat them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.support.writing import write_bytes

from assoc_ingest.sources.gemini import Gemini
from assoc_ingest.sources.reader import items_at
from assoc_ingest.testing.dump import Ask

CHATS = "tmp/garden/chats"
LOG = f"{CHATS}/session-2026-04-01T08-00-2a000000.jsonl"
HEAD = {"sessionId": "s1", "startTime": "2026-04-01T08:00:00.000Z", "kind": "main"}


def message(number: int, text: str, kind: str = "user") -> dict[str, object]:
    time = f"2026-04-01T08:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    return {"id": f"m{number}", "timestamp": time, "type": kind, "content": text}


def write(home: Path, lines: Iterable[object]) -> None:
    write_bytes(home, LOG, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_a_long_conversation_that_is_repeated_counts_once(home: Path, ask: Ask) -> None:
    """Of more messages than are remembered, the first are read again, and known as copies."""
    said = [message(number, f"word {number}") for number in range(1200)]
    write(home, [HEAD, *said, {"$set": {"messages": said}}, message(1200, "the last one")])
    assert ask("select count(*) from messages where copy_of is null") == [(1201,)]
    assert ask("select message_count, prompt_count from sessions") == [(1201, 1201)]
    ((size,),) = ask("select length(context) from files where kind = 'transcript'")
    assert size < 16 * 1024


def test_what_the_program_says_to_go_on_is_no_prompt(home: Path, ask: Ask) -> None:
    said = message(1, "Sow beans."), message(2, "System: Please continue."), message(3, "Done.")
    write(home, [HEAD, *said[:2], {**said[2], "type": "gemini"}])
    assert ask("select kind from messages order by byte_offset") == [
        ("prompt",), ("meta",), ("text",)
    ]  # fmt: skip
    assert ask("select message_count, prompt_count from sessions") == [(2, 1)]


def test_a_message_that_changes_keeps_what_it_said_before(home: Path, ask: Ask) -> None:
    first, later = message(1, "Half a", "gemini"), message(1, "Half a thought.", "gemini")
    write(home, [HEAD, first, later, later])
    texts = ask("select text, block, copy_of from messages order by byte_offset")
    assert texts == [("Half a", 0, None), ("Half a thought.", 1, None)]


def test_what_the_deleted_file_said_stays_when_only_the_stub_is_left(home: Path, ask: Ask) -> None:
    write(home, [HEAD, message(1, "Everything."), message(2, "All of it.", "gemini")])
    assert ask("select count(*) from messages") == [(2,)]
    (home / LOG).unlink()
    write_bytes(home, f"{CHATS}/session-2026-04-01T09-00-2a000000.jsonl", json.dumps(HEAD).encode())
    assert ask("select count(*) from messages") == [(2,)]
    assert ask("select message_count, prompt_count from sessions") == [(2, 1)]
    assert ask("select count(*) from files where gone_at is not null") == [(1,)]


def test_a_directory_that_gets_a_new_name_keeps_its_conversations(home: Path, ask: Ask) -> None:
    """Newer versions call it after the project, not after a hash of its path."""
    said = "This is the Gemini CLI.\n- **Workspace Directories:**\n  - /srv/garden\n"
    place = "- The project's temporary directory is: /home/x/.gemini/tmp/garden\n"
    write(home, [HEAD, message(1, f"<session_context>\n{said}{place}</session_context>")])
    before = ask("select session_key, cwd from sessions")
    (home / "tmp/garden").rename(home / "tmp/a-garden")
    assert ask("select session_key, cwd from sessions") == before
    assert ask("select key, path from projects") == [("a-garden", "/srv/garden")]
    assert ask("select path, encoded from working_directories") == [("/srv/garden", "")]


@pytest.mark.parametrize(
    ("data", "keys", "items"),
    [
        (b'{"a":[1,{"b":2} , "c"]}', ("a",), [b"1", b'{"b":2}', b'"c"']),
        (b'\xef\xbb\xbf {"x":{"a":[9]},"a":[ {"\xc3\xa9":"\xe4\xb8\xad"},2]}', ("a",),
         [b'{"\xc3\xa9":"\xe4\xb8\xad"}', b"2"]),
        (b'{"x":{"a":[{"b":"]"}]}}', ("x", "a"), [b'{"b":"]"}']),
        (b'{"a":[1],"a":[2]}', ("a",), [b"2"]),
        (b'{"a":["\xff",2]}', ("a",), [b'"\xff"', b"2"]),
        (b'{"a":[]}', ("a",), []),
        (b'{"a":{}}', ("a",), []),
        (b'{"b":[1]}', ("a",), []),
        (b'{"a":[1', ("a",), []),
        (b"[1]", ("a",), []),
        (b"", ("a",), []),
        (b'{"a":' + b"[" * 5000, ("a",), []),
    ],
)  # fmt: skip
def test_items_are_found_where_they_are(
    data: bytes, keys: tuple[str, ...], items: list[bytes]
) -> None:
    assert [data[start : start + size] for start, size in items_at(data, *keys)] == items


def test_its_home_is_the_one_that_the_environment_names() -> None:
    assert Gemini().default_roots({}, "/home/ada") == ["/home/ada/.gemini"]
    assert Gemini().default_roots({"GEMINI_CLI_HOME": "/srv"}, "/home/ada") == ["/srv/.gemini"]
    assert Gemini().default_roots({}, None) == []


def test_a_session_goes_on_by_its_id_and_never_by_an_option() -> None:
    assert Gemini().resume_command("2a-0") == ["gemini", "--resume", "2a-0"]
    assert Gemini().resume_command("--yolo") is None


def test_nothing_beside_its_conversations_is_claimed() -> None:
    other = [
        "settings.json", "tmp/garden/shell_history", "tmp/garden/checkpoint-x.json",
        "tmp/garden/chats/notes.md", "tmp/garden/chats/a/b.json", "history/garden/.project_root",
    ]  # fmt: skip
    assert [path for path in other if Gemini().claim(Path(path).parts)] == []
