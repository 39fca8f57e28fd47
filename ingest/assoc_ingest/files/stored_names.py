"""Converts names, times and numbers of files to what SQLite can store, and back.

A name is bytes on POSIX systems, and text in the database. UTF-8 is kept; any other byte becomes
`\\xff`. If a name contains such an escape literally, its backslash becomes `\\x5c`. So no two names
are stored alike, and each can be converted back to its bytes.

A time is nanoseconds since 1970. SQLite can store the years 1677 to 2262; file systems have others,
too. Zero means no time: that of a file that was not read to its end.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from pathlib import Path

NO_TIME = 0
"""The stored time of a file that was not read to its end."""

_BITS = 64
_LATEST = 2 ** (_BITS - 1) - 1
_EARLIEST = -(2 ** (_BITS - 1))
_EPOCH = 1  # stored for the time 0, as 0 means no time

_ambiguous = re.compile(r"\\(?=x(?:5c|[89a-f][0-9a-f]))")
_escape = re.compile(rb"\\x(5c|[89a-f][0-9a-f])")


def stored_name(name: str) -> str:
    """Return a name or a path as text that SQLite can store."""
    if "\\" in name:
        name = _ambiguous.sub(r"\\x5c", name)
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def original_name(stored: str) -> str:
    """Return the name that became `stored`, as the system knows it."""
    if stored.isascii() and "\\" not in stored:
        return stored
    raw = stored.encode("utf-8", "replace")
    return os.fsdecode(_escape.sub(lambda found: bytes([int(found[1], 16)]), raw))


def original_parts(path: str) -> tuple[str, ...]:
    """Return the components of a stored path, as the system knows them."""
    return tuple(map(original_name, path.split("/")))


def stored_root(path: Path) -> str:
    """Return an absolute path as `sources.root` has it."""
    return str(path) if os.sep == "\\" else stored_name(str(path))  # no escapes on Windows


def original_root(stored: str) -> Path:
    """Return the absolute path that became `stored`."""
    return Path(stored if os.sep == "\\" else original_name(stored))


def stored_time(nanoseconds: int) -> int:
    """Return a file's time as an integer of SQLite; one out of range becomes the nearest."""
    if 0 < nanoseconds <= _LATEST:
        return nanoseconds
    return min(max(nanoseconds, _EARLIEST), _LATEST) or _EPOCH


def original_time(stored: int) -> int | None:
    """Return the time that became `stored`, None if it is not known."""
    if stored in (NO_TIME, _EARLIEST, _LATEST):
        return None
    return 0 if stored == _EPOCH else stored


def stored_number(number: int) -> int:
    """Return an inode or a device number as an integer of SQLite, which is signed.

    Some file systems have inodes of 128 bits, of which neither half is unique: those become a
    digest.
    """
    if 0 <= number <= _LATEST:
        return number
    if number.bit_length() > _BITS:
        data = number.to_bytes(number.bit_length() // 8 + 1)
        number = int.from_bytes(blake2b(data, digest_size=_BITS // 8).digest())
    return number if number <= _LATEST else number - 2**_BITS
