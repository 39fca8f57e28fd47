"""A private copy of a home of one transcript that is cut off, and grows again piece by piece."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.floors import transcripts

LINES = 10
"""Lines of one piece."""


class Growing:
    """A copy of a home of one transcript whose last lines are held back.

    They are counted and cut here without reading the file whole: the process that measures has to
    stay small.
    """

    def __init__(self, home: Path, place: Path, pieces: int) -> None:
        """Copy `home` to `place`, and hold back so many pieces."""
        shutil.copytree(home, place)
        self.home = place
        (self.path,) = transcripts(place)
        self._held = _cut_off(self.path, pieces)

    def grow(self) -> None:
        """Append the next piece."""
        with self.path.open("ab") as file:
            file.write(self._held.pop(0))

    def rewrite(self) -> None:
        """Move the first line of the file to its end: as long as before, and another file."""
        copy = self.path.with_suffix(".new")
        with self.path.open("rb") as old, copy.open("wb") as new:
            first = old.readline()
            shutil.copyfileobj(old, new)
            new.write(first)
        copy.replace(self.path)


def _cut_off(path: Path, pieces: int) -> list[bytes]:
    """Cut so many pieces off the end of a file, and return them."""
    with path.open("rb+") as file:
        count = sum(1 for _ in file)
        file.seek(0)
        for _ in range(count - LINES * pieces):
            file.readline()
        end = file.tell()
        lines = [line.rstrip(b"\n") + b"\n" for line in file]
        file.truncate(end)
    return [b"".join(lines[start : start + LINES]) for start in range(0, len(lines), LINES)]
