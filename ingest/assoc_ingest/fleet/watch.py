"""Pushes after every sync, until stopped.

The database tells that something changed: its file, or its log, has another size or time. It is
looked at every two seconds, so that many small batches become one push. After an error it is tried
again, first after a second, and then after twice as long each time, up to five minutes: a laptop
may be offline for days, and a full disk or a busy database passes. What is not set up ends it at
its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

from ..errors import UsageError
from ..failures import as_known
from ..store.database import log_of, resolved
from .push import Report

_PAUSE = 2.0
"""Seconds between two looks."""
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 300.0

_Seen = tuple[object, ...]


def watch(
    database: Path,
    stop: Event,
    push: Callable[[], Report],
    tell: Callable[[Report], None],
    complain: Callable[[str], None],
    *,
    pause: float = _PAUSE,
    first_retry: float = _FIRST_RETRY,
) -> None:
    """Push, then again after each change. `complain` gets the sentence of each new error."""
    database = resolved(database)
    pushed: _Seen | None = None
    retry, last_error = first_retry, ""
    while not stop.is_set():
        seen = _seen(database)
        if seen == pushed:
            stop.wait(pause)
            continue
        try:
            report = push()
        except Exception as error:
            known = as_known(error)
            if known is None or (pushed is None and isinstance(known, UsageError)):
                raise
            if str(known) != last_error:
                complain(f"{known} Trying again.")
            last_error = str(known)
            stop.wait(retry)
            retry = min(2 * retry, _LONGEST_RETRY)
            continue
        if report.calls or last_error or pushed is None:
            tell(report)
        pushed, retry, last_error = seen, first_retry, ""
        stop.wait(pause)


def _seen(database: Path) -> _Seen:
    """Return what differs after every commit."""
    found: list[object] = []
    for path in (database, log_of(database)):
        try:
            status = path.stat()
        except OSError:
            found.append(None)
        else:
            found += [status.st_size, status.st_mtime_ns]
    return tuple(found)
