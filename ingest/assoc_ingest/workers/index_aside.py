"""Builds the full-text index of messages in a process and a database of its own.

Indexing takes as long as storing the rows, and a connection does one thing at a time. So while a
new database is built that nobody can see yet, rows are committed without index rows, and their text
goes to this process. At the end the tables that make up its index are copied whole. The process
commits what the writer commits, so the index is the one that the writer would have made.

If the process fails, or a row is missing for whatever reason, the index is made from its table
instead.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ..store import fts
from ..store.database import begin, commit
from ..store.rows import Text
from . import SingleWorker
from .reading import WITHOUT_REFERENCES

INDEX = "messages_fts"
_BATCHES_AHEAD = 1  # batches whose text may wait for the process
_PIECE = 1024 * 1024  # letters that go to the process at a time
_SECONDS = 600.0


def index_aside(connection: sqlite3.Connection) -> AbstractContextManager[IndexAside | None]:
    """Let another process index the messages of a database that is not visible yet, if possible."""
    return IndexAside(connection) if fts.can_be_filled(connection, INDEX) else nullcontext()


class IndexAside:
    """Receives the text of committed messages. As a context manager, it ends its process."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Make the index of this database in a file next to it.

        Messages that are in it already are indexed at the end, from their table.
        """
        self._connection = connection
        (database,) = connection.execute(
            "select file from pragma_database_list where name = 'main'"
        ).fetchone()
        self._path = Path(database).with_name(f"{INDEX}.db")
        self._definition = fts.definition(connection, INDEX)
        self._worker = SingleWorker()
        self._thread = ThreadPoolExecutor(1, "index")
        self._waiting: deque[Future[bool]] = deque()
        self._is_sound = True
        self._from_table = [id_ for (id_,) in connection.execute("select id from messages")]
        self._commit = _IndexJob(str(self._path), self._definition, None)

    def __enter__(self) -> IndexAside:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.kill()
        self._thread.shutdown(cancel_futures=True)
        self._path.unlink(missing_ok=True)

    def add(self, texts: list[Text]) -> None:
        """Index the messages of a batch, which is committed; wait if too many are waiting."""
        self._from_table.extend(text.id for text in texts if text.has_invisible)
        self._settle(_BATCHES_AHEAD)
        jobs = [
            _IndexJob(str(self._path), self._definition, marshal.dumps(rows, WITHOUT_REFERENCES))
            for rows in _in_pieces(text for text in texts if not text.has_invisible)
        ]
        texts.clear()
        self._waiting.append(self._thread.submit(self._do, [*jobs, self._commit]))

    def put_in_place(self) -> None:
        """Fill the index of the database. Raises sqlite3.Error."""
        self._settle(0)
        self._worker.kill()  # its file is complete, and it would keep it locked
        if self._is_sound and self._path.exists():  # no batch was committed
            fts.fill(self._connection, INDEX, self._path)
            fts.add_rows(self._connection, INDEX, self._from_table)
        fts.complete(self._connection, INDEX)

    def _do(self, jobs: Iterable[_IndexJob]) -> bool:
        return all(map(self._worker.has_done, jobs))

    def _settle(self, count: int) -> None:
        while len(self._waiting) > count:
            self._is_sound = self._waiting.popleft().result() and self._is_sound


def _in_pieces(texts: Iterable[Text]) -> Iterator[list[tuple[object, ...]]]:
    piece: list[tuple[object, ...]] = []
    size = 0
    for text in texts:
        piece.append(text[:3])
        size += len(text.text or text.tool_text or "")
        if size >= _PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


# -- in the process ------------------------------------------------------------------------------

_connections: dict[str, sqlite3.Connection] = {}


@dataclass(frozen=True, slots=True)
class _IndexJob:
    """Rows for the index at `path`; None: commit those of all jobs before it."""

    path: str
    definition: fts.Definition
    rows: bytes | None
    seconds: float = _SECONDS

    def items(self) -> Iterator[Iterator[bytes]]:
        yield self._result()

    def _result(self) -> Iterator[bytes]:
        connection = _connections.get(self.path)
        if connection is None:
            connection = _connections[self.path] = fts.open_aside(self.path, INDEX, self.definition)
        if self.rows is None:
            if connection.in_transaction:
                commit(connection)
        else:
            if not connection.in_transaction:
                begin(connection, is_noted=False)
            rows = marshal.loads(self.rows)  # noqa: S302 - from the writer, see `parcels`
            fts.add_texts(connection, INDEX, rows)
        yield b""
