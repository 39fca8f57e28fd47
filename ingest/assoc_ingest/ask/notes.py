"""Notes: what a user keeps on a conversation, on a line of one, or on a file.

A note names its target by what outlives the rows of the database (`Target`), so it may be about
something that is not there: a conversation that was forgotten, or one of another machine.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from .. import sql
from ..errors import NotFoundError, UsageError, nearest
from ..fields import storable
from ..paths import is_directory, is_file, real_path, slashed
from ..terminal import one_line
from .refs import (
    KeyMatch,
    Line,
    Names,
    find_session,
    messages_of,
    ref_of_note,
    resolve,
    sessions_beginning_with,
    split,
)

_NEAREST = 3


class Target(NamedTuple):
    """What a note is about, as the table names it: a conversation, a line of it, or a file."""

    session_key: str | None = None
    line_key: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A note."""

    ref: str
    """What opens its target; of a file, and of what is gone, what opens the note."""
    text: str | None
    verdict: str | None
    """kept: a decision that held; rejected: one that was turned down."""
    is_starred: bool
    title: str | None
    """The user's own title of the conversation."""
    time: str
    session_key: str | None
    session: str | None
    """Title of the conversation."""
    project: str | None
    path: str | None
    """The file, if it is about one."""
    origin: str | None
    """Label of the machine that it was pulled from."""
    line_key: str | None
    file_id: int | None
    """Where the line is that it is about."""
    byte_offset: int | None
    id: int

    @property
    def label(self) -> str:
        """What it is, in words of ours: `kept note`."""
        return " ".join(filter(None, (self.verdict, "starred" * self.is_starred, "note")))


def target_of(connection: sqlite3.Connection, name: str) -> Target:
    """Return what a user names: a key with or without a line, a file, or a note about it.

    Raises NotFoundError with the nearest if there is no such thing, and UsageError if several are
    meant.
    """
    name = name.strip()
    if not name:
        raise UsageError("Name what the note is about: a key with or without a line, or a file.")
    if (parts := split(name)) and parts[0] == "note":
        return _of_note(connection, parts[1])
    if not sessions_beginning_with(connection, name):
        path = slashed(str(real_path(storable(name))))
        if is_file(name) or notes(connection, paths=[path]):
            return Target(path=path)
        if is_directory(name):
            raise UsageError(f"{name!r} is a directory. A note is about a conversation or a file.")
    try:
        found = resolve(connection, name)
    except NotFoundError:
        if near := _nearest_files(name):
            raise NotFoundError(
                f"There is no file and no conversation {name!r}; the nearest: {near}"
            ) from None
        raise
    return _of_line(connection, found) if isinstance(found, Line) else _of_key(connection, found)


def _of_line(connection: sqlite3.Connection, line: Line) -> Target:
    if line.is_nearest:
        raise NotFoundError(" ".join(line.notes))
    first = messages_of(connection, line)[0]["id"]
    (row,) = sql.ask(connection, "pages/line_key", id=first).fetchall()
    return Target(line.key.session_key, row["line_key"])


def _of_key(connection: sqlite3.Connection, key: KeyMatch) -> Target:
    if key.agent_key is not None:
        find_session(connection, key.agent_key)  # says whose subagent it is
    return Target(key.session_key)


def _of_note(connection: sqlite3.Connection, number: str) -> Target:
    row = connection.execute(
        "select session_key, line_key, path from notes where cast(id as text) = ?", (number,)
    ).fetchone()
    if row is None:
        raise NotFoundError(f"There is no note {number!r}. To see all: assoc-ingest list notes")
    return Target(*row)


def _nearest_files(name: str) -> str:
    """Return the files that are called almost like this, where the user names them."""
    place = Path(name)
    try:
        beside = [one.name for one in place.parent.iterdir() if one.is_file()]
    except (OSError, ValueError):
        return ""
    near = nearest(place.name, beside, _NEAREST)
    return ", ".join(one_line(str(place.parent / one)) for one in near)


def notes(
    connection: sqlite3.Connection,
    *,
    session_key: str | None = None,
    paths: Iterable[str] | None = None,
    id: int | None = None,
) -> list[Note]:
    """Return the notes on a conversation and its lines, or on a file with one of these paths."""
    rows = sql.ask(
        connection, "pages/notes", session_key=session_key, id=id,
        paths=None if paths is None else json.dumps([*paths]),
    ).fetchall()  # fmt: skip
    names = Names(connection)
    return [as_note(connection, names, row) for row in rows]


def noted_sessions(connection: sqlite3.Connection) -> set[str]:
    """Return the keys of the conversations on which, or on a line of which, there is a note."""
    return {row["session_key"] for row in sql.ask(connection, "pages/noted_sessions")}


def notes_above(connection: sqlite3.Connection, session_key: str, line: Line | None) -> list[Note]:
    """Return the notes to show above a conversation, or above some turns around a line of it."""
    found = [one for one in notes(connection, session_key=session_key) if one.text or one.verdict]
    if line is None:
        return found
    place = line.file.id, line.byte_offset
    return [one for one in found if not one.line_key or (one.file_id, one.byte_offset) == place]


def told(found: Iterable[Note], mask: Callable[[str], str]) -> list[dict[str, object]]:
    """Return notes as an answer has them: masked, then cut."""
    return [
        {"ref": one.ref, "is": one.label, "time": one.time,
         "text": mask(one.text or "")[:_LONGEST] or None}
        for one in islice(found, _MOST)
    ]  # fmt: skip


_MOST = 20  # notes in an answer
_LONGEST = 1_000  # letters of one


def as_note(connection: sqlite3.Connection, names: Names, row: sqlite3.Row) -> Note:
    """Return a row of `notes_full`."""
    return Note(
        ref=ref_of_note(connection, names, row),
        text=row["text"],
        verdict=row["verdict"],
        is_starred=bool(row["is_starred"]),
        title=row["title"],
        time=row["noted_at"],
        session_key=row["session_key"],
        session=row["session"],
        project=row["project"],
        path=row["path"],
        origin=row["origin"],
        line_key=row["line_key"],
        file_id=row["file_id"],
        byte_offset=row["byte_offset"],
        id=row["id"],
    )
