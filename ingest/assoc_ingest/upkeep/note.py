"""Writes notes: what a user says, and no file.

A watch holds the writer's lock all the time. So a note waits in a file next to the database if the
lock is held, and the watch takes it from there within a second.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..ask.notes import Note, Target, notes, target_of
from ..errors import BusyError, NotFoundError, UsageError
from ..fields import storable
from ..files.exclusions import load_secrets
from ..files.private import write_new
from ..store.batch import Batch
from ..store.database import Clock, open_reader, resolved, writing

MOST = 20_000
"""Letters of a note."""
_LONGEST_TITLE = 200
_PATIENCE = 10.0  # seconds
_PAUSE = 0.1

_THIS = "session_key is :session_key and line_key is :line_key and path is :path and origin is null"


@dataclass(frozen=True, slots=True)
class Change:
    """What a user says of a target; None leaves a part of the note as it is, '' takes it away."""

    text: str | None = None
    verdict: str | None = None
    title: str | None = None
    is_starred: bool | None = None

    @property
    def is_none(self) -> bool:
        return (self.text, self.verdict, self.title, self.is_starred) == (None, None, None, None)


class _Row(NamedTuple):
    """A note as it is to be; one that says nothing is removed."""

    session_key: str | None
    line_key: str | None
    path: str | None
    text: str | None = None
    verdict: str | None = None
    title: str | None = None
    is_starred: int = 0


def write_note(database: Path, name: str, change: Change) -> Note:
    """Write a note on what `name` means, and return it.

    Raises NotFoundError or UsageError if that is not there or the note is too long or says nothing,
    and BusyError if another process keeps the database to itself.
    """
    _check(change)
    with closing(open_reader(database)) as reader:
        target = target_of(reader, name)
        if change.title and (target.path or target.line_key):
            raise UsageError("Only a conversation has a title: give its key, without a line.")
        row = _changed(reader, target, change)
    if not any(row[3:]):
        raise UsageError("The note would say nothing. To take it away: --remove")
    _put(database, row)
    return _note_on(database, target)


def remove_note(database: Path, name: str) -> Note:
    """Remove the note on what `name` means, and return what it was. Raises as `write_note`."""
    with closing(open_reader(database)) as reader:
        target = target_of(reader, name)
    note = _note_on(database, target)
    _put(database, _Row(*target))
    return note


def read_notes(database: Path, name: str) -> list[Note]:
    """Return the notes on what `name` means, those on the lines of a conversation included."""
    with closing(open_reader(database)) as reader:
        target = target_of(reader, name)
        if target.path is not None:
            return notes(reader, paths=[target.path])
        found = notes(reader, session_key=target.session_key)
        return [one for one in found if target.line_key in (None, one.line_key)]


def _check(change: Change) -> None:
    if len(change.text or "") > MOST:
        raise UsageError(f"A note has at most {MOST:,} letters.")
    if len(change.title or "") > _LONGEST_TITLE:
        raise UsageError(f"A title has at most {_LONGEST_TITLE} letters.")


def _changed(connection: sqlite3.Connection, target: Target, change: Change) -> _Row:
    """Return the note on a target as it is after a change."""
    row = connection.execute(
        f"select text, verdict, title, is_starred from notes where {_THIS}", target._asdict()
    ).fetchone()
    text, verdict, title, is_starred = row or (None, None, None, 0)
    return _Row(
        *target,
        text if change.text is None else storable(change.text).strip() or None,
        verdict if change.verdict is None else change.verdict or None,
        title if change.title is None else storable(change.title).strip() or None,
        is_starred if change.is_starred is None else int(change.is_starred),
    )


def _note_on(database: Path, target: Target) -> Note:
    """Return the user's own note on a target. Raises NotFoundError if there is none."""
    with closing(open_reader(database)) as reader:
        row = reader.execute(f"select id from notes where {_THIS}", target._asdict()).fetchone()
        if row is None:
            raise NotFoundError("There is no note on it. To see all: assoc-ingest list notes")
        return notes(reader, id=row["id"])[0]


# ------------------------------------------------------------------------------------------------
# The only transaction of a note, here or in a watch.


def _put(database: Path, row: _Row) -> None:
    """Store a note, or let the process do it that holds the writer's lock."""
    place, is_left, end = _place(database), False, time.monotonic() + _PATIENCE
    while True:
        try:
            with writing(database) as connection:
                _store(connection, row)
            break
        except BusyError:
            if is_left and not place.exists():
                return  # a watch has taken it
            if time.monotonic() >= end:
                if is_left:
                    place.unlink(missing_ok=True)
                raise
        if not is_left:
            is_left = _leave(place, row)
        time.sleep(_PAUSE)
    if is_left:
        place.unlink(missing_ok=True)


def _place(database: Path) -> Path:
    return Path(f"{resolved(database)}.note")


def _leave(place: Path, row: _Row) -> bool:
    """Leave a note for the process that holds the lock, unless another one waits there."""
    try:
        write_new(place, [json.dumps(row).encode()])
    except FileExistsError:
        return False
    return True


def take_left(connection: sqlite3.Connection, database: Path) -> None:
    """Store the note that waits for the process that holds the lock, if there is one."""
    place = _place(database)
    if not place.is_file():
        return
    try:
        row = _Row(*json.loads(place.read_bytes()))
    except (ValueError, TypeError):  # of another version: its process says that it has to wait
        return
    _store(connection, row)
    place.unlink(missing_ok=True)


def _store(connection: sqlite3.Connection, row: _Row) -> None:
    """Insert, change or remove a note. What was forgotten is not stored again."""
    secrets = load_secrets(connection)

    def without(text: str | None) -> str | None:
        return text and secrets.without(text.encode(), is_log=False)[0].decode()

    given = {**row._asdict(), "text": without(row.text), "title": without(row.title)}
    with Batch(connection, Clock(connection).now()) as batch:
        if any(row[3:]):
            connection.execute(
                f"insert into notes (id, {', '.join(_Row._fields)}, noted_at) values"
                f" ((select id from notes where {_THIS}),"
                f" {', '.join(f':{name}' for name in _Row._fields)}, :now)"
                " on conflict (id) do update set text = excluded.text,"
                " verdict = excluded.verdict, title = excluded.title,"
                " is_starred = excluded.is_starred, noted_at = excluded.noted_at",
                {**given, "now": batch.now},
            )
        else:
            connection.execute(f"delete from notes where {_THIS}", given)
        batch.touch_session(row.session_key)
