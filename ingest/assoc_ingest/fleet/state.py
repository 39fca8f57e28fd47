"""The state of a machine: `<database>.push`, changed by one process at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DatabaseError, UsageError
from ..files.private import write_private
from ..lock import file_lock
from ..paths import comparable
from ..store.changes import SECOND_RECORD
from ..store.database import resolved
from .projection import EVERYTHING, VERSION, Cursor, Masks, Scope, of_paths

# ------------------------------------------------------------------------------------------------
# The state of a machine, in `<database>.push`, which only its user can read.
#
# It is not part of the database, so that a copy of the database has no identity and cannot push as
# the original. It contains no password and no text.


_FORMAT = 1


@dataclass(slots=True)
class State:
    """The identity of this machine on the server, what it may send, and what it has sent."""

    place: Path
    """The file of this state."""
    uuid: str
    """The identity of this machine on the server."""
    label: str
    """Its name for people."""
    db_uuid: str
    """The database that is pushed (`projection.database_key`)."""
    destination: str
    """The server, without a password."""
    version: int = 0
    """The version of the server after the last push."""
    nonces: list[str] = field(default_factory=list)
    """Random names of pushes; the server may have the last one."""
    cursor: Cursor | None = None
    """The pushed state of the database; None: compare everything."""
    allowed: list[str] = field(default_factory=list)
    """Paths of the projects that may leave this machine."""
    all_projects: bool = False
    """May everything leave?"""
    masks: str | None = None
    """The version of the masking rules; None: credentials were not masked."""

    def allow(self, paths: Iterable[str]) -> None:
        """Allow the conversations of these projects. The next push compares everything."""
        self.allowed = sorted({*self.allowed, *paths})
        self.cursor = None

    def allow_all(self) -> None:
        """Allow everything. The next push compares everything."""
        self.all_projects = True
        self.cursor = None

    def disallow(self, path: str) -> bool:
        """Undo `allow` for a project; return whether it was allowed."""
        remaining = [known for known in self.allowed if comparable(known) != comparable(path)]
        was_allowed = remaining != self.allowed
        self.allowed, self.cursor = remaining, None
        return was_allowed

    def disallow_all(self) -> None:
        """Undo `allow_all`; projects that were named stay allowed."""
        self.all_projects, self.cursor = False, None

    def cover(self, masks: Masks) -> None:
        """Record how credentials are masked. After a change, the next push compares everything."""
        rules = VERSION if masks.is_on else None
        if rules != self.masks:
            self.masks, self.cursor = rules, None

    def scope(self, connection: sqlite3.Connection) -> Scope:
        """Return what may leave the database."""
        return EVERYTHING if self.all_projects else of_paths(connection, self.allowed)

    def save(self) -> None:
        """Write it completely or not at all; it is on the disk when this returns."""
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
# Reading and changing the state, one process at a time.


PATIENCE = 5.0
"""Seconds that a change of the state waits for a push: those of a watch are short."""


def state_of(database: Path) -> State:
    """Return the state of this machine. Raises UsageError if it was never set up."""
    state = load(database)
    if state is None:
        raise UsageError(
            "This machine has no server yet: run `assoc-ingest remote init "
            "postgresql://user@host/database`."
        )
    return state


@contextmanager
def changing(database: Path) -> Iterator[State]:
    """Yield the state of this machine, and save it at the end; no push runs meanwhile.

    Otherwise a push could overwrite the change with the state that it had read before.
    """
    with push_lock(database, PATIENCE):
        state = state_of(database)
        yield state
        state.save()


@contextmanager
def push_lock(database: Path, patience: float = 0) -> Iterator[None]:
    """Hold the lock of pushes. Raises BusyError if others keep it for `patience` seconds."""
    lock = Path(f"{place_of(database)}.lock")
    with file_lock(lock, lambda: "Another push of this database is running.", patience):
        yield
