"""A sync: finds what is new in the homes of agents, and stores it.

`sync` opens the database and has the writer's lock; `sync_into` makes one pass:

0. If an older version derived the tables, they are derived again (`rebuild`).
1. The roots are found and walked (`plan`): which files changed, and which are gone.
2. `execute` reads and parses the changed files (`changes`), in this process or in several.
   `Batches` owns the transactions and hands what was read to `store.batch`, which writes it:
   about 32 MB at a time. A rewritten file is one transaction, whatever its size, so that no reader
   sees half of it.
3. Missing files are marked as gone; their rows stay.
4. The directories of projects are checked, and the end of the run is recorded in `sync_runs`.

A sync that finds nothing new, as most do, ends before `execute`, whose imports do not slow it.
"""

from __future__ import annotations

import gc
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from ..fields import now
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
from ..files.exclusions import doubtful_logs, to_read_again
from ..files.walk import Root
from ..source import facts_of
from ..store.batch import FILE_BYTES, Batch
from ..store.database import Clock, in_bulk, is_rebuild_due, open_reader, transaction, writing
from ..store.rows import OpenFile, Written
from ..store.swap import building
from ..terminal import Progress
from .plan import (
    Given,
    Places,
    Plan,
    Report,
    find_lost_files,
    find_lost_roots,
    find_roots,
    given_roots,
    is_large,
    look_at_directories,
    look_at_projects,
    make_plan,
    match_moved,
)

if TYPE_CHECKING:
    from ..workers.index_aside import IndexAside


WORTH_BUILDING = 32 * 1024 * 1024
"""From this many bytes on, a new database is built next to its path: less is fast anyway."""

AT_RISK = 1024 * 1024 * 1024
"""Bytes that may have to be read again if a process that builds a database is killed."""


class SyncOptions(NamedTuple):
    source: str | None = None
    """Only roots of this kind."""
    full: bool = False
    """Compare every byte that was read, whatever the stat of the files says."""
    dry_run: bool = False
    """Only report what would be read."""
    git: bool = False
    """Ask git about the projects that are on this disk."""
    only_news: bool = False
    """Do not record a run that read nothing and found nothing missing."""
    jobs: int | None = None
    """Processes that read files if there is much to read; None: one for each core, at most 8."""


# ------------------------------------------------------------------------------------------------
# A sync opens the database, or builds a new one beside its path, and makes one pass.


def sync(
    database: Path,
    paths: Sequence[Path],
    options: SyncOptions | None = None,
    progress: Progress | None = None,
) -> Report:
    """Bring the database up to date with the roots `paths`, or with all known ones.

    Raises UsageError for a path that is not a root, or if git is to be asked and not installed,
    NotFoundError if no home is found, BusyError if another process writes, DatabaseError if the
    database belongs to another program, and sqlite3.Error if it cannot be read or written. What was
    committed before stays.
    """
    started = time.monotonic()
    options = options or SyncOptions()
    if options.git:
        _check_git()
    report = Report(started_at=now())
    given = given_roots(paths, options.source)
    if options.dry_run:
        _dry_run(database, given, options, report)
    elif database.exists() or _build(database, given, options, report, progress):
        with writing(database) as connection:
            sync_into(connection, given, options, report, progress)
    report.seconds = time.monotonic() - started
    return report


def _check_git() -> None:
    from .. import git as git_program

    if not git_program.is_installed():
        raise UsageError("git was not found on this machine. Install it, or leave out --git.")


def _build(
    database: Path,
    given: Sequence[Given],
    options: SyncOptions,
    report: Report,
    progress: Progress | None,
) -> bool:
    """Build a new database, if there is much to read; return whether anything is left to do.

    If the process is killed, everything has to be read again. So building stops after `AT_RISK`
    bytes; the rest is read into the finished database.
    """
    roots = find_roots(None, given, options.source, Report(""))  # raises before it is created
    if not is_large(roots, WORTH_BUILDING):
        return True

    def is_enough() -> bool:
        return report.bytes_read >= AT_RISK

    from .. import workers

    count = workers.worker_count(options.jobs, WORTH_BUILDING)
    with workers.started_ahead(count), building(database) as connection:
        sync_into(connection, given, options, report, progress, is_stopped=is_enough, goes_on=True)
    return is_enough()


