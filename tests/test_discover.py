"""What lies in the way of a walk stops nothing, leads nowhere, and makes nothing vanish."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.child import as_nobody
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    TRANSCRIPT,
    user,
    write,
    write_bytes,
)  # fmt: skip

from assoc_ingest.errors import AmbiguousHomeError, NotFoundError, UsageError
from assoc_ingest.files.walk import (
    WHOLE,
    Listing,
    Root,
    Stat,
    Walk,
    default_roots,
    recognised,
    walk,
)
from assoc_ingest.source import Recognition
from assoc_ingest.sources import SOURCES
from assoc_ingest.store.known_files import KnownFiles
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, connect, dump, rows

Fresh = Callable[[], Path]
posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")


@pytest.fixture
def home(place: Path) -> Path:
    write(place / "home", TRANSCRIPT, user("here", "u1"))
    return place / "home"


def walked(home: Path) -> tuple[list[str], Walk]:
    seen = Walk()
    return [found.path for found in walk(Root(SOURCES["claude"], home), seen)], seen


def gone(database: Path) -> list[str]:
    connection = connect(database)
    rows = connection.execute("select path from files where gone_at is not null order by path")
    found = [path for (path,) in rows]
    connection.close()
    return found


# -- the walk ------------------------------------------------------------------------------------


def test_files_come_in_byte_order(home: Path) -> None:
    for name in (OTHER, THIRD, "\u00e9", "a", "Z"):
        write(home, f"{PROJECT}/{name}.jsonl", user("x", name))
    found, _ = walked(home)
    assert found == sorted(found, key=os.fsencode)
    assert len(found) == 6


def stats(connection: sqlite3.Connection) -> set[Stat]:
    (source_id,) = connection.execute("select id from sources").fetchone()
    return KnownFiles(connection, source_id, WHOLE).stats()


def test_only_what_is_not_as_it_was_is_listed(home: Path, fresh: Fresh) -> None:
    database = fresh()
    other = write(home, f"{PROJECT}/{OTHER}.jsonl", user("there", "u1"))
    sync(database, [home])
    with closing(connect(database)) as connection:
        known = stats(connection)
        assert list(walk(Root(SOURCES["claude"], home), Walk(), WHOLE, known)) == []
        assert known == set()
        os.utime(other, ns=(1, 1))
        known = stats(connection)
        (found,) = walk(Root(SOURCES["claude"], home), Walk(), WHOLE, known)
    assert found.location == str(other)
    assert [path for path, *_ in known] == [found.path]


@pytest.mark.parametrize(
    "change",
    [
        "mtime_ns = 0",  # it was not read to its end
        "kind = 'database'",  # its log may have changed
        "gone_at = last_synced_at",
        "generation = 1",
    ],
)
def test_what_has_to_be_looked_at_is_listed_though_it_is_as_it_was(
    change: str, home: Path, fresh: Fresh
) -> None:
    database = fresh()
    sync(database, [home])
    with closing(connect(database)) as connection:
        if change == "generation = 1":  # there is a newer one, with another stat
            columns = [name for _, name, *_ in connection.execute("pragma table_info(files)")]
            copied = ", ".join(name for name in columns if name not in ("id", "file_key"))
            values = copied.replace("generation", "1").replace("mtime_ns", "5")
            connection.execute(f"insert into files ({copied}) select {values} from files")
        else:
            connection.execute(f"update files set {change}")
        found = list(walk(Root(SOURCES["claude"], home), Walk(), WHOLE, stats(connection)))
    assert [one.path for one in found] == [TRANSCRIPT]


def test_a_root_that_is_empty_counts_as_missing_though_all_its_files_are_gone(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()
    sync(database, [home])
    write(home, "cache/other.jsonl", user("there", "u2"))
    (home / TRANSCRIPT).unlink()
    assert sync(database, [home]).files_gone == 1
    shutil.rmtree(home)
    home.mkdir()
    assert sync(database, []).missing_roots == [str(home)]


def test_only_the_missing_root_counts_as_missing(place: Path, fresh: Fresh) -> None:
    database, homes = fresh(), [place / name for name in "abc"]
    for number, home in enumerate(homes):
        write(home, f"{PROJECT}/{OTHER[:-1]}{number}.jsonl", user("there", f"u{number}"))
    sync(database, homes)
    shutil.rmtree(homes[1])
    assert sync(database, []).missing_roots == [str(homes[1])]
    gone_roots = rows(database, "select root from sources where gone_at is not null")
    assert gone_roots == [(str(homes[1]),)]


def test_directories_that_hold_nothing_of_ours_are_not_entered(home: Path) -> None:
    for directory in ("cache", "backups", "plugins", "shell-snapshots", ".git", "node_modules"):
        write(home, f"{directory}/{TRANSCRIPT}", user("x", "x"))
    found, _ = walked(home)
    assert [path for path in found if "/" in path] == [TRANSCRIPT]


def test_a_loop_of_links_ends(home: Path) -> None:
    (home / PROJECT / SESSION).symlink_to(home, target_is_directory=True)
    (home / "projects" / "-srv-loop").symlink_to(home / "projects", target_is_directory=True)
    found, seen = walked(home)
    assert found == [TRANSCRIPT]
    assert seen.symlinks == 2


def test_links_are_counted_and_not_followed(home: Path, fresh: Fresh, place: Path) -> None:
    secret = place / "outside"
    secret.write_bytes((home / TRANSCRIPT).read_bytes())
    (home / PROJECT / f"{OTHER}.jsonl").symlink_to(secret)
    (home / PROJECT / f"{THIRD}.jsonl").symlink_to("/etc/passwd")
    report = sync(fresh(), [home])
    assert (report.files_read, report.symlinks) == (1, 2)
    assert not report.unreadable


def test_the_root_itself_may_be_a_link(home: Path, fresh: Fresh, place: Path) -> None:
    (place / "link").symlink_to(home, target_is_directory=True)
    database = fresh()
    assert sync(database, [place / "link"]).files_read == 1
    assert sync(database, [home]).files_read == 0
    assert [row["root"] for row in dump(database)["sources"]] == ["home"]


@posix
def test_a_pipe_named_like_a_transcript_blocks_nothing(home: Path, fresh: Fresh) -> None:
    os.mkfifo(home / PROJECT / f"{OTHER}.jsonl")
    assert sync(fresh(), [home]).files_read == 1


@posix
def test_a_directory_named_like_a_transcript_is_no_file(home: Path, fresh: Fresh) -> None:
    (home / PROJECT / f"{OTHER}.jsonl").mkdir()
    assert sync(fresh(), [home]).files_read == 1


def test_of_hard_links_the_first_path_counts(home: Path, fresh: Fresh) -> None:
    (home / PROJECT / "aaa.jsonl").hardlink_to(home / TRANSCRIPT)
    found, seen = walked(home)
    assert found == [TRANSCRIPT]  # "0b7c..." stands before "aaa"
    assert seen.hard_links == 1
    database = fresh()
    sync(database, [home])
    assert len(dump(database)["messages"]) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_name_that_is_not_utf8_is_kept_in_an_escaped_form(home: Path, fresh: Fresh) -> None:
    name = os.path.join(os.fsencode(home / PROJECT), b"caf\xe9-\xff.jsonl")
    with open(name, "wb") as file:
        file.write((home / TRANSCRIPT).read_bytes().replace(b"u1", b"u2"))
    directory = os.path.join(os.fsencode(home / "projects"), b"-srv-\xe9")
    os.mkdir(directory)
    with open(os.path.join(directory, SESSION.encode() + b".jsonl"), "wb") as file:
        file.write((home / TRANSCRIPT).read_bytes().replace(b"u1", b"u3"))
    database = fresh()
    sync(database, [home])
    check(database)
    paths = [row["path"] for row in dump(database)["files"]]
    assert rf"{PROJECT}/caf\xe9-\xff.jsonl" in paths
    assert rf"projects/-srv-\xe9/{SESSION}.jsonl" in paths
    assert sync(database, [home]).files_read == 0
    assert not gone(database)


# -- what cannot be read -------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    "place_of", [f"{PROJECT}/{OTHER}.jsonl", PROJECT, "projects"], ids=["file", "project", "all"]
)
def test_what_cannot_be_read_is_named_and_nothing_is_gone(
    place_of: str, home: Path, fresh: Fresh, place: Path
) -> None:
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("also here", "u2"))
    write(home, f"projects/-srv-other/{THIRD}.jsonl", user("and there", "u3"))
    database = fresh()
    sync(database, [home])
    before = dump(database)
    forbidden = home / place_of
    if forbidden.is_file():
        write(home, place_of, user("also here", "u2"), user("more", "u4"))
    for path in (place, database, *place.rglob("*")):
        path.chmod(0o777)
    forbidden.chmod(0)
    try:
        unreadable = as_nobody(lambda: sync(database, [home]).unreadable)
    finally:
        forbidden.chmod(0o700)
    if place_of == "projects":  # then nobody can tell what it is
        assert f"cannot be read: Permission denied ({forbidden})" in unreadable
    else:
        assert [Path(path) for path, _ in unreadable] == [forbidden]
        assert unreadable[0][1] == "Permission denied"
    assert not gone(database)
    assert dump(database)["messages"] == before["messages"]


@posix
def test_one_unreadable_file_stops_no_other(home: Path, fresh: Fresh, place: Path) -> None:
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("also here", "u2"))
    database = fresh()
    for path in (place, database, *place.rglob("*")):
        path.chmod(0o777)
    (home / TRANSCRIPT).chmod(0)
    try:
        read = as_nobody(lambda: sync(database, [home]).files_read)
    finally:
        (home / TRANSCRIPT).chmod(0o600)
    assert read == 1
    assert [row["text"] for row in dump(database)["messages"]] == ["also here"]


# -- roots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        f"projects/-srv-demo/{SESSION}.jsonl",
        f"projects/C--work/{SESSION}.jsonl",
        f"projects/odd-name/{SESSION.upper()}.jsonl",
        "projects/odd-name/agent-a1b2c3d.jsonl",
        "projects/-srv-empty/.keep",
    ],
)
def test_a_home_of_claude_is_known_by_its_shape(path: str, tmp_path: Path) -> None:
    write(tmp_path / "any name", path, user("x", "x"))
    assert [root.source.name for root in recognised(tmp_path / "any name", SOURCES)] == ["claude"]


@pytest.mark.parametrize(
    "path", ["settings.json", "commands/x.md", "projects/notes.md", "projects/a/b.md", "x.jsonl"]
)
def test_any_other_directory_is_refused_with_what_to_do(path: str, tmp_path: Path) -> None:
    write(tmp_path / ".claude", path, user("x", "x"))
    with pytest.raises(UsageError, match="Give the directory that contains projects/"):
        recognised(tmp_path / ".claude", SOURCES)


NOTE = b'{"id":"n1","title":"t","content":"c","projectPath":null,"fileRefs":[],"modified":1}'


@pytest.mark.parametrize(
    ("path", "content", "source"),
    [
        ("watcher-state.json", b'{"hook_offsets":{}}', "associate"),
        ("projects/-srv-demo/plan-links.json", b"{}", "associate"),
        ("projects/-srv-demo/task-snapshots/crew.json", b"{}", "associate"),
        (f"projects/x/summaries/{SESSION}-summary-001.md", b"# s", "associate"),
        ("notes/n1.json", NOTE, "associate"),
        ("projects/x/notes/n1.json", NOTE, "associate"),
        ("notes/n1.json", b'{"id":"n1","title":"t"}', None),
        ("session_index.jsonl", b'{"id":"t","thread_name":"n","updated_at":"2026"}', "codex"),
        ("session_index.jsonl", b'{"id":"t","name":"n"}', None),
        ("history.jsonl", b'\n{"session_id":"t","ts":1,"text":"x"}', "codex"),
        ("history.jsonl", b'{"display":"x"}', None),
        ("goals_1.sqlite", b"CREATE TABLE thread_goals (thread_id text)", "codex"),
        ("goals_1.sqlite", b"CREATE TABLE goals (id text)", None),
    ],
)
def test_a_home_of_which_the_log_was_deleted_is_known_by_what_is_left(
    path: str, content: bytes, source: str | None, tmp_path: Path
) -> None:
    write_bytes(tmp_path, path, content)
    if source is None:
        with pytest.raises(UsageError, match="is not the home directory of a known agent"):
            recognised(tmp_path, SOURCES)
    else:
        assert [root.source.name for root in recognised(tmp_path, SOURCES)] == [source]


QWEN = {
    "settings.json": "{}",
    f"projects/-srv-demo/chats/{SESSION}.jsonl": '{"type":"user","sessionId":"s","message":{}}',
    f"projects/-srv-demo/subagents/{SESSION}/agent-1.jsonl": "{}",
    f"todos/{SESSION}.json": '{"todos":[]}',
    "tmp/0b7c/logs.json": "[]",
}


def test_a_home_of_qwen_code_is_that_of_no_agent_that_it_resembles(tmp_path: Path) -> None:
    """It names projects as Claude Code does, and prompts as Gemini CLI does."""
    for path, text in QWEN.items():
        write_bytes(tmp_path / ".qwen", path, text.encode())
    assert [root.source.name for root in recognised(tmp_path / ".qwen", SOURCES)] == ["qwen"]
    write_bytes(tmp_path / ".qwen", "tmp/0b7c/chats/session-2025-09-01.json", b"{}")
    assert [root.source.name for root in recognised(tmp_path / ".qwen", SOURCES)] == ["qwen"]


def test_of_two_sources_the_surer_one_reads_a_home(tmp_path: Path) -> None:
    write(tmp_path, "projects/-srv-demo/x", user("x", "x"))
    write(tmp_path, "transcripts/nina/transcript.jsonl", user("x", "x"))
    with pytest.raises(AmbiguousHomeError, match="home of Claude Code and of Cortex; say which"):
        recognised(tmp_path, SOURCES)
    assert [root.source.name for root in recognised(tmp_path, SOURCES, "cortex")] == ["cortex"]
    write(tmp_path, f"projects/-srv-demo/{SESSION}.jsonl", user("x", "x"))
    assert [root.source.name for root in recognised(tmp_path, SOURCES)] == ["claude"]


def test_a_home_of_nobody_knows_whom_is_told_in_one_sentence(shell: Shell) -> None:
    home = Path.home() / ".claude"
    write(home, f"projects/-srv-demo/{SESSION}.jsonl", user("x", "x"))
    rollout = f"sessions/2026/05/23/rollout-2026-05-23T18-25-15-{SESSION}.jsonl"
    write_bytes(home, rollout, b"{}")
    write(Path.home() / ".config/claude", TRANSCRIPT, user("read", "u1"))
    assert shell("sync") in (0, 1)
    told = [line for line in (shell.out + shell.err).split("\n") if "looks like" in line]
    assert len(told) == 1
    assert "it looks like a home of Claude Code and of Codex; say which one it is" in told[0]
    assert shell("sync", "--source", "codex", str(home)) == 0


def test_a_file_and_a_missing_directory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"file is a file\. Give the home directory"):
        recognised(tmp_path / "file", SOURCES)
    with pytest.raises(UsageError, match=r"gone does not exist\. Give the home directory"):
        recognised(tmp_path / "gone", SOURCES)


def test_a_refused_path_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        sync(tmp_path / "index.db", [tmp_path / "gone"])
    with pytest.raises(NotFoundError, match=r"looked at .*\.claude, .* and \d+ more places\)"):
        sync(tmp_path / "index.db", [])
    assert list(tmp_path.iterdir()) == []


def test_the_configured_directories_stand_in_place_of_the_defaults(tmp_path: Path) -> None:
    roots = default_roots({"CLAUDE_CONFIG_DIR": f"{tmp_path}/a, {tmp_path}/b"}, [])
    assert roots[:2] == [tmp_path / "a", tmp_path / "b"]
    assert Path.home() / ".claude" not in roots
    assert default_roots({}, [])[:2] == [Path.home() / ".claude", Path.home() / ".config/claude"]


def test_a_default_home_is_found_and_a_named_one_remembered(place: Path, fresh: Fresh) -> None:
    database = fresh()
    write(Path.home() / ".claude", TRANSCRIPT, user("at home", "u1"))
    write(place / "other", f"{PROJECT}/{OTHER}.jsonl", user("elsewhere", "u2"))
    assert sync(database, [place / "other"]).files_read == 1
    assert sync(database, []).files_read == 1
    write(place / "other", f"{PROJECT}/{THIRD}.jsonl", user("remembered", "u3"))
    assert sync(database, []).files_read == 1
    assert len(dump(database)["sources"]) == 2


def test_only_the_sources_asked_for_are_read(home: Path) -> None:
    assert recognised(home, SOURCES, "claude")
    with pytest.raises(UsageError, match=r"known agent \(cortex\)"):
        recognised(home, SOURCES, "cortex")


def test_chats_in_an_editor_that_was_made_from_vs_code_do_not_make_it_vs_code(
    tmp_path: Path,
) -> None:
    chat = "workspaceStorage/8f1d/chatSessions/8a010000-0000-4000-8000-000000000001.json"
    write_bytes(tmp_path, chat, b'{"requests":[]}')
    source = SOURCES["copilot_chat"]
    listing = Listing(tmp_path, source, SOURCES.values(), Walk())
    assert source.recognises(listing) is Recognition.CERTAIN
    write_bytes(tmp_path, "globalStorage/anysphere.cursor-retrieval/x", b"")
    listing = Listing(tmp_path, source, SOURCES.values(), Walk())
    assert source.recognises(listing) is Recognition.NO


def test_every_edition_of_vs_code_has_a_home_of_its_own() -> None:
    roots = SOURCES["copilot_chat"].default_roots
    assert "/home/ada/.config/Code - Insiders/User" in roots({}, "/home/ada")
    assert "/home/ada/Library/Application Support/Code/User" in roots({}, "/home/ada")
    assert roots({"XDG_CONFIG_HOME": "/etc/ada"}, "/home/ada")[0] == "/etc/ada/Code/User"
    assert "C:/ada/VSCodium/User" in roots({"APPDATA": "C:/ada"}, None)
    assert roots({"VSCODE_PORTABLE": "/mnt/code"}, "/home/ada") == ["/mnt/code/user-data/User"]
    assert roots({}, None) == []
