"""Dependencies between tasks: the files of both tasks state one, and it is stored once.

For tasks without a file, they follow from calls in transcripts (`statements`).
"""

from __future__ import annotations

import sqlite3

from .changeset import Touched


def refresh_edges(connection: sqlite3.Connection, touched: Touched) -> None:
    """Update `task_dependencies` from the files, if the batch had one that states dependencies."""
    if not touched.has_new_edges and not _is_touched(connection):
        return
    connection.execute("drop table if exists temp.edges")
    connection.execute(
        "create temp table edges as select f.source_id, l.list_key, l.task_key, l.blocker_key,"
        " l.file_id, row_number() over ("
        "  partition by f.source_id, l.list_key, l.task_key, l.blocker_key"
        "  order by f.gone_at is not null, f.path) as place"
        " from ("
        "  select list_key, task_key, blocker_key, file_id from task_links"
        "  union all select t.list_key, t.task_key, b.value, t.file_id"
        "  from tasks t join json_each(t.blocked_by) b where t.channel = 'transcript'"
        " ) l join files f on f.id = l.file_id"
    )
    connection.execute("delete from edges where place > 1")
    connection.execute(
        "delete from task_dependencies"
        " where (source_id, list_key, task_key, blocker_key) not in"
        " (select source_id, list_key, task_key, blocker_key from edges)"
    )
    connection.execute(
        "insert into task_dependencies (source_id, list_key, task_key, blocker_key, file_id)"
        " select source_id, list_key, task_key, blocker_key, file_id from edges where true"
        " on conflict (source_id, list_key, task_key, blocker_key)"
        " do update set file_id = excluded.file_id where file_id <> excluded.file_id"
    )


def _is_touched(connection: sqlite3.Connection) -> bool:
    row = connection.execute(
        "select 1 from touched_files t join files f on f.id = t.id"
        " where f.kind in ('task', 'task_snapshot') limit 1"
    ).fetchone()
    return row is not None
