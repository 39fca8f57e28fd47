"""How long it takes a watch until what an agent wrote can be found."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from os import environ
from pathlib import Path

from benchmarks.cost import Program
from benchmarks.plain import spoken_line

_PATIENCE = 120.0  # seconds
_LOOK = 0.002  # seconds between two looks at the index
_PAUSE = 0.3  # seconds of silence before an append: agents do not write without end
_WARM_UP = 2  # appends that find out whether the watch listens already


def latencies(
    program: Program, database: Path, home: Path, transcript: Path, times: int
) -> list[float]:
    """Return the seconds from an append to its row in the full-text index, so many times.

    `home` holds the transcript and was synced before. Raises TimeoutError if a line never comes.
    """
    watching = subprocess.Popen(
        program.command("watch", home, "--db", database),
        env={**environ, **program.environment()},
        cwd=program.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        found = []
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            for number in range(_WARM_UP + times):
                found.append(_latency(connection, transcript, f"zwatch{number}"))
                time.sleep(_PAUSE)
        return found[_WARM_UP:]
    finally:
        watching.send_signal(signal.SIGTERM)
        watching.wait(_PATIENCE)


def _latency(connection: sqlite3.Connection, transcript: Path, word: str) -> float:
    """Append a line with a word that is nowhere else, and wait until it can be found."""
    started = time.perf_counter()
    with transcript.open("ab") as file:
        file.write(spoken_line(word))
    while time.perf_counter() < started + _PATIENCE:
        query = "select 1 from messages_fts where messages_fts match ?"
        if connection.execute(query, (word,)).fetchone():
            return time.perf_counter() - started
        time.sleep(_LOOK)
    raise TimeoutError(f"{word} was appended to a transcript, and never found")
