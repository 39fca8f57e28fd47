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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..derive import projects, refresh
from ..derive.changeset import Touched, fill
from ..derive.statements import note_groups
from ..files import archive, walk
from ..files.archive import Frame
from ..files.tail import Prefix
from ..files.walk import FoundFile
from ..records import Record
from ..source import Claim, KnownFile
from ..sql import id_list
from . import changes, fts
from . import rows as upserts
from .database import begin, commit, roll_back
from .fts import MESSAGE_COLUMNS
from .rows import CLEARED, FileRows, OpenFile, RowBuffer, Text, Written, archived

if TYPE_CHECKING:
    pass


BATCH_BYTES = 32 * 1024 * 1024
"""Input after which a batch is committed."""

FILE_BYTES = 4 * 1024
"""Added to the size of each file: a batch keeps something in memory for each of its files, and
could otherwise have a hundred thousand of one line each."""

_FEW = 1000  # messages that are counted by themselves, without those before them in their sessions
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
        self._touched = Touched(is_append=True)
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
            walk.clear_path_issues(self.connection, known.id)
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
        walk.clear_path_issues(self.connection, known.id)
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
        self._touched.is_append = False
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

    def touch_session(self, session_key: str | None) -> None:
        """Record that something else than its files says changed what a session is."""
        rows = self.connection.execute(
            "select id from sessions where session_key = ?", (session_key,)
        )
        self._touched.sessions.update(id_ for (id_,) in rows)

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
        if self._buffer.next_id - self._buffer.first_id > _FEW:
            self._touched.is_append = False
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


# ------------------------------------------------------------------------------------------------
# Removes files from the database: their rows, their archive, and what follows only from them.
#
# Facts that other files share with a removed one are not derived here: whose line is the
# original, which session a reference means, what a project is called. What they depend on is
# recorded in `Touched`, and `derive` derives them again in the same transaction. So the tables
# end up as a sync of the remaining files would leave them.


_DELETED_AT_ONCE = 5000
_FILES_AT_ONCE = 500
_LISTS = "('chat_list', 'chat_list_backup')"  # a list and its copy, see `stale_lists`


def clear_rows(connection: sqlite3.Connection, touched: Touched, file_id: int) -> None:
    """Delete the rows that were read from a file; its archive and its row of `files` stay.

    Entries of a list stay, too: they are kept when the list no longer contains them (`rows`).
    """
    touched.before_clearing(connection, file_id)
    note_groups(connection, touched, file_id)
    for table in CLEARED:
        _delete(connection, table, f"= {file_id}")


