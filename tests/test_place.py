"""One writer, whatever name leads to the database, and nothing beside it that another one left."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.child import Child, as_nobody
from tests.support.pieces import every_new_database_is_built
from tests.support.shell import Shell
from tests.support.writing import OTHER, PROJECT, SESSION, TRANSCRIPT, user, write

from assoc_ingest.errors import DatabaseError
from assoc_ingest.store import fts, swap
from assoc_ingest.store.database import open_reader, writing
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump
from assoc_ingest.upkeep import recover
from assoc_ingest.upkeep.compact import compact
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import check_environment, verify

pytestmark = pytest.mark.skipif(os.name != "posix", reason="names and kills of POSIX systems")

WORD = "zeppelin"
"""Stands in the conversation that is forgotten, and nowhere else."""


@pytest.fixture
def home(place: Path) -> Path:
    write(place / "home", TRANSCRIPT, *(user(f"{WORD} {n} " * 40, f"u{n}") for n in range(40)))
    write(place / "home", f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "o1", sessionId=OTHER))
    return place / "home"


@pytest.fixture
def shell(place: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell.database = place / "index.db"
    monkeypatch.setenv("ASSOC_INGEST_DB", str(shell.database))
    return shell


def names(database: Path) -> set[str]:
    """What stands beside a database, and belongs to it by its name."""
    return {path.name for path in database.parent.glob(f"{database.name}*")}


@contextmanager
def killed(function: Callable[[], object], module: object, name: str) -> Iterator[None]:
    """Run a function in a process that is killed where it calls something; it is then dead."""
    reading, telling = os.pipe()

    def call_and_wait(*arguments: object, **more: object) -> object:
        result = original(*arguments, **more)
        os.write(telling, b"x")
        signal.pause()
        return result

    original = getattr(module, name)
    with patch.object(module, name, call_and_wait):
        child = Child(function)
    assert os.read(reading, 1) == b"x"
    assert child.kill()
    os.close(reading)
    os.close(telling)
    yield


# -- what an old database left -------------------------------------------------------------------


def leave_a_log(database: Path) -> None:
    """Have a process killed that wrote to the database, so that its log stays."""

    def write_and_wait() -> None:
        with writing(database) as connection:
            connection.execute("update messages set text = text || ' and more'")
            connection.execute("create table more (x)")
            os.write(telling, b"x")
            signal.pause()

    reading, telling = os.pipe()
    child = Child(write_and_wait)
    assert os.read(reading, 1) == b"x"
    assert child.kill()
    assert Path(f"{database}-wal").stat().st_size > 0


def leave_a_journal(database: Path) -> None:
    """Have a process killed that wrote without a log, so that its rollback journal stays."""

    def write_and_wait() -> None:
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("pragma journal_mode = delete")
            connection.execute("pragma cache_size = 1")
            connection.execute("begin")
            connection.execute("update messages set text = 'a journal knows better'")
            connection.execute("create table more as select * from messages, messages m")
            os.write(telling, b"x")
            signal.pause()

    reading, telling = os.pipe()
    child = Child(write_and_wait)
    assert os.read(reading, 1) == b"x"
    assert child.kill()
    assert Path(f"{database}-journal").stat().st_size > 0


@contextmanager
def in_place() -> Iterator[None]:
    yield


@pytest.mark.parametrize("how", [in_place, every_new_database_is_built])
@pytest.mark.parametrize("leave", [leave_a_log, leave_a_journal])
@pytest.mark.parametrize("is_empty", [False, True], ids=["deleted", "emptied"])
def test_the_log_of_a_deleted_database_is_not_laid_over_a_new_one(
    how: Callable[[], Iterator[None]],
    leave: Callable[[Path], None],
    is_empty: bool,
    home: Path,
    place: Path,
) -> None:
    database = place / "index.db"
    sync(database, [home])
    leave(database)
    database.unlink()
    (home / TRANSCRIPT).unlink()
    sync(place / "other.db", [home])
    if is_empty:
        database.touch()
    with how():  # type: ignore[attr-defined]
        sync(database, [home])
    check(database, home)
    assert_same(dump(database), dump(place / "other.db"))
    sync(database, [home])
    check(database, home)
    assert names(database) == {"index.db", "index.db.lock"}


@pytest.mark.parametrize("how", [in_place, every_new_database_is_built])
def test_who_still_reads_a_deleted_database_disturbs_no_new_one(
    how: Callable[[], Iterator[None]], home: Path, place: Path
) -> None:
    database = place / "index.db"
    sync(database, [home])
    leave_a_log(database)
    old = open_reader(database)
    assert "and more" in old.execute("select text from messages").fetchone()[0]
    database.unlink()
    (home / TRANSCRIPT).unlink()
    with how():  # type: ignore[attr-defined]
        sync(database, [home])
    new = open_reader(database)
    assert new.execute("select text from messages").fetchall()[0][0] == "Sow beans"
    assert "and more" in old.execute("select text from messages").fetchone()[0]
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Water beans", "o1", sessionId=OTHER))
    sync(database, [home])
    old.close()
    assert new.execute("select text from messages").fetchall()[0][0] == "Water beans"
    new.close()
    check(database, home)


@pytest.mark.slow
def test_a_writer_whose_database_was_replaced_leaves_nothing_beside_the_new_one(
    home: Path, place: Path
) -> None:
    database, other = place / "index.db", place / "other.db"
    sync(database, [home])
    (home / TRANSCRIPT).unlink()
    sync(other, [home])
    reader = open_reader(database)  # else SQLite would remove the log itself
    with writing(database) as connection:
        connection.execute("update messages set text = text || ' and more'")
        reader.execute("begin")
        reader.execute("select text from messages").fetchone()
        other.rename(database)
    check(database, home)
    with writing(database) as connection:
        connection.execute("create table more (x)")
    check(database, home)
    reader.close()
    check(database, home)


# -- temporary copies ----------------------------------------------------------------------------


def damage(database: Path) -> None:
    """Garble a page of an index, so that a rebuild copies what can be read."""
    with closing(connect(database)) as connection:
        query = "select rootpage from sqlite_master where name = 'messages_uuid'"
        (page,) = connection.execute(query).fetchone()
    with database.open("r+b") as file:
        file.seek((page - 1) * 16384)
        file.write(bytes(16384))


def kill_a_salvage(database: Path, home: Path) -> None:
    sync(database, [home])
    damage(database)
    with killed(lambda: rebuild(database), recover, "_copy_tables"):
        pass


def kill_a_compaction(database: Path, home: Path) -> None:
    sync(database, [home])
    with killed(lambda: compact(database), fts, "fits"):
        pass


COMMANDS = {
    "sync": ["sync"],
    "rebuild": ["rebuild"],
    "compact": ["compact"],
    "prune": ["prune", "--gone"],
    "forget": ["forget", SESSION],
}


@pytest.mark.parametrize("kill", [kill_a_salvage, kill_a_compaction])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_next_writer_removes_what_a_killed_one_left(
    kill: Callable[[Path, Path], None], command: list[str], home: Path, shell: Shell
) -> None:
    database = shell.database
    kill(database, home)
    assert names(database) - {"index.db", "index.db.lock"}, "the kill came too late"
    if kill is kill_a_salvage and command != ["rebuild"]:
        assert shell(*command) in (0, 4)  # refused or not: it held the lock
    else:
        assert shell(*command) == 0, shell.err
    left = {name for name in names(database) if ".damaged-" not in name}  # which its user removes
    assert left <= {"index.db", "index.db-wal", "index.db-shm", "index.db.lock"}
    if command[0] == "forget" and kill is kill_a_compaction:
        assert traces(database) == []


def traces(database: Path) -> list[str]:
    """Which files in the directory of a database hold the word, but for the home?"""
    files = (path for path in database.parent.rglob("*") if path.is_file())
    return [
        path.name
        for path in files
        if "home" not in path.relative_to(database.parent).parts
        and WORD.encode() in path.read_bytes()
    ]


@pytest.mark.slow
def test_a_forgotten_word_lives_on_in_no_copy_that_a_killed_rebuild_left(
    home: Path, shell: Shell
) -> None:
    kill_a_salvage(shell.database, home)
    left = traces(shell.database)
    assert len(left) > 1, "there should be a copy"
    assert "copies" in [warning.check for warning in check_environment(shell.database)]
    assert shell("rebuild") == 0
    assert "copies" not in [warning.check for warning in check_environment(shell.database)]
    assert shell("forget", SESSION) == 0
    (kept,) = traces(shell.database)  # the damaged database, until its user removes it
    assert ".damaged-" in kept
    assert kept in shell.err


def test_a_kill_while_a_new_database_gets_its_name_leaves_it_with_one(
    home: Path, place: Path
) -> None:
    database = place / "index.db"
    with (
        every_new_database_is_built(),
        killed(lambda: sync(database, [home]), swap, "_link"),
    ):
        assert database.stat().st_nlink == 2
        assert sync(database, [home]).files_read == 0
    assert database.stat().st_nlink == 1
    assert names(database) == {"index.db", "index.db.lock"}
    check(database, home)


def test_what_others_keep_beside_it_is_left_alone(home: Path, place: Path) -> None:
    others = [place / "index.db2", place / "index.db.bak", place / "index.db.x.new"]
    for path in others:
        path.write_bytes(b"kept")
    (place / "index.db-old").mkdir()
    sync(place / "index.db", [home])
    assert all(path.read_bytes() == b"kept" for path in others)
    assert (place / "index.db-old").is_dir()


def test_a_file_with_the_name_of_the_temporary_directory_is_not_removed(
    home: Path, shell: Shell
) -> None:
    in_the_way = Path(f"{shell.database}-unfinished")
    in_the_way.write_bytes(b"kept")
    assert shell("sync", str(home)) == 4
    assert f"{in_the_way} is in the way" in shell.err
    assert shell.err.count("\n") == 1
    assert in_the_way.read_bytes() == b"kept"


# -- one writer, whatever the name ---------------------------------------------------------------


@pytest.mark.parametrize("is_directory", [False, True], ids=["file", "directory"])
@pytest.mark.parametrize("is_first", [False, True], ids=["link-second", "link-first"])
def test_the_lock_holds_through_a_link(
    is_directory: bool, is_first: bool, home: Path, place: Path, shell: Shell
) -> None:
    sync(shell.database, [home])
    link = place / "link" / "index.db" if is_directory else place / "link.db"
    if is_directory:
        (place / "link").symlink_to(place)
    else:
        link.symlink_to(shell.database)
    first, second = (link, shell.database) if is_first else (shell.database, link)
    with writing(first):
        assert shell("sync", "--db", str(second)) == 3
    assert f"process {os.getpid()}" in shell.err
    assert shell("sync", "--db", str(second)) == 0
    assert not names(place / "link.db") - {"link.db"}


def test_a_link_to_a_database_that_is_not_there_yet_is_followed(
    home: Path, place: Path, shell: Shell
) -> None:
    link = place / "link.db"
    link.symlink_to(place / "data" / "real.db")
    with every_new_database_is_built():
        assert shell("sync", str(home), "--db", str(link)) == 0, shell.err
    assert names(place / "data" / "real.db") == {"real.db", "real.db.lock"}
    assert (place / "data").stat().st_mode & 0o777 == 0o700
    assert names(link) == {"link.db"}
    check(place / "data" / "real.db", home)
    assert shell("status", "--db", str(link)) == 0
    assert str(place / "data" / "real.db") in shell.out


def test_the_functions_follow_a_link_as_the_commands_do(home: Path, place: Path) -> None:
    link = place / "link.db"
    link.symlink_to("real.db")
    sync(link, [home])
    check(place / "real.db", home)
    assert names(link) == {"link.db"}


def test_a_link_that_leads_in_a_circle_is_one_sentence(home: Path, shell: Shell) -> None:
    shell.database.symlink_to(shell.database.name)
    for command in (["sync", str(home)], ["status"], ["verify"]):
        assert shell(*command) == 2
        assert "Too many levels of symbolic links. Give another file: --db FILE" in shell.err
    with pytest.raises(DatabaseError, match="is a circular symbolic link"):
        open_reader(shell.database)


@pytest.mark.parametrize("command", [["sync"], ["rebuild"], ["compact"], ["forget", SESSION]])
def test_a_second_name_of_the_file_is_refused_untouched(
    command: list[str], home: Path, place: Path, shell: Shell
) -> None:
    """SQLite would keep a log beside each name, and what stands in one is missing in the other."""
    sync(shell.database, [home])
    second = place / "second.db"
    second.hardlink_to(shell.database)
    before = second.read_bytes()
    for name in (shell.database, second):
        assert shell(*command, "--db", str(name)) == 4
        assert "has a second hard link" in shell.err
        assert shell.err.count("\n") == 1
    assert second.read_bytes() == before
    assert [warning.check for warning in verify(shell.database).warnings].count("names") == 1
    shell.database.unlink()
    assert shell(*command, "--db", str(second)) == 0, shell.err
    check(second)


def test_a_second_name_that_is_made_while_one_writes_lets_no_other_in(
    home: Path, place: Path, shell: Shell
) -> None:
    sync(shell.database, [home])
    with writing(shell.database):
        (place / "second.db").hardlink_to(shell.database)
        assert shell("sync", "--db", str(place / "second.db")) == 4


@pytest.mark.parametrize("kind", ["link", "dangling-link", "directory", "pipe"])
def test_a_lock_that_is_no_file_is_one_sentence(
    kind: str, home: Path, place: Path, shell: Shell
) -> None:
    lock = Path(f"{shell.database}.lock")
    target = place / "somebody's"
    if kind == "directory":
        lock.mkdir()
    elif kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.symlink_to(target)
    if kind == "link":
        target.write_bytes(b"kept")
    assert shell("sync", str(home)) == 4, shell.err
    assert str(lock) in shell.err
    assert "Remove it" in shell.err
    assert shell.err.count("\n") == 1
    assert not shell.database.exists()
    assert target.exists() == (kind == "link")


# -- a database of somebody else -----------------------------------------------------------------


READING = (["verify"], ["status"], ["search", "beans"])


@contextmanager
def of_somebody_else(database: Path) -> Iterator[None]:
    """Let others read everything, and write nothing."""
    place = database.parent
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path in (place, *place.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def ran_by_nobody(shell: Shell, command: list[str]) -> tuple[int, str]:
    """Return the exit code and the words of a command that another user runs."""
    code, words = as_nobody(lambda: (shell(*command), shell.err))
    return code, words


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_database_that_cannot_be_read_where_it_lies_is_one_sentence(
    command: list[str], home: Path, shell: Shell
) -> None:
    sync(shell.database, [home])
    assert shell(*command) == 0, shell.err  # all modules that are needed are now imported
    for ending in ("-wal", "-shm"):
        Path(f"{shell.database}{ending}").unlink(missing_ok=True)
    with of_somebody_else(shell.database):
        code, words = ran_by_nobody(shell, command)
    assert code == 5, words
    assert "cannot be read here: SQLite needs to create files next to it" in words
    assert "give the copy: --db FILE" in words
    assert words.count("\n") == 1


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_database_that_somebody_else_has_open_can_be_read(
    command: list[str], home: Path, shell: Shell
) -> None:
    """SQLite's own files are there then. Only to check the indexes one has to write."""
    sync(shell.database, [home])
    assert shell(*command) == 0, shell.err
    with closing(open_reader(shell.database)) as reader:
        reader.execute("select 1 from files").fetchone()
        with of_somebody_else(shell.database):
            code, words = ran_by_nobody(shell, command)
    if command == ["verify"]:
        assert code == 5, words
        assert "no permission to write to" in words
        assert words.count("\n") == 1
    else:
        assert (code, words) == (0, "")


@pytest.mark.parametrize("command", [["sync"], *READING], ids=" ".join)
def test_a_directory_that_may_not_be_entered_is_one_sentence(
    command: list[str], home: Path, shell: Shell
) -> None:
    sync(shell.database, [home])
    assert shell(*command) == 0, shell.err
    with of_somebody_else(shell.database):
        shell.database.parent.chmod(0o600)
        code, words = ran_by_nobody(shell, command)
    assert code == 5, words
    assert "cannot be used: Permission denied" in words
    assert words.count("\n") == 1


def test_a_name_that_is_too_long_is_one_sentence(home: Path, place: Path, shell: Shell) -> None:
    assert shell("sync", str(home), "--db", str(place / ("x" * 300))) == 2
    assert "File name too long. Give another" in shell.err


def test_a_name_without_a_letter_is_wrong_usage(shell: Shell) -> None:
    for command in (("status", "-d", ""), ("--db", "", "status"), ("sync", "--db", "")):
        assert shell(*command) == 2
        assert "The name of the database is empty. Give a file: --db FILE" in shell.err
