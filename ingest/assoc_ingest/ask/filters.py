"""Filters of a search: kind, project, session, source, time, model, role and branch."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from ..errors import UsageError
from ..sources import SOURCES
from .lookup import find_session
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

    kind: str | None = None
    project: str | None = None
    session: str | None = None
    source: str | None = None
    since: str | None = None
    until: str | None = None
    model: str | None = None
    role: str | None = None
    branch: str | None = None
    with_worktrees: bool = True
    """The name of a repository includes its worktrees."""

    def parameters(self, connection: sqlite3.Connection) -> Parameters:
        """Return the parameters of the queries; raise where a filter names nothing."""
        _check("kind", self.kind, (*WHAT, *MESSAGE_KINDS))
        known_source(self.source)
        projects = None
        if self.project:
            projects = project_ids(connection, self.project, with_worktrees=self.with_worktrees)
        return {
            "kind": self.kind,
            "project": projects,
            "session": find_session(connection, self.session) if self.session else None,
            "source": self.source,
            "since": time_of(self.since) if self.since else None,
            "until": time_until(self.until) if self.until else None,
            "model": self.model,
            "role": self.role,
            "branch": self.branch,
        }


def source_names() -> tuple[str, ...]:
    """Return the names of the systems that can be asked for."""
    return tuple(SOURCES)


def known_source(name: str | None) -> None:
    """Raise UsageError if there is no source of this name."""
    _check("source", name, source_names())


def _check(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        listing = ", ".join(dict.fromkeys(known))
        raise UsageError(f"Unknown {name} {value!r}. Choose one of: {listing}.")
