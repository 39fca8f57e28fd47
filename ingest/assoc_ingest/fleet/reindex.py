"""Makes the rows that the server has of a machine anew, for a machine that no longer pushes.

1. Say so to the server, which from then on applies what this run sends, until the machine pushes.
2. Fetch the frames of the machine into a temporary database, and derive their rows.
3. Push all rows of each file that could be derived as a whole. Its bytes are not sent.

What cannot be derived from bytes stays: the rows of files without bytes or with damaged ones, of
lists with entries that were seen to go, and of files of which something was forgotten. No keyed row
is deleted. Those that such files name stay as they are; of the others stays what only the machine
could see.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from ..errors import FleetError, NotFoundError
from ..files.exclusions import OUTSIDE_ARCHIVE
from ..source import LOG
from ..store import database
from ..store.report import Progress
from ..store.transaction import snapshot
from ..upkeep.archived_files import files_of
from ..upkeep.rebuild_plan import plan_of
from .asking import Central
from .connect import connect, telling
from .kept import Kept
from .local import Local
from .masks import Masks
from .projection import Cursor, File, FileContent, KeyedSet
from .pull import Pull, Wanted
from .pull_queries import files_there
from .push import push_again
from .scope import EVERYTHING
from .server import Known, KnownFile, Server, as_json_bytes
from .tables import FILES, KEYED, PLACED, Table

if TYPE_CHECKING:
    from psycopg import Connection

_OF_FILES = {
    *("line_count", "issue_count", "session_key", "agent_session_key", "agent_key"),
    *("project_source_no", "project_key"),
}
"""The attributes of a file that follow from its bytes."""

_OF_PROJECTS = {"session_count", "last_activity_at"}
"""What follows from bytes of a known project: its machine may have the rest from its disk."""

_NOT_DERIVED = {"sources", "prices"}
"""Keyed tables that no file makes."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What was made anew."""

    label: str
    files: int
    """Files whose rows were derived."""
    kept: int
    """Files whose rows stayed."""


def reindex(destination: str, name: str, progress: Progress | None = None) -> Reindexed:
    """Make the rows of the origin with this label or uuid anew.

    Raises NotFoundError if the server shows no such origin, FleetError if
    the login may not do it, or if the machine pushes meanwhile.
    """
    with connect(destination) as connection, TemporaryDirectory(prefix="assoc-ingest-") as place:
        server = _Rewriting(connection)
        origin_id, label = _chosen(connection, name)
        nonce = str(uuid4())
        known = Known(origin_id, server.reindex(origin_id, nonce), nonce, "", label)
        path = Path(place) / "origin.db"
        with closing(cast(sqlite3.Connection, Central(destination))) as there:
            _fetch(path, there, known, progress)
            files = server.files_of(origin_id)
            with closing(database.open_reader(path)) as reader, snapshot(reader):
                keys = _derived(reader, there, origin_id)
                others = [file for file in files if file.file_key not in keys]
                local = Local(reader, EVERYTHING, Masks(is_on=False))
                push_again(server, _Anew(local, there, origin_id, keys, others), known)
    return Reindexed(label, len(keys), len(others))


@telling
def _chosen(connection: Connection[Any], name: str) -> tuple[int, str]:
    """Return the id and the label of an origin that the login may write for."""
    origins = connection.execute(
        "select origin_id, uuid::text, label from assoc.origins order by label, origin_id"
    ).fetchall()
    fitting = [(id_, label) for id_, uuid, label in origins if name in (uuid, label)]
    known = ", ".join(f"{label} ({uuid})" for _, uuid, label in origins) or "none"
    if not fitting:
        raise NotFoundError(f"The server has no machine {name!r}; it has: {known}.")
    origin_id, label = fitting[0]
    row = connection.execute("select assoc.may_reindex_v1(%s)", (origin_id,)).fetchone()
    if row is None or not row[0]:
        raise FleetError(
            f"{label} belongs to another login: use that one, the owner of the schema, or one with "
            "the role assoc_admin."
        )
    return origin_id, label


class _Fetched(Pull):
    """A pull whose files and sources have the names that their machine gave them."""

    def key_of(self, file: Any) -> bytes:
        """Return the key that a file has in this database."""
        return bytes(file["file_key"])

    def source_of(self, file: Any, now: str) -> int:
        """Make the source of a file known; return its id."""
        self.connection.execute(
            "insert into sources (id, kind, root, first_synced_at, last_synced_at, label, is_agent,"
            " lists_sessions, retention_days, cleanup_period_days)"
            " values (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9) on conflict (id) do nothing",
            (
                file["source_no"], file["source"], file["root"], now, file["source_label"],
                file["is_agent"], file["lists_sessions"], file["retention_days"],
                file["cleanup_period_days"],
            ),
        )  # fmt: skip
        return int(file["source_no"])


def _fetch(path: Path, there: sqlite3.Connection, known: Known, progress: Progress | None) -> None:
    """Make a database of what the server has of an origin."""
    files = [f for f in files_there(there, known.label) if f["origin_id"] == known.origin_id]
    with database.writing(path) as connection:
        _Fetched(connection, there, None, progress).everything(files, Wanted(known.label))


_GONE = " union ".join(
    f"""
    select f.file_key
    from assoc.{table.name} r
    join assoc.files f using (origin_id, file_no)
    where f.origin_id = cast(:origin as int4) and r.gone_at <> coalesce(f.gone_at, '')
    """
    for table in PLACED
    if "gone_at" in table.names
)
"""Files with entries that were seen to go: the present content does not have them."""

