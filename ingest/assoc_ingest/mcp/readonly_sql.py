"""SELECT statements of an agent: nothing but reading, for a limited time, of limited size.

- The database is open for reading only, and an authorizer refuses everything but reading: no
  pragma, no other database, no temporary table, no transaction.
- A statement that takes longer than `SECONDS` is stopped, wherever it is.
- SQLite refuses values and statements beyond a length; what it sorts lies in a temporary file.
- Where everything is limited to a project, only the tables and views of `limited` are read.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import UsageError
from ..failures import Failure, kind_of
from .limited import HELPERS

SECONDS = 5.0
_STEPS = 20_000  # of SQLite's machine between two looks at the clock
_LONGEST_VALUE = 20_000_000
_LONGEST_STATEMENT = 20_000

_NEVER = frozenset({"load_extension", "fts3_tokenizer", "zeroblob", "randomblob"})
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})

_WARM_UP = "select 1 from json_each('[]'), json_tree('[]')"


@contextmanager
def reading_only(
    connection: sqlite3.Connection, names: frozenset[str] | None = None
) -> Iterator[None]:
    """Let a connection do nothing but read, for a limited time, as long as the block runs.

    `names` are the only tables and views that may be read, None for all. Raises UsageError for what
    was refused or stopped, and for what is no SQL.
    """
    connection.execute(_WARM_UP).fetchall()  # at its first use, a function declares its columns
    end = time.monotonic() + SECONDS
    refused: list[str] = []

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        why = _why_not(action, first, second) or _why_elsewhere(action, first, names)
        if why is not None:
            refused.append(why)
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    limits = [
        (kind, connection.setlimit(kind, most))
        for kind, most in (
            (sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT),
        )
    ]
    connection.set_authorizer(authorize)
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, refused, is_late=time.monotonic() > end) from None
    except MemoryError:
        raise UsageError("The statement needs too much memory. Ask for fewer rows.") from None
    finally:
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(None)
        for kind, before in limits:
            connection.setlimit(kind, before)


def _why_not(action: int, first: str | None, second: str | None) -> str | None:
    """Return why an action is refused, None if it only reads."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_READ):
        return None
    if action == sqlite3.SQLITE_FUNCTION:
        name = (second or "").lower()
        return f"the function {name} is not allowed" if name in _NEVER else None
    # A full-text index asks for the version of its data, and declares its columns when it is first
    # used, which SQLite takes for a change of its schema. Nothing can be changed: see above.
    if action == sqlite3.SQLITE_PRAGMA and first == "data_version":
        return None
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        return None
    return "only SELECT is allowed"


def _why_elsewhere(action: int, first: str | None, names: frozenset[str] | None) -> str | None:
    """Return why a table is not read on a limited connection, None if it is."""
    if names is None or action != sqlite3.SQLITE_READ:
        return None
    if first in names or first in HELPERS or first in _TABLE_FUNCTIONS:
        return None
    return f"{first} cannot be read here, where everything is limited to a project"


def _explained(error: sqlite3.Error, refused: list[str], *, is_late: bool) -> UsageError:
    if refused:
        return UsageError(f"The statement was refused: {refused[0]}.")
    if kind_of(error) is Failure.INTERRUPTED and is_late:
        return UsageError(
            f"The statement was stopped after {SECONDS:.0f} seconds. Ask for less: with a "
            "condition on an indexed column, or a limit."
        )
    if kind_of(error) in (Failure.OTHER, Failure.NOT_TEXT):
        return UsageError(f"SQL: {str(error).rstrip('.')}. What there is: the argument schema.")
    raise error
