"""What git says about the projects on this machine: branches and uncommitted changes."""

from __future__ import annotations

import sqlite3

from .. import git_program
from ..derive.projects import refresh_named
from ..store.transaction import transaction
from ..when import now
from . import git


def ask_git(connection: sqlite3.Connection) -> None:
    """Record what git says about each project on this disk: branches and uncommitted changes.

    If git does not answer, its last answer is kept, with its time. If there is no longer a
    repository, nothing is kept.
    """
    rows = connection.execute(
        "select id, path, head_branch, git_repository from projects where on_disk = 1"
    ).fetchall()
    facts = {path: git.look_at(path) for path in dict.fromkeys(path for _, path, *_ in rows)}
    seen_at = now()
    changed = set()
    with transaction(connection):
        for project_id, path, *before in rows:
            fact = facts[path]
            connection.execute(
                "update projects set git_branch = coalesce(?1, git_branch), head_branch = ?1,"
                " is_dirty = ?2, git_repository = iif(?3, ?4, git_repository) where id = ?5",
                (
                    fact.branch if fact else None, fact.is_dirty if fact else None,
                    fact is not None, fact.repository if fact else None, project_id,
                ),
            )  # fmt: skip
            if fact is not None and before != [fact.branch, fact.repository]:
                changed.add(project_id)
            if fact is not None:
                _replace(connection, project_id, fact, seen_at)
            elif not git_program.is_repository(path):
                _replace(connection, project_id, None, None)
        if changed:
            refresh_named(connection, changed)


def _replace(
    connection: sqlite3.Connection, project_id: int, fact: git.GitFacts | None, seen_at: str | None
) -> None:
    """Replace the changes and branches of a project by those that git has just listed."""
    for table in ("git_changes", "git_branches"):
        connection.execute(f"delete from {table} where project_id = ?", (project_id,))
    connection.execute(
        "update projects set git_seen_at = ?, change_count = ? where id = ?",
        (seen_at, fact.change_count if fact else None, project_id),
    )
    if fact is None:
        return
    connection.executemany(  # two names can become the same text: a byte, and its escape
        "insert into git_changes (path, status, letter, project_id, seen_at)"
        " values (?, ?, ?, ?, ?) on conflict do nothing",
        [(*change, project_id, seen_at) for change in fact.changes],
    )
    connection.executemany(
        "insert into git_branches (name, is_current, project_id, seen_at)"
        " values (?, ?, ?, ?) on conflict do nothing",
        [(*branch, project_id, seen_at) for branch in fact.branches],
    )
