"""The SQL that makes rows of the server's tables from local rows: one statement for each table.

`tables.py` says which columns there are, and what becomes of references; here is where each column
comes from. A column that is not mentioned is the local column of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from .scope import Scope
from .tables import FILES, Table

_SESSION = {"source_no": "s.source_id", "session_key": "s.session_key"}
_SUBAGENT = {
    "agent_session_key": "iif(a.id is null, null, coalesce(a.session_key, ''))",
    "agent_key": "a.agent_key",
}
_PROJECT = {"project_source_no": "p.source_id", "project_key": "p.key"}
_STATED = {
    "stated_session_key": "r.session_key",
    "stated_agent_key": "r.agent_key",
    "stated_project_key": "r.project_key",
}
_TEAM = {"team_source_no": "t.source_id", "team_key": "t.key"}
_FILE = {"file_key": "(select file_key from files where id = r.file_id)"}

_JOIN_SESSION = " left join sessions s on s.id = r.session_id"
_JOIN_SUBAGENT = " left join subagents a on a.id = r.subagent_id"
_JOIN_PROJECT = " left join projects p on p.id = r.project_id"
_JOIN_TEAM = " left join teams t on t.id = r.team_id"


class _Origin(NamedTuple):
    """Where the columns of a table come from."""

    columns: Mapping[str, str] = MappingProxyType({})
    joins: str = ""
    order: tuple[str, ...] = ()
    """What orders the rows with the same place in a file: the rest of the local unique key."""


_PLACED = {
    "messages": _Origin(_SESSION | _SUBAGENT, _JOIN_SESSION + _JOIN_SUBAGENT, ("block",)),
    "tool_calls": _Origin(
        {
            **_SESSION,
            **_SUBAGENT,
            "is_call": "r.call_id is not null",
            "result_offset": "(select byte_offset from messages where id = r.result_id)",
            "result_block": "(select block from messages where id = r.result_id)",
        },
        _JOIN_SESSION + _JOIN_SUBAGENT,
        ("block", "tool_use_id"),
    ),
    "usage": _Origin(order=("response_key",)),
    "stated_usage": _Origin(order=("model",)),
    "responses": _Origin(_SESSION | _SUBAGENT, _JOIN_SESSION + _JOIN_SUBAGENT, ("response_key",)),
    "prompts": _Origin(_SESSION | _PROJECT | _STATED, _JOIN_SESSION + _JOIN_PROJECT),
    "links": _Origin(_SESSION | _STATED, _JOIN_SESSION, ("kind", "url", "session_key")),
    "documents": _Origin(
        {**_SESSION, **_PROJECT, **_STATED, "byte_offset": "0"},
        _JOIN_SESSION + _JOIN_PROJECT,
        ("ordinal",),
    ),
    "plans": _Origin(_SESSION, _JOIN_SESSION, ("name",)),
    "todos": _Origin(
        _SESSION | _SUBAGENT | _STATED,
        _JOIN_SESSION + _JOIN_SUBAGENT,
        ("content", "ordinal", "tool_use_id"),
    ),
    "inbox_items": _Origin(
        _SESSION | _TEAM,
        _JOIN_SESSION + _JOIN_TEAM,
        ("timestamp", "sender", "text_hash", "ordinal"),
    ),
    "tool_result_files": _Origin({**_SESSION, **_STATED, "byte_offset": "0"}, _JOIN_SESSION),
    "issues": _Origin(order=("reason", "byte_length", "quarantined", "sample")),
    "line_types": _Origin({"byte_offset": "-1"}, order=("type", "subtype")),
    "agent_lines": _Origin(order=("agent_key",)),
}

_KEYED = {
    "sources": _Origin({"source_no": "r.id"}),
    "projects": _Origin(
        {
            "source_no": "r.source_id",
            "parent_source_no": "o.source_id",
            "parent_key": "o.key",
            "same_source_no": "e.source_id",
            "same_key": "e.key",
        },
        " left join projects o on o.id = r.parent_id left join projects e on e.id = r.same_as",
    ),
    "agents": _Origin(
        {"source_no": "r.source_id", "stated_project_key": "r.project_key", **_PROJECT, **_FILE},
        _JOIN_PROJECT,
    ),
    "sessions": _Origin(
        {
            **_PROJECT,
            "source_no": "r.source_id",
            "forked_source_no": "f.source_id",
            "forked_key": "f.session_key",
            "linked_source_no": "l.source_id",
            "linked_key": "l.session_key",
            "agent_source_no": "g.source_id",
            "agent_project_key": "g.project_key",
            "agent_key": "g.agent_key",
        },
        _JOIN_PROJECT + " left join sessions f on f.id = r.forked_from"
        " left join sessions l on l.id = r.linked_session_id"
        " left join agents g on g.id = r.agent_id",
    ),
    "subagents": _Origin(
        {
            "source_no": "r.source_id",
            "stated_session_key": "coalesce(r.session_key, '')",
            "session_key": "s.session_key",
            "parent_source_no": "o.source_id",
            "parent_session_key": "iif(o.id is null, null, coalesce(o.session_key, ''))",
            "parent_key": "o.agent_key",
            "spawned_by_file_key": "(select file_key from files where id = c.file_id)",
            "spawned_by_tool_use_id": "c.tool_use_id",
        },
        _JOIN_SESSION + " left join subagents o on o.id = r.parent_id"
        " left join tool_calls c on c.id = r.spawned_by",
    ),
    "teams": _Origin(
        {
            "source_no": "r.source_id",
            "stated_lead_session_key": "r.lead_session_key",
            "lead_source_no": "s.source_id",
            "lead_session_key": "s.session_key",
            **_FILE,
        },
        " left join sessions s on s.id = r.lead_session_id",
    ),
    "team_members": _Origin(
        {"member_key": "coalesce(r.agent_id, r.name, '')", **_TEAM, **_FILE}, _JOIN_TEAM
    ),
    "tasks": _Origin(
        {
            "source_no": "r.source_id",
            "session_source_no": "s.source_id",
            "session_key": "s.session_key",
            **_TEAM,
            **_FILE,
        },
        _JOIN_SESSION + _JOIN_TEAM,
    ),
    "task_dependencies": _Origin(
        {
            "source_no": "r.source_id",
            "task_channel": "(select channel from tasks where id = r.task_id)",
            "blocker_channel": "(select channel from tasks where id = r.blocker_id)",
            **_FILE,
        }
    ),
    "prices": _Origin(),
}

_FILES = _Origin(
    {
        **_SUBAGENT,
        **_PROJECT,
        **_STATED,
        "source_no": "r.source_id",
        "session_key": "s.session_key",
    },
    _JOIN_SESSION + _JOIN_SUBAGENT + _JOIN_PROJECT,
)


def _select(table: Table, origin: _Origin) -> str:
    columns = ", ".join(
        origin.columns.get(name, f'r."{name}"') for name in table.names if name != "row_no"
    )
    return f"select {columns} from {table.name} r{origin.joins}"


FILE = f"{_select(FILES, _FILES)} where r.id = ?"
"""The attributes of a file."""


def _place_of(origin: _Origin) -> tuple[str, ...]:
    """Return the column that orders rows by their place; none if all have the same place."""
    return () if "byte_offset" in origin.columns else ("byte_offset",)


@lru_cache(maxsize=64)
def placed(table: Table, scope: Scope) -> str:
    """Return the statement for the rows of a file from a place on: parameters `file`, `start`."""
    origin = _PLACED[table.name]
    is_copy = f"r.copy_of is not null and {scope.has(table.name, 'r.copy_of')}"
    statement = _select(table, origin._replace(columns={**origin.columns, "is_copy": is_copy}))
    place = origin.columns.get("byte_offset", "r.byte_offset")
    order = ", ".join([f'r."{name}"' for name in (*_place_of(origin), *origin.order, "id")])
    return f"{statement} where r.file_id = :file and {place} >= :start order by {order}"


def keyed(table: Table, scope: Scope) -> str:
    """Return the statement for the rows of a table that are in scope; `ids` limits them, if given.

    `ids` is a JSON array.
    """
    return (
        f"{_select(table, _KEYED[table.name])} where {scope.keeps(table.name)}"
        " and (:ids is null or r.id in (select value from json_each(:ids))) order by r.id"
    )
