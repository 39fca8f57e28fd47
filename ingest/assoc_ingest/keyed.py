"""Documents whose rows outlive them: tasks and inboxes.

An agent rewrites these documents whole, and deletes them when it is done; what they said is worth
keeping. So their rows are found again by key and updated in place, with their ids: one that is no
longer there gets `gone_at`, one that comes back loses it. Of tasks, every change that a sync sees
is kept in `task_changes`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from .model import InboxItem, Task

_TRACKED = ("subject", "description", "status", "owner", "active_form", "metadata")


def apply_tasks(
    connection: sqlite3.Connection, file_id: int, source_id: int, tasks: Sequence[Task], now: str
) -> None:
    """Make the tasks of a document those that it holds now."""
    kept = []
    for task in tasks:
        row = connection.execute(
            f"select id, {', '.join(_TRACKED)} from tasks"
            " where source_id = ? and list_key = ? and task_key = ?",
            (source_id, task.list_key, task.task_key),
        ).fetchone()
        if row is None:
            kept.append(_insert_task(connection, file_id, source_id, task))
            continue
        kept.append(row[0])
        before = dict(zip(_TRACKED, row[1:], strict=True))
        after = {field: getattr(task, field) for field in _TRACKED}
        connection.executemany(
            "insert into task_changes (task_id, field, old_value, new_value, seen_at)"
            " values (?, ?, ?, ?, ?)",
            [
                (row[0], field, before[field], after[field], now)
                for field in _TRACKED
                if before[field] != after[field]
            ],
        )
        connection.execute(
            f"update tasks set {', '.join(f'{field} = ?' for field in _TRACKED)},"
            " file_id = ?, gone_at = null where id = ?",
            (*after.values(), file_id, row[0]),
        )
    _mark_gone(connection, "tasks", file_id, kept, now)


def _insert_task(connection: sqlite3.Connection, file_id: int, source_id: int, task: Task) -> int:
    columns = ("file_id", "source_id", *Task._fields)
    cursor = connection.execute(
        f"insert into tasks ({', '.join(columns)}) values ({', '.join('?' * len(columns))})",
        (file_id, source_id, *task),
    )
    return int(cursor.lastrowid or 0)


def apply_inbox(
    connection: sqlite3.Connection,
    file_id: int,
    team_id: int | None,
    items: Sequence[InboxItem],
    now: str,
) -> None:
    """Make the messages of an inbox those that it holds now.

    A message has no id: it is known by time, sender and text, and by its place among equals. Only
    what changed is written: an inbox of a thousand messages costs reading it.
    """
    known = {
        tuple(row[1:5]): row
        for row in connection.execute(
            "select id, timestamp, sender, text_hash, ordinal, is_read, summary, color, gone_at"
            " from inbox_items where file_id = ? and channel = 'inbox'",
            (file_id,),
        )
    }
    columns = ("file_id", "team_id", *InboxItem._fields)
    insert = (
        f"insert into inbox_items ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
    )
    kept = []
    for item in items:
        row = known.get((item.timestamp, item.sender, item.text_hash, item.ordinal))
        if row is None:
            cursor = connection.execute(insert, (file_id, team_id, *item))
            kept.append(int(cursor.lastrowid or 0))
            continue
        kept.append(row[0])
        if tuple(row[5:]) != (item.is_read, item.summary, item.color, None):
            connection.execute(
                "update inbox_items set is_read = ?, summary = ?, color = ?, gone_at = null"
                " where id = ?",
                (item.is_read, item.summary, item.color, row[0]),
            )
    _mark_gone(connection, "inbox_items", file_id, kept, now)


def mark_file_gone(connection: sqlite3.Connection, file_id: int, now: str) -> None:
    """Note that a document is missing, and with it what it held."""
    _mark_gone(connection, "tasks", file_id, (), now)
    _mark_gone(connection, "inbox_items", file_id, (), now)


def _mark_gone(
    connection: sqlite3.Connection, table: str, file_id: int, kept: Sequence[int], now: str
) -> None:
    where = "channel = 'inbox'" if table == "inbox_items" else "1"
    rows = connection.execute(
        f"select id from {table} where file_id = ? and gone_at is null and {where}", (file_id,)
    ).fetchall()
    missing = {row[0] for row in rows}.difference(kept)
    connection.executemany(
        f"update {table} set gone_at = ? where id = ?", ((now, id_) for id_ in missing)
    )
