"""The standard streams: always available, and never a reason for a command to fail.

- One that was closed when the program started leads to the null device. Else the next file that is
  opened would get its number: what is printed would be written into the database.
- What a stream does not take is lost, and nothing raises in the midst of the work: a reader has
  seen enough and closed its pipe, the disk under a log is full, the terminal went away. Who prints
  can ask for the error (`lost`), to stop printing, and the entry point reports it at the end.
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
    """A stream of bytes that takes all that is written, and drops it from the first error on."""

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
    """A standard stream that never raises; a letter that it cannot write becomes its number."""

    def __init__(self, raw: io.RawIOBase, encoding: str, *, line_buffering: bool) -> None:
        self._lossy = _Lossy(raw)
        buffer = io.BufferedWriter(self._lossy)
        super().__init__(buffer, encoding, "backslashreplace", line_buffering=line_buffering)

    @property
    def error(self) -> OSError | None:
        """Why something was lost; None while nothing is known to be."""
        return self._lossy.error


def prepare() -> None:
    """Make all three streams usable. To be called before anything is opened."""
    for number in range(3):
        _open_if_closed(number)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 — it stays open
    sys.stdout = _prepared(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _prepared(sys.stderr, sys.__stderr__, 2)


def lost() -> OSError | None:
    """Return why standard output takes no more; None if it does, as far as is known."""
    return sys.stdout.error if isinstance(sys.stdout, StandardStream) else None


def flushed() -> OSError | None:
    """Write what is left; return why something on standard output was lost, if that is an error.

    A reader that has seen enough and closed its pipe is not an error.
    """
    sys.stdout.flush()
    error = lost()
    return None if error is None or error.errno in _CLOSED_PIPE else error


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        # It gets the lowest number that is free, which is this one. A process that is started from
        # here is to have it, too.
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _prepared(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return StandardStream(io.FileIO(number, "w", closefd=False), "utf-8", line_buffering=False)
    if stream is not original or not isinstance(stream, io.TextIOWrapper):
        return stream  # replaced by a caller, such as a test
    stream.flush()
    # Without a buffer of Python's (-u), the stream of bytes itself is in its place.
    raw = cast("io.RawIOBase", getattr(stream.buffer, "raw", stream.buffer))
    is_direct = stream.line_buffering or stream.write_through
    return StandardStream(raw, stream.encoding, line_buffering=is_direct)
