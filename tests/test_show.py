"""A conversation is shown as it went, each subagent where it was called, in 100 columns."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
from tests.support.reading import index, reader
from tests.support.shell import Shell

from assoc_ingest.ask import export, output
from assoc_ingest.ask.conversation import Conversation
from assoc_ingest.ask.excerpt import Options
from assoc_ingest.ask.export import Choice, ExportedConversation
from assoc_ingest.errors import NotFoundError, UsageError
from assoc_ingest.questions.transcript import Look, lines
from assoc_ingest.terminal import Paint, columns
from assoc_ingest.web import html
from assoc_ingest.web.html import Budget

KEY = "0b7c2f4e-1111-4222-8333-444455556666"


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Stage:
    """A database with one session, to which a test adds what it is about."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._index = index(path)
        self.rows = self._index.__enter__()
        project = self.rows.project("shop")
        self.session, self.file = self.rows.session(
            KEY, project, title="Fix the pool", cwd="/srv/shop", models='["claude-x"]'
        )

    def subagent(self, key: str, call: int | None = None, **values: object) -> tuple[int, int]:
        """Add a subagent with its file; return the ids of both."""
        rows = self.rows
        subagent = rows.add(
            "subagents", agent_type="Explore", agent_key=key, session_id=self.session,
            spawned_by=call, source_id=rows.source, **{"message_count": 1, **values},
        )  # fmt: skip
        path = f"projects/-srv-shop/{KEY}/subagents/agent-{key}.jsonl"
        return subagent, rows.file(
            path, kind="agent", session_id=self.session, subagent_id=subagent
        )

    def open(self) -> sqlite3.Connection:
        """End the filling; return a reader."""
        self._index.__exit__(None, None, None)
        return reader(self._path)

    def shown(self, width: int = 100, *, session: str = KEY, **options: object) -> list[str]:
        """Return the lines of the conversation."""
        connection = self.open()
        look = Look(width, Paint(False))
        chosen = Options(**options)  # type: ignore[arg-type]
        text = list(lines(Conversation(connection, session), look, options=chosen))
        connection.close()
        return text


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "assoc.db")


def _body(text: list[str]) -> list[str]:
    """Return what stands between the header and what else there is, without blanks and rules."""
    start = next(n for n, line in enumerate(text) if line.startswith("in /home"))
    end = max((n for n, line in enumerate(text) if line.startswith("· show ")), default=None)
    return [line for line in text[start + 1 : end] if line and not line.startswith("───")]


def test_the_header_says_what_the_conversation_is(stage: Stage) -> None:
    stage.rows.message(stage.file, "prompt", "hello")
    text = stage.shown()
    assert text[0] == "Fix the pool"
    assert text[1] == "shop · claude-x · 2026-01-20 10:00"
    assert f"session {KEY}" in text
    assert "in /home/ada/.claude" in text


def test_the_header_says_where_the_conversation_comes_from_and_goes_on(stage: Stage) -> None:
    rows, other, third = stage.rows, KEY.replace("0b7c", "aaaa"), KEY.replace("0b7c", "bbbb")
    before, file = rows.session(other, rows.project("other"), title="Before")
    place = {"byte_offset": 0, "byte_length": 1}
    for kind, url, session, of in (
        ("continued_in", KEY, before, file),
        ("continued_in", third, stage.session, stage.file),
        ("derived_from", other, stage.session, stage.file),
        ("derived_from", third, stage.session, stage.file),
    ):
        rows.add("links", kind=kind, url=url, session_id=session, file_id=of, **place)
    rows.add("transcripts", file_id=stage.file, tag="release", message_count=0, sidechain_count=0)
    text = " ".join(stage.shown())
    assert f"continues {other}" in text
    assert f"derived from {other},{third}" in text
    assert f"continued in {third}" in text
    assert "tag release" in text


def test_the_header_says_how_to_go_on_with_the_session_where_it_was_held(stage: Stage) -> None:
    assert f"Resume: cd /srv/shop && claude --resume {KEY}" in stage.shown()


