"""Files that this program writes for its user: private, whole or not at all, in no agent's
directory.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from ..errors import UsageError
from ..paths import identity, is_directory, real_path
from .tail import CHUNK
from .walk import default_roots, original_root, original_time

# ------------------------------------------------------------------------------------------------
# Nothing is written below a directory of an agent, whatever a user asks for.


def known_roots(connection: sqlite3.Connection) -> list[Path]:
    """Return the directories of agents: those that were ever synced, and the defaults."""
    roots = [original_root(root) for (root,) in connection.execute("select root from sources")]
    defaults = default_roots(os.environ, ())
    return roots + [real_path(path) for path in defaults if is_directory(path)]


def outside_roots(directory: Path, roots: Iterable[Path], option: str) -> Path:
    """Return the directory without links.

    Raises UsageError if it is, or is inside, one of the roots; `option` is how to give another.
    """
    place = real_path(directory)
    above = {identity(path) for path in (place, *place.parents)}
    for root in roots:
        # By identity too: the same directory can have two names where case does not count.
        known = identity(root)
        if place.is_relative_to(root) or (known is not None and known in above):
            raise UsageError(
                f"{directory} is inside {root}, a directory of an agent, where assoc-ingest never"
                f" writes. Give another directory: {option}"
            )
    return place


# ------------------------------------------------------------------------------------------------
# The bytes go into a file with a temporary name in the same directory, which then gets its own
# name: what was there before stays until everything is written.


_TEMPORARY = ".assoc-ingest-"
_OF_THE_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.EISDIR)


def write_private(target: Path, pieces: Iterable[str], *, overwrite: bool) -> None:
    """Write a file of mode 0600, flushed to the disk.

    The directory has to exist. A symbolic link is replaced, not followed. Raises UsageError if the
    file exists, unless it may be overwritten.
    """
    encoded = (piece.encode("utf-8", "backslashreplace") for piece in pieces)
    try:
        if overwrite:
            temporary = _temporary(target)
            try:
                _fill(temporary, encoded, is_flushed=True)
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        else:
            write_new(target, encoded, is_flushed=True)
    except FileExistsError:
        raise UsageError(f"{target} is already there. To overwrite it, add --force") from None
    except OSError as error:
        if error.errno not in _OF_THE_NAME:
            raise
        why = error.strerror or str(error)
        raise UsageError(f"{target} cannot be written: {why}. Give another file.") from error
    _flush_directory(target.parent)


def write_new(
    target: Path, pieces: Iterable[bytes], mtime_ns: int | None = None, *, is_flushed: bool = False
) -> None:
    """Write a file of mode 0600, with this stored time. Raises FileExistsError if it exists."""
    temporary = _temporary(target)
    try:
        _fill(temporary, pieces, mtime_ns, is_flushed=is_flushed)
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: take the name first, then fill it
            _copy(temporary, target, mtime_ns, is_flushed=is_flushed)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(target: Path) -> Path:
    return target.parent / f"{_TEMPORARY}{token_hex(8)}"


def _fill(
    path: Path, pieces: Iterable[bytes], mtime_ns: int | None = None, *, is_flushed: bool
) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name in ("O_NOFOLLOW", "O_BINARY", "O_CLOEXEC"):  # not every system has all of them
        flags |= getattr(os, name, 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb", 256 * 1024) as file:
        file.writelines(pieces)
        if is_flushed:
            file.flush()
            os.fsync(file.fileno())
    if mtime_ns is not None and (time := original_time(mtime_ns)) is not None:
        with suppress(OSError, OverflowError):  # the system or the disk cannot set this time
            os.utime(path, ns=(time, time))


def _copy(source: Path, target: Path, mtime_ns: int | None, *, is_flushed: bool) -> None:
    with source.open("rb") as file:
        try:
            _fill(target, iter(lambda: file.read(CHUNK), b""), mtime_ns, is_flushed=is_flushed)
        except FileExistsError:
            raise
        except BaseException:
            target.unlink(missing_ok=True)
            raise


def _flush_directory(directory: Path) -> None:
    """Make the name survive a crash of the machine, if the system supports it."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
