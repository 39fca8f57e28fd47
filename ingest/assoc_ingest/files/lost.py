"""What a damaged database lost, as the rows say it that were kept: their paths, and their issues.

A file whose row is lost, and whose path nothing tells, is kept under a path that stands in for its
own, and under its kind if its rows tell it. No source claims such a path. Issues say what else is
known of a loss, so that lists and the status show it; nothing of a file is counted by them.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from ..source import Claim, KnownFile

UNNAMED = "recovered"
"""Kind of a file of which nothing tells what it is."""

_DIRECTORY = "recovered/"
_FIRST, _LAST = _DIRECTORY, "recovered0"  # '0' is the letter behind '/'

PATH_LOST = "path is not known: its row was lost with a damaged page of the database"
PATH_TOLD = "path is told by its lines: its row was lost with a damaged page of the database"
BYTES_LOST = "archived bytes are missing or damaged"
REASONS = (PATH_LOST, PATH_TOLD, BYTES_LOST)
"""Reasons of issues that no line gives."""


def stand_in(file_id: int) -> str:
    """Return the path that stands in for one that is lost."""
    return f"{_DIRECTORY}{file_id}"


def root_stand_in(source_id: int) -> str:
    """Return the directory that stands in for a root that is lost: there is none of that name."""
    return f"/{_DIRECTORY}root-{source_id}"


def is_unnamed(path: str) -> bool:
    """Does this path stand in for one that is lost?"""
    return path.startswith(_DIRECTORY)


def unnamed_files(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of the files whose paths are lost. Costs a look for each root."""
    rows = connection.execute(
        "select f.id from sources s cross join files f on f.source_id = s.id"
        " and f.path > ? and f.path < ? order by f.id",
        (_FIRST, _LAST),
    )
    return [file_id for (file_id,) in rows]


def unnamed_roots(connection: sqlite3.Connection, kind: str) -> list[tuple[int, str]]:
    """Return the roots of a kind whose directories are lost, with what stands in for those."""
    rows = connection.execute("select id, root from sources where kind = ? order by id", (kind,))
    return [row for row in rows.fetchall() if row[1] == root_stand_in(row[0])]


def claim_of_unnamed(source: str, known: KnownFile) -> Claim | None:
    """Return what the row of a file says of it, in place of its path; None if it says too little.

    Of a conversation that is all that its lines need to be read; other kinds need the path.
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


def settle_path(connection: sqlite3.Connection, file_id: int) -> None:
    """Note that the path of a file is known after all: a sync has found it."""
    connection.execute(
        "delete from issues where file_id = ? and reason in (?, ?)", (file_id, PATH_LOST, PATH_TOLD)
    )
