"""Syncs, then keeps the database up to date: wait for a change, sync, wait.

1. The first pass is a sync of everything. Its walk lists the directories.
2. The system is asked to report changes in them (`notifier`). A report starts a pass over the
   directories where something changed (`changed_places`): a sync that is limited to those places.
   If that is not enough (a file is missing, and may have moved), the pass covers everything.
3. Every `rescan` seconds there is a pass over everything, whatever was reported. If it finds a
   change that was not reported, watching starts over: notifications had stopped somewhere.
4. Every second the roots are compared with what they were. If one was created, removed, replaced,
   mounted or unmounted, there is a pass over everything, too.

The writer's lock is held all the time. Every second the database and its lock are compared with
what they were, too: if one was removed or replaced, both are closed and opened again at their
paths. If the disk is full or fails, the database is closed and opened again after `rescan` seconds,
as often as necessary. A pass that read nothing writes nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import NamedTuple

from ..errors import BusyError, NotFoundError
from ..failures import PASSING, kind_of
from ..files.walk import Root
from ..paths import identity
from ..store.clock import of_clock_behind
from ..store.database import LOG_LIMIT, writing
from ..store.location import lock_of, log_of, resolved
from ..store.report import Progress, Report
from ..when import now
from .changed_places import places_of
from .notifier import OpenWatcher, SystemWatcher, Wakeups
from .plan import Places, Plan
from .roots import Given, given_roots, root_paths
from .run import SyncOptions, sync_into

_TICK = 1.0  # seconds between two checks of the roots themselves
_REST = 2  # the pause after a pass, as a multiple of its duration: at most a third of a core
_LONGEST_REST = 1.0  # seconds; the pause after a first pass of minutes should not be longer
_RUN = 600.0  # seconds of a watch in one row of sync_runs: a row per pass would be millions a year
_LOG_RATE = 64 * 1024 * 1024  # bytes of write-ahead log beyond its limit for one second of pause


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watch."""

    source: str | None = None
    """Only roots of this kind."""
    rescan: float = 30.0
    """Seconds after which everything is checked, whatever the system reported."""


class _Held(NamedTuple):
    """The files that a watch has open, None if they are missing."""

    database: tuple[int, int] | None
    lock: tuple[int, int] | None


Tell = Callable[[Report | str], None]
"""Called with the report of each pass that did something, and with messages for the user."""


def watch(
    database: Path,
    paths: Sequence[Path],
    options: WatchOptions,
    stop: Event,
    tell: Tell,
    *,
    progress: Progress | None = None,
    opened: OpenWatcher = SystemWatcher,
) -> None:
    """Keep the database up to date with `paths`, or with all known roots, until `stop` is set.

    The current batch is finished first. `progress` is called during the first pass. Raises
    UsageError for a path that is not a root, BusyError if another process writes, and DatabaseError
    or sqlite3.Error if the database belongs to another program, is damaged, or cannot be used from
    the beginning. Later, temporary errors are reported and the pass is retried.
    """
    given = given_roots(paths, options.source)
    _Watch(resolved(database), given, options, stop, tell, progress, opened).run()


