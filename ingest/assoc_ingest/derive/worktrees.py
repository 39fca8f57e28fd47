"""Worktrees: the repository that a project is a worktree of, and the name that follows from it.

A worktree is a directory of its own, often named by a number. So it is named after its repository
and its branch, `cli · feature-x`, and linked to the repository's own project, if there is one. If
conversations in it were on different branches, it is named after its directory: no conversation is
shown with the branch of another. The repository is identified by, the most reliable first:

1. the list of an application;
2. the last answer of git;
3. the path: `.claude/worktrees/` and `.worktrees/` are in the repository;
4. a session that states from which directory it created the worktree.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..project_paths import comparable, repository_around
from ..sql import id_list

_BETWEEN = " · "
_DETACHED = "HEAD"


def repository_of(connection: sqlite3.Connection, project_id: int, path: str | None) -> str | None:
    """Return the directory of the repository that the project at `path` is a worktree of."""
    if path is None:
        return None
    (said,) = connection.execute(
        "select git_repository from projects where id = ?", (project_id,)
    ).fetchone()
    found: str | None = said or repository_around(path)
    if found is None and (origin := _stated(connection, project_id, path, "origin")):
        found = repository_around(origin) or origin
    return found if found and comparable(found) != comparable(path) else None


def label(connection: sqlite3.Connection, project_id: int, branch: str | None) -> str | None:
    """Return the branch that a worktree is named after, None if it has several or none."""
    if branch and branch != _DETACHED:
        (has_others,) = connection.execute(
            "select exists (select 1 from sessions where project_id = ?"
            " and git_branch is not null and git_branch not in ('', ?, ?))",
            (project_id, branch, _DETACHED),
        ).fetchone()
        return None if has_others else branch
    row = connection.execute("select path from projects where id = ?", (project_id,)).fetchone()
    return _stated(connection, project_id, row[0], "title") if row[0] else None


def relatives(connection: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Return the worktrees of these projects: their name and parent depend on them."""
    these = id_list(ids)
    rows = connection.execute(
        f"select id from projects where parent_id in ({these})"
        " union select e.project_id from project_entries e"
        " cross join projects p on p.id = e.project_id"
        " cross join projects o on o.source_id = p.source_id and o.key = e.parent_key"
        f" where e.parent_key is not null and o.id in ({these})"
        " union select w.id from projects p cross join projects w on w.source_id = p.source_id"
        " and w.repository is not null and lower(w.repository) = lower(p.path)"
        f" where p.id in ({these})"
    )
    return {project for (project,) in rows}


def refer(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Link worktrees to the project of their repository, and name them after it.

    Before this, the rows have their own names, the parents from lists, and their repositories.
    """
    for project_id in ids:
        source, name, branch, parent, repository = connection.execute(
            "select source_id, name, git_branch, parent_id, repository from projects where id = ?",
            (project_id,),
        ).fetchone()
        if parent is None and repository is not None:
            parent, repository = _root(connection, source, project_id, repository)
        if parent is None and repository is None:
            continue
        row = connection.execute("select name from projects where id = ?", (parent,)).fetchone()
        of = row[0] if row else repository.rstrip("/").split("/")[-1].removesuffix(".git")
        own = label(connection, project_id, branch) or name
        connection.execute(
            "update projects set name = ?, parent_id = ?, is_worktree = coalesce(is_worktree, 1)"
            " where id = ?",
            (f"{of}{_BETWEEN}{own}" if of else own, parent, project_id),
        )


def _root(
    connection: sqlite3.Connection, source_id: int, project_id: int, repository: str
) -> tuple[int | None, str | None]:
    """Return the project of a repository, and its directory, following worktrees of worktrees.

    If the links form a cycle, nothing in it is a worktree.
    """
    seen = {project_id}
    while (found := _project_at(connection, source_id, repository)) is not None:
        parent, its_repository, its_parent = found
        if parent in seen:
            return None, None
        seen.add(parent)
        if its_repository is None:  # a worktree from a list already has its parent
            return its_parent or parent, repository
        repository = its_repository
    return None, repository


def _project_at(
    connection: sqlite3.Connection, source_id: int, path: str
) -> tuple[int, str | None, int | None] | None:
    """Return a project with its repository and its parent, None if none is at the path."""
    rows = (
        connection.execute(  # without the plus, the planner would scan all projects of the source
            "select path, id, repository, parent_id from projects"
            " where source_id = ? and lower(path) = lower(?) order by +key",
            (source_id, path),
        )
    )
    place = comparable(path)
    return next(
        ((found[0], found[1], found[2]) for at, *found in rows if comparable(at) == place), None
    )


def _stated(connection: sqlite3.Connection, project_id: int, path: str, column: str) -> str | None:
    """Return what links of sessions state about the worktree at a path: the first value."""
    row = connection.execute(
        f"select i.{column} from links i join files f on f.id = i.file_id"
        " join projects p on p.source_id = f.source_id"
        " where p.id = ?1 and i.kind = 'worktree' and i.url in (?2, replace(?2, '/', '\\'))"
        f" and i.{column} is not null and i.gone_at is null"
        " order by i.timestamp is null, i.timestamp, f.path, f.generation, i.byte_offset limit 1",
        (project_id, path),
    ).fetchone()
    return row[0] if row else None
