"""One pass: discover, tail, parse, apply.

1. The roots are found and walked (`plan`): what changed, and what is gone.
2. What changed is read and parsed (`reading`), and goes to the store in batches of about 32 MB. A
   rewritten file is one transaction whatever its size: no reader sees half of it.
3. Files that are missing are marked as gone; their rows stay.
4. The projects' directories are looked at, and the run leaves its row in `sync_runs`.
"""

from __future__ import annotations

import gc
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import directories
from .database import open_reader, writing
from .discover import Root, recognised
from .outcome import Report
from .plan import find_roots, make_plan, match_moved
from .reading import Closed, Opened, Part, Step, Unchanged, Unreadable, read
from .sources import SOURCES
from .store import Batch, OpenFile, Written
from .when import from_milliseconds

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes to read."""

_BYTES_AHEAD = 32 * 1024 * 1024  # input that may be read while a batch is committed


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """What a sync is asked to do beside the usual."""

    source: str | None = None
    """Only roots of this kind."""
    full: bool = False
    """Compare every byte of what was read, whatever the files' stat says."""
    dry_run: bool = False
    """Only say what would be read."""
    git: bool = False
    """Ask git about the projects that are on this disk."""


def sync(
    database: Path,
    paths: Sequence[Path],
    options: SyncOptions | None = None,
    progress: Progress | None = None,
) -> Report:
    """Bring the database up to date with the roots `paths`, or with all known ones.

    Raises UsageError for a path that is no root, NotFoundError if no home is found, BusyError if
    another process writes, DatabaseError if the database is not ours, and sqlite3.Error if it
    cannot be read or written; whatever was committed before stays.
    """
    started = time.monotonic()
    options = options or SyncOptions()
    report = Report(started_at=_now())
    given = [root for path in paths for root in recognised(path, SOURCES, options.source)]
    if options.dry_run:
        _dry_run(database, given, options, report)
    else:
        if not database.exists():
            find_roots(None, given, options.source, Report(""))  # raises before one is made
        with writing(database) as connection, _uncollected():
            _run(connection, given, options, progress or (lambda done, total: None), report)
    report.seconds = time.monotonic() - started
    return report


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from looking for cycles: among a million records are none, and it takes long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _dry_run(database: Path, given: list[Root], options: SyncOptions, report: Report) -> None:
    connection = open_reader(database) if database.exists() else None
    roots = find_roots(connection, given, options.source, report)
    plan = make_plan(connection, roots, report, full=options.full)
    report.files_read, report.bytes_read = len(plan.work), plan.bytes
    report.files_gone = len(plan.gone)
    report.finished_at = _now()
    if connection is not None:
        connection.close()


def _run(
    connection: sqlite3.Connection,
    given: list[Root],
    options: SyncOptions,
    progress: Progress,
    report: Report,
) -> None:
    """Do it all, and leave a row in `sync_runs` that says how it went."""
    try:
        roots = find_roots(connection, given, options.source, report)
        _remember(connection, roots, report)
        plan = make_plan(connection, roots, report, full=options.full)
        moved = match_moved(plan)
        gone = [file.id for _, file in plan.gone if file.id not in moved]
        report.files_gone = len(gone)
        if plan.work or gone:
            _record_start(connection, report)
        total = plan.bytes
        with _Writer(connection, report, lambda done: progress(done, total)) as writer:
            for step in read(plan.work, thorough=options.full):
                writer.take(step)
            writer.mark_gone(gone)
        if report.rows:
            from .prices import refresh_prices

            refresh_prices(connection)
        directories.look_at_projects(connection)
        if options.git:
            directories.ask_git(connection)
    except BaseException as error:
        report.error = str(error) or type(error).__name__
        raise
    finally:
        _record_end(connection, report)


def _remember(connection: sqlite3.Connection, roots: Iterable[Root], report: Report) -> None:
    """Make or refresh the rows of the roots."""
    now = report.started_at
    connection.execute("begin immediate")
    connection.executemany(
        "insert into sources (kind, root, first_synced_at, last_synced_at) values (?1, ?2, ?3, ?3)"
        " on conflict (kind, root) do update set last_synced_at = ?3, gone_at = null",
        ((root.source.name, str(root.path), now) for root in roots),
    )
    connection.executemany(
        "update sources set gone_at = coalesce(gone_at, ?) where root = ?",
        ((now, root) for root in report.missing_roots),
    )
    connection.execute("commit")


