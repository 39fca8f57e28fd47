"""Asks the server of a fleet what a local database is asked: the same queries, the same code.

`Central` has as much of `sqlite3.Connection` as code needs that only reads: it translates a query
(`dialect`) and gives rows like those of SQLite. Everything is one transaction that only reads and
sees one state of the server; settings end with it, so a pool of connections may lie between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import connect, server_schema
from .destination import destination_of
from .dialect import translated

if TYPE_CHECKING:
    from psycopg import Cursor

OF_ONE_MACHINE = {"active_sessions", "git_changes", "status_runs"}
"""Reports about what travels as bytes only: hook events, the state of repositories, syncs."""

_MOST = 10**15

_SETTINGS = (
    "set local search_path = assoc_read, pg_temp",
    "set local statement_timeout = '10min'",
    # It takes longer to compile such a query than to run it.
    "set local jit = off",
)


class Row(tuple[Any, ...]):
    """A row whose values have a place and a name."""

    __slots__ = ()
    names: tuple[str, ...] = ()

    def __getitem__(self, place: Any) -> Any:
        """Return the value at a place, or of a column."""
        return super().__getitem__(self.names.index(place) if isinstance(place, str) else place)

    def keys(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names


class Central:
    """A connection to the server that reads as one to a local database does."""

    def __init__(self, destination: str) -> None:
        """Raise FleetError if the server cannot be reached or is not set up."""
        self._connection = connect.connect(destination)
        from psycopg import IsolationLevel

        self._destination = connect.shown(destination)
        server_schema.check(self._connection)
        with connect.told():
            self._connection.autocommit = False
            self._connection.isolation_level = IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
            for setting in _SETTINGS:
                self._connection.execute(setting.encode())

    def execute(self, query: str, parameters: Mapping[str, object] | None = None) -> Cursor[Row]:
        """Run a query of ours with parameters by name. Raises FleetError."""
        if query == "pragma database_list":  # what tells one database from another
            query = f"select 0, 'main', '{self._destination.replace(chr(39), '')}'"
        with connect.told():
            cursor = self._connection.cursor(row_factory=_rows)
            given = {name: _number(name, value) for name, value in (parameters or {}).items()}
            return cursor.execute(_translated(query).encode(), given)

    def close(self) -> None:
        """End the transaction and the connection."""
        self._connection.close()


def central(database: Path) -> sqlite3.Connection:
    """Open the server of the fleet for code that reads, at its destination."""
    return cast(sqlite3.Connection, Central(destination_of(database)))


def _number(name: str, value: object) -> object:
    """Return a number as SQLite takes it: fractions cut, a limit below 0 is none, none is huge."""
    if name not in ("limit", "days") or value in (None, ""):
        return value
    try:
        whole = int(max(-_MOST, min(_MOST, float(str(value)))))
    except ValueError:
        return value
    return _MOST if whole < 0 and name == "limit" else whole


@cache
def _translated(query: str) -> str:
    return translated(query)


def _rows(cursor: Cursor[Any]) -> Callable[[Iterable[Any]], Row]:
    columns = tuple(column.name for column in cursor.description or ())
    kind = type("Row", (Row,), {"names": columns, "__slots__": ()})
    return lambda values: cast(Row, kind(map(_as_sqlite, values)))


def _as_sqlite(value: Any) -> Any:
    """Return a value as SQLite gives it: sums of integers are integers, truth is 0 or 1."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return int(value) if isinstance(exponent, int) and exponent >= 0 else float(value)
    return value
