"""What a batch changed, and temporary tables of ids that are passed between steps of `derive`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..paths import is_pulled

TEMPORARY = """
create temp table if not exists touched_files (id integer primary key);
create temp table if not exists touched_uuids (uuid text primary key) without rowid;
create temp table if not exists touched_sessions (id integer primary key);
create temp table if not exists touched_responses (response_key text primary key) without rowid;
create temp table if not exists canonical (id integer primary key, copy_of integer);
create temp table if not exists ranked (
    id integer primary key, session_id integer, subagent_id integer, rank integer
);
create temp table if not exists of_forks (
    response_key text primary key, counts_as text, partial integer
) without rowid;
create temp table if not exists best (
    id integer primary key, unique_key text, partial integer, session_id integer,
    subagent_id integer, rank integer
);
create temp table if not exists spent (
    session_id integer, input integer, output integer, cache_read integer, cache_write integer
);
create temp table if not exists grown (
    id integer primary key, prompts integer, input integer, output integer, cache_read integer,
    cache_write integer
);
"""

# Which file has the original of a line that several files have: one of this machine before a pulled
# one (else a push would tell the server that this machine has only copies, of lines that the other
# machine may count as copies, too), a main file before an agent's, a foreground session before a
# background fork, any other before one whose lines state that it is a fork, any other before one
# of a session that went on in another home (a backup, or data that its program moved), the file
# that diverged first, the path.
FILE_RANK = f"""
    (select {is_pulled("root")} from sources where id = f.source_id),
    case f.kind when 'transcript' then 0 when 'agent' then 1 else 2 end,
    coalesce((select session_kind = 'bg' from transcripts where file_id = f.id), 0),
    coalesce((select forked_from_key is not null from transcripts where file_id = f.id), 0),
    f.session_id is not null and not exists (
        select 1 from files e where e.session_id = f.session_id and e.kind = 'transcript'
        and e.own_since is not null
    ) and exists (
        select 1 from sessions s cross join sessions h on h.session_key = s.session_key
        cross join files e on e.session_id = h.id
        where s.id = f.session_id and h.source_id <> s.source_id
        and (select kind from sources where id = h.source_id)
            = (select kind from sources where id = s.source_id)
        and e.kind = 'transcript' and e.own_since is not null
    ),
    case when f.path not like '%#%' then coalesce(f.own_since, '') else coalesce((
        select e.own_since from files e where e.session_id = f.session_id and +e.path < f.path
        and +e.source_id = f.source_id
        and substr(e.path, instr(e.path, '#')) = substr(f.path, instr(f.path, '#'))
        order by +e.path limit 1), f.own_since, '') end,
    f.path,
    f.generation,
    (select root from sources where id = f.source_id)
"""
"""The order of files that have the same line; the first has the canonical occurrence.

An entry that several stores have (see `entry`) is ranked as in the first of them, and after that:
the other stores may have less of what was said.
"""

SESSION_RANK = "s.source_id = {source} desc, x.is_agent desc, x.root"
"""How sessions `s` of several roots `x` that have the same key are ordered; the first is meant.

