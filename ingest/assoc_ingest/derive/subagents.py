"""Subagents: their kind, times and counts, from their files or from their lines in a main file."""

from __future__ import annotations

import sqlite3

from .agent_links import Agent, link

_SIDE_KINDS = {
    "acompact-": "compact",
    "aprompt_suggestion-": "prompt_suggestion",
    "aside_question-": "side_question",
}
_WARMUP = "Warmup"


def refresh_subagents(connection: sqlite3.Connection) -> None:
    """Derive the subagents of the sessions in `touched_sessions`, including links."""
    sessions = "(select id from touched_sessions)"
    _add_workflow_agents(connection, sessions)
    _add_called_agents(connection, sessions)
    connection.execute(
        "update subagents set session_id = (select s.id from sessions s"
        " where s.source_id = subagents.source_id and s.session_key = subagents.session_key)"
        " where session_key in (select session_key from sessions"
        f" where id in {sessions}) and session_id is null"
    )
    _drop_unnamed(connection, sessions)
    _describe(connection, sessions)
    by_session: dict[int, list[Agent]] = {}
    for row in connection.execute(
        "select a.id, a.agent_key, a.kind, a.session_id, a.workflow from subagents a"
        f" where a.session_id in {sessions} order by a.agent_key"
    ).fetchall():
        by_session.setdefault(row[3], []).append(Agent(*row))
    for session_id, agents in by_session.items():
        link(connection, session_id, agents)


def _add_workflow_agents(connection: sqlite3.Connection, sessions: str) -> None:
    """Add agents that the journal of a run names, and that may have no file."""
    connection.execute(
        "insert into subagents (source_id, session_id, session_key, agent_key, kind, workflow)"
        " select distinct f.source_id, f.session_id, f.session_key, w.agent_key, 'workflow',"
        " f.workflow"
        " from files f join workflow_agents w on w.file_id = f.id"
        f" where f.session_id in {sessions} and w.agent_key <> '' on conflict do nothing"
    )


_CALLED = """
    from agent_totals t
    join files f on f.id = t.file_id
    cross join messages m on m.file_id = t.file_id and m.byte_offset = t.byte_offset
        and m.kind = 'tool_result' and m.copy_of is null
    where not exists (
        select 1 from files o where o.source_id = f.source_id and o.agent_key = t.agent_key
    )
"""
"""Agents that the result of a call names and that have no file. In a fork, the line that names the
agent is a copy: the agent belongs to the session of the original. The cross join keeps SQLite from
going through all messages of the session."""


def _add_called_agents(connection: sqlite3.Connection, sessions: str) -> None:
    """Add agents that the result of a call names, and that may have no file."""
    connection.execute(
        "insert into subagents (source_id, session_id, session_key, agent_key, kind)"
        " select distinct f.source_id, f.session_id, f.session_key, t.agent_key, 'task'"
        f" {_CALLED} and f.session_id in {sessions} on conflict do nothing"
    )


def _drop_unnamed(connection: sqlite3.Connection, sessions: str) -> None:
    """Delete subagents that no file, line, journal or result of a call names any more."""
    connection.execute(
        "delete from subagents where (session_id is null or session_id in"
        f" {sessions})"
        " and not exists (select 1 from files f where f.subagent_id = subagents.id)"
        " and not exists (select 1 from messages m where m.subagent_id = subagents.id)"
        " and not exists (select 1 from workflow_agents w join files f on f.id = w.file_id"
        "  where w.agent_key = subagents.agent_key and f.session_id = subagents.session_id)"
        f" and not exists (select 1 {_CALLED} and t.agent_key = subagents.agent_key"
        "  and f.session_id = subagents.session_id)"
    )


_ABOUT = """
own as (
    select f.subagent_id, min(x.started_at) as started_at, max(x.ended_at) as ended_at,
        max(x.message_count) as message_count -- one agent can lie under two projects
    from files f join transcripts x on x.file_id = f.id
    where f.session_id in {sessions} and f.subagent_id is not null
    group by f.subagent_id
),
chain as (
    select m.subagent_id, min(m.timestamp) as started_at, max(m.timestamp) as ended_at,
        count(distinct m.byte_offset) filter (where m.role <> 'system') as message_count
    from subagents a
    join messages m on m.subagent_id = a.id
    where a.session_id in {sessions}
    and not exists (select 1 from files f where f.subagent_id = a.id)
    group by m.subagent_id
),
stated as ( -- of an agent without a file; one that was resumed states its sums so far
    select a.id, max(t.agent_type) as agent_type, max(t.tool_call_count) as calls
    from subagents a
    join agent_totals t on t.agent_key = a.agent_key
    join files f on f.id = t.file_id and f.session_id = a.session_id
    where a.session_id in {sessions}
    and not exists (select 1 from files o where o.subagent_id = a.id)
    group by a.id
),
about as (
    select a.id, coalesce(own.started_at, chain.started_at) as started_at,
        coalesce(own.ended_at, chain.ended_at) as ended_at,
        coalesce(own.message_count, chain.message_count, 0) as message_count,
        stated.agent_type, stated.calls,
        chain.subagent_id is not null and not exists (
            select 1 from agent_lines l join files f on f.id = l.file_id
            where l.agent_key = a.agent_key and f.session_id = a.session_id
        ) as is_chain,
        (select m.text from files f join messages m on m.file_id = f.id
            where f.subagent_id = a.id and f.kind in ('agent', 'side_agent')
            and m.role = 'user'
            order by f.path, m.byte_offset, m.block limit 1) as first_text,
        (select y.id from files f join agent_metas y on y.file_id = f.id
            where f.subagent_id = a.id order by f.gone_at is not null, f.path limit 1
        ) as meta_id,
        (select coalesce(w.label, '') from workflow_agents w
            join files f on f.id = w.file_id
            where w.agent_key = a.agent_key and f.session_id = a.session_id
            order by w.label is null, f.path limit 1) as label,
        coalesce(
            (select f.workflow from files f
                where f.subagent_id = a.id and f.workflow is not null
                order by f.path limit 1),
            (select f.workflow from workflow_agents w join files f on f.id = w.file_id
                where w.agent_key = a.agent_key and f.session_id = a.session_id
                order by f.path limit 1)
        ) as workflow
    from subagents a
    left join own on own.subagent_id = a.id
    left join chain on chain.subagent_id = a.id
    left join stated on stated.id = a.id
    where a.session_id in {sessions}
)
"""
"""Common table expressions; the last has all that is known about each agent of `{sessions}`."""


def _describe(connection: sqlite3.Connection, sessions: str) -> None:
    """Fill kind, times and counts from the agents' files, or from their lines in a main file."""
    prefixes = " ".join(
        f"when agent_key like '{prefix.replace('_', '!_')}%' escape '!' then '{kind}'"
        for prefix, kind in _SIDE_KINDS.items()
    )
    connection.execute(f"""
        with {_ABOUT.format(sessions=sessions)}
        update subagents set
            started_at = about.started_at,
            ended_at = about.ended_at,
            message_count = about.message_count,
            agent_type = coalesce(y.agent_type, about.agent_type),
            tool_call_count = about.calls,
            description = coalesce(y.description, nullif(about.label, '')),
            name = y.name,
            model = y.model,
            workflow = about.workflow,
            kind = case
                when about.is_chain then 'sidechain'
                when about.first_text = '{_WARMUP}' then 'warmup'
                {prefixes}
                when about.workflow is not null then 'workflow'
                else 'task'
            end
        from about left join agent_metas y on y.id = about.meta_id
        where about.id = subagents.id
    """)
