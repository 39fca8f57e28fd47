"""Every source keeps what the store promises, on every golden case.

Syncing again changes nothing; any cut, any order and any size of the pieces end in the same rows;
a rewritten history leaves none of the old; and nothing is written where agents write.
"""

from __future__ import annotations

import gc
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.amounts import times
from tests.faults.damage import FUZZED, fixtures
from tests.support.cases import CASES, GROUPS, home_of, homes_of, of_groups
from tests.support.writing import assistant, call, in_memory, jsonl, result, user, write_bytes

from assoc_ingest.records import Message, Record, Superseded, Transcript, Usage
from assoc_ingest.source import Claim, Line, Source
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.reader import Reader
from assoc_ingest.sync.run import sync
from assoc_ingest.testing import promises
from assoc_ingest.testing.damage import Fixture
from assoc_ingest.testing.dump import Dump, assert_same, check, dump
from assoc_ingest.testing.promises import (
    CHANGES,
    contradictions,
    full,
    grow,
    logs_of,
)

Fresh = Callable[[], Path]
T = TypeVar("T")


_whole: dict[str, Dump] = {}


def whole(group: str, homes: list[Path], fresh: Fresh) -> Dump:
    """Return what one sync of the homes of a group gives, which is made once."""
    if group not in _whole:
        _whole[group] = full(homes, fresh)
    return _whole[group]


@pytest.mark.parametrize("group", GROUPS)
def test_syncing_twice_changes_nothing(group: str, fresh: Fresh, place: Path) -> None:
    promises.read_twice(homes_of(group, place), fresh)


@pytest.mark.parametrize("case", CASES)
def test_no_other_source_is_as_sure_of_a_home(case: str, place: Path) -> None:
    promises.recognised_by_one(home_of(case, place), SOURCES[case.partition("/")[0]])


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
    ("chunk", "batch"), [(7, 700), (150, 3000), (1, 1), (1000, 20000)][: times(10)]
)
def test_the_size_of_the_pieces_does_not_matter(
    group: str, chunk: int, batch: int, fresh: Fresh, place: Path
) -> None:
    homes = homes_of(group, place)
    promises.read_in_any_pieces(homes, fresh, whole(group, homes, fresh), chunk, batch)


@pytest.mark.parametrize("group", GROUPS)
def test_entries_of_lists_stand_in_documents_only(group: str, place: Path) -> None:
    promises.entries_in_documents(homes_of(group, place))


@of_groups
def test_a_log_may_be_cut_at_any_line(group: str, fresh: Fresh, place: Path) -> None:
    homes = homes_of(group, place)
    expected = whole(group, homes, fresh)
    promises.cut_at_lines(homes, fresh, expected, logs=times(10), amount=times(24, 8))


@of_groups
def test_a_log_may_be_empty_at_first(group: str, place: Path, fresh: Fresh) -> None:
    homes = homes_of(group, place)
    promises.empty_at_first(homes, fresh, whole(group, homes, fresh))


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


@of_groups
@pytest.mark.parametrize("turn", range(min(times(10), len(CHANGES))))
def test_a_rewritten_history_leaves_no_old_rows(
    group: str, turn: int, fresh: Fresh, place: Path
) -> None:
    promises.rewritten(homes_of(group, place), fresh, turn)


@of_groups
@pytest.mark.parametrize("turn", range(min(times(5, 1), 2)))
def test_a_file_replaced_by_rename_is_read_as_what_it_is(
    group: str, turn: int, fresh: Fresh, place: Path
) -> None:
    promises.replaced_by_rename(homes_of(group, place), fresh, turn)


# -- order ---------------------------------------------------------------------------------------


@of_groups
@pytest.mark.parametrize("is_reversed", [True, False], ids=["last-first", "first-first"])
def test_the_order_in_which_files_come_does_not_matter(
    group: str, is_reversed: bool, fresh: Fresh, place: Path
) -> None:
    source = group.rpartition("-")[0]
    promises.in_any_order(homes_of(group, place), fresh, source, is_reversed=is_reversed)


# -- meaning -------------------------------------------------------------------------------------


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
