"""Files that an agent has compressed: they are read as what is in them.

A name that ends in `.jsonl.zst` is a log as Zstandard packed it. It is unpacked into a file without
a name, so everything else sees the lines: a log that is packed, or unpacked again, is the same log
at another path, and its archive has its lines. A packed file without its end is a log with a torn
one.

One that is damaged, or holds far more than such a file can, raises PackedError. That is found out
before a byte of it is on a disk: it is unpacked once to look, a piece at a time, and again to a
file if it is too large to be held.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from .lost import PACKED_DAMAGED, PACKED_TOO_LARGE
from .tail import open_regular, pieces

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SUFFIX = ".zst"
_PACKED = f".jsonl{_SUFFIX}"
_LARGEST = 8 * 1024**3  # bytes that are unpacked; a small file can hold any number of equal ones
_RATIO = 1000  # a log is packed to a tenth, and a repetitive one to a hundredth
_ALWAYS = 64 * 1024 * 1024  # bytes that are unpacked whatever the ratio is
_HELD = 16 * 1024 * 1024  # bytes that are held in memory instead of being unpacked twice
_PIECE = 1024 * 1024


class PackedError(OSError):
    """What is in a packed file cannot be read, however often it is tried."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_packed(path: str) -> bool:
    """Is the file at a path a packed log, by its name?"""
    return path.endswith(_PACKED)


def unpacked_name(name: str) -> str:
    """Return the name of a file that has what is in a packed one; other names unchanged."""
    return name.removesuffix(_SUFFIX) if is_packed(name) else name


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open the content of a regular file for reading, and close it at the end."""
    descriptor = open_content(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_content(path: str) -> int:
    """Open the content of a regular file for reading and return its descriptor.

    Raises OSError, and PackedError for a packed file that is damaged or holds too much.
    """
    descriptor = open_regular(path)
    if not is_packed(path):
        return descriptor
    try:
        return _unpacked(descriptor)
    finally:
        os.close(descriptor)


def content_size(descriptor: int, path: str, size: int) -> int:
    """Return how many bytes of an open content to read, if its file had this size before."""
    there = os.fstat(descriptor).st_size
    return there if is_packed(path) else min(size, there)


def _unpacked(descriptor: int) -> int:
    """Return the descriptor of a file without a name that has what is in a packed one."""
    held = _looked_through(descriptor)
    with _nameless(is_small=held is not None) as file:
        for data in _contents(descriptor) if held is None else held:
            file.write(data)
        return os.dup(file.fileno())


def _looked_through(descriptor: int) -> list[bytes] | None:
    """Return what is in a packed file, None if it is too large to be held. Raises PackedError."""
    most = min(_LARGEST, max(_ALWAYS, _RATIO * os.fstat(descriptor).st_size))
    held: list[bytes] = []
    size = 0
    for data in _contents(descriptor):
        size += len(data)
        if size > most:
            raise PackedError(PACKED_TOO_LARGE)
        if size <= _HELD:
            held.append(data)
        else:
            held.clear()
    return held if size <= _HELD else None


def _nameless(*, is_small: bool) -> IO[bytes]:
    if is_small and hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("unpacked"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _contents(descriptor: int) -> Iterator[bytes]:
    frame = zstd.ZstdDecompressor()
    for piece in pieces(descriptor):
        data = piece
        try:
            while data or not (frame.eof or frame.needs_input):
                if frame.eof:
                    frame = zstd.ZstdDecompressor()
                yield frame.decompress(data, _PIECE)
                data = frame.unused_data if frame.eof else b""
        except zstd.ZstdError:
            raise PackedError(PACKED_DAMAGED) from None