def test_a_session_that_states_no_directory_was_held_in_that_of_its_project(stage: Stage) -> None:
    stage.rows.connection.execute("update sessions set cwd = null")
    stage.rows.connection.execute("update projects set path = '/srv/all shops'")
    assert f"Resume: cd '/srv/all shops' && claude --resume {KEY}" in stage.shown()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("sessions", "kind", "sidechain"),
        ("files", "gone_at", "2026-01-05T10:00:00.000Z"),
        ("sources", "kind", "cortex"),
        ("sessions", "session_key", "a-note"),
    ],
)
def test_what_nobody_can_resume_has_no_command(
    stage: Stage, table: str, column: str, value: str
) -> None:
    stage.rows.connection.execute("update sessions set kind = 'main'")
    stage.rows.connection.execute(f"update {table} set {column} = ?", (value,))
    with closing(stage.open()) as connection:
        conversation = Conversation(connection, "a-note" if value == "a-note" else KEY)
        assert conversation.resume is None


@pytest.mark.parametrize(
    ("directory", "line"),
    [
        ("/srv/a b; rm -r ~", f"cd '/srv/a b; rm -r ~' && claude --resume {KEY}"),
        ("/srv/\x1b]0;x\x07", f"claude --resume {KEY}"),
        (None, f"cd /srv/shop && claude --resume {KEY}"),
    ],
)
def test_a_directory_that_a_line_states_never_becomes_a_command(
    stage: Stage, directory: str | None, line: str
) -> None:
    stage.rows.connection.execute("update sessions set cwd = ?", (directory,))
    with closing(stage.open()) as connection:
        assert Conversation(connection, KEY).resume == line


def test_a_prompt_stands_behind_a_bar_with_its_time_and_an_answer_is_plain(stage: Stage) -> None:
    stage.rows.message(stage.file, "prompt", "rename\nthe button")
    stage.rows.message(stage.file, "text", "Done:\n\n```\n    code\n```")
    text = stage.shown()
    end = text.index("```", text.index("```") + 1) + 1
    assert text[text.index("") : end] == [
        "",
        "─── Tuesday, 20 January 2026 ".ljust(100, "─"),
        "",
        "▌ rename" + "10:00".rjust(92),
        "▌ the button",
        "",
        "Done:",
        "",
        "```",
        "    code",
        "```",
    ]


def test_a_call_is_a_line_with_the_start_of_its_result(stage: Stage) -> None:
    result = "\n".join(f"line {n}" for n in range(10))
    stage.rows.call(stage.file, "Bash", {"command": "npm test"}, result, duration_ms=1234)
    assert _body(stage.shown()) == [
        "▸ Bash  npm test" + "1.2 s".rjust(84),
        "    line 0",
        "    line 1",
        "    line 2",
        "    line 3",
        "    … 6 more lines",
    ]


def test_an_error_is_marked_and_a_missing_result_said(stage: Stage) -> None:
    stage.rows.call(
        stage.file, "Bash", {"command": "x"}, "not found", status="error", exit_code=127
    )
    stage.rows.call(stage.file, "Read", {"file_path": "/srv/shop/src/a.ts"})
    body = _body(stage.shown())
    assert body[0].split() == ["▸", "Bash", "x", "exit", "127"]
    assert body[2].split() == ["▸", "Read", "src/a.ts", "unfinished"]


def test_an_edit_shows_what_it_changed(stage: Stage) -> None:
    change = {"file_path": "/srv/shop/a", "old_string": "one\ntwo", "new_string": "three"}
    stage.rows.call(stage.file, "Edit", change, "The file was updated")
    assert _body(stage.shown()) == ["▸ Edit  a", "    - one", "    - two", "    + three"]


PATCH = "*** Begin Patch\n*** Update File: a\n@@\n-peas\n+beans\n*** End Patch\n"