def _dry_run(database: Path, given: Sequence[Given], options: SyncOptions, report: Report) -> None:
    connection = open_reader(database) if database.exists() else None
    roots = find_roots(connection, given, options.source, report)
    plan = make_plan(connection, roots, report, full=options.full)
    report.files_read, report.bytes_read = len(plan.work), plan.bytes
    report.files_gone = len(plan.gone)
    report.finished_at = now()
    if connection is not None:
        connection.close()


# ------------------------------------------------------------------------------------------------
# One pass, on the writer's connection.


def sync_into(
    connection: sqlite3.Connection,
    given: Sequence[Given],
    options: SyncOptions,
    report: Report,
    progress: Progress | None = None,
    *,
    places: Places | None = None,
    is_stopped: Callable[[], bool] | None = None,
    goes_on: bool = False,
) -> Plan:
    """Run a sync on the writer's connection, and record it in `sync_runs`.

    Fills in `report`, and returns the plan. With `places`, only those are visited; if the plan is
    then doubtful, nothing is done. When `is_stopped` returns True, the batch is finished, and the
    rest is left for the next sync. With `goes_on`, that is part of the same run, whose end is not
    recorded yet. Raises NotFoundError and sqlite3.Error as `sync` does.
    """
    clock = Clock(connection)
    report.clock_behind = clock.behind
    if report.id is None or report.is_continued:  # else it continues a run
        report.started_at = clock.now()
    try:
        with _without_gc():
            if is_rebuild_due(connection):
                from ..upkeep.rebuild import rebuild_into

                report.files_rebuilt = rebuild_into(connection, jobs=options.jobs).files
            plan = _plan(connection, given, options, report, places)
            if not plan.is_doubtful:
                if plan.has_work:
                    execute(
                        connection, plan, report, clock, progress, is_stopped,
                        thorough=options.full, jobs=options.jobs, is_new=goes_on,
                    )  # fmt: skip
                derive_what_others_decide(connection)
                look_at_directories(connection, plan)
                _refresh_surroundings(connection, plan, options, report)
    except BaseException as error:
        report.error = str(error) or type(error).__name__
        raise
    finally:
        if not options.only_news or report.is_running or report.files_read or report.files_gone:
            is_left = goes_on and report.error is None and is_stopped is not None and is_stopped()
            record_end(connection, report, clock, is_over=not is_left)
    return plan


