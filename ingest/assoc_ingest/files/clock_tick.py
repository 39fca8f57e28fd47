"""A file that changed in this very tick is read in the next one.

The time of a file moves in steps: of some milliseconds, by the kernel's clock, or of a second or
two where the disk stores no more. Whoever reads a file and remembers its time does not see that it
is written again within the same step, with as many bytes. So the step is waited out: a change that
comes after the reading has begun then has a time of its own. No more than one wait comes upon a
sync, since all other files were listed before it.
"""

from __future__ import annotations

import os
import sys
import time

_MILLISECOND = 1_000_000
_EXFAT = 10 * _MILLISECOND
_SECOND = 1_000_000_000
_FAT = 2 * _SECOND
_SLACK = 50 * _MILLISECOND  # what is further ahead of the clock has the time of another one
_COARSE = 5  # CLOCK_REALTIME_COARSE, from which Linux takes the times of files


def wait_out(stamp: int) -> None:
    """Return when a change made now would have another time than `stamp`, in nanoseconds."""
    step = _step(stamp)
    while 0 <= (left := stamp + step - present()) <= step + _SLACK:
        time.sleep((left + _MILLISECOND) / _SECOND)


def changed_ns(mtime_ns: int, ctime_ns: int) -> int:
    """Return which of the times of a file tells that it changed: one may be set by anybody."""
    return mtime_ns if os.name == "nt" else ctime_ns  # there it is when the file was made


def present() -> int:
    """Return the time that a file would get that is changed now, before its disk cuts it."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(_COARSE)
    return time.time_ns()


def _step(stamp: int) -> int:
    """Return the step in which a disk stores times, as far as one of them shows it."""
    if stamp % _SECOND == 0:
        return _FAT
    return _EXFAT if stamp % _EXFAT == 0 else 0
