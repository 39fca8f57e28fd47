"""Whole lines from a byte offset, their records, and the proof that nothing before it changed.

A file is read from its checkpoint to the size it had when it was opened. The offset never passes
a byte that could still change: it is after the last line feed, or after that part of an
unterminated last line that is complete (the source says how much).

The marker of a checkpoint is three fingerprints of the bytes before the offset: of the first
1 KiB, of the last 1 KiB, and a running CRC-32 of all of them. Head and tail are compared whenever
the file is opened. The CRC requires reading everything again: it is compared for small files, if
something about the file is odd, and on request.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ..fields import orjson
from ..records import Issue, Record
from ..source import FOREIGN, LEADING, MAX_CONTEXT, Checkpoint, Claim, Context, Line, Source

# ------------------------------------------------------------------------------------------------
# Waits until the next clock tick before a file is read that changed in this one.
#
# File times move in ticks: a few milliseconds by the kernel's clock, or a second or two where the
# file system stores no more. If a file is written again in the tick in which it was read, with
# the same size, its stat does not change. So reading waits for the next tick: any later change
# then gets another time. A sync waits at most once, since all its files were listed before.


_MILLISECOND = 1_000_000
_EXFAT = 10 * _MILLISECOND
_SECOND = 1_000_000_000
_FAT = 2 * _SECOND
_SLACK = 50 * _MILLISECOND  # a time further ahead comes from another clock
_COARSE = 5  # CLOCK_REALTIME_COARSE, which Linux uses for the times of files


def wait_out(stamp: int) -> None:
    """Wait until a change would get another time than `stamp`, in nanoseconds."""
    step = _step(stamp)
    while 0 <= (left := stamp + step - present()) <= step + _SLACK:
        time.sleep((left + _MILLISECOND) / _SECOND)


def changed_ns(mtime_ns: int, ctime_ns: int) -> int:
    """Return the time that shows a change: the mtime can be set to any value."""
    return mtime_ns if os.name == "nt" else ctime_ns  # on Windows ctime is the creation time


def present() -> int:
    """Return the time that a file changed now would get, before its file system rounds it."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(_COARSE)
    return time.time_ns()


def _step(stamp: int) -> int:
    """Return the resolution of a file system's times, as far as one of them shows it."""
    if stamp % _SECOND == 0:
        return _FAT
    return _EXFAT if stamp % _EXFAT == 0 else 0


CHUNK = 4 * 1024 * 1024
"""Bytes read at a time; a line longer than this is read whole."""

MAX_LINE = 64 * 1024 * 1024
"""A longer line is archived but not parsed: that would take a gigabyte of memory."""

_MARK = 1024
_ALWAYS_CHECKED = (
    1024 * 1024
)  # shorter prefixes are compared as a whole whenever the file is opened


class Prefix(NamedTuple):
    """The part of a file that was read, as far as the next checkpoint needs it."""

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
        return Checkpoint(self.offset, _digest(self.head), _digest(self.tail), self.crc)


class Stretch(NamedTuple):
    """Bytes that were read: whole lines, or a piece of one line too long to be parsed."""

    start: int
    data: bytes
    lines: Sequence[Line] = ()
    long_line: int = 0
    """On the last piece of a long line, the length of the line in bytes, without its line break."""
    is_cut: bool = False
    """The line continues in the next stretch."""

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.start + len(self.data)

    @property
    def first_line(self) -> int:
        """The offset of the first line: earlier stretches may have the beginning of a long one."""
        return self.end - 1 - self.long_line if self.long_line else self.start


