"""The named agents of an application, and the conversations with them.

A configuration lists the agents. It is rewritten as a whole, so an agent that is no longer in it
gets `gone_at` and keeps its name, since its conversations still exist. An agent that is in no
configuration is identified by the directory of its conversations, and removed with the last of
them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ..records import Agent

LISTING_KINDS = ("config",)
"""Kinds of files that list agents."""

_STATED = ("name", "type", "description", "path", "is_general", "extra")


def apply_agents(
    connection: sqlite3.Connection, file_id: int, source_id: int, agents: Sequence[Agent], now: str
) -> None:
    """Update the agents of a configuration to those that it lists now."""
    columns = (*Agent._fields, "source_id", "file_id")
    assignments = ", ".join(f"{column} = excluded.{column}" for column in (*_STATED, "file_id"))
    listed = {(agent.project_key, agent.agent_key) for agent in agents}
    connection.executemany(
        f"insert into agents ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
        " on conflict (source_id, project_key, agent_key)"
        f" do update set {assignments}, gone_at = null",
        [(*agent, source_id, file_id) for agent in agents],
    )
    rows = connection.execute(
        "select id, project_key, agent_key from agents where file_id = ? and gone_at is null",
        (file_id,),
    ).fetchall()
    connection.executemany(
        "update agents set gone_at = ? where id = ?",
        [(now, id_) for id_, *key in rows if tuple(key) not in listed],
    )


def mark_file_gone(connection: sqlite3.Connection, file_id: int, now: str) -> None:
    """Record that a configuration is missing, and its agents with it."""
    connection.execute(
        "update agents set gone_at = ? where file_id = ? and gone_at is null", (now, file_id)
    )


def remove_file(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove what a configuration stated, as if it had never existed."""
    connection.execute(
        "update agents set name = agent_key, type = null, description = null, path = null,"
        " is_general = null, extra = null, gone_at = null, file_id = null where file_id = ?",
        (file_id,),
    )


def refresh_agents(connection: sqlite3.Connection) -> None:
    """Link changed conversations to their agents, and agents to their workspaces.

    The workspace of a conversation follows from its path; its project may be a worktree.
    """
    connection.execute(
        "insert into agents (name, agent_key, project_key, source_id)"
        " select distinct e.agent_key, e.agent_key, f.project_key, f.source_id"
        " from touched_files t cross join session_entries e on e.file_id = t.id"
        " join files f on f.id = e.file_id"
        " where e.agent_key is not null and f.project_key is not null on conflict do nothing"
    )
    if connection.execute("select 1 from agents limit 1").fetchone() is None:
        return
    connection.execute(
        "delete from agents where file_id is null and not exists ("
        " select 1 from session_entries e join files f on f.id = e.file_id"
        " where e.agent_key = agents.agent_key and f.project_key = agents.project_key"
        " and f.source_id = agents.source_id)"
    )
    project = (
        "select p.id from projects p"
        " where p.source_id = agents.source_id and p.key = agents.project_key"
    )
    connection.execute(
        f"update agents set project_id = ({project}) where project_id is not ({project})"
    )
    agent = (
        "select a.id from session_entries e join files f on f.id = e.file_id"
        " join agents a on a.source_id = f.source_id and a.project_key = f.project_key"
        "  and a.agent_key = e.agent_key"
        " where e.session_id = sessions.id"
        " order by e.kind, f.gone_at is not null, f.path, f.generation limit 1"
    )
    connection.execute(
        f"update sessions set agent_id = ({agent})"
        " where id in (select id from touched_sessions)"
        f" and agent_id is not ({agent})"
    )