@pytest.mark.parametrize("change", [
    {"filePath": "a", "oldString": "peas", "newString": "beans"},
    {"path": "a", "oldText": "peas", "newText": "beans"},
    {"input": PATCH},
    {"changes": "update a\n@@ -1 +1 @@\n-peas\n+beans\n"},
    {"edits": [{"old_string": "peas", "new_string": "beans"}]},
], ids=["OpenCode", "pi", "Codex", "Codex, older", "several"])  # fmt: skip
def test_an_edit_of_any_agent_shows_what_it_changed(
    stage: Stage, change: dict[str, object]
) -> None:
    stage.rows.call(stage.file, "Edit", change, "done", target="a", action="edit")
    assert _body(stage.shown()) == ["▸ Edit  a", "    - peas", "    + beans"]
    with closing(reader(stage._path)) as connection:
        conversation = Conversation(connection, KEY)
        message = next(conversation.messages(conversation.files[0]))
        page = str(html.body_of(message, Budget()))
        markdown = "".join(
            export.pieces(connection, ExportedConversation(connection, KEY, Choice()))
        )
    for sign, word in ("-", "peas"), ("+", "beans"):
        assert re.search(rf'<(ins|del) class="[\w-]+">\{sign} {word}\n', page)
        assert re.search(rf"^\{sign} ?{word}$", markdown, re.M)


def test_what_the_program_injected_is_one_line(stage: Stage) -> None:
    for kind in ("hook", "hook", "attachment", "meta"):
        stage.rows.message(stage.file, kind, f"{kind}\nmany\nlines")
    stage.rows.message(stage.file, "text", "end")
    stage.rows.message(stage.file, "hook", "PreToolUse\nok")
    assert _body(stage.shown()) == [
        "· 2 hooks, 1 attachment, 1 injected text",
        "end",
        "· hook: PreToolUse ok",
    ]


def test_everything_else_is_short(stage: Stage) -> None:
    say = stage.rows.message
    say(stage.file, "thinking", "\n".join("abcdefg"))
    say(stage.file, "system", "Conversation compacted")
    say(
        stage.file,
        "command",
        "<command-name>/review</command-name>\n<command-args>all</command-args>",
    )
    say(stage.file, "command_output", "<local-command-stdout>fine</local-command-stdout>")
    say(stage.file, "bash_input", "<bash-input>ls</bash-input>")
    say(stage.file, "bash_output", "<bash-stdout>a\nb</bash-stdout><bash-stderr></bash-stderr>")
    say(stage.file, "interrupt", "[Request interrupted by user]")
    say(stage.file, "agent_message", '<teammate-message teammate_id="bob">hi</teammate-message>')
    say(
        stage.file,
        "task_notification",
        "<task-notification><summary>done</summary></task-notification>",
    )
    say(stage.file, "unheard_of", "new")
    text = stage.shown()
    assert any(line.startswith("─── conversation compacted ─") for line in text)
    assert [line.rstrip("10:").rstrip() for line in _body(text)] == [
        "  ∴ a",
        "    b",
        "    c",
        "    d",
        "    … 3 more lines",
        "▌ /review all",
        "  fine",
        "▌ ! ls",
        "  a",
        "  b",
        "  ■ [Request interrupted by user]",
        "  ✉ bob: hi",
        "  task: done",
        "  unheard_of: new",
    ]


def test_a_queued_prompt_that_was_delivered_is_shown_once(stage: Stage) -> None:
    rows = stage.rows
    delivered = rows.message(stage.file, "prompt", "also the tests", byte_offset=9000)
    rows.message(stage.file, "queued_prompt", "also the tests", copy_of=delivered)
    rows.message(stage.file, "queued_prompt", "never read")
    body = _body(stage.shown())
    assert [line.split("  ")[0] for line in body] == ["▌ never read", "▌ also the tests"]
    assert body[0].endswith("queued 10:00")


def test_lines_that_repeat_lines_of_their_file_are_counted_and_copies_of_a_fork_shown(
    stage: Stage,
) -> None:
    rows = stage.rows
    _, other = rows.session("aaaa", title="origin")
    origin = rows.message(other, "text", "copied from the origin")
    rows.message(stage.file, "text", "copied from the origin", copy_of=origin)
    first = rows.message(stage.file, "text", "again")
    rows.message(stage.file, "text", "again", copy_of=first)
    rows.message(stage.file, "text", "again", copy_of=first)
    assert _body(stage.shown()) == ["copied from the origin", "again", "· 2 repeated blocks"]


