"""A sync that is done before an answer: of what is new, and never for long.

What it does not read, another one will. It makes no database, and derives no table again: that
takes minutes, and is for a command that says so.
"""

from __future__ import annotations

import time
from pathlib import Path

from .. import humanize
from ..errors import BusyError, NotFoundError
from ..store.database import open_reader, writing
from ..store.report import Report
from ..upkeep.rebuild import is_due
from ..when import now
from .run import SyncOptions, sync_into

SECONDS = 2.0
"""How long files are read; a batch that was begun is finished."""


def read_news(database: Path, seconds: float = SECONDS) -> list[str]:
    """Read what is new; return a sentence for each thing that was not read, and why.

    Nothing is read, and nothing is missing, if another process holds the lock: it does the same.
    Raises DatabaseError if there is no database, or it is not a current one.
    """
    reader = open_reader(database)
    try:
        if is_due(reader):
            return ["The parser was updated, and nothing new is read until: assoc-ingest sync"]
    finally:
        reader.close()
    report = Report(started_at=now())
    end = time.monotonic() + seconds
    is_late = False

    def is_over() -> bool:
        nonlocal is_late
        is_late = is_late or time.monotonic() > end
        return is_late

    try:
        with writing(database) as connection:
            plan = sync_into(
                connection, [], SyncOptions(only_news=True), report, is_stopped=is_over
            )
    except BusyError:
        return _of_another(database)
    except NotFoundError:
        return []  # no home is known: there is nothing to read
    left = max(plan.bytes - report.bytes_read, 0) if is_late else 0
    missing = [f"{humanize.size(left)} are still to be read; ask again."] * bool(left)
    missing += [
        f"{root} is missing; what was read of it before is kept." for root in report.missing_roots
    ]
    return missing + [f"{path} could not be read: {why}." for path, why in report.unreadable]


def _of_another(database: Path) -> list[str]:
    """Say what may be missing while another process writes: nothing, if it has read all once."""
    reader = open_reader(database)
    try:
        row = reader.execute(
            "select finished_at is null and error is null from sync_runs order by id desc limit 1"
        ).fetchone()
    finally:
        reader.close()
    is_reading = row is not None and bool(row[0])
    return ["Another process is reading now; what it has not read yet is missing."] * is_reading
