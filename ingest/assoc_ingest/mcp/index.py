"""The database behind the tools: opened once, current for each call, limited if it has to be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .. import humanize, sql
from ..ask.project_names import find_projects
from ..errors import AssocIngestError, NotFoundError, UsageError
from ..failures import as_known
from ..paths import identity
from ..secrets.mask import redact
from ..store.database import open_reader
from ..store.sql_process import Answer as Rows
from ..store.sql_process import Limits, Setup, SqlProcess
from .fitting import Standing
from .limited import Limited, apart

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
            size, files = humanize.size(row["bytes"]), humanize.many(row["files"], "file")
            missing.append(f"{size} at the end of {files} not read yet.")
        if row["unparsed"]:
            missing.append(f"{humanize.many(row['unparsed'], 'record')} could not be parsed.")
        return Standing(fresh, tuple(missing))

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
