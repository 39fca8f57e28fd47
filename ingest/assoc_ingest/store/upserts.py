"""Entries of documents, which are kept when their document drops them: tasks, inboxes, all lists.

Agents and applications rewrite these documents as a whole, and delete them when they are done; what
was in them is worth keeping. So an entry is matched by its key, and its row is updated in place and
keeps its id. An entry that the document no longer contains gets `gone_at`; if it comes back,
`gone_at` is cleared. Only changes are written, so an unchanged inbox costs only reading it. Every
change of a task that a sync sees is kept in `task_changes`.

Which records are entries: messages of an inbox; tasks and todos of a file, not those that a
transcript states (`statements`); documents that are tickets; links that name their session, as
those in transcripts do not; what a list says about a session, not what the session's own file says
(`meta`, `relocated`). All entries are in documents that are read as one line, so each version of a
document has all of its entries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ..records import Document, InboxItem, Link, ProjectEntry, SessionEntry, Task, TeamMember, Todo

Row = tuple[tuple[object, ...], Any]
"""An entry to be stored: the ids that its record refers to, and the record."""


@dataclass(frozen=True, slots=True)
class Entries:
    """How entries of one type are stored in a table."""

    table: str
    key: Callable[[Any], object]
    """What identifies an entry within its document."""
    references: tuple[str, ...] = ()
    """Columns of ids that the store adds to the record."""
    is_entry: Callable[[Any], bool] = lambda record: True
    condition: str = "1"
    """The same as `is_entry`, in SQL."""
    shared_key: tuple[str, ...] = ()
    """Columns that identify an entry in all documents, where several may have the same one."""
    found: dict[str, str] = field(default_factory=dict)
    """Columns of keys that may change, each with the column of the id that `references` fills."""


ENTRIES: dict[type, Entries] = {
    Task: Entries(
        "tasks",
        attrgetter("list_key", "task_key"),
        ("source_id",),
        condition="channel = 'file'",
        shared_key=("source_id", "list_key", "task_key"),
    ),
    InboxItem: Entries(
        "inbox_items",
        attrgetter("timestamp", "sender", "text_hash", "ordinal"),
        ("team_id",),
        lambda item: bool(item.channel == "inbox"),
        "channel = 'inbox'",
    ),
    SessionEntry: Entries(
        "session_entries",
        attrgetter("session_key", "kind"),
        ("session_id", "project_id"),
        lambda entry: entry.kind not in ("meta", "relocated"),
        "kind not in ('meta', 'relocated')",
        found={"linked_session_key": "linked_session_id"},
    ),
    ProjectEntry: Entries("project_entries", attrgetter("key"), ("project_id",)),
    Todo: Entries(
        "todos",
        attrgetter("content", "ordinal"),
        condition="channel = 'file'",
        found={"session_key": "session_id", "agent_key": "subagent_id"},
    ),
    TeamMember: Entries(
        "team_members",
        lambda member: (member.agent_id or member.name, member.ordinal),
        ("team_id",),
    ),
    Link: Entries(
        "links",
        attrgetter("kind", "url", "session_key"),
        is_entry=lambda link: link.session_key is not None,
        condition="session_key is not null",
    ),
    Document: Entries(
        "documents",
        attrgetter("ordinal"),
        ("project_id",),
        lambda document: bool(document.kind == "ticket"),
        "kind = 'ticket'",
        found={"session_key": "session_id"},
    ),
}
"""The types of records that can be entries."""

CONDITIONS = {entries.table: entries.condition for entries in ENTRIES.values()}
"""The tables that have entries, and the condition for a row to be one."""

OF_THEIR_PLACE = ("task", "task_snapshot", "inbox", "todos", "team")
"""Kinds of documents whose path says whose entries they have: the same content at another path is
another document."""

_TRACKED = ("subject", "description", "status", "owner", "active_form", "metadata")


@dataclass(frozen=True, slots=True)
class Version:
    """A document as it was read: from the disk at the time `now`, or again from its archive."""

    file_id: int
    source_id: int
    now: str
    is_replayed: bool = False
    gone_at: str | None = None
    """When the document went missing: entries that are read again stay gone."""


def split(records: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Split records of one type into entries, without duplicates, and all others.

    A list may have an entry twice. Two entries of a session are merged; of a task the last one
    counts, of anything else the first.
    """
    found: dict[object, Any] = {}
    others = []
    for record in records:
        entries = ENTRIES[type(record)]
        if not entries.is_entry(record):
            others.append(record)
            continue
        key = entries.key(record)
        found[key] = _merged(found[key], record) if key in found else record
    return list(found.values()), others


def _merged(first: Any, second: Any) -> Any:
    if isinstance(first, Task):
        return second
    if isinstance(first, SessionEntry):
        return first._replace(**{k: v for k, v in second._asdict().items() if v is not None})
    return first


