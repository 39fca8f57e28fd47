"""What the names of Claude Code's directories and files mean.

A project directory is named after a working directory: each character that is no ASCII letter or
digit became a hyphen; of a name over 200 characters the first 200 stay, and a hash follows. That
cannot be undone, and editors differ in the case of a drive letter, so names are compared folded.
"""

from __future__ import annotations

import re

from ..model import Claim

uuid = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
"""Regular expression of a session's id."""

_MAX_ENCODED = 200

_uuid = re.compile(uuid)
_not_alphanumeric = re.compile(r"[^A-Za-z0-9]")


def in_project(
    kind: str,
    directory: str,
    session: str | None,
    agent: str | None = None,
    workflow: str | None = None,
    *,
    is_doubtful: bool = False,
    parts: tuple[str, ...] = (),
) -> Claim:
    """Claim a file below a project's directory."""
    if session is not None and (found := _uuid.search(session)):
        session = found[0].lower()
    return Claim(
        "claude",
        kind,
        session_key=session,
        agent_key=agent,
        project_key=directory.casefold(),
        project_directory=directory,
        workflow=workflow,
        parts=parts,
        is_doubtful=is_doubtful,
    )


def encoded(path: str) -> str:
    """Return the name of the project directory of a working directory, folded.

    Of a path over 200 characters it ends where the hash would follow.
    """
    name = _not_alphanumeric.sub("-", path).casefold()
    return name if len(name) <= _MAX_ENCODED else name[:_MAX_ENCODED] + "-"


def is_encoded(path: str, project_key: str | None) -> bool:
    """Is the project directory named after the working directory `path`?"""
    if project_key is None:
        return False
    name = encoded(path)
    return project_key.startswith(name) if len(name) > _MAX_ENCODED else name == project_key


def folded(session: str) -> str:
    """Return a session's key as it is compared: a uuid in lower case, anything else as it is."""
    return session.lower() if _uuid.fullmatch(session) else session
