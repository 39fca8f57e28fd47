"""The SQL in files: migrations in `schema/`, queries in `queries/`.

`data()` finds a shipped file, in a wheel and in a checkout alike. A query file starts with a
comment: its first line is the title, the next comment lines the description; `:name` marks a
parameter. Reading SQL lives in these files, so the same text answers the command line, Datasette
and a user with a SQLite shell.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from sqlite3 import complete_statement
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations

MIGRATION_SET = "assoc-ingest"

_quoted_or_parameter = re.compile(r"'(?:[^']|'')*'|--[^\n]*|(?<![:\w]):([a-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Query:
    """One question: its name (the file's stem), what it says of itself, and its SQL."""

    name: str
    title: str
    description: str
    sql: str
    parameters: tuple[str, ...]


def data(*parts: str) -> Traversable:
    """Return the shipped file or directory `parts`, in a wheel or in a checkout."""
    shipped = files("assoc_ingest") / "_data"
    root: Traversable = shipped if shipped.is_dir() else Path(__file__).parents[2]
    return root.joinpath(*parts)


@cache
def queries() -> dict[str, Query]:
    """Return every query by name, in the order of the names."""
    found = [entry for entry in data("queries").iterdir() if entry.name.endswith(".sql")]
    named = {entry.name.removesuffix(".sql"): entry for entry in found}
    return {name: parse_query(name, named[name].read_text("utf-8")) for name in sorted(named)}


def query(name: str) -> Query:
    """Return the query called `name`; raise UsageError that lists the names there are."""
    try:
        return queries()[name]
    except KeyError:
        listing = ", ".join(queries())
        raise UsageError(f"No query named {name!r}. Choose one of: {listing}.") from None


def ask(connection: sqlite3.Connection, name: str, /, **parameters: object) -> sqlite3.Cursor:
    """Return the rows of the query called `name`; a parameter that is not given is NULL."""
    asked = query(name)
    return connection.execute(asked.sql, dict.fromkeys(asked.parameters) | parameters)


def parse_query(name: str, text: str) -> Query:
    """Split the leading comment of a query file into title and description."""
    comments = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        comments.append(line.removeprefix("--").strip())
    title, *rest = comments or [name]
    found = (match.group(1) for match in _quoted_or_parameter.finditer(text))
    parameters = tuple(dict.fromkeys(parameter for parameter in found if parameter))
    return Query(name, title, " ".join(rest).strip(), text, parameters)


def migration_names() -> list[str]:
    """Return the names of all migrations, in order: the stems of the files in `schema/`."""
    names = (entry.name for entry in data("schema").iterdir())
    return sorted(name.removesuffix(".sql") for name in names if name.endswith(".sql"))


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what a database lacks of `schema/`; in the transaction that is open, if one is.

    Plugins of sqlite-utils that were installed for other programs are not loaded.
    """
    from sqlite_utils import Database

    migrations().apply(Database(connection, execute_plugins=False))


def migrations() -> Migrations:
    """Return the files of `schema/` as migrations."""
    from sqlite_utils import Migrations

    known = Migrations(MIGRATION_SET)
    for name in migration_names():
        _register(known, name, data("schema", f"{name}.sql").read_text("utf-8"))
    return known


def _register(known: Migrations, name: str, script: str) -> None:
    @known(name=name)
    def apply(database: Database) -> None:
        for statement in statements(script):
            database.conn.execute(statement)


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, each of which ends at the end of a line.

    They are executed one by one inside the open transaction: `executescript` of a sqlite3
    connection commits first, and that of sqlite-utils looks for an end behind every character,
    a quarter of a second for a new database.
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";") and complete_statement(statement):
            yield statement.strip()
            statement = ""
    if statement.strip():
        yield statement.strip()


def id_list(values: Iterable[int]) -> str:
    """Return ids as SQL text; they are our own integers, and there may be more than variables."""
    return ", ".join(map(str, values))
