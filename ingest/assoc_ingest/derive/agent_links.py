"""Finds the call that spawned a subagent.

Evidence for a link is in many places, which differ from version to version. The first match wins,
and the method is recorded:

1. meta: the agent's sidecar names the call;
2. result: the call's structured result names the agent;
3. progress: a progress line names both;
4. result-text: the text of the call's result has a line `agentId: <agent>`;
5. notification: a task notification names both;
6. prompt: the agent's first text is the prompt of exactly one call;
7. workflow: the agent belongs to a run, and the run to a call.

Calls are searched in all files of the session, because agents spawn agents. An agent that would
have spawned itself, directly or through others, is not linked.
"""

from __future__ import annotations

import re
import sqlite3

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
    """Return the call that started each workflow run of the session."""
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
