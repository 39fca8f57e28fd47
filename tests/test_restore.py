"""What was archived comes back bit for bit, and nothing else on the disk changes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.cases import DEMO, GROUPS, homes_of
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    agent,
    assistant,
    jsonl,
    user,
    wait_for_clock,
    write,
    write_bytes,
)

from assoc_ingest.__main__ import main
from assoc_ingest.files import archive
from assoc_ingest.files.stores import opened
from assoc_ingest.files.tail import pieces
from assoc_ingest.files.walk import original_parts
from assoc_ingest.source import entry_names
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.upkeep.restore import (
    IDENTICAL,
    NOT_ARCHIVED,
    REFUSED,
    WRITTEN,
    Restored,
    is_name,
    restore,
    select,
    select_all,
)

Fresh = Callable[[], Path]

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
SUBAGENT = f"{PROJECT}/{SESSION}/subagents/agent-a1b2c3d.jsonl"


def everything(database: Path, to: Path, *, dry_run: bool = False) -> list[Restored]:
    connection = open_reader(database)
    done = list(restore(connection, select_all(connection), to, dry_run=dry_run))
    connection.close()
    return done


def named(database: Path, name: str, to: Path, generation: int | None = None) -> list[Restored]:
    connection = open_reader(database)
    done = list(restore(connection, select(connection, name, generation), to))
    connection.close()
    return done


def files_in(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def change(database: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(database)
    with connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


@pytest.fixture
def home(place: Path) -> Path:
    """A home with a session, its subagent, its todo list, and another session."""
    home = place / "home"
    write(home, TRANSCRIPT, user("a prompt", "u1"), assistant("an answer", "a1"))
    write(home, SUBAGENT, agent("a1b2c3d", user("look", "s1")))
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("other", "u9", sessionId=OTHER))
    write_bytes(home, f"todos/{SESSION}-agent-{SESSION}.json", b'[{"content":"x","status":"y"}]')
    return home


@pytest.fixture
def database(home: Path, fresh: Fresh) -> Path:
    database = fresh()
    sync(database, [home])
    return database


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "rescued"


# -- bit for bit -----------------------------------------------------------------------------------


def is_restored(homes: list[Path], database: Path, to: Path) -> int:
    """Assert that every file that was read is in `to` as it lies in its home; count them."""
    done = everything(database, to)
    assert {file.status for file in done} <= {WRITTEN, NOT_ARCHIVED}
    roots = {str(home.resolve()) for home in homes}
    compared = 0
    for file in done:
        assert any(file.root.startswith(root) for root in roots)
        original = Path(file.root, *original_parts(file.path))
        if file.status == WRITTEN and entry_names(file.path) is not None:
            assert file.target is not None
            rows = [json.loads(line) for line in Path(file.target).read_bytes().splitlines()]
            assert all({"table", "id"} <= row.keys() for row in rows), "no file on disk is so"
            compared += 1
        elif file.status == WRITTEN:
            assert file.target is not None
            with opened(str(original)) as descriptor:
                data = b"".join(pieces(descriptor))
            assert data.startswith(Path(file.target).read_bytes()), file.path
            assert file.note or len(data) == Path(file.target).stat().st_size, file.path
            assert Path(file.target).stat().st_mtime_ns == original.stat().st_mtime_ns
            compared += 1
    assert len(files_in(to)) == compared
    return compared


@pytest.mark.parametrize("group", GROUPS)
def test_every_file_of_the_cases_comes_back(group: str, fresh: Fresh, place: Path) -> None:
    homes, database = homes_of(group, place), fresh()
    sync(database, homes)
    assert is_restored(homes, database, place / "rescued") >= len(homes)


def test_every_file_of_the_demonstration_homes_comes_back(fresh: Fresh, place: Path) -> None:
    homes, database = sorted(DEMO.iterdir()), fresh()
    sync(database, homes)
    assert is_restored(homes, database, place / "rescued") == 41


@pytest.mark.skipif(not CORPUS.is_dir(), reason="ASSOC_REAL_CORPUS names no transcripts")
def test_every_file_of_real_homes_comes_back(fresh: Fresh, place: Path) -> None:
    homes, database = sorted(CORPUS.glob("homes/*")), fresh()
    sync(database, homes)
    assert is_restored(homes, database, place / "rescued") > 50


def test_what_the_agent_deleted_comes_back(home: Path, database: Path, to: Path) -> None:
    kept = files_in(home)
    shutil.rmtree(home)
    sync(database, [])
    assert {file.status for file in everything(database, to)} == {WRITTEN}
    assert files_in(to) == kept


def test_what_was_not_read_is_not_restored_and_said(place: Path, fresh: Fresh, to: Path) -> None:
    home, database = place / "home", fresh()
    whole = jsonl(user("a prompt", "u1"))
    write_bytes(home, TRANSCRIPT, whole + b'{"torn')
    write_bytes(home, f"{PROJECT}/{OTHER}.jsonl", b'{"only a torn line')
    write_bytes(home, f"{PROJECT}/{SESSION}/tool-results/image.png", b"\x89PNG\0\0\0\0")
    sync(database, [home])
    done = {Path(file.path).name: (file.status, file.note) for file in everything(database, to)}
    assert done == {
        f"{SESSION}.jsonl": (WRITTEN, "without the 6 bytes after its last complete line"),
        f"{OTHER}.jsonl": (NOT_ARCHIVED, "no complete line was read"),
        "image.png": (NOT_ARCHIVED, "it is binary or was never readable"),
    }
    assert files_in(to) == {TRANSCRIPT: whole}


def test_a_broken_document_comes_back_as_it_last_was_whole(
    place: Path, fresh: Fresh, to: Path
) -> None:
    home, database = place / "home", fresh()
    (home / PROJECT).mkdir(parents=True)
    task = write_bytes(home, "tasks/a-list/1.json", b'{"id":"1","subject":"Sow"}')
    sync(database, [home])
    wait_for_clock(place)
    task.write_bytes(b'{"id":"1","subj')
    sync(database, [home])
    (done,) = everything(database, to)
    assert (done.status, done.note) == (WRITTEN, "the last readable version")
    assert files_in(to) == {"tasks/a-list/1.json": b'{"id":"1","subject":"Sow"}'}


def test_a_path_that_came_back_has_both_its_files(home: Path, database: Path, to: Path) -> None:
    old = (home / TRANSCRIPT).read_bytes()
    (home / TRANSCRIPT).unlink()
    sync(database, [home])
    new = jsonl(user("something else", "u5"))
    write_bytes(home, TRANSCRIPT, new)
    sync(database, [home])
    named(database, TRANSCRIPT, to)
    named(database, TRANSCRIPT, to / "before", generation=0)
    assert files_in(to) == {TRANSCRIPT: new, f"before/{TRANSCRIPT}": old}
    assert main(["restore", "-d", str(database), TRANSCRIPT, "--to", f"{to}", "--generation", "7"])


# -- which files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [SESSION, SESSION[:4], SESSION[:8].upper()])
def test_a_session_comes_with_its_side_files(database: Path, to: Path, name: str) -> None:
    paths = {file.path for file in named(database, name, to)}
    assert paths == {TRANSCRIPT, SUBAGENT, f"todos/{SESSION}-agent-{SESSION}.json"}


@pytest.mark.parametrize("name", [SUBAGENT, "agent-a1b2c3d.jsonl", "agent-a1b2c3d"])
def test_a_file_comes_alone(database: Path, to: Path, name: str) -> None:
    assert [file.path for file in named(database, name, to)] == [SUBAGENT]


def test_a_transcript_by_its_name_comes_alone(database: Path, to: Path) -> None:
    assert [file.path for file in named(database, f"{SESSION}.jsonl", to)] == [TRANSCRIPT]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 1, "No session or file matches 'nowhere'."),
        ([], 2, "Give a session or a file, or use --all."),
        ([SESSION, "--all"], 2, "Give a session or a file, or use --all."),
        (["1"], 0, "Wrote"),
    ],
)
def test_what_nobody_can_mean_is_said(
    database: Path,
    to: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    assert main(["restore", "-d", str(database), "--to", str(to), *arguments]) == code
    assert words in capsys.readouterr().err


def test_a_name_of_several_files_lists_them(
    home: Path, database: Path, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        write_bytes(home, f"tasks/{name}/1.json", b'{"id":"1","subject":"Sow"}')
    sync(database, [home])
    assert main(["restore", "-d", str(database), "--to", str(to), "1.json"]) == 2
    err = capsys.readouterr().err
    assert "tasks/one/1.json" in err
    assert "tasks/two/1.json" in err
    assert not to.exists()


def test_two_homes_with_the_same_path_get_a_directory_each(
    home: Path, database: Path, place: Path, to: Path
) -> None:
    second = place / "second"
    write(second, TRANSCRIPT, user("elsewhere", "u1"))
    sync(database, [second])
    assert {file.status for file in everything(database, to)} == {WRITTEN}
    assert files_in(to / "claude-1") == files_in(home)
    assert files_in(to / "claude-2") == files_in(second)
    only = to / "only"
    assert {file.status for file in named(database, f"{OTHER}.jsonl", only)} == {WRITTEN}
    assert list(files_in(only)) == [f"{PROJECT}/{OTHER}.jsonl"]


# -- what is there stays ---------------------------------------------------------------------------


def test_what_is_there_already_is_left_as_it_is(database: Path, to: Path) -> None:
    everything(database, to)
    times = {path: path.stat().st_mtime_ns for path in to.rglob("*")}
    assert {file.status for file in everything(database, to)} == {IDENTICAL}
    assert {path: path.stat().st_mtime_ns for path in to.rglob("*")} == times


@pytest.mark.parametrize("other", [b"mine", b"", None], ids=["shorter", "empty", "same-size"])
def test_another_file_is_never_overwritten(
    home: Path, database: Path, to: Path, other: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    size = (home / TRANSCRIPT).stat().st_size
    mine = other if other is not None else b"x" * size
    write_bytes(to, TRANSCRIPT, mine)
    assert main(["restore", "-d", str(database), "--to", str(to), "--all"]) == 1
    out = capsys.readouterr().out
    assert f"refused  {to.resolve() / TRANSCRIPT}: something else is there" in out
    assert files_in(to) == {**files_in(home), TRANSCRIPT: mine}


def test_a_file_that_appears_meanwhile_is_never_overwritten(
    database: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def raced(source: Path, target: Path) -> None:
        target.write_bytes(b"mine")
        link(source, target)

    monkeypatch.setattr(os, "link", raced)
    (done,) = named(database, SUBAGENT, to)
    assert (done.status, done.note) == (REFUSED, "something else is there")
    assert files_in(to) == {SUBAGENT: b"mine"}


def test_a_file_system_without_hard_links_will_do(
    home: Path, database: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert {file.status for file in everything(database, to)} == {WRITTEN}
    assert files_in(to) == files_in(home)


def test_a_dry_run_writes_nothing(database: Path, to: Path) -> None:
    done = everything(database, to, dry_run=True)
    assert {file.status for file in done} == {WRITTEN}
    assert not to.exists()
    write_bytes(to, TRANSCRIPT, b"mine")
    statuses = {file.path: file.status for file in everything(database, to, dry_run=True)}
    assert statuses.pop(TRANSCRIPT) == REFUSED
    assert set(statuses.values()) == {WRITTEN}
    assert files_in(to) == {TRANSCRIPT: b"mine"}


def test_what_is_restored_is_private(database: Path, to: Path) -> None:
    before = os.umask(0)
    try:
        everything(database, to)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in to.rglob("*") if path.is_file()}
    assert modes == {0o600}
    directories = [to, *(path for path in to.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in directories} == {0o700}


def test_a_full_disk_ends_it_and_leaves_no_half_file(
    database: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_up(*_: object) -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archive, "read_whole", fill_up)
    assert main(["restore", "-d", str(database), "--to", str(to), "--all"]) == 5
    assert files_in(to) == {}


def test_a_damaged_archive_gives_no_file(database: Path, to: Path) -> None:
    change(
        database,
        "update archive set data = x'00' where file_id = (select id from files where path = ?)",
        SUBAGENT,
    )
    change(database, "update files set prefix_crc = 1 where path like 'todos/%'")
    done = {file.path: file.status for file in everything(database, to)}
    assert [path for path, status in done.items() if status == REFUSED] == [
        SUBAGENT,
        f"todos/{SESSION}-agent-{SESSION}.json",
    ]
    assert len(files_in(to)) == 2


# -- hostile paths ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["../escaped.jsonl", "/etc/escaped", "a/../../escaped", "a//b", "./a", "a\0b", "", "a/.."],
)
def test_a_path_that_leads_elsewhere_is_refused(database: Path, to: Path, path: str) -> None:
    change(database, "update files set path = ? where path = ?", path, SUBAGENT)
    statuses = {file.path: file.status for file in everything(database, to)}
    assert statuses.pop(path) in (REFUSED, NOT_ARCHIVED)
    assert set(statuses.values()) == {WRITTEN}
    assert not list(to.parent.rglob("*escaped*"))
    assert len(files_in(to)) == 3


HOSTILE_KINDS = (
    "../../escaped", "{}/escaped", "a/../../escaped", "a/escaped", "a\0escaped", "x" * 300,
    "..", ".", "", "projects", "claude\nescaped", "a\\escaped",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE_KINDS)
@pytest.mark.parametrize("dry_run", [False, True], ids=["wet", "dry"])
def test_the_name_of_a_system_leads_nowhere_else(
    kind: str, dry_run: bool, home: Path, database: Path, tmp_path: Path
) -> None:
    """Two homes with the same path get a directory each, which is named after their system."""
    write(home.parent / "second", TRANSCRIPT, user("elsewhere", "u1"))
    sync(database, [home.parent / "second"])
    change(database, "update sources set kind = ? where id = 2", kind.format(tmp_path))
    to = tmp_path / "above" / "and above" / "rescued"
    to.parent.mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    done = everything(database, to, dry_run=dry_run)
    assert len(done) == 5
    for file in done:
        assert file.status in (WRITTEN, REFUSED)
        if file.status == WRITTEN:
            assert Path(file.target or "").relative_to(to).parts[1:] == Path(file.path).parts
    assert {path for path in set(tmp_path.rglob("*")) - before if to not in path.parents} <= {to}


@pytest.mark.parametrize(
    "root",
    ["", ".", "..", "/", "relative", "a\0b", "x" * 5000, "//", "~"],
    ids=lambda root: root[:9],
)
def test_no_root_that_a_database_names_ends_a_restore_as_a_bug(
    root: str,
    database: Path,
    to: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = tmp_path / "elsewhere" / "below"  # `..` must not be around the directory to restore to
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    change(database, "update sources set root = ?", root)
    code = main(["restore", "-d", str(database), "--to", str(to), "--all"])
    words = capsys.readouterr().err
    assert code == (2 if root in ("/", "//") else 0), words
    assert "internal error" not in words


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
def test_no_number_of_a_database_leads_elsewhere(
    number: int, home: Path, database: Path, to: Path
) -> None:
    write(home.parent / "second", TRANSCRIPT, user("elsewhere", "u1"))
    sync(database, [home.parent / "second"])
    change(database, "update sources set id = ? where id = 2", number)
    change(database, "update files set source_id = ? where source_id = 2", number)
    change(database, "update files set mtime_ns = ?", number)
    assert {file.status for file in everything(database, to)} == {WRITTEN}
    assert files_in(to / f"claude-{number}") == files_in(home.parent / "second")


@pytest.mark.parametrize("column", ["files.path", "sources.kind", "sources.root"])
def test_text_that_is_not_utf8_is_told_in_one_sentence(
    column: str, database: Path, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, name = column.split(".")
    change(database, f"update {table} set {name} = cast(x'ff2f61' as text) where id = 1")
    assert main(["restore", "-d", str(database), "--to", str(to), "--all"]) == 4
    words = capsys.readouterr().err
    assert words.count("\n") == 1
    assert "another program has changed it. Give another file: --db FILE" in words


@pytest.mark.parametrize("is_windows", [False, True])
@pytest.mark.parametrize(
    ("name", "is_harmless"),
    [
        ("a.jsonl", (True, True)), ("a b.md", (True, True)), ("..a", (True, True)),
        ("C:", (True, False)), ("C:\\Windows", (True, False)), ("..\\..\\x", (True, False)),
        ("a:stream", (True, False)), ("NUL", (True, False)), ("con.jsonl", (True, False)),
        ("COM1", (True, False)), ("a.", (True, False)), ("a ", (True, False)),
        ("...", (True, False)), ("a/b", (False, False)), ("/", (False, False)),
        ("..", (False, False)), (".", (False, False)), ("", (False, False)),
        ("a\0", (False, False)), ("a*", (True, False)), ("a\n", (True, False)),
    ],
)  # fmt: skip
def test_what_is_a_name_depends_on_the_system(
    name: str, is_harmless: tuple[bool, bool], is_windows: bool
) -> None:
    assert is_name(name, is_windows=is_windows) == is_harmless[is_windows]


def test_no_link_is_followed(database: Path, to: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    to.mkdir()
    (to / "projects").symlink_to(outside)
    (to / "todos").mkdir()
    (to / f"todos/{SESSION}-agent-{SESSION}.json").symlink_to(outside / "file")
    assert {file.status for file in everything(database, to)} == {REFUSED}
    assert files_in(outside) == {}


def test_no_link_in_place_of_a_roots_directory_is_followed(
    home: Path, database: Path, to: Path, tmp_path: Path
) -> None:
    write(home.parent / "second", TRANSCRIPT, user("elsewhere", "u1"))
    sync(database, [home.parent / "second"])
    outside = tmp_path / "outside"
    outside.mkdir()
    to.mkdir()
    (to / "claude-1").symlink_to(outside)
    statuses = {file.root: file.status for file in everything(database, to)}
    assert statuses == {str(home): REFUSED, str(home.parent / "second"): WRITTEN}
    assert files_in(outside) == {}


@pytest.mark.parametrize("below", ["", "rescued", "projects/-srv-demo/rescued"])
def test_nothing_is_written_where_an_agent_writes(
    home: Path, database: Path, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_in(home)
    directory = home / below
    assert main(["restore", "-d", str(database), "--to", str(directory), "--all"]) == 2
    assert "a directory of an agent, where assoc-ingest never writes" in capsys.readouterr().err
    assert files_in(home) == before
    assert below == "" or not (home / "rescued").exists()


@pytest.mark.parametrize("below", ["", "rescued"])
def test_a_directory_that_cannot_be_is_said(
    database: Path, tmp_path: Path, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    place = tmp_path / "file" / below
    assert main(["restore", "-d", str(database), "--to", str(place), "--all"]) == 2
    assert "--to DIR" in capsys.readouterr().err
    assert files_in(tmp_path)["file"] == b"mine"


def test_nothing_is_written_there_by_another_name_or_from_above(
    home: Path, database: Path, place: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    assert main(["restore", "-d", str(database), "--to", str(link / "x"), "--all"]) == 2
    change(database, "update files set path = ? where path = ?", "home/todos/new", SUBAGENT)
    change(database, "update files set kind = 'transcript' where path = ?", "home/todos/new")
    statuses = {file.path: file.status for file in everything(database, place)}
    assert statuses["home/todos/new"] == REFUSED
    assert not (home / "todos" / "new").exists()


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX systems only")
def test_a_name_that_is_no_text_gets_its_bytes_back(database: Path, home: Path, to: Path) -> None:
    name = b"\xff\xe9t\xc3\xa9 \x80.jsonl"
    directory = os.fsencode(home / PROJECT)
    try:
        shutil.copy(home / TRANSCRIPT, directory + b"/" + name)
    except OSError:
        pytest.skip("this file system has text names only")
    sync(database, [home])
    everything(database, to)
    assert name in os.listdir(os.fsencode(to / PROJECT))


# -- the command -----------------------------------------------------------------------------------


def test_the_json_of_the_command(
    database: Path, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", "-d", str(database), SUBAGENT, "--to", str(to), "--json"]) == 0
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert set(shown) == {"to", "dry_run", "files"}
    (file,) = shown["files"]
    assert set(file) == set(Restored.__dataclass_fields__)
    assert (file["status"], file["path"], file["bytes"]) == (
        "written", SUBAGENT, Path(file["target"]).stat().st_size,
    )  # fmt: skip
    assert "Wrote 1 file" in err


def test_a_stored_path_cannot_act_on_a_terminal(
    database: Path, to: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(database, "update files set path = ? where path = ?", "a\x1b[2J\nb", SUBAGENT)
    main(["restore", "-d", str(database), "--to", str(to), "--all"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "a\\x1b[2J\\nb" in out
