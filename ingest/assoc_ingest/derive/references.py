"""References between stores: text keys become ids, whichever side was read first.

A row keeps the key from its file (a session's uuid, an agent's id, a hash) and an id that is NULL
until the other side exists. This step fills the ids of rows in the batch, and of older rows that
refer to rows in the batch. If a session is in several roots, the one in the row's own root is
meant, otherwise the agent's own transcript, otherwise the first root.
"""

from __future__ import annotations

import sqlite3

from ..sql import id_list
from .changeset import SESSION_RANK, Touched

# ------------------------------------------------------------------------------------------------
# Dependencies between tasks: the files of both tasks state one, and it is stored once.
#
# For tasks without a file, they follow from calls in transcripts (`statements`).


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


# ------------------------------------------------------------------------------------------------
# Messages between agents: the team that they belong to, and which rows are the same message.
#
# A message can be in the inbox of its recipient, in the transcripts of its sender and its
# recipient, and in forks of both. The row of the inbox is the original; rows of transcripts have
# `copy_of`:
#
# 1. the team is the one that a transcript names, or that its session leads;
# 2. the original is the inbox row of the same team with the same text, sender and recipient, if
#    there are several the nearest in time;
# 3. otherwise the first row, by time and path, with the same `message_key`;
# 4. otherwise the row of the line that this line is a copy of.
#
# This is derived again for all rows that a batch can affect, so it does not depend on the order
# in which files were read.


FOLDED = "replace(replace(replace(replace(lower({}), '_', '-'), ' ', '-'), '.', '-'), '/', '-')"
"""SQL for the key of a team from its name: lower case, hyphens."""

_IS_TOUCHED = """
select 1 from touched_files t cross join inbox_items i on i.file_id = t.id
union all select 1 from touched_files t cross join files f on f.id = t.id
    where f.team_id is not null
union all select 1 from touched_sessions t cross join teams x on x.lead_session_id = t.id
limit 1
"""

_AFFECTED = """
insert or ignore into affected_mail
select i.id from inbox_items i
where i.channel = 'transcript' and (
    i.copy_of is null
    or i.team_id is null
    or i.team_name is null -- its team depends on who leads it
    or i.file_id in (select id from touched_files)
    or i.text_hash in (
        select t.text_hash from inbox_items t where t.file_id in (select id from touched_files)
    )
    or i.message_key in (
        select t.message_key from inbox_items t
        where t.file_id in (select id from touched_files) and t.message_key is not null
    )
)
"""

_TEAM = f"""
select t.id from teams t
join files f on f.id = inbox_items.file_id and f.source_id = t.source_id
where case
    when inbox_items.team_name is null
    then t.lead_session_id = inbox_items.session_id and inbox_items.session_id is not null
    else t.key = {FOLDED.format("inbox_items.team_name")}
end
order by t.key limit 1
"""

# Rows are ordered by a column of an inner query: in SQLite, `order by` cannot refer to the row that
# is updated.
_IN_INBOX = """
select id from (
select o.id, o.timestamp, f.path, o.ordinal,
    abs(julianday(o.timestamp) - julianday(inbox_items.timestamp)) as distance
from inbox_items o join files f on f.id = o.file_id
where o.text_hash = inbox_items.text_hash and o.channel = 'inbox'
    and o.team_id = inbox_items.team_id
    and o.sender = coalesce(inbox_items.sender, o.sender)
    and o.recipient = coalesce(inbox_items.recipient, o.recipient)
    and inbox_items.text is not null
) order by distance is null, distance, timestamp, path, ordinal limit 1
"""

_SAME_KEY = """
select nullif(coalesce(o.copy_of, o.id), inbox_items.id) from inbox_items o
join files f on f.id = o.file_id
where o.message_key = inbox_items.message_key and o.channel = 'transcript'
order by o.copy_of is null, o.timestamp, f.path, o.byte_offset, o.ordinal limit 1
"""