def open_regular(path: str) -> int:
    """Open a regular file for reading and return its descriptor.

    Raises OSError. Links are not followed, and a pipe or device at this path does not block:
    anything but a regular file raises FileNotFoundError.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # not every system has all of them
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(f"not a regular file: {Path(path).name}")
    return descriptor


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return up to `size` bytes of a file from `offset`; empty at its end. Raises OSError."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def pieces(
    descriptor: int, start: int = 0, end: int = sys.maxsize, first: int | None = None
) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, or to its end, about `CHUNK` at a time.

    The first piece has `first` bytes, each one after it twice as many. Raises OSError.
    """
    size = first or CHUNK
    while start < end and (data := read_at(descriptor, min(size, end - start), start)):
        yield data
        start += len(data)
        size = min(2 * size, CHUNK)


def prefix_of(descriptor: int, end: int) -> Prefix:
    """Return the prefix of a file that has its first `end` bytes. Raises OSError."""
    prefix = Prefix()
    for data in pieces(descriptor, 0, end):
        prefix = prefix.extended(data)
    return prefix


def resume(descriptor: int, size: int, known: Checkpoint, *, thorough: bool) -> Prefix | None:
    """Return the prefix to continue from, or None if the file was rewritten.

    `size` is the file's size now. With `thorough` every byte of the prefix is compared.
    """
    if size < known.offset:
        return None
    if thorough or known.offset <= _ALWAYS_CHECKED:
        prefix = prefix_of(descriptor, known.offset)
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
    """Yield the lines of a file from the offset `start` to `size`, about `CHUNK` bytes at a time.

    An unterminated last line is left for the next sync, except for what `complete_prefix` says is
    complete. Raises OSError if the file cannot be read, or is truncated within a long line.
    """
    is_within_line = False
    for stretch in cut(
        pieces(descriptor, start, size),
        start,
        complete_prefix,
        lambda position: _line_ends(descriptor, position, size),
    ):
        yield stretch
        is_within_line = stretch.is_cut
    if is_within_line:  # the line is stored in part: whoever stores it has to undo that
        raise OSError(errno.EIO, "the file was truncated while it was read")


def cut(
    parts: Iterable[bytes],
    start: int,
    complete_prefix: Callable[[bytes], int],
    line_ends: Callable[[int], bool] | None = None,
) -> Iterator[Stretch]:
    """Yield the lines of bytes that come in parts, the first of them at the offset `start`.

    `complete_prefix` says how many bytes of an unterminated line are complete. `line_ends` is for a
    file that may grow: it says whether a line feed follows an offset. Without it, all bytes were
    read before, so the last line is complete, too.

    A line that is too long is never held as a whole: it is yielded in pieces.
    """
    buffer, passed = b"", 0
    for chunk in _chunks(parts):
        buffer = buffer + chunk if buffer else chunk
        while passed or begins_too_long(buffer):
            if not passed and (taken := whole_objects(buffer, complete_prefix)):
                yield Stretch(start, buffer[:taken], lines_of(start, buffer[:taken]))
            elif not passed and line_ends is not None and not line_ends(start + MAX_LINE):
                return
            else:
                taken = buffer.find(b"\n", 0, CHUNK) + 1
                piece = buffer[: taken or CHUNK]
                passed += len(piece)
                yield Stretch(start, piece, (), passed - 1 if taken else 0, is_cut=not taken)
                passed, taken = 0 if taken else passed, len(piece)
            start, buffer = start + taken, buffer[taken:]
            if not buffer:
                break
        if taken := buffer.rfind(b"\n") + 1:
            yield Stretch(start, buffer[:taken], lines_of(start, buffer[:taken]))
            start, buffer = start + taken, buffer[taken:]
    taken = len(buffer) if line_ends is None else complete_prefix(buffer)
    if taken:
        yield Stretch(start, buffer[:taken], lines_of(start, buffer[:taken]))


