"""Where the database lies: one file, one lock, and nothing beside it that is not its own.

Beside it lie, while they are needed:

- `<db>.lock`, which the one writer holds. The kernel frees it when the process dies.
- `<db>-wal`, `<db>-shm`, `<db>-journal`: SQLite's. Without a database they are what a deleted one
  left, and SQLite would lay them over a new one.
- `<db>-unfinished`, a directory for whole copies of the database. Only who holds the lock makes it.
  So whoever takes the lock removes it first: what is in it, a killed process left there.

A path is followed through its links first, so that whatever name leads to the database, the lock is
the same. A second name of the file itself (a hard link) is refused: SQLite keeps a log beside each
name, and what stands in one is missing from the other.
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
    """Return the file that a path leads to, also through a link to what is not there yet.

    A path without links stays as it was given. Raises DatabaseError for one that leads nowhere, and
    DatabaseIOError for one that cannot be looked at.
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
    """Return the file in which SQLite keeps what is not yet in the database itself."""
    return Path(f"{path}-wal")


def lock_of(path: Path) -> Path:
    """Return the file that the writer of a database holds."""
    return Path(f"{path}.lock")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the writer's lock, with nothing beside the database that a killed or old one left.

    Raises BusyError if another process has the lock, and DatabaseError if something else has its
    name or the file has a second one.
    """
    from filelock import FileLock, Timeout

    path = resolved(path)
    lock_path = lock_of(path)
    _check_is_file(lock_path)
    lock = FileLock(lock_path, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError(f"Another process is writing to {path}{_holder(lock_path)}.") from None
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
    """Remove copies that a killed process left, and the log of a database that is gone.

    Who still reads the deleted database has its log open, and does not need the name. SQLite
    throws a log away itself when it opens an empty file, but not the index of the log (`-shm`).
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
    """Do several hard links lead to the file?"""
    return path.exists() and path.stat().st_nlink > 1


# -- temporary copies ----------------------------------------------------------------------------


def unfinished(path: Path) -> Path:
    """Return the directory for copies of a database that are being made, or were at a kill."""
    return Path(f"{path}{_UNFINISHED}")


@contextmanager
def temporary_directory(path: Path) -> Iterator[Path]:
    """Yield an empty private directory for copies of a database whose writer's lock is held.

    Raises BusyError if another process has one, as may be where locks have no effect.
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
    """Afterwards, remove the log if the database is another file by then, or none.

    A connection whose file was deleted or replaced leaves the log where it is when it closes,
    beside a database that it does not belong to.
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
