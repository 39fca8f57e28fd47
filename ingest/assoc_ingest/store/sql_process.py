"""SELECT statements of somebody else, run in a process of their own (`sql_child`).

SQLite looks at a clock between the steps of its machine, and a call of a function is one step,
however long it takes and whatever it allocates. So such a statement runs where it can be ended at
any moment, where memory has a limit, and where nothing else waits for it:

- the database is open for reading only, and an authorizer refuses everything else;
- the process ends when its time is over, when `kill` is called, and when this one ends;
- memory, temporary files, values, columns, rows and bytes are counted while the answer is made.

A process is kept for the next statement, as long as it has not been ended.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock, Timer
from typing import NamedTuple

from ..errors import UsageError
from . import sql_child
from .sql_child import EndOfInputError, Message, Value, receive, send, with_bytes, without_bytes

SECONDS = 5.0
_GRACE = 0.5  # seconds that the process has to end by itself


class StoppedError(UsageError):
    """A statement took too long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The statement was stopped after {seconds:g} seconds. Ask for less: with a "
            "condition on an indexed column, or a limit."
        )


class Setup(NamedTuple):
    """What a process opens, before it runs statements."""

    database: str
    """The address of the database, for SQLite."""
    script: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    """Statements of ours that come first."""
    names: frozenset[str] | None = None
    """The only tables and views that may be read, None for all."""
    is_select_only: bool = True
    """Are pragmas and some functions refused? Datasette needs them."""
    is_lenient: bool = False
    """Is a text that is no UTF-8 shown as well as it can be, as Datasette does?"""
    extensions: tuple[str, ...] = ()


class Limits(NamedTuple):
    """How much an answer may be."""

    rows: int
    bytes: int
    is_cut: bool = False
    """Does an answer with more bytes end with its last row before that? Else it is an error."""
    seconds: float | None = None
    """None: SECONDS."""


class Answer(NamedTuple):
    """The rows of a statement."""

    columns: list[str]
    rows: list[tuple[Value, ...]]
    has_more: bool


class SqlProcess:
    """Runs statements one after another; only `kill` may be called from another thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._setup: Setup | None = None
        self._lock = Lock()
        self._is_killed = False

    def run(
        self,
        setup: Setup,
        statement: str,
        limits: Limits,
        parameters: Sequence[Value] | Mapping[str, Value] = (),
        skip: int = 0,
    ) -> Answer:
        """Return the rows of a statement, without the first `skip`.

        Raises StoppedError, UsageError for what is refused, is too much or is no SQL, and
        sqlite3.Error for everything else, also if `kill` was called.
        """
        seconds = SECONDS if limits.seconds is None else limits.seconds
        blobs: list[bytes] = []
        asked: Message = {
            "sql": statement,
            "parameters": {name: without_bytes(value, blobs) for name, value in parameters.items()}
            if isinstance(parameters, Mapping)
            else [without_bytes(value, blobs) for value in parameters],
            **limits._asdict(),
            "seconds": seconds,
            "skip": skip,
        }
        process = self._started(setup)
        begun = time.monotonic()
        timer = Timer(seconds + _GRACE, process.kill)  # the system of the process may have no clock
        timer.start()
        try:
            answer, out = _exchanged(process, asked, blobs)
        except (EndOfInputError, OSError):
            self._end()
            if self._is_killed:
                raise _interrupted() from None
            if time.monotonic() - begun >= seconds:
                raise StoppedError(seconds) from None
            raise _too_much_memory() from None
        except BaseException:
            self._end()
            raise
        finally:
            timer.cancel()
        if "refused" in answer:
            raise _refusal(seconds, *answer["refused"])
        if "error" in answer:
            raise _error(answer)
        rows = [tuple(with_bytes(value, out) for value in row) for row in answer["rows"]]
        return Answer(answer["columns"], rows, answer["has_more"])

    def kill(self) -> None:
        """End what is running; `run` raises. The next call starts another process."""
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        self._end()

    def __del__(self) -> None:
        self._end()

    def _started(self, setup: Setup) -> subprocess.Popen[bytes]:
        process = self._process
        is_usable = process is not None and not self._is_killed and process.poll() is None
        if process is not None and is_usable and setup == self._setup:
            return process
        self._end()
        # Isolated and without packages, it has what Python itself has, and starts in 20 ms.
        process = subprocess.Popen(  # noqa: S603 — a file of this package
            [sys.executable, "-I", "-S", sql_child.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with self._lock:
            self._process, self._setup, self._is_killed = process, setup, False
        blobs: list[bytes] = []
        message = setup._asdict()
        message["names"] = None if setup.names is None else sorted(setup.names)
        message["script"] = [
            (sql, [without_bytes(value, blobs) for value in parameters])
            for sql, parameters in setup.script
        ]
        try:
            answer, _ = _exchanged(process, message, blobs)
        except (EndOfInputError, OSError):
            self._end()
            raise (_interrupted() if self._is_killed else _too_much_memory()) from None
        except BaseException:
            self._end()
            raise
        if "error" in answer:
            self._end()
            raise _error(answer)
        return process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):  # nobody reads what was not written yet
                        stream.close()
            process.wait()


def _exchanged(
    process: subprocess.Popen[bytes], message: Message, blobs: list[bytes]
) -> tuple[Message, list[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise EndOfInputError
    send(process.stdin, message, blobs)
    return receive(process.stdout)


def _refusal(seconds: float, kind: str, what: str) -> UsageError:
    if kind == "time":
        return StoppedError(seconds)
    if kind == "memory":
        return _too_much_memory()
    if kind == "size":
        return UsageError(
            f"The answer is too large: {what}. Ask for fewer rows or columns, or for parts of "
            "long values: substr(column, 1, 1000)"
        )
    return UsageError(f"The statement was refused: {what}.")


def _too_much_memory() -> UsageError:
    return UsageError(
        "The statement needs too much memory. Ask for fewer rows, or for parts of long values: "
        "substr(column, 1, 1000)"
    )


def _interrupted() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("interrupted")
    error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
    return error


def _error(answer: Message) -> sqlite3.Error:
    kinds = (sqlite3.OperationalError, sqlite3.DatabaseError, sqlite3.IntegrityError)
    kind = next((kind for kind in kinds if kind.__name__ == answer["error"]), kinds[0])
    error = kind(answer["text"])
    if answer["code"] is not None:
        error.sqlite_errorcode = answer["code"]
    return error
