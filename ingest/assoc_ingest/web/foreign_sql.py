"""SQL that a visitor of `serve` writes, run where it holds nothing up.

A visitor writes SQL in the query of an address or in a form: as a statement, as a condition, as a
facet, as a value that a condition or a canned query compares. So whatever Datasette asks for a
request that has either goes to a process of its own (`store/sql_process`), of which there are
`_PROCESSES`. Pages without them, and our own pages, run our statements, and wait for none of these.
"""

from __future__ import annotations

import asyncio
import atexit
import re
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock, current_thread, main_thread
from types import FrameType
from typing import Any

from ..errors import UsageError
from ..store.sql_child import Value
from ..store.sql_process import Answer, Limits, Setup, SqlProcess, StoppedError

_PROCESSES = 2
_WAITING = 20
"""Statements that may wait for a process."""
_MOST_ROWS = 100_000
_MOST_BYTES = 32 * 1024 * 1024

_FULL = "Too many statements are running. Try again in a few seconds."
_ENDING = "The server is ending."

_is_of_visitor: ContextVar[bool] = ContextVar("is_of_visitor", default=False)
_parameter = re.compile(r"[:@$](\w+)")

Execute = Callable[..., Awaitable[Any]]


@contextmanager
def for_request(scope: Mapping[str, Any]) -> Iterator[None]:
    """Answer a request: what is executed meanwhile may be of the visitor."""
    is_plain = scope["method"] in ("GET", "HEAD") and not scope.get("query_string")
    token = _is_of_visitor.set(not is_plain)
    try:
        yield
    finally:
        _is_of_visitor.reset(token)


def kept_apart(datasette: Any) -> None:
    """Let all databases of a Datasette run SQL of visitors in processes of their own."""
    processes = _Processes()
    for name, database in datasette.databases.items():
        if name != "_internal" and not database.memory_name:
            database.execute = _execute(datasette, database, database.execute, processes)


def _execute(datasette: Any, database: Any, here: Execute, processes: _Processes) -> Execute:
    """Return `Database.execute` of Datasette, which goes to a process for a visitor."""

    async def execute(
        sql: str,
        params: Any = None,
        truncate: bool = False,
        custom_time_limit: int | None = None,
        page_size: int | None = None,
        **others: Any,
    ) -> Any:
        if not _is_of_visitor.get():
            return await here(sql, params, truncate, custom_time_limit, page_size, **others)
        from datasette.database import Results
        from datasette.views.base import DatasetteError

        milliseconds = min(filter(None, (datasette.sql_time_limit_ms, custom_time_limit)))
        most = datasette.max_returned_rows if truncate else _MOST_ROWS
        if truncate and most == (page_size or datasette.page_size):
            most += 1  # the one more that shows that there is another page
        limits = Limits(most, _MOST_BYTES, seconds=milliseconds / 1000)
        try:
            found = await processes.run(
                _setup(datasette, database), sql, limits, _given(sql, params)
            )
        except StoppedError as error:
            raise _interrupted(str(error), sql, params) from error
        except _FullError as error:
            raise DatasetteError(str(error), status=503) from error
        except UsageError as error:
            raise DatasetteError(str(error), title="Not answered", status=400) from error
        if found.has_more and not truncate:
            raise DatasetteError(f"The answer has more than {_MOST_ROWS:,} rows.", status=400)
        description, rows = _as_rows(found)
        return Results(rows, found.has_more, description)

    return execute


def _interrupted(sentence: str, sql: str, parameters: Any) -> Exception:
    """Return an exception that Datasette catches if it needs no answer, and shows otherwise."""
    from datasette.database import QueryInterrupted
    from datasette.views.base import DatasetteError

    class UnansweredError(QueryInterrupted, DatasetteError):  # type: ignore[misc]
        def __init__(self) -> None:
            QueryInterrupted.__init__(
                self, sqlite3.OperationalError("interrupted"), sql, parameters
            )
            DatasetteError.__init__(self, sentence, title="Not answered", status=400)

        def __str__(self) -> str:
            return sentence

    return UnansweredError()


