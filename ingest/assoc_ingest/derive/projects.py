"""Projects: their names, paths and counts, from everything that is known about them."""

from __future__ import annotations

import re
import sqlite3

from ..project_paths import slashed
from ..sql import id_list
from .changeset import TEMPORARY, Touched, linked_worktrees
from .stale_lists import refresh_lists
from .worktrees import refer, relatives, repository_of

# When a project went: it has no files or sessions, and all lists have dropped it.
_GONE_AT = """
select iif(count(*) = count(e.gone_at), max(e.gone_at), null) from (
    select gone_at from project_entries where project_id = projects.id
    union all select gone_at from session_entries where project_id = projects.id
) e
where not exists (select 1 from files f where f.project_id = projects.id)
and not exists (
    select 1 from sessions s where s.project_id = projects.id and s.gone_at is null
)
"""

# Agents keep projects each in its own home, and under names of its own. Those in one directory are
# one project to people: the first of them stands for all.
_SAME_AS = """
update projects set same_as = s.same_as from (
    select p.id, (
        select nullif(o.id, p.id) from projects o join sources r on r.id = o.source_id
        where lower(o.path) = lower(p.path)
        and (o.path = p.path or o.path glob '[A-Za-z]:*' or o.path glob '//*') -- Windows
        order by r.is_agent desc, r.root, o.key limit 1
    ) as same_as from projects p
) s where s.id = projects.id and projects.same_as is not s.same_as
"""


def refresh_projects(connection: sqlite3.Connection, touched: Touched) -> None:
    """Derive the rows of the projects of changed files, sessions and lists."""
    rows = connection.execute(
        "select project_id from files where id in (select id from touched_files)"
        " union select project_id from project_entries where file_id in"
        "  (select id from touched_files)"
        " union select project_id from sessions where id in (select id from touched_sessions)"
        " union select p.id from projects p where p.path is null"
        "  and exists (select 1 from prompts i where i.project_id = p.id)"
    )
    touched.projects.update(row[0] for row in rows if row[0] is not None)
    ids = touched.projects | linked_worktrees(connection, "select id from touched_files")
    related = relatives(connection, ids)
    removed = connection.execute(  # the old name of a directory that was moved
        f"delete from projects where id in ({id_list(ids)})"
        " and not exists (select 1 from files f where f.project_id = projects.id)"
        " and not exists (select 1 from session_entries e where e.project_id = projects.id)"
        " and not exists (select 1 from project_entries e where e.project_id = projects.id)"
    )
    touched.is_project_removed = removed.rowcount > 0
    _describe_all(connection, ids | related)
    if ids or touched.is_project_removed:
        connection.execute(_SAME_AS)


def refresh_named(connection: sqlite3.Connection, ids: set[int]) -> None:
    """Derive the rows of projects whose git state has changed."""
    for statement in TEMPORARY.split(";"):
        connection.execute(statement)
    refresh_lists(connection, Touched())
    _describe_all(connection, ids)


def _describe_all(connection: sqlite3.Connection, ids: set[int]) -> None:
    """Derive the rows of projects, and of the worktrees that are named after them."""
    done: set[int] = set()
    pending = ids
    while pending:
        rows = connection.execute(f"select id from projects where id in ({id_list(pending)})")
        pending = {project for (project,) in rows.fetchall()}
        related = relatives(connection, pending)
        for project_id in pending:
            _describe(connection, project_id)
        done |= pending
        pending = (related | relatives(connection, pending)) - done
    refer(connection, done)


def _describe(connection: sqlite3.Connection, project_id: int) -> None:
    """Derive the row of a project as if it were not a worktree."""
    listed = (
        connection.execute(
            "select e.name, e.path, e.parent_key, e.is_worktree, e.git_branch,"
            "  f.kind = 'session_index'"
            " from project_entries e join files f on f.id = e.file_id where e.project_id = ?"
            " order by e.gone_at is not null or e.file_id in"
            "  (select file_id from stale_lists), f.path limit 1",
            (project_id,),
        ).fetchone()
        or (None,) * 6
    )
    stated = _path_from_lines(connection, project_id)
    path = stated or listed[1] if listed[5] else listed[1] or stated
    path = path or _path_from_prompts(connection, project_id)
    path = path or _path_from_entries(connection, project_id)
    path = slashed(path) if path else None
    name = listed[0] or (re.split("/+", path.rstrip("/"))[-1] if path else None)
    name = name or path or _directory_name(connection, project_id)
    connection.execute(
        "update projects set path = ?1, name = ?2, repository = ?6,"
        " session_count = (select count(*) from sessions s"
        "  where s.project_id = projects.id and s.kind <> 'sidechain' and s.gone_at is null),"
        " last_activity_at = (select max(s.ended_at) from sessions s"
        "  where s.project_id = projects.id),"
        " git_branch = coalesce(head_branch, ?3, (select s.git_branch from sessions s"
        "  where s.project_id = projects.id and s.git_branch is not null"
        "  order by s.ended_at desc, s.session_key limit 1)),"
        " parent_id = (select o.id from projects o"
        f"  where o.source_id = projects.source_id and o.key = ?4), gone_at = ({_GONE_AT})"
        " where id = ?5",
        (
            path, name, listed[4], listed[2], project_id,
            repository_of(connection, project_id, path),
        ),
    )  # fmt: skip


def _directory_name(connection: sqlite3.Connection, project_id: int) -> str | None:
    """Return the name of the project's directory as it is spelled; the key can be in lower case."""
    key, path = connection.execute(
        "select p.key, (select min(f.path) from files f where f.project_id = p.id)"
        " from projects p where p.id = ?",
        (project_id,),
    ).fetchone()
    parts = path.split("/") if path else []
    name: str = next((part for part in parts if key in (part, part.casefold())), key)
    return name


def _path_from_lines(connection: sqlite3.Connection, project_id: int) -> str | None:
    """Return the working directory that the project's directory is named after, or the first."""
    # Those that nearly always are first, before all are sorted: an append does this.
    for first in ("and f.kind = 'transcript' and d.encoded = p.key", ""):
        row = connection.execute(
            "select d.path from projects p"
            " join files f on f.project_id = p.id"
            " join working_directories d on d.file_id = f.id"
            " join transcripts x on x.file_id = f.id"
            f" where p.id = ? {first}"
            # For a long path, the name of the directory ends in a hash, and `encoded` before it.
            " order by not (p.key = d.encoded"
            "   or (length(d.encoded) > 200 and substr(p.key, 1, length(d.encoded)) = d.encoded)),"
            # Where case does not matter, one directory has several spellings.
            " lower(p.key) <> lower(d.encoded),"
            " f.kind <> 'transcript', x.started_at, f.path, d.byte_offset limit 1",
            (project_id,),
        ).fetchone()
        if row:
            return str(row[0])
    return None


def _path_from_prompts(connection: sqlite3.Connection, project_id: int) -> str | None:
    """Return the directory that the prompt history names for the project's directory."""
    row = connection.execute(
        "select project_path from prompts where project_id = ?"
        " order by timestamp is null, timestamp, project_path limit 1",
        (project_id,),
    ).fetchone()
    return row[0] if row else None


def _path_from_entries(connection: sqlite3.Connection, project_id: int) -> str | None:
    """Return the directory of the project, as its sessions themselves state it."""
    row = connection.execute(
        "select e.cwd from session_entries e join files f on f.id = e.file_id"
        " where e.project_id = ? and e.kind in ('meta', 'relocated') and e.cwd is not null"
        " order by e.started_at is null, e.started_at, f.path limit 1",
        (project_id,),
    ).fetchone()
    return row[0] if row else None
