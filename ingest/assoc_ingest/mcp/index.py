"""The database behind the tools: current for each call, and limited to some projects if needed."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .. import sql, terminal
from ..ask.projects import find_projects
from ..ask.times import since
from ..errors import AssocIngestError, NotFoundError, UsageError, as_known
from ..paths import here, identity
from ..questions.fit import Standing
from ..secrets.mask import redact
from ..store.database import open_reader
from ..store.sql_child import Value
from ..store.sql_process import Answer as Rows
from ..store.sql_process import Limits, Setup, SqlProcess

# ------------------------------------------------------------------------------------------------
# A connection on which only some projects exist.
#
# Each table is shadowed by a temporary view of the same name, which has the rows of these
# projects, or none: SQLite finds temporary names first. So every query on the connection is
# limited: a reference that means something elsewhere means nothing here,
# and no candidate, count or error can name it. The views of the schema are made again as
# temporary ones, because their own names lead to the tables.
#
# What a full-text index finds is read from the tables by its id, so it is limited as well.
#
# SQL of an agent could name a table with its database, `main.messages`, or read an index. For
# that there is a setup of its own (`apart`): its main database is empty, and the one that is read
# has a name that nobody can guess. That SQLite tells an authorizer through which view a table is
# read is no help: it tells the name of any subquery.


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
    "notes": "(session_key in (select session_key from temp.sessions) or exists (select 1 from"
    " temp.projects p where p.path <> ''"
    " and substr(notes.path, 1, length(p.path) + 1) = replace(p.path, '\\', '/') || '/'))",
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


# ------------------------------------------------------------------------------------------------
# The database behind the tools: opened once, current for each call, limited if it has to be.


_NAMED_BY = ("CLAUDE_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID")
"""Variables of the environment in which a client may name its conversation."""

_JUST_NOW = "10m"

Look = Callable[[], list[str]]
"""Reads what is new; returns a sentence for each thing that was not read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the server was started."""

    database: Path
    project: str | None = None
    """The only project that there is for every tool."""
    look: Look | None = None
    """Called before each answer; None if nothing new is to be read."""
    is_masked: bool = True
    """Are credentials masked?"""


class Index:
    """One database, as the tools ask it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._connection: sqlite3.Connection | None = None
        self._limited: Limited | None = None
        self._for_sql: Setup | None = None
        self._sql_process = SqlProcess()
        self._file: tuple[int, int] | None = None
        self._version = -1
        self._not_read: list[str] = []

    @property
    def is_limited(self) -> bool:
        """Is there only one project for the tools?"""
        return self.settings.project is not None

    @property
    def connection(self) -> sqlite3.Connection:
        """Return the connection that `prepare` has opened."""
        if self._connection is None:
            raise RuntimeError("prepare was not called")
        return self._connection

    def prepare(self) -> None:
        """Read what is new, and open the database where it is not open, or was replaced.

        Raises DatabaseError, or NotFoundError if the one project is not there.
        """
        path = self.settings.database
        self._not_read = []
        if self.settings.look is None:
            self._not_read = ["Nothing newer than synced_at was looked for (--no-sync)."]
        elif path.exists():
            try:
                self._not_read = self.settings.look()
            except (sqlite3.Error, OSError, AssocIngestError) as error:  # what is there can be read
                self._not_read = [f"Nothing new could be read: {as_known(error) or error}"]
        if self._connection is not None and self._file != identity(path):
            self.close()
        if self._connection is None:
            self._open(path)
        self._limit()

    def mask(self, text: str) -> str:
        """Return a text without the credentials in it."""
        return redact(text)[0] if self.settings.is_masked else text

    def standing(self) -> Standing:
        """Say how fresh the answers are, and what they do not cover."""
        fresh = dict(sql.ask(self.connection, "pages/fresh").fetchone())
        fresh["is_complete"] = bool(fresh["is_complete"])
        fresh["is_current"] = not self._not_read
        row = sql.ask(self.connection, "pages/coverage").fetchone()
        missing = [*self._not_read]
        if self.is_limited and missing and self.settings.look is not None:
            missing = ["Not everything new could be read."]  # its paths lead elsewhere
        if row["files"]:
            size, files = terminal.size(row["bytes"]), terminal.many(row["files"], "file")
            missing.append(f"{size} at the end of {files} not read yet.")
        if row["unparsed"]:
            missing.append(f"{terminal.many(row['unparsed'], 'record')} could not be parsed.")
        return Standing(fresh, tuple(missing))

    def own(self) -> frozenset[str]:
        """Return the keys of the conversations that may be the client's own.

        That is the one that it names, and any in its directory in which something just happened.
        """
        rows = sql.ask(
            self.connection, "pages/asking",
            session_key=next(filter(None, map(os.environ.get, _NAMED_BY)), None),
            cwd=str(directory) if (directory := here()) else None,
            since=since(_JUST_NOW),
        )  # fmt: skip
        return frozenset(row["session_key"] for row in rows)

    def run_sql(self, statement: str, limits: Limits, skip: int) -> Rows:
        """Run SQL that an agent wrote, where nothing else runs. Raises as `SqlProcess.run` does."""
        if self._for_sql is None:
            path = self.settings.database
            self._for_sql = (
                Setup(f"{path.resolve().as_uri()}?mode=ro")
                if self._limited is None
                else apart(self.connection, path, self._projects())
            )
        return self._sql_process.run(self._for_sql, statement, limits, skip=skip)

    def interrupt(self) -> None:
        """Stop what is running. This may be called from another thread."""
        self._sql_process.kill()
        with suppress(sqlite3.ProgrammingError):  # it was closed meanwhile
            if (connection := self._connection) is not None:
                connection.interrupt()

    def close(self) -> None:
        """Close the database; the next call opens it again."""
        self._sql_process.close()
        connection, self._connection = self._connection, None
        self._limited, self._for_sql = None, None
        if connection is not None:
            connection.close()

    def _open(self, path: Path) -> None:
        self._file = identity(path)
        self._version = -1
        self._connection = open_reader(path)
        if self.is_limited:
            try:
                self._projects()
                self._limited = Limited(self._connection)
            except BaseException:
                self.close()
                raise

    def _limit(self) -> None:
        """Find the project, and what belongs to it, if anything was added since the last call."""
        if self._limited is not None and (version := self._limited.version()) != self._version:
            self._limited.to(self._projects())
            self._version, self._for_sql = version, None

    def _projects(self) -> list[int]:
        """Return the ids of the one project, and of its worktrees, as they are now."""
        project = self.settings.project or ""
        connection = open_reader(self.settings.database)  # one that is limited does not know them
        try:
            return find_projects(connection, project)
        except (NotFoundError, UsageError):  # their words name other projects
            raise NotFoundError(
                f"The project {project!r}, to which this server is limited, is not indexed, or "
                "several have that name. Start it with the id or path of one: "
                "assoc-ingest list projects"
            ) from None
        finally:
            connection.close()
