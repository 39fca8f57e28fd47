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
"""The exit code of a command that SIGINT stopped."""

_KEEPING = "Keeping what was read; press Ctrl-C again to discard it."


class Terminated(BaseException):
    """SIGTERM arrived. No `except Exception` may catch it, so that transactions roll back."""


_came: list[int] = []
"""The signals that were raised as Terminated."""


def raise_on_sigterm() -> None:
    """Let SIGTERM raise Terminated, in the main thread."""

    def terminate(number: int, frame: FrameType | None) -> None:
        _came.append(number)
        raise Terminated

    _came.clear()
    with suppress(ValueError):  # only the main thread handles signals
        signal.signal(signal.SIGTERM, terminate)


class Stop(Event):
    """Set when a signal asks the command to stop; `exit_code` is then the exit code to use."""

    exit_code = 0


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """Let SIGTERM and SIGINT set the event instead of raising; a second SIGINT interrupts.

    The handlers do not raise the first time: the library that waits for changes would swallow the
    exception.
    """
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if stop.is_set():
                raise KeyboardInterrupt
            stop.exit_code = INTERRUPTED
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    if _came:  # while modules were imported, which passes over what is raised in some places
        stop.set()
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Keeping:
    """How signals are handled while a result is being made, see `kept_at_the_end`."""

    is_given_up = False
    """The user does not want the result any more."""

    def __init__(self) -> None:
        self._is_ending = False
        self._late: int | None = None
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def end(self) -> None:
        """The result is complete: signals now wait until it has been moved to its place."""
        self._is_ending = True

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._before[number](number, frame)
        elif self._late is None:
            self._late = number
            with suppress(
                OSError, ValueError, RuntimeError
            ):  # nobody reads it, or the signal arrived while printing
                print(_KEEPING, file=sys.stderr, flush=True)
        elif number == signal.SIGINT:
            self.is_given_up = True
            raise KeyboardInterrupt

    def _answer_late(self) -> None:
        if self._late is not None:
            self._before[self._late](self._late, None)


@contextmanager
def kept_at_the_end() -> Iterator[Keeping]:
    """Let the first signal interrupt as usual, but finish what has to be done then.

    A second signal only prints a message: someone who presses Ctrl-C twice wants a reaction, and
    not to lose the work of an hour. Another Ctrl-C gives up the result. If the first signal arrives
    when the result is complete (`end`), it waits, too, and is handled afterwards.
    """
    keeping = Keeping()
    if current_thread() is not main_thread():  # another thread handles signals
        yield keeping
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        handler = signal.getsignal(number)
        if callable(handler):  # otherwise it ends the process at once, or is ignored
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

    A pipe closes when the process at its other end is gone, for whatever reason; that process may
    not live long enough to send a signal.
    """

    def wait() -> None:
        # Not sys.stdin: if its lock is held here, the interpreter fails at exit.
        while os.read(0, 4096):
            pass
        stop.set()

    Thread(target=wait, daemon=True).start()
