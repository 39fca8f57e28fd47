"""Subagents: their kind, times and counts, from their files or from their lines in a main file."""

from __future__ import annotations

import re
import sqlite3

# ------------------------------------------------------------------------------------------------
# Finds the call that spawned a subagent.
#
# Evidence for a link is in many places, which differ from version to version. The first match
# wins, and the method is recorded:
#
# 1. meta: the agent's sidecar names the call; 2. result: the call's structured result names the
# agent; 3. progress: a progress line names both; 4. result-text: the text of the call's result
# has a line `agentId: <agent>`; 5. notification: a task notification names both; 6. prompt: the
# agent's first text is the prompt of exactly one call; 7. workflow: the agent belongs to a run,
# and the run to a call; 8. skill: the first line of the agent follows the line of exactly one
# call of `Skill`.
#
# Calls are searched in all files of the session, because agents spawn agents. An agent that would
# have spawned itself, directly or through others, is not linked.


_METHODS = {1: "meta", 2: "result", 3: "progress", 4: "result-text", 5: "notification"}
# Side agents begin with the prompt of the agent whose context they share: no call spawned them.
_SPAWNED = ("task", "sidechain")
_wrapped = re.compile(
    r"\s*<teammate-message\b[^>]*>(.*)</teammate-message>\s*", re.DOTALL
).fullmatch


class Agent:
    """A subagent that is to be linked."""

    def __init__(
        self, id_: int, key: str, kind: str, session_id: int, workflow: str | None
    ) -> None:
        self.id = id_
        self.key = key
        self.kind = kind
        self.session_id = session_id
        self.workflow = workflow
        self.parent: int | None = None
        self.call: int | None = None
        self.method: str | None = None

    def link(self, call: tuple[int, int | None], method: str) -> None:
        """Set the call, with the agent in whose file it is, and how it was found."""
        self.call, self.parent = call
        self.method = method


def link(connection: sqlite3.Connection, session_id: int, agents: list[Agent]) -> None:
    """Link the agents of a session to their calls, and fill in type and description from these."""
    evidence = _evidence(connection, session_id)
    runs = _workflow_calls(connection, session_id)
    for agent in agents:
        for call, method in evidence.get(agent.key, ()):
            if call[1] != agent.id:
                agent.link(call, method)
                break
        if agent.call is None and agent.workflow in runs:
            agent.link(runs[agent.workflow], "workflow")
    unlinked = [agent for agent in agents if agent.call is None and agent.kind in _SPAWNED]
    if unlinked:
        taken = {agent.call for agent in agents if agent.call is not None}
        _link_by_prompt(connection, session_id, unlinked, taken)
        _link_by_skill(connection, session_id, [agent for agent in unlinked if agent.call is None])
    _cut_cycles(agents)
    connection.executemany(
        "update subagents set spawned_by = ?1, parent_id = ?2, link_method = ?3"
        " where id = ?4 and (spawned_by is not ?1 or parent_id is not ?2 or link_method is not ?3)",
        ((agent.call, agent.parent, agent.method, agent.id) for agent in agents),
    )
    _name_by_call(connection, session_id)


# A copied call has a row in each file. The link goes to the original, which may be in another
# session; the parent follows from the place of the call in the agent's own session.
_CALL = """
    coalesce((
        select o.id from messages c join tool_calls o on o.call_id = c.copy_of
        where c.id = t.call_id and c.copy_of is not null
    ), t.id),
    t.subagent_id
"""


def _evidence(
    connection: sqlite3.Connection, session_id: int
) -> dict[str, list[tuple[tuple[int, int | None], str]]]:
    """Return, for each agent that a line of the session names, its calls, the best one first.

    Calls are found by their id: the plus keeps the planner from scanning all calls of the session,
    and for each of them all links of its files.
    """
    found: dict[str, list[tuple[tuple[int, int | None], str]]] = {}
    for key, method, call, parent in connection.execute(
        f"select l.agent_key, l.method, {_CALL}"
        " from files f"
        " cross join agent_links l on l.file_id = f.id"
        " cross join tool_calls t on t.tool_use_id = l.tool_use_id and +t.session_id = f.session_id"
        " cross join files tf on tf.id = t.file_id"
        " where f.session_id = ? and t.call_id is not null"
        " and (l.method <> 4 or t.action = 'spawn')"
        " order by l.agent_key, l.method, f.path, l.byte_offset,"
        " (select c.copy_of is not null from messages c where c.id = t.call_id),"
        " tf.path, t.byte_offset, t.block",
        (session_id,),
    ):
        found.setdefault(key, []).append(((call, parent), _METHODS[method]))
    return found


