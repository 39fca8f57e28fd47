"""The directories of projects on this machine: which of them exist.

This is the only place where a path from a transcript is looked up on disk: an absolute path, and
only to see whether it exists.
"""

from __future__ import annotations

import sqlite3

from ..paths import is_absolute, is_directory, is_file
from ..store.transaction import transaction


def look_at_projects(connection: sqlite3.Connection) -> None:
    """Record which projects are on this disk, and which of them are worktrees."""
    changes = []
    rows = connection.execute(
        "select id, path, parent_id is not null or repository is not null, on_disk, is_worktree"
        " from projects where path is not null or on_disk is not null"
    )
    for project_id, path, is_known, *before in rows:
        is_there = path is not None and is_absolute(path) and is_directory(path)
        is_worktree = int(is_file(f"{path}/.git")) if is_there else is_known or None
        on_disk = None if path is None else int(is_there)  # the lines that stated it may be gone
        if before != [on_disk, is_worktree]:
            changes.append((on_disk, is_worktree, project_id))
    if changes:
        with transaction(connection):
            connection.executemany(
                "update projects set on_disk = ?, is_worktree = ? where id = ?", changes
            )
