"""`compact` makes the database smaller, keeps every row and its id, and leaves it private."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from tests.dump import check, connect
from tests.shell import Shell
from tests.writing import OTHER, PROJECT, TRANSCRIPT, user, write

from assoc_ingest.database import writing


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
    assert "Was" in shrinkable.err


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


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX systems")
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
        assert "Make room" in shrinkable.err
        assert shrinkable("forget", OTHER) == 5
    assert shrinkable.database.read_bytes() == before


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


def test_a_missing_database_is_not_made(shell: Shell) -> None:
    for command in (("compact",), ("forget", "x"), ("forget", "--list")):
        assert shell(*command) == 4
        assert "assoc-ingest sync" in shell.err
    assert not shell.database.exists()
