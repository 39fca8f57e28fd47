"""Syncs whenever something changes: notifications, the loop of `watch`, and syncs before an
answer.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import NamedTuple, Protocol

from .. import terminal
from ..errors import PASSING, BusyError, NotFoundError, kind_of
from ..fields import now
from ..files.walk import Root, stored_time
from ..paths import identity
from ..source import DATABASE, entry_names, parts_of
from ..store.database import (
    BUSY_TIMEOUT,
    LOG_LIMIT,
    is_rebuild_due,
    lock_of,
    log_of,
    of_clock_behind,
    open_reader,
    resolved,
    writing,
)
from ..terminal import Progress
from ..upkeep.note import take_left
from .plan import Given, Places, Plan, Report, given_roots, places_of, root_paths
from .run import SyncOptions, sync_into

# ------------------------------------------------------------------------------------------------
# Syncs before answers: of what is new, as cheap as can be, and never for long.
#
# 1. The first one is a sync of everything. What it walked is remembered: directories and files with
#    their times and sizes.
# 2. The next ones compare those with the disk, which takes a fraction of a walk. A pass over the
#    places that changed reads what is new. A new directory, or anything that is missing, takes a
#    sync of everything.
# 3. After `RESCAN` seconds there is a sync of everything in any case.
#
# What a sync does not read in its time, another one will. None makes a database or derives tables
# again: that takes minutes, and is for a command that says so. Nothing is read while another
# process holds the lock, which does the same.


SECONDS = 2.0
"""How long files are read; a batch that was begun is finished."""

RESCAN = 30.0
"""Seconds after which everything is walked again."""

_Stamp = tuple[int, ...]


class News:
    """Reads what is new into one database, again and again."""

    def __init__(self, database: Path, patience: int = BUSY_TIMEOUT) -> None:
        """`patience` is how many milliseconds to wait for a process that keeps others out."""
        self._database = database
        self._patience = patience
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
                return ["The parser was updated. New files are read after: assoc-ingest sync"]
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
        reader = open_reader(self._database, self._patience)
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
            rest = f"{terminal.size(left)} still to be read; ask again."
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
    missing = [f"{root} is missing; its rows are kept." for root in report.missing_roots]
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
    return [
        "Another process is reading new files; those that it has not read yet are missing."
    ] * is_reading


# ------------------------------------------------------------------------------------------------
# Change notifications of the operating system. They start a sync; their absence prevents none.
#
# On Linux exactly the directories that a sync walks are watched, one by one: watching a root
# recursively would follow links out of it and include caches and whole repositories. Elsewhere
# the system watches a root as a whole and follows no links. A new directory requires a new
# watcher, which costs 30 microseconds for each directory. Changes that happened in the meantime
# are found by syncing the newly watched directories.
#
# Watching can fail at any time: a directory vanished, a file name is not UTF-8. It is then
# retried with growing delays, without notifications until then. If there are more directories
# than may be watched, those that changed last are watched: that is where agents work.


_STEP = 20  # milliseconds without a change that end a group of changes
_SLOW_STEP = 40  # when it was quiet for a while: each step wakes the processor
_QUIET = 60.0  # seconds without a change that count as quiet
_GROUP = 100  # milliseconds that a group takes at most
_FIRST_RETRY = 0.1  # seconds; doubled with each failure
_MORE = 600.0  # seconds until more directories are tried than the system last allowed
_IS_RECURSIVE = sys.platform != "linux"


class WatchError(Exception):
    """The system cannot report changes.

    `is_passing`: because a directory has just vanished. `is_limit`: there are too many directories.
    """

    def __init__(self, reason: str, *, is_passing: bool = False, is_limit: bool = False) -> None:
        super().__init__(reason)
        self.is_passing = is_passing
        self.is_limit = is_limit


class Watcher(Protocol):
    """Reports changes in the directories that it was opened for."""

    def wait(self, seconds: float) -> set[str]:
        """Return the paths that changed, as soon as one does; none after `seconds` or a stop.

        Raises WatchError if it cannot report changes any more.
        """
        ...

    def close(self) -> None: ...


OpenWatcher = Callable[[Collection[str], Event], Watcher]
"""Opens a watcher of directories, which returns when the event is set. Raises WatchError."""


class SystemWatcher:
    """The watcher of this operating system."""

    def __init__(self, directories: Collection[str], stop: Event) -> None:
        from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

        self._failure = WatchfilesRustInternalError
        self._stop = stop
        self._last_change = time.monotonic()
        try:
            # If each directory is watched by itself, those that cannot be read were left out.
            # Ignoring denied permissions would ignore all other errors, too.
            self._notify = RustNotify(
                sorted(filter(_is_text, directories)),
                False,  # no debugging output
                False,  # no polling
                0,
                _IS_RECURSIVE,
                _IS_RECURSIVE,  # ignore denied permissions
            )
        except FileNotFoundError as error:
            raise WatchError(str(error), is_passing=True) from error
        except (WatchfilesRustInternalError, OSError) as error:
            raise WatchError(_reason(error), is_limit=_LIMIT in str(error)) from error

    def wait(self, seconds: float) -> set[str]:
        milliseconds = max(1, int(seconds * 1000))
        is_quiet = time.monotonic() - self._last_change > _QUIET
        step = _SLOW_STEP if is_quiet else _STEP
        try:
            changes = self._notify.watch(_GROUP, step, milliseconds, self._stop)
        except (self._failure, OSError) as error:
            raise WatchError(_reason(error)) from error
        if changes == "signal":
            raise KeyboardInterrupt
        if isinstance(changes, str):  # a timeout, or the event is set
            return set()
        self._last_change = time.monotonic()
        return {path for _, path in changes}

    def close(self) -> None:
        self._notify.close()


def _is_text(path: str) -> bool:
    """Can the path be watched? Changes in one that is not UTF-8 are found by the next rescan."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


