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

_CONTENT = ("subject", "description", "owner", "active_form", "metadata")
_TRACKED = ("subject", "description", "status", "owner", "active_form", "metadata")


def apply_tasks(
    connection: sqlite3.Connection,
    file_id: int,
    source_id: int,
    tasks: Sequence[Task],
    now: str,
    *,
    is_news: bool = True,
) -> None:
    """Make the tasks of a document those that it holds now.

    Without news, the same bytes are only understood otherwise: no task has changed.
    """
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
                if is_news and before[field] != after[field]
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


def add_gone_task(
    connection: sqlite3.Connection, file_id: int, source_id: int, task: Task, gone_at: str
) -> None:
    """Add a task of a document that is gone, or what its row has lost; one that is whole stays."""
    row = connection.execute(
        f"select id, coalesce({', '.join(_CONTENT)}) from tasks"
        " where source_id = ? and list_key = ? and task_key = ?",
        (source_id, task.list_key, task.task_key),
    ).fetchone()
    if row is None:
        row = (_insert_task(connection, file_id, source_id, task), None)
    elif row[1] is None:
        connection.execute(
            f"update tasks set {', '.join(f'{field} = ?' for field in _TRACKED)}, file_id = ?"
            " where id = ?",
            (*(getattr(task, field) for field in _TRACKED), file_id, row[0]),
        )
    if row[1] is None:
        connection.execute("update tasks set gone_at = ? where id = ?", (gone_at, row[0]))


def add_gone_item(
    connection: sqlite3.Connection, file_id: int, item: InboxItem, gone_at: str
) -> None:
    """Add a message of an inbox that is gone, unless it is there."""
    columns = ("file_id", "team_id", "gone_at", *InboxItem._fields)
    connection.execute(
        f"insert into inbox_items ({', '.join(columns)}) values"
        f" (?1, (select team_id from files where id = ?1), {', '.join('?' * (len(columns) - 2))})"
        " on conflict do nothing",
        (file_id, gone_at, *item),
    )


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
    columns = ("gone_at", "team_id", *InboxItem._fields)
    known = {
        _key(InboxItem(*row[3:])): row
        for row in connection.execute(
            f"select id, {', '.join(columns)}"
            " from inbox_items where file_id = ? and channel = 'inbox'",
            (file_id,),
        )
    }
    insert = (
        f"insert into inbox_items (file_id, {', '.join(columns)})"
        f" values (?, {', '.join('?' * len(columns))})"
    )
    update = f"update inbox_items set {', '.join(f'{name} = ?' for name in columns)} where id = ?"
    kept = []
    for item in items:
        values = (None, team_id, *item)
        row = known.get(_key(item))
        if row is None:
            cursor = connection.execute(insert, (file_id, *values))
            kept.append(int(cursor.lastrowid or 0))
            continue
        kept.append(row[0])
        if row[1:] != values:
            connection.execute(update, (*values, row[0]))
    _mark_gone(connection, "inbox_items", file_id, kept, now)


def _key(item: InboxItem) -> tuple[object, ...]:
    return item.timestamp, item.sender, item.text_hash, item.ordinal


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
