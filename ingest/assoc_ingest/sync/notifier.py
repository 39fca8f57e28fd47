"""Change notifications of the operating system. They start a sync; their absence prevents none.

On Linux exactly the directories that a sync walks are watched, one by one: watching a root
recursively would follow links out of it and include caches and whole repositories. Elsewhere the
system watches a root as a whole and follows no links. A new directory requires a new watcher, which
costs 30 microseconds for each directory. Changes that happened in the meantime are found by syncing
the newly watched directories.

Watching can fail at any time: a directory vanished, a file name is not UTF-8. It is then retried
with growing delays, without notifications until then. If there are more directories than may be
watched, those that changed last are watched: that is where agents work.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from threading import Event
from typing import Protocol

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

    def close(self) -> None:
        """Stop hearing."""
        ...


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
        """Return the paths that changed."""
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
        """Stop hearing."""
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
        """Stop listening."""
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