_LIMIT = "watch limit"  # what the library calls it


def _reason(error: Exception) -> str:
    if _LIMIT in str(error):
        return "too many directories for fs.inotify.max_user_watches"
    if "os error 24" in str(error) and _can_open():
        return "too many programs that watch for fs.inotify.max_user_instances"
    return str(error)


def _can_open() -> bool:
    """Can this process open another file? If not, the same error is raised."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


def _last_change(directory: str) -> float:
    """Return the time of the last change in a directory, 0 if that is unknown."""
    try:
        newest = Path(directory).stat().st_mtime
        with os.scandir(directory) as entries:
            for entry in entries:
                newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
    except OSError:
        return 0.0
    return newest


class Wakeups:
    """Reports changes as far as the system allows."""

    def __init__(
        self, stop: Event, longest_retry: float, tell: Callable[[str], None], opened: OpenWatcher
    ) -> None:
        self._stop = stop
        self._longest_retry = longest_retry
        self._tell = tell
        self._open = opened
        self._watcher: Watcher | None = None
        self._heard: dict[str, int] = {}
        self._passed_over: dict[str, int] = {}
        self._most: int | None = None  # directories that the system allows, if that is known
        self._more_at = 0.0
        self._failures = 0
        self._opened_at = self._retry_at = 0.0

    def listen(self, roots: Collection[Path], directories: dict[str, int]) -> set[str]:
        """Watch these directories; return those that were not watched before.

        `directories` are those of a walk below `roots`, with their inodes.
        """
        wanted = directories
        if _IS_RECURSIVE:
            wanted = {str(root): directories.get(str(root), 0) for root in roots}
        known = {**self._heard, **self._passed_over}
        is_heard = self._watcher is not None and wanted.items() <= known.items()
        if is_heard or not wanted or time.monotonic() < self._retry_at:
            return set()
        chosen = self._chosen(wanted)
        new = {path for path, inode in chosen.items() if self._heard.get(path) != inode}
        self.close()  # first: the number of watches is limited
        try:
            self._watcher = self._open(list(chosen), self._stop)
        except WatchError as error:
            if error.is_limit and len(chosen) > 1:
                self._most, self._more_at = len(chosen) // 2, time.monotonic() + _MORE
                self._retry_at = (
                    time.monotonic() + _FIRST_RETRY
                )  # until the old watches are released
                self._heard = {}
            else:
                self._fail(error)
            return set()
        self._heard, self._opened_at = chosen, time.monotonic()
        self._passed_over = {path: wanted[path] for path in wanted.keys() - chosen.keys()}
        if self._passed_over:
            self._tell(
                "Only the most recently changed directories are watched (there are more than "
                "fs.inotify.max_user_watches allows); changes in others are found "
                f"within {self._longest_retry:g} s."
            )
        return new

    def _chosen(self, wanted: dict[str, int]) -> dict[str, int]:
        """Return as many directories as the system allows, those that changed last."""
        if self._most is not None and time.monotonic() >= self._more_at:
            self._most = None
        if self._most is None or len(wanted) <= self._most:
            return dict(wanted)
        latest = sorted(wanted, key=_last_change, reverse=True)
        return {path: wanted[path] for path in latest[: self._most]}

    def wait(self, seconds: float) -> set[str]:
        """Return the paths that changed; none after `seconds`, or after a stop."""
        if self._watcher is None:
            until_retry = max(0.0, self._retry_at - time.monotonic())
            self._stop.wait(min(seconds, until_retry) if self._retry_at else seconds)
            return set()
        try:
            changed = self._watcher.wait(seconds)
        except WatchError as error:
            if time.monotonic() - self._opened_at > self._longest_retry:
                self._failures = 0
            self.forget()
            self._fail(error)
            return set()
        for path in changed & self._heard.keys():
            del self._heard[path]  # it may be a new directory with the same name and inode
        return changed

    def forget(self) -> None:
        """Assume that nothing is watched: the next `listen` starts over."""
        self.close()
        self._heard, self._passed_over = {}, {}

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def _fail(self, error: WatchError) -> None:
        self._heard = {}
        wait = min(self._longest_retry, _FIRST_RETRY * 2**self._failures)
        self._retry_at = time.monotonic() + wait
        self._failures = min(self._failures + 1, 30)
        if not error.is_passing:
            self._tell(
                f"Change notifications are not available ({error}); "
                f"changes are found within {self._longest_retry:g} s."
            )


# ------------------------------------------------------------------------------------------------
# Syncs, then keeps the database up to date: wait for a change, sync, wait.
#
# 1. The first pass is a sync of everything. Its walk lists the directories.
# 2. The system is asked to report changes in them (`notifier`). A report starts a pass over the
#    directories where something changed (`changed_places`): a sync that is limited to those places.
#    If that is not enough (a file is missing, and may have moved), the pass covers everything.
# 3. After `until_rescan` seconds there is a pass over everything, whatever was reported. If that
#    finds a change that was not reported, watching starts over: notifications had stopped.
# 4. Every second the roots are compared with what they were. If one was created, removed, replaced,
#    mounted or unmounted, there is a pass over everything, too.
#
# The writer's lock is held all the time, so a note that a user wants to write is left for it
# (`upkeep/note`). Every second the database and its lock are compared with
# what they were, too: if one was removed or replaced, both are closed and opened again at their
# paths. If the disk is full or fails, the database is closed and opened again after `rescan`
# seconds, as often as necessary. A pass that read nothing writes nothing.


_TICK = 1.0  # seconds between two checks of the roots themselves
_SHARE = 0.001  # of a core that looking at everything may take; waiting takes as much again
_REST = 2  # the pause after a pass, as a multiple of its duration: at most a third of a core
_LONGEST_REST = 1.0  # seconds; the pause after a first pass of minutes should not be longer
_RUN = 600.0  # seconds of a watch in one row of sync_runs: a row per pass would be millions a year
_LOG_RATE = 64 * 1024 * 1024  # bytes of write-ahead log beyond its limit for one second of pause


@dataclass(frozen=True, slots=True)
class WatchOptions:
    source: str | None = None
    """Only roots of this kind."""
    rescan: float | None = None
    """Seconds after which everything is checked, whatever the system reported; see `until_rescan`
    for None."""


def until_rescan(options: WatchOptions, spent: float) -> float:
    """Return the seconds to the next check of everything, if one takes `spent` of processor.

    Without an option, checks take at most `_SHARE` of a core, however many files there are.
    """
    return max(RESCAN, spent / _SHARE) if options.rescan is None else options.rescan


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
        self._options = options
        self._rescan = until_rescan(options, 0.0)
        self._stop = stop
        self._tell = tell
        self._progress = progress
        self._wakeups = Wakeups(stop, self._rescan, self._say_once, opened)
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
            take_left(connection, self._database)
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
        started, used = time.monotonic(), time.thread_time()
        self._next_rescan = started + self._rescan  # if this fails
        plan = self._sync(connection, None)
        spent = 0.0 if plan.work else time.thread_time() - used
        self._next_rescan = started + until_rescan(self._options, spent)
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
    if isinstance(error, sqlite3.Error):
        return kind_of(error) in PASSING
    return True
