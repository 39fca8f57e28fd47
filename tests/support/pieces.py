"""Reading and committing in tiny pieces, and dying in between.

Small files meet every border between reads and transactions that large ones meet.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.faults.amounts import NEAR, spread

from assoc_ingest.store import database


@contextmanager
def every_new_database_is_built() -> Iterator[None]:
    """Build new databases beside their place, however little there is to read."""
    with patch("assoc_ingest.sync.run.WORTH_BUILDING", 0):
        yield


class Killed(BaseException):
    """Stands for the death of the process: nothing catches it."""


@contextmanager
def killed_at(step: int) -> Iterator[list[str]]:
    """Let the writer's connection die after `step` statements, and stay dead.

    Yield the statements so far.
    """
    connect_immortal = sqlite3.connect
    opened: set[sqlite3.Connection] = set()
    statements: list[str] = []

    class Mortal(sqlite3.Connection):
        def _step(self, statement: str) -> None:
            opened.add(self)
            statements.append(statement)
            if len(statements) > step:
                raise Killed

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            self._step(arguments[0])
            return super().execute(*arguments)

        def executemany(self, *arguments: Any) -> sqlite3.Cursor:
            self._step(arguments[0])
            return super().executemany(*arguments)

    def connect_mortal(*arguments: Any, **more: Any) -> sqlite3.Connection:
        is_reader = more.get("uri", False)
        more["check_same_thread"] = False  # a thread may have opened it; it is closed here
        return connect_immortal(*arguments, **more, **({} if is_reader else {"factory": Mortal}))

    try:
        with patch.object(database.sqlite3, "connect", connect_mortal):
            yield statements
    finally:
        for connection in opened:
            connection.close()


def worth_killing_at(statements: list[str], number: int) -> list[int]:
    """Return so many steps spread over the statements, and each one near where what was written
    becomes permanent: around the begin and end of transactions, and behind the last one."""
    edges = [step for step, text in enumerate(statements) if text.startswith(("begin", "commit"))]
    near = {edge + distance for edge in edges for distance in NEAR}
    behind = range(max(edges), len(statements) + 1)
    return sorted({*spread(len(statements), number), *near, *behind})


@contextmanager
def everything_through_workers(jobs: int = 2, job_bytes: int = 1) -> Iterator[None]:
    """Read in worker processes, however little there is to read; jobs of about `job_bytes`."""
    with (
        patch("assoc_ingest.workers.PAYS_FROM", 0),
        patch("assoc_ingest.workers.reading.JOB_BYTES", job_bytes),
        patch("assoc_ingest.workers.reading.JOB_BYTES", job_bytes),
        patch("assoc_ingest.upkeep.verify.JOB_BYTES", job_bytes),
        patch("assoc_ingest.workers.usual_jobs", lambda: jobs),
    ):
        yield
