"""Asks a long-running command to finish its work and stop: by signals, or when its parent ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, current_thread, main_thread
from types import FrameType

INTERRUPTED = 130
"""Exit code of a command that SIGINT stopped."""

_KEEPING = "Keeping what was read; press Ctrl-C again to discard it."


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


class Keeping:
    """How signals are answered while something is made, see `kept_at_the_end`."""

    is_given_up = False
    """Who waits does not want it any more."""

    def __init__(self) -> None:
        self._is_ending = False
        self._late: int | None = None
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def end(self) -> None:
        """Say that it is done: from now on it is put where it belongs, which a signal waits for."""
        self._is_ending = True

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._before[number](number, frame)
        elif self._late is None:
            self._late = number
            with suppress(OSError, ValueError, RuntimeError):  # no reader, or printed twice
                print(_KEEPING, file=sys.stderr, flush=True)
        elif number == signal.SIGINT:
            self.is_given_up = True
            raise KeyboardInterrupt

    def _answer_late(self) -> None:
        if self._late is not None:
            self._before[self._late](self._late, None)


@contextmanager
def kept_at_the_end() -> Iterator[Keeping]:
    """Let the first signal interrupt as ever, and what then has to be done be finished.

    The next one is asked to wait: whoever presses Ctrl-C twice wants a reaction, not to lose what
    took an hour. One more Ctrl-C gives it up. A signal that comes first when all is done (`end`)
    is asked to wait, too, and is handled afterwards.
    """
    keeping = Keeping()
    if current_thread() is not main_thread():  # another thread handles signals
        yield keeping
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        handler = signal.getsignal(number)
        if callable(handler):  # else it ends the process at once, or is ignored
            keeping._before[number] = handler
            signal.signal(number, keeping._answer)
    try:
        yield keeping
    finally:
        for taken, handler in keeping._before.items():
            signal.signal(taken, handler)
    keeping._answer_late()


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Handle signals afterwards: where an exception that a handler raises would do damage."""
    if current_thread() is not main_thread():  # handlers run in another thread
        yield
        return
    held: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda late, frame: held.append(late))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for late in held:
        signal.raise_signal(late)


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