class _Watch:
    """The state of a watch between passes."""

    def __init__(
        self,
        database: Path,
        given: Sequence[Given],
        options: WatchOptions,
        stop: Event,
        tell: Tell,
        progress: Progress | None,
        opened: OpenWatcher,
    ) -> None:
        self._database = database
        self._given = given
        self._source = options.source
        self._rescan = options.rescan
        self._stop = stop
        self._tell = tell
        self._progress = progress
        self._wakeups = Wakeups(stop, options.rescan, self._say_once, opened)
        self._said: set[str] = set()
        self._refused: dict[str, tuple[tuple[int, ...], str]] = {}
        self._is_first = True
        self._roots: list[Root] = []
        self._directories: dict[str, int] = {}
        self._places: dict[Path, tuple[int, int] | None] = {}
        self._next_rescan = 0.0
        self._written = False
        self._run_id: int | None = None
        self._run_ends = 0.0

    def run(self) -> None:
        """Keep the database open until it is time to stop; open it again after a failure."""
        try:
            while True:  # at least once, so that an unusable database is an error
                try:
                    with writing(self._database) as connection:
                        self._keep_up(connection)
                except (sqlite3.Error, OSError, BusyError) as error:
                    if self._is_first or not _may_pass(error):
                        raise
                    self._say_once(f"{error}. Retrying in {self._rescan:g} s.")
                    self._wakeups.forget()
                    self._stop.wait(self._rescan)
                if self._stop.is_set():
                    break
        finally:
            self._wakeups.close()

    def _keep_up(self, connection: sqlite3.Connection) -> None:
        """Run passes until it is time to stop, or until the database was replaced."""
        held, self._run_id = self._held(), None
        self._pass_over_all(connection)
        while not self._stop.is_set():
            new = self._wakeups.listen([root.path for root in self._roots], self._directories)
            if new:  # changes before they were watched were not reported
                self._pass_over(connection, places_of(new, self._roots))
                continue
            changed = self._wakeups.wait(min(_TICK, self._until_rescan()))
            if (now := self._held()) != held:
                self._tell(_lost(held, now))
                self._said.clear()
                self._wakeups.forget()
                return
            if self._has_moved():
                self._wakeups.forget()
                self._pass_over_all(connection)
            elif self._until_rescan() == 0:
                plan = self._pass_over_all(connection)
                if plan.work and not changed:
                    self._wakeups.forget()
            elif changed:
                self._pass_over(connection, places_of(changed, self._roots))
            else:
                self._empty_log(connection)

    def _held(self) -> _Held:
        return _Held(identity(self._database), identity(lock_of(self._database)))

    # -- passes ----------------------------------------------------------------------------------

    def _pass_over_all(self, connection: sqlite3.Connection) -> Plan:
        """Run a pass over everything; record the roots and directories."""
        paths = root_paths(connection, self._given, self._source)
        self._places = {path: identity(path) for path in paths}  # before the pass
        self._next_rescan = time.monotonic() + self._rescan
        plan = self._sync(connection, None)
        self._roots, self._directories = plan.roots, plan.directories
        self._empty_log(connection)
        return plan

    def _pass_over(self, connection: sqlite3.Connection, places: Places) -> None:
        """Run a pass over some places, or over everything if that is not enough."""
        if not places:
            return
        plan = self._sync(connection, places)
        if plan.is_doubtful:
            self._pass_over_all(connection)
        else:
            self._directories.update(plan.directories)

    def _sync(self, connection: sqlite3.Connection, places: Places | None) -> Plan:
        started = time.monotonic()
        report = self._new_report()
        options = SyncOptions(self._source, only_news=not self._is_first)
        try:
            plan = sync_into(
                connection, self._given, options, report, self._progress,
                places=places, is_stopped=self._stop.is_set,
            )  # fmt: skip
        except NotFoundError as error:  # an agent may be installed later
            self._say_once(f"{error} Waiting until one appears.")
            plan, self._is_first = Plan(), False
        self._continue(report)
        report.seconds = time.monotonic() - started
        if places is not None:
            report.files_seen = 0  # unknown after a pass over some places
        if not plan.is_doubtful:
            self._report(report)
        self._rest(report.seconds)
        return plan

    def _new_report(self) -> Report:
        """Return the report of a pass, which continues the row of the passes just before it."""
        if self._run_id is None or time.monotonic() >= self._run_ends:
            return Report(now(), refused=self._refused)
        return Report(now(), self._run_id, is_continued=True, refused=self._refused)

    def _continue(self, report: Report) -> None:
        if report.error is not None:
            self._run_id = None
        elif report.id != self._run_id and report.id is not None:
            self._run_id, self._run_ends = report.id, time.monotonic() + _RUN

    def _report(self, report: Report) -> None:
        """Report what was read, and what could not be read, each path once."""
        if report.clock_behind and not self._is_first:  # the report of the first pass says so
            self._say_once(of_clock_behind(report.clock_behind))
        back = set(report.roots) - set(report.missing_roots)
        self._said.difference_update(map(_missing, back))
        if self._is_first or report.files_read or report.files_gone:
            self._written = True
            report.unreadable = [pair for pair in report.unreadable if self._is_new(_unread(*pair))]
            report.missing_roots = [r for r in report.missing_roots if self._is_new(_missing(r))]
            self._tell(report)
            self._is_first, self._progress = False, None
            return
        for pair in report.unreadable:
            self._say_once(_unread(*pair))
        for root in report.missing_roots:
            self._say_once(_missing(root))

    def _say_once(self, sentence: str) -> None:
        if self._is_new(sentence):
            self._tell(sentence)

    def _is_new(self, sentence: str) -> bool:
        """Is this message printed for the first time?"""
        is_new = sentence not in self._said
        self._said.add(sentence)
        return is_new

    # -- pauses ----------------------------------------------------------------------------------

    def _rest(self, seconds: float) -> None:
        """Pause for a while, in proportion to the duration of the pass.

        A reader with an old snapshot keeps the write-ahead log from being emptied. The larger the
        log, the longer the pause.
        """
        try:
            log = log_of(self._database).stat().st_size
        except FileNotFoundError:
            log = 0
        rest = min(seconds * _REST, _LONGEST_REST)
        self._stop.wait(min(max(rest, (log - LOG_LIMIT) / _LOG_RATE), self._rescan))

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        """Copy the write-ahead log into the database, as far as readers allow.

        Only in a pause: while there is much to write, SQLite does it itself.
        """
        if self._written:
            connection.execute("pragma wal_checkpoint(passive)").fetchall()
            self._written = False

    def _until_rescan(self) -> float:
        return max(0.0, self._next_rescan - time.monotonic())

    def _has_moved(self) -> bool:
        """Was one of the directories of roots created, removed or replaced?"""
        return any(identity(path) != before for path, before in self._places.items())


def _lost(before: _Held, now: _Held) -> str:
    if now.database is None:
        return "The database was removed. Creating a new one."
    if now.database != before.database:
        return "The database was replaced. Continuing with the new one."
    return "The lock file was removed. Creating it again."


def _unread(path: str, reason: str) -> str:
    return f"Could not read {path}: {reason}"


def _missing(root: str) -> str:
    return f"Root is missing; its rows are kept: {root}"


def _may_pass(error: Exception) -> bool:
    """Is the error temporary?"""
    if isinstance(error, sqlite3.Error):
        return kind_of(error) in PASSING
    return True