def test_what_was_taken_back_is_shown_as_such(stage: Stage) -> None:
    rows = stage.rows
    rows.message(stage.file, "prompt", "first")
    rows.message(stage.file, "prompt", "mistaken", is_superseded=1)
    rows.message(stage.file, "text", "answered", is_superseded=1)
    rows.message(stage.file, "prompt", "second")
    text = stage.shown()
    words = ("first", "taken back from here", "mistaken", "answered", "continues", "second")
    assert [word for line in text for word in words if word in line] == list(words)


def test_a_subagent_stands_under_its_call_to_any_depth(stage: Stage) -> None:
    rows = stage.rows
    outer, _ = rows.call(stage.file, "Task", {"description": "survey"}, "what it said last")
    agent, file = stage.subagent("a1", outer, description="survey", tokens=1500)
    rows.message(file, "agent_prompt", "look around", subagent_id=agent)
    inner, _ = rows.call(file, "Task", {"description": "dig"}, "deep", subagent_id=agent)
    deep, deep_file = stage.subagent("a2", inner)
    rows.message(deep_file, "text", "deep down", subagent_id=deep)
    rows.message(stage.file, "text", "thanks")
    assert _body(stage.shown()) == [
        "▸ Task  survey",
        "│ Explore · survey · 1 message · 1.5 k tokens · a1",
        "│ ▌ look around",
        "│ ▸ Task  dig",
        "│ │ Explore · 1 message · a2",
        "│ │",
        "│ │ deep down",
        "thanks",
    ]


def test_a_subagent_that_no_call_names_stands_at_the_end(stage: Stage) -> None:
    agent, file = stage.subagent("a1")
    stage.rows.message(file, "text", "lost", subagent_id=agent)
    stage.subagent("a0", kind="warmup")
    text = stage.shown()
    assert any(line.startswith("─── subagents without a call here") for line in text)
    assert _body(text) == [
        "│ Explore · 1 message · a1",
        "│",
        "│ lost",
        "· 1 warm-up agent not shown",
    ]


def test_a_sidechain_inside_the_transcript_is_shown_as_a_subagent(stage: Stage) -> None:
    """Until 1.0.x the lines of a subagent stood in the file of the session."""
    call, _ = stage.rows.call(stage.file, "Task", {"description": "survey"}, "result")
    agent, _ = stage.subagent("root-uuid", call, kind="sidechain")
    stage.rows.message(stage.file, "text", "inside", subagent_id=agent)
    stage.rows.message(stage.file, "text", "outside")
    body = _body(stage.shown())
    assert body[0] == "▸ Task  survey"
    assert body[-2:] == ["│ inside", "outside"]
    assert sum("inside" in line for line in body) == 1


def test_the_order_is_that_of_the_file_whatever_the_clock_says(stage: Stage) -> None:
    for minute, text in ((30, "first"), (10, "second"), (20, "third")):
        at = f"2026-01-20T10:{minute}:00.000Z"
        stage.rows.message(stage.file, "text", text, timestamp=at)
    assert _body(stage.shown()) == ["first", "second", "third"]


def test_subagents_that_spawned_each_other_are_shown_once(stage: Stage) -> None:
    rows = stage.rows
    first, first_file = stage.subagent("a1")
    second, second_file = stage.subagent("a2")
    in_first, _ = rows.call(first_file, "Task", {"d": "2"}, "r", subagent_id=first)
    in_second, _ = rows.call(second_file, "Task", {"d": "1"}, "r", subagent_id=second)
    for agent, call in ((first, in_second), (second, in_first)):
        rows.connection.execute("update subagents set spawned_by = ? where id = ?", (call, agent))
    text = "\n".join(stage.shown())
    assert text.count("· a1") == text.count("· a2") == 1