def clear_all_rows(connection: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """Delete the rows of many files at once, as `clear_rows` does for one.

    For a database that nobody else can see, outside a transaction: each statement is one. What
    follows from the rows is not noted: afterwards, everything has to be derived again. The indexes
    of messages are rebuilt from what is left; the caller has put off all others (`fts.PutOff`).
    """
    put_off = fts.PutOff(connection, fts.OF_MESSAGES)
    connection.execute("create temp table if not exists cleared (id integer primary key)")
    ids = list(file_ids)
    fill(connection, "cleared", ids)
    if not _keeps_messages(connection):
        _empty_messages(connection)
    for start in range(0, len(ids), _FILES_AT_ONCE):
        fill(connection, "cleared", ids[start : start + _FILES_AT_ONCE])
        for table in CLEARED:
            _delete(connection, table, "in (select id from cleared)")
    put_off.catch_up()


def _keeps_messages(connection: sqlite3.Connection) -> bool:
    """Has a file that is not in the table `cleared` messages, or calls, which refer to some?"""
    (keeps,) = connection.execute(
        "select exists (select 1 from files f where f.id not in (select id from cleared)"
        " and (exists (select 1 from messages m where m.file_id = f.id)"
        "  or exists (select 1 from tool_calls c where c.file_id = f.id)))"
    ).fetchone()
    return bool(keeps)


def _empty_messages(connection: sqlite3.Connection) -> None:
    """Delete all messages without looking for each of them in every index, a tenth of a rebuild.

    SQLite does so only where nothing can refer to them. The calls that do are removed next.
    """
    connection.execute("pragma foreign_keys = off")
    try:
        connection.execute("delete from messages")
    finally:
        connection.execute("pragma foreign_keys = on")


def _delete(connection: sqlite3.Connection, table: str, of_files: str) -> None:
    """Delete the rows of files, a few thousand at a time.

    SQLite keeps in memory what it needs to undo a statement: for a large file, half its size.
    """
    kept = upserts.CONDITIONS.get(table, "0")
    rows = (
        f"select rowid from {table} where file_id {of_files} and not ({kept})"
        f" limit {_DELETED_AT_ONCE}"
    )
    while (
        connection.execute(f"delete from {table} where rowid in ({rows})").rowcount
        == _DELETED_AT_ONCE
    ):
        pass


def remove_files(connection: sqlite3.Connection, touched: Touched, file_ids: Iterable[int]) -> None:
    """Remove files with everything that was read from them, as if they had never existed."""
    ids = list(file_ids)
    for file_id in ids:
        _touch_neighbours(connection, touched, file_id)
        clear_rows(connection, touched, file_id)
        archive.clear(connection, file_id)
        for table, condition in upserts.CONDITIONS.items():
            connection.execute(f"delete from {table} where file_id = ? and {condition}", (file_id,))
        projects.remove_file(connection, file_id)
        connection.execute(  # as if only the name of the team's directory were known
            "update teams set name = key, description = null, created_at = null,"
            " lead_agent_key = null, lead_session_key = null, lead_session_id = null,"
            " file_id = null where file_id = ?",
            (file_id,),
        )
        connection.execute(
            "update sources set cleanup_period_days = null where id ="
            " (select source_id from files where id = ? and kind = 'settings')",
            (file_id,),
        )
    places = connection.execute(
        f"select distinct source_id, path from files where id in ({id_list(ids)})"
    ).fetchall()
    connection.executemany("delete from files where id = ?", ((file_id,) for file_id in ids))
    touched.files.difference_update(ids)
    touched.shared.difference_update(ids)
    for place in places:
        _renumber(connection, *place)
    connection.execute(
        "delete from teams where not exists (select 1 from files f where f.team_id = teams.id)"
    )
    drop_empty_sessions(connection, touched)


def remove_entries(
    connection: sqlite3.Connection, touched: Touched, since: str, before: str
) -> None:
    """Remove the entries of lists that went at `since` or later, but before `before`."""
    for table in upserts.CONDITIONS:
        rows = connection.execute(
            f"select distinct file_id from {table}"
            " where gone_at >= ? and gone_at < ? and file_id is not null",
            (since, before),
        ).fetchall()
        for (file_id,) in rows:
            touched.before_clearing(connection, file_id)
            note_groups(connection, touched, file_id)
            touched.files.add(file_id)
        connection.execute(
            f"delete from {table} where gone_at >= ? and gone_at < ?", (since, before)
        )
    drop_empty_sessions(connection, touched)


def _touch_neighbours(connection: sqlite3.Connection, touched: Touched, file_id: int) -> None:
    """Record the files that depend on this one: those that state a dependency of its tasks, list
    its chats, have prompts into which its text was pasted, or messages of the team's lead."""
    rows = connection.execute(
        "select o.file_id from task_links l join task_links o on o.list_key = l.list_key"
        " where l.file_id = ?1 and o.file_id <> ?1"
        " union select o.id from files f join files o on o.source_id = f.source_id"
        f" where f.id = ?1 and o.id <> ?1 and f.kind in {_LISTS} and o.kind in {_LISTS}"
        " union select i.file_id from pastes p join prompts i"
        " on instr(i.paste_hashes, p.hash) where p.file_id = ?1"
        " union select i.file_id from teams t join inbox_items i"
        " on i.session_id = t.lead_session_id where t.file_id = ?1",
        (file_id,),
    ).fetchall()
    touched.files.update(neighbour for (neighbour,) in rows)
    rows = connection.execute(
        "select e.project_id from files f join files o on o.source_id = f.source_id"
        f" and o.kind in {_LISTS} join project_entries e on e.file_id = o.id"
        f" where f.id = ? and f.kind in {_LISTS} and e.project_id is not null",
        (file_id,),
    ).fetchall()
    touched.projects.update(project for (project,) in rows)


def _renumber(connection: sqlite3.Connection, source_id: int, path: str) -> None:
    """Number the remaining generations of a path from 0, as a sync of them alone would."""
    rows = connection.execute(
        "select id from files where source_id = ? and path = ? order by generation",
        (source_id, path),
    ).fetchall()
    connection.executemany(
        "update files set generation = ? where id = ?",
        ((number, file_id) for number, (file_id,) in enumerate(rows)),
    )


def drop_empty_sessions(connection: sqlite3.Connection, touched: Touched) -> None:
    """Remove changed sessions that are no longer referenced.

    This runs before anything is derived: a reference by key then means the session with that key in
    another root, if there is one, and those sessions are derived again, and so are their forks.
    """
    is_touched = f"id in ({id_list(touched.sessions)})"
    rows = connection.execute(
        "select o.id from sessions s join sessions o on o.session_key = s.session_key"
        f" where s.{is_touched}"
        f" union select id from sessions where forked_from in ({id_list(touched.sessions)})"
    ).fetchall()
    touched.sessions.update(session for (session,) in rows)
    is_empty = (
        f"{is_touched} and not exists (select 1 from files f where f.session_id = sessions.id)"
        " and not exists (select 1 from session_entries e where e.session_id = sessions.id)"
    )
    rows = connection.execute(
        f"select project_id from sessions where {is_empty} and project_id is not null"
    ).fetchall()
    touched.projects.update(project for (project,) in rows)
    connection.execute(f"delete from sessions where {is_empty}")
