"""What may leave this machine: the conversations of projects that were allowed, or everything.

A file belongs to the project of its session; one without a session, to the project in whose
directory it lies. What several projects share (histories, lists, teams, hooks) belongs to none, and
leaves only if everything may. A project is allowed by the exact path of its directory.

Agents keep conversations in directories named after the path, with a dash for each other letter, so
/srv/my_shop and /srv/my-shop are one project. Of such a project only the sessions leave that worked
in the allowed directory and not in the other one, and nothing that names no session.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from ..ask.project_names import as_path
from ..errors import NotFoundError, UsageError
from ..project_paths import comparable
from ..pulled_roots import is_pulled
from ..sql import id_list

OWN = f"select id from sources where not {is_pulled('root')}"
"""The sources of this machine: what was pulled from another is never pushed."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The projects that may leave this machine."""

    projects: str | None = None
    """Their ids as SQL; None: everything may leave."""
    unshared: str = ""
    """Those of them whose names stand for one directory only."""
    left_out: str = ""
    """Sessions of the others that stay here."""

    def of_file(self, file: str) -> str:
        """Return the condition that a row of `files` is in scope; `file` is its alias."""
        if self.projects is None:
            return f"{file}.source_id in ({OWN})"
        return (
            f"iif({file}.session_id is null, {file}.project_id in ({self.unshared}),"
            f" {self._of_session(f'{file}.session_id')})"
        )

    def _of_session(self, id_: str) -> str:
        return (
            f"exists (select 1 from sessions x where x.id = {id_}"
            f" and x.project_id in ({self.projects}) and x.id not in ({self.left_out}))"
        )

    def has(self, table: str, id_: str) -> str:
        """Return the condition that the row of a placed table with this id is in scope."""
        return (
            f"exists (select 1 from {table} o join files f on f.id = o.file_id"
            f" where o.id = {id_} and {self.of_file('f')})"
        )

    def keeps(self, table: str) -> str:
        """Return the condition that the row `r` of a keyed table is in scope."""
        if self.projects is None:
            of_file = f"r.file_id in (select id from files where source_id in ({OWN}))"
            whole = {"sources": f"r.id in ({OWN})", "prices": "1", "team_members": of_file}
            return whole.get(table, f"r.source_id in ({OWN})")
        mine = f"in ({self.projects})"
        of_file = f"exists (select 1 from files x where x.id = r.file_id and {self.of_file('x')})"
        of_source = f"exists (select 1 from projects x where x.source_id = r.id and x.id {mine})"
        conditions = {
            "sources": of_source,
            "projects": f"r.id {mine}",
            "agents": f"r.project_id in ({self.unshared})",
            "sessions": self._of_session("r.id"),
            "subagents": self._of_session("r.session_id"),
            "tasks": f"({of_file} or r.file_id is null and {self._of_session('r.session_id')})",
            "task_dependencies": of_file,
            "prices": "1",
        }
        return conditions.get(table, "0")


EVERYTHING = Scope()


def of_paths(connection: sqlite3.Connection, paths: Collection[str]) -> Scope:
    """Return the scope of the projects with these paths, as far as the database has them."""
    rows = connection.execute(
        "select id, path from projects where path in (select value from json_each(?))"
        f" and source_id in ({OWN})",
        (json.dumps(sorted(paths)),),
    )
    projects = dict(rows.fetchall())
    shared, left_out = _shared(connection, projects)
    return Scope(id_list(projects), id_list(projects.keys() - shared), id_list(left_out))


def _shared(connection: sqlite3.Connection, projects: dict[int, str]) -> tuple[set[int], list[int]]:
    """Return the projects that are those of two directories, and their sessions to leave out."""
    ids = id_list(projects)
    rows = connection.execute(
        "select coalesce(s.project_id, f.project_id), f.session_id, d.path"
        " from working_directories d join files f on f.id = d.file_id"
        " left join sessions s on s.id = f.session_id"
        f" where coalesce(s.project_id, f.project_id) in ({ids})"
        f" union select project_id, id, cwd from sessions where project_id in ({ids})"
    )
    worked_in = defaultdict[tuple[int, int | None], set[str]](set)
    for project, session, path in rows:
        worked_in[project, session].add(comparable(path or ""))
    shared, certain = set[int](), set[int | None]()
    for (project, session), places in worked_in.items():
        path = comparable(projects[project])
        if any(_is_namesake(place, path) for place in places):
            shared.add(project)
        elif any(place == path or place.startswith(f"{path}/") for place in places):
            certain.add(session)
    sessions = connection.execute(
        f"select id from sessions where project_id in ({id_list(shared)})"
    )
    return shared, [id_ for (id_,) in sessions if id_ not in certain]


def _is_namesake(place: str, path: str) -> bool:
    """Is a directory in another one whose name an agent writes like that of `path`?"""
    head, rest = place[: len(path)], place[len(path) :]
    is_within = rest[:1] in ("", "/")
    return is_within and head != path and _flat(head) == _flat(path)


def _flat(path: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in path)


def known_paths(connection: sqlite3.Connection, directory: str) -> list[str]:
    """Return the paths of the projects in a directory, as the database has them.

    Raises UsageError if that is no path, and NotFoundError if no project has it.
    """
    path = as_path(directory)
    if path is None:
        raise UsageError(
            f"{directory} is no absolute path. Give the directory of the project: "
            "/path/to/project, or . for this one"
        )
    rows = connection.execute("select distinct path from projects where path is not null")
    found = [known for (known,) in rows if comparable(known) == comparable(path)]
    if not found:
        raise NotFoundError(
            f"No conversation of a project in {path} has been read. To see the projects: "
            "assoc-ingest list projects"
        )
    return found
