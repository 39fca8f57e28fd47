"""Whole lines from a byte offset, and the proof that what was read before is still there.

A file is read from its checkpoint to the size it had when it was opened. The offset never passes
a byte that could still change: it stands behind the last line feed, or behind an unterminated
tail that is already complete (the source says how much of it).

The marker of a checkpoint is three fingerprints of the bytes before the offset: of the first
1 KiB, of the last 1 KiB, and a running CRC-32 of them all. Head and tail are compared at every
visit; the CRC, which costs reading everything again, for small files, when something about the
file is odd, and when asked for.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ..source import LEADING, Checkpoint, Line

CHUNK = 8 * 1024 * 1024
"""Bytes read at a time; a line longer than this is read whole."""

MAX_LINE = 64 * 1024 * 1024
"""A longer line is archived but not decoded: it would take a gigabyte of memory."""

_MARK = 1024
_ALWAYS_CHECKED = 1024 * 1024  # prefixes up to this size are compared whole at every visit


@dataclass(frozen=True, slots=True)
class Prefix:
    """The consumed part of a file, as far as the next checkpoint needs it."""

    offset: int = 0
    head: bytes = b""
    tail: bytes = b""
    crc: int = 0

    def extended(self, data: bytes) -> Prefix:
        """Return the prefix that ends after `data`, the bytes at its offset."""
        head = self.head
        if len(head) < _MARK:
            head += data[: _MARK - len(head)]
        tail = data[-_MARK:] if len(data) >= _MARK else (self.tail + data)[-_MARK:]
        return Prefix(self.offset + len(data), head, tail, zlib.crc32(data, self.crc))

    def checkpoint(self) -> Checkpoint:
        """Return the checkpoint at the end of this prefix."""
        return Checkpoint(self.offset, _digest(self.head), _digest(self.tail), self.crc)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes that were read: whole lines, or a piece of one line too long to be decoded."""

    start: int
    data: bytes
    lines: Sequence[Line] = ()
    long_line: int = 0
    """Of a long line its length in bytes, without its line break: on its first piece if the file
    was read, on its last if bytes were cut that come only once."""
    is_cut: bool = False
    """The line goes on in the next stretch."""

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.start + len(self.data)

    @property
    def first_line(self) -> int:
        """The offset of the first line: an earlier stretch may have the beginning of a long one."""
        is_last_piece = self.long_line and not self.is_cut
        return self.end - 1 - self.long_line if is_last_piece else self.start


