"""The command that goes on with a session, for those who want to: as the source of it says."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ..sources import SOURCES

_RESUMABLE = ("main", "background")
"""Kinds of sessions that a person can go on with."""


def resume_line(session: Mapping[str, object], *, is_there: bool) -> str | None:
    """Return what to type into a shell, None if the session cannot be resumed.

    `session` has the columns `kind`, `source`, `session_key` and `cwd`. It may have `project_path`,
    where a session without a `cwd` was held; `is_there` says whether the agent still has a
    transcript of it.
    """
    source = SOURCES.get(str(session["source"]))
    if source is None or not is_there or session["kind"] not in _RESUMABLE:
        return None
    command = source.resume_command(str(session["session_key"]))
    if command is None or not (line := shlex.join(command)).isprintable():
        return None  # nobody can type it, and a terminal might obey it
    directory = session["cwd"] or session.get("project_path")
    is_known = isinstance(directory, str) and directory.isprintable()
    if not is_known:
        return line
    option = "-- " if str(directory).startswith("-") else ""
    return f"cd {option}{shlex.quote(str(directory))} && {line}"
