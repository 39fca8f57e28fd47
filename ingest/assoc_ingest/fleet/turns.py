"""What this machine remembers of its server, changed by one process at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ..errors import BusyError, UsageError
from .state import State, load, place_of

_PATIENCE = 5.0
"""Seconds that a change of what is remembered waits for a push: each of a watch is short."""


def state_of(database: Path) -> State:
    """Return what this machine remembers. Raises UsageError if it was never set up."""
    state = load(database)
    if state is None:
        raise UsageError(
            "This machine has no server yet: run `assoc-ingest remote init "
            "postgresql://user@host/database`."
        )
    return state


@contextmanager
def changing(database: Path) -> Iterator[State]:
    """Yield what this machine remembers, and save it at the end; no push runs meanwhile.

    A push that saved what it had read before would undo the change, or be undone by it.
    """
    with after_others(database):
        state = state_of(database)
        yield state
        state.save()


def after_others(database: Path) -> AbstractContextManager[None]:
    """Hold the lock of pushes after waiting for it. Raises BusyError after some seconds."""
    return one_at_a_time(database, _PATIENCE)


@contextmanager
def one_at_a_time(database: Path, patience: float = 0) -> Iterator[None]:
    """Hold the lock of pushes. Raises BusyError if another process keeps it so many seconds."""
    from filelock import FileLock, Timeout

    lock = FileLock(f"{place_of(database)}.lock", timeout=patience, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError("Another push of this database is running.") from None
    try:
        yield
    finally:
        lock.release()
