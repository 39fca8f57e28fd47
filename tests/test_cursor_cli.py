"""A conversation of Cursor CLI is read from its database, and resumed by its id."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cases import home_of

from assoc_ingest.files import archive
from assoc_ingest.files.walk import recognised
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows

CLI = SOURCES["cursor_cli"]
PEARS = "7d010000-0000-4000-8000-000000000001"

Fresh = Callable[[], Path]


@pytest.fixture
def home(place: Path) -> Path:
    return home_of("cursor_cli/demonstration", place)


def test_a_new_message_is_read_with_its_conversation(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    sync(database, [home])
    (store,) = home.rglob("store.db")
    message = {"role": "user", "content": "<user_query>And apples?</user_query>"}
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("insert into blobs values ('ee', ?)", (json.dumps(message).encode(),))
    assert sync(database, [home]).files_read == 2, "the conversation, and the database"
    assert rows(database, "select text from messages where text like 'And%'") == [("And apples?",)]
    sync(other, [home])
    assert_same(dump(database), dump(other))
    check(database, home)


def test_no_key_is_read(home: Path, fresh: Fresh) -> None:
    (store,) = home.rglob("store.db")
    assert b"SECRET".hex().encode() in store.read_bytes()
    database = fresh()
    sync(database, [home])
    with closing(connect(database)) as connection:
        kept = "".join(connection.iterdump())
        for (file_id,) in connection.execute("select id from files").fetchall():
            kept += b"".join(archive.read(connection, file_id)).decode()
    assert "SECRET" not in kept
    assert b"SECRET".hex() not in kept


def test_a_conversation_is_resumed_by_its_id() -> None:
    assert CLI.resume_command(PEARS) == ["cursor-agent", "--resume", PEARS]
    assert CLI.resume_command("--help") is None


def test_it_has_a_home_of_its_own(home: Path, place: Path) -> None:
    editor = home_of("cursor/demonstration", place, "editor")
    assert [root.source.name for root in recognised(home, SOURCES)] == ["cursor_cli"]
    assert [root.source.name for root in recognised(editor, SOURCES)] == ["cursor"]
    assert CLI.default_roots({"XDG_CONFIG_HOME": "/cfg"}, "/home/ada") == [
        "/home/ada/.cursor",
        "/cfg/cursor",
    ]