@contextmanager
def _without_gc() -> Iterator[None]:
    """Switch off Python's cycle collector: a million records have no cycles, and it takes long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _plan(
    connection: sqlite3.Connection,
    given: Sequence[Given],
    options: SyncOptions,
    report: Report,
    places: Places | None,
) -> Plan:
    if places is not None:
        return make_plan(connection, places, report, full=options.full, places=places)
    report.files_seen = report.symlinks = 0  # a sync that built a database makes a second plan
    report.missing_roots, report.unreadable = [], []
    roots = find_roots(connection, given, options.source, report)
    find_lost_roots(connection, roots, report)
    _remember(connection, roots, report, only_news=options.only_news)
    return make_plan(connection, roots, report, full=options.full)


def _remember(
    connection: sqlite3.Connection, roots: list[Root], report: Report, *, only_news: bool
) -> None:
    """Update the rows of the roots; with `only_news`, only if a root appeared or vanished."""
    seen = report.started_at
    if only_news:
        there = set(connection.execute("select kind, root from sources where gone_at is null"))
        is_known = all((root.source.name, root.name) in there for root in roots)
        if is_known and not {root for _, root in there} & set(report.missing_roots):
            return
    with transaction(connection):
        connection.executemany(
            "insert into sources (kind, root, first_synced_at, last_synced_at, label, is_agent,"
            " lists_sessions, retention_days) values (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7)"
            " on conflict (kind, root) do update set last_synced_at = ?3, gone_at = null,"
            " label = ?4, is_agent = ?5, lists_sessions = ?6, retention_days = ?7",
            (
                (root.source.name, root.name, seen, *facts_of(root.source).values())
                for root in roots
            ),
        )
        connection.executemany(
            "update sources set gone_at = coalesce(gone_at, ?) where root = ?",
            ((seen, root) for root in report.missing_roots),
        )


def derive_what_others_decide(connection: sqlite3.Connection) -> None:
    """Re-parse what was read before files of its subagents, or a list that names it, appeared."""
    again = to_read_again(connection)
    if again or doubtful_logs(connection):
        from ..store.replay import derive_again, misjudged

        derive_again(connection, [*again, *misjudged(connection)])


def _refresh_surroundings(
    connection: sqlite3.Connection, plan: Plan, options: SyncOptions, report: Report
) -> None:
    """Refresh what does not follow from files: prices, and which projects are on this disk."""
    if report.rows:
        from .prices import refresh_prices

        refresh_prices(connection)
    look_at_projects(connection)
    if options.git:
        from .git import ask_git

        ask_git(connection)
    if options.only_news and (report.files_read or report.files_gone):
        with transaction(connection):
            connection.executemany(
                "update sources set last_synced_at = ? where kind = ? and root = ?",
                ((report.started_at, root.source.name, root.name) for root in plan.roots),
            )


# ------------------------------------------------------------------------------------------------
# Carries a plan out: reads and parses what changed, and marks what is gone.


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
            begin=lambda: record_start(connection, report),
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


# ------------------------------------------------------------------------------------------------
# The rows of `sync_runs`: what each run did, and which runs were cut off.
#
# A run inserts its row, without an end, before it commits anything else. Whoever holds the
# writer's lock and finds such a row knows that its run was cut off, and records that.


CUT_OFF = "cut off: its process was killed, or the disk failed"
"""Error of a run that could not record its end."""


_COUNTS = ("files_read", "bytes_read", "rows", "issues")
_COLUMNS = ("started_at", "finished_at", *_COUNTS, "error")


def record_start(connection: sqlite3.Connection, report: Report) -> None:
    """Insert a row without an end, which shows that the process was killed, should that happen.

    A run that continues the row of earlier passes removes the end of that row.
    """
    report.is_running = True
    _note_cut_off(connection, report)
    if report.id is None:
        report.id = connection.execute(
            "insert into sync_runs (started_at, files_read, bytes_read, rows, issues)"
            " values (?, 0, 0, 0, 0)",
            (report.started_at,),
        ).lastrowid
    else:
        connection.execute("update sync_runs set finished_at = null where id = ?", (report.id,))


def record_end(
    connection: sqlite3.Connection, report: Report, clock: Clock, *, is_over: bool = True
) -> None:
    """Record what the run did, and its end if it `is_over`.

    Raises sqlite3.Error, unless the run itself ended with an error: that one is to be reported.
    """
    report.is_running = False
    report.finished_at = clock.now() if is_over else None
    values = {column: getattr(report, column) for column in ("id", *_COLUMNS)}
    try:
        if report.id is None:
            _note_cut_off(connection, report)
            statement = (
                f"insert into sync_runs ({', '.join(_COLUMNS)})"
                f" values ({', '.join(f':{column}' for column in _COLUMNS)}) returning id"
            )
        elif report.is_continued:
            added = ", ".join(f"{column} = {column} + :{column}" for column in _COUNTS)
            statement = (
                f"update sync_runs set finished_at = :finished_at, error = :error, {added}"
                " where id = :id returning id"
            )
        else:
            assignments = ", ".join(f"{column} = :{column}" for column in _COLUMNS)
            statement = f"update sync_runs set {assignments} where id = :id returning id"
        (report.id,) = connection.execute(statement, values).fetchone()
    except sqlite3.Error:
        if report.error is None:
            raise


def _note_cut_off(connection: sqlite3.Connection, report: Report) -> None:
    connection.execute(
        "update sync_runs set error = ?"
        " where finished_at is null and error is null and id is not ?",
        (CUT_OFF, report.id),
    )
