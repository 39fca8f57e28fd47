"""Finds the groups of `statements` that a batch can change, and updates the rows derived from them.

How tasks, todos and plans follow from a group is described in `stated`. A group is derived again as
a whole if one of its statements or files changed, so the result does not depend on the order of
reading. Unchanged rows stay, with their ids.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ..sql import id_list
from .changeset import Touched
from .inbox import FOLDED
from .stated import Group, Values, expected, of_group, outcome, said_of

_SIDE_FILES = f"""
select f.source_id, 'task' as kind, {FOLDED.format("t.list_key")} as list_key, t.file_id
from tasks t join files f on f.id = t.file_id where t.channel = 'file' and t.file_id in ({{files}})
union
select f.source_id, 'todos', t.session_key, t.file_id
from todos t join files f on f.id = t.file_id
where t.channel = 'file' and t.session_key is not null and t.file_id in ({{files}})
union
select f.source_id, 'plan', p.name, p.file_id
from plans p join files f on f.id = p.file_id where p.channel = 'file' and p.file_id in ({{files}})
union -- what the leader of a team calls is about the list of the team
select f.source_id, 'task', m.lead_session_key, t.file_id
from tasks t join files f on f.id = t.file_id
join teams m on m.source_id = f.source_id and m.key = {FOLDED.format("t.list_key")}
where t.channel = 'file' and m.lead_session_key is not null and t.file_id in ({{files}})
union
select source_id, 'task', lead_session_key, file_id
from teams where lead_session_key is not null and file_id in ({{files}})
"""
"""The groups that depend on files of lists; `{files}` are the ids of these files."""

_STATING = """
select f.source_id, s.kind, s.list_key from statements s join files f on f.id = s.file_id
where s.file_id in ({files})
"""


def note_groups(connection: sqlite3.Connection, touched: Touched, file_id: int) -> None:
    """Record the groups that depend on the rows of a file, before these are deleted."""
    for query in (_STATING, f"select source_id, kind, list_key from ({_SIDE_FILES})"):
        touched.groups.update(connection.execute(query.format(files=file_id)))


def refresh_statements(
    connection: sqlite3.Connection, touched: Touched, affected: set[int]
) -> None:
    """Derive the groups that the batch can change."""
    groups = touched.groups | _touched_groups(connection, touched, affected)
    for group in sorted(groups):
        for table, rows in expected(connection, group).items():
            _write(connection, touched, table, group, rows)
        if group[1] == "plan":
            _answer_plan(connection, group)


def _touched_groups(
    connection: sqlite3.Connection, touched: Touched, affected: set[int]
) -> set[Group]:
    stating = touched.stated | touched.sidechains | affected | touched.moved
    for file_id in touched.answered.keys() - stating:
        if _is_answered(connection, file_id, touched.answered[file_id]):
            stating.add(file_id)
    groups = set(connection.execute(_STATING.format(files=id_list(stating))))
    groups.update(
        connection.execute(
            "select source_id, kind, list_key from"
            f" ({_SIDE_FILES.format(files='select id from touched_files')}) g"
            " where exists (select 1 from statements s"
            "  where s.list_key = g.list_key and s.kind = g.kind)"
        )
    )
    return groups


def _is_answered(connection: sqlite3.Connection, file_id: int, calls: Iterable[str | None]) -> bool:
    """Did one of these calls of a file make a statement?"""
    if not connection.execute(
        "select 1 from statements where file_id = ? limit 1", (file_id,)
    ).fetchone():
        return False
    return any(
        connection.execute(
            "select 1 from statements where file_id = ? and tool_use_id = ?", (file_id, call)
        ).fetchone()
        for call in calls
    )


def all_groups(connection: sqlite3.Connection) -> set[Group]:
    """Return all groups that have statements, or rows derived from statements."""
    return set(
        connection.execute(
            f"{_STATING.format(files='select id from files')}"
            " union select source_id, 'task', list_key from tasks where channel = 'transcript'"
            " union select f.source_id, 'todos', t.session_key from todos t"
            "  join files f on f.id = t.file_id where t.channel = 'transcript'"
            " union select f.source_id, 'plan', coalesce(nullif(p.name, ''), f.session_key, '')"
            "  from plans p join files f on f.id = p.file_id where p.channel = 'transcript'"
        )
    )


def _answer_plan(connection: sqlite3.Connection, group: Group) -> None:
    """Store the answer to the last call that proposed a plan in the row of the plan's file."""
    status, _ = outcome(one for one in of_group(connection, group) if said_of(one, "name"))
    connection.execute(
        "update plans set status = ?1 where name = ?2 and channel = 'file' and status is not ?1"
        " and file_id in (select id from files where source_id = ?3)",
        (status, group[2], group[0]),
    )


