"""The original bytes of every file that was read, compressed, and where their lines begin."""

from __future__ import annotations

import sqlite3
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from ..errors import ArchiveError

# ------------------------------------------------------------------------------------------------
# The original bytes of every file that was read, compressed.
#
# The archive of a file is exactly its bytes [0, offset) as last read: frames of about 1 MB, cut
# at line ends where possible, compressed with zstd level 3. A frame of many lines takes half the
# space of one frame for each line, and a page of a transcript still needs only one or two frames,
# 2 ms. Each sync appends frames. A small last frame is merged with what follows, so that a file
# that grows line by line does not end up as a thousand frames of one line.
#
# A frame ends with a checksum of its bytes. A damaged or lost frame leaves a gap; the frames
# around it can still be read.


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CODEC = "zstd"
_FRAME = 1024 * 1024  # a quarter of this takes 7 % more space, four times as much 2 % less
_PIECE = 64 * 1024
_SMALL = 128 * 1024  # merging a larger last frame would write more than it saves
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}
_BEGINNING = 1024  # bytes
_BLANKS = 1024 * 1024  # bytes of a gap that are filled at a time

MOST_BLANK = 4 * 1024**3
"""The largest plausible gap in bytes: a damaged offset may be any number."""


class Frame(NamedTuple):
    """A compressed stretch of a file: its first byte, the byte after its last, and the data."""

    start: int
    end: int
    data: bytes
    line_count: int | None = None
    """Line breaks in it; None: not counted."""


class Compressor:
    """Compresses stretches of files. Not to be shared between threads."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(options=_OPTIONS)

    def frames(self, start: int, data: bytes) -> list[Frame]:
        """Return the frames of the bytes that begin at the offset `start` of a file."""
        return [
            Frame(
                start + low,
                start + high,
                self.compressed(data[low:high]),
                data.count(b"\n", low, high),
            )
            for low, high in _borders(data)
        ]

    def compressed(self, data: bytes) -> bytes:
        """Return the data of one frame with these bytes, however many they are."""
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)


def append(connection: sqlite3.Connection, file_id: int, frames: Iterable[Frame]) -> None:
    """Append frames to the archive of a file; the first begins where the archive ends."""
    connection.executemany(
        'insert into archive (file_id, codec, start, "end", data, line_count)'
        " values (?, ?, ?, ?, ?, ?)",
        ((file_id, CODEC, *frame) for frame in frames),
    )


def merge(connection: sqlite3.Connection, file_id: int, border: int) -> None:
    """Merge the two frames that meet at `border` if the first is small and both fit in one.

    Called where an append begins, see above.
    """
    rows = connection.execute(
        'select id, start, "end", data from archive'
        ' where file_id = ? and (start = ?2 or "end" = ?2) order by start',
        (file_id, border),
    ).fetchall()
    if len(rows) != 2 or border - rows[0][1] >= _SMALL or rows[1][2] - rows[0][1] > _FRAME:
        return
    try:
        data = b"".join(unpacked(Frame(*row[1:]), file_id) for row in rows)
    except ArchiveError:  # merging would lose the frame that is not damaged
        return
    connection.executemany("delete from archive where id = ?", ((row[0],) for row in rows))
    append(connection, file_id, Compressor().frames(rows[0][1], data))


def clear(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove the archive of a file whose bytes are about to be replaced."""
    connection.execute("delete from archive where file_id = ?", (file_id,))


def stored_frames(connection: sqlite3.Connection, file_id: int) -> list[Frame]:
    """Return the frames of a file as they are stored, in order."""
    rows = connection.execute(
        'select start, "end", data from archive where file_id = ? order by start', (file_id,)
    )
    return [Frame(*row) for row in rows]