def apply(
    connection: sqlite3.Connection, kind: type, version: Version, rows: Sequence[Row]
) -> None:
    """Update the stored entries of one type of a document to those of this version.

    Entries that it does not contain get `gone_at`. If it is re-parsed from the archive, its bytes
    are those that were read before: a row that it does not contain, and that is not gone, is a
    mistake and is deleted.
    """
    entries = ENTRIES[kind]
    names = ("file_id", "gone_at", *entries.references, *kind._fields)  # type: ignore[attr-defined]
    known = _known(connection, kind, names, version, rows)
    added, kept = [], set()
    for references, record in rows:
        row = known.get(entries.key(record))
        if row is None:
            added.append((version.file_id, version.gone_at, *references, *record))
            continue
        id_, file_id, gone_at, *_ = row
        kept.add(id_)
        if version.gone_at is not None and file_id != version.file_id:
            continue  # another document has it, too
        # An entry cannot be gone later than its document: a lost row was made again at that time.
        gone_at = version.gone_at and min(gone_at or version.gone_at, version.gone_at)
        values = (version.file_id, gone_at, *references, *record)
        if row[1:] != values:
            _update(connection, entries, names, row, values)
            if kind is Task and not version.is_replayed:
                _note_changes(connection, names, row, values, version.now)
    connection.executemany(
        f"insert into {entries.table} ({', '.join(names)}) values ({', '.join('?' * len(names))})",
        added,
    )
    missing = [
        id_
        for id_, file_id, gone_at, *_ in known.values()
        if gone_at is None and id_ not in kept and file_id == version.file_id
    ]
    if version.is_replayed:
        connection.executemany(
            f"delete from {entries.table} where id = ?", [(id_,) for id_ in missing]
        )
    else:
        connection.executemany(
            f"update {entries.table} set gone_at = ? where id = ?",
            [(version.now, id_) for id_ in missing],
        )


def _known(
    connection: sqlite3.Connection,
    kind: type,
    names: Sequence[str],
    version: Version,
    rows: Sequence[Row],
) -> dict[object, tuple[Any, ...]]:
    """Return the rows of the document by key, and those of other documents that it has, too."""
    entries = ENTRIES[kind]
    select = f"select id, {', '.join(names)} from {entries.table} where"
    first = 3 + len(entries.references)  # the position of the record's first field

    def key(row: Sequence[Any]) -> object:
        return entries.key(kind(*row[first:]))

    found = connection.execute(
        f"{select} file_id = ? and {entries.condition}", (version.file_id,)
    ).fetchall()
    known = {key(row): row for row in found}
    if entries.shared_key:
        where = " and ".join(f"{column} = ?" for column in entries.shared_key)
        place = [names.index(column) for column in entries.shared_key]
        for references, record in rows:
            if entries.key(record) not in known:
                values = (None, None, *references, *record)
                row = connection.execute(
                    f"{select} {where} and {entries.condition}",
                    [values[number] for number in place],
                ).fetchone()
                if row is not None:
                    known[key(row)] = row
    return known


def _update(
    connection: sqlite3.Connection,
    entries: Entries,
    names: Sequence[str],
    row: Sequence[object],
    values: Sequence[object],
) -> None:
    outdated = [
        id_column
        for column, id_column in entries.found.items()
        if row[1 + names.index(column)] != values[names.index(column)]
    ]
    assignments = [f"{name} = ?" for name in names] + [f"{name} = null" for name in outdated]
    connection.execute(
        f"update {entries.table} set {', '.join(assignments)} where id = ?", (*values, row[0])
    )


def _note_changes(
    connection: sqlite3.Connection,
    names: Sequence[str],
    row: Sequence[object],
    values: Sequence[object],
    now: str,
) -> None:
    """Keep the earlier values of a task, which are stored nowhere else."""
    changes = [
        (row[0], name, before, after, now)
        for name, before, after in zip(names, row[1:], values, strict=True)
        if name in _TRACKED and before != after
    ]
    connection.executemany(
        "insert into task_changes (task_id, field, old_value, new_value, seen_at)"
        " values (?, ?, ?, ?, ?)",
        changes,
    )


def has_entries(connection: sqlite3.Connection, file_id: int) -> bool:
    """Are there entries of a document, gone or not?"""
    (found,) = connection.execute(_HAS_ENTRIES, {"file": file_id}).fetchone()
    return bool(found)


_HAS_ENTRIES = "select " + " or ".join(
    f"exists (select 1 from {table} where file_id = :file and {condition})"
    for table, condition in CONDITIONS.items()
)


def mark_file_gone(connection: sqlite3.Connection, file_id: int, now: str) -> None:
    """Record that a document is missing, and its entries with it."""
    for table, condition in CONDITIONS.items():
        connection.execute(
            f"update {table} set gone_at = ? where file_id = ? and gone_at is null and {condition}",
            (now, file_id),
        )


def mark_file_back(connection: sqlite3.Connection, file_id: int, gone_at: str) -> None:
    """Record that a document is there again, broken: its entries are those that it had before."""
    for table, condition in CONDITIONS.items():
        connection.execute(
            f"update {table} set gone_at = null where file_id = ? and gone_at >= ? and {condition}",
            (file_id, gone_at),
        )
