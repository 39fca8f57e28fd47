"""Signals that ask a long-running command to finish what it is doing, and to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

INTERRUPTED = 130
"""Exit code of a command that SIGINT stopped."""


class Stop(Event):
    """Set when a signal asks to stop; `exit_code` is then what the process should end with."""

    exit_code = 0


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """Let SIGTERM and SIGINT set the event instead of raising; a second SIGINT interrupts.

    The handlers raise nothing the first time: an exception in the midst of a wait for changes
    would be lost in the library that waits.
    """
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if stop.is_set():
                raise KeyboardInterrupt
            stop.exit_code = INTERRUPTED
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
