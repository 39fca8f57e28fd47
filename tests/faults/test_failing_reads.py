"""A file that cannot be read to its end costs nothing but that.

Any read may fail. A file that was being read anew is as it was, one that only grew goes on from the
last whole line that was read, all others are up to date, and what is counted is what was kept. The
next sync that can read the file ends with the rows of a sync from scratch.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.faults.amounts import spread, times
from tests.faults.changing import Fresh
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    TRANSCRIPT,
    assistant,
    dumps,
    jsonl,
    user,
    write,
    write_bytes,
)

from assoc_ingest.fields import now
from assoc_ingest.files import changes, tail
from assoc_ingest.files.walk import recognised
from assoc_ingest.sources import SOURCES
from assoc_ingest.store.database import writing
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.run import SyncOptions, sync, sync_into
from assoc_ingest.testing.dump import Dump, assert_same, check, dump
from assoc_ingest.testing.promises import read_in_pieces

REWRITTEN = TRANSCRIPT
GROWN = f"{PROJECT}/{OTHER}.jsonl"
NEW = f"{PROJECT}/{THIRD}.jsonl"
META = f"{PROJECT}/{SESSION}/subagents/agent-a1.meta.json"
AGENT = f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl"

MAX_LINE = 4000
CHUNK = 1500


@contextmanager
def failing_reads(call: int, *, for_ever: bool = False) -> Iterator[list[int]]:
    """Let the `call`-th read of a file fail, or all from that one on; yield the failed calls."""
    calls, failed = 0, []
    pread = tail.read_at

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls == call or (for_ever and calls > call):
            failed.append(calls)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(descriptor, size, offset)

    with (
        patch("assoc_ingest.files.tail.read_at", read_at),
        patch("assoc_ingest.files.changes.read_at", read_at),
    ):
        yield failed
        failed.append(calls)


@contextmanager
def in_pieces() -> Iterator[None]:
    with (
        read_in_pieces(chunk=CHUNK, batch=2500),
        patch("assoc_ingest.files.tail.MAX_LINE", MAX_LINE),
        patch("assoc_ingest.files.changes.MAX_LINE", MAX_LINE),
    ):
        yield


def turns(name: str, count: int, session: str = SESSION) -> list[dict[str, Any]]:
    return [
        user(f"{name} {number} " + "x" * 300, f"{name}{number}", sessionId=session)
        for number in range(count)
    ]


def grown(place: Path, fresh: Fresh) -> tuple[Path, Path]:
    """Return a home that changed since it was synced, and the database into which it was."""
    home, database = place / "home", fresh()
    write(home, REWRITTEN, *turns("old", 12))
    grows = write(home, GROWN, *turns("first", 6, OTHER))
    write(home, AGENT, {**user("part", "p1"), "isSidechain": True, "agentId": "a1"})
    write_bytes(home, META, dumps({"agentType": "Explore", "description": "one"}))
    with in_pieces():
        sync(database, [home])
    write(home, REWRITTEN, *turns("new", 25))
    with grows.open("ab") as file:
        file.write(jsonl(*turns("then", 5, OTHER)))
        file.write(b'{"too long": "' + b"y" * 3 * MAX_LINE + b'"}\n')
        file.write(jsonl(*turns("last", 5, OTHER)))
    write(home, NEW, *turns("fresh", 8, THIRD), assistant("done", "a9", sessionId=THIRD))
    with (home / AGENT).open("ab") as file:
        file.write(jsonl({**user("whole", "p2"), "isSidechain": True, "agentId": "a1"}))
    write_bytes(home, META, dumps({"agentType": "Explore", "description": "another"}))
    return home, database


def of_file(shown: Dump, path: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a file, by table, and its own."""
    found = {
        table: [row for row in rows if row.get("file_id") == path] for table, rows in shown.items()
    }
    found["files"] = [row for row in shown["files"] if row["path"] == path]
    return {table: rows for table, rows in found.items() if rows}


def state_of(shown: Dump, path: str) -> tuple[int, int]:
    """Return how far a file is read, and how many messages it has."""
    files = of_file(shown, path).get("files", [])
    return sum(row["offset"] for row in files), len(of_file(shown, path).get("messages", []))


@pytest.mark.parametrize(
    "for_ever",
    [pytest.param(False, id="once"), pytest.param(True, id="for-ever", marks=pytest.mark.slow)],
)
def test_any_read_may_fail(for_ever: bool, fresh: Fresh, place: Path) -> None:
    assert_any_read_may_fail(fresh, place, for_ever=for_ever)


