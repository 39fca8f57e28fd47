"""The only writer. A batch is one transaction: rows, index rows, archive, checkpoints.

`Batch` takes the records of many files, about 32 MB of input, and writes them in bulk:

1. a file is registered: its row, and the session, subagent and project that its path names;
2. the rows and the archive of a rewritten file are deleted;
3. records are gathered and inserted with `executemany`. Messages get their ids here, so that tool
   calls can refer to them;
4. at the end the checkpoints are written, the derived facts of whatever changed are refreshed
   (`derive`), the new messages are indexed with a few statements, and everything is committed.

A kill at any point leaves the database as it was before or as it is after the batch. Any error of
SQLite ends the batch: continuing after a row failed would commit rows without their checkpoint.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..derive import projects
from ..derive.changeset import Touched
from ..derive.refresh import refresh
from ..derive.statements import note_groups
from ..fast_json import orjson
from ..files import archive, stored_names
from ..files.archive import Frame
from ..files.tail import Prefix
from ..files.walk import FoundFile
from ..records import Record
from ..source import DATABASE, Claim, KnownFile
from . import changes, upserts
from .database import begin, commit, roll_back
from .delete import clear_rows, remove_entries, remove_files
from .fts import MESSAGE_COLUMNS
from .rows import FileRows, OpenFile, RowBuffer, Text, Written, archived

if TYPE_CHECKING:
    from ..files.walk import ListedDirectory, Stat


# ------------------------------------------------------------------------------------------------
# What earlier syncs knew about files: to compare them, and to find them by path.


_KNOWN = (
    "select id, path, kind, generation, size, mtime_ns, ctime_ns, inode, device, gone_at,"
    " session_key, agent_key, offset, head_hash, tail_hash, prefix_crc, context from files"
)

_NEWEST = (
    "not exists (select 1 from files newer where newer.source_id = files.source_id"
    " and newer.path = files.path and newer.generation > files.generation)"
)

_NEVER = -1
"""The size in the stat of what has to be looked at in any case: no file has it."""


class KnownFiles(NamedTuple):
    """The files below some places of a root, for a plan: their stats, and the rows of a few.

    Without a connection or a source, there are none.
    """

    connection: sqlite3.Connection | None
    source_id: int | None
    places: Collection[ListedDirectory]

    def stats(self) -> set[Stat]:
        """Return the stats of all that was there, as SQLite hands them over: no object for each.

        A database has to be looked at in any case, since its log may have changed, and so has a
        file that was not read to its end, or that is an entry of a store.
        """
        found: set[Stat] = set()
        for where, values in self._limits():
            found.update(
                self._rows(
                    "select path, iif(kind = :database or mtime_ns = 0 or instr(path, '#'),"
                    " :never, size), mtime_ns, ctime_ns, inode from files"
                    f" where {where} and gone_at is null and {_NEWEST}",
                    {**values, "database": DATABASE, "never": _NEVER},
                )
            )
        return found

    def all(self) -> dict[str, KnownFile]:
        return self._by_path("", {})

    def at(self, paths: Iterable[str]) -> dict[str, KnownFile]:
        """Return what is known about these paths: in a first sync very many, and nothing."""
        wanted = list(paths)
        if not wanted or not self._is_any():
            return {}
        return self._by_path(
            " and path in (select value from json_each(:paths))",
            {"paths": orjson.dumps(wanted).decode()},
        )

    def gone_entries(self) -> dict[str, KnownFile]:
        return self._by_path(" and gone_at is not null and instr(path, '#')", {})

    def _is_any(self) -> bool:
        query = "select 1 from files where source_id = :source limit 1"
        return any(True for _ in self._rows(query, {"source": self.source_id}))

    def _by_path(self, where: str, values: dict[str, Any]) -> dict[str, KnownFile]:
        """Return the newest generation of each path."""
        return {
            row[1]: KnownFile._make(row)
            for limit, limits in self._limits()
            for row in self._rows(
                f"{_KNOWN} where {limit}{where} order by path, generation", {**limits, **values}
            )
        }

    def _limits(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for place in self.places:
            yield _limit(self.source_id, place)

    def _rows(self, statement: str, values: dict[str, Any]) -> Iterable[Any]:
        if self.connection is None or self.source_id is None:
            return ()
        cursor = self.connection.cursor()
        cursor.row_factory = None  # a row of any other form is no member of a set of tuples
        return cursor.execute(statement, values)


def known_file(connection: sqlite3.Connection, file_id: int) -> KnownFile | None:
    """Return one file, None if it has no row any more."""
    row = connection.execute(f"{_KNOWN} where id = ?", (file_id,)).fetchone()
    return KnownFile(*row) if row is not None else None


def _limit(source_id: int | None, place: ListedDirectory) -> tuple[str, dict[str, Any]]:
    """Return the condition for the files of a source in a place, with its values."""
    start = "".join(f"{part}/" for part in place.parts)
    where = "source_id = :source"
    if start:
        where += " and path > :start and path < :end"  # '0' follows '/' in ASCII
    if not place.is_deep:
        where += " and instr(substr(path, length(:start) + 1), '/') = 0"
    return where, {"source": source_id, "start": start, "end": f"{start[:-1]}0"}


BATCH_BYTES = 32 * 1024 * 1024
"""Input after which a batch is committed."""

FILE_BYTES = 4 * 1024
"""Added to the size of each file: a batch keeps something in memory for each of its files, and
could otherwise have a hundred thousand of one line each."""

_INDEXED_AT_ONCE = 20_000  # messages; SQLite keeps in memory what it needs to undo a statement


class Aside(Protocol):
    """Indexes the text of messages elsewhere, see `workers.index_aside`."""

    def add(self, texts: list[Text]) -> None:
        """Index the messages of a batch, which is committed."""
        ...


@dataclass
class Batch:
    """One transaction: `open_file`, `add` for each stretch, then `prepare` and `finish`.

    As a context manager, it commits at the end, or rolls back after an error.
    """

    connection: sqlite3.Connection
    now: str
    aside: Aside | None = None
    """Where messages are indexed, if not in the transaction that stores them."""
    is_derived_later: bool = False
    """Nobody sees the rows before everything that follows from them is derived, all at once."""
    input_bytes: int = 0

    def __post_init__(self) -> None:
        self._files: dict[int, OpenFile] = {}
        self._starts: dict[int, int] = {}  # where the rows begin that are inserted
        self._touched = Touched()
        begin(self.connection)
        try:
            self._file_rows = FileRows(self.connection, self._touched, self.now)
            self._buffer = RowBuffer(
                self.connection,
                self._touched,
                self._file_rows,
                self.now,
                keeps_texts=self.aside is not None,
            )
        except BaseException:
            self.rollback()
            raise

    @property
    def written(self) -> Written:
        """What has been written so far, or is about to be."""
        return self._buffer.written

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.prepare()
                self.finish()
        finally:
            self.rollback()

    # -- files -----------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Has the batch as much input as one transaction should have?"""
        return self.input_bytes >= BATCH_BYTES

    def open_file(
        self,
        source_id: int,
        found: FoundFile,
        claim: Claim,
        known: KnownFile | None,
        prefix: Prefix | None,
        *,
        generation: int = 0,
        is_rewritten: bool = False,
    ) -> OpenFile:
        """Add a file to the batch; `known` is its row, `prefix` is where reading continues.

        The rows of a rewritten file are deleted. `prefix` is None for a document that cannot be
        parsed at present: its rows are kept, and an issue is added.
        """
        session_key = claim.session_key
        if session_key is None and known is not None and not is_rewritten:
            session_key = known.session_key
        file = OpenFile(0, source_id, claim, found, None, None, session_key, prefix)
        if known is not None:
            self._file_rows.expect(known.id, known.checkpoint.offset, known.checkpoint.prefix_crc)
            stored_names.clear_path_issues(self.connection, known.id)
        file.id = known.id if known else self._file_rows.insert(file, generation)
        file.is_empty = known is None or is_rewritten
        if known is not None and not is_rewritten:
            file.context = known.context
        if is_rewritten:
            self._clear(file.id)
            file.has_entries = True
        elif prefix is None:
            self._file_rows.clear_unreadable(file.id)
            if known is not None and known.gone_at is not None:
                upserts.mark_file_back(self.connection, file.id, known.gone_at)
                projects.mark_file_back(self.connection, file.id, known.gone_at)
        if known is not None:
            is_moved = known.path != found.path
            if is_moved:
                self._touched.leave_project(self.connection, file.id)
            self._file_rows.refer(file)
            if is_moved:
                self._touched.moved.add(file.id)
                # It is the first generation at its new path, whatever it was at the old one.
                self.connection.execute("update files set generation = 0 where id = ?", (file.id,))
        self._take_in(file)
        return file

    def close_file(self, file: OpenFile) -> None:
        """Record that a file was read to its end; its last part may be in an earlier batch."""
        file.is_read = True
        self._take_in(file)

    def _take_in(self, file: OpenFile) -> None:
        if file.id not in self._files:
            self.input_bytes += FILE_BYTES
            self._starts[file.id] = file.prefix.offset if file.prefix else 0
            if file.written is not None:
                self._file_rows.expect(file.id, file.written.offset, file.written.crc)
        self._files[file.id] = file
        self._touched.files.add(file.id)

    def note_stat(self, known: KnownFile, found: FoundFile, *, is_document: bool) -> None:
        """Record the stat of a file whose content has not changed.

        A document may have been broken in the meantime. It is whole again, so its issue is removed.
        """
        stored_names.clear_path_issues(self.connection, known.id)
        if is_document:
            self._file_rows.clear_unreadable(known.id)
            self._touched.files.add(known.id)
        self.written.issues += self._file_rows.note_stat(known.id, found)

    def _clear(self, file_id: int) -> None:
        """Delete everything that was read from a file; what was derived from it is refreshed."""
        self._buffer.flush()
        clear_rows(self.connection, self._touched, file_id)
        archive.clear(self.connection, file_id)
        self._file_rows.reset(file_id)

    def open_archived(
        self,
        source_id: int,
        claim: Claim,
        known: KnownFile,
        *,
        keeps_rows: bool = False,
        is_cleared: bool = False,
    ) -> OpenFile:
        """Add a file that is re-parsed from its archive: its rows go, its archive and stat stay.

        With `keeps_rows`, its rows stay, too, and only missing ones are going to be added. If it
        `is_cleared`, they are already gone.
        """
        file = archived(source_id, claim, known)
        file.is_empty = not keeps_rows
        if not keeps_rows and not is_cleared:
            self._buffer.flush()
            clear_rows(self.connection, self._touched, file.id)
        file.has_entries = upserts.has_entries(self.connection, file.id)
        self.connection.execute("update files set own_since = null where id = ?", (file.id,))
        self._file_rows.refer(file)
        self._take_in(file)
        return file

    def touch(self, file_id: int) -> None:
        """Record that rows of a file are about to change."""
        self._buffer.flush()
        self._touched.before_clearing(self.connection, file_id)
        note_groups(self.connection, self._touched, file_id)
        self._touched.files.add(file_id)

    def remove(self, file_ids: Iterable[int], *, everywhere: bool = False) -> None:
        """Remove files with everything that was read from them or follows only from that.

        With `everywhere`, they are to be removed from other records of this machine, too.
        """
        self._buffer.flush()
        ids = list(file_ids)
        if everywhere:
            changes.note_forgotten(self.connection, ids)
        remove_files(self.connection, self._touched, ids)

    def remove_entries(self, since: str, before: str) -> None:
        """Remove the entries of lists that have been gone since a time between these two."""
        self._buffer.flush()
        remove_entries(self.connection, self._touched, since, before)

    def note_directories(self, directories: Mapping[tuple[int, str], str | None]) -> None:
        """Record the empty directories of projects, by source and key; None: it has none."""
        for (source_id, key), name in directories.items():
            project = self._file_rows.identify("projects", source_id=source_id, key=key)
            self.connection.execute(
                "update projects set directory = ? where id = ?", (name, project)
            )
            self._touched.projects.add(project)

    def mark_gone(self, file_ids: Iterable[int]) -> None:
        """Record that files are missing as of now; their rows stay."""
        ids = list(file_ids)
        self.connection.executemany(
            "update files set gone_at = max(?, last_synced_at, first_seen_at) where id = ?",
            [(self.now, id_) for id_ in ids],
        )
        for file_id in ids:
            upserts.mark_file_gone(self.connection, file_id, self.now)
            projects.mark_file_gone(self.connection, file_id, self.now)
        self._touched.files.update(ids)

    # -- records ---------------------------------------------------------------------------------

    def add(
        self,
        file: OpenFile,
        records: Iterable[Record],
        frames: Sequence[Frame],
        prefix: Prefix | None,
        size: int,
    ) -> None:
        """Append a stretch of `size` bytes to a file: its records, its bytes, and where it ends.

        The file may have been opened in the previous batch. The caller sets `OpenFile.context`.
        """
        self._take_in(file)
        if frames:
            archive.append(self.connection, file.id, frames)
            if file.prefix is not None and file.prefix.offset:
                archive.merge(self.connection, file.id, file.prefix.offset)
        file.prefix = prefix
        self.input_bytes += size
        self._buffer.add(file, records, size)

    # -- the end ---------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Write the remaining rows, the checkpoints and the derived facts, unless those wait."""
        self._buffer.flush()
        self.written.issues += self._file_rows.write_checkpoints(self._files.values())
        changes.note_files(self.connection, self._starts)
        self._touched.first_message_id = self._buffer.first_id
        if not self.is_derived_later:
            refresh(self.connection, self._touched)

    def finish(self) -> Written:
        """Index the new messages and commit: a few long statements, outside the interpreter."""
        if self.aside is None:
            self._index("messages_fts")
        self._index("messages_cjk_fts")
        commit(self.connection)
        if self.aside is not None:
            self.aside.add(self._buffer.texts)
        return self.written

    def rollback(self) -> None:
        """Leave the database as it was before the batch."""
        roll_back(self.connection)

    def _index(self, table: str) -> None:
        content = "messages" if table == "messages_fts" else "messages_cjk"
        for first in range(self._buffer.first_id, self._buffer.next_id, _INDEXED_AT_ONCE):
            self.connection.execute(
                f"insert into {table} (rowid, {MESSAGE_COLUMNS})"
                f" select id, {MESSAGE_COLUMNS} from {content} where id >= ? and id < ?",
                (first, min(first + _INDEXED_AT_ONCE, self._buffer.next_id)),
            )