`{source}` is the root of the row that names the key.
"""


@dataclass
class Touched:
    """What a batch changed, collected while it is written."""

    files: set[int] = field(default_factory=set)
    sessions: set[int] = field(default_factory=set)
    responses: set[str] = field(default_factory=set)
    forked: set[str] = field(default_factory=set)
    """What removed or rewritten files were forks of."""
    sidechains: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    """Files with a new path or kind, and so with another place in `FILE_RANK`."""
    projects: set[int] = field(default_factory=set)
    is_project_removed: bool = False
    shared: set[int] = field(default_factory=set)
    """Files that share lines with a file that is rewritten or removed."""
    stated: set[int] = field(default_factory=set)
    """Files with new statements about tasks, todos and plans."""
    answered: dict[int, set[str | None]] = field(default_factory=dict)
    """Calls with new results, by file: some may belong to earlier statements."""
    groups: set[tuple[int, str, str]] = field(default_factory=set)
    """Groups of removed statements or of removed files, see `statements`."""
    has_new_edges: bool = False
    """Dependencies of tasks that transcripts state have changed."""
    first_message_id: int = 0
    is_append: bool = False
    """A few rows were added, and none that was there before has changed: sums of sessions grow."""

    def leave_project(self, connection: sqlite3.Connection, file_id: int) -> None:
        """Record the project of a file that is about to move: nothing may be left of it.

        It need not be that of its session, which has other files, too.
        """
        (project,) = connection.execute(
            "select project_id from files where id = ?", (file_id,)
        ).fetchone()
        if project is not None:
            self.projects.add(project)

    def before_clearing(self, connection: sqlite3.Connection, file_id: int) -> None:
        """Record what depends on the rows of a file, before they are deleted."""
        self.is_append = False
        rows = connection.execute(  # a line of a fork may be the best one of its parent's response
            "select response_key from usage where file_id = ?1"
            " union select response_key from responses where file_id = ?1",
            (file_id,),
        )
        self.responses.update(key for (key,) in rows)
        rows = connection.execute(
            "select forked_from_key from transcripts"
            " where file_id = ? and forked_from_key is not null",
            (file_id,),
        )
        self.forked.update(key for (key,) in rows)
        self.shared.update(
            partner
            for (partner,) in connection.execute(
                "select distinct o.file_id from messages m"
                " join messages o on o.uuid = m.uuid and o.file_id <> m.file_id"
                " where m.file_id = ?",
                (file_id,),
            )
        )
        self.shared.update(  # queue entries have no uuid, and can be copies of those of other files
            repeating
            for (repeating,) in connection.execute(
                "select distinct m.file_id from messages o join messages m on m.copy_of = o.id"
                " where o.file_id = ?1 and m.file_id <> ?1 and m.uuid is null",
                (file_id,),
            )
        )
        self.files.update(  # their messages are copies of one that goes: another becomes original
            repeating
            for (repeating,) in connection.execute(
                "select i.file_id from inbox_items o join inbox_items i on i.copy_of = o.id"
                " where o.file_id = ?1 and i.file_id <> ?1",
                (file_id,),
            )
        )
        for column, ids in (("session_id", self.sessions), ("project_id", self.projects)):
            rows = connection.execute(
                f"select {column} from files where id = ?1 and {column} is not null"
                f" union select {column} from session_entries where file_id = ?1"
                f" union select {column} from prompts where file_id = ?1",
                (file_id,),
            )
            ids.update(id_ for (id_,) in rows if id_ is not None)
        self.projects.update(linked_worktrees(connection, str(file_id)))
        rows = connection.execute(  # a session in another file that a line of this one titles
            "select session_id from summaries where file_id = ?", (file_id,)
        )
        self.sessions.update(session for (session,) in rows if session is not None)
        rows = connection.execute(
            "select project_id from project_entries where file_id = ?", (file_id,)
        )
        self.projects.update(project for (project,) in rows if project is not None)


def linked_worktrees(connection: sqlite3.Connection, file_ids: str) -> set[int]:
    """Return the projects whose directory is a worktree, according to the files (ids as SQL)."""
    rows = connection.execute(
        "select p.id from links i cross join files f on f.id = i.file_id"
        " cross join projects p on p.source_id = f.source_id"
        " and lower(p.path) = lower(rtrim(replace(i.url, '\\', '/'), '/'))"
        f" where i.kind = 'worktree' and i.file_id in ({file_ids})"
    )
    return {project for (project,) in rows}


def fill(connection: sqlite3.Connection, table: str, values: Iterable[int | str]) -> None:
    """Replace the content of a temporary table with one column."""
    connection.execute(f"delete from {table}")
    connection.executemany(f"insert into {table} values (?)", ((value,) for value in values))
