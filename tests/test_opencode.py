"""Conversations of OpenCode are the same from its database and from the files of earlier versions.

Tokens count once, however often forks and copies repeat them. Real stores, from the program itself:
ASSOC_REAL_CORPUS names a directory with `agents/opencode/*`.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import home_of

from assoc_ingest.files import archive
from assoc_ingest.files.walk import ListedDirectory, recognised
from assoc_ingest.records import Usage
from assoc_ingest.source import Claim, Line
from assoc_ingest.sources import SOURCES as KINDS
from assoc_ingest.store.database import writing
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.run import SyncOptions, sync, sync_into
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
STORES = sorted(CORPUS.glob("agents/opencode/*"))
FILES, BOTH = "opencode/a-conversation-in-files", "opencode/files-that-were-copied-into-a-database"
OPENCODE = KINDS["opencode"]

Fresh = Callable[[], Path]


@pytest.fixture
def home(place: Path) -> Path:
    return home_of(FILES, place)


def texts(database: Path) -> list[str]:
    return [text for (text,) in rows(database, "select text from messages where text <> ''")]


# -- files ---------------------------------------------------------------------------------------


def test_a_conversation_in_files_is_one_document(home: Path, fresh: Fresh) -> None:
    database = fresh()
    report = sync(database, [home])
    assert report.files_read == 2, "the conversation, and its subagent"
    assert sync(database, [home]).files_read == 0


def test_a_new_part_is_read_with_its_conversation(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    sync(database, [home])
    part = {"type": "text", "text": "Bed 5 as well.", "time": {"start": 1769508004950}}
    (home / "storage/part/msg_a3/prt_a302.json").write_text(json.dumps(part))
    assert sync(database, [home]).files_read == 1
    assert "Bed 5 as well." in texts(database)
    sync(other, [home])
    assert_same(dump(database), dump(other))


def test_a_file_that_is_being_written_is_read_when_it_is_whole(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    path = home / "storage/part/msg_a3/prt_a301.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:70])
    sync(database, [home])
    assert rows(database, "select quarantined from issues") == [(1,)]
    assert "Which beds need water today?" in texts(database)
    path.write_bytes(whole)
    sync(database, [home])
    check(database, home)
    sync(other, [home])
    assert_same(dump(database), dump(other))


def test_a_conversation_whose_files_are_deleted_is_gone_and_stays(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = texts(database)
    (home / "storage/session/6f1c2d/ses_5b00ffee.json").unlink()
    assert sync(database, [home]).files_gone == 1
    shutil.rmtree(home / "storage")
    (home / "opencode-nix.db").write_bytes(b"")
    assert sync(database, [home]).files_gone == 1
    assert texts(database) == before


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="the superuser may read everything")
def test_what_cannot_be_listed_is_not_gone(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = dump(database)
    place = home / "storage/part/msg_a2"
    place.chmod(0)
    try:
        assert sync(database, [home]).files_gone == 0
    finally:
        place.chmod(0o700)
    assert_same(dump(database), before)


def test_one_directory_is_not_enough_to_read_a_conversation(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    (root,) = recognised(home, KINDS)
    (home / "storage/part/msg_a3/prt_a302.json").write_text('{"type":"text","text":"new"}')
    with writing(database) as connection:
        for place, is_doubtful in ((("storage", "part", "msg_a3"), True), ((), False)):
            places = {root: [ListedDirectory(place, is_deep=False)]}
            report = Report(started_at="2026-01-01T00:00:00.000Z")
            plan = sync_into(connection, [], SyncOptions(), report, places=places)
            assert (plan.is_doubtful, report.files_gone) == (is_doubtful, 0), place


def test_no_secret_of_a_file_is_kept(home: Path, fresh: Fresh) -> None:
    files = b"".join(path.read_bytes() for path in home.rglob("*.json"))
    assert files.count(b"SECRET") == 4
    database = fresh()
    sync(database, [home])
    with closing(connect(database)) as connection:
        assert "SECRET" not in "".join(connection.iterdump())
        for (file_id,) in connection.execute("select id from files").fetchall():
            assert b"SECRET" not in b"".join(archive.read(connection, file_id))


# -- both stores ---------------------------------------------------------------------------------

COUNTS = (
    "select session_key, message_count, prompt_count, tool_call_count, input_tokens, output_tokens,"
    " cache_read_tokens, title from sessions order by 1"
)


def test_what_is_in_both_stores_counts_once(fresh: Fresh, place: Path) -> None:
    """Whichever is there first, as long as both are."""
    home = home_of(BOTH, place)
    hidden, expected = place / "hidden", fresh()
    sync(expected, [home])
    shown = rows(expected, f"{COUNTS}")
    assert shown == [
        ("ses_5b01ffee", 15, 2, 8, 1152, 140, 2900, "Watering rules for the beds"),
    ]
    for name in ("opencode.db", "storage"):
        database = fresh()
        (home / name).rename(hidden)
        sync(database, [home])
        hidden.rename(home / name)
        sync(database, [home])
        check(database, home)
        assert_same(dump(database), dump(expected))


def test_what_differs_in_both_stores_is_shown_as_the_database_has_it(
    fresh: Fresh, place: Path
) -> None:
    """The files are those of an earlier moment: an answer that was still being written."""
    home = home_of(BOTH, place)
    alone, both = fresh(), fresh()
    shutil.move(home / "storage", place / "storage")
    sync(alone, [home])
    shutil.move(place / "storage", home / "storage")
    shortened, unfinished = [], []
    for path in sorted(home.glob("storage/*/*/*.json")):
        data = json.loads(path.read_bytes())
        if data.get("role") == "assistant" and data["tokens"]["output"]:
            data["tokens"]["output"] -= 1
            data["time"].pop("completed", None)
            unfinished.append(path.stem)
        elif data.get("type") == "text" and path.parent.name in unfinished:
            data["text"] = data["text"][:5]
            shortened.append(data["text"])
        path.write_text(json.dumps(data))
    assert shortened
    sync(both, [home])
    check(both, home)
    assert rows(both, COUNTS) == rows(alone, COUNTS)
    said = "select text from messages where copy_of is null and kind = 'text' order by 1"
    assert rows(both, said) == rows(alone, said)
    spent = "select count(*), sum(output_tokens) from responses"
    assert rows(both, spent) == rows(alone, spent)
    hidden = {text for (text,) in rows(both, "select text from messages where copy_of > 0")}
    assert hidden.issuperset(shortened), "they are kept as copies"
    shutil.move(home / "opencode.db", place / "hidden")
    later = fresh()
    sync(later, [home])
    shutil.move(place / "hidden", home / "opencode.db")
    sync(later, [home])
    assert_same(dump(later), dump(both))


def test_rows_alone_say_what_the_files_said(fresh: Fresh, place: Path) -> None:
    home = home_of(BOTH, place)
    both, alone = fresh(), fresh()
    sync(both, [home])
    shutil.rmtree(home / "storage")
    sync(alone, [home])
    assert rows(alone, COUNTS) == rows(both, COUNTS)
    said = (
        "select distinct kind, coalesce(text, tool_text), timestamp from messages order by 1, 2, 3"
    )
    assert rows(alone, said) == rows(both, said)


# -- lines ---------------------------------------------------------------------------------------


def usage(tokens: object) -> Usage | None:
    """Return what a message with these tokens states."""
    data = {
        "role": "assistant",
        "modelID": "m",
        "tokens": tokens,
        "time": {"created": 1, "completed": 2},
    }
    line = json.dumps({"table": "message", "id": "msg_1", "data": data}).encode()
    claim = Claim("opencode", "transcript", session_key="ses_1")
    found = [one for one in OPENCODE.parse(claim, [Line(0, line)]) if isinstance(one, Usage)]
    return found[0] if found else None


def test_output_has_the_reasoning_whichever_version_counts_it() -> None:
    cache = {"read": 600, "write": 5}
    old = usage({"input": 400, "output": 50, "reasoning": 10, "cache": cache})
    new = usage({"total": 1065, "input": 400, "output": 40, "reasoning": 10, "cache": cache})
    assert old is not None
    assert new is not None
    assert old == new._replace(byte_length=old.byte_length)
    assert (new.input_tokens, new.output_tokens) == (400, 50)
    assert (new.cache_read_tokens, new.cache_write_5m_tokens) == (600, 5)


def test_a_message_without_tokens_is_no_response() -> None:
    assert (
        usage({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}) is None
    )


def test_paths_of_the_layout_are_claimed_and_no_others() -> None:
    def kind(path: str) -> str | None:
        claim = OPENCODE.claim(tuple(path.split("/")))
        return claim and f"{claim.kind} {claim.session_key} {claim.agent_key} {claim.within}"

    assert kind("opencode.db") == "database None None None"
    assert kind("opencode-dev.db") == "database None None None"
    assert kind("opencode.db-wal") == "database_log None None opencode.db"
    assert kind("opencode.db#ses_1") == "transcript ses_1 None opencode.db"
    assert kind("opencode.db#ses_1#ses_2") == "agent ses_1 ses_2 opencode.db"
    assert kind("storage#ses_1") == "transcript ses_1 None storage"
    assert kind("storage/part/msg_1/prt_1.json") == "part None None storage"
    for path in (
        *("auth.json", "opencode.db-shm", "other.db", "other.db#ses_1", "opencode.db#", "storage"),
        *("opencode.db#a#b#c", "storage/session_share/ses_1.json", "storage/part/msg_1/.json"),
        *(
            "storage/session_diff/ses_1.json",
            "log/today.log",
            "opencode.db#../x",
            "snapshot/x.json",
        ),
    ):
        assert kind(path) is None, path


def test_the_home_is_in_the_data_directory_of_the_user() -> None:
    assert OPENCODE.default_roots({}, "/home/ada") == ["/home/ada/.local/share/opencode"]
    assert OPENCODE.default_roots({"XDG_DATA_HOME": "/data"}, "/home/ada") == ["/data/opencode"]
    assert OPENCODE.default_roots({}, None) == []
    assert OPENCODE.resume_command("ses_1") == ["opencode", "-s", "ses_1"]
    assert OPENCODE.withholds(("auth.json",))


# -- real stores ---------------------------------------------------------------------------------


def messages(home: Path) -> Iterator[dict[str, Any]]:
    """Yield the messages of a store, from rows and from files."""
    for path in home.glob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            for (data,) in connection.execute("select data from message"):
                yield json.loads(data)
    for path in home.glob("storage/message/*/*.json"):
        yield json.loads(path.read_bytes())


def expected_tokens(home: Path) -> tuple[int, ...]:
    """Count the tokens once more: each response by its times, model and tokens."""
    responses = {}
    for message in messages(home):
        tokens = message.get("tokens")
        if message["role"] == "assistant" and tokens:
            thought = tokens["reasoning"] if "total" in tokens else 0
            counts = (
                tokens["input"], tokens["output"] + thought,
                tokens["cache"]["read"], tokens["cache"]["write"],
            )  # fmt: skip
            if any(counts):
                times = message["time"]
                key = (times["created"], times.get("completed"), message["modelID"], counts)
                responses[key] = counts
    return len(responses), *map(sum, zip(*responses.values(), strict=True))


@pytest.mark.skipif(not STORES, reason="ASSOC_REAL_CORPUS names no stores of OpenCode")
@pytest.mark.parametrize("store", STORES, ids=lambda path: path.name)
def test_tokens_of_real_stores_are_counted_once(store: Path, fresh: Fresh, place: Path) -> None:
    home = Path(shutil.copytree(store, place / "home"))
    database = fresh()
    assert sync(database, [home]).unreadable == []
    check(database, home)
    sums = rows(
        database,
        "select count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),"
        " sum(cache_write_5m_tokens + cache_write_1h_tokens) from responses",
    )
    assert sums == [expected_tokens(home)]
    assert rows(database, "select count(*) from subagents where link_method = 'result'") == [(1,)]
    assert rows(database, "select reason from issues") == []


@pytest.mark.skipif(len(STORES) < 3, reason="ASSOC_REAL_CORPUS names no stores of OpenCode")
def test_a_real_migration_changes_no_count(fresh: Fresh, place: Path) -> None:
    """1.2 copied the files of 1.1 into its database."""
    files, copied = (CORPUS / f"agents/opencode/{name}" for name in
                     ("self-made-1.1.53-json", "self-made-1.2.6-migrated"))  # fmt: skip
    home = Path(shutil.copytree(files, place / "home"))
    database = fresh()
    sync(database, [home])
    before = rows(database, COUNTS)
    shutil.copy(copied / "opencode.db", home)
    sync(database, [home])
    assert rows(database, COUNTS) == before
