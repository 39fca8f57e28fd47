"""Interprets the names of Claude Code's directories and files.

A project directory is named after a working directory: each character except ASCII letters and
digits becomes a hyphen; a name over 200 characters is truncated to 200, and a hash follows. This
cannot be reversed. Names that begin with a drive letter are compared in lower case, see
`project_paths`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ...fast_json import orjson
from ...project_paths import comparable_name
from ...source import Claim, Whereabouts

uuid = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
"""A regular expression for the id of a session."""

_MAX_ENCODED = 200

_uuid = re.compile(uuid)
_not_alphanumeric = re.compile(r"[^A-Za-z0-9]")


def homes(environment: Mapping[str, str], home: str | None) -> list[str]:
    """Return the homes of the program: the configured ones, else two defaults."""
    configured = environment.get("CLAUDE_CONFIG_DIR", "")
    named = [part.strip() for part in configured.split(",") if part.strip()]
    return named or ([f"{home}/.claude", f"{home}/.config/claude"] if home is not None else [])


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
    """Return the claim of a file below a project's directory."""
    if session is not None and (found := _uuid.search(session)):
        session = found[0].lower()
    return Claim(
        "claude",
        kind,
        session_key=session,
        agent_key=agent,
        project_key=comparable_name(directory),
        project_directory=directory,
        workflow=workflow,
        parts=parts,
        is_doubtful=is_doubtful,
    )


def encoded(path: str) -> str:
    """Return the name of the project directory of a working directory, in comparable form.

    For a path over 200 characters, it ends before the hash.
    """
    name = comparable_name(_not_alphanumeric.sub("-", path))
    return name if len(name) <= _MAX_ENCODED else name[:_MAX_ENCODED] + "-"


def named_after(path: str) -> str | None:
    """Return the key of the project of a directory, None if its name ends in a hash."""
    path = path.rstrip("/\\") or path
    return encoded(path) if len(path) <= _MAX_ENCODED else None


def is_session(name: str) -> bool:
    """Is this the name of a session's directory?"""
    return _uuid.fullmatch(name) is not None


def is_encoded(path: str, project_key: str | None) -> bool:
    """Is the project directory named after the working directory `path`?"""
    if project_key is None:
        return False
    name = encoded(path)
    return project_key.startswith(name) if len(name) > _MAX_ENCODED else name == project_key


def folded(session: str) -> str:
    """Return a session's key in comparable form: a uuid in lower case, others unchanged."""
    return session.lower() if _uuid.fullmatch(session) else session


def whereabouts_in(lines: Iterable[bytes]) -> Whereabouts:
    """Return what the lines of a transcript say about its path; nothing for other lines.

    The session is the one that the last line names: the first may be copied from another session.
    """
    session = agent = directory = None
    for data in lines:
        try:
            line = orjson.loads(data)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(line, dict) or line.get("type") not in ("user", "assistant"):
            continue  # other files name sessions, too
        if not isinstance(line.get("sessionId"), str):
            continue
        session = folded(line["sessionId"])
        if line.get("isSidechain") is True and isinstance(line.get("agentId"), str):
            agent = agent or line["agentId"]
        if isinstance(line.get("cwd"), str):
            directory = directory or line["cwd"]
    return Whereabouts(session, agent, directory)


def transcript_path(session: str, directory: str) -> str | None:
    """Return the path of the transcript of a session that began in a working directory.

    Returns None if the name of the project's directory ends in a hash, or the key is not a uuid.
    """
    name = _not_alphanumeric.sub("-", directory)
    if len(name) > _MAX_ENCODED or not _uuid.fullmatch(session):
        return None
    return f"projects/{name}/{session}.jsonl"
