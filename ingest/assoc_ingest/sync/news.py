"""Syncs before answers: of what is new, as cheap as can be, and never for long.

1. The first one is a sync of everything. What it walked is remembered: directories and files with
   their times and sizes.
2. The next ones compare those with the disk, which takes a fraction of a walk. A pass over the
   places that changed reads what is new. A new directory, or anything that is missing, takes a sync
   of everything.
3. After `RESCAN` seconds there is a sync of everything in any case.

What a sync does not read in its time, another one will. None makes a database or derives tables
again: that takes minutes, and is for a command that says so. Nothing is read while another process
holds the lock, which does the same.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from .. import humanize
from ..entry import entry_names
from ..errors import BusyError, NotFoundError
from ..files.stored_names import stored_time
from ..files.walk import Root
from ..paths import identity
from ..source import DATABASE, parts_of
from ..store.database import open_reader, writing
from ..store.derivation import is_rebuild_due
from ..store.report import Report
from ..when import now
from .changed_places import places_of
from .plan import Places, Plan
from .run import SyncOptions, sync_into

SECONDS = 2.0
"""How long files are read; a batch that was begun is finished."""

RESCAN = 30.0
"""Seconds after which everything is walked again."""

_Stamp = tuple[int, ...]


class News:
    """Reads what is new into one database, again and again."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file: tuple[int, int] | None = None
        self._roots: list[Root] = []
        self._directories: dict[str, int] = {}
        self._files: dict[str, _Stamp] = {}
        self._databases: set[str] = set()
        self._rescan_at = 0.0
        self._missing: list[str] = []
        self._refused: dict[str, tuple[tuple[int, ...], str]] = {}

    def read(self, seconds: float = SECONDS) -> list[str]:
        """Read what is new; return a sentence for each thing that was not read, and why.

        Raises DatabaseError if there is no database, or it is not a current one.
        """
        try:
            if self._is_known() and (changed := self._changed()) is not None:
                places = places_of(changed, self._roots)
                if not places or self._pass(places, seconds):
                    return self._missing
            if self._is_due():
                return ["The parser was updated, and nothing new is read until: assoc-ingest sync"]
            self._pass(None, seconds)
        except BusyError:
            return _of_another(self._database)
        except NotFoundError:
            return []  # no home is known: there is nothing to read
        return self._missing

    def _is_known(self) -> bool:
        """Is it known how the files were when everything was last walked, not long ago?"""
        return time.monotonic() < self._rescan_at and self._file == identity(self._database)

    def _is_due(self) -> bool:
        reader = open_reader(self._database)
        try:
            return is_rebuild_due(reader)
        finally:
            reader.close()

    def _pass(self, places: Places | None, seconds: float) -> bool:
        """Sync some places, or everything; return False if some places are not enough."""
        report = Report(now(), refused=self._refused)
        started, end = time.time_ns(), time.monotonic() + seconds
        rescan_at, self._rescan_at = self._rescan_at, 0.0  # if this fails, the next one walks all
        is_late = False

        def is_over() -> bool:
            nonlocal is_late
            is_late = is_late or time.monotonic() >= end
            return is_late

        options = SyncOptions(only_news=True)
        with writing(self._database) as connection:
            plan = sync_into(connection, [], options, report, places=places, is_stopped=is_over)
            if plan.is_doubtful:
                return False
            if places is None:
                self._missing = _not_read(report)
                self._learn(connection, plan, started)
                rescan_at = time.monotonic() + RESCAN
        if is_late and (left := plan.bytes - report.bytes_read) > 0:
            rest = f"{humanize.size(left)} still to be read; ask again."
            self._missing = [*_not_read(report), rest]
        else:
            self._rescan_at = rescan_at
        return True

    # -- what is on the disk ----------------------------------------------------------------------

    def _learn(self, connection: sqlite3.Connection, plan: Plan, started: int) -> None:
        """Remember what was read, as it was, and the directories, unless they change just now."""
        self._file = identity(self._database)
        self._roots = plan.roots
        self._directories = {}
        for path in plan.directories:
            stamp = _stamp_of_directory(path)
            self._directories[path] = -1 if stamp is None or stamp >= started - 10**9 else stamp
        roots = {(root.source.name, root.name): root for root in plan.roots}
        self._files, self._databases = {}, set()
        for kind, name, path, is_database, size, *times in connection.execute(
            "select s.kind, s.root, f.path, f.kind = ?, f.size, f.mtime_ns, f.ctime_ns"
            " from files f join sources s on s.id = f.source_id where f.gone_at is null",
            (DATABASE,),
        ):
            if (kind, name) in roots and entry_names(path) is None:
                location = roots[kind, name].location(parts_of(path))
                self._files[location] = (size, *times)
                if is_database:
                    self._databases.add(location)

    def _changed(self) -> list[str] | None:
        """Return the files that changed or are new, None if everything has to be walked."""
        changed = []
        for path, before in self._directories.items():
            stamp = _stamp_of_directory(path)
            if stamp is None:
                return None
            if stamp != before:
                new = self._new_in(path)
                if new is None:
                    return None
                changed += new
                # A file that is made in the same tick of the clock would not change it again.
                self._directories[path] = stamp if stamp < time.time_ns() - 10**9 else -1
        for path, known in self._files.items():
            status = _with_log(path) if path in self._databases else _status(path)
            if status is None:
                return None
            if status != known:
                self._files[path] = status  # as it was before it is read
                if (status[0], *map(stored_time, status[1:])) != known:
                    changed.append(path)
        return changed

    def _new_in(self, directory: str) -> list[str] | None:
        """Return the files of a directory that are not known, None if it has a new directory."""
        new = []
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path not in self._directories and places_of([entry.path], self._roots):
                        return None
                elif entry.path not in self._files:
                    new.append(entry.path)
        return new


def _stamp_of_directory(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return None


def _status(path: str) -> _Stamp | None:
    """Return the size and the times of a file."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _with_log(path: str) -> _Stamp | None:
    """Return the size and the times of a database together with its log, as they are stored."""
    status, log = _status(path), _status(f"{path}-wal")
    if status is None or log is None:
        return status
    return status[0] + log[0], max(status[1], log[1]), max(status[2], log[2])


def _not_read(report: Report) -> list[str]:
    missing = [f"{root} is missing; what it held is kept." for root in report.missing_roots]
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
