"""`compact` makes the database smaller, keeps every row and its id, and leaves it private."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from tests.support.shell import Shell
from tests.support.writing import OTHER, PROJECT, TRANSCRIPT, user, write

from assoc_ingest.store import fts
from assoc_ingest.store.database import open_reader, writing
from assoc_ingest.testing.dump import check, connect

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")


@pytest.fixture
def shrinkable(place: Path, shell: Shell) -> Shell:
    """A database of which most was removed."""
    home = place / "home"
    noise = (user(f"rake {n} " + f"zeppelin{n} " * 400, f"u{n}") for n in range(200))
    write(home, TRANSCRIPT, *noise)
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "o1", sessionId=OTHER))
    assert shell("sync", str(home)) == 0
    (home / TRANSCRIPT).unlink()
    assert shell("sync") == 0
    assert shell("prune", "--gone") == 0
    return shell


def rows(database: Path) -> list[tuple[object, ...]]:
    """Return every row of every table that is no index, ids included."""
    connection = connect(database)
    tables = connection.execute(
        "select name from pragma_table_list where type = 'table' and schema = 'main' order by name"
    ).fetchall()
    found = [
        (name, *row)
        for (name,) in tables
        if "_fts" not in name and "sqlite" not in name
        for row in connection.execute(f"select * from {name} order by 1")
    ]
    connection.close()
    return found


def test_it_is_smaller_and_says_so(shrinkable: Shell) -> None:
    before = shrinkable.database.stat().st_size
    told = shrinkable.json("compact", "--json")
    assert isinstance(told, dict)
    after = shrinkable.database.stat().st_size
    assert (told["before"], told["after"]) == (before, after)
    assert after < before
    assert "Size before: " in shrinkable.err


def test_every_row_keeps_its_id_and_is_found(shrinkable: Shell) -> None:
    before = rows(shrinkable.database)
    assert shrinkable("compact") == 0
    assert rows(shrinkable.database) == before
    check(shrinkable.database)
    assert shrinkable("search", "beans") == 0


def test_words_of_removed_rows_are_gone_from_the_file(shrinkable: Shell) -> None:
    assert b"zeppelin" in shrinkable.database.read_bytes()
    assert shrinkable("compact") == 0
    assert b"zeppelin" not in shrinkable.database.read_bytes()


@posix
def test_it_stays_private(shrinkable: Shell) -> None:
    umask = os.umask(0)
    try:
        assert shrinkable("compact") == 0
    finally:
        os.umask(umask)
    beside = [path for path in shrinkable.database.parent.iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in beside} == {0o600}


def test_without_room_nothing_is_touched(shrinkable: Shell) -> None:
    before = shrinkable.database.read_bytes()
    full = SimpleNamespace(total=100, used=99, free=1)
    with patch("shutil.disk_usage", lambda place: full):
        assert shrinkable("compact") == 5
        assert "Free some space" in shrinkable.err
        assert shrinkable("forget", OTHER) == 5
    assert shrinkable.database.read_bytes() == before


# -- where the copies lie ------------------------------------------------------------------------


def disks(**free: int) -> Callable[[Path], SimpleNamespace]:
    """Stand for `shutil.disk_usage` where the directories of these names have so much room."""

    def usage(place: Path) -> SimpleNamespace:
        return SimpleNamespace(total=2**50, used=0, free=free.get(Path(place).name, 2**40))

    return usage


def temporary_files() -> set[str]:
    """Return the paths of the files that SQLite has made for itself in this process."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing itself
            path = os.readlink(f"/proc/self/fd/{number}")
            if "etilqs" in path:
                found.add(path)
    return found


