"""Removes the data of files that an agent deleted, at the user's request: `prune --gone`.

A sync never removes data because a file is gone. This removes the rows and the archive of files
that are gone, and the tasks, messages and list entries that vanished from existing documents. What
is left is what a sync of the remaining files into a new database would give.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..files.agent_files import repeating_removed
from ..sql import id_list
from ..store.batch import Batch
from ..store.clock import Clock
from ..store.database import open_reader, writing
from ..store.upserts import CONDITIONS
from .gone_since import EVER, Kept, Limit, gone_files, kept_files, limit_of
from .rebuild import derive_in

_GONE = "(gone_at >= :since and gone_at < :before)"


@dataclass(frozen=True, slots=True)
class LostSession:
    """A conversation that loses files."""

    session_key: str
    title: str | None
    files: int
    messages: int
    bytes: int
    is_whole: bool
    """It loses all of its files."""
    gone_at: str
    """When the last of these files went missing."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What is removed: sessions by key, and sums over all files, with or without a session."""

    sessions: list[LostSession]
    files: int
    messages: int
    bytes: int
    tasks: int
    inbox_items: int
    entries: int
    """Other entries of lists: conversations, members, todos and the like."""
    before: str | None
    """The limit that was asked for: only what went missing before this time is removed."""
    kept: list[Kept]
    """Files that are kept because it is not certain when they went missing."""
    kept_entries: int
    """The number of list entries that are kept for the same reason."""

    @property
    def is_nothing(self) -> bool:
        """Is there nothing to remove?"""
        return not (self.files or self.tasks or self.inbox_items or self.entries)


def prune_gone(database: Path, before: str | None, *, dry_run: bool) -> Removal:
    """Remove files and rows that are gone; with `before` (`90d` or a date), only those gone by
    then.

    With `dry_run` nothing is changed, and no lock is taken. Returns what was removed, or would be.
    Raises UsageError for an invalid time, DatabaseError if there is no assoc-ingest database,
    BusyError if another process writes, and sqlite3.Error; then nothing is removed.
    """
    reader = open_reader(database)  # raises if there is no database; `writing` would create one
    try:
        limit = limit_of(reader, before)
        if dry_run:
            return describe(reader, gone_files(reader, limit), limit)
    finally:
        reader.close()
    with writing(database) as connection:
        limit = limit_of(connection, before)
        ids = gone_files(connection, limit)
        removal = describe(connection, ids, limit)
        if not removal.is_nothing:
            _remove(connection, ids, limit)
        return removal


def describe(connection: sqlite3.Connection, file_ids: Iterable[int], limit: Limit) -> Removal:
    """Return what is removed with these files, and what else was gone before the limit."""
    ids = id_list(file_ids)
    rows = connection.execute(
        "select coalesce(s.session_key, f.session_key), max(s.title), count(*),"
        " sum((select count(*) from messages m where m.file_id = f.id)), sum(f.size),"
        " not exists (select 1 from files o where o.session_id = f.session_id"
        f"  and o.id not in ({ids})), max(f.gone_at)"
        f" from files f left join sessions s on s.id = f.session_id where f.id in ({ids})"
        " group by f.session_id, f.session_key order by max(s.ended_at), 1"
    ).fetchall()
    sessions = [
        LostSession(key, title, files, messages, size, bool(is_whole), gone_at)
        for key, title, files, messages, size, is_whole, gone_at in rows
        if key is not None
    ]

    def count(table: str, where: str) -> int:
        row = connection.execute(f"select count(*) from {table} where {where}", asdict(limit))
        return int(row.fetchone()[0])

    counts = {
        table: count(table, f"{_GONE} or (file_id in ({ids}) and {is_entry})")
        for table, is_entry in CONDITIONS.items()
    }
    return Removal(
        sessions,
        files=sum(row[2] for row in rows),
        messages=sum(row[3] for row in rows),
        bytes=sum(row[4] for row in rows),
        tasks=counts.pop("tasks"),
        inbox_items=counts.pop("inbox_items"),
        entries=sum(counts.values()),
        before=None if limit is EVER else limit.before,
        kept=kept_files(connection, limit),
        kept_entries=sum(count(table, f"gone_at < :asked and not {_GONE}") for table in CONDITIONS),
    )


def _remove(connection: sqlite3.Connection, file_ids: list[int], limit: Limit) -> None:
    with Batch(connection, Clock(connection).now()) as batch:
        repeating = repeating_removed(connection, file_ids)
        batch.remove_entries(limit.since, limit.before)
        batch.remove(file_ids)
        derive_in(batch, repeating)
