"""Finds the groups of `statements` that a batch can change, and updates the rows derived from them.

How tasks, todos and plans follow from a group is described in `stated`. A group is derived again as
a whole if one of its statements or files changed, so the result does not depend on the order of
reading. Unchanged rows stay, with their ids.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..fields import json_text, number, orjson
from ..sql import id_list
from .changeset import SESSION_RANK, Touched
from .references import FOLDED

# ------------------------------------------------------------------------------------------------
# Tasks, todos and plans without a file, as transcripts state them.
#
# What a line states is a row of `statements`. The statements about one task list, the todos of
# one session, or one plan are a group, from which rows of the channel `transcript` follow:
#
# 1. Only originals count: a line that a fork repeats states nothing new. Except for plans, only
#    successful calls count: a call that failed, was declined or has no result changed nothing.
# 2. Statements are ordered by time, but never against the order of their file.
# 3. A task is the result of its calls, one after the other; todos are those of the agent's last
#    call; a plan is its last text, with the answer to the last call that proposed it.
# 4. A file takes precedence as long as it exists: a task with a file, or an agent whose todo list
#    is not empty, has no row from a transcript. A plan has none as long as its file is known,
#    unless that is gone and another text was proposed since; the answer is stored in the row of the
#    file.
#
# An agent may delete the files of tasks when a whole list is done, and leaves an empty todo list.
# So what a call said last stays valid, and the rows of the deleted files stay, too, as what a
# sync saw.


Group = tuple[int, str, str]
"""The root, the kind, and the subject of the statements: a list, a session, the name of a plan."""

Values = dict[str, Any]

_ANSWERS = {"ok": "accepted", "declined": "rejected", "pending": "proposed"}
"""The state of a plan after its call ended like this; an error does not change it."""


_FIELDS = ("subject", "description", "status", "owner", "active_form")


class Stated(NamedTuple):
    """A statement that counts, and how its call ended."""

    task_key: str | None
    stated: Values
    answered: Values
    timestamp: str | None
    tool_use_id: str | None
    file_id: int
    byte_offset: int
    status: str
    session_id: int | None
    agent_key: str | None


def expected(connection: sqlite3.Connection, group: Group) -> dict[str, list[Values]]:
    """Return the rows that follow from the statements of a group, by table."""
    said = list(of_group(connection, group))
    if group[1] == "task":
        return {"tasks": list(_tasks(connection, group, said))}
    if group[1] == "todos":
        return {"todos": list(_todos(connection, group, said))}
    return {"plans": list(_plans(connection, group, said))}


def of_group(connection: sqlite3.Connection, group: Group) -> Iterator[Stated]:
    """Yield the statements of a group that count, in their order."""
    rows = connection.execute(
        "select s.task_key, s.stated, s.answered, s.timestamp, s.tool_use_id, s.file_id,"
        " s.byte_offset, coalesce(c.status, 'ok'), f.session_id, a.agent_key"
        " from statements s join files f on f.id = s.file_id"
        " left join tool_calls c on c.file_id = s.file_id and c.tool_use_id = s.tool_use_id"
        " left join messages m on m.file_id = s.file_id and m.byte_offset = s.byte_offset"
        "  and m.block = s.block"
        " left join subagents a on a.id = m.subagent_id"
        " where f.source_id = ? and s.kind = ? and s.list_key = ? and s.stated is not null"
        " and m.copy_of is null"
        " order by max(coalesce(s.timestamp, '')) over ("
        "  partition by s.file_id order by s.byte_offset, s.block"
        " ), f.path, f.generation, s.byte_offset, s.block",
        group,
    )
    for task_key, stated, added, *rest in rows:
        yield Stated(task_key, orjson.loads(stated), orjson.loads(added or "{}"), *rest)


# -- tasks ---------------------------------------------------------------------------------------


def _tasks(
    connection: sqlite3.Connection, group: Group, said: Iterable[Stated]
) -> Iterator[Values]:
    source_id, _, list_key = group
    tasks, waits = _folded(said)
    with_file = _with_files(connection, source_id, list_key)
    deleted = {key for key, task in tasks.items() if task.get("status") == "deleted"}
    session_id = _session(connection, source_id, list_key)
    team_id = _one(
        connection, "select id from teams where source_id = ? and key = ?", (source_id, list_key)
    )
    for key in (key for key in tasks if key not in with_file):
        blockers = [] if key in deleted else sorted(waits.get(key, set()) - deleted)
        metadata = tasks[key].pop("metadata", None)
        yield {
            **dict.fromkeys(_FIELDS),
            **tasks[key],
            "metadata": json_text(metadata) if metadata else None,
            "task_number": number(key),
            "task_key": key,
            "list_key": list_key,
            "session_id": session_id,
            "team_id": team_id,
            "gone_at": None,
            "blocked_by": json_text(blockers) if blockers else None,
            "source_id": source_id,
        }


def _folded(said: Iterable[Stated]) -> tuple[dict[str, Values], dict[str, set[str]]]:
    """Return the final state of each task, and the tasks that block it."""
    tasks: dict[str, Values] = {}
    waits: dict[str, set[str]] = {}
    for one in said:
        key = one.task_key
        if key is None or one.status != "ok" or one.answered.get("is_refused"):
            continue
        stated = dict(one.stated)
        blocks, blocked_by = stated.pop("blocks", ()), stated.pop("blocked_by", ())
        if stated.pop("is_new", False):  # an emptied list may start from 1 again
            tasks[key] = {"status": "pending", "subject": one.answered.get("subject")}
            waits.pop(key, None)
        task = tasks.setdefault(key, {})
        metadata = {**task.get("metadata", {}), **stated.pop("metadata", {})}
        task |= {name: stated[name] for name in _FIELDS if name in stated} | _place(one)
        task["metadata"] = {name: value for name, value in metadata.items() if value is not None}
        waits.setdefault(key, set()).update(blocked_by)
        for other in blocks:
            waits.setdefault(other, set()).add(key)
    return tasks, waits


def _with_files(connection: sqlite3.Connection, source_id: int, list_key: str) -> set[str]:
    """Return the tasks of a list that have a file, whatever the case of its directory is.

    A session that leads a team writes to the list of the team, and its calls do not say so.
    """
    names, teams = [list_key], [list_key]
    if _one(connection, "select 1 from sessions where session_key = ?", (list_key,)) is not None:
        rows = connection.execute(
            "select key from teams where source_id = ? and lead_session_key = ?",
            (source_id, list_key),
        )
        teams = [key for (key,) in rows]
    for team in teams:
        rows = connection.execute(
            "select distinct list_key from tasks where source_id = ? and channel = 'file'"
            f" and {FOLDED.format('list_key')} = ?",
            (source_id, team),
        )
        names += [name for (name,) in rows if name != list_key]
    return {
        key
        for name in names
        for (key,) in connection.execute(
            "select task_key from tasks where source_id = ? and list_key = ?"
            " and channel = 'file' and gone_at is null",
            (source_id, name),
        )
    }


# -- todos ---------------------------------------------------------------------------------------


def _todos(
    connection: sqlite3.Connection, group: Group, said: Iterable[Stated]
) -> Iterator[Values]:
    source_id, _, session_key = group
    last = {one.agent_key or session_key: one for one in said if one.status == "ok"}
    with_file = {
        key
        for (key,) in connection.execute(
            "select distinct t.agent_key from todos t join files f on f.id = t.file_id"
            " where t.session_key = ? and f.source_id = ? and t.channel = 'file'"
            " and t.gone_at is null",
            (session_key, source_id),
        )
    }
    session_id = _session(connection, source_id, session_key)
    for agent_key, one in last.items():
        subagent_id = _one(
            connection,
            "select id from subagents where session_id = ? and agent_key = ?",
            (session_id, agent_key),
        )
        equals: Counter[str | None] = Counter()
        for position, item in enumerate(
            () if agent_key in with_file else one.stated.get("items", ())
        ):
            content = item.get("content")
            yield {
                **dict.fromkeys(("content", "status", "priority", "active_form")),
                **item,
                "position": position,
                "session_key": session_key,
                "agent_key": agent_key,
                "session_id": session_id,
                "subagent_id": subagent_id,
                "ordinal": equals[content],
                **_place(one),
            }
            equals[content] += 1


# -- plans ---------------------------------------------------------------------------------------


def _plans(
    connection: sqlite3.Connection, group: Group, said: Iterable[Stated]
) -> Iterator[Values]:
    named: dict[str, list[Stated]] = {}
    for one in said:
        name, text = said_of(one, "name"), said_of(one, "text")
        named.setdefault(f"name {name}" if name else f"text {text}", []).append(one)
    for proposals in named.values():
        status, texts = outcome(proposals)
        if not texts:
            continue
        one, name = texts[-1], said_of(texts[-1], "name") or ""
        place = _place(one)
        modified_at = place.pop("stated_at")
        if not _has_file(connection, group[0], name, said_of(one, "text"), modified_at):
            yield {
                "title": said_of(one, "title"),
                "text": said_of(one, "text"),
                "name": name,
                "status": status,
                "modified_at": modified_at,
                "session_id": one.session_id,
                **place,
            }


def said_of(one: Stated, field: str) -> str | None:
    """Return what a statement says about a plan: the text is the one that was answered."""
    value: str | None = one.answered.get(field) or one.stated.get(field)
    return value


def outcome(proposals: Iterable[Stated]) -> tuple[str | None, list[Stated]]:
    status: str | None = None
    texts = []
    for one in proposals:
        if one.status == "error":
            continue
        by = one.stated.get("by")
        if by == "prompt" or one.answered.get("is_awaiting"):
            status = "accepted" if by == "prompt" else "proposed"
        elif by == "call":
            status = _ANSWERS.get(one.status, status)
        if said_of(one, "text") is not None:
            texts.append(one)
    return status, texts


def _has_file(
    connection: sqlite3.Connection, source_id: int, name: str, text: str | None, said_at: str | None
) -> bool:
    """Does the file of a plan count? If it is gone, only until another text is proposed."""
    rows = connection.execute(
        "select f.gone_at, p.modified_at, p.text from plans p join files f on f.id = p.file_id"
        " where p.name = ? and f.source_id = ? and p.channel = 'file'",
        (name, source_id),
    )
    return any(
        gone_at is None or kept == text or (modified_at or "") >= (said_at or "")
        for gone_at, modified_at, kept in rows
    )


def _place(one: Stated) -> Values:
    return {
        "stated_at": one.timestamp,
        "tool_use_id": one.tool_use_id,
        "file_id": one.file_id,
        "byte_offset": one.byte_offset,
    }


def _session(connection: sqlite3.Connection, source_id: int, key: str) -> int | None:
    """Return the session with a key, by the rules of `references`."""
    found: int | None = _one(
        connection,
        "select s.id from sessions s join sources x on x.id = s.source_id where s.session_key = ?"
        f" order by {SESSION_RANK.format(source='?')} limit 1",
        (key, source_id),
    )
    return found


def _one(connection: sqlite3.Connection, query: str, values: Sequence[object]) -> Any:
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]


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
