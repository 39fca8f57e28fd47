"""The promises that every source keeps, as functions: each fails with what differs.

`homes` are directories that may be changed. `fresh` returns the path of an empty database, another
one each time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

from ..errors import UsageError
from ..files.walk import Listing, Walk, recognised
from ..records import AgentLine, Issue, LineType, Message, Record, Superseded, Transcript, Usage
from ..source import LOG, Line, Recognition, Source
from ..sources import SOURCES
from ..store.rows import ENTRIES, split
from ..sync.run import SyncOptions, sync
from .damage import Fixture, assert_storable
from .dump import Dump, assert_same, check, dump, pieces_of

Fresh = Callable[[], Path]
T = TypeVar("T")

# ------------------------------------------------------------------------------------------------
# Homes.


def copied(case: Path, to: Path) -> Path:
    """Copy the home of a case; a file `x.db.sql` becomes the database that it makes."""
    home = Path(shutil.copytree(case / "home", to))
    for script in [s for kind in ("db", "sqlite", "vscdb") for s in home.rglob(f"*.{kind}.sql")]:
        make_database(script.with_suffix(""), script.read_text("utf-8"))
        script.unlink()
    return home


def make_database(path: Path, script: str) -> None:
    """Make a database as its program leaves it: closed, with a log that is gone."""
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.executescript(script)
    connection.close()


def full(homes: list[Path], fresh: Fresh) -> Dump:
    """Return what one sync from scratch gives."""
    database = fresh()
    sync(database, homes)
    return dump(database)


def files_of(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.is_file())


def logs_of(home: Path) -> list[Path]:
    """Return the files that grow line by line, the largest first."""
    found = []
    for root in recognised(home, SOURCES):
        for path in files_of(root.path):
            claim = root.source.claim(path.relative_to(root.path).parts)
            if claim is not None and root.source.shape(claim) == LOG:
                found.append(path)
    return sorted(found, key=lambda path: -path.stat().st_size)


def is_home(path: Path, source: str | None) -> bool:
    """Say whether what is there so far is enough to be read as a home of the source."""
    try:
        return bool(recognised(path, SOURCES, source))
    except UsageError:
        return False


def touch(path: Path) -> None:
    """Give a changed file a time that no sync has seen."""
    later = path.stat().st_mtime_ns + 1_000_000_007
    os.utime(path, ns=(later, later))


def tree(home: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in files_of(home)
    }


def nth_logs(homes: list[Path], position: int) -> list[Path]:
    """Return a log of each home that has so many, the largest at position 0."""
    return [log for home in homes for log in logs_of(home)[position : position + 1]]


# ------------------------------------------------------------------------------------------------
# Read once, read again, read in pieces.


def read_twice(homes: list[Path], fresh: Fresh) -> None:
    """A second sync changes nothing, and none changes anything in the homes."""
    database = fresh()
    lying = [tree(home) for home in homes]
    first = sync(database, homes)
    once = dump(database)
    second = sync(database, homes)
    assert (second.files_read, second.bytes_read, second.rows) == (0, 0, 0)
    assert second.files_seen == first.files_seen
    assert_same(once, dump(database))
    assert [tree(home) for home in homes] == lying
    for home in homes:
        for path in files_of(home):
            touch(path)
    assert sync(database, homes).rows == 0
    assert sync(database, homes, SyncOptions(full=True)).rows == 0
    assert_same(once, dump(database))
    check(database, *homes)


def recognised_by_one(home: Path, own: Source) -> None:
    """Which source reads a home does not depend on which sources there are."""
    sure = {
        source.name: source.recognises(Listing(home, source, SOURCES.values(), Walk()))
        for source in SOURCES.values()
    }
    assert sure[own.name] is not Recognition.NO
    if sure[own.name] is not Recognition.GUEST:
        assert [name for name, how in sure.items() if how >= sure[own.name]] == [own.name]
    for other in SOURCES.values():
        if other is not own and sure[own.name] is not Recognition.GUEST:
            both = {own.name: own, other.name: other}
            assert [root.source for root in recognised(home, both) if root.path == home] == [own]


def entries_in_documents(homes: list[Path]) -> None:
    """What a log states comes in pieces: none of them says that something else is gone."""
    for root in chain.from_iterable(recognised(home, SOURCES) for home in homes):
        for path in files_of(root.path):
            claim = root.source.claim(path.relative_to(root.path).parts)
            if claim is None or root.source.shape(claim) != LOG:
                continue
            lines = [Line(0, line) for line in path.read_bytes().split(b"\n")]
            records = [r for r in root.source.parse(claim, lines) if type(r) in ENTRIES]
            assert split(records) == ([], records), path


@contextmanager
def read_in_pieces(chunk: int, batch: int) -> Iterator[None]:
    """Read `chunk` bytes at a time and commit after about `batch` of them."""
    with (
        patch("assoc_ingest.files.tail.CHUNK", chunk),
        patch("assoc_ingest.store.batch.BATCH_BYTES", batch),
        patch("assoc_ingest.store.batch.FILE_BYTES", 0),
        patch("assoc_ingest.store.rows._FLUSH_BYTES", chunk * 2),
        patch("assoc_ingest.store.batch._INDEXED_AT_ONCE", 40),
        patch("assoc_ingest.store.batch._DELETED_AT_ONCE", 25),
    ):
        yield


def read_in_any_pieces(
    homes: list[Path], fresh: Fresh, expected: Dump, chunk: int, batch: int
) -> None:
    database = fresh()
    with read_in_pieces(chunk, batch):
        sync(database, homes)
    check(database, *homes)
    assert_same(dump(database), expected)


def cuts(data: bytes) -> Iterator[int]:
    """Yield each line end, and the bytes before and after it."""
    position = data.find(b"\n")
    while position >= 0:
        yield from (position, position + 1, position + 2)
        position = data.find(b"\n", position + 1)


def grow(sizes: dict[Path, list[int]], database: Path, homes: list[Path]) -> None:
    """Let files grow side by side to these sizes, then to their own, with a sync after each."""
    contents = {path: path.read_bytes() for path in sizes}
    for step in range(max(map(len, sizes.values()), default=-1) + 1):
        for path, whole in contents.items():
            of_path = sizes[path]
            path.write_bytes(whole[: of_path[step]] if step < len(of_path) else whole)
            touch(path)
        sync(database, homes)


def some_cuts(path: Path, amount: int) -> list[int]:
    """Return about so many sizes that a log can have while it is written."""
    whole = path.read_bytes()
    sizes = sorted({size for size in cuts(whole) if size <= len(whole)})
    return sizes[:: max(1, len(sizes) // amount)]


def cut_at_lines(homes: list[Path], fresh: Fresh, expected: Dump, logs: int, amount: int) -> None:
    """So many logs of each home, and then all at once, grow in about so many steps."""
    every = [log for home in homes for log in logs_of(home)]
    for growing in (*(nth_logs(homes, position) for position in range(logs)), every):
        if growing:
            database = fresh()
            grow({log: some_cuts(log, amount) for log in growing}, database, homes)
            check(database, *homes)
            assert_same(dump(database), expected)


def empty_at_first(homes: list[Path], fresh: Fresh, expected: Dump) -> None:
    """What the lines of a log say of it, such as whose it is, is then known only later."""
    grown = fresh()
    contents = {log: log.read_bytes() for home in homes for log in logs_of(home)}
    for log in contents:
        log.write_bytes(b"")
    sync(grown, homes)
    for log, content in contents.items():
        log.write_bytes(content)
    sync(grown, homes)
    assert_same(dump(grown), expected)


# ------------------------------------------------------------------------------------------------
# Rewritten history.


def without_a_middle_line(data: bytes) -> bytes:
    lines = data.split(b"\n")
    del lines[len(lines) // 2]
    return b"\n".join(lines)


def with_another_middle(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + data[middle:].replace(b"e", b"o", 2)


def the_other_way_round(data: bytes) -> bytes:
    return b"\n".join(reversed(data.rstrip(b"\n").split(b"\n"))) + b"\n"


CHANGES: list[Callable[[bytes], bytes]] = [
    without_a_middle_line,
    with_another_middle,
    the_other_way_round,
    lambda data: data[: len(data) // 2],
    lambda data: b"",
    lambda data: data[: len(data) // 3] + b"\n" + data,
]


def rewritten(homes: list[Path], fresh: Fresh, turn: int) -> None:
    """No old rows stay. Each home is changed in another way, and in another in the next turn."""
    database = fresh()
    sync(database, homes)
    for number, log in enumerate(nth_logs(homes, 0)):
        change = CHANGES[(number + 3 * turn + turn // 2) % len(CHANGES)]
        log.write_bytes(change(log.read_bytes()))
        touch(log)
    sync(database, homes)
    check(database, *homes)
    assert_same(dump(database), full(homes, fresh))


def replaced_by_rename(homes: list[Path], fresh: Fresh, turn: int) -> None:
    """What takes the place of a file grew from it in every other home, and is another elsewhere."""
    database = fresh()
    contents = {log: log.read_bytes() for log in nth_logs(homes, 0)}
    halves = {
        log: whole[: whole.find(b"\n", len(whole) // 2) + 1] for log, whole in contents.items()
    }
    for log, half in halves.items():
        log.write_bytes(half)
    sync(database, homes)
    for number, (log, half) in enumerate(halves.items()):
        whole, is_same = contents[log], (number + turn) % 2 == 0
        other = log.with_suffix(".tmp")
        other.write_bytes(whole if is_same else whole[len(half) :] + half)
        other.replace(log)
        touch(log)
    sync(database, homes)
    check(database, *homes)
    assert_same(dump(database), full(homes, fresh))


def in_any_order(homes: list[Path], fresh: Fresh, source: str, *, is_reversed: bool) -> None:
    """A part of a home does not tell whose it is, so the source is given."""
    options = SyncOptions(source=source)
    homes = [
        home
        for home in homes
        if [root.source.name for root in recognised(home, SOURCES)] == [source]
    ]
    assert homes
    expected = full(homes, fresh)
    database, hidden = fresh(), [home.rename(f"{home}.hidden") for home in homes]
    lists = [sorted(files_of(directory), reverse=is_reversed) for directory in hidden]
    for turn in zip_longest(*lists):
        for home, directory, path in zip(homes, hidden, turn, strict=True):
            if path is not None:
                target = home / path.relative_to(directory)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
        if ready := [home for home in homes if is_home(home, source)]:
            sync(database, ready, options)
    check(database, *homes)
    assert_same(dump(database), expected)


# ------------------------------------------------------------------------------------------------
# What the records of a log mean.


_ALIKE = 3  # rows at the start of two files: so many are alike only in a copy
TYPED = ("prompt", "command", "bash_input", "queued_prompt", "agent_prompt")


class LineRecords(NamedTuple):
    """A line of a log, and what its source makes of it alone."""

    start: int
    data: bytes
    records: list[Record]

    def of(self, kind: type[T]) -> list[T]:
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def spoken(self) -> list[Message]:
        """The rows of the main conversation that are not the program's."""
        if self.of(AgentLine):
            return []
        return [m for m in self.of(Message) if m.role != "system" and not m.is_sidechain]


