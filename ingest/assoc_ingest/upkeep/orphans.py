"""Recreates lost files and roots, so that the rows that refer to them can be kept.

1. If an index still has columns of a lost row (`lost_rows`), the row is recreated with its id: a
   root from its directory, a file from its path, a session from its key. What follows from other
   rows is derived again later, and the next sync reads the file again.
2. If no index has a file, its row is made from its archive and from the rows that refer to it. If
   they do not state its path, it gets a placeholder (`lost`), until a sync finds a file with the
   same bytes (`lost_paths`).
3. A root that is in no index gets a placeholder, too.
4. A reference to a row that is still missing becomes null, or if it must not be null, the row is
   deleted. These are rows with a damaged number for a file or root that never existed, and members
   of teams. Both are derived again from their files.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

from ..files import lost
from ..source import LOG, Claim, claim_at, facts_of
from ..sources import SOURCES
from ..when import now
from .lost_rows import Table
from .unindexed import as_read, insert, make_unnamed_file, mark_gone_like_entries, one

_KEYED = ("sources", "projects", "sessions", "subagents", "teams", "tasks", "forgotten")


def keep(
    connection: sqlite3.Connection, told: dict[str, dict[int, dict[str, Any]]], holes: list[Table]
) -> None:
    """Recreate what rows refer to, as far as it is known. Runs inside a transaction.

    `told` is what indexes say about lost rows, by table and id; `holes` are the tables with losses.
    """
    moment = now()
    for table in _KEYED:
        for id_, row in told.get(table, {}).items():
            insert(connection, table, {**_defaults(table, row, moment), **row, "id": id_})
    beyond: dict[int, int] = {}
    for frame in told.get("archive", {}).values():  # of frames, only the position is known
        if "file_id" in frame and "start" in frame:
            beyond[frame["file_id"]] = max(beyond.get(frame["file_id"], 0), frame["start"] + 1)
    for id_, row in told.get("files", {}).items():
        if "path" in row and "source_id" in row:
            _make_file(connection, id_, row, moment, beyond.get(id_, 0))
    for id_ in _lost(connection, "sources", "files", holes):
        _make_root(connection, id_, moment)
    for id_ in _lost(connection, "files", "archive", holes):
        make_unnamed_file(connection, id_, moment, beyond.get(id_, 0))
    connection.execute(
        "update sources set first_synced_at = coalesce((select min(f.first_seen_at) from files f"
        "  where f.source_id = sources.id), first_synced_at) where first_synced_at = ?",
        (moment,),
    )
    _drop_broken_references(connection)


def _defaults(table: str, row: dict[str, Any], moment: str) -> dict[str, Any]:
    """Return values for columns that must have one and are in no index."""
    defaults: dict[str, dict[str, Any]] = {
        "sources": {"first_synced_at": moment, "last_synced_at": moment},
        "subagents": {"kind": "task"},
        "teams": {"name": row.get("key")},
        # If its document still contains the task, reading the document removes `gone_at` again.
        "tasks": {"gone_at": moment},
        "forgotten": {"forgotten_at": moment, "is_pending": 1},
    }
    return defaults.get(table, {})


def _lost(
    connection: sqlite3.Connection, parent: str, witness: str, holes: list[Table]
) -> list[int]:
    """Return the ids of the missing rows of a table that other rows refer to.

    References of `witness` are trusted. Those of other tables may be damaged themselves: they count
    only if the id is in a hole of the table.
    """
    found: set[int] = set()
    tables = [name for (name,) in connection.execute("select name from pragma_table_list")]
    for table in tables:
        for key in connection.execute(f'pragma foreign_key_list("{table}")').fetchall():
            if key[2] == parent:
                rows = connection.execute(
                    f"select distinct {key[3]} from {table} where {key[3]} is not null"
                    f" and {key[3]} not in (select id from {parent})"
                )
                found.update(
                    id_
                    for (id_,) in rows
                    if table == witness
                    or any(hole.name == parent and hole.has_hole_at(id_) for hole in holes)
                )
    return sorted(found)


# -- files ---------------------------------------------------------------------------------------


def _make_file(
    connection: sqlite3.Connection, file_id: int, told: dict[str, Any], moment: str, least: int
) -> None:
    """Insert the row of a file whose path is known."""
    claim = _claim(connection, told["source_id"], told["path"])
    keys = (
        {
            "kind": claim.kind, "session_key": claim.session_key, "agent_key": claim.agent_key,
            "team_key": claim.team_key, "project_key": claim.project_key,
            "workflow": claim.workflow,
        }
        if claim is not None
        else {"kind": lost.UNNAMED}
    )  # fmt: skip
    if told.get("session_id") is not None and keys.get("session_key") is None:
        keys["session_key"] = one(
            connection, "select session_key from sessions where id = ?", told["session_id"]
        )
    row = {**as_read(connection, file_id, moment, least), **keys, **told, "id": file_id}
    if claim is not None and _is_log(connection, told["source_id"], claim):
        row["gone_at"] = moment  # or else another file at its path could replace its rows
    if insert(connection, "files", {"generation": 0, **row}):
        mark_gone_like_entries(connection, file_id)


def _claim(connection: sqlite3.Connection, source_id: int, path: str) -> Claim | None:
    kind = one(connection, "select kind from sources where id = ?", source_id)
    return claim_at(SOURCES[kind], path) if kind in SOURCES else None


def _is_log(connection: sqlite3.Connection, source_id: int, claim: Claim) -> bool:
    kind = one(connection, "select kind from sources where id = ?", source_id)
    return SOURCES[kind].shape(claim) == LOG


# -- roots ---------------------------------------------------------------------------------------


def _make_root(connection: sqlite3.Connection, source_id: int, moment: str) -> None:
    """Insert the row of a root that is in no index; its kind is that of its files."""
    agent = next(name for name, source in SOURCES.items() if source.is_agent)
    votes: Counter[str] = Counter({agent: 0})  # the kind if no file shows it
    rows = connection.execute(
        "select path, kind from files where source_id = ? order by id", (source_id,)
    )
    for path, kind in rows.fetchall():
        for name, source in SOURCES.items():
            claim = claim_at(source, path)
            votes[name] += claim is not None and claim.kind == kind
    ((kind, _),) = votes.most_common(1)
    row = {"id": source_id, "kind": kind, "root": lost.root_placeholder(source_id)}
    row |= facts_of(SOURCES[kind])
    insert(connection, "sources", {**_defaults("sources", row, moment), **row})


# -- remaining references ------------------------------------------------------------------------


def _drop_broken_references(connection: sqlite3.Connection) -> None:
    """Set references to missing rows to null; delete rows that must have one."""
    broken = 'select distinct "table", fkid from pragma_foreign_key_check'
    while found := connection.execute(broken).fetchall():
        for table, number in found:
            keys = connection.execute(f"pragma foreign_key_list({table})").fetchall()
            ((parent, column),) = ((key[2], key[3]) for key in keys if key[0] == number)
            is_needed = one(
                connection,
                'select "notnull" from pragma_table_info(?) where name = ?',
                table,
                column,
            )
            change = f"delete from {table}" if is_needed else f"update {table} set {column} = null"
            connection.execute(f"{change} where {column} not in (select id from {parent})")