def _workflow_calls(
    connection: sqlite3.Connection, session_id: int
) -> dict[str | None, tuple[int, int | None]]:
    rows = connection.execute(
        f"select coalesce(w.run, s.run), {_CALL}"
        " from files f"
        " cross join workflow_links w on w.file_id = f.id and w.tool_use_id is not null"
        " left join ("
        "  select x.run, x.task_key from workflow_links x join files xf on xf.id = x.file_id"
        "  where xf.session_id = ?1 and x.tool_use_id is null"
        " ) s on s.task_key = w.task_key"
        " cross join tool_calls t on t.tool_use_id = w.tool_use_id and +t.session_id = f.session_id"
        " where f.session_id = ?1 and t.call_id is not null"
        " order by f.path desc, w.byte_offset desc",
        (session_id,),
    )
    return {run: (call, parent) for run, call, parent in rows if run}


def _link_by_prompt(
    connection: sqlite3.Connection, session_id: int, agents: list[Agent], taken: set[int]
) -> None:
    """Link an agent whose first text is the prompt of exactly one call.

    Calls in `taken` have an agent by better evidence. If several agents have the prompt of one
    call, all of them are linked to it: the call was retried, and the last one cannot be told.
    """
    calls: dict[str, list[tuple[int, int | None]]] = {}
    for prompt, call, parent in connection.execute(
        f"select json_extract(m.tool_text, '$.prompt'), {_CALL}"
        " from tool_calls t join messages m on m.id = t.call_id"
        " where t.session_id = ? and t.action = 'spawn' and json_valid(m.tool_text)",
        (session_id,),
    ):
        if isinstance(prompt, str):
            entry = (call, parent)
            known = calls.setdefault(prompt.strip(), [])
            if call not in taken and entry not in known:
                known.append(entry)
    for agent in agents if calls else ():
        text = _first_text(connection, agent.id)
        if text is None:
            continue
        wrapped = _wrapped(text)
        matching = calls.get((wrapped[1] if wrapped else text).strip(), [])
        matching = [call for call in matching if call[1] != agent.id]
        if len(matching) == 1:
            agent.link(matching[0], "prompt")


def _link_by_skill(connection: sqlite3.Connection, session_id: int, agents: list[Agent]) -> None:
    """Link an agent whose first line follows the line of exactly one call of `Skill`."""
    calls: dict[str, set[tuple[int, int | None]]] = {}
    for uuid, call, parent in connection.execute(
        f"select m.uuid, {_CALL} from tool_calls t join messages m on m.id = t.call_id"
        " where t.session_id = ? and t.name = 'Skill' and m.uuid is not null",
        (session_id,),
    ):
        calls.setdefault(uuid, set()).add((call, parent))
    for agent in agents if calls else ():
        row = connection.execute(
            "select m.parent_uuid from messages m join files f on f.id = m.file_id"
            " where m.subagent_id = ? order by f.path, m.byte_offset, m.block limit 1",
            (agent.id,),
        ).fetchone()
        matching = [call for call in calls.get(row[0], ()) if call[1] != agent.id] if row else []
        if len(matching) == 1:
            agent.link(matching[0], "skill")


def _first_text(connection: sqlite3.Connection, subagent_id: int) -> str | None:
    row = connection.execute(
        "select m.text from messages m join files f on f.id = m.file_id"
        " where m.subagent_id = ? and m.role = 'user' and m.text is not null"
        " order by f.path, m.byte_offset, m.block limit 1",
        (subagent_id,),
    ).fetchone()
    return row[0] if row else None


def _cut_cycles(agents: list[Agent]) -> None:
    """Unlink all agents that would be their own ancestors."""
    by_id = {agent.id: agent for agent in agents}
    on_cycle = []
    for agent in agents:
        walked = set()
        parent = agent.parent
        while parent in by_id and parent not in walked:
            walked.add(parent)
            parent = by_id[parent].parent
        if agent.id in walked:
            on_cycle.append(agent)
    for agent in on_cycle:
        agent.call = agent.parent = agent.method = None


def _name_by_call(connection: sqlite3.Connection, session_id: int) -> None:
    """Take type and description from the call if no sidecar states them."""
    rows = connection.execute(
        "select a.id, json_extract(m.tool_text, '$.subagent_type'),"
        " json_extract(m.tool_text, '$.description')"
        " from subagents a join tool_calls t on t.id = a.spawned_by"
        " join messages m on m.id = t.call_id"
        " where a.session_id = ? and t.action = 'spawn' and json_valid(m.tool_text)"
        " and (a.agent_type is null or a.description is null)",
        (session_id,),
    ).fetchall()
    connection.executemany(
        "update subagents set agent_type = coalesce(agent_type, ?2),"
        " description = coalesce(description, ?3) where id = ?1",
        rows,
    )


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
