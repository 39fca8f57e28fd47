"""A conversation of Cursor is read when one of its rows was written again; others are not.

However large the database is, what costs time is its index. Neither credentials nor keys for
encryption get into the index of conversations, and a home of another editor is none of Cursor's.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
from tests.support.cases import home_of

from assoc_ingest.errors import UsageError
from assoc_ingest.files import archive, stores
from assoc_ingest.files.walk import recognised
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows
from assoc_ingest.testing.promises import make_database

CASES = Path(__file__).parent / "sources" / "cursor"
STORE = "globalStorage/state.vscdb"
BEDS = "7c050000-0000-4000-8000-000000000005"
CURSOR = SOURCES["cursor"]

Fresh = Callable[[], Path]


@pytest.fixture
def home(place: Path) -> Path:
    return home_of("cursor/what-was-taken-back", place)


def write(home: Path, key: str, value: object, *, is_deleted: bool = False) -> None:
    """Write a row as the editor does."""
    with closing(sqlite3.connect(home / STORE)) as connection, connection:
        if is_deleted:
            connection.execute("delete from cursorDiskKV where key = ?", (key,))
        else:
            connection.execute("insert into cursorDiskKV values (?, ?)", (key, json.dumps(value)))


def said(database: Path) -> list[str]:
    return [text for (text,) in rows(database, "select text from messages where text <> ''")]


def test_only_the_conversation_of_a_written_row_is_read(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    assert sync(database, [home]).files_read == 3, "two conversations, and the database"
    bubble = {"_v": 3, "type": 2, "bubbleId": "t6", "text": "Eight beds, and a path."}
    write(home, f"bubbleId:{BEDS}:t6", bubble)
    assert sync(database, [home]).files_read == 2
    assert "Eight beds, and a path." in said(database)
    assert "Eight beds." not in said(database)
    sync(other, [home])
    assert_same(dump(database), dump(other))
    check(database, home)


def test_rows_of_others_are_no_reason_to_read_a_conversation(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    write(home, "agentKv:blob:17", {"role": "user"})
    assert sync(database, [home]).files_read == 1, "the database, which was listed"


def test_listing_reads_no_value(home: Path) -> None:
    with closing(sqlite3.connect(home / STORE)) as connection:
        assert CURSOR.database is not None
        for statement in (CURSOR.database.listing, CURSOR.database.counts[0]):
            plan = " ".join(
                step for *_, step in connection.execute(f"explain query plan {statement}")
            )
            assert "USING COVERING INDEX" in plan, plan


def test_a_row_that_was_deleted_is_deleted(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    sync(database, [home])
    write(home, f"bubbleId:{BEDS}:t4", None, is_deleted=True)
    sync(database, [home])
    sync(other, [home])
    assert "Six beds." not in said(database)
    assert_same(dump(database), dump(other))


def test_a_conversation_that_was_deleted_is_kept(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = said(database)
    write(home, f"composerData:{BEDS}", None, is_deleted=True)
    assert sync(database, [home]).files_gone == 1
    assert said(database) == before


def test_what_is_committed_is_read_while_the_editor_writes(home: Path, fresh: Fresh) -> None:
    database = fresh()
    with closing(sqlite3.connect(home / STORE, isolation_level=None)) as writer:
        new = {"_v": 3, "type": 2, "bubbleId": "t8", "text": "And a ninth."}
        row = (f"bubbleId:{BEDS}:t8", json.dumps(new))
        writer.execute("insert into cursorDiskKV values (?, ?)", row)
        writer.execute("begin immediate")
        writer.execute("update cursorDiskKV set value = '{}'")
        before = {path.name: path.stat().st_size for path in (home / STORE).parent.iterdir()}
        sync(database, [home])
        assert {
            path.name: path.stat().st_size for path in (home / STORE).parent.iterdir()
        } == before
        writer.execute("rollback")
    assert {"And a ninth.", "Eight beds."} <= set(said(database))


def test_a_row_that_is_too_long_leaves_the_others(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MAX_LINE", 5000)
    write(home, f"bubbleId:{BEDS}:t6", {"_v": 3, "type": 2, "bubbleId": "t6", "text": "8" * 9000})
    database = fresh()
    sync(database, [home])
    assert rows(database, "select count(*) from issues where quarantined = 1") == [(1,)]
    assert "Make it eight." in said(database)


def test_a_database_of_another_shape_is_an_issue(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = said(database)
    with closing(sqlite3.connect(home / STORE)) as connection, connection:
        connection.execute("alter table cursorDiskKV rename column value to content")
    sync(database, [home])
    assert rows(database, "select count(*) from issues where reason like '%other tables%'") == [
        (1,)
    ]
    assert said(database) == before


@pytest.mark.parametrize("odd", [f"{'[' * 300}{']' * 300}", f'[{{"n":{"9" * 30}}},"\\ud83d"]'])
@pytest.mark.parametrize("field", ["todos", "conversation", "fullConversationHeadersOnly"])
def test_a_value_that_json_cannot_be_written_of_ends_no_sync(
    field: str, odd: str, home: Path, fresh: Fresh
) -> None:
    with closing(sqlite3.connect(home / STORE)) as connection, connection:
        row = (f"composerData:{BEDS}", f'{{"name":"Beds","{field}":{odd}}}')
        connection.execute("insert into cursorDiskKV values (?, ?)", row)
    database = fresh()
    sync(database, [home])
    assert "Make it eight." in said(database)
    assert rows(database, "select count(*) from sessions where title = 'Beds'") == [(1,)]
    check(database, home)


def test_bubbles_come_as_the_list_names_them_and_others_last() -> None:
    listed = [{"bubbleId": "b2"}, None, {"bubbleId": ["b"]}, {"bubbleId": "b1"}]
    data = {"fullConversationHeadersOnly": listed, "blobEncryptionKey": "SECRET"}
    named = ("composerData:c", "bubbleId:c:b0", "bubbleId:c:b1", "bubbleId:c:b2", "bubbleId:c:b3")
    assert CURSOR.database is not None
    assert CURSOR.database.lines is not None

    def order(data: object) -> list[tuple[object, object]]:
        rows = [("cursorDiskKV", name, {}, json.dumps(data).encode()) for name in named]
        lines = CURSOR.database.lines(rows)
        return [(key, columns.get("listed")) for _, key, columns, _ in lines]

    assert order(data) == [
        ("composerData:c", None),
        ("bubbleId:c:b2", None),
        ("bubbleId:c:b1", None),
        ("bubbleId:c:b0", False),
        ("bubbleId:c:b3", False),
    ]
    assert order({}) == [(name, None) for name in named]
    assert order("{") == [(name, None) for name in named]


@pytest.mark.parametrize("case", ["demonstration", "broken-rows"])
def test_no_credential_is_read(case: str, place: Path, fresh: Fresh) -> None:
    home = home_of(f"cursor/{case}", place)
    assert b"SECRET" in (home / STORE).read_bytes()
    database = fresh()
    sync(database, [home], SyncOptions(full=True))
    with closing(connect(database)) as connection:
        assert "SECRET" not in "".join(connection.iterdump())
        for (file_id,) in connection.execute("select id from files").fetchall():
            assert b"SECRET" not in b"".join(archive.read(connection, file_id))


# -- homes ---------------------------------------------------------------------------------------


def as_vscode_has_it(home: Path, session: str) -> None:
    """Write what both editors have, since one was made from the other."""
    chats = home / "workspaceStorage/5f0c/chatSessions"
    chats.mkdir(parents=True)
    (chats.parent / "workspace.json").write_text('{"folder":"file:///srv/herbarium"}')
    (chats / f"{session}.json").write_text('{"version":3,"requests":[]}')


def test_homes_of_cursor_and_of_vs_code_lie_side_by_side(place: Path, fresh: Fresh) -> None:
    ours, theirs = home_of("cursor/demonstration", place, "Cursor"), place / "Code"
    (theirs / "globalStorage").mkdir(parents=True)
    make_database(theirs / STORE, "create table ItemTable (key text unique, value blob);")
    as_vscode_has_it(ours, "7c0f0000-0000-4000-8000-00000000000f")
    as_vscode_has_it(theirs, "7c0f0000-0000-4000-8000-0000000000f0")
    database = fresh()
    sync(database, [ours, theirs])
    kinds = [("copilot_chat", str(theirs)), ("cursor", str(ours))]
    assert rows(database, "select kind, root from sources order by kind") == kinds
    assert rows(database, "select reason from issues") == []


def test_a_database_alone_is_no_home(place: Path) -> None:
    home = home_of("cursor/demonstration", place)
    shutil.rmtree(home / "globalStorage/anysphere.cursor-commits")
    with pytest.raises(UsageError):
        recognised(home, SOURCES)


def test_the_directory_differs_between_systems() -> None:
    roots = CURSOR.default_roots({"APPDATA": "C:/Roaming", "XDG_CONFIG_HOME": "/cfg"}, "/home/ada")
    assert roots == [
        "C:/Roaming/Cursor/User",
        "/cfg/Cursor/User",
        "/home/ada/.config/Cursor/User",
        "/home/ada/Library/Application Support/Cursor/User",
    ]
    assert CURSOR.resume_command("7c010000-0000-4000-8000-000000000001") is None


# -- every text ----------------------------------------------------------------------------------

LEFT_OUT = (
    *("signature", "composerId", "bubbleId", "external", "scheme", "blobEncryptionKey", "id"),
    *("speculativeSummarizationEncryptionKey", "type", "context", "diffString", "modelCallId"),
    *("richText", "workspaceUris"),
)
"""Fields whose texts nobody searches for, or that others repeat."""


def texts(value: object) -> Iterator[str]:
    """Yield the texts in a row, also those in JSON that is a text itself."""
    if isinstance(value, str):
        inner: object = None
        if value[:1] in ("{", "["):
            inner = json.loads(value)
        yield from texts(inner) if isinstance(inner, dict | list) else (value,)
    elif isinstance(value, list):
        yield from chain.from_iterable(map(texts, value))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in LEFT_OUT:
                yield from texts(item)


@pytest.mark.parametrize("case", ["demonstration", "subagents", "what-was-taken-back"])
def test_whatever_a_row_states_some_row_has(case: str, place: Path, fresh: Fresh) -> None:
    home = home_of(f"cursor/{case}", place)
    database = fresh()
    sync(database, [home])
    with closing(sqlite3.connect(home / STORE)) as connection:
        found = connection.execute(
            "select value from cursorDiskKV where key > 'bubbleId:' and key < 'composerDatb'"
        )
        stated = [json.loads(value) for (value,) in found]
    with closing(connect(database)) as connection:
        connection.execute("delete from archive")
        kept = "\n".join(connection.iterdump())
    missing = {text for text in texts(stated) if text and text not in kept.replace("''", "'")}
    assert {text for text in missing if json.dumps(text)[1:-1] not in kept} == set()
