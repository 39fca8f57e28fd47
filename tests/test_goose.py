"""A session of Goose is the same from its database and from the files of earlier versions.

That databases are read without a trace whatever their program does: `test_database_files`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cases import home_of

from assoc_ingest.files.stores import BUSY, NOT_SQLITE, UNKNOWN_TABLES
from assoc_ingest.files.walk import Listing, Walk, recognised
from assoc_ingest.source import Recognition
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows

Fresh = Callable[[], Path]
SECOND = "20260101_2"


@pytest.fixture
def home(place: Path) -> Path:
    return home_of("goose/demonstration", place)


def lying(home: Path) -> dict[str, tuple[str, int]]:
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in home.iterdir()
    }


def say(connection: sqlite3.Connection, session: str, text: str, at: int) -> None:
    content = json.dumps([{"type": "text", "text": text}])
    connection.execute(
        "insert into messages (message_id, session_id, role, content_json, created_timestamp)"
        " values (?, ?, 'user', ?, ?)",
        (f"msg_{at}", session, content, at),
    )
    connection.execute(
        "update sessions set updated_at = datetime(?, 'unixepoch') where id = ?", (at, session)
    )


def texts(database: Path) -> list[str]:
    return [text for (text,) in rows(database, "select text from messages where text <> ''")]


def test_a_new_message_is_read_with_its_session_alone(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        connection.execute("insert into sessions (id, working_dir) values (?, '/srv')", (SECOND,))
        say(connection, SECOND, "Another session.", 1_767_259_000)
        connection.commit()
    sync(database, [home])
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        say(connection, SECOND, "It goes on.", 1_767_260_000)
        connection.commit()
    report = sync(database, [home])
    assert [text for text in texts(database) if "goes on" in text] == ["It goes on."]
    assert report.files_read == 2, "the list of sessions, and one of them"
    check(database, home)
    sync(other, [home])
    assert_same(dump(database), dump(other))


def test_what_is_committed_is_read_while_the_program_writes(home: Path, fresh: Fresh) -> None:
    database = fresh()
    with closing(sqlite3.connect(home / "sessions.db", isolation_level=None)) as connection:
        say(connection, "20260101_1", "In the log.", 1_767_259_000)
        connection.execute("begin immediate")
        say(connection, "20260101_1", "Not committed.", 1_767_259_001)
        before = lying(home)
        assert before.keys() == {"sessions.db", "sessions.db-shm", "sessions.db-wal"}
        sync(database, [home])
        assert "In the log." in texts(database)
        assert "Not committed." not in texts(database)
        assert lying(home) == before
        connection.execute("commit")
        sync(database, [home])
        assert "Not committed." in texts(database)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("drop table messages", UNKNOWN_TABLES),
        ("alter table sessions drop column accumulated_output_tokens", UNKNOWN_TABLES),
        (None, NOT_SQLITE),
    ],
    ids=["another table", "another column", "half of it"],
)
def test_a_database_that_cannot_be_read_is_an_issue(
    home: Path, fresh: Fresh, damage: str | None, reason: str
) -> None:
    database = fresh()
    sync(database, [home])
    before = texts(database)
    path = home / "sessions.db"
    if damage is None:
        path.write_bytes(path.read_bytes()[:5000])
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(damage)
            connection.commit()
    left = lying(home)
    sync(database, [])  # which knows the home
    ((said,),) = rows(database, "select reason from issues")
    assert str(said).startswith(reason)
    assert texts(database) == before
    assert lying(home) == left


@pytest.mark.skipif(os.name == "nt", reason="locks of files are others there")
def test_a_locked_database_is_read_when_it_is_free(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    with closing(sqlite3.connect(home / "sessions.db", isolation_level=None)) as connection:
        connection.execute("pragma locking_mode = exclusive")
        say(connection, "20260101_1", "Said meanwhile.", 1_767_259_000)
        left = lying(home)
        sync(database, [home])
        assert rows(database, "select reason from issues") == [(BUSY,)]
        assert lying(home) == left
    sync(database, [home])
    assert "Said meanwhile." in texts(database)
    assert rows(database, "select reason from issues") == []


def test_a_message_that_both_stores_have_counts_once(place: Path, fresh: Fresh) -> None:
    home, database = home_of("goose/files-that-were-copied-into-a-database", place), fresh()
    sync(database, [home])
    query = "select message_count, prompt_count from sessions where session_key = '20260101_090000'"
    assert rows(database, query) == [(6, 2)]
    query = "select count(*) from messages where copy_of is null and text = 'What is in the shed?'"
    assert rows(database, query) == [(1,)]


def test_what_a_session_states_of_itself_is_no_tokens_of_a_message(
    place: Path, fresh: Fresh
) -> None:
    home, database = home_of("goose/files-that-were-copied-into-a-database", place), fresh()
    sync(database, [home])
    assert rows(database, "select * from usage") == []
    assert ("", 350, 50) in rows(
        database, "select model, input_tokens, output_tokens from stated_usage"
    )


def test_no_secret_is_kept(place: Path, fresh: Fresh) -> None:
    home, database = home_of("goose/demonstration", place), fresh()
    data = (home / "sessions.db").read_bytes()
    assert all(f"SECRET{number}".encode() in data for number in (1, 2, 3))
    sync(database, [home])
    with closing(connect(database)) as connection:
        assert "SECRET" not in "".join(connection.iterdump())


def test_a_database_of_another_program_is_no_home(place: Path) -> None:
    place = place / "home"
    place.mkdir()
    with closing(sqlite3.connect(place / "sessions.db")) as connection:
        connection.execute("create table sessions (session_id text primary key)")
        connection.commit()
    goose = SOURCES["goose"]
    listing = Listing(place, goose, SOURCES.values(), Walk())
    assert goose.recognises(listing) is Recognition.NO
    home = home_of("goose/demonstration", place, "other")
    assert [root.source for root in recognised(home, SOURCES)] == [goose]
