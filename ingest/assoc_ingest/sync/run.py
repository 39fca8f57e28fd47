"""A sync: finds what is new in the homes of agents, and stores it.

`sync` opens the database and has the writer's lock; `sync_into` makes one pass:

0. If an older version derived the tables, they are derived again (`rebuild`).
1. The roots are found and walked (`plan`): which files changed, and which are gone.
2. `batches` carries the plan out: what changed is read, parsed and stored.
3. Missing files are marked as gone; their rows stay.
4. The directories of projects are checked, and the end of the run is recorded in `sync_runs`.

A sync that finds nothing new, as most do, does not import `batches` and what that needs.
"""

from __future__ import annotations

import gc
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..errors import UsageError
from ..fields import now
from ..files.exclusions import doubtful_logs, to_read_again
from ..files.walk import Root
from ..source import facts_of
from ..store.database import Clock, is_rebuild_due, open_reader, transaction, writing
from ..store.swap import building
from ..terminal import Progress
from .plan import (
    Given,
    Places,
    Plan,
    Report,
    find_lost_roots,
    find_roots,
    given_roots,
    is_large,
    look_at_directories,
    look_at_projects,
    make_plan,
)

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
                    from .batches import execute

                    execute(
                        connection, plan, report, clock, progress, is_stopped,
                        begin=lambda: record_start(connection, report),
                        thorough=options.full, jobs=options.jobs, is_new=goes_on,
                    )  # fmt: skip
                derive_what_others_decide(connection)
                derive_repositories(connection)
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


def derive_repositories(connection: sqlite3.Connection) -> None:
    """Find out which projects are one repository, if the database is from before that was known."""
    rows = connection.execute("select id from projects where repository_key is null")
    if unknown := {id_ for (id_,) in rows}:
        from ..derive.projects import refresh_named

        with transaction(connection):
            refresh_named(connection, unknown)


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
