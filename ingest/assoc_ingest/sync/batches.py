"""Carries a plan out: reads and parses what changed (`changes`), and stores it batch by batch.

`Batches` owns the transactions and hands what was read to `store.batch`, which writes it: about
32 MB at a time. A rewritten file is one transaction, whatever its size, so that no reader sees half
of it.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import TYPE_CHECKING

from ..files.changes import (
    Border,
    Closed,
    FilePart,
    Opened,
    Step,
    Unchanged,
    Unreadable,
    read,
    without_unsettled,
)
from ..store.batch import FILE_BYTES, Batch
from ..store.database import Clock, in_bulk
from ..store.rows import OpenFile, Written
from ..terminal import Progress
from .plan import Plan, Report, find_lost_files, match_moved

if TYPE_CHECKING:
    from ..workers.index_aside import IndexAside


def execute(
    connection: sqlite3.Connection,
    plan: Plan,
    report: Report,
    clock: Clock,
    progress: Progress | None,
    is_stopped: Callable[[], bool] | None,
    *,
    begin: Callable[[], None],
    thorough: bool,
    jobs: int | None,
    is_new: bool,
) -> None:
    """Do what a plan says, and add it to `report`. Raises sqlite3.Error.

    `begin` is called before anything is stored. When `is_stopped` returns True, the batch is
    finished, and the rest is left. With `thorough`, every byte read before is compared. `is_new`
    says that nobody can see the database yet.
    """
    from .. import workers

    progress = progress or (lambda done, total: None)
    if plan.returned is not None:
        from .copies import note

        note(connection, plan.returned)
    moved = match_moved(plan) | find_lost_files(connection, plan)
    gone = [file.id for _, file in plan.gone if file.id not in moved]
    report.files_gone = len(gone)
    total = report.bytes_read + plan.bytes
    count = workers.worker_count(jobs, plan.bytes)
    steps = read(plan.work, thorough=thorough)
    indexing: AbstractContextManager[IndexAside | None] = nullcontext()
    if count > 1:
        from ..workers.index_aside import index_aside
        from ..workers.reading import read as read_in_processes

        steps = read_in_processes(plan.work, thorough=thorough, count=count)
        if is_new:
            indexing = index_aside(connection)
    with (
        in_bulk(connection) if count > 1 and not is_new else nullcontext(),
        indexing as aside,
        Batches(
            connection,
            report,
            clock,
            begin=begin,
            progress=lambda done: progress(done, total),
            aside=aside,
            waits=count > 1,
        ) as batches,
    ):
        with closing(steps):
            for step in _until(is_stopped, without_unsettled(steps)):
                batches.take(step)
        batches.mark_gone(gone)


def _until(is_stopped: Callable[[], bool] | None, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps until it is time to stop, and then up to where a batch can end."""
    may_end = True
    for step in steps:
        if may_end and is_stopped is not None and is_stopped():
            return
        yield step
        may_end = not isinstance(step, Opened) and not (isinstance(step, FilePart) and step.is_open)


# ------------------------------------------------------------------------------------------------
# From steps to transactions: a thread commits one batch while the next files are read.


_BYTES_AHEAD = 32 * 1024 * 1024  # input that may be read while a batch is committed


