"""Executes a plan: reads and parses what changed, stores it in batches, and marks what is gone.

A sync that finds nothing new, as most do, never imports this module, and with it the parsers of
lines, the store and the derived facts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext

from ..files.steps import Opened, Part, Step, without_unsettled
from ..store.bulk import in_bulk
from ..store.clock import Clock
from ..store.report import Progress, Report
from ..store.sync_runs import record_start
from ..upkeep.moved_copies import note
from ..workers.amount import worker_count
from .lost_paths import find_lost_files
from .moved import match_moved
from .pipeline import Batches
from .plan import Plan
from .processes import index_aside, steps


def execute(
    connection: sqlite3.Connection,
    plan: Plan,
    report: Report,
    clock: Clock,
    progress: Progress | None,
    is_stopped: Callable[[], bool] | None,
    *,
    thorough: bool,
    jobs: int | None,
    is_new: bool,
) -> None:
    """Do what a plan says, and add it to `report`. Raises sqlite3.Error.

    When `is_stopped` returns True, the batch is finished, and the rest is left. With `thorough`,
    every byte read before is compared. `is_new` says that nobody can see the database yet.
    """
    progress = progress or (lambda done, total: None)
    if plan.returned is not None:
        note(connection, plan.returned)
    moved = match_moved(plan) | find_lost_files(connection, plan)
    gone = [file.id for _, file in plan.gone if file.id not in moved]
    report.files_gone = len(gone)
    total = report.bytes_read + plan.bytes
    count = worker_count(jobs, plan.bytes)
    with (
        in_bulk(connection) if count > 1 and not is_new else nullcontext(),
        index_aside(connection, is_wanted=is_new and count > 1) as aside,
        Batches(
            connection,
            report,
            clock,
            begin=lambda: record_start(connection, report),
            progress=lambda done: progress(done, total),
            aside=aside,
            waits=count > 1,
        ) as batches,
    ):
        with closing(steps(plan.work, thorough=thorough, count=count)) as found:
            for step in _until(is_stopped, without_unsettled(found)):
                batches.take(step)
        batches.mark_gone(gone)


def _until(is_stopped: Callable[[], bool] | None, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps until it is time to stop, and then up to where a batch can end."""
    may_end = True
    for step in steps:
        if may_end and is_stopped is not None and is_stopped():
            return
        yield step
        may_end = not isinstance(step, Opened) and not (isinstance(step, Part) and step.is_open)