_OF_ORIGINAL_LINE = """
select original from (
select nullif(coalesce(o.copy_of, o.id), inbox_items.id) as original,
    o.ordinal <> inbox_items.ordinal as is_other, o.ordinal, m.block
from messages m join messages c on c.id = m.copy_of
join inbox_items o on o.file_id = c.file_id and o.byte_offset = c.byte_offset
    and o.text_hash = inbox_items.text_hash and o.channel = 'transcript'
where m.file_id = inbox_items.file_id and m.byte_offset = inbox_items.byte_offset
) order by is_other, ordinal, block limit 1
"""


def refresh_mail(connection: sqlite3.Connection) -> None:
    """Link messages in transcripts to their teams, and to the rows that they repeat."""
    if connection.execute(_IS_TOUCHED).fetchone() is None:
        return
    connection.execute("create temp table if not exists affected_mail (id integer primary key)")
    connection.execute("delete from affected_mail")
    connection.execute(_AFFECTED)
    if connection.execute("select 1 from affected_mail limit 1").fetchone() is None:
        return
    _set(connection, "team_id", _TEAM)
    _set(connection, "copy_of", _IN_INBOX)
    _set(connection, "copy_of", _SAME_KEY, "copy_of is null and message_key is not null")
    _set(connection, "copy_of", _OF_ORIGINAL_LINE, "copy_of is null and message_key is null")


def _set(connection: sqlite3.Connection, column: str, target: str, condition: str = "1") -> None:
    connection.execute(
        f"update inbox_items set {column} = ({target})"
        f" where id in (select id from affected_mail) and {condition}"
        f" and {column} is not ({target})"
    )


# (table, key column, id column) of all references to sessions.
_SESSION_REFERENCES = (
    ("todos", "session_key", "session_id"),
    ("documents", "session_key", "session_id"),
    ("links", "session_key", "session_id"),
    ("tool_result_files", "session_key", "session_id"),
    ("hook_events", "session_key", "session_id"),
    ("tasks", "list_key", "session_id"),
)


def refresh_references(connection: sqlite3.Connection, touched: Touched) -> None:
    """Fill the references that the batch can complete."""
    fresh = _fresh_prompts(connection)
    for table, key, column in _SESSION_REFERENCES:
        _refer(connection, table, key, column, _session(table, key))
    _refer_prompts(connection, touched)
    _refer(
        connection,
        "session_entries",
        "linked_session_key",
        "linked_session_id",
        _session("session_entries", "linked_session_key", "x.is_agent = 1"),
    )
    connection.execute(  # conversations that are linked to a new one
        "insert or ignore into touched_sessions select e.session_id from touched_sessions t"
        " cross join sessions s on s.id = t.id cross join session_entries e"
        " on e.linked_session_key = s.session_key where e.session_id is not null"
    )
    _refer(
        connection,
        "teams",
        "lead_session_key",
        "lead_session_id",
        _session("teams", "lead_session_key"),
        is_fixed=False,
    )
    _touch_prompted(connection, fresh)
    _refresh_agents(connection)
    _refresh_teams(connection)
    refresh_mail(connection)
    refresh_edges(connection, touched)
    _fill_in_pastes(connection)
    _refresh_results(connection)


def refresh_places(connection: sqlite3.Connection, touched: Touched) -> None:
    """Fill the references that depend on sessions and projects, which are derived by now."""
    _refresh_plans(connection)
    _refresh_documents(connection, touched)
    _refresh_tasks(connection)


def _session(table: str, key: str, condition: str = "1") -> str:
    return (
        "select s.id from files f, sessions s join sources x on x.id = s.source_id"
        f" where f.id = {table}.file_id and s.session_key = {table}.{key} and {condition}"
        f" order by {SESSION_RANK.format(source='f.source_id')} limit 1"
    )


