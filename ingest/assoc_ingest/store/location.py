"""Where the database is: one file, one lock, and only its own files next to it.

These files are next to it while they are needed:

- `<db>.lock`, which the writer holds. The kernel releases it when the process dies.
- `<db>-wal`, `<db>-shm`, `<db>-journal` of SQLite. Without a database, a deleted one left them, and
  SQLite would apply them to a new one.
- `<db>-unfinished`, a directory for complete copies of the database. Only the holder of the lock
  creates it. So whoever takes the lock removes it first: a killed process left it there.

Symbolic links are resolved first, so that the lock is the same for every path that leads to the
database. A second hard link is refused: SQLite keeps a log for each name, and what is in one log is
missing from the other.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import BusyError, DatabaseError, DatabaseIOError

_UNFINISHED = "-unfinished"
_LOG = ("-wal", "-shm")
_LEFT = (*_LOG, "-journal")


def resolved(path: Path) -> Path:
    """Return a path with links resolved; its target need not exist yet.

    A path without links is returned as given. Raises DatabaseError for links that lead nowhere, and
    DatabaseIOError for a path that cannot be examined.
    """
    real = Path(os.path.realpath(path))
    try:
        is_link = stat.S_ISLNK(real.lstat().st_mode)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            why = error.strerror or str(error)
            raise DatabaseIOError(
                f"{path} cannot be used: {why}. Give another file: --db FILE"
            ) from error
        is_link = False
    if is_link:
        raise DatabaseError(f"{path} is a circular symbolic link. Give another file: --db FILE")
    return path if real == path.absolute() else real


def log_of(path: Path) -> Path:
    """Return the write-ahead log, where SQLite keeps what is not yet in the database file."""
    return Path(f"{path}-wal")


def lock_of(path: Path) -> Path:
    """Return the lock file of a database."""
    return Path(f"{path}.lock")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the writer's lock; what a killed process or a deleted database left is removed.

    Raises BusyError if another process has the lock, and DatabaseError if the lock is not a regular
    file or the database has a second hard link.
    """
    from filelock import FileLock, Timeout

    path = resolved(path)
    lock_path = lock_of(path)
    _check_is_file(lock_path)
    lock = FileLock(lock_path, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError(
            f"Another process is writing to {path}{_holder(lock_path)}. "
            "Try again when it has ended; a watch reads new files by itself."
        ) from None
    try:
        lock_path.write_text(f"{os.getpid()}\n")
        _remove_what_is_left(path)
        _check_has_one_name(path)
        yield
    finally:
        lock.release()


def _check_is_file(lock_path: Path) -> None:
    """Refuse a link, which could lead another writer elsewhere, and a pipe, which would block."""
    try:
        mode = lock_path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise DatabaseError(
            f"{lock_path} should be a lock file, but is not a regular file. "
            "Remove it and try again."
        )


def _holder(lock_path: Path) -> str:
    try:
        pid = lock_path.read_bytes().strip()
    except OSError:
        return ""
    return f" (process {pid.decode()})" if pid.isdigit() else ""


def _remove_what_is_left(path: Path) -> None:
    """Remove copies that a killed process left, and the log of a deleted database.

    Processes that still read the deleted database have its log open and do not need the name.
    SQLite discards a log itself when it opens an empty file, but not the index of the log (`-shm`).
    """
    copies = unfinished(path)
    if os.path.lexists(copies):
        if copies.is_symlink() or not copies.is_dir():
            raise DatabaseError(
                f"{copies} is in the way of temporary copies: move it away and try again."
            )
        shutil.rmtree(copies)
    if not (path.exists() and path.stat().st_size):
        for ending in _LEFT:
            Path(f"{path}{ending}").unlink(missing_ok=True)


def _check_has_one_name(path: Path) -> None:
    if has_second_name(path):
        raise DatabaseError(
            f"{path} has a second hard link, through which another process could write to it "
            f"unnoticed. Remove one of the links; to find both: find / -xdev -samefile '{path}'"
        )


def has_second_name(path: Path) -> bool:
    """Does the file have several hard links?"""
    return path.exists() and path.stat().st_nlink > 1


# -- temporary copies ----------------------------------------------------------------------------


def unfinished(path: Path) -> Path:
    """Return the directory for copies of a database that are being made."""
    return Path(f"{path}{_UNFINISHED}")


@contextmanager
def temporary_directory(path: Path) -> Iterator[Path]:
    """Yield an empty private directory for copies of a database. The caller holds the lock.

    Raises BusyError if another process has one, which can happen where locks have no effect.
    """
    directory = unfinished(resolved(path))
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        raise BusyError(f"Another process is writing to {path}. Try again later.") from None
    try:
        yield directory
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(directory)


# -- the log -------------------------------------------------------------------------------------


@contextmanager
def log_stays_with(path: Path) -> Iterator[None]:
    """Afterwards, remove the log if the database was deleted or replaced in the meantime.

    A connection to such a file leaves its log when it closes, next to a database that the log does
    not belong to.
    """
    log = [Path(f"{path}{ending}") for ending in _LOG]
    before = [_stat(each) for each in (path, *log)]
    try:
        yield
    finally:
        now = [_stat(each) for each in (path, *log)]
        if not _is_same(before[0], now[0]):
            for each, was, is_ in zip(log, before[1:], now[1:], strict=True):
                if _is_same(was, is_):
                    each.unlink(missing_ok=True)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _is_same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    return one is not None and other is not None and os.path.samestat(one, other)
