"""Projects: their names, paths and counts, from everything that is known about them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

from ..paths import comparable, repository_around, slashed
from ..records import Agent
from ..sql import id_list
from .changeset import TEMPORARY, Touched, linked_worktrees
from .repositories import evidence_of, refresh_repositories

# ------------------------------------------------------------------------------------------------
# The named agents of an application, and the conversations with them.
#
# A configuration lists the agents. It is rewritten as a whole, so an agent that is no longer in
# it gets `gone_at` and keeps its name, since its conversations still exist. An agent that is in
# no configuration is identified by the directory of its conversations, and removed with the last
# of them.


LISTING_KINDS = ("config",)
"""Kinds of files that list agents."""

_STATED = ("name", "type", "description", "path", "is_general", "extra")


def apply_agents(
    connection: sqlite3.Connection, file_id: int, source_id: int, agents: Sequence[Agent], now: str
) -> None:
    """Update the agents of a configuration to those that it lists now."""
    columns = (*Agent._fields, "source_id", "file_id")
    assignments = ", ".join(f"{column} = excluded.{column}" for column in (*_STATED, "file_id"))
    listed = {(agent.project_key, agent.agent_key) for agent in agents}
    connection.executemany(
        f"insert into agents ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
        " on conflict (source_id, project_key, agent_key)"
        f" do update set {assignments}, gone_at = null",
        [(*agent, source_id, file_id) for agent in agents],
    )
    rows = connection.execute(
        "select id, project_key, agent_key from agents where file_id = ? and gone_at is null",
        (file_id,),
    ).fetchall()
    connection.executemany(
        "update agents set gone_at = ? where id = ?",
        [(now, id_) for id_, *key in rows if tuple(key) not in listed],
    )


def mark_file_gone(connection: sqlite3.Connection, file_id: int, now: str) -> None:
    """Record that a configuration is missing, and its agents with it."""
    connection.execute(
        "update agents set gone_at = ? where file_id = ? and gone_at is null", (now, file_id)
    )


def mark_file_back(connection: sqlite3.Connection, file_id: int, gone_at: str) -> None:
    """Record that a configuration is there again, broken: its agents are those it had before."""
    connection.execute(
        "update agents set gone_at = null where file_id = ? and gone_at >= ?", (file_id, gone_at)
    )


def remove_file(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove what a configuration stated, as if it had never existed."""
    connection.execute(
        "update agents set name = agent_key, type = null, description = null, path = null,"
        " is_general = null, extra = null, gone_at = null, file_id = null where file_id = ?",
        (file_id,),
    )


def refresh_agents(connection: sqlite3.Connection) -> None:
    """Link changed conversations to their agents, and agents to their workspaces.

    The workspace of a conversation follows from its path; its project may be a worktree.
    """
    connection.execute(
        "insert into agents (name, agent_key, project_key, source_id)"
        " select distinct e.agent_key, e.agent_key, f.project_key, f.source_id"
        " from touched_files t cross join session_entries e on e.file_id = t.id"
        " join files f on f.id = e.file_id"
        " where e.agent_key is not null and f.project_key is not null on conflict do nothing"
    )
    if connection.execute("select 1 from agents limit 1").fetchone() is None:
        return
    connection.execute(
        "delete from agents where file_id is null and not exists ("
        " select 1 from session_entries e join files f on f.id = e.file_id"
        " where e.agent_key = agents.agent_key and f.project_key = agents.project_key"
        " and f.source_id = agents.source_id)"
    )
    project = (
        "select p.id from projects p"
        " where p.source_id = agents.source_id and p.key = agents.project_key"
    )
    connection.execute(
        f"update agents set project_id = ({project}) where project_id is not ({project})"
    )
    agent = (
        "select a.id from session_entries e join files f on f.id = e.file_id"
        " join agents a on a.source_id = f.source_id and a.project_key = f.project_key"
        "  and a.agent_key = e.agent_key"
        " where e.session_id = sessions.id"
        " order by e.kind, f.gone_at is not null, f.path, f.generation limit 1"
    )
    connection.execute(
        f"update sessions set agent_id = ({agent})"
        " where id in (select id from touched_sessions)"
        f" and agent_id is not ({agent})"
    )


# ------------------------------------------------------------------------------------------------
# Decides which of two lists counts if a program keeps a copy of the previous one.
#
# CC-Insights copies its list of projects and chats and then rewrites it in place. In between, the
# list is broken and the copy is whole. So the copy counts while the list is broken or missing,
# and the list counts otherwise: the copy can still contain a deleted chat. If both are broken,
# what was last read of the list is kept. Entries of the list that does not count are treated like
# entries that are gone.


_IS_WHOLE = (
    "{file}.gone_at is null"
    " and exists (select 1 from line_types t where t.file_id = {file}.id)"
    " and not exists (select 1 from issues i where i.file_id = {file}.id and i.quarantined = 1)"
)


