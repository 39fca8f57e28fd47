"""Files that an agent has compressed: they are read as what is in them.

A name that ends in `.jsonl.zst` is a log as Zstandard packed it. It is unpacked into a file without
a name, so everything else sees the lines: a log that is packed, or unpacked again, is the same log
at another path, and its archive has its lines. A packed file without its end is a log with a torn
one. One that is damaged cannot be read.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from .tail import open_regular, pieces

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SUFFIX = ".zst"
_PACKED = f".jsonl{_SUFFIX}"
_LARGEST = 8 * 1024**3  # bytes that are unpacked; a small file can hold any number of equal ones
_PIECE = 1024 * 1024


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

    Raises OSError, also for a packed file that is damaged.
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
    with tempfile.TemporaryFile(buffering=0) as file:
        size = 0
        for data in _contents(descriptor):
            size += len(data)
            if size > _LARGEST:
                raise OSError("it unpacks to more than 8 GiB")
            file.write(data)
        return os.dup(file.fileno())


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
        except zstd.ZstdError as error:
            raise OSError(f"it is packed, and damaged: {error}") from error