def read_lines(fixture: Fixture) -> list[LineRecords]:
    """Read a log line by line; nothing of one that is no conversation."""
    claim = fixture.source.classify(fixture.claim, fixture.lines)
    context: Mapping[str, Any] = {}
    found, start = [], 0
    for data in fixture.lines if claim.kind == "transcript" else ():
        records, context = fixture.source.read(claim, [Line(start, data)], context)
        found.append(LineRecords(start, data, records))
        start += len(data) + 1
    return found


_NO_KEYS = ("--help", "", "a b")
"""Keys that a file can be called after, and that a program would take for something else."""


def contradictions(logs: list[Fixture]) -> set[str]:
    """Return what cannot be meant in the records of the logs of one source."""
    found: set[str] = set()
    beginnings: dict[tuple[Path, object], list[str | None]] = {}
    for fixture in logs:
        for key in (fixture.claim.session_key or "", *_NO_KEYS):
            command = fixture.source.resume_command(key)
            if command is not None and (key in _NO_KEYS or not any(key in arg for arg in command)):
                found.add(f"a command that does not resume {key!r}: {command}")
        lines = read_lines(fixture)
        rows = [row for line in lines for row in line.of(Message)]
        spoken = [row for line in lines for row in line.spoken if row.kind != "queued_prompt"]
        for line in lines:
            found |= {f"{what}: {line.data[:200]!r}" for what in of_line(line, rows)}
        said: dict[tuple[str, int], object] = {}
        for row in rows:
            told = (row.kind, row.text, row.tool_text)
            if row.uuid and said.setdefault((row.uuid, row.block), told) != told:
                found.add(f"an id of two messages: {row.uuid}")
        if len(spoken) >= _ALIKE:
            beginning = tuple(
                (row.kind, row.text, row.tool_text, row.timestamp) for row in spoken[:_ALIKE]
            )
            ids = [row.uuid for row in spoken[:_ALIKE]]
            first = beginnings.setdefault((fixture.root, beginning), ids)
            if first is not ids and (first != ids or None in ids):
                found.add(f"copies that count again: {fixture}, {first}, {ids}")
    return found