class _FullError(Exception):
    """No statement is taken now."""


class _Processes:
    """A few processes, each with a thread that waits for it."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_PROCESSES, "foreign-sql")
        self._free: list[SqlProcess] = []
        self._busy: set[SqlProcess] = set()
        self._lock = Lock()
        self._asked = 0
        self._is_ending = False
        self._is_ready = False

    async def run(
        self,
        setup: Setup,
        sql: str,
        limits: Limits,
        parameters: Sequence[Value] | Mapping[str, Value],
    ) -> Answer:
        """Run a statement. Raises _FullError, or as `SqlProcess.run` does."""
        self._prepare()
        if self._is_ending:
            raise _FullError(_ENDING)
        if self._asked >= _PROCESSES + _WAITING:
            raise _FullError(_FULL)
        self._asked += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads, self._run, setup, sql, limits, parameters
            )
        finally:
            self._asked -= 1

    def _run(
        self,
        setup: Setup,
        sql: str,
        limits: Limits,
        parameters: Sequence[Value] | Mapping[str, Value],
    ) -> Answer:
        with self._lock:
            if self._is_ending:
                raise _FullError(_ENDING)
            process = self._free.pop() if self._free else SqlProcess()
            self._busy.add(process)
        try:
            return process.run(setup, sql, limits, parameters)
        finally:
            with self._lock:
                self._busy.discard(process)
                self._free.append(process)

    def _prepare(self) -> None:
        """End the processes when the server ends: at a signal, before it waits for its answers."""
        if self._is_ready:
            return
        self._is_ready = True
        atexit.register(self._close)
        if current_thread() is not main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if callable(before):
                signal.signal(number, self._ended_before(before))

    def _ended_before(
        self, handler: Callable[[int, FrameType | None], Any]
    ) -> Callable[[int, FrameType | None], Any]:
        def end(number: int, frame: FrameType | None) -> Any:
            self._is_ending = True
            for process in tuple(self._busy):
                process.kill()
            return handler(number, frame)

        return end

    def _close(self) -> None:
        self._is_ending = True
        for process in (*self._free, *self._busy):
            process.close()


def _setup(datasette: Any, database: Any) -> Setup:
    """Return what a process opens to be like a connection of Datasette to this database."""
    script: list[tuple[str, tuple[Value, ...]]] = []
    address = _address(database)
    if database.is_memory:
        address = "file::memory:"
        if datasette.crossdb:
            script += [
                (f"attach ? as {_quoted(name)}", (_address(other),))
                for name, other in list(datasette.databases.items())
                if not other.is_memory and name != "_internal"
            ][:10]  # SQLite attaches no more
    extensions = tuple(map(str, datasette.sqlite_extensions or ()))
    return Setup(address, tuple(script), None, False, True, extensions)


def _address(database: Any) -> str:
    how = "mode=ro" if database.is_mutable else "immutable=1"
    return f"{Path(database.path).resolve().as_uri()}?{how}"


def _given(sql: str, parameters: Any) -> Sequence[Value] | Mapping[str, Value]:
    """Return parameters as values; those of a canned query may be computed on demand."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        return list(parameters)
    if type(parameters) is dict:
        return parameters
    given = {}
    for name in set(_parameter.findall(sql)):
        try:
            given[name] = parameters[name]
        except KeyError:
            continue
    return given


def _as_rows(found: Answer) -> tuple[Any, list[sqlite3.Row]]:
    """Return the description of the columns and the rows, as a cursor gives them."""
    connection = sqlite3.connect(":memory:")
    try:
        named = ", ".join(f"null as {_quoted(column)}" for column in found.columns)
        cursor = connection.execute(f"select {named}")
        return cursor.description, [sqlite3.Row(cursor, row) for row in found.rows]
    finally:
        connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
