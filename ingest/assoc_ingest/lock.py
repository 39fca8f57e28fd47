"""A lock file, which one process at a time holds. The kernel releases it when the process dies.

Importing a library for this would take a tenth of the time of a sync without news.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import BusyError

_STEP = 0.05  # seconds
_HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK)

if sys.platform == "win32":
    import msvcrt

    _TAKE, _RELEASE = msvcrt.LK_NBLCK, msvcrt.LK_UNLCK

    def _switch(descriptor: int, how: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, how, 1)

else:
    import fcntl

    _TAKE, _RELEASE = fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN
    _switch = fcntl.flock


@contextmanager
def file_lock(path: Path, held: Callable[[], str], patience: float = 0) -> Iterator[None]:
    """Hold the lock, and write the id of this process into its file.

    Raises BusyError with the sentence `held` if others hold it for `patience` seconds, and OSError
    if the file cannot be opened or locked.
    """
    end = time.monotonic() + patience
    while (descriptor := _taken(path)) is None:
        if time.monotonic() >= end:
            raise BusyError(held())
        time.sleep(_STEP)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        _switch(descriptor, _RELEASE)  # closing is not enough while a child has a copy of it
        os.close(descriptor)


def _taken(path: Path) -> int | None:
    """Return the descriptor of the lock, None if another process holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            _switch(descriptor, _TAKE)
            is_there = os.path.samestat(os.fstat(descriptor), path.stat())
        except FileNotFoundError:
            is_there = False
        except OSError as error:
            os.close(descriptor)
            if error.errno in _HELD:
                return None
            raise
        if is_there:
            return descriptor
        os.close(descriptor)  # the file was removed, and the next process makes another one
