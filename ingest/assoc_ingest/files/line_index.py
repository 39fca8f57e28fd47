"""Where the lines of an archived file begin, and which number the line at an offset has.

Frames of the archive say how many lines they hold, so only the frame in question is read, whatever
the size of the file. Older frames do not say it and are read once, up to the one in question.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right

from . import archive


class LineIndex:
    """The lines of one archived file; holds one frame of it in memory.

    Raises ArchiveError where a frame that it reads is not what was written.
    """

    def __init__(self, connection: sqlite3.Connection, file_id: int) -> None:
        self._connection = connection
        self._file = file_id
        self._counts: list[int | None] = []
        self._borders = [0]
        rows = connection.execute(
            'select start, "end", line_count from archive where file_id = ? order by start',
            (file_id,),
        )
        for start, end, count in rows:
            if start != self._borders[-1] or end <= start:
                break  # behind a gap nobody knows the numbers
            self._borders.append(end)
            self._counts.append(count)
        self._breaks = [0]  # line breaks before each frame, as far as they were asked for
        self._frame: tuple[int, bytes] = -1, b""
        # Frame, place in it, and line breaks up to there: lines are mostly asked for in order.
        self._counted = -1, 0, 0

    def number(self, offset: int) -> int | None:
        """Return the number, from 1, of the line at an offset; None if the archive ends before."""
        if not 0 <= offset <= self._borders[-1]:
            return None
        frame = max(bisect_left(self._borders, offset) - 1, 0)
        if frame == len(self._counts):  # nothing is archived
            return 1
        inside = offset - self._borders[frame]
        known, begin, breaks = self._counted
        if known != frame or begin > inside:
            begin, breaks = 0, self._breaks_before(frame)
        breaks += self._bytes(frame).count(b"\n", begin, inside)
        self._counted = frame, inside, breaks
        return breaks + 1

    def is_start(self, offset: int) -> bool:
        """Does a line begin at this offset, of which the number is known?"""
        frame = max(bisect_left(self._borders, offset) - 1, 0)
        inside = offset - self._borders[frame]
        return not offset or self._bytes(frame)[inside - 1 : inside] == b"\n"

    def start(self, line: int) -> int | None:
        """Return the offset at which a line begins; None if the file has fewer lines."""
        while len(self._breaks) <= len(self._counts) and self._breaks[-1] < line - 1:
            self._breaks_before(len(self._breaks))
        frame = max(bisect_right(self._breaks, line - 2) - 1, 0) if line > 1 else 0
        if frame >= len(self._counts):
            return None
        data, position = self._bytes(frame), 0
        for _ in range(line - 1 - self._breaks[frame]):
            position = data.find(b"\n", position) + 1
            if not position:
                return None
        start = self._borders[frame] + position
        return start if start < self._borders[-1] else None

    def count(self) -> int:
        """Return how many lines there are."""
        size = self._borders[-1]
        if not size:
            return 0
        breaks = self._breaks_before(len(self._counts))
        return breaks + (not self._bytes(len(self._counts) - 1).endswith(b"\n"))

    def _breaks_before(self, frame: int) -> int:
        while len(self._breaks) <= frame:
            last = len(self._breaks) - 1
            count = self._counts[last]
            if count is None:
                count = self._bytes(last).count(b"\n")
            self._breaks.append(self._breaks[-1] + count)
        return self._breaks[frame]

    def _bytes(self, frame: int) -> bytes:
        if self._frame[0] != frame:
            start, end = self._borders[frame : frame + 2]
            found = archive.read(self._connection, self._file, start, end)
            self._frame = frame, b"".join(found)
        return self._frame[1]
