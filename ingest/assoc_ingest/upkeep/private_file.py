"""Files that this program writes: only their user can read them, and none lies below an agent's
directory.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

from ..errors import UsageError
from ..files.walk import default_roots, original_root
from ..paths import identity, is_directory, real_path

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
# Writes a file that only its user can read, whole or not at all.
#
# The bytes go into a file of a temporary name in the same directory, which then gets its own
# name: what was there before stays as it was until everything is on the disk.


_TEMPORARY = ".assoc-ingest-"
_OF_THE_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.EISDIR)
_AT_ONCE = 256 * 1024  # characters that are encoded at a time


def write_private(target: Path, pieces: Iterable[str], *, overwrite: bool) -> None:
    """Write a file of mode 0600. Raises UsageError if it is there, unless it may be overwritten.

    The directory has to be there. A symbolic link is replaced, not followed.
    """
    temporary = target.parent / f"{_TEMPORARY}{token_hex(8)}"
    try:
        _fill(temporary, pieces)
        if overwrite:
            temporary.replace(target)
        else:
            _give_name(temporary, target)
    except OSError as error:
        if error.errno not in _OF_THE_NAME:
            raise
        why = error.strerror or str(error)
        raise UsageError(f"{target} cannot be written: {why}. Give another file.") from error
    finally:
        temporary.unlink(missing_ok=True)
    _flush_directory(target.parent)


def _fill(path: Path, pieces: Iterable[str]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name in ("O_NOFOLLOW", "O_BINARY", "O_CLOEXEC"):  # which there are differs by system
        flags |= getattr(os, name, 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb", _AT_ONCE) as file:
        for piece in pieces:
            file.write(piece.encode("utf-8", "backslashreplace"))
        file.flush()
        os.fsync(file.fileno())


def _give_name(temporary: Path, target: Path) -> None:
    """Give a file its name if that is still free."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise UsageError(f"{target} is already there. To overwrite it, add --force") from None
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise UsageError(f"{target} is already there. To overwrite it, add --force") from None
        temporary.replace(target)


def _flush_directory(directory: Path) -> None:
    """Make the name survive a crash of the machine, if the system supports it."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
