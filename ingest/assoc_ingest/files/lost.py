"""How losses of a damaged database are stored: as placeholder paths and as issues.

A file whose row is lost, and whose path cannot be derived, is kept under a placeholder path, with
its kind if its rows show it. No source claims such a path. Issues describe other losses, so that
lists and the status show them; they do not affect the counts of a file.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from ..source import Claim, KnownFile

UNNAMED = "recovered"
"""Kind of a file whose kind is not known."""

_DIRECTORY = "recovered/"
_FIRST, _LAST = _DIRECTORY, "recovered0"  # '0' follows '/' in ASCII

PATH_LOST = "path is not known: its row was lost with a damaged page of the database"
PATH_FROM_LINES = (
    "path is derived from its lines: its row was lost with a damaged page of the database"
)
BYTES_LOST = "archived bytes are missing or damaged"
PACKED_DAMAGED = "it is packed, and damaged"
PACKED_TOO_LARGE = "it is packed, and unpacks to more than a log can be"
UNOPENED = (PACKED_DAMAGED, PACKED_TOO_LARGE)
"""Reasons why the content of a file is not read again until its stat changes."""

REASONS = (PATH_LOST, PATH_FROM_LINES, BYTES_LOST, *UNOPENED)
"""Reasons of issues that do not follow from the lines of a file."""


def placeholder(file_id: int) -> str:
    """Return the placeholder of a lost path."""
    return f"{_DIRECTORY}{file_id}"


def root_placeholder(source_id: int) -> str:
    """Return the placeholder of a lost root, a directory that does not exist."""
    return f"/{_DIRECTORY}root-{source_id}"


def is_unnamed(path: str) -> bool:
    """Is this path the placeholder of a lost one?"""
    return path.startswith(_DIRECTORY)


def unnamed_files(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of the files whose paths are lost. Costs one index search for each root."""
    rows = connection.execute(
        "select f.id from sources s cross join files f on f.source_id = s.id"
        " and f.path > ? and f.path < ? order by f.id",
        (_FIRST, _LAST),
    )
    return [file_id for (file_id,) in rows]


def unnamed_roots(connection: sqlite3.Connection, kind: str) -> list[tuple[int, str]]:
    """Return the roots of a kind whose directories are lost: their ids and placeholders."""
    rows = connection.execute("select id, root from sources where kind = ? order by id", (kind,))
    return [row for row in rows.fetchall() if row[1] == root_placeholder(row[0])]


def claim_of_unnamed(source: str, known: KnownFile) -> Claim | None:
    """Return the claim of a file whose path is lost, from its row; None if that says too little.

    For the lines of a conversation the row is enough; other kinds need the path.
    """
    if known.kind not in ("transcript", "agent", "side_agent"):
        return None
    return Claim(source, known.kind, known.session_key, known.agent_key)


def with_places(connection: sqlite3.Connection, claim: Claim, file_id: int) -> Claim:
    """Return the claim with the project, team and workflow that the row of the file names."""
    project, team, workflow = connection.execute(
        "select project_key, team_key, workflow from files where id = ?", (file_id,)
    ).fetchone()
    return replace(claim, project_key=project, team_key=team, workflow=workflow)


def clear_path_issues(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove the issues about the path of a file that a sync has found, and about opening it."""
    connection.execute(
        "delete from issues where file_id = ? and reason in (?, ?, ?, ?)",
        (file_id, PATH_LOST, PATH_FROM_LINES, *UNOPENED),
    )
