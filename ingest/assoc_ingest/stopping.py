"""What asks a long-running command to finish what it is doing, and to stop: signals, or the end of
the process that started it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
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


def stop_at_end_of_input(stop: Event) -> None:
    """Set the event when standard input ends.

    A pipe closes when the process at its other end is gone, whatever ended it; a signal from there
    would need that process to live long enough to send it.
    """

    def wait() -> None:
        # Not sys.stdin: its lock, held here, would make the interpreter fail when it ends.
        while os.read(0, 4096):
            pass
        stop.set()

    Thread(target=wait, daemon=True).start()
