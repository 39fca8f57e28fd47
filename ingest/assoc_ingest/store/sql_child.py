"""The process that runs SQL of others (`sql_process`): nothing but Python and SQLite, so that it
starts in a moment.

It is started as a file, and takes messages from standard input: first a setup, then statements. A
message is JSON, and the bytes that belong into it behind it. The clock of the system ends the
process in the middle of whatever SQLite does, since one call of a function is one step of SQLite's
machine, and looks at no clock of ours.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import sys
import time
from contextlib import suppress
from itertools import islice
from typing import IO, Any

Message = dict[str, Any]
Value = str | int | float | bytes | None

MEMORY = 512 * 1024 * 1024
"""Bytes of address space."""

_HEAP = 400 * 1024 * 1024  # of it for SQLite, also where the system limits nothing
_SPACE = 2 * 1024 * 1024 * 1024  # bytes of a temporary file, in which SQLite sorts
_LONGEST_VALUE = 20_000_000
_LONGEST_STATEMENT = 20_000
_MOST_COLUMNS = 500
_MOST_VALUES = 50_000  # a page with more of them would hold up the others
_STEPS = 20_000  # of SQLite's machine between two looks at the clock
_GRACE = 0.2  # seconds between the time when SQLite ends by itself and when the system ends it

_NEVER = frozenset({"load_extension", "fts3_tokenizer", "zeroblob", "randomblob"})
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
_fts_words = re.compile(r'\s+|(".*?")')
_WARM_UP = "select 1 from json_each('[]'), json_tree('[]')"


class EndOfInputError(Exception):
    """The other process is gone."""


class RefusedError(Exception):
    """Why a statement is not run to its end, as a kind and a text."""


# -- messages ------------------------------------------------------------------------------------


def send(stream: IO[bytes], message: Message, blobs: list[bytes] | None = None) -> None:
    """Write a message. Where bytes belong into it, it has lists with the number of a blob."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    sizes = [len(blob) for blob in blobs or ()]
    stream.write(f"{len(data)} {' '.join(map(str, sizes))}\n".encode("ascii"))
    stream.write(data)
    for blob in blobs or ():
        stream.write(blob)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Message, list[bytes]]:
    """Read a message and its blobs. Raises EndOfInputError."""
    head = stream.readline()
    if not head.endswith(b"\n"):
        raise EndOfInputError
    size, *sizes = map(int, head.split())
    message: Message = json.loads(_exactly(stream, size))
    return message, [_exactly(stream, each) for each in sizes]


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EndOfInputError
    return data


def without_bytes(value: Value, blobs: list[bytes]) -> object:
    """Return a value for a message; bytes are put behind it."""
    if not isinstance(value, bytes):
        return value
    blobs.append(value)
    return [len(blobs) - 1]


def with_bytes(value: Any, blobs: list[bytes]) -> Value:
    found: Value = blobs[value[0]] if isinstance(value, list) else value
    return found


# -- the process ---------------------------------------------------------------------------------


def main() -> None:
    """Run the statements from standard input, until it ends."""
    if hasattr(signal, "SIGALRM"):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
    _limit_resources()
    source, target = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EndOfInputError, BrokenPipeError):
        setup, blobs = receive(source)
        try:
            connection = _opened(setup, blobs)
        except sqlite3.Error as error:
            send(target, _told(error))
            return
        send(target, {})
        while True:
            asked, blobs = receive(source)
            try:
                answer, out = _answer(connection, setup, asked, blobs)
            except RefusedError as error:
                answer, out = {"refused": list(error.args)}, []
            except MemoryError:
                answer, out = {"refused": ["memory", ""]}, []
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
                answer, out = _told(error), []
            send(target, answer, out)


def _limit_resources() -> None:
    try:
        import resource
    except ImportError:  # on Windows, only SQLite's own memory is limited
        return
    with suppress(OSError):
        os.nice(5)  # pages that somebody reads come first
    for what, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, _SPACE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def _opened(setup: Message, blobs: list[bytes]) -> sqlite3.Connection:
    connection = sqlite3.connect(setup["database"], uri=True, isolation_level=None)
    if setup["extensions"]:
        connection.enable_load_extension(True)
        for path in setup["extensions"]:
            connection.load_extension(path)
        connection.enable_load_extension(False)
    if setup["is_lenient"]:
        connection.text_factory = lambda data: str(data, "utf-8", "replace")
        connection.create_function("escape_fts", 1, _escape_fts)
    for sql, parameters in setup["script"]:
        connection.execute(sql, [with_bytes(value, blobs) for value in parameters]).fetchall()
    connection.execute(_WARM_UP).fetchall()  # at its first use, a function declares its columns
    connection.execute(f"pragma hard_heap_limit = {_HEAP}").fetchall()
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT)
    return connection