def runs(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """Yield runs of frames without gaps between them."""
    run: list[Frame] = []
    for frame in frames:
        if run and run[-1].end != frame.start:
            yield run
            run = []
        run.append(frame)
    if run:
        yield run


def read(
    connection: sqlite3.Connection, file_id: int, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    """Yield the archived bytes of a file from `start` to `end` (default: all), in order.

    Raises ArchiveError if a frame is damaged.
    """
    rows = connection.execute(
        'select start, "end", data from archive'
        ' where file_id = ? and "end" > ? and (?3 is null or start < ?3) order by start',
        (file_id, start, end),
    )
    for frame_start, frame_end, data in rows:
        original = unpacked(Frame(frame_start, frame_end, data), file_id)
        high = len(original) if end is None else min(len(original), end - frame_start)
        yield original[max(0, start - frame_start) : high]


def read_beginning(connection: sqlite3.Connection, file_id: int) -> Iterator[bytes]:
    """Yield the archived bytes of a file, very few at first: mostly its first line is enough.

    Raises ArchiveError if a frame is damaged that is read as a whole.
    """
    rows = connection.execute(
        'select start, "end", data from archive where file_id = ? order by start', (file_id,)
    )
    read = 0
    for start, end, data in rows:
        if start == 0:
            little = first_bytes(data, _BEGINNING)
            read = len(little)
            yield little
        yield unpacked(Frame(start, end, data), file_id)[read:]
        read = 0


def read_whole(connection: sqlite3.Connection, file_id: int, size: int) -> Iterator[bytes]:
    """Yield the archived bytes of a file, and check that they are exactly `size` bytes.

    Raises ArchiveError where a frame is damaged, missing, or overlaps another.
    """
    position = 0
    rows = connection.execute(
        'select start, "end", codec, data from archive where file_id = ? order by start', (file_id,)
    )
    for start, end, codec, data in rows:
        if start != position or codec != CODEC:
            break
        yield unpacked(Frame(start, end, data), file_id)
        position = end
    else:
        if position == size:
            return
    raise ArchiveError(
        f"The archive of file {file_id} does not continue at byte {position}.", position
    )


def sound_pieces(connection: sqlite3.Connection, file_id: int) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each undamaged frame, in order.

    A frame that overlaps an earlier one is left out.
    """
    rows = connection.execute(
        'select start, "end", codec, data from archive where file_id = ? order by start', (file_id,)
    )
    position = 0
    for start, end, codec, data in rows:
        if start < position or codec != CODEC:
            continue
        with suppress(ArchiveError):
            yield start, unpacked(Frame(start, end, data), file_id)
            position = end


def line_counts(connection: sqlite3.Connection, file_id: int) -> dict[int, int | None]:
    """Return the recorded number of line breaks of each frame of a file, by its first byte."""
    rows = connection.execute("select start, line_count from archive where file_id = ?", (file_id,))
    return dict(rows.fetchall())


def gaps(connection: sqlite3.Connection, file_id: int, size: int) -> list[tuple[int, int]]:
    """Return the stretches of the first `size` bytes of a file that no undamaged frame covers."""
    pieces = sound_pieces(connection, file_id)
    return uncovered(((start, start + len(data)) for start, data in pieces), size)


def uncovered(covered: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Return the stretches of the first `size` bytes that are not covered.

    A stretch is (first byte, byte after the last); those in `covered` are in order.
    """
    found, position = [], 0
    for start, end in covered:
        if min(start, size) > position:
            found.append((position, min(start, size)))
        position = end
    if position < size:
        found.append((position, size))
    return found


def read_around_gaps(connection: sqlite3.Connection, file_id: int, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file, with spaces and a line feed in place of lost bytes.

    So all other bytes keep their offsets, and the line after a gap can be parsed. Raises
    ArchiveError if a gap is too large to be plausible.
    """
    position = 0
    for start, data in sound_pieces(connection, file_id):
        yield from _blank(position, min(start, size))
        if start < size:
            yield data[: size - start]
        position = start + len(data)
    yield from _blank(position, size)


def _blank(start: int, end: int) -> Iterator[bytes]:
    if end - start > MOST_BLANK:
        raise ArchiveError(f"Bytes {start} to {end} are missing.", start)
    while end - start > _BLANKS:
        yield b" " * _BLANKS
        start += _BLANKS
    if start < end:
        yield b" " * (end - start - 1) + b"\n"


def beginning(start: int, end: int, data: bytes) -> list[Frame]:
    """Return frames of the whole lines at the start of a frame whose data is truncated."""
    try:
        original = zstd.ZstdDecompressor().decompress(data, max(0, end - start))
    except (zstd.ZstdError, EOFError):
        return []
    return Compressor().frames(start, original[: original.rfind(b"\n") + 1])


def first_bytes(data: bytes, length: int) -> bytes:
    """Return at most this many bytes of the start of a frame; none if it is damaged."""
    try:
        return zstd.ZstdDecompressor().decompress(data, length)
    except (zstd.ZstdError, EOFError):
        return b""


def unpacked(frame: Frame, file_id: int) -> bytes:
    """Return the bytes of a stored frame, decompressing no more than it should have.

    Raises ArchiveError if it is damaged.
    """
    length = frame.end - frame.start
    original = whole(frame.data, length)
    if original is not None and len(original) == length:
        return original
    raise _damaged(frame, file_id)


def _damaged(frame: Frame, file_id: int) -> ArchiveError:
    return ArchiveError(
        f"The archive of file {file_id} is damaged at byte {frame.start}.", frame.start
    )


def _pieces(frame: Frame, file_id: int) -> Iterator[bytes]:
    """Yield the bytes of a stored frame piece by piece, which is faster than in one.

    Raises ArchiveError at the end if the frame is damaged.
    """
    decompressor = zstd.ZstdDecompressor()
    data, left = frame.data, frame.end - frame.start
    with suppress(zstd.ZstdError, EOFError):
        while left >= 0 and not decompressor.eof:
            piece = decompressor.decompress(data, _PIECE)
            if not piece and decompressor.needs_input:
                break
            data, left = b"", left - len(piece)
            yield piece
        if decompressor.eof and not left:
            return
    raise _damaged(frame, file_id)


def whole(data: bytes, most: int) -> bytes | None:
    """Return the bytes of a frame of at most `most` bytes; None if it has more or is damaged."""
    if most > 0:
        with suppress(zstd.ZstdError, EOFError):
            decompressor = zstd.ZstdDecompressor()
            original = decompressor.decompress(data, most + 1)
            if len(original) <= most and decompressor.eof:
                return original
    return None


def _borders(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the borders of frames: at a line end near the frame size, otherwise exactly at it."""
    start = 0
    while len(data) - start > _FRAME + _SMALL:
        cut = data.rfind(b"\n", start, start + _FRAME) + 1
        if cut <= start:
            cut = data.find(b"\n", start + _FRAME, start + 4 * _FRAME) + 1 or start + _FRAME
        yield start, cut
        start = cut
    if start < len(data):
        yield start, len(data)


# ------------------------------------------------------------------------------------------------
# Where the lines of an archived file begin, and which number the line at an offset has.
#
# Frames of the archive say how many lines they hold, so only the frame in question is read,
# whatever the size of the file. Older frames do not say it and are read once, up to the one in
# question.


class LineIndex:
    """The lines of one archived file; knows where they end in one frame of it.

    Raises ArchiveError where a frame that it reads is not what was written.
    """

    def __init__(self, connection: sqlite3.Connection, file_id: int) -> None:
        self._connection = connection
        self._file = file_id
        self._counts: list[int | None] = []
        self._borders = [0]
        rows = connection.execute(
            'select start, "end", line_count from archive where file_id = :file order by start',
            {"file": file_id},
        )
        for start, end, count in rows:
            if start != self._borders[-1] or end <= start:
                break  # behind a gap, line numbers are not known
            self._borders.append(end)
            self._counts.append(count)
        self._breaks = [0]  # line breaks before each frame, as far as they were asked for
        self._frame: tuple[int, list[int]] = -1, []

    def number(self, offset: int) -> int | None:
        """Return the number, from 1, of the line at an offset; None if the archive ends before."""
        if not 0 <= offset <= self._borders[-1]:
            return None
        frame = max(bisect_left(self._borders, offset) - 1, 0)
        if frame == len(self._counts):  # nothing is archived
            return 1
        before, inside = self._breaks_before(frame), offset - self._borders[frame]
        return before + bisect_right(self._ends(frame), inside) + 1

    def is_start(self, offset: int) -> bool:
        """Does a line with a known number begin at this offset?"""
        if not offset:
            return True
        frame = max(bisect_left(self._borders, offset) - 1, 0)
        ends, inside = self._ends(frame), offset - self._borders[frame]
        place = bisect_left(ends, inside)
        return ends[place : place + 1] == [inside]

    def start(self, line: int) -> int | None:
        """Return the offset at which a line begins; None if the file has fewer lines."""
        while len(self._breaks) <= len(self._counts) and self._breaks[-1] < line - 1:
            self._breaks_before(len(self._breaks))
        frame = max(bisect_right(self._breaks, line - 2) - 1, 0) if line > 1 else 0
        if frame >= len(self._counts):
            return None
        places = [0, *self._ends(frame)]
        place = line - 1 - self._breaks[frame]
        if place >= len(places):
            return None
        start = self._borders[frame] + places[place]
        return start if start < self._borders[-1] else None

    def count(self) -> int:
        size = self._borders[-1]
        if not size:
            return 0
        breaks = self._breaks_before(len(self._counts))
        return breaks + (size - self._borders[-2] not in self._ends(len(self._counts) - 1))

    def _breaks_before(self, frame: int) -> int:
        while len(self._breaks) <= frame:
            last = len(self._breaks) - 1
            count = self._counts[last]
            if count is None:
                count = len(self._ends(last))
            self._breaks.append(self._breaks[-1] + count)
        return self._breaks[frame]

    def _ends(self, frame: int) -> list[int]:
        """Return the places behind the line breaks of a frame, counted from its first byte."""
        if self._frame[0] != frame:
            rows = self._connection.execute(
                'select start, "end", data from archive'
                " where file_id = :file and start = cast(:start as integer)",
                {"file": self._file, "start": self._borders[frame]},
            )
            ends: list[int] = []
            position = 0
            for row in rows:
                for piece in _pieces(Frame(*row), self._file):
                    place = piece.find(b"\n")
                    while place >= 0:
                        ends.append(position + place + 1)
                        place = piece.find(b"\n", place + 1)
                    position += len(piece)
            self._frame = frame, ends
        return self._frame[1]
