"""Numbers of lines in archived files, as far as the archive still has them."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from ..errors import ArchiveError
from ..files.line_index import LineIndex


class Lines:
    """Knows the lines of the file that was last asked for: ask for all of one file, then the next.

    What cannot be told is None.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._last: tuple[int, LineIndex] | None = None

    def number(self, file: int, offset: int) -> int | None:
        """Return the number, from 1, of the line at an offset."""
        with suppress(ArchiveError):
            return self._of(file).number(offset)
        return None

    def is_start(self, file: int, offset: int) -> bool:
        """Is a line known to begin at an offset? Several objects may be in one."""
        with suppress(ArchiveError):
            index = self._of(file)
            return index.number(offset) is not None and index.is_start(offset)
        return False

    def count(self, file: int) -> int | None:
        """Return how many lines a file has."""
        with suppress(ArchiveError):
            return self._of(file).count()
        return None

    def _of(self, file: int) -> LineIndex:
        if self._last is None or self._last[0] != file:
            self._last = file, LineIndex(self._connection, file)
        return self._last[1]
