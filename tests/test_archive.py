"""The archive of a file is its bytes, whatever the frames are; growth does not shatter it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reading import index
from tests.support.rows import Rows
from tests.support.writing import SESSION, user, write

from assoc_ingest.errors import ArchiveError, DatabaseError
from assoc_ingest.files import archive
from assoc_ingest.files.archive import Compressor, LineIndex, append, clear, merge, read
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import connect

KIB = 1024
TABLE = (
    'create table archive (id integer primary key, file_id, start, "end", codec, data, line_count)'
)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    with index(tmp_path / "index.db") as rows:
        yield rows


@pytest.fixture
def file(rows: Rows) -> int:
    return rows.file("projects/-srv-demo/x.jsonl")


def borders(connection: sqlite3.Connection, file: int) -> list[tuple[int, int]]:
    return connection.execute(
        'select start, "end" from archive where file_id = ? order by start', (file,)
    ).fetchall()


def whole(rows: Rows, file: int, start: int = 0, end: int | None = None) -> bytes:
    return b"".join(read(rows.connection, file, start, end))


def lines(count: int, size: int) -> bytes:
    return b"".join(b"%06d" % number + b"x" * (size - 7) + b"\n" for number in range(count))


def test_what_was_appended_can_be_read(rows: Rows, file: int) -> None:
    data = lines(20, 100 * KIB)
    append(rows.connection, file, Compressor().frames(0, data))
    assert whole(rows, file) == data


def test_frames_end_at_line_ends_and_are_about_1_mib(rows: Rows, file: int) -> None:
    data = lines(80_000, 100)
    append(rows.connection, file, Compressor().frames(0, data))
    found = borders(rows.connection, file)
    assert len(found) > 5
    assert all(data[end - 1 : end] == b"\n" for _, end in found)
    assert all(end - start <= 1152 * KIB for start, end in found)
    assert found[0][0] == 0
    assert found[-1][1] == len(data)


def test_a_line_longer_than_a_frame_is_kept_too(rows: Rows, file: int) -> None:
    data = b"x" * (3 * 1024 * KIB) + b"\nshort\n"
    append(rows.connection, file, Compressor().frames(0, data))
    assert whole(rows, file) == data


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (0, None), (255, 1_700_000), (300_000, 2_300_001), (3 * 10**6, None)]
)
def test_any_part_can_be_read(rows: Rows, file: int, start: int, end: int | None) -> None:
    data = lines(60_000, 50)
    append(rows.connection, file, Compressor().frames(0, data))
    assert whole(rows, file, start, end) == data[start:end]


@pytest.mark.slow
@given(data=st.data())
def test_parts_are_those_of_the_bytes(template: Path, data: st.DataObject) -> None:
    content = lines(25_000, 100)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.none() | st.integers(start, len(content)))
    connection = sqlite3.connect(":memory:")
    connection.execute(TABLE)
    append(connection, 1, Compressor().frames(0, content))
    assert b"".join(read(connection, 1, start, end)) == content[start:end]
    connection.close()


def test_small_last_frames_are_merged(rows: Rows, file: int) -> None:
    data = lines(1000, 300)
    step = 1500
    for start in range(0, len(data), step):
        append(rows.connection, file, Compressor().frames(start, data[start : start + step]))
        if start:
            merge(rows.connection, file, start)
    assert whole(rows, file) == data
    assert len(borders(rows.connection, file)) < 6


def test_a_large_last_frame_is_left_alone(rows: Rows, file: int) -> None:
    data = lines(2000, 100)
    append(rows.connection, file, Compressor().frames(0, data))
    before = borders(rows.connection, file)
    append(rows.connection, file, Compressor().frames(len(data), b"more\n"))
    merge(rows.connection, file, len(data))
    assert borders(rows.connection, file)[: len(before)] == before
    assert whole(rows, file) == data + b"more\n"


def test_a_damaged_last_frame_is_left_as_it_is(rows: Rows, file: int) -> None:
    append(rows.connection, file, Compressor().frames(0, b"one\n"))
    rows.connection.execute("update archive set data = x'00'")
    append(rows.connection, file, Compressor().frames(4, b"two\n"))
    merge(rows.connection, file, 4)
    assert borders(rows.connection, file) == [(0, 4), (4, 8)]
    assert list(archive.sound_pieces(rows.connection, file)) == [(4, b"two\n")]


def test_clearing_removes_one_file_only(rows: Rows, file: int) -> None:
    other = rows.file("projects/-srv-demo/y.jsonl")
    for each in (file, other):
        append(rows.connection, each, Compressor().frames(0, b"kept\n"))
    clear(rows.connection, file)
    assert whole(rows, file) == b""
    assert whole(rows, other) == b"kept\n"


def test_a_damaged_frame_is_told(rows: Rows, file: int) -> None:
    append(rows.connection, file, Compressor().frames(0, b"hello\n"))
    rows.connection.execute('update archive set "end" = "end" + 1')
    with pytest.raises(DatabaseError, match="damaged at byte 0"):
        whole(rows, file)


@pytest.mark.slow
def test_a_file_that_grows_line_by_line_stays_in_few_frames(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, database = place / "home", fresh()
    path = f"projects/-srv-demo/{SESSION}.jsonl"
    told = [user(f"line {number} " + "x" * 500, f"u{number}") for number in range(60)]
    for count in range(1, len(told) + 1):
        write(home, path, *told[:count])
        sync(database, [home])
    connection = connect(database)
    (frames,) = connection.execute("select count(*) from archive").fetchone()
    kept = b"".join(archive.read(connection, 1))
    connection.close()
    assert kept == (home / path).read_bytes()
    assert frames == 1


# -- gaps ------------------------------------------------------------------------------------------


def test_a_frame_that_changed_anywhere_is_none(rows: Rows, file: int) -> None:
    """Whatever a changed byte makes of it, the checksum at its end does not fit."""
    data = lines(40, 60)
    (frame,) = Compressor().frames(0, data)
    assert archive.unpacked(frame, file) == data
    refused = 0
    for place in range(len(frame.data)):
        changed = bytearray(frame.data)
        changed[place] ^= 0x10
        try:  # a few bits mean nothing
            assert archive.unpacked(frame._replace(data=bytes(changed)), file) == data
        except ArchiveError:
            refused += 1
    assert refused > 0.9 * len(frame.data)


def test_around_a_gap_everything_stays_where_it_was(rows: Rows, file: int) -> None:
    data = lines(30, 100 * KIB)
    frames = Compressor().frames(0, data)
    assert len(frames) == 3
    size = len(data) + 50
    append(rows.connection, file, [frames[0], frames[1]._replace(data=b"\0"), frames[2]])
    (low, high), end = frames[1][:2], frames[2].end
    assert archive.gaps(rows.connection, file, size) == [(low, high), (end, size)]
    around = b"".join(archive.read_around_gaps(rows.connection, file, size))
    blank = b" " * (high - low - 1) + b"\n"
    assert around == data[:low] + blank + data[high:] + b" " * 49 + b"\n"
    assert archive.gaps(rows.connection, file, low) == []
    with pytest.raises(ArchiveError):
        list(archive.read_around_gaps(rows.connection, file, 1 << 60))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_of_a_frame_that_is_cut_the_whole_lines_are_kept(
    rows: Rows, file: int, share: float
) -> None:
    chance = random.Random(2)
    data = b"".join(chance.randbytes(200).hex().encode() + b"\n" for _ in range(2500))
    (frame,) = Compressor().frames(700, data)
    kept = archive.beginning(700, frame.end, frame.data[: int(len(frame.data) * share)])
    append(rows.connection, file, kept)
    there = whole(rows, file)
    assert data.startswith(there)
    assert there.endswith(b"\n") or not there
    assert len(there) > (share - 0.35) * len(data)
    assert archive.beginning(700, frame.end, b"no frame") == []


@given(
    st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b""))),
    st.binary(max_size=5).map(lambda end: end.replace(b"\n", b"")),
    st.sampled_from(["none", "some", "all"]),
    st.randoms(use_true_random=False),
)
def test_every_line_is_found_by_its_number_and_by_its_place(
    text: list[bytes], end: bytes, uncounted: str, order: random.Random
) -> None:
    data = b"".join(line + b"\n" for line in text) + end
    connection = sqlite3.connect(":memory:")
    connection.execute(TABLE)
    cuts = sorted({0, len(data), *(order.randrange(len(data) + 1) for _ in range(5))})
    for start, border in pairwise(cuts):
        append(connection, 1, Compressor().frames(start, data[start:border]))
    if uncounted != "none":  # as frames of older versions are
        which = "" if uncounted == "all" else " where id % 2"
        connection.execute(f"update archive set line_count = null{which}")
    starts = [0, *(place + 1 for place, byte in enumerate(data) if byte == 10)]
    starts = [start for start in starts if start < len(data)]
    known = LineIndex(connection, 1)
    for number in order.sample(range(1, len(starts) + 3), len(starts) + 2):
        expected = starts[number - 1] if number <= len(starts) else None
        assert known.start(number) == expected
        if expected is not None:
            assert known.number(expected) == number
    assert known.count() == len(starts)
    assert known.number(len(data) + 1) is None
    connection.close()


def test_a_line_is_found_without_reading_what_stands_before_it(
    rows: Rows, file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(rows.connection, file, Compressor().frames(0, lines(80_000, 100)))
    pieces = archive._pieces
    read_frames: list[int] = []
    monkeypatch.setattr(
        archive,
        "_pieces",
        lambda frame, known: (read_frames.append(frame.start), pieces(frame, known))[1],
    )
    known = LineIndex(rows.connection, file)
    assert known.start(70_001) == 7_000_000
    assert known.number(7_000_000) == 70_001
    assert len(read_frames) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "update archive set data = substr(data, 1, length(data) - 1)",  # of the checksum
        "update archive set data = cast(substr(data, 1, length(data) - 4) || x'00000000' as blob)",
        "update archive set data = substr(data, 1, 100)",
        "update archive set data = x''",
        "update archive set data = x'00'",
        'update archive set "end" = "end" - 1',
        'update archive set "end" = "end" + 1',
    ],
)
def test_in_a_damaged_frame_no_line_has_a_number(statement: str, rows: Rows, file: int) -> None:
    append(rows.connection, file, Compressor().frames(0, lines(4_000, 100)))
    rows.connection.execute(statement)
    with pytest.raises(ArchiveError):
        LineIndex(rows.connection, file).number(100)


def test_behind_a_gap_no_line_has_a_number(rows: Rows, file: int) -> None:
    data = lines(80_000, 100)
    append(rows.connection, file, Compressor().frames(0, data))
    (second,) = borders(rows.connection, file)[1:2]
    rows.connection.execute("delete from archive where start = ?", (second[0],))
    known = LineIndex(rows.connection, file)
    assert known.number(100) == 2
    assert known.number(5_000_000) is None
    assert known.start(70_001) is None
