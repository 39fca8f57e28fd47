"""Waits until the next clock tick before a file is read that changed in this one.

File times move in ticks: a few milliseconds by the kernel's clock, or a second or two where the
file system stores no more. If a file is written again in the tick in which it was read, with the
same size, its stat does not change. So reading waits for the next tick: any later change then gets
another time. A sync waits at most once, since all its files were listed before.
"""

from __future__ import annotations

import os
import sys
import time

_MILLISECOND = 1_000_000
_EXFAT = 10 * _MILLISECOND
_SECOND = 1_000_000_000
_FAT = 2 * _SECOND
_SLACK = 50 * _MILLISECOND  # a time further ahead comes from another clock
_COARSE = 5  # CLOCK_REALTIME_COARSE, which Linux uses for the times of files


def wait_out(stamp: int) -> None:
    """Wait until a change would get another time than `stamp`, in nanoseconds."""
    step = _step(stamp)
    while 0 <= (left := stamp + step - present()) <= step + _SLACK:
        time.sleep((left + _MILLISECOND) / _SECOND)


def changed_ns(mtime_ns: int, ctime_ns: int) -> int:
    """Return the time that shows a change: the mtime can be set to any value."""
    return mtime_ns if os.name == "nt" else ctime_ns  # on Windows ctime is the creation time


def present() -> int:
    """Return the time that a file changed now would get, before its file system rounds it."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(_COARSE)
    return time.time_ns()


def _step(stamp: int) -> int:
    """Return the resolution of a file system's times, as far as one of them shows it."""
    if stamp % _SECOND == 0:
        return _FAT
    return _EXFAT if stamp % _EXFAT == 0 else 0