# -- rows ----------------------------------------------------------------------------------------


_OWN = {
    "tasks": "t.source_id = ?1 and ?2 = 'task' and t.list_key = ?3",
    "todos": "t.session_key = ?3 and ?2 = 'todos' and t.file_id in"
    " (select id from files where source_id = ?1)",
    "plans": "?2 = 'plan' and t.file_id in (select id from files where source_id = ?1)"
    " and (t.name = ?3 or t.name = '' and exists (select 1 from statements s where s.kind = 'plan'"
    "  and s.file_id = t.file_id and s.byte_offset = t.byte_offset and s.list_key = ?3"
    # One line can propose this plan and another one that has a name.
    "  and s.tool_use_id is t.tool_use_id"
    "  and coalesce(json_extract(s.stated, '$.name'), '') = ''))",
}
"""The condition for the rows of a group, by table."""

_KEYS = {
    "tasks": ("task_key",),
    "todos": ("agent_key", "content", "ordinal"),
    "plans": ("name", "text"),
}
"""The columns that identify a row of a group, by table."""

_COLUMNS = {
    "tasks": (
        "subject", "description", "status", "owner", "active_form", "metadata", "task_number",
        "task_key", "list_key", "session_id", "team_id", "gone_at", "stated_at", "blocked_by",
        "tool_use_id", "source_id", "file_id", "byte_offset",
    ),
    "todos": (
        "content", "status", "priority", "active_form", "position", "session_key", "agent_key",
        "session_id", "subagent_id", "ordinal", "stated_at", "tool_use_id", "file_id",
        "byte_offset",
    ),
    "plans": (
        "title", "text", "name", "status", "modified_at", "session_id", "tool_use_id", "file_id",
        "byte_offset",
    ),
}  # fmt: skip


def known(connection: sqlite3.Connection, table: str, group: Group) -> dict[int, Values]:
    """Return the rows of a group that come from transcripts, by id."""
    columns = _COLUMNS[table]
    rows = connection.execute(
        f"select t.id, {', '.join(f't.{column}' for column in columns)} from {table} t"
        f" where t.channel = 'transcript' and {_OWN[table]}",
        group,
    )
    return {id_: dict(zip(columns, values, strict=True)) for id_, *values in rows}


def are_same(left: Iterable[Values], right: Iterable[Values]) -> bool:
    """Are these the same rows, in any order?"""
    first, second = (sorted(repr(sorted(row.items())) for row in rows) for rows in (left, right))
    return first == second


def _write(
    connection: sqlite3.Connection,
    touched: Touched,
    table: str,
    group: Group,
    rows: Sequence[Values],
) -> None:
    """Update the rows of a group to these: equal rows stay, known rows are changed in place."""

    def key(row: Values) -> tuple[object, ...]:
        return tuple(row[column] for column in _KEYS[table])

    columns = _COLUMNS[table]
    wanted = {key(row): row for row in rows}
    there = known(connection, table, group)
    if table == "tasks" and _edges(there.values()) != _edges(rows):
        touched.has_new_edges = True
    for id_ in [id_ for id_, row in there.items() if key(row) not in wanted]:
        _delete(connection, table, id_)
        del there[id_]
    ids = {key(row): id_ for id_, row in there.items()}
    assignments = ", ".join(f"{column} = ?" for column in columns)
    marks = ", ".join("?" * len(columns))
    for name, row in wanted.items():
        values = [row[column] for column in columns]
        if name not in ids:
            connection.execute(
                f"insert into {table} (channel, {', '.join(columns)})"
                f" values ('transcript', {marks})",
                values,
            )
        elif there[ids[name]] != row:
            connection.execute(
                f"update {table} set {assignments} where id = ?", (*values, ids[name])
            )


def _edges(rows: Iterable[Values]) -> set[tuple[object, ...]]:
    return {
        (row["task_key"], row["blocked_by"], row["file_id"]) for row in rows if row["blocked_by"]
    }


def _delete(connection: sqlite3.Connection, table: str, id_: int) -> None:
    if table == "tasks":  # changes that a transcript states now belong to the task's file
        connection.execute(
            "update task_changes set task_id = null where task_id = ? and file_id is not null",
            (id_,),
        )
    connection.execute(f"delete from {table} where id = ?", (id_,))
