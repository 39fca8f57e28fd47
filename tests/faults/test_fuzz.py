"""Whatever the bytes of a file are, nothing raises, and every byte is accounted for.

Each test runs for `FUZZ_SECONDS`, which is 1 unless the environment says otherwise. A failure
prints the smallest input that shows it and its seed; `FUZZ_SEED` begins with that one.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.faults.amounts import FUZZ_SECONDS
from tests.faults.damage import FUZZED, IN_FILES, fixtures
from tests.support.cases import CASES, home_of
from tests.support.cases import SOURCES as IN
from tests.support.strategies import lines as transcript_lines
from tests.support.writing import in_memory

from assoc_ingest.errors import UsageError
from assoc_ingest.files import tail
from assoc_ingest.records import Issue
from assoc_ingest.source import Line
from assoc_ingest.sources.reader import complete_prefix, pieces
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.damage import Fixture, damaged
from assoc_ingest.testing.dump import assert_same, check, dump
from assoc_ingest.testing.promises import accounted_for, read_in_pieces

LEAST = 3  # portions, on a machine that is busy with something else
FIRST_SEED = int(os.environ.get("FUZZ_SEED", "0"))


def fuzz(strategy: st.SearchStrategy[Any], holds: Callable[[Any], None], at_once: int = 100) -> int:
    """Try examples until the time is over; return how many there were.

    They come in portions of `at_once`, each with a seed of its own, which an error names.
    """
    end = time.monotonic() + FUZZ_SECONDS
    for number in itertools.count():
        if number >= LEAST and time.monotonic() > end:
            return number * at_once

        @seed(FIRST_SEED + number)
        @settings(
            max_examples=at_once,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )
        @given(example=strategy)
        def portion(example: object) -> None:
            holds(example)

        try:
            portion()
        except BaseException as error:
            error.add_note(f"again: FUZZ_SEED={FIRST_SEED + number}")
            raise
    raise AssertionError("seeds have no end")


# -- the reader of lines -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_reader_of_lines_never_loses_its_place() -> None:
    """A file that grows by leaps, read in chunks of any size, gives what one read gives."""
    seen: Counter[str] = Counter()
    scrap = transcript_lines | st.binary(max_size=60)
    content = st.lists(scrap, max_size=8).map(b"\n".join)
    with tempfile.TemporaryFile(dir=in_memory()) as file:

        def holds(example: tuple[bytes, list[int], int]) -> None:
            data, sizes, chunk = example
            os.ftruncate(file.fileno(), 0)
            grown, offset = [], 0
            for size in [*sorted(size for size in sizes if size < len(data)), len(data)]:
                os.pwrite(file.fileno(), data[:size], 0)
                offset, found = read_from(file.fileno(), offset, size, chunk, data)
                grown += found
                seen["torn"] += offset < size
                assert complete_prefix(data[offset:size].split(b"\n")[-1]) == 0
                assert b"\n" not in data[offset:size]
            end, at_once = read_from(file.fileno(), 0, len(data), len(data) + 1, data)
            assert end == offset
            assert pieces_in(grown) == pieces_in(at_once)
            seen["lines"] += len(at_once)

        example = st.tuples(content, st.lists(st.integers(0, 900), max_size=4), st.integers(1, 200))
        assert fuzz(example, holds) >= 100
    assert seen["torn"] > 20
    assert seen["lines"] > 100


def read_from(
    descriptor: int, offset: int, size: int, chunk: int, data: bytes
) -> tuple[int, list[Line]]:
    """Read on from an offset; return the next one, and the lines between the two."""
    before, tail.CHUNK = tail.CHUNK, chunk
    lines: list[Line] = []
    try:
        for stretch in tail.stretches(descriptor, offset, size, complete_prefix):
            assert stretch.start == offset, "a gap or an overlap"
            assert stretch.data == data[offset : offset + len(stretch.data)]
            lines += stretch.lines
            offset += len(stretch.data)
    finally:
        tail.CHUNK = before
    return offset, lines


def pieces_in(lines: list[Line]) -> list[object]:
    return [piece for line in lines for piece in pieces(line, lambda value: True)]


# -- parsers -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZED)
def test_no_line_makes_a_parser_fail_or_is_lost(name: str) -> None:
    """Every object is counted, every other piece quarantined, and SQLite can take all of it."""
    seen: Counter[str] = Counter()

    def holds(example: tuple[Fixture, list[bytes]]) -> None:
        fixture, parts = example
        counted, quarantined = accounted_for(fixture, parts)
        seen["quarantined"] += quarantined
        seen["counted"] += counted
        seen["documents"] += not fixture.is_log

    def some_lines(fixture: Fixture) -> st.SearchStrategy[tuple[Fixture, list[bytes]]]:
        line = damaged(fixture.lines).map(lambda data: data.replace(b"\n", b" "))
        parts = st.lists(line, min_size=1, max_size=4 if fixture.is_log else 1)
        return st.tuples(st.just(fixture), parts)

    assert fuzz(st.sampled_from(fixtures(name)).flatmap(some_lines), holds) >= 100
    logs = any(fixture.is_log for fixture in fixtures(name))
    assert not logs or (seen["quarantined"] > 20 and seen["counted"] > 20)
    assert seen["documents"] > 3 or all(fixture.is_log for fixture in fixtures(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_FILES)
def test_no_file_makes_a_sync_fail_or_is_half_read(name: str, template: Path, place: Path) -> None:
    """A file of damaged lines has the same rows, read at once and in pieces as it grows."""
    seen: Counter[str] = Counter()

    def holds(example: tuple[Fixture, bytes, float, int]) -> None:
        fixture, data, cut, chunk = example
        with tempfile.TemporaryDirectory(dir=place) as directory:
            at = Path(directory)
            home = Path(shutil.copytree(fixture.root, at / "home"))
            whole, grown = (Path(shutil.copy(template, at / f"{db}.db")) for db in ("a", "b"))
            file = home / fixture.path
            file.write_bytes(data)
            with suppress(UsageError):  # what shows whose home it is may be what is damaged
                sync(whole, [home])
                check(whole, home)
                seen["issues"] += len(dump(whole)["issues"])
                file.write_bytes(data[: int(len(data) * cut)])
                chunk = max(chunk, len(data) // 40)
                with read_in_pieces(chunk, batch=chunk):
                    with suppress(UsageError):
                        sync(grown, [home])
                    file.write_bytes(data)
                    os.utime(file, ns=(1, 2 * 10**18))
                    sync(grown, [home])
                check(grown, home)
                if fixture.is_log:  # of tasks and inboxes, what they once said is kept
                    assert_same(dump(grown), dump(whole))
                seen["files"] += 1

    def some_content(fixture: Fixture) -> st.SearchStrategy[tuple[Fixture, bytes, float, int]]:
        parts = st.lists(damaged(fixture.lines), min_size=1, max_size=5 if fixture.is_log else 1)
        content = parts.map(b"\n".join)
        return st.tuples(st.just(fixture), content, st.floats(0, 1), st.integers(1, 3000))

    assert fuzz(st.sampled_from(fixtures(name)).flatmap(some_content), holds, at_once=10) >= 20
    assert seen["files"] >= 10
    assert seen["issues"] > 0


STORES = [case for case in CASES if [*IN.glob(f"{case}/home/**/*.sql")]] + ["codex/packed-rollouts"]
_STORED = (".sqlite", ".db", ".vscdb", ".zst")
_bytes = st.sampled_from(
    [b"", b"\0", b"\xff", b"\r\n", b"SQLite format 3\0", b"\0" * 4096, b"\xff" * 64]
)


@pytest.mark.slow
@pytest.mark.parametrize("case", STORES)
def test_bytes_that_are_changed_anywhere_in_a_store_lose_nothing(
    case: str, template: Path, place: Path
) -> None:
    """In a database or a packed file: no exception, an issue with its place, old rows kept."""
    seen: Counter[str] = Counter()
    home = home_of(case, place)
    before = Path(shutil.copy(template, place / "before.db"))
    sync(before, [home])
    kept = dump(before)["messages"]
    files = [path for path in home.rglob("*") if path.suffix in _STORED]
    paths = {str(path.relative_to(home)): path.read_bytes() for path in files}

    def holds(example: tuple[str, list[tuple[float, bytes]], float]) -> None:
        name, changes, end = example
        whole, file = paths[name], home / name
        data = whole[: int(len(whole) * end)]
        for part, new in changes:
            at = int(len(data) * part)
            data = data[:at] + new + data[at + len(new) :]
        database = Path(shutil.copy(before, place / "one.db"))
        try:
            file.write_bytes(data)
            os.utime(file, ns=(1, 2 * 10**18))
            with suppress(UsageError):  # what shows whose home it is may be what is damaged
                sync(database, [home])
        finally:
            file.write_bytes(whole)
        check(database)
        shown = dump(database)
        issues = [i for i in shown["issues"] if name in i["file_id"] and i not in known]
        if issues:
            seen["issues"] += 1
            # If SQLite can read all of it, entries that state something else now are read anew.
            is_unread = any(i["file_id"].endswith(name) for i in issues)
            anew = (
                set() if is_unread else {f["path"] for f in shown["files"] if f not in files_before}
            )
            old = rows_beside(anew, kept)
            assert old <= rows_beside(anew, shown["messages"])
            seen["kept"] += len(old)
        seen["files"] += 1

    known, files_before = dump(before)["issues"], dump(before)["files"]
    change = st.tuples(st.floats(0, 1, exclude_max=True), _bytes)
    example = st.tuples(
        st.sampled_from(sorted(paths)),
        st.lists(change, min_size=1, max_size=4),
        st.sampled_from([1.0, 1.0, 1.0, 0.7, 0.1]),
    )
    assert fuzz(example, holds, at_once=10) >= 20
    assert seen["issues"] > 5
    assert seen["kept"] > 5


def rows_beside(anew: set[str], messages: list[dict[str, Any]]) -> set[str]:
    """Return the rows of other entries; what they are copies of may have moved in one read anew."""
    rows = [row for row in messages if row["file_id"] not in anew]
    for number, row in enumerate(rows):
        if str(row["copy_of"]).rsplit(":", 2)[0] in anew:
            rows[number] = {**row, "copy_of": None}
    return {json.dumps(row, sort_keys=True) for row in rows}


# -- what was found ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUZZED)
@pytest.mark.parametrize("odd", [b"[]", b"{}", b"[1]"])
def test_a_type_that_is_a_list_behind_a_stub_is_no_known_line(name: str, odd: bytes) -> None:
    """Found by fuzzing: a list cannot be looked up in a set, and ended the whole sync."""
    line = b'{"cut{"type":' + odd + b',"timestamp":1,"content":"","sessionId":"s","uuid":"u"}'
    logs = [fixture for fixture in fixtures(name) if fixture.is_log]
    assert logs
    for fixture in logs:
        assert (
            fixture.source.classify(fixture.claim, [line, line[5:]]).source == fixture.claim.source
        )
        records = fixture.source.parse(fixture.claim, [Line(0, line)])
        assert [r.byte_length for r in records if isinstance(r, Issue)] == [len(line)]
