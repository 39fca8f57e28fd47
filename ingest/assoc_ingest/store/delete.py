"""Removes files from the database: their rows, their archive, and what follows only from them.

Facts that other files share with a removed one are not derived here: whose line is the original,
which session a reference means, what a project is called. What they depend on is recorded in
`Touched`, and `derive` derives them again in the same transaction. So the tables end up as a sync
of the remaining files would leave them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..derive import projects
from ..derive.changeset import Touched, fill
from ..derive.statements import note_groups
from ..files import archive
from ..sql import id_list
from . import fts, upserts
from .rows import CLEARED

_DELETED_AT_ONCE = 5000
_FILES_AT_ONCE = 500
_LISTS = "('chat_list', 'chat_list_backup')"  # a list and its copy, see `stale_lists`


def clear_rows(connection: sqlite3.Connection, touched: Touched, file_id: int) -> None:
    """Delete the rows that were read from a file; its archive and its row of `files` stay.

    Entries of a list stay, too: they are kept when the list no longer contains them (`upserts`).
    """
    touched.before_clearing(connection, file_id)
    note_groups(connection, touched, file_id)
    for table in CLEARED:
        _delete(connection, table, f"= {file_id}")


def clear_all_rows(connection: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """Delete the rows of many files at once, as `clear_rows` does for one.

    For a database that nobody else can see, outside a transaction: each statement is one. What
    follows from the rows is not noted: afterwards, everything has to be derived again. The indexes
    of messages are rebuilt from what is left; the caller has put off all others (`fts.PutOff`).
    """
    put_off = fts.PutOff(connection, fts.OF_MESSAGES)
    connection.execute("create temp table if not exists cleared (id integer primary key)")
    ids = list(file_ids)
    fill(connection, "cleared", ids)
    if not _keeps_messages(connection):
        _empty_messages(connection)
    for start in range(0, len(ids), _FILES_AT_ONCE):
        fill(connection, "cleared", ids[start : start + _FILES_AT_ONCE])
        for table in CLEARED:
            _delete(connection, table, "in (select id from cleared)")
    put_off.catch_up()


def _keeps_messages(connection: sqlite3.Connection) -> bool:
    """Has a file that is not in the table `cleared` messages, or calls, which refer to some?"""
    (keeps,) = connection.execute(
        "select exists (select 1 from files f where f.id not in (select id from cleared)"
        " and (exists (select 1 from messages m where m.file_id = f.id)"
        "  or exists (select 1 from tool_calls c where c.file_id = f.id)))"
    ).fetchone()
    return bool(keeps)


def _empty_messages(connection: sqlite3.Connection) -> None:
    """Delete all messages without looking for each of them in every index, a tenth of a rebuild.

    SQLite does so only where nothing can refer to them. The calls that do are removed next.
    """
    connection.execute("pragma foreign_keys = off")
    try:
        connection.execute("delete from messages")
    finally:
        connection.execute("pragma foreign_keys = on")


def _delete(connection: sqlite3.Connection, table: str, of_files: str) -> None:
    """Delete the rows of files, a few thousand at a time.

    SQLite keeps in memory what it needs to undo a statement: for a large file, half its size.
    """
    kept = upserts.CONDITIONS.get(table, "0")
    rows = (
        f"select rowid from {table} where file_id {of_files} and not ({kept})"
        f" limit {_DELETED_AT_ONCE}"
    )
    while (
        connection.execute(f"delete from {table} where rowid in ({rows})").rowcount
        == _DELETED_AT_ONCE
    ):
        pass


def remove_files(connection: sqlite3.Connection, touched: Touched, file_ids: Iterable[int]) -> None:
    """Remove files with everything that was read from them, as if they had never existed."""
    ids = list(file_ids)
    for file_id in ids:
        _touch_neighbours(connection, touched, file_id)
        clear_rows(connection, touched, file_id)
        archive.clear(connection, file_id)
        for table, condition in upserts.CONDITIONS.items():
            connection.execute(f"delete from {table} where file_id = ? and {condition}", (file_id,))
        projects.remove_file(connection, file_id)
        connection.execute(  # as if only the name of the team's directory were known
            "update teams set name = key, description = null, created_at = null,"
            " lead_agent_key = null, lead_session_key = null, lead_session_id = null,"
            " file_id = null where file_id = ?",
            (file_id,),
        )
        connection.execute(
            "update sources set cleanup_period_days = null where id ="
            " (select source_id from files where id = ? and kind = 'settings')",
            (file_id,),
        )
    places = connection.execute(
        f"select distinct source_id, path from files where id in ({id_list(ids)})"
    ).fetchall()
    connection.executemany("delete from files where id = ?", ((file_id,) for file_id in ids))
    touched.files.difference_update(ids)
    touched.shared.difference_update(ids)
    for place in places:
        _renumber(connection, *place)
    connection.execute(
        "delete from teams where not exists (select 1 from files f where f.team_id = teams.id)"
    )
    drop_empty_sessions(connection, touched)


def remove_entries(
    connection: sqlite3.Connection, touched: Touched, since: str, before: str
) -> None:
    """Remove the entries of lists that went at `since` or later, but before `before`."""
    for table in upserts.CONDITIONS:
        rows = connection.execute(
            f"select distinct file_id from {table}"
            " where gone_at >= ? and gone_at < ? and file_id is not null",
            (since, before),
        ).fetchall()
        for (file_id,) in rows:
            touched.before_clearing(connection, file_id)
            note_groups(connection, touched, file_id)
            touched.files.add(file_id)
        connection.execute(
            f"delete from {table} where gone_at >= ? and gone_at < ?", (since, before)
        )
    drop_empty_sessions(connection, touched)


def _touch_neighbours(connection: sqlite3.Connection, touched: Touched, file_id: int) -> None:
    """Record the files that depend on this one: those that state a dependency of its tasks, list
    its chats, have prompts into which its text was pasted, or messages of the team's lead."""
    rows = connection.execute(
        "select o.file_id from task_links l join task_links o on o.list_key = l.list_key"
        " where l.file_id = ?1 and o.file_id <> ?1"
        " union select o.id from files f join files o on o.source_id = f.source_id"
        f" where f.id = ?1 and o.id <> ?1 and f.kind in {_LISTS} and o.kind in {_LISTS}"
        " union select i.file_id from pastes p join prompts i"
        " on instr(i.paste_hashes, p.hash) where p.file_id = ?1"
        " union select i.file_id from teams t join inbox_items i"
        " on i.session_id = t.lead_session_id where t.file_id = ?1",
        (file_id,),
    ).fetchall()
    touched.files.update(neighbour for (neighbour,) in rows)
    rows = connection.execute(
        "select e.project_id from files f join files o on o.source_id = f.source_id"
        f" and o.kind in {_LISTS} join project_entries e on e.file_id = o.id"
        f" where f.id = ? and f.kind in {_LISTS} and e.project_id is not null",
        (file_id,),
    ).fetchall()
    touched.projects.update(project for (project,) in rows)


