"""A worker: does one job after the other, until its standard input ends.

Standard input has jobs, and standard output messages: a tag, the length of what follows, and that.
If the writer dies, however it does, standard input ends, and with it the worker. A worker has
nothing to tidy up: it writes no files.

A job that runs away cannot notice that it does: it may be within one call that never returns. So a
timer of `faulthandler`, which needs no interpreter, ends the process.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO, Protocol

HEAD = struct.Struct(">cQ")
"""What each message begins with: its tag, and the length of what follows."""

READY, AT, PIECE, DONE, FAILED = b"R", b"A", b"P", b"D", b"F"
"""Tags: it can take jobs; it begins with the next item of a job; a piece of the item's result; the
job is done; the job failed."""

RAN_AWAY = 1
"""The exit code of a worker that took longer for an item than it may."""


_NICENESS = 10
"""Workers give way to the writer, for which everything waits, and to the user's other programs."""


_EXTRA = 1.0
"""Seconds that a piece may take beyond its time."""


class Job(Protocol):
    """What a worker does: items, one after the other."""

    @property
    def seconds(self) -> float:
        """What each piece of a result may take."""
        ...

    def items(self) -> Iterator[Iterator[bytes]]:
        """Yield for each item its result, in pieces. Any exception ends the job."""
        ...


def main() -> None:
    """Do jobs until standard input ends."""
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # whatever else is printed is no message
    jobs: SimpleQueue[Job] = SimpleQueue()
    Thread(target=_take, args=(os.fdopen(os.dup(0), "rb"), jobs), daemon=True).start()
    gc.disable()  # records have no cycles
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    if os.name != "nt":
        os.set_blocking(out, False)
    watchdog = _Watchdog(nowhere)
    _say(out, watchdog, READY)
    while True:
        _do(jobs.get(), out, watchdog)


def _take(given: BinaryIO, jobs: SimpleQueue[Job]) -> None:
    try:
        while True:
            jobs.put(pickle.load(given))  # noqa: S301 - only the writer has the other end
    except EOFError:
        pass
    finally:
        os._exit(0)


class _Watchdog:
    """Ends this process if a piece takes too long.

    Each time it is set, it starts a thread, and jobs have thousands of pieces that take no time.
    So it is set for a second more than a piece may take, and again only when that second is over.
    """

    def __init__(self, nowhere: int) -> None:
        self._nowhere = nowhere
        self._set_at: float | None = None

    def begin(self, seconds: float) -> None:
        """Give the piece that begins its time."""
        now = time.monotonic()
        if self._set_at is None or now - self._set_at > _EXTRA:
            faulthandler.dump_traceback_later(seconds + _EXTRA, exit=True, file=self._nowhere)
            self._set_at = now

    def rest(self) -> None:
        """Wait for the next piece: what is not done here may take as long as it likes."""
        if self._set_at is not None:
            faulthandler.cancel_dump_traceback_later()
            self._set_at = None


def _do(job: Job, out: int, watchdog: _Watchdog) -> None:
    try:
        for item in job.items():
            _say(out, watchdog, AT)
            watchdog.begin(job.seconds)
            for piece in item:
                _say(out, watchdog, PIECE, piece)
                del piece
                watchdog.begin(job.seconds)
    except Exception as error:
        watchdog.rest()
        _say(out, watchdog, FAILED, repr(error).encode(errors="replace"))
    else:
        watchdog.rest()
        _say(out, watchdog, DONE)


def _say(out: int, watchdog: _Watchdog, tag: bytes, data: bytes = b"") -> None:
    if os.name == "nt":  # where no write says that it would have to wait
        watchdog.rest()
    rest = memoryview(HEAD.pack(tag, len(data)) + data)
    try:
        while rest:
            try:
                rest = rest[os.write(out, rest) :]
            except BlockingIOError:  # the writer takes its time
                watchdog.rest()
                select.select([], [out], [])
    except OSError:  # the writer is gone
        os._exit(0)


def command() -> list[str]:
    """Return the command that runs a worker with the interpreter and the modules of this process.

    The main module of this process is not imported again, and the worker finds no module where it
    happens to be started.
    """
    places = [place or str(Path.cwd()) for place in sys.path]
    code = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import main; main()"
    return [sys.executable, "-I", "-X", f"utf8={sys.flags.utf8_mode}", "-c", code, *places]
