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
from .inbox import FOLDED, refresh_mail
from .task_edges import refresh_edges

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