def _renumber(connection: sqlite3.Connection, source_id: int, path: str) -> None:
    """Number the remaining generations of a path from 0, as a sync of them alone would."""
    rows = connection.execute(
        "select id from files where source_id = ? and path = ? order by generation",
        (source_id, path),
    ).fetchall()
    connection.executemany(
        "update files set generation = ? where id = ?",
        ((number, file_id) for number, (file_id,) in enumerate(rows)),
    )


def drop_empty_sessions(connection: sqlite3.Connection, touched: Touched) -> None:
    """Remove changed sessions that are no longer referenced.

    This runs before anything is derived: a reference by key then means the session with that key in
    another root, if there is one, and those sessions are derived again, and so are their forks.
    """
    is_touched = f"id in ({id_list(touched.sessions)})"
    rows = connection.execute(
        "select o.id from sessions s join sessions o on o.session_key = s.session_key"
        f" where s.{is_touched}"
        f" union select id from sessions where forked_from in ({id_list(touched.sessions)})"
    ).fetchall()
    touched.sessions.update(session for (session,) in rows)
    is_empty = (
        f"{is_touched} and not exists (select 1 from files f where f.session_id = sessions.id)"
        " and not exists (select 1 from session_entries e where e.session_id = sessions.id)"
    )
    rows = connection.execute(
        f"select project_id from sessions where {is_empty} and project_id is not null"
    ).fetchall()
    touched.projects.update(project for (project,) in rows)
    connection.execute(f"delete from sessions where {is_empty}")
