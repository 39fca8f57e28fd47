"""Recreates rows of `files` that are in no index, from the archive and the rows that refer to them.

Whose file it is follows from its messages, or else from its lines. The source may be able to derive
the path of a conversation; the path of any other file stays unknown (`lost`).
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from ..files import archive, lost
from ..files.tail import Prefix
from ..records import Issue
from ..source import Whereabouts
from ..sources import SOURCES
from .archive_gaps import note_losses

_ENDS = (
    'select max("end") from archive where file_id = ?',
    "select max(byte_offset + byte_length) from messages where file_id = ?",
    "select max(byte_offset + byte_length) from prompts where file_id = ?",
    "select max(byte_offset + byte_length) from hook_events where file_id = ?",
)
"""Queries that show how far a log was read, if its row is lost."""
_LOOKED_AT = 64 * 1024  # bytes at either end of a file that are searched for its session and path


def as_read(
    connection: sqlite3.Connection, file_id: int, moment: str, least: int
) -> dict[str, Any]:
    """Return columns that say how far a file was read, from its archive and from other tables.

    Other tables show that at least `least` bytes were read. The time is zero, which no file has, so
    that the next sync compares the file.
    """
    prefix, end = Prefix(), least
    for start, data in archive.sound_pieces(connection, file_id):
        if start == prefix.offset:
            prefix = prefix.extended(data)
        end = max(end, start + len(data))
    end = max(end, *(one(connection, query, file_id) or 0 for query in _ENDS))
    mark = prefix.checkpoint()
    row = {
        "size": end, "offset": end, "line_count": 0, "issue_count": 0, "first_seen_at": moment,
        "last_synced_at": moment, "inode": 0, "device": 0, "mtime_ns": 0, "ctime_ns": 0,
        "head_hash": mark.head_hash, "tail_hash": mark.tail_hash, "prefix_crc": mark.prefix_crc,
    }  # fmt: skip
    if prefix.offset < end:  # its beginning is missing: it is read again
        row |= {"head_hash": b"", "tail_hash": b"", "prefix_crc": 0}
    elif not end:  # files of its kind may never be archived
        row |= {"head_hash": None, "tail_hash": None}
    return row


def mark_gone_like_entries(connection: sqlite3.Connection, file_id: int) -> None:
    """Mark a document as gone if all of its entries are gone."""
    connection.execute(
        "update files set gone_at = (select iif(count(*) = count(gone_at), max(gone_at), null)"
        "  from (select gone_at from tasks where file_id = ?1 and channel = 'file'"
        "   union all select gone_at from inbox_items where file_id = ?1 and channel = 'inbox'))"
        " where id = ?1 and gone_at is null",
        (file_id,),
    )


class _Owner(NamedTuple):
    """Whose file it is, according to its rows or its lines."""

    kind: str = lost.UNNAMED
    source_id: int | None = None
    session_id: int | None = None
    subagent_id: int | None = None
    project_id: int | None = None
    session_key: str | None = None
    agent_key: str | None = None
    directory: str | None = None


def make_unnamed_file(
    connection: sqlite3.Connection, file_id: int, moment: str, least: int
) -> None:
    """Insert the row of a file whose path is in no index."""
    owner = (
        _owner_by_messages(connection, file_id)
        or _owner_by_agent(connection, file_id)
        or _owner_by_lines(connection, file_id)
    )
    source_id = owner.source_id or _any_source(connection, file_id)
    row = as_read(connection, file_id, moment, least)
    path = _path_of(connection, owner) if row["head_hash"] else None
    keys = owner._asdict()
    del keys["directory"]
    row |= {**keys, "source_id": source_id, "generation": 0, "id": file_id}
    row["project_key"] = one(connection, "select key from projects where id = ?", owner.project_id)
    reason = lost.PATH_FROM_LINES
    if path is None or not insert(connection, "files", {**row, "path": path, "gone_at": moment}):
        reason = lost.PATH_LOST
        insert(connection, "files", {**row, "path": lost.placeholder(file_id)})
    mark_gone_like_entries(connection, file_id)
    note_losses(connection, file_id, [Issue(reason, 0, None, 0, 0)])


def _owner_by_messages(connection: sqlite3.Connection, file_id: int) -> _Owner | None:
    """Return whose file it is, according to its messages; None if it has none."""
    row = connection.execute(
        "select m.session_id, s.source_id, s.session_key, s.project_id, a.id, a.agent_key"
        " from messages m left join sessions s on s.id = m.session_id"
        " left join subagents a on a.id = m.subagent_id and not exists ("
        "  select 1 from messages o where o.file_id = m.file_id and o.subagent_id is null)"
        " where m.file_id = ? limit 1",
        (file_id,),
    ).fetchone()
    if row is None:
        return None
    session_id, source_id, key, project_id, subagent_id, agent = row
    directory = one(
        connection,
        "select w.path from working_directories w left join projects p on p.id = ?2"
        " where w.file_id = ?1 order by w.encoded = p.key desc, w.byte_offset limit 1",
        file_id,
        project_id,
    )
    kind = "transcript" if subagent_id is None else "agent"
    return _Owner(kind, source_id, session_id, subagent_id, project_id, key, agent, directory)


def _owner_by_agent(connection: sqlite3.Connection, file_id: int) -> _Owner | None:
    """Return whose sidecar a file is, according to the call that it names; None for others."""
    row = connection.execute(
        "select s.source_id, s.id, a.id, s.project_id, s.session_key, a.agent_key"
        " from agent_metas m join agent_links l on l.file_id = m.file_id"
        " join subagents a on a.agent_key = l.agent_key join sessions s on s.id = a.session_id"
        " where m.file_id = ? limit 1",
        (file_id,),
    ).fetchone()
    return row and _Owner("agent_meta", *row)


def _owner_by_lines(connection: sqlite3.Connection, file_id: int) -> _Owner:
    """Return whose file it is, according to its lines, if it is a conversation."""
    head = tail = b""
    for _, data in archive.sound_pieces(connection, file_id):
        head, tail = head or data[:_LOOKED_AT], data[-_LOOKED_AT:]
    lines = [*head.split(b"\n"), *tail.split(b"\n")]
    every = (source.whereabouts(lines) for source in SOURCES.values())
    told = next((one for one in every if one.session is not None), None)
    if told is None:
        return _Owner()
    session = connection.execute(
        "select source_id, id, project_id from sessions where session_key = ? order by id limit 1",
        (told.session,),
    ).fetchone() or (None, None, None)
    kind = "transcript" if told.agent is None else "agent"
    return _Owner(
        kind, session[0], session[1], None, session[2], told.session, told.agent, told.directory
    )


def _any_source(connection: sqlite3.Connection, file_id: int) -> int:
    """Return a root for a file whose messages do not show one."""
    return int(
        one(
            connection,
            "select source_id from tasks where file_id = ?1"
            " union all select source_id from teams where file_id = ?1"
            " union all select s.source_id from session_entries e"
            "  join sessions s on s.id = e.session_id where e.file_id = ?1"
            " union all select id from (select id from sources order by is_agent desc, id)"
            " limit 1",
            file_id,
        )
        or 1
    )


def _path_of(connection: sqlite3.Connection, owner: _Owner) -> str | None:
    """Return where the transcript of a conversation was, if that is known."""
    source = SOURCES.get(
        one(connection, "select kind from sources where id = ?", owner.source_id) or ""
    )
    if source is None or owner.kind != "transcript":
        return None
    key = one(connection, "select key from projects where id = ?", owner.project_id)
    return source.path_of(Whereabouts(owner.session_key, None, owner.directory), key)


def insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> bool:
    """Insert a row unless it exists or lacks a required value; return whether it was inserted."""
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    cursor = connection.execute(f"insert or ignore into {table} ({names}) values ({marks})", row)
    return cursor.rowcount > 0


def one(connection: sqlite3.Connection, query: str, *values: object) -> Any:
    """Return the only value of the first row, None if there is no row."""
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]
