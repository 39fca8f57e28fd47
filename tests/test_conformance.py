"""Every source keeps what the store promises, on every golden case.

Syncing again changes nothing; any cut, any order and any size of the pieces end in the same rows;
a rewritten history leaves none of the old; and nothing is written where agents write.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.amounts import times
from tests.faults.damage import FUZZED, Fixture, fixtures
from tests.support.cases import CASES, GROUPS, home_of, homes_of, of_groups
from tests.support.dump import Dump, assert_same, check, dump
from tests.support.pieces import read_in_pieces
from tests.support.writing import assistant, call, in_memory, jsonl, result, user, write_bytes

from assoc_ingest.errors import UsageError
from assoc_ingest.files.walk import Listing, Walk, recognised
from assoc_ingest.records import AgentLine, Message, Record, Superseded, Transcript, Usage
from assoc_ingest.source import LOG, Claim, Line, Recognition, Source
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.reader import Reader
from assoc_ingest.store.rows import ENTRIES, split
from assoc_ingest.sync.run import SyncOptions, sync

Fresh = Callable[[], Path]
T = TypeVar("T")


def full(homes: list[Path], fresh: Fresh) -> Dump:
    """Return what one sync from scratch gives."""
    database = fresh()
    sync(database, homes)
    return dump(database)


_whole: dict[str, Dump] = {}


def whole(group: str, homes: list[Path], fresh: Fresh) -> Dump:
    """Return what one sync of the homes of a group gives, which is made once."""
    if group not in _whole:
        _whole[group] = full(homes, fresh)
    return _whole[group]


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


@pytest.mark.parametrize("group", GROUPS)
def test_syncing_twice_changes_nothing(group: str, fresh: Fresh, place: Path) -> None:
    homes, database = homes_of(group, place), fresh()
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


@pytest.mark.parametrize("case", CASES)
def test_no_other_source_is_as_sure_of_a_home(case: str, place: Path) -> None:
    """Which source reads a home does not depend on which sources there are."""
    home, own = home_of(case, place), SOURCES[case.partition("/")[0]]
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


@of_groups
def test_what_reads_a_file_is_gone_with_it(group: str, fresh: Fresh, place: Path) -> None:
    """No collector of cycles runs meanwhile: a reader in a cycle would keep all of its records."""
    homes = homes_of(group, place)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        sync(fresh(), homes)
        gc.collect()
        kept = {type(found).__name__ for found in gc.garbage if isinstance(found, Reader | Message)}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert kept == set()


@of_groups
@pytest.mark.parametrize(
    ("chunk", "batch"), [(3, 300), (150, 3000), (1, 1), (1000, 20000)][: times(10)]
)
def test_the_size_of_the_pieces_does_not_matter(
    group: str, chunk: int, batch: int, fresh: Fresh, place: Path
) -> None:
    homes, database = homes_of(group, place), fresh()
    with read_in_pieces(chunk, batch):
        sync(database, homes)
    check(database, *homes)
    assert_same(dump(database), whole(group, homes, fresh))


@pytest.mark.parametrize("group", GROUPS)
def test_entries_of_lists_stand_in_documents_only(group: str, place: Path) -> None:
    """What a log states comes in pieces: none of them says that something else is gone."""
    homes = homes_of(group, place)
    for root in chain.from_iterable(recognised(home, SOURCES) for home in homes):
        for path in files_of(root.path):
            claim = root.source.claim(path.relative_to(root.path).parts)
            if claim is None or root.source.shape(claim) != LOG:
                continue
            lines = [Line(0, line) for line in path.read_bytes().split(b"\n")]
            records = [r for r in root.source.parse(claim, lines) if type(r) in ENTRIES]
            assert split(records) == ([], records), path


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


def nth_logs(homes: list[Path], position: int) -> list[Path]:
    """Return a log of each home that has so many, the largest at position 0."""
    return [log for home in homes for log in logs_of(home)[position : position + 1]]


@of_groups
def test_a_log_may_be_cut_at_any_line(group: str, fresh: Fresh, place: Path) -> None:
    homes = homes_of(group, place)
    expected = whole(group, homes, fresh)
    every = [log for home in homes for log in logs_of(home)]
    for logs in (*(nth_logs(homes, position) for position in range(times(10))), every):
        if logs:
            database = fresh()
            grow({log: some_cuts(log, times(24, 8)) for log in logs}, database, homes)
            check(database, *homes)
            assert_same(dump(database), expected)


@of_groups
def test_a_log_may_be_empty_at_first(group: str, place: Path, fresh: Fresh) -> None:
    """What its lines say of it, such as whose it is, is then known only later."""
    homes, grown = homes_of(group, place), fresh()
    contents = {log: log.read_bytes() for home in homes for log in logs_of(home)}
    for log in contents:
        log.write_bytes(b"")
    sync(grown, homes)
    for log, content in contents.items():
        log.write_bytes(content)
    sync(grown, homes)
    assert_same(dump(grown), whole(group, homes, fresh))


@given(st.data())
def test_a_log_may_be_cut_anywhere(template: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=in_memory()) as directory:
        home = home_of(data.draw(st.sampled_from(CASES)), Path(directory))
        logs = logs_of(home)
        if not logs:
            return
        path = data.draw(st.sampled_from(logs))
        sizes = data.draw(st.lists(st.integers(0, path.stat().st_size), min_size=1, max_size=4))
        databases = [Path(shutil.copy(template, f"{directory}/{name}.db")) for name in "ab"]
        grow({path: sorted(sizes)}, databases[0], [home])
        sync(databases[1], [home])
        assert_same(dump(databases[0]), dump(databases[1]))


@pytest.mark.slow
def test_a_file_may_be_written_byte_by_byte(fresh: Fresh, place: Path) -> None:
    glued = [user("gl\u00fced \u4e2d\u6587 \U0001f600", "u4"), user("to this", "u5")]
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "also"}
    data = (
        jsonl(user("a prompt", "u1"), assistant([call("toolu_1", command="ls")], "a1"))
        + jsonl(queued, user([result("toolu_1", "a.ts")], "u2"), user("also", "u3")).replace(
            b"\n", b"\r\n"
        )
        + b"".join(jsonl(line).strip() for line in glued)
        + b"\n"
        + b"\x00" * 40
        + jsonl(user("after NULs", "u6"))
        + jsonl(user("surrogate", "u7")).replace(b"surrogate", b"\\ud83d \xff \\u0000")
        + b'{"cut off'
        + jsonl(user("behind a stub", "u8"), b"", b"garbage")
        + jsonl(assistant("no line feed", "a2", usage={"output_tokens": 5}))[:-1]
    )
    assert 2800 < len(data) < 3200
    home, database = place / "home", fresh()
    path = write_bytes(home, "projects/-srv-demo/0b7c2f4e-1111-4222-8333-444455556666.jsonl", data)
    sizes = list(range(len(data)))
    if settings.get_current_profile_name() != "thorough":  # where something can end, and a few
        ends = [found.start() for found in re.finditer(rb"[\n\r{}\x00\xff]|\\u|[^\x00-\x7f]", data)]
        sizes = sorted({end + near for end in ends for near in (0, 1)} | set(sizes[::16]))
    if settings.get_current_profile_name() == "few":
        sizes = sizes[::5]
    grow({path: sizes}, database, [home])
    check(database, home)
    assert_same(dump(database), full([home], fresh))


# -- rewritten history ---------------------------------------------------------------------------


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


@of_groups
@pytest.mark.parametrize("turn", range(min(times(10), len(CHANGES))))
def test_a_rewritten_history_leaves_no_old_rows(
    group: str, turn: int, fresh: Fresh, place: Path
) -> None:
    """Each home is changed in another way, and again in another in the next turn."""
    homes, database = homes_of(group, place), fresh()
    sync(database, homes)
    for number, log in enumerate(nth_logs(homes, 0)):
        change = CHANGES[(number + 3 * turn + turn // 2) % len(CHANGES)]
        log.write_bytes(change(log.read_bytes()))
        touch(log)
    sync(database, homes)
    check(database, *homes)
    assert_same(dump(database), full(homes, fresh))


@of_groups
@pytest.mark.parametrize("turn", range(min(times(5, 1), 2)))
def test_a_file_replaced_by_rename_is_read_as_what_it_is(
    group: str, turn: int, fresh: Fresh, place: Path
) -> None:
    """What takes the place of a file grew from it in every other home, and is another elsewhere."""
    homes, database = homes_of(group, place), fresh()
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


# -- order ---------------------------------------------------------------------------------------


@of_groups
@pytest.mark.parametrize("is_reversed", [True, False], ids=["last-first", "first-first"])
def test_the_order_in_which_files_come_does_not_matter(
    group: str, is_reversed: bool, fresh: Fresh, place: Path
) -> None:
    """A part of a home does not tell whose it is, so the source is given."""
    options = SyncOptions(source=group.rpartition("-")[0])
    homes = [
        home
        for home in homes_of(group, place)
        if [root.source.name for root in recognised(home, SOURCES)] == [options.source]
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
        if ready := [home for home in homes if is_home(home, options.source)]:
            sync(database, ready, options)
    check(database, *homes)
    assert_same(dump(database), expected)


# -- meaning -------------------------------------------------------------------------------------

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


def contradictions(logs: list[Fixture]) -> set[str]:
    """Return what cannot be meant in the records of the logs of one source."""
    found: set[str] = set()
    beginnings: dict[tuple[Path, object], list[str | None]] = {}
    for fixture in logs:
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


def logs_in(name: str) -> list[Fixture]:
    return [one for one in fixtures(name) if one.is_log and one.source.name == name]


@pytest.mark.parametrize("name", FUZZED)
def test_what_a_source_says_is_what_can_be_meant(name: str) -> None:
    assert contradictions(logs_in(name)) == set()


class Wrong(Source):
    """A source that misunderstands its format."""

    def __init__(self, source: Source, change: Callable[[Record, Claim, int], Record]) -> None:
        self._source, self._change = source, change

    def classify(self, claim: Claim, lines: Iterable[bytes]) -> Claim:
        return self._source.classify(claim, lines)

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Mapping[str, Any]
    ) -> tuple[list[Record], Mapping[str, Any]]:
        lines = list(lines)
        records, context = self._source.read(claim, lines, context)
        return [self._change(record, claim, lines[0].start) for record in records], context


def a_turn_too_far(record: Record, claim: Claim, start: int) -> Record:
    """A rewind that marks the answer before it, which was kept."""
    if isinstance(record, Superseded):
        return record._replace(first_offset=(record.first_offset or 0) + 1, first_uuid=None)
    return record


def no_model(record: Record, claim: Claim, start: int) -> Record:
    return record._replace(model=None) if isinstance(record, Usage) else record


def all_by_the_program(record: Record, claim: Claim, start: int) -> Record:
    return record._replace(role="system") if isinstance(record, Message) else record


def none_counts(record: Record, claim: Claim, start: int) -> Record:
    return record._replace(message_count=0) if isinstance(record, Transcript) else record


def one_id(record: Record, claim: Claim, start: int) -> Record:
    return record._replace(uuid="u1") if isinstance(record, Message) else record


def own_ids(record: Record, claim: Claim, start: int) -> Record:
    """Each file has ids of its own, and so has each copy."""
    if isinstance(record, Message):
        return record._replace(uuid=f"{claim.session_key}:{record.uuid or start}")
    return record


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("gemini", a_turn_too_far, "taken back from within a turn"),
        ("codex", a_turn_too_far, "taken back from within a turn"),
        ("claude", no_model, "tokens without the model that is stated"),
        ("pi", no_model, "tokens without the model that is stated"),
        ("cortex", all_by_the_program, "a line of the program that counts"),
        ("copilot", none_counts, "a message that does not count"),
        ("opencode", one_id, "an id of two messages"),
        ("claude", own_ids, "copies that count again"),
        ("pi", own_ids, "copies that count again"),
    ],
)
def test_a_source_that_misunderstands_its_format_is_found(
    name: str, change: Callable[[Record, Claim, int], Record], told: str
) -> None:
    """Planted: each mistake that a contributor can make is named."""
    logs = [one._replace(source=Wrong(one.source, change)) for one in logs_in(name)]
    assert any(what.startswith(told) for what in contradictions(logs))
