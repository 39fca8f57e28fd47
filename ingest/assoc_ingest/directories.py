"""What this machine's disk says of the projects: which are here, and how git finds them.

This is the one place where a path that a transcript states is looked at: an absolute one, and only
to see whether it is there.
"""

from __future__ import annotations

import sqlite3

from . import git
from .presence import is_directory, is_file


def look_at_projects(connection: sqlite3.Connection) -> None:
    """Note which projects are on this disk, and which of them are worktrees."""
    changes = []
    rows = connection.execute(
        "select id, path, on_disk, is_worktree from projects where path is not null"
    )
    for project_id, path, *before in rows:
        is_there = path.startswith("/") and is_directory(path)
        is_worktree = int(is_file(f"{path}/.git")) if is_there else None
        if before != [int(is_there), is_worktree]:
            changes.append((int(is_there), is_worktree, project_id))
    if changes:
        connection.execute("begin immediate")
        connection.executemany(
            "update projects set on_disk = ?, is_worktree = ? where id = ?", changes
        )
        connection.execute("commit")


def ask_git(connection: sqlite3.Connection) -> None:
    """Note which branch each project on this disk is on, and whether it is clean."""
    rows = connection.execute("select id, path from projects where on_disk = 1").fetchall()
    facts = [(git.look_at(path), project_id) for project_id, path in rows if git.is_installed()]
    connection.execute("begin immediate")
    connection.executemany(
        "update projects set git_branch = coalesce(?1, git_branch), head_branch = ?1, is_dirty = ?2"
        " where id = ?3",
        (
            (fact.branch if fact else None, fact.is_dirty if fact else None, project_id)
            for fact, project_id in facts
        ),
    )
    connection.execute("commit")
