"""A small local side of a push, made by hand, and what the server has afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import zip_longest
from typing import Any, NamedTuple
from uuid import uuid4

from assoc_ingest.fleet.projection import FILES, KEYED, PLACED, TABLES, Cursor, digested
from assoc_ingest.fleet.push import push, row_of
from assoc_ingest.fleet.server import Server, as_json

_tables = {table.name: table for table in TABLES}
_EMPTY = {"integer": 0, "bigint": 0, "double precision": 0.0, "bytea": b"", "text": ""}


class MadeFrame(NamedTuple):
    """A frame as the projection gives it."""

    start: int
    end: int | None
    data: bytes | None
    digest: bytes
    rows: dict[str, list[tuple[object, ...]]]
    rows_digest: bytes
    row_starts: list[int]


class MadeContent(NamedTuple):
    """A file as the projection gives it."""

    file_key: bytes
    attributes: tuple[object, ...]
    frames: list[MadeFrame]
    is_whole: bool = True


class MadeKeyed(NamedTuple):
    """A keyed set as the projection gives it."""

    table: str
    rows: list[tuple[object, ...]]
    is_whole: bool = True


def row(table: str, **values: object) -> tuple[object, ...]:
    """A row of a table, by the names of its columns; a key that is not given is empty."""
    columns = _tables[table].columns if table != "files" else FILES.columns
    assert values.keys() <= {column.name for column in columns}, values
    key = _tables[table].key if table != "files" else FILES.key
    return tuple(
        values.get(column.name, _EMPTY[column.type] if column.name in key else None)
        for column in columns
    )


def frame(start: int, data: bytes | None, **rows: list[Any]) -> MadeFrame:
    """A frame whose digests are those of its content."""
    digest = sha256(data or b"").digest()
    return MadeFrame(start, None, data, digest, rows, *digested(rows, start))


def _complete(frames: Iterable[MadeFrame]) -> Iterator[MadeFrame]:
    """Let frames begin as the projection lets them, with one at -1 and one at 0, and end."""
    given = {made.start: made for made in (frame(-1, None), frame(0, None), *frames)}
    starts = sorted(given)
    for start, end in zip_longest(starts, starts[1:]):
        yield given[start]._replace(end=end)


def says(offset: int, text: str, **more: object) -> tuple[object, ...]:
    """A row of messages."""
    more = {"kind": "prompt", "role": "user", "is_copy": 0, "session_key": "s", **more}
    return row("messages", byte_offset=offset, block=0, text=text, source_no=1, **more)


@dataclass
class MadeLocal:
    """Everything that a machine has; each change is one transaction."""

    contents: dict[bytes, MadeContent] = field(default_factory=dict)
    sets: dict[str, list[tuple[object, ...]]] = field(default_factory=dict)
    gone: list[bytes] = field(default_factory=list)
    change: int = 1
    changed: dict[bytes, int] = field(default_factory=dict)

    def put(self, key: str, frames: Iterable[MadeFrame], **attributes: object) -> None:
        """Let a file have these frames."""
        self.change += 1
        name = key.encode().ljust(16, b".")
        assert name not in self.gone, "a file that comes back has another key"
        given = {"path": f"{key}.jsonl", "source_no": 1, "session_key": "s", **attributes}
        values = row("files", file_key=name, **given)
        self.contents[name] = MadeContent(name, values, list(_complete(frames)))
        self.changed[name] = self.change

    def keep(self, table: str, *rows: tuple[object, ...]) -> None:
        """Let a keyed set be these rows."""
        self.change += 1
        self.sets[table] = list(rows)

    def forget(self, key: str) -> None:
        """Remove a file so that no copy may stay."""
        self.change += 1
        name = key.encode().ljust(16, b".")
        del self.contents[name]
        self.gone.append(name)

    def prune(self, key: str) -> None:
        """Remove a file here alone."""
        self.change += 1
        del self.contents[key.encode().ljust(16, b".")]

    def cursor(self) -> Cursor:
        return Cursor(self.change, 0)

    def is_known(self, seen: Cursor) -> bool:
        return seen.change <= self.change

    def files(self, since: int | None) -> list[MadeContent]:
        return [
            content
            for key, content in self.contents.items()
            if since is None or self.changed[key] > since
        ]

    def content(self, file: MadeContent) -> MadeContent:
        return file

    def keyed(self, since: int | None) -> list[MadeKeyed]:
        return [MadeKeyed(table.name, self.sets.get(table.name, [])) for table in KEYED]

    def gone_file_keys(self, since: int | None) -> list[bytes]:
        return self.gone


@dataclass
class MadeMemory:
    """What a machine remembers."""

    label: str = field(default_factory=lambda: f"laptop-{uuid4()}")
    uuid: str = field(default_factory=lambda: str(uuid4()))
    db_uuid: str = field(default_factory=lambda: str(uuid4()))
    version: int = 0
    nonces: list[str] = field(default_factory=list)
    cursor: Cursor | None = None

    def save(self) -> None:
        """Nothing outlives this object."""


def push_v1(connection: Any, local: MadeLocal, memory: MadeMemory) -> None:
    """Push everything through the first version of the calls, as an older program does."""
    server = Server(connection)
    known = server.hello(memory.uuid)
    if known is None:
        memory.nonces.append(str(uuid4()))
        server.register(memory.uuid, memory.label, memory.db_uuid, memory.nonces[-1])
        known = server.hello(memory.uuid)
    assert known is not None
    contents = list(local.contents.values())
    now = (known.origin_id, known.version, memory.nonces[-1])
    attributes = [row_of(FILES, content.attributes) for content in contents]
    answer, numbers = server.files(*now, attributes)
    frames, ranges, rows = [], [], dict[str, list[Any]]()
    for number, content in zip(numbers, contents, strict=True):
        for made in content.frames:
            ranges.append({"file_no": number, "start": made.start, "end": made.end})
            frames.append((number, made.start, False, made.data, made.digest, made.rows_digest))
            for name, some in made.rows.items():
                rows.setdefault(name, []).extend(
                    row_of(_tables[name], values, file_no=number) for values in some
                )
    for name, some in local.sets.items():
        rows[name] = [row_of(_tables[name], values, digest=b"") for values in some]
    columns = [list(column) for column in zip(*frames, strict=True)]
    connection.execute(
        """select assoc.push_v1(%s, %s, %s, %s, %b::int[], %b::bigint[], %b::boolean[],
            %b::bytea[], %b::bytea[], %b::bytea[], %b::text[], %b::text[]::json[], '{}')""",
        (
            *(known.origin_id, answer.version, memory.nonces[-1], as_json(ranges), *columns),
            *(list(rows), [as_json(some) for some in rows.values()]),
        ),
    )


def expected(local: MadeLocal) -> dict[str, list[Any]]:
    """What the server should have of a machine, files by their keys."""
    tables: dict[str, list[Any]] = {table.name: [] for table in (*PLACED, *KEYED)}
    tables["files"] = [content.attributes for content in local.contents.values()]
    tables["frames"] = []
    for content in local.contents.values():
        for made in content.frames:
            place = (content.file_key, made.start, made.data)
            tables["frames"].append((*place, made.digest, made.rows_digest))
            for name, rows in made.rows.items():
                tables[name] += [(content.file_key, *values) for values in rows]
    for name, rows in local.sets.items():
        tables[name] += rows
    return {name: sorted(rows, key=repr) for name, rows in tables.items()}


def on_server(connection: Any, uuid: str) -> dict[str, list[Any]]:
    """What the server has of a machine, in the same form."""
    found = {}
    for table in (FILES, *PLACED, *KEYED):
        columns = ", ".join(f't."{name}"' for name in table.names)
        key = "f.file_key, " if table.placed else ""
        joined = "join assoc.files f using (origin_id, file_no)" if table.placed else ""
        found[table.name] = f"select {key}{columns} from assoc.{table.name} t {joined}"
    found["frames"] = """
        select f.file_key, t.start, t.data, t.digest, t.rows_digest
        from assoc.frames t join assoc.files f using (origin_id, file_no)
    """
    mine = "where t.origin_id = (select origin_id from assoc.origins where uuid = %s)"
    return {
        name: sorted(connection.execute(f"{query} {mine}", (uuid,)).fetchall(), key=repr)
        for name, query in found.items()
    }


def pushed(connection: Any, text: str = "said here") -> MadeMemory:
    """Push one file with this login."""
    local, memory = MadeLocal(), MadeMemory()
    local.put("a", [frame(0, b"bytes", messages=[says(0, text)])])
    push(Server(connection), local, memory)
    return memory


def seen(connection: Any) -> list[str]:
    """The texts that a login sees."""
    rows = connection.execute("select text from assoc.messages order by text").fetchall()
    return [text for (text,) in rows]