def _escape_fts(query: str) -> str:
    """What Datasette's own function does with words that are searched for."""
    parts = _fts_words.split(query + '"' * (query.count('"') % 2))
    words = [part for part in parts if part and part != '""']
    return " ".join(word if word.startswith('"') else f'"{word}"' for word in words)


def _answer(
    connection: sqlite3.Connection, setup: Message, asked: Message, blobs: list[bytes]
) -> tuple[Message, list[bytes]]:
    given = asked["parameters"]
    parameters: Any
    if isinstance(given, dict):
        parameters = {name: with_bytes(value, blobs) for name, value in given.items()}
    else:
        parameters = [with_bytes(value, blobs) for value in given]
    with _Watched(connection, setup, asked["seconds"]):
        cursor = connection.execute(asked["sql"], parameters)
        try:
            if cursor.description is None:
                raise RefusedError("action", "only SELECT is allowed")
            columns = [column[0] for column in cursor.description]
            if len(columns) > _MOST_COLUMNS:
                raise RefusedError("size", f"more than {_MOST_COLUMNS} columns")
            out: list[bytes] = []
            rows: list[list[object]] = []
            size = 0
            is_cut = False
            for row in islice(cursor, asked["skip"], asked["skip"] + asked["rows"]):
                size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
                too_much = _too_much(size, (len(rows) + 1) * len(columns), asked["bytes"])
                if too_much and not asked["is_cut"]:
                    raise RefusedError("size", too_much)
                if too_much and rows:
                    is_cut = True
                    break
                rows.append([without_bytes(value, out) for value in row])
            has_more = is_cut or (len(rows) == asked["rows"] and cursor.fetchone() is not None)
        finally:
            cursor.close()
    return {"columns": columns, "rows": rows, "has_more": has_more}, out


def _too_much(size: int, values: int, most: int) -> str:
    """Return what there is too much of, nothing if it may be."""
    if values > _MOST_VALUES:
        return f"more than {_MOST_VALUES:,} values"
    return f"more than {most:,} bytes" if size > most else ""


class _Watched:
    """Lets a connection only read, and not longer than a time."""

    def __init__(self, connection: sqlite3.Connection, setup: Message, seconds: float) -> None:
        self._connection = connection
        self._names = None if setup["names"] is None else frozenset(setup["names"])
        self._is_select_only = setup["is_select_only"]
        self._seconds = seconds
        self._refused: list[str] = []

    def __enter__(self) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, self._seconds + _GRACE)
        self._end = time.monotonic() + self._seconds
        self._connection.set_authorizer(self._authorize)
        self._connection.set_progress_handler(lambda: time.monotonic() > self._end, _STEPS)

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self._connection.set_progress_handler(None, 0)
        self._connection.set_authorizer(None)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        if isinstance(error, sqlite3.Error) and self._refused:
            raise RefusedError("action", self._refused[0]) from None
        if isinstance(error, sqlite3.Error) and _code(error) == sqlite3.SQLITE_INTERRUPT:
            raise RefusedError("time", "") from None

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        why = self._why_not(action, first, second)
        if why is None:
            return sqlite3.SQLITE_OK
        self._refused.append(why)
        return sqlite3.SQLITE_DENY

    def _why_not(self, action: int, first: str | None, second: str | None) -> str | None:
        """Return why an action is refused, None if it only reads."""
        if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):
            return "only SELECT is allowed"
        if not self._is_select_only or action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return None
        if action == sqlite3.SQLITE_READ:
            if self._names is None or first in self._names or first in _TABLE_FUNCTIONS:
                return None
            return f"{first} cannot be read here, where everything is limited to a project"
        if action == sqlite3.SQLITE_FUNCTION:
            name = (second or "").lower()
            return f"the function {name} is not allowed" if name in _NEVER else None
        # A full-text index asks for the version of its data, and declares its columns when it is
        # first used, which SQLite takes for a change of its schema. Nothing can be changed: the
        # database is open for reading.
        if action == sqlite3.SQLITE_PRAGMA and first == "data_version":
            return None
        if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
            return None
        return "only SELECT is allowed"


def _code(error: BaseException) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _told(error: Exception) -> Message:
    code = getattr(error, "sqlite_errorcode", None)
    if _code(error) == sqlite3.SQLITE_NOMEM:
        return {"refused": ["memory", ""]}
    return {"error": type(error).__name__, "text": str(error), "code": code}


if __name__ == "__main__":
    main()
