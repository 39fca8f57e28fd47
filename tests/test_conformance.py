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
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.amounts import times
from tests.support.cases import CASES, home_of
from tests.support.dump import Dump, assert_same, check, dump
from tests.support.pieces import read_in_pieces
from tests.support.writing import assistant, call, in_memory, jsonl, result, user, write_bytes

from assoc_ingest.errors import UsageError
from assoc_ingest.files.walk import recognised
from assoc_ingest.records import Message
from assoc_ingest.source import LOG, Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.reader import Reader
from assoc_ingest.store.upserts import ENTRIES, split
from assoc_ingest.sync.run import SyncOptions, sync

Fresh = Callable[[], Path]


def full(home: Path, fresh: Fresh) -> Dump:
    """Return what one sync from scratch gives."""
    database = fresh()
    sync(database, [home])
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


def touch(path: Path) -> None:
    """Give a changed file a time that no sync has seen."""
    later = path.stat().st_mtime_ns + 1_000_000_007
    os.utime(path, ns=(later, later))


def tree(home: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in files_of(home)
    }


@pytest.mark.parametrize("case", CASES)
def test_syncing_twice_changes_nothing(case: str, fresh: Fresh, place: Path) -> None:
    home, database = home_of(case, place), fresh()
    lying = tree(home)
    first = sync(database, [home])
    once = dump(database)
    second = sync(database, [home])
    assert (second.files_read, second.bytes_read, second.rows) == (0, 0, 0)
    assert second.files_seen == first.files_seen
    assert_same(once, dump(database))
    assert tree(home) == lying
    for path in files_of(home):
        touch(path)
    assert sync(database, [home]).rows == 0
    assert sync(database, [home], SyncOptions(full=True)).rows == 0
    assert_same(once, dump(database))
    check(database, home)


@pytest.mark.parametrize("case", CASES)
def test_what_reads_a_file_is_gone_with_it(case: str, fresh: Fresh, place: Path) -> None:
    """No collector of cycles runs meanwhile: a reader in a cycle would keep all of its records."""
    home = home_of(case, place)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        sync(fresh(), [home])
        gc.collect()
        kept = {type(found).__name__ for found in gc.garbage if isinstance(found, Reader | Message)}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert kept == set()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chunk", [1, 150, 1000])
def test_the_size_of_the_pieces_does_not_matter(
    case: str, chunk: int, fresh: Fresh, place: Path
) -> None:
    home, database = home_of(case, place), fresh()
    with read_in_pieces(chunk, batch=chunk):
        sync(database, [home])
    check(database, home)
    assert_same(dump(database), full(home, fresh))


@pytest.mark.parametrize("case", CASES)
def test_entries_of_lists_stand_in_documents_only(case: str, place: Path) -> None:
    """What a log states comes in pieces: none of them says that something else is gone."""
    home = home_of(case, place)
    for root in recognised(home, SOURCES):
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


def grow(path: Path, database: Path, home: Path, sizes: list[int]) -> None:
    """Let a file grow to these sizes, then to its own, with a sync after each."""
    whole = path.read_bytes()
    for size in [*sizes, len(whole)]:
        path.write_bytes(whole[:size])
        touch(path)
        sync(database, [home])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_log_may_be_cut_at_any_line(case: str, fresh: Fresh, place: Path) -> None:
    home, database = home_of(case, place), fresh()
    expected = full(home, fresh)
    for path in logs_of(home)[:4]:
        whole = path.read_bytes()
        sizes = sorted({size for size in cuts(whole) if size <= len(whole)})
        database = fresh()
        grow(path, database, home, sizes[:: max(1, len(sizes) // times(24))])
        check(database, home)
        assert_same(dump(database), expected)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_log_may_be_empty_at_first(case: str, place: Path, fresh: Fresh) -> None:
    """What its lines say of it, such as whose it is, is then known only later."""
    home, grown, whole = home_of(case, place), fresh(), fresh()
    contents = {log: log.read_bytes() for log in logs_of(home)}
    for log in contents:
        log.write_bytes(b"")
    sync(grown, [home])
    for log, content in contents.items():
        log.write_bytes(content)
    sync(grown, [home])
    sync(whole, [home])
    assert_same(dump(grown), dump(whole))


@pytest.mark.slow
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
        grow(path, databases[0], home, sorted(sizes))
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
    if settings.get_current_profile_name() == "brief":
        sizes = sizes[::5]
    grow(path, database, home, sizes)
    check(database, home)
    assert_same(dump(database), full(home, fresh))


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


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "change",
    [
        without_a_middle_line,
        with_another_middle,
        the_other_way_round,
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data[: len(data) // 3] + b"\n" + data,
    ],
    ids=["line-removed", "changed", "reversed", "truncated", "emptied", "grown-before"],
)
def test_a_rewritten_history_leaves_no_old_rows(
    case: str, change: Callable[[bytes], bytes], fresh: Fresh, place: Path
) -> None:
    home = home_of(case, place)
    logs = logs_of(home)[:1]
    if not logs:
        pytest.skip("no log in this case")
    database = fresh()
    sync(database, [home])
    logs[0].write_bytes(change(logs[0].read_bytes()))
    touch(logs[0])
    sync(database, [home])
    check(database, home)
    assert_same(dump(database), full(home, fresh))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_same", [True, False], ids=["same-prefix", "other-content"])
def test_a_file_replaced_by_rename_is_read_as_what_it_is(
    case: str, is_same: bool, fresh: Fresh, place: Path
) -> None:
    home = home_of(case, place)
    logs = logs_of(home)[:1]
    if not logs:
        pytest.skip("no log in this case")
    whole = logs[0].read_bytes()
    half = whole[: whole.find(b"\n", len(whole) // 2) + 1]
    logs[0].write_bytes(half)
    database = fresh()
    sync(database, [home])
    other = logs[0].with_suffix(".tmp")
    other.write_bytes(whole if is_same else whole[len(half) :] + half)
    other.replace(logs[0])
    touch(logs[0])
    sync(database, [home])
    check(database, home)
    assert_same(dump(database), full(home, fresh))


# -- order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_reversed", [True, False], ids=["last-first", "first-first"])
def test_the_order_in_which_files_come_does_not_matter(
    case: str, is_reversed: bool, fresh: Fresh, place: Path
) -> None:
    whole = home_of(case, place)
    kinds = {root.source.name for root in recognised(whole, SOURCES)}
    if len(kinds) > 1:
        pytest.skip("of which source a part of it is cannot be told")
    options = SyncOptions(source=kinds.pop())
    expected = full(whole, fresh)
    hidden = whole.rename(place / "hidden")
    database, home = fresh(), place / "home"
    for path in sorted(files_of(hidden), reverse=is_reversed):
        target = home / path.relative_to(hidden)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        with suppress(UsageError):  # not yet a home
            sync(database, [home], options)
    check(database, home)
    assert_same(dump(database), expected)
