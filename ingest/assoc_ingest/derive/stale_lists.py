"""Decides which of two lists counts if a program keeps a copy of the previous one.

CC-Insights copies its list of projects and chats and then rewrites it in place. In between, the
list is broken and the copy is whole. So the copy counts while the list is broken or missing, and
the list counts otherwise: the copy can still contain a deleted chat. If both are broken, what was
last read of the list is kept. Entries of the list that does not count are treated like entries that
are gone.
"""

from __future__ import annotations

import sqlite3

from .changeset import Touched

_IS_WHOLE = (
    "{file}.gone_at is null"
    " and exists (select 1 from line_types t where t.file_id = {file}.id)"
    " and not exists (select 1 from issues i where i.file_id = {file}.id and i.quarantined = 1)"
)


def refresh_lists(connection: sqlite3.Connection, touched: Touched) -> None:
    """Find the lists that do not count; if that changed, mark all that a pair names as changed."""
    connection.execute("create temp table if not exists stale_lists (file_id integer primary key)")
    connection.execute("delete from stale_lists")
    copies = connection.execute(
        "select c.id, l.id, "
        f"{_IS_WHOLE.format(file='c')} and not ({_IS_WHOLE.format(file='l')}),"
        " exists (select 1 from touched_files t where t.id in (c.id, l.id))"
        " from files c join files l on l.source_id = c.source_id and l.kind = 'chat_list'"
        " where c.kind = 'chat_list_backup'"
    ).fetchall()
    for copy, original, is_needed, is_touched in copies:
        connection.execute("insert into stale_lists values (?)", (original if is_needed else copy,))
        if is_touched:
            _touch(connection, touched, (copy, original))


def _touch(connection: sqlite3.Connection, touched: Touched, pair: tuple[int, int]) -> None:
    connection.execute(
        "insert or ignore into touched_sessions select session_id from session_entries"
        " where file_id in (?, ?) and session_id is not null",
        pair,
    )
    rows = connection.execute(
        "select project_id from project_entries where file_id in (?1, ?2)"
        " union select project_id from session_entries where file_id in (?1, ?2)",
        pair,
    )
    touched.projects.update(id_ for (id_,) in rows if id_ is not None)
