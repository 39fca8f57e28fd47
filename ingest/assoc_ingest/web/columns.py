"""Which columns of a table are shown first: at most eight, those that a person reads.

The others are one click away. Only the page is shorter, not the query, so a table is sorted and
continued by any column, as Datasette does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST = 8
"""Columns of a table on its page."""

_ASKED = ("_all", "_col", "_nocol")
"""Parameters of an address that say which columns to show."""

FIRST: Mapping[str, tuple[str, ...]] = {
    "conversation": ("kind", "text", "tool_text", "timestamp", "session", "project", "subagent"),
    "documents": ("kind", "title", "text", "path", "session_id", "project_id", "modified_at"),
    "files": ("path", "kind", "size", "line_count", "issue_count", "mtime", "session_id"),
    "hook_events": ("event", "tool_name", "cwd", "model", "source", "reason", "session_id"),
    "inbox_items": ("text", "sender", "recipient", "kind", "timestamp", "is_read", "team_id"),
    "messages": ("kind", "text", "tool_text", "timestamp", "session_id", "subagent_id", "model"),
    "projects": (
        "name", "path", "git_branch", "session_count", "last_activity_at", "parent_id", "source_id",
    ),
    "prompts": ("text", "timestamp", "project_path", "session_id"),
    "response_costs": (
        "timestamp", "model", "cost_microusd", "input_tokens", "output_tokens",
        "cache_read_tokens", "session", "project",
    ),
    "responses": (
        "model", "timestamp", "input_tokens", "output_tokens", "cache_read_tokens", "session_id",
        "subagent_id",
    ),
    "sessions": (
        "title", "project_id", "ended_at", "message_count", "prompt_count", "tool_call_count",
        "git_branch",
    ),
    "subagents": (
        "agent_type", "description", "name", "session_id", "started_at", "message_count", "tokens",
    ),
    "tasks": ("subject", "description", "status", "owner", "session_id", "team_id", "gone_at"),
    "todos": ("content", "status", "priority", "session_id", "subagent_id", "gone_at"),
    "tool_calls": (
        "name", "target", "status", "started_at", "duration_ms", "exit_code", "session_id",
    ),
    "tool_calls_full": (
        "name", "target", "status", "started_at", "input", "output", "session", "project",
    ),
}  # fmt: skip
"""Of the tables and views whose first columns are not those that are read most."""


def shown(table: str, names: Sequence[str], asked: Mapping[str, str]) -> list[int]:
    """Return the places of the columns to show, in order.

    The first is the row's own link where the table has one. What the address sorts or filters by
    is shown, too.
    """
    every = list(range(len(names)))
    if len(names) <= MOST or any(name in asked for name in _ASKED):
        return every
    wanted = [name for name in FIRST.get(table, ()) if name in names]
    if wanted:
        chosen = [names.index(name) for name in wanted]
        if 0 not in chosen and names[0] not in FIRST[table]:
            chosen.insert(0, 0)
    else:
        chosen = every
    chosen = chosen[:MOST]
    named = {name.split("__")[0] for name in asked}
    named |= {asked[name] for name in ("_sort", "_sort_desc") if name in asked}
    chosen += [place for place in every if names[place] in named and place not in chosen]
    return chosen
