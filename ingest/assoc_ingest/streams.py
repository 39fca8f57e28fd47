"""The standard streams: always available, and never a reason for a command to fail.

- A stream that was closed when the program started is replaced by the null device. Otherwise the
  next opened file would get its number, and output would be written into the database.
- Output that a stream cannot take is lost, but nothing raises: the reader has closed the pipe, the
  disk of a log is full, the terminal is gone. Callers can ask for the error (`lost`) to stop
  printing, and the entry point reports it at the end.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CLOSED_PIPE = {errno.EPIPE} | ({errno.EINVAL} if sys.platform == "win32" else set())


class _Lossy(io.RawIOBase):
    """A stream of bytes that drops everything that is written after the first error."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, data: ReadableBuffer) -> int:
        while self.error is None:
            try:
                written = self._raw.write(data)
                if written is not None:
                    return written
                select.select((), (self._raw,), ())  # another program made it non-blocking
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


class StandardStream(io.TextIOWrapper):
    """A standard stream that never raises; a letter that it cannot encode becomes an escape."""

    def __init__(self, raw: io.RawIOBase, encoding: str, *, line_buffering: bool) -> None:
        self._lossy = _Lossy(raw)
        buffer = io.BufferedWriter(self._lossy)
        super().__init__(buffer, encoding, "backslashreplace", line_buffering=line_buffering)

    @property
    def error(self) -> OSError | None:
        """Why output was lost, None if none is known to be lost."""
        return self._lossy.error


def prepare() -> None:
    """Make all three streams usable. Has to be called before any file is opened."""
    for number in range(3):
        _open_if_closed(number)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 — it stays open
    sys.stdout = _prepared(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _prepared(sys.stderr, sys.__stderr__, 2)


def lost() -> OSError | None:
    """Return why standard output takes no more, None if it does, as far as is known."""
    return sys.stdout.error if isinstance(sys.stdout, StandardStream) else None


def flushed() -> OSError | None:
    """Flush standard output; return why some of it was lost, if that is an error.

    It is not an error if the reader has closed the pipe.
    """
    sys.stdout.flush()
    error = lost()
    return None if error is None or error.errno in _CLOSED_PIPE else error


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        # It gets the lowest free number, which is this one. Child processes should have it, too.
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _prepared(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return StandardStream(io.FileIO(number, "w", closefd=False), "utf-8", line_buffering=False)
    if stream is not original or not isinstance(stream, io.TextIOWrapper):
        return stream  # replaced by a caller, such as a test
    stream.flush()
    # Without a buffer (python -u), the raw stream is in its place.
    raw = cast("io.RawIOBase", getattr(stream.buffer, "raw", stream.buffer))
    is_direct = stream.line_buffering or stream.write_through
    return StandardStream(raw, stream.encoding, line_buffering=is_direct)
