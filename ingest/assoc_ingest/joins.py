"""References between stores: text keys become ids, whichever side came first.

A row keeps the key that its file gives (a session's uuid, an agent's id, a hash) beside an id that
is NULL until the other side is there. This step fills the ids of rows that came with the batch, and
of older rows whose other side came with it. Where a session stands in several roots, the one in the
row's own root is meant, else the agent's own transcript, else the first root.
"""

from __future__ import annotations

import sqlite3

# (table, key column, id column) of every reference to a session.
_SESSION_REFERENCES = (
    ("todos", "session_key", "session_id"),
    ("prompts", "session_key", "session_id"),
    ("documents", "session_key", "session_id"),
    ("links", "session_key", "session_id"),
    ("tool_result_files", "session_key", "session_id"),
    ("hook_events", "session_key", "session_id"),
    ("teams", "lead_session_key", "lead_session_id"),
    ("tasks", "list_key", "session_id"),
)


def refresh_references(connection: sqlite3.Connection) -> None:
    """Fill the references that the batch can have completed."""
    for table, key, column in _SESSION_REFERENCES:
        _refer(connection, table, key, column, _session(table, key))
    _refer(
        connection,
        "session_entries",
        "linked_session_key",
        "linked_session_id",
        _session("session_entries", "linked_session_key", "x.kind = 'claude'"),
    )
    _refresh_agents(connection)
    _refresh_teams(connection)


def refresh_places(connection: sqlite3.Connection) -> None:
    """Fill the references that go by what sessions and projects have just been found to be."""
    _refresh_prompts(connection)
    _refresh_plans(connection)


def _session(table: str, key: str, condition: str = "1") -> str:
    return (
        "select s.id from files f, sessions s join sources x on x.id = s.source_id"
        f" where f.id = {table}.file_id and s.session_key = {table}.{key} and {condition}"
        " order by s.source_id = f.source_id desc, x.kind = 'claude' desc, x.root limit 1"
    )


def _refer(connection: sqlite3.Connection, table: str, key: str, column: str, target: str) -> None:
    """Set `column` of rows of touched files, and of rows whose key is a touched session's."""
    for condition in (
        "file_id in (select id from touched_files)",
        f"{key} in (select s.session_key from touched_sessions t join sessions s on s.id = t.id)",
    ):
        connection.execute(
            f"update {table} set {column} = ({target}) where {condition}"
            f" and {key} is not null and {column} is not ({target})"
        )


def _refresh_agents(connection: sqlite3.Connection) -> None:
    """Refer todos and hook events to the subagents of their sessions."""
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
    """Refer tasks and agent messages to teams, and find the messages that stand twice."""
    if connection.execute("select 1 from teams limit 1").fetchone() is None:
        return
    folded = "replace(lower({}), '_', '-')"
    for table, key in (("tasks", "list_key"), ("inbox_items", "team_name")):
        target = (
            f"select t.id from teams t where t.key = {folded.format(f'{table}.{key}')}"
            f" and t.source_id = (select f.source_id from files f where f.id = {table}.file_id)"
        )
        connection.execute(
            f"update {table} set team_id = ({target})"
            f" where {key} is not null and team_id is not ({target})"
            " and (team_id is null or file_id in (select id from touched_files))"
        )
    connection.execute(
        "update teams set gone_at = (select max(f.gone_at) from files f where f.team_id = teams.id"
        "  having count(*) = count(f.gone_at))"
    )


def _refresh_prompts(connection: sqlite3.Connection) -> None:
    """Refer prompts to projects by path, and put pasted texts in where only a hash stood."""
    target = (
        "select p.id from projects p join files f on f.source_id = p.source_id"
        " where f.id = prompts.file_id and p.path = replace(prompts.project_path, '\\', '/')"
    )
    connection.execute(
        f"update prompts set project_id = ({target})"
        " where file_id in (select id from touched_files) and project_id is not ({target})".replace(
            "{target}", target
        )
    )
    connection.execute(
        "update prompts set pasted = ("
        " select group_concat(p.text, char(10)) from json_each(prompts.paste_hashes) h"
        " join pastes p on p.hash = h.value)"
        " where paste_hashes is not null and (file_id in (select id from touched_files) or exists ("
        "  select 1 from json_each(prompts.paste_hashes) h join pastes p on p.hash = h.value"
        "  where p.file_id in (select id from touched_files)))"
    )


def _refresh_plans(connection: sqlite3.Connection) -> None:
    """Refer plans to the sessions whose slug names them, and lines to their plan."""
    connection.execute(
        "update plan_lines set plan_id = (select p.id from plans p"
        "  where p.file_id = plan_lines.file_id)"
        " where file_id in (select id from touched_files)"
    )
    target = (
        "select s.id from sessions s join files f on f.source_id = s.source_id"
        " where f.id = plans.file_id and s.slug is not null"
        " and (s.slug = plans.name or plans.name like s.slug || '-agent-%')"
        " order by s.ended_at desc, s.session_key limit 1"
    )
    connection.execute(
        f"update plans set session_id = ({target}) where session_id is not ({target})"
    )