def of_line(line: LineRecords, rows: list[Message]) -> Iterator[str]:
    counted = sum(transcript.message_count for transcript in line.of(Transcript))
    aside = sum(transcript.sidechain_count for transcript in line.of(Transcript))
    says = any(row.kind in ("prompt", "text") for row in line.spoken)
    if says and not counted:
        yield "a message that does not count"
    if counted > aside and line.of(Message) and not line.spoken:
        yield "a line of the program that counts"
    for usage in line.of(Usage):
        tokens = usage.input_tokens + usage.output_tokens
        if usage.model is None and tokens and b"model" in line.data.lower():
            yield "tokens without the model that is stated"
    for taken in line.of(Superseded):
        first = taken.first_offset
        if first is None:
            ids = {row.uuid: row.byte_offset for row in reversed(rows)}
            first = ids.get(taken.first_uuid, 0)
        back = [r for r in rows if r.role != "system" and first <= r.byte_offset < line.start]
        if back and back[0].kind not in TYPED:
            yield "taken back from within a turn"


# ------------------------------------------------------------------------------------------------
# Damaged lines.


def accounted_for(fixture: Fixture, parts: list[bytes]) -> tuple[int, int]:
    """Every object of these lines is counted, and every other piece quarantined.

    Returns how many were counted and quarantined.
    """
    lines, start = [], 0
    for part in parts:
        if part or not fixture.is_log:
            lines.append(Line(start, part))
        start += len(part) + 1
    records = fixture.source.parse(fixture.claim, lines)
    for record in records:
        assert_storable(record)
    if not fixture.is_log:
        return 0, 0
    quarantined = [r for r in records if isinstance(r, Issue) and r.quarantined]
    counts = [record.objects for record in records if isinstance(record, LineType)]
    stretches: set[tuple[int, int]] = set()
    notes: set[tuple[int, int]] = set()
    for record in records:
        length = getattr(record, "byte_length", None)
        if length is not None:
            is_note = isinstance(record, Issue) and not record.quarantined
            (notes if is_note else stretches).add((getattr(record, "byte_offset", 0), length))
    found = pieces_of(b"\n".join(parts), stretches, fixture.path, notes)
    assert found == sum(counts) + len(quarantined)
    return sum(counts), len(quarantined)
