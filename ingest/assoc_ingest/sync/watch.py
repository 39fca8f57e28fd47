"""Sync, then keep the database up to date: wake up, look, sleep.

1. The first pass is a sync of everything. Its walk says which directories there are.
2. The system is asked to report changes in them (`notifier`). Whatever it reports is only a reason
   to look at the directories where something changed (`changed_places`); a pass over them is a sync
   that is limited to those places. If that is not enough (a file is missing, which may have
   moved), the pass covers everything.
3. Every `rescan` seconds there is a pass over everything, whatever was reported. If it finds a
   change that was not reported, watching starts over: notifications had stopped somewhere.
4. Every second the roots are compared with what they were: one that was made, removed, replaced,
   mounted or unmounted is a reason to look at everything, too.

The writer's lock is held all the time. Every second the database and its lock are compared with
what they were, too: if one was removed or replaced, it is released, and taken again under its
name. When the disk is full or fails, the database is closed and opened again after
`rescan` seconds, for as long as it takes. A pass that read nothing writes nothing.
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

_TICK = 1.0  # seconds between two looks at the roots themselves
_REST = 2  # times as long as the last pass took is the pause after it: a third of a core at most
_LONGEST_REST = 1.0  # seconds: after a first pass of minutes the next should not wait longer
_RUN = 600.0  # seconds of a watch that are one row of sync_runs: else a year would leave millions
_LOG_RATE = 64 * 1024 * 1024  # bytes of write-ahead log beyond its limit that make a second's pause


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watch."""

    source: str | None = None
    """Only roots of this kind."""
    rescan: float = 30.0
    """Seconds after which everything is checked, whatever the system reported."""


class _Held(NamedTuple):
    """What a watch has open; None is not there."""

    database: tuple[int, int] | None
    lock: tuple[int, int] | None


Tell = Callable[[Report | str], None]
"""Called with the report of each pass that did something, and with sentences for the user."""


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
    UsageError for a path that is no root, BusyError if another process writes, and DatabaseError or
    sqlite3.Error if the database is of another program, damaged, or unusable from the beginning;
    later, errors that may pass are reported and retried.
    """
    given = given_roots(paths, options.source)
    _Watch(resolved(database), given, options, stop, tell, progress, opened).run()


class _Watch:
    """What a watch knows from one pass to the next."""

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
        self._is_first = True
        self._roots: list[Root] = []
        self._directories: dict[str, int] = {}
        self._places: dict[Path, tuple[int, int] | None] = {}
        self._next_rescan = 0.0
        self._written = False
        self._run_id: int | None = None
        self._run_ends = 0.0

    def run(self) -> None:
        """Hold the database until it is time to stop; open it again when it failed."""
        try:
            while True:  # once at least, or a database that can't be used would be no error
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
        """Pass after pass, until it is time to stop or what is held is another file."""
        held, self._run_id = self._held(), None
        self._pass_over_all(connection)
        while not self._stop.is_set():
            new = self._wakeups.listen([root.path for root in self._roots], self._directories)
            if new:  # what happened before it was watched was not reported
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
        """Look at everything; note which roots and directories there are."""
        paths = root_paths(connection, self._given, self._source)
        self._places = {path: identity(path) for path in paths}  # before they are looked at
        self._next_rescan = time.monotonic() + self._rescan
        plan = self._sync(connection, None)
        self._roots, self._directories = plan.roots, plan.directories
        self._empty_log(connection)
        return plan

    def _pass_over(self, connection: sqlite3.Connection, places: Places) -> None:
        """Look at some places, and at everything if that is not enough."""
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
        except NotFoundError as error:  # an agent may be installed some day
            self._say_once(f"{error} Waiting until one appears.")
            plan, self._is_first = Plan(), False
        self._continue(report)
        report.seconds = time.monotonic() - started
        if places is not None:
            report.files_seen = 0  # unknown after a look at some places
        if not plan.is_doubtful:
            self._report(report)
        self._rest(report.seconds)
        return plan

    def _new_report(self) -> Report:
        """Return the report of a pass, which goes on with the row of the passes just before it."""
        if self._run_id is None or time.monotonic() >= self._run_ends:
            return Report(now())
        return Report(now(), self._run_id, is_continued=True)

    def _continue(self, report: Report) -> None:
        if report.error is not None:
            self._run_id = None
        elif report.id != self._run_id and report.id is not None:
            self._run_id, self._run_ends = report.id, time.monotonic() + _RUN

    def _report(self, report: Report) -> None:
        """Report what was read, and once each what could not be read."""
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
        """Is this sentence printed for the first time?"""
        is_new = sentence not in self._said
        self._said.add(sentence)
        return is_new

    # -- pauses ----------------------------------------------------------------------------------

    def _rest(self, seconds: float) -> None:
        """Leave the machine to others for a while, in proportion to what the pass took.

        A reader that holds an old state keeps the write-ahead log from being emptied. The larger it
        is, the fewer passes add to it.
        """
        try:
            log = log_of(self._database).stat().st_size
        except FileNotFoundError:
            log = 0
        rest = min(seconds * _REST, _LONGEST_REST)
        self._stop.wait(min(max(rest, (log - LOG_LIMIT) / _LOG_RATE), self._rescan))

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        """Move what was committed from the write-ahead log to the database, as far as readers let.

        Only in a pause: SQLite does it itself in the midst of much writing.
        """
        if self._written:
            connection.execute("pragma wal_checkpoint(passive)").fetchall()
            self._written = False

    def _until_rescan(self) -> float:
        return max(0.0, self._next_rescan - time.monotonic())

    def _has_moved(self) -> bool:
        """Is one of the places of roots another directory than it was?"""
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
    """May the error be gone in a while, with nothing lost?"""
    if isinstance(error, sqlite3.Error):
        return kind_of(error) in PASSING
    return True