def _refer(
    connection: sqlite3.Connection,
    table: str,
    key: str,
    column: str,
    target: str,
    *,
    is_fixed: bool = True,
) -> None:
    """Set `column` of rows of changed files, and of rows whose key is that of a changed session.

    A fixed key never changes in a row, so in a file that grew, only rows without a target are new.
    Another may be null again, and then its target is.
    """
    is_there = f" and {key} is not null" * is_fixed
    for condition in (
        "file_id in (select id from touched_files)" + (f" and {column} is null" * is_fixed),
        f"{key} in (select s.session_key from touched_sessions t"
        "  cross join sessions s on s.id = t.id)",
    ):
        connection.execute(
            f"update {table} set {column} = ({target})"
            f" where {condition}{is_there} and {column} is not ({target})"
        )


def _refresh_agents(connection: sqlite3.Connection) -> None:
    """Link todos and hook events to the subagents of their sessions."""
    for table in ("todos", "hook_events"):
        target = (
            f"select a.id from subagents a where a.session_id = {table}.session_id"
            f" and a.agent_key = {table}.agent_key"
        )
        connection.execute(
            f"update {table} set subagent_id = ({target}) where agent_key is not null"
            " and (file_id in (select id from touched_files)"
            " or session_id in (select id from touched_sessions))"
            f" and subagent_id is not ({target})"
        )


def _refresh_teams(connection: sqlite3.Connection) -> None:
    """Link tasks to the teams that their list is named after, and set which teams are gone."""
    if connection.execute("select 1 from teams limit 1").fetchone() is None:
        return
    target = (
        f"select t.id from teams t where t.key = {FOLDED.format('tasks.list_key')}"
        " and t.source_id = tasks.source_id"
    )
    connection.execute(
        f"update tasks set team_id = ({target}) where team_id is null and team_id is not ({target})"
        " and (file_id in (select id from touched_files) or exists ("
        "  select 1 from touched_files x cross join files f on f.id = x.id"
        "  where f.team_id is not null))"
    )
    connection.execute(
        "update teams set gone_at = (select iif(count(*) = count(f.gone_at), max(f.gone_at), null)"
        "  from files f where f.team_id = teams.id)"
    )


def _fresh_prompts(connection: sqlite3.Connection) -> list[tuple[int]]:
    """Return the prompts of changed files that have no session yet."""
    return connection.execute(
        "select id from prompts where file_id in (select id from touched_files)"
        " and session_id is null and session_key is not null"
    ).fetchall()


def _touch_prompted(connection: sqlite3.Connection, fresh: list[tuple[int]]) -> None:
    """Mark sessions with a new prompt as changed: it may be their title."""
    connection.executemany(
        "insert or ignore into touched_sessions select session_id from prompts"
        " where id = ? and session_id is not null",
        fresh,
    )


def _refer_prompts(connection: sqlite3.Connection, touched: Touched) -> None:
    """Link prompts to sessions and projects, both at once: a prompt can be long.

    The directory of a project is named after the path that a prompt names.
    """
    project = (
        "select p.id from projects p join files f on f.source_id = p.source_id"
        " where f.id = o.file_id and p.key = o.project_key"
    )
    of_projects = (
        "select p.key from projects p where p.id in (select f.project_id from touched_files t"
        f" cross join files f on f.id = t.id) or p.id in ({id_list(touched.projects)})"
    )
    connection.execute(
        "update prompts set session_id = x.session_id, project_id = x.project_id from ("
        f" select o.id, ({_session('o', 'session_key')}) as session_id,"
        f"  coalesce(o.project_id, ({project})) as project_id from prompts o where o.id in ("
        "   select id from prompts where file_id in (select id from touched_files)"
        "    and (session_id is null or project_id is null)"
        "   union select id from prompts where session_key in ("
        "    select s.session_key from touched_sessions t cross join sessions s on s.id = t.id)"
        "   union select id from prompts where project_id is null"
        f"    and project_key in ({of_projects}))"
        ") x where x.id = prompts.id"
        " and (prompts.session_id is not x.session_id or prompts.project_id is not x.project_id)"
    )