_ISSUES = """
    select f.file_key, r.reason, r.quarantined
    from assoc.issues r
    join assoc.files f using (origin_id, file_no)
    where f.origin_id = cast(:origin as int4)
"""


def _derived(reader: sqlite3.Connection, there: sqlite3.Connection, origin_id: int) -> set[bytes]:
    """Return the keys of the files all of whose rows follow from their bytes."""
    asked = {"origin": origin_id}
    others = {bytes(key) for (key,) in there.execute(_GONE, asked)}
    broken = set()
    for key, reason, is_quarantined in there.execute(_ISSUES, asked):
        if reason in OUTSIDE_ARCHIVE:
            others.add(bytes(key))
        elif is_quarantined:  # of a document, its last version that was whole is archived
            broken.add(bytes(key))
    found = dict(reader.execute("select id, file_key from files").fetchall())
    derived = set()
    for file in files_of(reader):
        plan = plan_of(reader, file)
        key = found[file.known.id]
        if plan.is_whole and plan.claim is not None and key not in others:
            is_log = file.source.shape(plan.claim) == LOG
            if is_log or key not in broken:
                derived.add(key)
    return derived


class _Rewriting(Server):
    """A server whose rows are not trusted to be those that were pushed."""

    def frames(
        self, origin_id: int, numbers: Sequence[int]
    ) -> dict[int, dict[int, tuple[bytes, bytes]]]:
        """Return the frames of files as if all rows in them had to be written."""
        found = super().frames(origin_id, numbers)
        return {
            number: {start: (digest, b"") for start, (digest, _) in frames.items()}
            for number, frames in found.items()
        }


@dataclass(frozen=True, slots=True)
class _Anew:
    """What was derived, with what could not be derived as the server has it."""

    local: Local
    there: sqlite3.Connection
    origin_id: int
    keys: set[bytes]
    """Of the files that were derived."""
    others: list[KnownFile]

    def cursor(self) -> Cursor | None:
        """Return the state of the database."""
        return self.local.cursor()

    def is_known(self, seen: Cursor) -> bool:
        """Nothing was seen before."""
        return False

    def gone_file_keys(self, since: int | None) -> list[bytes]:
        """Nothing was forgotten."""
        return []

    def files(self, since: int | None) -> Iterator[File]:
        """Yield the files whose rows follow from their bytes."""
        return (file for file in self.local.files(since) if file.file_key in self.keys)

    def content(self, file: File) -> FileContent:
        """Return a file with its derived attributes, and the others as the server has them."""
        content = self.local.content(file)
        columns = _columns(FILES)
        row = self.there.execute(
            f"select {columns} from assoc.files where origin_id = cast(:origin as int4)"
            " and file_key = decode(:key, 'hex')",
            {"origin": self.origin_id, "key": file.file_key.hex()},
        ).fetchone()
        seen = set(FILES.names) - _OF_FILES
        return content._replace(attributes=_merged(FILES, content.attributes, tuple(row), seen))

    def keyed(self, since: int | None) -> Iterator[KeyedSet]:
        """Yield the keyed rows that differ from those of the server."""
        for found in self.local.keyed(since):
            if found.table not in _NOT_DERIVED:
                rows = list(self._changed(_keyed[found.table], found.rows))
                yield KeyedSet(found.table, rows, is_whole=False)

    def _changed(self, table: Table, rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        count, stays = len(table.key), self._stays(table)
        before = {
            tuple(row[:count]): (tuple(row[:-1]), row[-1])
            for row in self.there.execute(
                f"select {_columns(table)}, digest from assoc.{table.name}"
                " where origin_id = cast(:origin as int4)",
                {"origin": self.origin_id},
            )
        }
        for row in rows:
            old, digest = before.get(row[:count], (None, None))
            if old is not None and stays(row):
                continue
            merged = row if old is None else _merged(table, row, old, _seen(table, old))
            if merged != old or sha256(as_json_bytes(merged)).digest() != digest:
                yield merged

    def _stays(self, table: Table) -> Callable[[tuple[Any, ...]], bool]:
        """Return what tells of a row whether it may follow from files that were not derived."""
        if table.name == "projects":  # a list of projects names them all, and belongs to none
            sources = {file.source_no for file in self.others}
            return lambda row: row[0] in sources
        kept = Kept(self.others)
        return lambda row: kept.names(
            table.name, dict(zip(table.key, map(_as_key, row), strict=False))
        )


_keyed = {table.name: table for table in KEYED}


def _seen(table: Table, old: tuple[Any, ...]) -> set[str]:
    """Return the columns of a keyed row of which only its machine knew the value."""
    if table.name != "projects":
        return {"gone_at"}
    known = {name for name, value in zip(table.names, old, strict=True) if value is not None}
    return known - _OF_PROJECTS | {"gone_at"}


def _columns(table: Table) -> str:
    return ", ".join(f'"{name}"' for name in table.names)


def _as_key(value: Any) -> str:
    """Return a value of a key as `Kept` compares it."""
    return rf"\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _merged(
    table: Table, new: tuple[Any, ...], old: tuple[Any, ...], seen: set[str]
) -> tuple[Any, ...]:
    """Return the new values of a row, but of what was `seen` the old ones."""
    values = zip(table.names, new, old, strict=True)
    return tuple(before if name in seen else value for name, value, before in values)
