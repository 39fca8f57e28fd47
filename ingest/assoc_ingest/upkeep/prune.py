"""Removing the data of files that an agent deleted, when the user asks for it: `prune --gone`.

A sync never removes anything because a file did. This does: the rows and the archive of files that
are gone, and the tasks, messages and entries of lists that vanished from documents which are still
there. What is left is what a sync from scratch of the remaining files would give.
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
    """A conversation of which files go."""

    session_key: str
    title: str | None
    files: int
    messages: int
    bytes: int
    is_whole: bool
    """Nothing is left of it."""
    gone_at: str
    """Since when the last of these files is gone."""


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
    before: str | None
    """What goes is gone since before this time, if one was asked for."""
    kept: list[Kept]
    """Files that stay because it is not certain since when they are gone."""
    kept_entries: int
    """Entries of lists that stay for the same reason."""

    @property
    def is_nothing(self) -> bool:
        """Is there nothing to remove?"""
        return not (self.files or self.tasks or self.inbox_items or self.entries)


def prune_gone(database: Path, before: str | None, *, dry_run: bool) -> Removal:
    """Remove files and rows that are gone, since before `before` if it is given: `90d`, or a date.

    With `dry_run` nothing is changed, and no lock taken. Returns what went, or would go. Raises
    UsageError for an invalid time, DatabaseError if there is no assoc-ingest database,
    BusyError if another process writes, and sqlite3.Error; then nothing is removed.
    """
    reader = open_reader(database)  # says so if there is none: writing would make one
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
    """Say what goes with these files, and what else is gone since before that limit."""
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
        bereft = repeating_removed(connection, file_ids)
        batch.remove_entries(limit.since, limit.before)
        batch.remove(file_ids)
        derive_in(batch, bereft)