def test_without_tools_only_what_was_said_is_left(stage: Stage) -> None:
    rows = stage.rows
    call, _ = rows.call(stage.file, "Task", {"command": "x"}, "result")
    agent, file = stage.subagent("a1", call)
    rows.message(file, "text", "inside", subagent_id=agent)
    rows.message(stage.file, "hook", "hook")
    rows.message(stage.file, "text", "said")
    assert _body(stage.shown(tools=False)) == ["said", "· 1 subagent not shown"]


def test_the_files_of_a_session_follow_each_other_the_transcript_first(stage: Stage) -> None:
    rows = stage.rows
    other = rows.file(
        "aaa/side.jsonl", kind="other", session_id=stage.session, gone_at="2026-01-01T00:00:00.000Z"
    )
    rows.message(other, "text", "second")
    rows.message(stage.file, "text", "first")
    text = stage.shown()
    assert text.index("first") < text.index("second")
    assert any(line.startswith("─── aaa/side.jsonl (deleted) ─") for line in text)


def test_a_session_without_messages_says_so(stage: Stage) -> None:
    assert _body(stage.shown()) == ["No messages of this session are indexed."]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_is_wider_than_the_page(stage: Stage, width: int) -> None:
    rows = stage.rows
    wide = "漢字 " + "x" * 300 + " " + "word " * 80
    call, _ = rows.call(stage.file, "Task", {"command": wide}, wide, duration_ms=99_000)
    agent, file = stage.subagent("a1", call)
    for kind in ("agent_prompt", "text", "thinking"):
        rows.message(file, kind, wide, subagent_id=agent)
    for kind in ("prompt", "text", "thinking", "error", "hook", "compact_summary", "system"):
        rows.message(stage.file, kind, wide)
    start = 7  # paths of the header are not broken: they are there to be copied
    assert max(map(columns, stage.shown(width)[start:])) <= max(width, 60)


def test_stored_text_cannot_act_on_the_terminal(stage: Stage) -> None:
    rows = stage.rows
    evil = "\x1b]0;owned\x07 \x9b31m \u202e \x1b[2J\r"
    for kind in (
        "prompt",
        "text",
        "thinking",
        "hook",
        "agent_message",
        "command",
        "error",
        "x" + evil,
    ):
        rows.message(stage.file, kind, evil)
    rows.call(stage.file, "Ba" + evil, {"command": evil}, evil, status="error")
    rows.connection.execute("update sessions set title = ?, git_branch = ?, cwd = ?", (evil,) * 3)
    stage.subagent(f"a{evil}")
    rows.connection.execute("update sessions set session_key = session_key || ?", (evil,))
    with closing(stage.open()) as connection:
        conversation = Conversation(connection, KEY)
        look = Look(100, Paint(False))
        kinds = (Options(), Options(full=True), Options(prompts=True), Options(tool=f"Ba{evil}"))
        text = "\n".join(
            line for chosen in kinds for line in lines(conversation, look, options=chosen)
        )
    assert not set(text) & set("\x1b\x07\x9b\u202e\r")
    assert "\\x1b]0;owned\\x07" in text


def test_a_prefix_must_name_one_session(stage: Stage) -> None:
    stage.rows.session("0b7c9999", title="Other")
    connection = stage.open()
    assert Conversation(connection, "0B7C2F").session["session_key"] == KEY
    with pytest.raises(UsageError) as ambiguous:
        Conversation(connection, "0b7c")
    assert KEY in str(ambiguous.value)
    assert "0b7c9999" in str(ambiguous.value)
    with pytest.raises(NotFoundError):
        Conversation(connection, "zzz")
    with pytest.raises(NotFoundError):
        Conversation(connection, "\udcff")
    connection.close()


def test_a_conversation_in_two_homes_is_read_where_there_is_more(stage: Stage) -> None:
    rows = stage.rows
    backup = rows.add("sources", kind="claude", root="/backup")
    rows.add("sessions", session_key=KEY, source_id=backup, message_count=5)
    text = stage.shown()
    assert "in /backup" in text
    assert "in /home/ada/.claude, called Fix the pool" in text