def _chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts and cut large ones, so that only the first line held can be too long."""
    chunk: list[bytes] = []
    size = 0
    for part in (
        whole[low : low + CHUNK] for whole in parts for low in range(0, len(whole), CHUNK)
    ):
        chunk.append(part)
        size += len(part)
        if size >= CHUNK:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)


def whole_objects(buffer: bytes, complete_prefix: Callable[[bytes], int]) -> int:
    """Return how many bytes of whole objects begin a line that is too long.

    A sync that came before the rest was written has read them, so every sync has to. What follows
    them is a line of its own, which may be too long or not.
    """
    if not begins_too_long(buffer) or not buffer.lstrip(LEADING).startswith(b"{"):
        return 0
    return complete_prefix(buffer[:MAX_LINE])


def begins_too_long(buffer: bytes) -> bool:
    """Is the first line of these bytes too long to be parsed?"""
    return len(buffer) > MAX_LINE and buffer.find(b"\n", 0, MAX_LINE + 1) < 0


def lines_of(start: int, data: bytes) -> list[Line]:
    """Return the lines of the bytes that begin at the offset `start`, without empty ones."""
    lines = []
    for line in data.split(b"\n"):
        if line:
            lines.append(Line(start, line))
        start += len(line) + 1
    return lines


def _line_ends(descriptor: int, position: int, size: int) -> bool:
    """Is there a line feed at this offset or after it?"""
    return any(b"\n" in data for data in pieces(descriptor, position, size))


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


# ------------------------------------------------------------------------------------------------
# Whether a log is what its name says: its lines are checked by its source.
#
# Names can be ambiguous, and content can be something else. The source reads only as many lines
# as it needs, usually one. The file on disk and its archived bytes are checked in the same way.


NOT_A_TRANSCRIPT = "not a transcript: no line names a session"
"""Reason of the issue of a file that lies where transcripts lie, but is none."""

_FIRST_PIECE = 1024  # bytes; usually the first line decides


def lines_in(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the lines of a file, which is read only as far as they are used. Raises OSError."""
    return lines_in_parts(pieces(descriptor, 0, size, first=_FIRST_PIECE))


def lines_in_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of bytes that come in parts; of one that is too long, its beginning."""
    held: list[bytes] = []
    length = 0
    for part in parts:
        *whole, rest = part.split(b"\n")
        for line in whole:
            yield b"".join([*held, line]) if held else line
            held, length = [], 0
        if length < MAX_LINE:
            held.append(rest)
            length += len(rest)
    if held:
        yield b"".join(held)


def first_records(claim: Claim, start: int) -> list[Record]:
    """Return the records about a file as a whole, which belong to its first stretch."""
    if start == 0 and claim.kind == FOREIGN:
        return [Issue(NOT_A_TRANSCRIPT, 0, None, 0, 0)]
    return []


# ------------------------------------------------------------------------------------------------
# Parses the lines of a file stretch by stretch, and passes the context from one to the next.


CONTEXT_TOO_LARGE = "what later lines need of earlier ones is too large to be kept"
"""Reason of the issue of a file whose context was dropped."""


RAN_AWAY = "reading it took too long and was given up"
"""Reason of the issue of a file whose parser did not come to an end."""


class Parser:
    """Parses the lines of one log in order, wherever they are cut into stretches."""

    def __init__(self, source: Source, claim: Claim, context: str | None = None) -> None:
        self._source = source
        self.claim = claim
        self.context = context
        """The context after the last stretch, as it is stored: JSON, None if it is empty."""

    def parse(self, lines: Sequence[Line]) -> list[Record]:
        if not lines:
            return []
        records, context = self._source.read(self.claim, lines, _unpacked(self.context))
        if not context:
            self.context = None
            return records
        text = orjson.dumps(context)
        if len(text) > MAX_CONTEXT:  # later rows may lack what earlier lines said
            records.append(Issue(CONTEXT_TOO_LARGE, 0, None, lines[-1].start, len(lines[-1].data)))
            self.context = None
        else:
            self.context = text.decode()
        return records


def _unpacked(context: str | None) -> Context:
    """Return a stored context, an empty one if none is stored."""
    found: Context = orjson.loads(context) if context is not None else {}
    return found
