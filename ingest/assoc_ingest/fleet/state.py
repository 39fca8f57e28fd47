"""What a machine remembers of its pushes: `<database>.push`, changed by one process at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BusyError, DatabaseError, UsageError
from ..files.private import write_private
from ..paths import comparable
from ..store.changes import SECOND_RECORD
from ..store.database import resolved
from .projection import EVERYTHING, VERSION, Cursor, Masks, Scope, of_paths

# ------------------------------------------------------------------------------------------------
# What a machine remembers of its pushes: `<database>.push`, which only its user can read.
#
# It is no part of the database: a copy of the database has no identity, and cannot push as the
# original does. No password is in it, and no text.


_FORMAT = 1


@dataclass(slots=True)
class State:
    """The identity of this machine on the server, what it may send, and how far it has."""

    place: Path
    """Where it is kept."""
    uuid: str
    """Names this machine on the server."""
    label: str
    """What people call it."""
    db_uuid: str
    """The database that is pushed, see `projection.database_key`."""
    destination: str
    """The server, without a password."""
    version: int = 0
    """What the server had counted after the last push."""
    nonces: list[str] = field(default_factory=list)
    """Random names of the pushes; the server may know the last one."""
    cursor: Cursor | None = None
    """The state of the database that the server has; None: compare everything."""
    allowed: list[str] = field(default_factory=list)
    """Paths of the projects that may leave this machine."""
    all_projects: bool = False
    """Everything may."""
    masks: str | None = None
    """The version of the rules that covered credentials; None: they were not covered."""

    def allow(self, paths: Iterable[str]) -> None:
        """Let the conversations of these projects leave, too. The next push compares everything."""
        self.allowed = sorted({*self.allowed, *paths})
        self.cursor = None

    def allow_all(self) -> None:
        """Let everything leave. The next push compares everything."""
        self.all_projects = True
        self.cursor = None

    def disallow(self, path: str) -> bool:
        """Let a project leave no more; return whether it was allowed."""
        remaining = [known for known in self.allowed if comparable(known) != comparable(path)]
        was_allowed = remaining != self.allowed
        self.allowed, self.cursor = remaining, None
        return was_allowed

    def disallow_all(self) -> None:
        """Let only the projects leave that were named."""
        self.all_projects, self.cursor = False, None

    def cover(self, masks: Masks) -> None:
        """Note how credentials are covered. If that changed, the next push compares everything."""
        rules = VERSION if masks.is_on else None
        if rules != self.masks:
            self.masks, self.cursor = rules, None

    def scope(self, connection: sqlite3.Connection) -> Scope:
        """Return what may leave the database now."""
        return EVERYTHING if self.all_projects else of_paths(connection, self.allowed)

    def save(self) -> None:
        """Write it, whole or not at all; it is on the disk when this returns."""
        values = {name: value for name, value in asdict(self).items() if name != "place"}
        text = json.dumps({"format": _FORMAT, **values}, ensure_ascii=False, indent=1)
        write_private(self.place, [text, "\n"], overwrite=True)


def place_of(database: Path) -> Path:
    database = resolved(database)
    return database.with_name(f"{database.name}{SECOND_RECORD}")


def load(database: Path) -> State | None:
    """Return the state of a database, None if it was never set up.

    Raises DatabaseError if the file is damaged or of a newer version.
    """
    place = place_of(database)
    try:
        found = json.loads(place.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise _unusable(place, "it is damaged") from None
    if not isinstance(found, dict):
        raise _unusable(place, "it is damaged")
    if found.pop("format", None) != _FORMAT:
        raise _unusable(place, "another version wrote it")
    return _state(place, found)


def _state(place: Path, found: Mapping[str, Any]) -> State:
    try:
        state = State(place, **found)
        state.cursor = Cursor(*state.cursor) if state.cursor is not None else None
    except TypeError:
        raise _unusable(place, "it is damaged") from None
    return state


def _unusable(place: Path, why: str) -> DatabaseError:
    return DatabaseError(
        f"{place} cannot be used: {why}. Move it away, run `assoc-ingest remote init`, and then "
        "`assoc-ingest remote adopt` to continue with the data on the server"
    )


# ------------------------------------------------------------------------------------------------
# What this machine remembers of its server, changed by one process at a time.


PATIENCE = 5.0
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
    with push_lock(database, PATIENCE):
        state = state_of(database)
        yield state
        state.save()


@contextmanager
def push_lock(database: Path, patience: float = 0) -> Iterator[None]:
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