def open_regular(path: str) -> int:
    """Open a regular file for reading and return its descriptor.

    Raises OSError. A link is not followed, and a pipe or a device that someone put in the way
    does not block: what is not a regular file raises FileNotFoundError.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # which there are differs by system
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(f"not a regular file: {Path(path).name}")
    return descriptor


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open a regular file for reading, as `open_regular` does, and close it at the end."""
    descriptor = open_regular(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return up to `size` bytes of a file from `offset`; empty at its end. Raises OSError."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def resume(descriptor: int, size: int, known: Checkpoint, *, thorough: bool) -> Prefix | None:
    """Return the prefix to continue from, or None if the file was rewritten.

    `size` is the file's size now. With `thorough` every byte of the prefix is compared.
    """
    if size < known.offset:
        return None
    if thorough or known.offset <= _ALWAYS_CHECKED:
        prefix = Prefix()
        while prefix.offset < known.offset:
            want = min(CHUNK, known.offset - prefix.offset)
            data = read_at(descriptor, want, prefix.offset)
            if not data:
                return None
            prefix = prefix.extended(data)
        return prefix if prefix.checkpoint() == known else None
    mark = min(_MARK, known.offset)
    head = read_at(descriptor, mark, 0)
    tail = read_at(descriptor, mark, known.offset - mark)
    if _digest(head) != known.head_hash or _digest(tail) != known.tail_hash:
        return None
    return Prefix(known.offset, head, tail, known.prefix_crc)


def stretches(
    descriptor: int, start: int, size: int, complete_prefix: Callable[[bytes], int]
) -> Iterator[Stretch]:
    """Yield the lines from the offset `start` to `size`, about `CHUNK` bytes at a time.

    `complete_prefix` says how much of an unterminated tail can be read; the rest is left for
    the next visit. Raises OSError when the file cannot be read.
    """
    buffer = b""
    while True:
        data = read_at(descriptor, min(CHUNK, size - start - len(buffer)), start + len(buffer))
        buffer = buffer + data if buffer else data
        is_end = not data or start + len(buffer) >= size
        while taken := whole_objects(buffer, complete_prefix):
            yield Stretch(start, buffer[:taken], lines_of(start, buffer[:taken]))
            start, buffer = start + taken, buffer[taken:]
        is_too_long = begins_too_long(buffer)
        taken = 0 if is_too_long else buffer.rfind(b"\n") + 1
        if is_end and taken < len(buffer) and not is_too_long:
            taken += complete_prefix(buffer[taken:] if taken else buffer)
        if taken:
            whole = buffer if taken == len(buffer) else buffer[:taken]
            yield Stretch(start, whole, lines_of(start, whole))
            start += taken
            buffer = buffer[taken:]
        elif is_too_long:
            end = _end_of_line(descriptor, start + MAX_LINE, size)
            if end is None:
                return
            yield from _long_line(descriptor, start, end)
            start, buffer = end, b""
            is_end = start >= size
        if is_end:
            return


def cut(
    pieces: Iterable[bytes], start: int, complete_prefix: Callable[[bytes], int]
) -> Iterator[Stretch]:
    """Yield the lines of bytes that come piece by piece, the first of them at the offset `start`.

    All bytes were read before, so what is left at their end is whole, too. Of a line that is too
    long no byte is kept while its end is looked for: its pieces come as they are.
    """
    buffer, passed = b"", 0
    for chunk in _chunks(pieces):
        buffer += chunk
        while not passed and (taken := whole_objects(buffer, complete_prefix)):
            yield Stretch(start, buffer[:taken], lines_of(start, buffer[:taken]))
            start, buffer = start + taken, buffer[taken:]
        if passed or begins_too_long(buffer):
            taken = buffer.find(b"\n") + 1
            piece = buffer[:taken] if taken else buffer
            passed += len(piece)
            yield Stretch(start, piece, (), passed - 1 if taken else 0, is_cut=not taken)
            start, buffer = start + len(piece), buffer[len(piece) :]
            if not taken:
                continue
            passed = 0
        taken = buffer.rfind(b"\n") + 1
        if taken:
            yield Stretch(start, buffer[:taken], lines_of(start, buffer[:taken]))
            start, buffer = start + taken, buffer[taken:]
    if buffer:
        yield Stretch(start, buffer, lines_of(start, buffer))


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces to chunks; cut large ones, so that only a first line can be too long."""
    chunk: list[bytes] = []
    size = 0
    for piece in (
        whole[low : low + CHUNK] for whole in pieces for low in range(0, len(whole), CHUNK)
    ):
        chunk.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)


def whole_objects(buffer: bytes, complete_prefix: Callable[[bytes], int]) -> int:
    """Return how much can be read of a line that is too long but begins with whole objects.

    Whoever looked before the rest was written has read them. Only what is behind them is too long,
    or is not.
    """
    if not begins_too_long(buffer) or not buffer.lstrip(LEADING).startswith(b"{"):
        return 0
    return complete_prefix(buffer[:MAX_LINE])


def begins_too_long(buffer: bytes) -> bool:
    """Is the first line of these bytes too long to be decoded, wherever they were cut?"""
    return len(buffer) > MAX_LINE and buffer.find(b"\n", 0, MAX_LINE + 1) < 0


def lines_of(start: int, data: bytes) -> list[Line]:
    """Return the lines of the bytes that begin at the offset `start`, without empty ones."""
    lines = []
    for line in data.split(b"\n"):
        if line:
            lines.append(Line(start, line))
        start += len(line) + 1
    return lines


def _end_of_line(descriptor: int, position: int, size: int) -> int | None:
    """Return the offset behind the next line feed, None if there is none yet."""
    while position < size:
        data = read_at(descriptor, min(CHUNK, size - position), position)
        if not data:
            return None
        found = data.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(data)
    return None


def _long_line(descriptor: int, start: int, end: int) -> Iterator[Stretch]:
    length = end - start - 1
    while start < end:
        data = read_at(descriptor, min(CHUNK, end - start), start)
        if not data:  # half of it was said already, so its reader has to undo that
            raise OSError(errno.EIO, "the file was cut while it was read")
        yield Stretch(start, data, (), length, is_cut=start + len(data) < end)
        start += len(data)
        length = 0


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