def refresh_lists(connection: sqlite3.Connection, touched: Touched) -> None:
    """Find the lists that do not count; if that changed, mark all that a pair names as changed."""
    connection.execute("create temp table if not exists stale_lists (file_id integer primary key)")
    connection.execute("delete from stale_lists")
    copies = connection.execute(
        "select c.id, l.id, "
        f"{_IS_WHOLE.format(file='c')} and not ({_IS_WHOLE.format(file='l')}),"
        " exists (select 1 from touched_files t where t.id in (c.id, l.id))"
        " from files c join files l on l.source_id = c.source_id and l.kind = 'chat_list'"
        " where c.kind = 'chat_list_backup'"
    ).fetchall()
    for copy, original, is_needed, is_touched in copies:
        connection.execute("insert into stale_lists values (?)", (original if is_needed else copy,))
        if is_touched:
            _touch(connection, touched, (copy, original))


def _touch(connection: sqlite3.Connection, touched: Touched, pair: tuple[int, int]) -> None:
    connection.execute(
        "insert or ignore into touched_sessions select session_id from session_entries"
        " where file_id in (?, ?) and session_id is not null",
        pair,
    )
    rows = connection.execute(
        "select project_id from project_entries where file_id in (?1, ?2)"
        " union select project_id from session_entries where file_id in (?1, ?2)",
        pair,
    )
    touched.projects.update(id_ for (id_,) in rows if id_ is not None)


# ------------------------------------------------------------------------------------------------
# Worktrees: the repository that a project is a worktree of, and the name that follows from it.
#
# A worktree is a directory of its own, often named by a number. So it is named after its
# repository and its branch, `cli · feature-x`, and linked to the repository's own project, if
# there is one. If conversations in it were on different branches, it is named after its
# directory: no conversation is shown with the branch of another. The repository is identified by,
# the most reliable first:
#
# 1. the list of an application;
# 2. the last answer of git;
# 3. the path: `.claude/worktrees/` and `.worktrees/` are in the repository;
# 4. a session that states from which directory it created the worktree.


_BETWEEN = " · "
_DETACHED = "HEAD"


def repository_of(connection: sqlite3.Connection, project_id: int, path: str | None) -> str | None:
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


# When a project went: it has no files or sessions, and all lists have dropped it.
_GONE_AT = """
select iif(count(*) = count(e.gone_at), max(e.gone_at), null) from (
    select gone_at from project_entries where project_id = projects.id
    union all select gone_at from session_entries where project_id = projects.id
) e
where projects.directory is null
and not exists (select 1 from files f where f.project_id = projects.id)
and not exists (
    select 1 from sessions s where s.project_id = projects.id and s.gone_at is null
)
"""

# Agents keep projects each in its own home, and under names of its own. Those in one directory are
# one project to people: the first of them represents all.
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
    before = _facts(connection, ids)
    removed = connection.execute(  # the old name of a directory that was moved
        f"delete from projects where id in ({id_list(ids)}) and directory is null"
        " and not exists (select 1 from files f where f.project_id = projects.id)"
        " and not exists (select 1 from session_entries e where e.project_id = projects.id)"
        " and not exists (select 1 from project_entries e where e.project_id = projects.id)"
    )
    touched.is_project_removed = removed.rowcount > 0
    _describe_all(connection, ids | related)
    if ids or touched.is_project_removed:
        connection.execute(_SAME_AS)
    if before != _facts(connection, ids):  # an append changes none of them
        refresh_repositories(connection)


def _facts(connection: sqlite3.Connection, ids: Iterable[int]) -> list[tuple[object, ...]]:
    """Return what is known of projects from which their repositories follow."""
    return connection.execute(
        "select id, path, name, repository, parent_id, remote, first_commit, repository_key"
        f" from projects where id in ({id_list(ids)}) order by id"
    ).fetchall()


def refresh_named(connection: sqlite3.Connection, ids: set[int]) -> None:
    """Derive the rows of projects of which git, or a newer version, knows something else."""
    for statement in TEMPORARY.split(";"):
        connection.execute(statement)
    refresh_lists(connection, Touched())
    _describe_all(connection, ids)
    refresh_repositories(connection)


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
        "update projects set path = ?1, name = ?2, repository = ?6, remote = ?7, first_commit = ?8,"
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
            repository_of(connection, project_id, path), *evidence_of(connection, project_id, path),
        ),
    )  # fmt: skip


def _directory_name(connection: sqlite3.Connection, project_id: int) -> str | None:
    """Return the name of the project's directory as it is spelled; the key can be in lower case."""
    key, path = connection.execute(
        "select p.key, coalesce((select min(f.path) from files f where f.project_id = p.id),"
        " p.directory) from projects p where p.id = ?",
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
