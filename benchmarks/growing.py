"""Transcripts that grow: a private copy that is cut off and appended to, and a watch on it."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from benchmarks.cost import PATIENCE, Program
from benchmarks.homes import transcripts
from benchmarks.synthetic.chat import spoken_line

LINES = 10
"""Lines of one piece."""

_LOOK = 0.002  # seconds between two looks at the index
_PAUSE = 0.3  # seconds of silence before an append: agents do not write without end
_WARM_UP = 2  # appends that find out whether the watch listens already


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


def latencies(
    program: Program, database: Path, home: Path, transcript: Path, times: int
) -> list[float]:
    """Return the seconds from an append to its row in the full-text index, so many times.

    `home` holds the transcript and was synced before. Raises TimeoutError if a line never comes.
    """
    found = []
    with (
        program.running("watch", home, "--db", database),
        closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection,
    ):
        for number in range(_WARM_UP + times):
            found.append(_latency(connection, transcript, f"zwatch{number}"))
            time.sleep(_PAUSE)
    return found[_WARM_UP:]


def _latency(connection: sqlite3.Connection, transcript: Path, word: str) -> float:
    """Append a line with a word that is nowhere else, and wait until it can be found."""
    started = time.perf_counter()
    with transcript.open("ab") as file:
        file.write(spoken_line(word))
    while time.perf_counter() < started + PATIENCE:
        query = "select 1 from messages_fts where messages_fts match ?"
        if connection.execute(query, (word,)).fetchone():
            return time.perf_counter() - started
        time.sleep(_LOOK)
    raise TimeoutError(f"{word} was appended to a transcript, and never found")