class Batches:
    """Applies steps to the store, batch by batch.

    Indexing and committing a batch are a few long statements, during which SQLite releases the
    interpreter. A thread runs them while the next files are read and parsed; their steps wait here
    until the connection is free. Inserting rows in a thread would not pay: each row releases the
    interpreter for a moment, and then has to wait for it.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        report: Report,
        clock: Clock,
        *,
        begin: Callable[[], None],
        progress: Callable[[int], None],
        aside: IndexAside | None = None,
        waits: bool = False,
    ) -> None:
        """`begin` is called outside a batch, before anything is stored.

        If it `waits`, no steps are taken during a commit: workers read ahead by themselves.

        If messages are indexed aside, their index is put in place at the end, after an error, too.
        """
        self._connection = connection
        self._report = report
        self._clock = clock
        self._begin = begin
        self._is_begun = False
        self._progress = progress
        self._aside = aside
        self._bytes_ahead = 0 if waits else _BYTES_AHEAD
        self._batch: Batch | None = None
        self._file: OpenFile
        self._waiting: deque[Step] = deque()
        self._waiting_bytes = 0
        self._before: tuple[int, int] | None = None  # the counts at the last border
        self._committer: ThreadPoolExecutor | None = None
        self._committing: Future[Written] | None = None

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit what is left; after an error, roll back what was not committed."""
        try:
            if kind is None:
                self._take_waiting()
                self._settle()
                if self._batch is not None:
                    self._batch.prepare()
                    self._report.add(self._batch.finish())
        finally:
            if self._committer is not None:
                self._committer.shutdown()
            if self._batch is not None:
                self._batch.rollback()
            if self._aside is not None:
                # After an error, the index is made from its table if this fails, too.
                with nullcontext() if kind is None else suppress(sqlite3.Error):
                    self._aside.put_in_place()

    def take(self, step: Step) -> None:
        """Apply a step now, or let it wait for a running commit unless too much is waiting."""
        self._waiting.append(step)
        self._waiting_bytes += _size(step)
        if self._waiting_bytes >= self._bytes_ahead:
            self._settle()
        while self._waiting and not self._is_committing():
            self._apply_next()

    def mark_gone(self, file_ids: list[int]) -> None:
        self._take_waiting()
        self._settle()
        if file_ids:
            self._begin_once()
            self._open_batch().mark_gone(file_ids)

    def _take_waiting(self) -> None:
        while self._waiting:
            self._apply_next()

    def _apply_next(self) -> None:
        """Apply the oldest waiting step, as soon as the connection is free."""
        self._settle()
        step = self._waiting.popleft()
        self._waiting_bytes -= _size(step)
        if isinstance(step, Unreadable):
            self._undo()
            self._report.unreadable.append((step.path, step.reason))
            if step.refused is not None:
                self._report.refused[step.path] = step.refused, step.reason
        elif isinstance(step, Border):
            self._commit()
            self._before = self._report.files_read, self._report.bytes_read
        elif isinstance(step, Unchanged):
            if not step.found.is_as(step.known):
                batch = self._open_batch()
                batch.note_stat(step.known, step.found, is_document=step.is_document)
        elif isinstance(step, Opened):
            self._begin_once()
            if step.known is None or step.known.id != self._report.unfinished:
                self._report.files_read += 1
            self._file = self._open_batch().open_file(
                step.work.source_id,
                step.work.found,
                step.claim,
                step.known,
                step.prefix,
                generation=step.generation,
                is_rewritten=step.is_rewritten,
            )
            self._report.unfinished = self._file.id
        elif isinstance(step, Closed):
            self._before = self._report.unfinished = None
            self._open_batch().close_file(self._file)
        else:
            self._apply_part(step)

    def _apply_part(self, part: FilePart) -> None:
        batch = self._open_batch()
        batch.add(self._file, part.records, part.frames(), part.prefix, part.size)
        self._file.context = part.context
        self._report.bytes_read += part.size
        self._progress(self._report.bytes_read)
        if not part.is_open:
            self._before = None
            if batch.is_full:
                self._commit()

    def _begin_once(self) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._commit()
            self._settle()
            self._begin()

    def _commit(self) -> None:
        """Let the thread commit the batch; the next step begins another one."""
        if self._batch is None:
            return
        self._batch.prepare()
        if self._committer is None:
            self._committer = ThreadPoolExecutor(1, "committer")
        self._committing = self._committer.submit(self._batch.finish)

    def _undo(self) -> None:
        """After a failed read, undo what was stored incompletely since a border."""
        if self._before is None:
            return
        if self._batch is not None:
            self._batch.rollback()
            self._batch = None
        self._report.files_read, self._report.bytes_read = self._before
        self._before = None

    def _is_committing(self) -> bool:
        return self._committing is not None and not self._committing.done()

    def _settle(self) -> None:
        """Wait for a running commit; its error is raised here."""
        committing, self._committing = self._committing, None
        if committing is not None:
            self._report.add(committing.result())
            self._batch = None

    def _open_batch(self) -> Batch:
        if self._batch is None:
            self._batch = Batch(self._connection, self._clock.now(), self._aside)
        return self._batch


def _size(step: Step) -> int:
    if isinstance(step, Opened):
        return FILE_BYTES
    return step.size if isinstance(step, FilePart) else 0
