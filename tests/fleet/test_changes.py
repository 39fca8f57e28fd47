"""Whoever keeps a second record and takes over what is noted as changed has what everybody has who
compares all: nothing changes without a note, whatever changes it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test
from tests.faults.amounts import times
from tests.support.cases import DEMO
from tests.support.writing import SESSION, user, write
from tests.test_incremental_equals_full import Homes

from assoc_ingest.cli import cli
from assoc_ingest.fleet import projection
from assoc_ingest.fleet.projection import (
    COUNTS_START,
    EVERYTHING,
    KEYED,
    ChangedFile,
    Cursor,
    Local,
    Scope,
    Table,
    of_paths,
)
from assoc_ingest.fleet.state import place_of
from assoc_ingest.store import changes
from assoc_ingest.store.database import locked, open_reader, transaction, writing
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import check
from assoc_ingest.testing.promises import read_in_pieces
from assoc_ingest.upkeep import rebuild as upkeep
from assoc_ingest.upkeep.prune import prune_gone
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.recover import recover

LINES = [user(f"text {number}", f"u{number}") for number in range(6)]

_TABLES = {table.name: table for table in KEYED}
_TIME_OF_SYNC = _TABLES["sources"].names.index("last_synced_at")


class Record:
    """A second record: frames of files and rows by key, taken over as a server does."""

    def __init__(self) -> None:
        self.files: dict[bytes, tuple[Any, ...]] = {}
        self.frames: dict[bytes, dict[int, tuple[object, ...]]] = {}
        self.keyed: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = {}
        self.seen: Cursor | None = None

    def take_over(self, connection: sqlite3.Connection, scope: Scope) -> bool:
        """Take over what changed; return whether everything had to be compared."""
        since = None
        local = Local(connection, scope)
        if self.seen is not None and local.is_known(self.seen):
            since = self.seen.change
        for file in local.files(since):
            self._take_file(local, file)
        for found in local.keyed(since):
            rows = {_key(_TABLES[found.table], row): row for row in found.rows}
            assert len(rows) == len(found.rows), f"a key of {found.table} is not unique"
            known = {} if found.is_whole else self.keyed[found.table]
            self.keyed[found.table] = known | rows
        for key in local.gone_file_keys(since):
            self.files.pop(key, None)
            self.frames.pop(key, None)
        self.seen = local.cursor()
        return since is None

    def _take_file(self, local: Local, file: ChangedFile) -> None:
        content = local.content(file)
        self.files[content.file_key] = content.attributes
        frames = {f.start: (f.end, f.digest, f.rows_digest) for f in content.frames}
        first = min((start for start in frames if start != COUNTS_START), default=2**63)
        known = {} if content.is_whole else self.frames.get(content.file_key, {})
        kept = {start: frame for start, frame in known.items() if start < first}
        if kept and first < 2**63:  # the frame before was the last one and may have had no end
            last = max(kept)
            kept[last] = (first, *kept[last][1:]) if last != COUNTS_START else kept[last]
        self.frames[content.file_key] = kept | frames

    def flat(self, files: set[bytes]) -> set[tuple[object, ...]]:
        """Return what can be compared: of files that still are, without the time of a sync."""
        keyed = {name: {*rows.values()} for name, rows in self.keyed.items()}
        place = _TIME_OF_SYNC
        keyed["sources"] = {(*row[:place], *row[place + 1 :]) for row in keyed["sources"]}
        return {
            *(("file", *row) for key, row in self.files.items() if key in files),
            *(
                ("frame", self.files[key][2], start, *frame)
                for key, frames in self.frames.items()
                for start, frame in frames.items()
                if key in files
            ),
            *((name, *row) for name, rows in keyed.items() for row in rows),
        }


def _key(table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(row[table.names.index(name)] for name in table.key)


def assert_current(record: Record, database: Path, scope: Scope | None) -> bool:
    """Take over what changed, and compare with a record of everything."""
    connection = open_reader(database)
    try:
        scope = scope or of_paths(connection, ["/srv/demo"])
        was_all = record.take_over(connection, scope)
        full = Record()
        full.take_over(connection, scope)
        ours, theirs = record.flat({*full.files}), full.flat({*full.files})
        assert sorted(map(repr, ours - theirs)) == sorted(map(repr, theirs - ours)) == []
        return was_all
    finally:
        connection.close()


class Noted(Homes):
    """A home that changes, and a second record of it."""

    scope: Scope | None = EVERYTHING
    was_rebuilt = True
    """Everything has to be compared: of a database that replaces another, no change is noted."""

    def _record(self) -> Record:
        if not hasattr(self, "record"):
            self.record = Record()
            place_of(self.database).touch()
        return self.record

    @invariant()
    def the_record_is_current(self) -> None:
        if hasattr(self, "database"):
            may_be_all, self.was_rebuilt = self.was_rebuilt, False
            was_all = assert_current(self._record(), self.database, self.scope)
            event("everything was compared" if was_all else "changes were enough")
            assert may_be_all or not was_all

    @rule(chunk=st.integers(100, 2000), in_place=st.booleans())
    def rebuild(self, chunk: int, in_place: bool) -> None:
        """The second way is that of a disk without room for a copy."""
        self.was_rebuilt = not in_place
        has_room = patch.object(upkeep, "has_room", lambda _: not in_place)
        with has_room, read_in_pieces(chunk, batch=500):
            rebuild(self.database)

    @rule()
    def prune(self) -> None:
        prune_gone(self.database, None, dry_run=False)

    def sync_and_compare(self, full: bool) -> None:
        self._sync(full=full)


class NotedOfOneProject(Noted):
    """The same, of what one project may show."""

    scope = None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Noted, NotedOfOneProject])
def test_a_record_that_takes_over_changes_is_as_one_that_compares_all(
    kind: type[Noted], template: Path
) -> None:
    kind.template = template
    run_state_machine_as_test(
        kind, settings=settings(max_examples=times(12, 4), stateful_step_count=15)
    )


@pytest.fixture
def demo(fresh: Callable[[], Path], place: Path) -> tuple[Path, list[Path]]:
    """A database with a home of each system, which may be changed."""
    homes = [Path(shutil.copytree(home, place / home.name)) for home in sorted(DEMO.iterdir())]
    database = fresh()
    place_of(database).touch()
    sync(database, homes)
    return database, homes


def test_nothing_is_noted_where_nobody_keeps_a_second_record(
    fresh: Callable[[], Path], place: Path
) -> None:
    """And whoever begins to keep one compares everything, also if there was one before."""
    database, record = fresh(), Record()

    def say(number: int) -> int:
        write(place / "home", f"projects/-srv-demo/{SESSION}.jsonl", *LINES[:number])
        sync(database, [place / "home"])
        with closing(sqlite3.connect(database)) as connection:
            return int(connection.execute("select count(*) from changed_rows").fetchone()[0])

    state = place_of(database)
    assert (say(1), say(2)) == (0, 0)
    assert assert_current(record, database, EVERYTHING)
    state.touch()
    assert say(3) > 0
    assert assert_current(record, database, EVERYTHING), "the change before was not noted"
    assert say(4) > 0
    assert not assert_current(record, database, EVERYTHING)
    state.unlink()
    assert say(5) == 0
    state.touch()
    assert say(6) > 0
    assert assert_current(record, database, EVERYTHING), "the change between was not noted"


def test_a_database_that_is_mended_has_no_notes_of_what_is_gone(
    fresh: Callable[[], Path], place: Path
) -> None:
    database = fresh()
    place_of(database).touch()
    for number in range(1, len(LINES) + 1):
        write(place / "home", f"projects/-srv-demo/{SESSION}.jsonl", *LINES[:number])
        sync(database, [place / "home"])
    with closing(sqlite3.connect(database)) as connection:
        (page,) = connection.execute(
            "select rootpage from sqlite_master where name = 'messages_uuid'"
        ).fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
    data = bytearray(database.read_bytes())
    data[(page - 1) * size : (page - 1) * size + 64] = b"U" * 64
    database.write_bytes(data)
    assert rebuild(database).kept_aside
    check(database, place / "home")
    assert not rebuild(database).kept_aside


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_database_may_lie_in_a_directory_whose_name_is_not_text(
    fresh: Callable[[], Path], place: Path
) -> None:
    directory = place / os.fsdecode(b"caf\xe9")
    directory.mkdir()
    database, record = Path(shutil.copy(fresh(), directory / "a.db")), Record()
    place_of(database).touch()
    for number in (1, 2, 3):
        write(place / "home", f"projects/-srv-demo/{SESSION}.jsonl", *LINES[:number])
        sync(database, [place / "home"])
        assert_current(record, database, EVERYTHING)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("select count(*) from changed_rows").fetchone()[0] > 0


@pytest.mark.slow
def test_every_command_that_writes_notes_what_it_changes(demo: tuple[Path, list[Path]]) -> None:
    database, homes = demo
    record = Record()
    assert assert_current(record, database, EVERYTHING), "nothing was seen before"
    assert not assert_current(record, database, EVERYTHING)
    was = {**record.files}
    for step, is_noted in _steps(database, homes):
        step()
        assert assert_current(record, database, EVERYTHING) is not is_noted, step
    assert was.keys() - record.files.keys(), "something was forgotten"


def _steps(database: Path, homes: list[Path]) -> Iterator[tuple[Callable[[], object], bool]]:
    connection = open_reader(database)
    (first, second) = connection.execute(
        "select session_key from sessions where message_count > 5 order by session_key limit 2"
    ).fetchall()
    connection.close()

    def run(*arguments: str) -> Callable[[], object]:
        def invoke() -> object:
            result = CliRunner().invoke(cli, [*arguments, "--db", str(database)])
            assert result.exit_code == 0, result.output
            return result

        return invoke

    yield lambda: sync(database, homes, SyncOptions(git=True)), True
    yield run("forget", first[0], "--yes"), True
    yield lambda: sync(database, homes, SyncOptions(full=True)), True
    _delete_transcripts(homes)
    yield lambda: sync(database, homes), True
    yield run("prune", "--gone", "--yes"), True
    yield lambda: rebuild(database), False
    yield run("compact", "--yes"), True
    yield run("forget", second[0], "--yes"), True
    yield lambda: sync(database, homes), True


def test_a_row_that_is_added_and_never_updated_is_noted(demo: tuple[Path, list[Path]]) -> None:
    database, _ = demo
    with writing(database) as connection, transaction(connection):
        connection.execute("insert into projects (source_id, key) select min(id), 'n' from sources")
        last = connection.execute("select max(id) from projects").fetchone()
    connection = open_reader(database)
    noted = connection.execute("select row_id from changed_rows where name = 'projects'").fetchall()
    connection.close()
    assert tuple(noted[-1]) == last


def _delete_transcripts(homes: list[Path]) -> None:
    for home in homes:
        for path in home.glob("projects/*/*.jsonl"):
            path.unlink()


def test_a_sync_that_finds_nothing_notes_nothing(demo: tuple[Path, list[Path]]) -> None:
    database, homes = demo
    record = Record()
    assert_current(record, database, EVERYTHING)
    seen = record.seen
    sync(database, homes)
    assert_current(record, database, EVERYTHING)
    assert record.seen == seen


def test_files_keep_their_keys_when_everything_is_derived_again(
    demo: tuple[Path, list[Path]],
) -> None:
    database, _ = demo
    before = _keys(database)
    assert len(set(before.values())) == len(before) > 10
    rebuild(database)
    assert _keys(database) == before


def test_a_recovered_database_keeps_its_names_and_is_compared_as_a_whole(
    demo: tuple[Path, list[Path]],
) -> None:
    database, _ = demo
    record = Record()
    assert_current(record, database, EVERYTHING)
    before, name = _keys(database), _name(database)
    with locked(database):
        recover(database)
    assert (_keys(database), _name(database)) == (before, name)
    assert assert_current(record, database, EVERYTHING)


def test_too_many_changes_are_all_compared(demo: tuple[Path, list[Path]]) -> None:
    database, homes = demo
    record = Record()
    assert_current(record, database, EVERYTHING)
    with patch.object(changes, "KEPT_ROWS", 5):
        _delete_transcripts(homes)
        sync(database, homes)
    assert assert_current(record, database, EVERYTHING)


def test_a_restored_database_is_compared_as_a_whole(
    demo: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    database, homes = demo
    copy = shutil.copy(database, tmp_path / "copy.db")
    record = Record()
    rebuild(database)
    assert_current(record, database, EVERYTHING)
    shutil.copy(copy, database)
    _delete_transcripts(homes)
    sync(database, homes)
    assert assert_current(record, database, EVERYTHING)


def _name(database: Path) -> str:
    connection = open_reader(database)
    try:
        return projection.database_key(connection)
    finally:
        connection.close()


def _keys(database: Path) -> dict[tuple[object, ...], bytes]:
    connection = open_reader(database)
    try:
        rows = connection.execute("select source_id, path, generation, file_key from files")
        return {tuple(row)[:3]: row["file_key"] for row in rows}
    finally:
        connection.close()