def _fill_in_pastes(connection: sqlite3.Connection) -> None:
    """Fill in pasted texts that prompts name by hash."""
    is_touched = (
        "select 1 from touched_files t join files f on f.id = t.id"
        " where f.kind in ('history', 'paste') limit 1"
    )
    if connection.execute(is_touched).fetchone() is None:
        return
    text = (
        "select group_concat(text, char(10)) from (select iif(h.type = 'object',"
        "  json_extract(h.value, '$.text'), (select p.text from pastes p where p.hash = h.value"
        "   order by p.text limit 1)) as text"
        " from json_each(o.paste_hashes) h order by h.key)"
    )
    connection.execute(
        "update prompts set pasted = x.text from ("
        f" select o.id, ({text}) as text from prompts o where o.paste_hashes is not null"
        ") x where x.id = prompts.id and prompts.pasted is not x.text"
    )


def _refresh_results(connection: sqlite3.Connection) -> None:
    """Link outputs that are files to their calls, if the file is not named after the call."""
    target = (
        "select c.tool_use_id from tool_calls c where c.session_id = tool_result_files.session_id"
        " and c.output_file = tool_result_files.name order by c.tool_use_id limit 1"
    )
    connection.execute(
        f"update tool_result_files set tool_use_id = ({target})"
        " where session_id in (select id from touched_sessions)"
        " and (tool_use_id is null or substr(name, 1, length(tool_use_id)) <> tool_use_id)"
        f" and tool_use_id is not ({target})"
    )


def _refresh_plans(connection: sqlite3.Connection) -> None:
    """Link plans to the sessions whose slug names them, and lines to their plan."""
    connection.execute(
        "update plan_lines set plan_id = (select p.id from plans p"
        "  where p.file_id = plan_lines.file_id)"
        " where file_id in (select id from touched_files)"
    )
    stem = "iif(instr(name, '-agent-'), substr(name, 1, instr(name, '-agent-') - 1), name)"
    target = (
        # Without the plus, the planner would scan all sessions of the source.
        "select s.id from files f cross join sessions s on +s.source_id = f.source_id"
        f" where f.id = plans.file_id and s.slug in (plans.name, {stem})"
        " order by s.ended_at desc, s.session_key limit 1"
    )
    connection.execute(
        f"update plans set session_id = ({target})"
        f" where channel = 'file' and session_id is not ({target})"
    )


def _refresh_documents(connection: sqlite3.Connection, touched: Touched) -> None:
    """Link notes and summaries to the projects of an agent that their directory names.

    If there are several homes, the one that contains them is meant.
    """
    target = (
        "select p.id from projects p join sources x on x.id = p.source_id and x.is_agent = 1"
        " join files f on f.id = documents.file_id join sources o on o.id = f.source_id"
        " where rtrim(p.key, '-') = documents.project_key"
        " order by o.root = x.root desc, o.root like x.root || '/%' desc, x.root, p.key limit 1"
    )
    conditions = [
        "file_id in (select id from touched_files)",
        "project_key in (select rtrim(key, '-') from projects"
        f" where id in ({id_list(touched.projects)}))",
    ]
    if touched.is_project_removed:
        conditions.append("project_id is null")
    for condition in conditions:
        connection.execute(
            f"update documents set project_id = ({target})"
            f" where project_key is not null and {condition} and project_id is not ({target})"
        )


def _refresh_tasks(connection: sqlite3.Connection) -> None:
    """Link dependencies of tasks, and changes that a file states, to the tasks."""
    for table, key, column in (
        ("task_dependencies", "task_key", "task_id"),
        ("task_dependencies", "blocker_key", "blocker_id"),
        ("task_changes", "task_key", "task_id"),
    ):
        target = (
            "select t.id from tasks t join files f on f.source_id = t.source_id"
            f" where f.id = {table}.file_id"
            f" and t.list_key = {table}.list_key and t.task_key = {table}.{key}"
            " order by t.gone_at is not null, t.channel limit 1"
        )
        connection.execute(
            f"update {table} set {column} = ({target}) where {key} is not null"
            f" and ({column} is null or file_id in (select id from touched_files))"
            f" and {column} is not ({target})"
        )