def test_json_has_everything_whole_and_in_order(stage: Stage, shell: Shell) -> None:
    rows = stage.rows
    rows.message(stage.file, "prompt", "hello")
    call, block = rows.call(stage.file, "Task", {"command": "x" * 500}, "y" * 5000)
    agent, file = stage.subagent("a1", call)
    rows.message(file, "text", "inside \x1b", subagent_id=agent)
    stage.open().close()
    shown: Any = shell.json("show", KEY, "--json")
    assert "\x1b" not in shell.out
    assert shown["session"]["session_key"] == KEY
    prompt, call, result, inside = shown["items"]
    assert [item["kind"] for item in (prompt, call, result)] == [
        "prompt",
        "tool_use",
        "tool_result",
    ]
    assert call["call"]["tool"] == "Task"
    assert result["answers"] == block
    assert len(result["tool_text"]) == 5000
    assert (inside["agent_key"], inside["text"]) == ("a1", "inside \x1b")
    assert shown["session"]["subagent_count"] == 1
    assert (shown["total"], shown["next"]) == (4, None)
    bare = shell.items("show", KEY, "--no-tools")
    assert [item["kind"] for item in bare] == ["prompt", "text"]


@pytest.mark.slow
def test_messages_are_read_as_they_are_shown(stage: Stage) -> None:
    for number in range(3000):
        stage.rows.message(stage.file, "text", f"message {number}")
    connection = stage.open()
    some = lines(Conversation(connection, KEY), Look(100, Paint(False)))
    first = [next(some) for _ in range(12)]
    assert "message 0" in first
    connection.close()  # nothing more is asked for: the rest was never read


@pytest.mark.slow
def test_subagents_that_spawn_each_other_very_often_are_all_shown_once(stage: Stage) -> None:
    call, _ = stage.rows.call(stage.file, "Task", {"prompt": "deep"}, "ok")
    for level in range(300):
        agent, file = stage.subagent(f"deep{level}", call)
        call, _ = stage.rows.call(file, "Task", {"prompt": "deeper"}, "ok", subagent_id=agent)
    text = stage.shown()
    for level in range(300):
        assert sum(line.endswith(f" · deep{level}") for line in text) == 1


def _talk(stage: Stage) -> None:
    """Add three turns: a call that works, one that fails, and an error of the API."""
    rows = stage.rows
    rows.message(stage.file, "prompt", "first prompt")
    rows.call(stage.file, "Read", {"file_path": "/srv/shop/a.ts"}, "content of a")
    rows.message(stage.file, "prompt", "second prompt")
    rows.call(stage.file, "Bash", {"command": "npm test"}, "it failed", status="error")
    rows.message(stage.file, "text", "an answer")
    rows.message(stage.file, "prompt", "third prompt")
    rows.message(stage.file, "error", "API Error: overloaded")
    rows.call(stage.file, "Bash", {"command": "npm start"}, "it works")


def _found(text: list[str]) -> list[str]:
    known = (
        *("first prompt", "second prompt", "third prompt", "content of a", "it failed"),
        *("an answer", "overloaded", "it works", "inside"),
    )
    return [word for line in text[1:] for word in known if word in line]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"last": 1}, ["third prompt", "overloaded", "it works"]),
        ({"last": 9}, ["first prompt", "content of a", "second prompt", "it failed", "an answer",
                       "third prompt", "overloaded", "it works", "inside"]),
        ({"prompts": True}, ["first prompt", "second prompt", "third prompt"]),
        ({"prompts": True, "last": 2}, ["second prompt", "third prompt"]),
        ({"errors": True}, ["second prompt", "it failed", "third prompt", "overloaded"]),
        ({"errors": True, "last": 1}, ["third prompt", "overloaded"]),
        ({"tool": "Bash"}, ["it failed", "it works"]),
        ({"tool": "Bash", "errors": True}, ["second prompt", "it failed"]),
        ({"tool": "Read"}, ["content of a", "inside"]),
        ({"tool": "Bash", "last": 1}, ["it works"]),
    ],
)  # fmt: skip
def test_a_part_of_a_conversation_can_be_asked_for(
    stage: Stage, options: dict[str, object], found: list[str]
) -> None:
    _talk(stage)
    agent, file = stage.subagent("a1")
    stage.rows.call(file, "Read", {"file_path": "x"}, "inside", subagent_id=agent)
    assert _found(stage.shown(**options)) == found