@contextmanager
def watched_while_it_is_written(
    seen: set[str], listed: set[str], directory: Path
) -> Iterator[None]:
    """Look at the temporary files again and again while the database is copied."""
    rebuild_index = fts.rebuild_index

    def look() -> None:
        seen.update(temporary_files())
        if directory.is_dir():
            listed.update(path.name for path in directory.iterdir())

    def rebuild_index_and_look(connection: sqlite3.Connection, name: str) -> None:
        rebuild_index(connection, name)
        connection.execute("pragma cache_size = 10")  # so that the copy does not stay in memory
        connection.set_progress_handler(look, 100)

    with patch.object(fts, "rebuild_index", rebuild_index_and_look):
        yield


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("is_named", [False, True], ids=["beside", "named"])
def test_sqlite_copies_where_room_is_looked_for(
    is_named: bool, shrinkable: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy has no name from its first byte on: a killed process leaves nothing of it."""
    beside, elsewhere = Path(f"{shrinkable.database}-unfinished"), tmp_path / "else ' where"
    elsewhere.mkdir()
    place = elsewhere if is_named else beside
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    if is_named:
        monkeypatch.setenv("SQLITE_TMPDIR", str(elsewhere))
    seen: set[str] = set()
    listed: set[str] = set()
    with watched_while_it_is_written(seen, listed, place):
        assert shrinkable("compact") == 0, shrinkable.err
    assert seen
    assert {str(Path(path).parent) for path in seen} == {str(place)}
    assert all(path.endswith("(deleted)") for path in seen)
    assert listed == set()
    assert not beside.exists()
    if is_named:
        roomless = disks(**{elsewhere.name: 1})
        with patch("shutil.disk_usage", roomless):
            assert shrinkable("compact") == 5
        assert f"in {elsewhere}" in shrinkable.err
        assert "SQLITE_TMPDIR" in shrinkable.err


def test_two_copies_on_one_disk_need_room_for_two(shrinkable: Shell) -> None:
    """And for a fifth more, which the rebuilt indexes need in the log."""
    size = shrinkable.database.stat().st_size
    place, needed = shrinkable.database.parent, 2 * size + size // 5
    for free, code in ((needed - 1, 5), (needed, 0)):
        with patch("shutil.disk_usage", disks(**{place.name: free})):
            assert shrinkable("compact") == code, shrinkable.err
    assert not Path(f"{shrinkable.database}-unfinished").exists()


def test_a_place_for_copies_that_cannot_be_used_is_passed_over(
    shrinkable: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SQLite does."""
    monkeypatch.setenv("SQLITE_TMPDIR", str(shrinkable.database.parent / "nowhere"))
    assert shrinkable("compact") == 0, shrinkable.err


@posix
def test_an_sqlite_that_cannot_be_told_is_asked_where_it_copies(
    shrinkable: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are built without what is deprecated; those make temporary files where they want."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.delenv("SQLITE_TMPDIR", raising=False)
    with (
        patch("assoc_ingest.upkeep.compact._can_be_set", lambda beside: False),
        patch("shutil.disk_usage", disks(elsewhere=1)),
    ):
        assert shrinkable("compact") == 5
    assert f"in {elsewhere}" in shrinkable.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_directory_whose_name_is_no_text_is_written_in(
    shrinkable: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite takes the name of a file as bytes, and that of a directory as text."""
    directory = shrinkable.database.parent / os.fsdecode(b"no\xfftext")
    directory.mkdir()
    database = shrinkable.database.rename(directory / "assoc.db")
    assert shrinkable("compact", "--db", str(database)) == 0, shrinkable.err
    monkeypatch.setenv("SQLITE_TMPDIR", str(directory))
    assert shrinkable("compact", "--db", str(database)) == 0, shrinkable.err
    check(database)


# -- others at the database ----------------------------------------------------------------------


def without_patience(connection: sqlite3.Connection, name: str) -> None:
    """Build an index anew, and wait for nobody from then on."""
    connection.execute("pragma busy_timeout = 1").fetchall()
    connection.execute(f"insert into {name} ({name}) values ('rebuild')")


@pytest.mark.slow
def test_a_reader_that_keeps_old_pages_is_named_as_one(shrinkable: Shell) -> None:
    reader = open_reader(shrinkable.database)
    reader.execute("begin")
    reader.execute("select count(*) from messages").fetchone()
    with patch.object(fts, "rebuild_index", without_patience):
        assert shrinkable("compact") == 3
    assert "Another program is reading the database" in shrinkable.err
    reader.close()
    assert shrinkable("compact") == 0
    check(shrinkable.database)


@pytest.mark.slow
@pytest.mark.parametrize("is_late", [False, True], ids=["before-the-copy", "after-the-copy"])
def test_a_program_that_writes_without_asking_is_named_as_one(
    is_late: bool, shrinkable: Shell
) -> None:
    other = sqlite3.connect(shrinkable.database, isolation_level=None)
    fits = fts.fits

    def begin(*_: object) -> bool:
        if not other.in_transaction:
            other.execute("begin immediate")
        return True

    def wait_for_nobody(connection: sqlite3.Connection, name: str) -> None:
        without_patience(connection, name)
        if not is_late:
            begin()

    with (
        patch.object(fts, "rebuild_index", wait_for_nobody),
        patch.object(fts, "fits", begin if is_late else fits),
    ):
        assert shrinkable("compact") == 3
    assert "Another program, such as verify, is writing to the database" in shrinkable.err
    assert "reading" not in shrinkable.err
    other.close()
    assert shrinkable("compact") == 0
    check(shrinkable.database)


@pytest.mark.parametrize("command", [("compact",), ("forget", OTHER), ("prune", "--gone")])
def test_one_writer_at_a_time(shrinkable: Shell, command: tuple[str, ...]) -> None:
    with writing(shrinkable.database):
        assert shrinkable(*command) == 3
    assert "Another process is writing" in shrinkable.err


def test_an_index_that_does_not_fit_is_repaired(shrinkable: Shell) -> None:
    connection = connect(shrinkable.database)
    connection.execute("insert into messages_fts (rowid, text) values (99999, 'phantom')")
    connection.close()
    assert shrinkable("compact") == 0
    check(shrinkable.database)


def test_an_empty_database_is_told_as_one(shell: Shell) -> None:
    """A first sync that is killed at its beginning leaves one."""
    shell.database.touch()
    for command in ("compact", "status"):
        assert shell(command) == 4
        assert "is empty" in shell.err
        assert "assoc-ingest sync" in shell.err


def test_a_missing_database_is_not_made(shell: Shell) -> None:
    for command in (("compact",), ("forget", "x"), ("forget", "--list")):
        assert shell(*command) == 4
        assert "assoc-ingest sync" in shell.err
    assert not shell.database.exists()
