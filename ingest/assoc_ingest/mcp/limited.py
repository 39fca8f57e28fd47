"""A connection on which only some projects exist.

Each table is shadowed by a temporary view of the same name, which has the rows of these projects,
or none: SQLite finds temporary names first. So whatever is asked on the connection, by whichever
query, is limited: a reference that means something elsewhere means nothing here, and no candidate,
count or error can name it. The views of the schema are made again as temporary ones, because their
own names lead to the tables.

What a full-text index finds is read from the tables by its id, so it is limited as well.

Who may write SQL could name a table with its database, `main.messages`, or read an index. For that
there is a setup of its own (`apart`): its main database is empty, and the one that is read has a
name that nobody can guess. That SQLite tells an authorizer through which view a table is read is no
help: it tells the name of any subquery.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..store.sql_child import Value
from ..store.sql_process import Setup

PROJECTS, SESSIONS, TEAMS, FILES, SHARED = HELPERS = (
    *("limited_projects", "limited_sessions", "limited_teams", "limited_files", "limited_shared"),
)
"""Temporary tables with the ids of what is seen."""

_create_view = re.compile(r"create\s+view", re.IGNORECASE)

_OF_SESSION = f"session_id in (select id from temp.{SESSIONS})"
_OF_PROJECT = f"project_id in (select id from temp.{PROJECTS})"
_OF_TEAM = f"team_id in (select id from temp.{TEAMS})"
_OF_FILE = f"file_id in (select id from temp.{FILES})"
_OF_EITHER = f"({_OF_SESSION} or (session_id is null and {_OF_PROJECT}))"

_RULES = {
    # Which rows of a table belong to the projects, where its columns do not say it (`_rule`).
    "projects": f"id in (select id from temp.{PROJECTS})",
    "sessions": f"id in (select id from temp.{SESSIONS})",
    "files": f"id in (select id from temp.{FILES} union all select id from temp.{SHARED})",
    "archive": f"({_OF_FILE} or file_id in (select id from temp.{SHARED}))",
    "sources": "id in (select source_id from temp.sessions union select source_id from temp.files)",
    "teams": f"id in (select id from temp.{TEAMS})",
    "team_members": _OF_TEAM,
    "tasks": f"({_OF_SESSION} or {_OF_TEAM})",
    "inbox_items": f"({_OF_SESSION} or {_OF_TEAM})",
    "task_changes": "task_id in (select id from temp.tasks)",
    "task_dependencies": "task_id in (select id from temp.tasks)",
    "plan_lines": "plan_id in (select id from temp.plans)",
    "documents": _OF_EITHER,
    "prompts": _OF_EITHER,
    "prices": "1",
    "sync_runs": "1",
}
_MADE = {"sync_runs": {"error": "iif(error is null, null, 'failed')"}}
"""Columns that may name what is elsewhere, and what stands in their place."""

_FILL = {
    PROJECTS: "select value from json_each(?)",
    SESSIONS: f"select id from {{schema}}.sessions where {_OF_PROJECT}",
    TEAMS: "select id from {schema}.teams"
    f" where lead_session_id in (select id from temp.{SESSIONS})",
    FILES: f"select id from {{schema}}.files where {_OF_EITHER}",
    # Files of nobody in particular, such as a history of all prompts: only what rows say of them.
    SHARED: " union ".join(
        f"select file_id from temp.{table} where file_id is not null"
        f" and file_id not in (select id from temp.{FILES})"
        for table in ("prompts", "documents", "tasks", "todos", "plans", "inbox_items")
    ),
}


class Limited:
    """Limits a connection: nothing is seen on it until `to` says which projects there are."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        for statement in _views(connection, "main", _RULES)[0]:
            connection.execute(statement)

    def to(self, projects: Iterable[int]) -> None:
        """Let the connection see these projects: call it again when rows were added."""
        with self.connection:
            for statement, given in _filled("main", projects):
                self.connection.execute(statement, given)

    def version(self) -> int:
        """Return a number that changes when another process has written."""
        return int(self.connection.execute("pragma main.data_version").fetchone()[0])


def apart(connection: sqlite3.Connection, path: Path, projects: Iterable[int]) -> Setup:
    """Return what limits a database whose name nobody can guess, for SQL that an agent wrote.

    `connection` has the database open. Files that hold something of other projects, too, have no
    bytes.
    """
    schema = f"d{secrets.token_hex(16)}"
    statements, names = _views(connection, schema, {**_RULES, "archive": _OF_FILE})
    script: list[tuple[str, tuple[Value, ...]]] = [
        (f"attach ? as {schema}", (f"{path.resolve().as_uri()}?mode=ro",)),
        *((statement, ()) for statement in statements),
        *_filled(schema, projects),
    ]
    return Setup("file::memory:", tuple(script), names | frozenset(HELPERS))


def _views(
    connection: sqlite3.Connection, schema: str, rules: dict[str, str]
) -> tuple[list[str], frozenset[str]]:
    """Return what makes the temporary tables and views, and which tables and views there are.

    The database is called `main` on `connection`, and `schema` where the statements are executed.
    """
    statements = [f"create temp table {name} (id integer primary key)" for name in HELPERS]
    tables = connection.execute(
        "select name from pragma_table_list where schema = 'main' and type = 'table'"
        " and name not glob 'sqlite_*'"
    )
    names = [name for (name,) in tables.fetchall()]
    for name in names:
        pragma = f'pragma main.table_xinfo("{name}")'
        columns = [row[1] for row in connection.execute(pragma)]
        made = _MADE.get(name, {})
        chosen = ", ".join(
            f'{made[column]} as "{column}"' if column in made else f'"{column}"'
            for column in columns
        )
        statements.append(
            f'create temp view "{name}" as select {chosen} from {schema}."{name}"'
            f" where {_rule(name, columns, rules)}"
        )
    views = connection.execute("select name, sql from main.sqlite_master where type = 'view'")
    for name, statement in views.fetchall():
        statements.append(_create_view.sub("create temp view", statement, count=1))
        names.append(name)
    return statements, frozenset(names)


def _filled(schema: str, projects: Iterable[int]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what says which projects are seen."""
    ids = ",".join(map(str, projects))
    for name, found in _FILL.items():
        yield f"delete from temp.{name}", ()
        given = (f"[{ids}]",) if name == PROJECTS else ()
        yield f"insert into temp.{name} {found.format(schema=schema)}", given


def _rule(table: str, columns: list[str], rules: dict[str, str]) -> str:
    """Return which rows of a table are seen: none, if nothing says to whom they belong."""
    if table in rules:
        return rules[table]
    for column, rule in (
        ("session_id", _OF_SESSION),
        ("project_id", _OF_PROJECT),
        ("file_id", _OF_FILE),
    ):
        if column in columns:
            return rule
    return "0"