def test_what_is_asked_for_and_not_there_is_said(stage: Stage) -> None:
    stage.rows.message(stage.file, "prompt", "hello")
    assert "Nothing to show." in stage.shown(errors=True)


def test_an_unknown_tool_names_those_that_were_called(stage: Stage) -> None:
    _talk(stage)
    with pytest.raises(NotFoundError) as error:
        stage.shown(tool="Bsh")
    assert "Did you mean Bash?" in str(error.value)
    assert "Bash (2), Read (1)" in str(error.value)


def test_full_leaves_out_nothing(stage: Stage) -> None:
    rows = stage.rows
    long = "\n".join(f"row {n}" for n in range(30))
    for kind in ("thinking", "hook", "meta", "attachment", "system", "compact_summary"):
        rows.message(stage.file, kind, f"{long} of {kind}")
    rows.message(stage.file, "task_notification", "<summary>done</summary><result>all</result>")
    call, _ = rows.call(stage.file, "Task", {"prompt": f"{long} in", "depth": {"a": [1]}}, long)
    agent, file = stage.subagent("a1", call)
    rows.message(file, "text", "deep down", subagent_id=agent)
    text = stage.shown(full=True)
    whole = "\n".join(text)
    assert "more line" not in whole
    for kind in ("thinking", "hook", "meta", "attachment", "system", "compact_summary"):
        assert any(line.endswith(f"row 29 of {kind}") for line in text), kind
    assert "<result>all</result>" in whole
    assert "    row 29 in" in text
    assert "    depth:" in text
    assert text.count("    row 29") == 1
    assert any("deep down" in line for line in text)


def _response(stage: Stage, model: str, key: str) -> None:
    counts = {
        name: 1_000_000 if name == "output_tokens" else 0
        for name in (
            *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens"),
            *("cache_write_1h_tokens", "web_searches", "partial"),
        )
    }
    stage.rows.add(
        "responses", response_key=key, model=model, timestamp="2026-01-20T10:00:00.000Z",
        session_id=stage.session, file_id=stage.file, byte_offset=0, byte_length=1, **counts,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (["mine"], "cost $2.50"),
        (["mine", "unheard-of"], "cost ≥$2.50 (1 response unpriced)"),
        (["unheard-of"], None),
        (["tiny"], "cost <$0.01"),
    ],
)
def test_a_cost_that_leaves_out_responses_is_a_lower_bound(
    stage: Stage, models: list[str], words: str | None
) -> None:
    stage.rows.add("prices", model="mine", input=0, output=2_500_000)
    stage.rows.add("prices", model="tiny", input=0, output=1_000)
    for number, model in enumerate(models):
        _response(stage, model, f"r{number}")
    text = " ".join(stage.shown())
    assert (words in text) if words else ("cost" not in text)


def test_the_last_line_says_what_else_can_be_shown(stage: Stage) -> None:
    stage.subagent("a1b2c3")
    text = stage.shown(width=80)
    last = " ".join(text[text.index("", len(text) - 5) :])
    for words in ("show 0b7c2f4e:LINE", "--full", "--prompts", "--last N", "show a1b2c3"):
        assert words in last
    assert max(map(columns, text[-4:])) <= 80


def test_a_pager_opens_at_the_marked_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setattr(click, "echo_via_pager", lambda lines: shown.extend(lines))
    monkeypatch.setenv("LESS", "-R")
    text = ["a", "b", "", output.Marked("c"), "d"]
    output.write_lines(iter(text), has_mark=True)
    assert shown == [f"{line}\n" for line in text]
    assert os.environ["LESS"] == "-R +3"
    monkeypatch.delenv("LESS")
    output.write_lines(iter(text))
    assert os.environ["LESS"] == "-FRX"