def _record_start(connection: sqlite3.Connection, report: Report) -> None:
    """Leave the row of a run that has something to do: should it be killed, the row tells."""
    report.id = connection.execute(
        "insert into sync_runs (started_at, files_read, bytes_read, rows, issues)"
        " values (?, 0, 0, 0, 0)",
        (report.started_at,),
    ).lastrowid


def _record_end(connection: sqlite3.Connection, report: Report) -> None:
    report.finished_at = _now()
    columns = ("started_at", "finished_at", "files_read", "bytes_read", "rows", "issues", "error")
    values = [getattr(report, column) for column in columns]
    try:
        if report.id is None:
            report.id = connection.execute(
                f"insert into sync_runs ({', '.join(columns)}) values (?, ?, ?, ?, ?, ?, ?)", values
            ).lastrowid
        else:
            assignments = ", ".join(f"{column} = ?" for column in columns)
            connection.execute(
                f"update sync_runs set {assignments} where id = ?", (*values, report.id)
            )
    except sqlite3.Error:
        if report.error is None:  # else the first error is the one to tell
            raise


class _Writer:
    """Hands steps to the store, batch by batch.

    Indexing a batch and committing it are a few long statements, for which SQLite releases the
    interpreter. A thread runs them, and meanwhile the next files are read and parsed; their steps
    wait here until the connection is free. Inserting rows meanwhile would not pay: each row gives
    the interpreter away for a moment, and then has to wait for it.
    """

    def __init__(
        self, connection: sqlite3.Connection, report: Report, progress: Callable[[int], None]
    ) -> None:
        self._connection = connection
        self._report = report
        self._progress = progress
        self._batch: Batch | None = None
        self._file: OpenFile
        self._waiting: deque[Step] = deque()
        self._waiting_bytes = 0
        self._committer: ThreadPoolExecutor | None = None
        self._committing: Future[Written] | None = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit what is left; after an error, leave what was committed and nothing else."""
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

    def take(self, step: Step) -> None:
        """Apply a step now, or let it wait for a commit as long as not too much waits already."""
        self._waiting.append(step)
        self._waiting_bytes += _size(step)
        committing = self._committing
        if committing is None or committing.done() or self._waiting_bytes >= _BYTES_AHEAD:
            self._take_waiting()

    def mark_gone(self, file_ids: list[int]) -> None:
        """Note that files are missing."""
        self._take_waiting()
        self._settle()
        if file_ids:
            self._open_batch().mark_gone(file_ids)

    def _take_waiting(self) -> None:
        while self._waiting:
            step = self._waiting.popleft()
            self._waiting_bytes -= _size(step)
            self._apply(step)

    def _apply(self, step: Step) -> None:
        self._settle()
        if isinstance(step, Unreadable):
            self._report.unreadable.append((step.path, step.reason))
        elif isinstance(step, Unchanged):
            if not step.found.is_as(step.known):
                batch = self._open_batch()
                batch.note_stat(step.known, step.found, is_document=step.is_document)
        elif isinstance(step, Opened):
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
        elif isinstance(step, Closed):
            self._open_batch().close_file(self._file)
        else:
            self._apply_part(step)

    def _apply_part(self, part: Part) -> None:
        batch = self._open_batch()
        batch.add(self._file, part.records, part.frames, part.prefix, part.size)
        self._report.bytes_read += part.size
        self._progress(self._report.bytes_read)
        if batch.is_full and not part.is_open:
            batch.prepare()
            if self._committer is None:
                self._committer = ThreadPoolExecutor(1, "commit")
            self._committing = self._committer.submit(batch.finish)

    def _settle(self) -> None:
        """Wait for the commit that runs, if one does; its error is raised here."""
        committing, self._committing = self._committing, None
        if committing is not None:
            self._report.add(committing.result())
            self._batch = None

    def _open_batch(self) -> Batch:
        if self._batch is None:
            self._batch = Batch(self._connection, _now())
        return self._batch


def _size(step: Step) -> int:
    return step.size if isinstance(step, Part) else 0


def _now() -> str:
    return from_milliseconds(time.time_ns() // 1_000_000) or ""
