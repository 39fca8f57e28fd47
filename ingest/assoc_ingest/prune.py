"""Removing what an agent deleted, when its user says so: `prune --gone`.

A sync never removes anything because a file did. This does: the rows and the archive of files that
are gone, and the tasks, messages and entries of lists that vanished from documents which are still
there. What is left is what a sync from scratch of the remaining files would give.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .database import open_reader, writing
from .keyed import CONDITIONS
from .store import Batch
from .touched import id_list
from .when import now

_ALWAYS = "9999"  # what is gone is gone before this


@dataclass(frozen=True, slots=True)
class LostSession:
    """A conversation of which files go."""

    session_key: str
    title: str | None
    files: int
    messages: int
    bytes: int
    is_whole: bool
    """Nothing is left of it."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes: sessions by key, and sums over all files, those of no session included."""

    sessions: list[LostSession]
    files: int
    messages: int
    bytes: int
    tasks: int
    inbox_items: int
    entries: int
    """What else lists named: conversations, members, todos and the like."""

    @property
    def is_nothing(self) -> bool:
        """Is there nothing to remove?"""
        return not (self.files or self.tasks or self.inbox_items or self.entries)


def prune_gone(database: Path, before: str | None, *, dry_run: bool) -> Removal:
    """Remove files and rows that are gone, since before the time `before` if one is given.

    `before` is a stored time (UTC text). With `dry_run` nothing is changed, and no lock taken.
    Returns what went, or would go. Raises DatabaseError if there is no database of ours,
    BusyError if another process writes, and sqlite3.Error; then nothing is removed.
    """
    reader = open_reader(database)  # says so if there is none: writing would make one
    try:
        if dry_run:
            return describe(reader, gone_files(reader, before), before)
    finally:
        reader.close()
    with writing(database) as connection:
        ids = gone_files(connection, before)
        removal = describe(connection, ids, before)
        if not removal.is_nothing:
            _remove(connection, ids, before)
        return removal


def gone_files(connection: sqlite3.Connection, before: str | None) -> list[int]:
    """Return the ids of the files that are gone since before this time, by path."""
    rows = connection.execute(
        "select id from files where gone_at < ? order by path, generation", (before or _ALWAYS,)
    )
    return [file_id for (file_id,) in rows]


def describe(
    connection: sqlite3.Connection, file_ids: Iterable[int], before: str | None
) -> Removal:
    """Say what goes with these files, and what vanished from other documents before that time."""
    ids = id_list(file_ids)
    rows = connection.execute(
        "select coalesce(s.session_key, f.session_key), max(s.title), count(*),"
        " sum((select count(*) from messages m where m.file_id = f.id)), sum(f.size),"
        " not exists (select 1 from files o where o.session_id = f.session_id"
        f"  and o.id not in ({ids}))"
        f" from files f left join sessions s on s.id = f.session_id where f.id in ({ids})"
        " group by f.session_id, f.session_key order by max(s.ended_at), 1"
    ).fetchall()
    sessions = [
        LostSession(key, title, files, messages, size, bool(is_whole))
        for key, title, files, messages, size, is_whole in rows
        if key is not None
    ]
    counts = {
        table: connection.execute(
            f"select count(*) from {table}"
            f" where gone_at < ? or (file_id in ({ids}) and {is_entry})",
            (before or _ALWAYS,),
        ).fetchone()[0]
        for table, is_entry in CONDITIONS.items()
    }
    files, messages, size = (sum(row[place] for row in rows) for place in (2, 3, 4))
    return Removal(
        sessions,
        files,
        messages,
        size,
        tasks=counts.pop("tasks"),
        inbox_items=counts.pop("inbox_items"),
        entries=sum(counts.values()),
    )


def _remove(connection: sqlite3.Connection, file_ids: list[int], before: str | None) -> None:
    batch = Batch(connection, now())
    try:
        batch.remove_entries(before or _ALWAYS)
        batch.remove(file_ids)
        batch.prepare()
        batch.finish()
    except BaseException:
        batch.rollback()
        raise