def assert_any_read_may_fail(fresh: Fresh, place: Path, *, for_ever: bool = False) -> None:
    home, start = grown(place, fresh)
    database, oracle = place / "index.db", fresh()
    with in_pieces():
        sync(oracle, [home])
        shutil.copy(start, database)
        with failing_reads(0) as calls:
            sync(database, [home])
    before, after = dump(start), dump(oracle)
    assert_same(dump(database), after)
    undone = parted = 0
    for call in spread(calls[-1], times(24, 9)):
        shutil.copy(start, database)
        with in_pieces(), failing_reads(call, for_ever=for_ever) as failed:
            report = sync(database, [home])
        assert len(failed) > 1, f"call {call} did not come"
        check(database)
        there = dump(database)
        named = {os.path.relpath(path, home) for path, _ in report.unreadable}
        assert len(named) == 1 or (named and for_ever)
        for path in (REWRITTEN, GROWN, NEW, AGENT, META):
            rows = of_file(there, path)
            if path not in named:
                assert rows == of_file(after, path), f"call {call} cost {path}, which was read"
            elif path in (REWRITTEN, AGENT, META):
                assert rows == of_file(before, path), f"call {call} left half of {path}"
        assert_counts(report, before, there)
        undone += REWRITTEN in named
        parted += any(
            path in named and state_of(before, path)[0] < state_of(there, path)[0]
            for path in (GROWN, NEW)
        )
        assert_the_next_sync_ends_as(after, database, home)
        for left in place.glob("index.db*"):
            left.unlink()
    assert undone > 1
    assert parted > 1


def assert_the_next_sync_ends_as(expected: Dump, database: Path, home: Path) -> None:
    with in_pieces():
        sync(database, [home])
        check(database, home)
        assert_same(dump(database), expected)
        assert sync(database, [home]).files_read == 0


def assert_counts(report: Report, before: Dump, there: Dump) -> None:
    """What the report counts is what the tables gained."""
    assert report.error is None
    read = size = rows = 0
    for path in (REWRITTEN, GROWN, NEW, AGENT):
        (start, had), (end, has) = state_of(before, path), state_of(there, path)
        if path == REWRITTEN and of_file(before, path) != of_file(there, path):
            start = had = 0
        size += end - start
        rows += has - had
        read += end != start
    (meta,) = of_file(there, META)["files"]
    if of_file(before, META) != of_file(there, META):
        size += meta["offset"]
        read += 1
    assert (report.bytes_read, report.rows) == (size, rows)
    assert report.files_read == read


def test_a_file_that_is_cut_while_its_long_line_is_read_is_read_again(
    fresh: Fresh, place: Path
) -> None:
    """The end of the line was seen, and is gone when its bytes are read."""
    home, database = grown(place, fresh)
    file, cuts, oracle = home / GROWN, [], fresh()
    line_ends = tail._line_ends

    def cut(descriptor: int, position: int, size: int) -> bool:
        is_ended = line_ends(descriptor, position, size)
        os.truncate(file, position + MAX_LINE)
        cuts.append(is_ended)
        return is_ended

    with in_pieces(), patch("assoc_ingest.files.tail._line_ends", cut):
        report = sync(database, [home])
    assert cuts == [True]
    reasons = [reason for _, reason in report.unreadable]
    assert reasons == ["the file was truncated while it was read"]
    check(database)
    with in_pieces():
        sync(oracle, [home])
    assert_the_next_sync_ends_as(dump(oracle), database, home)


@pytest.mark.parametrize(("number", "tries"), [(errno.EACCES, 1), (errno.EPERM, 1), (errno.EIO, 3)])
def test_a_file_that_may_not_be_opened_is_tried_again_when_its_stat_changes(
    number: int, tries: int, fresh: Fresh, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a watch does it: a failing disk is tried again, since it may have been repaired."""
    home, database = place / "home", fresh()
    path = write(home, TRANSCRIPT, user("first", "u1"))
    sync(database, [home])
    write(home, GROWN, user("another", "u2", sessionId=OTHER))
    with path.open("ab") as file:
        file.write(jsonl(user("second", "u3", "u1")))
    opened: list[str] = []
    content = changes.open_content

    def refusing(location: str) -> int:
        opened.append(location)
        if location == str(path) and is_refused:
            raise OSError(number, os.strerror(number))
        return content(location)

    monkeypatch.setattr(changes, "open_content", refusing)
    is_refused, refused = True, dict[str, Any]()
    for _ in range(3):
        report = Report(now(), refused=refused)
        with writing(database) as connection:
            sync_into(connection, recognised(home, SOURCES), SyncOptions(), report)
        assert report.unreadable == [(str(path), os.strerror(number))], "each time it is told"
        assert report.files_gone == 0
    assert opened.count(str(path)) == tries
    is_refused = False
    os.utime(path, ns=(10**18, 10**18))
    with writing(database) as connection:
        sync_into(connection, recognised(home, SOURCES), SyncOptions(), Report("", refused=refused))
    check(database, home)
    assert {row["text"] for row in dump(database)["messages"]} == {"first", "second", "another"}
