"""The text of metadata.yml: how Datasette presents the tables.

Titles, descriptions and the meaning of columns come from the comments of the schema; what
Datasette needs to know beside them stands here.

- A table that foreign keys point to has a label column that is never null, else the labels are
  uuids, or "None".
- Facets only where an index alone answers them, without a look at the rows, and the values are few.
- Sorted by what is indexed, or by id where the rows are many.
- What only serves other tables is hidden; it can still be opened by its address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from docs.comments import tables

DATABASE = "assoc"
"""Datasette calls a database by the stem of its file: assoc.db is the default one."""

_HIDDEN: dict[str, Any] = {"hidden": True}

CONFIGURATION: dict[str, dict[str, Any]] = {
    "sources": {"label_column": "root"},
    "projects": {"label_column": "name", "sort_desc": "last_activity_at"},
    "sessions": {"label_column": "title", "sort_desc": "ended_at", "facets": ["project_id"]},
    "agents": {"label_column": "name"},
    "subagents": {"label_column": "agent_key", "sort_desc": "id"},
    "files": {"label_column": "path", "sort_desc": "mtime", "facets": ["kind"]},
    "messages": {"label_column": "kind", "sort_desc": "id", "size": 50, "facets": ["kind"]},
    "tool_calls": {"label_column": "name", "sort_desc": "id", "facets": ["name", "status"]},
    "responses": {"sort_desc": "id", "facets": ["model"]},
    "teams": {"label_column": "name"},
    "tasks": {"label_column": "subject", "facets": ["status"]},
    "todos": {"facets": ["status"]},
    "inbox_items": {
        "label_column": "sender",
        "sort_desc": "timestamp",
        "facets": ["team_id", "kind"],
    },
    "plans": {"label_column": "title", "sort_desc": "modified_at"},
    "documents": {"sort_desc": "modified_at"},
    "prompts": {"sort_desc": "timestamp"},
    "hook_events": {"sort_desc": "id", "facets": ["event"]},
    "links": {"sort_desc": "timestamp"},
    "line_extras": {"sort_desc": "id", "size": 50},
    "added_lines": {"sort_desc": "id"},
    "git_changes": {"facets": ["project_id"]},
    "git_branches": {"facets": ["project_id"]},
    "git_diff_lines": {"facets": ["project_id"]},
    "git_commits": {"facets": ["project_id"]},
    "issues": {"sort_desc": "id"},
    "sync_runs": {"sort_desc": "id"},
    "conversation": {"fts_table": "messages_fts", "fts_pk": "id", "size": 50},
    "forgotten": {"sort_desc": "id"},
    "forgotten_secrets": {"sort_desc": "id"},
    "archive": _HIDDEN,
    "usage": _HIDDEN,
    "unmatched_results": _HIDDEN,
    "superseded": _HIDDEN,
    "unpriced": _HIDDEN,
    "identity": _HIDDEN,
    "changes": _HIDDEN,
    "changed_rows": _HIDDEN,
    "forgotten_files": _HIDDEN,
    "transcripts": _HIDDEN,
    "summaries": _HIDDEN,
    "agent_metas": _HIDDEN,
    "agent_links": _HIDDEN,
    "workflow_links": _HIDDEN,
    "workflow_agents": _HIDDEN,
    "session_entries": _HIDDEN,
    "project_entries": _HIDDEN,
    "messages_cjk": _HIDDEN,
    "_sqlite_migrations": _HIDDEN,
}


def metadata() -> str:
    """Return the tables of the database with all that Datasette shows of them."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield "databases:"
    yield f"  {DATABASE}:"
    yield "    tables:"
    known = tables()
    for name in [*known, *(name for name in CONFIGURATION if name not in known)]:
        yield f"      {name}:"
        for key, value in _entries(name).items():
            yield from _entry(key, value)


def _entries(name: str) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    if table := tables().get(name):
        entries["title"] = name.replace("_", " ").capitalize()
        entries["description"] = f"{table.comment}."
    entries |= CONFIGURATION.get(name, {})
    if table:
        entries["columns"] = {column.name: column.comment for column in table.columns}
    return entries


def _entry(key: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield f"        {key}:"
        for name, text in value.items():
            yield f"          {name}: {_scalar(text)}"
    else:
        yield f"        {key}: {_scalar(value)}"


def _scalar(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)  # JSON is YAML, and needs no rules for quotes
