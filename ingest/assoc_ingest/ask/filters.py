"""Filters of a search: kind, project, session, source, branch, time, tool, model and role.

Most of them can be given as an option or inside of the query, as `field:value`, or both: kinds add
up, and of anything else what the query says counts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..errors import UsageError
from ..sources import SOURCES
from .lookup import find_session
from .near_names import did_you_mean
from .project_names import project_ids
from .since import since as time_of
from .since import until as time_until

WHAT = (
    "message", "session", "inbox", "task", "todo", "plan", "document", "prompt",
    "tool_result_file",
)  # fmt: skip
MESSAGE_KINDS = (
    "prompt", "command", "command_output", "bash_input", "bash_output", "task_notification",
    "agent_message", "agent_prompt", "memory_input", "interrupt", "compact_summary",
    "queued_prompt", "meta", "text", "thinking", "tool_use", "tool_result", "image", "error",
    "system", "attachment", "hook",
)  # fmt: skip

Parameters = dict[str, str | int | None]


@dataclass(frozen=True, slots=True)
class Filters:
    """What hits are left out. Each is as the user gives it; None leaves out nothing."""

    kind: tuple[str, ...] = ()
    """Hits of any of these kinds."""
    project: str | None = None
    session: str | None = None
    source: str | None = None
    since: str | None = None
    until: str | None = None
    model: str | None = None
    role: str | None = None
    branch: str | None = None
    tool: str | None = None
    with_worktrees: bool = True
    """The name of a repository includes its worktrees."""

    def limited_by(self, fields: Iterable[tuple[str, str]]) -> Filters:
        """Return the filters with what a query says of itself: names and values."""
        limited = self
        for name, value in fields:
            kinds = (*limited.kind, value)
            limited = replace(limited, **{name: kinds if name == "kind" else value})  # type: ignore[arg-type]
        return limited

    @property
    def is_of_messages(self) -> bool:
        """Is there a filter that nothing but messages can fit?"""
        return bool(self.model or self.role or self.branch)

    def parameters(self, connection: sqlite3.Connection) -> Parameters:
        """Return the parameters of the queries; raise where a filter names nothing."""
        for kind in self.kind:
            _check("kind", kind, (*WHAT, *MESSAGE_KINDS))
        known_source(self.source)
        projects = None
        if self.project:
            projects = project_ids(connection, self.project, with_worktrees=self.with_worktrees)
        return {
            "kind": json.dumps(self.kind) if self.kind else None,
            "project": projects,
            "session": find_session(connection, self.session) if self.session else None,
            "source": self.source,
            "since": time_of(self.since) if self.since else None,
            "until": time_until(self.until) if self.until else None,
            "tool": self.tool,
            "model": self.model,
            "role": self.role,
            "branch": self.branch,
        }


def source_names() -> tuple[str, ...]:
    """Return the names of the systems that can be asked for."""
    return tuple(SOURCES)


def known_source(name: str | None) -> None:
    """Raise UsageError if there is no source of this name."""
    if name:
        _check("source", name, source_names())


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        names = dict.fromkeys(known)
        hint = did_you_mean(value, names)
        raise UsageError(f"Unknown {name} {value!r}.{hint} Choose one of: {', '.join(names)}.")
