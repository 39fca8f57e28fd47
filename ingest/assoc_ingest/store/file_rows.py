"""The rows of `files` and what they refer to: sessions, subagents, projects, teams."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..derive.changeset import Touched
from ..errors import BusyError
from ..files.stored_names import NO_TIME
from ..files.tail import Prefix
from ..files.walk import Found
from ..source import Claim, KnownFile, parts_of
from ..when import from_milliseconds
from .inserts import CLEAR_ODD_TIME, COUNTS, NOTE_ODD_TIME, WRITE_CHECKPOINT

_OTHER_WRITER = "Another process has written to the database in the meantime. Run sync again."


@dataclass(slots=True)
class OpenFile:
    """A file of the batch: its references, and what changes in its row."""

    id: int
    source_id: int
    claim: Claim
    found: Found
    session_id: int | None
    subagent_id: int | None
    session_key: str | None
    prefix: Prefix | None
    project_id: int | None = None
    team_id: int | None = None
    is_read: bool = False
    """The file was read to its end, so its stat can be stored."""
    is_kept: bool = False
    """Its records come from the archive: what its row says about the disk stays."""
    gone_at: str | None = None
    """When it went missing, if its records come from the archive."""
    has_entries: bool = False
    """It may have entries from earlier, with which those read now are compared; see `upserts`."""
    is_empty: bool = False
    """No rows were read from it so far."""
    context: str | None = None
    """What later lines need to know of those that were read; see `source.Context`."""
    written: Prefix | None = None
    """Where the previous batch ended, if the file continues in this one."""


def archived(source_id: int, claim: Claim, known: KnownFile) -> OpenFile:
    """Return a file whose records come from its archive: its archive and its stat stay."""
    found = Found(
        parts_of(known.path), "", known.size, known.mtime_ns, known.ctime_ns, known.inode,
        known.device,
    )  # fmt: skip
    return OpenFile(
        known.id, source_id, claim, found, None, None, known.session_key, None, is_kept=True,
        gone_at=known.gone_at, context=known.context,
    )  # fmt: skip


_REFERENCES = (
    *("path", "kind", "project_key", "workflow", "team_key", "session_key", "agent_key"),
    *("session_id", "subagent_id", "project_id", "team_id"),
)
"""What the row of a file says of its place, and of what follows from it."""

_OF_NEW = (
    *(*_REFERENCES, "size", "generation", "inode", "device"),
    *("first_seen_at", "last_synced_at", "source_id"),
)


def _references(file: OpenFile) -> tuple[object, ...]:
    claim = file.claim
    return (
        file.found.path, claim.kind, claim.project_key, claim.workflow, claim.team_key,
        file.session_key, claim.agent_key, file.session_id, file.subagent_id, file.project_id,
        file.team_id,
    )  # fmt: skip


class FileRows:
    """Writes the rows of files in the transaction of a batch."""

    def __init__(self, connection: sqlite3.Connection, touched: Touched, now: str) -> None:
        self._connection = connection
        self._touched = touched
        self._now = now

    def insert(self, file: OpenFile, generation: int) -> int:
        """Insert the row of a new file with its references. Raises BusyError if there is one."""
        self._find_references(file)
        found = file.found
        cursor = self._connection.execute(
            f"insert into files ({', '.join(_OF_NEW)}, offset, line_count, issue_count, mtime_ns,"
            f" ctime_ns, prefix_crc, file_key) values ({', '.join('?' * len(_OF_NEW))},"
            " 0, 0, 0, 0, 0, 0, randomblob(16)) on conflict do nothing",
            (
                *_references(file), found.size, generation, found.inode, found.device,
                self._now, self._now, file.source_id,
            ),
        )  # fmt: skip
        if not cursor.rowcount:
            raise BusyError(_OTHER_WRITER)
        return int(cursor.lastrowid or 0)

    def expect(self, file_id: int, offset: int, crc: int) -> None:
        """Raise BusyError if the stored checkpoint is not the one from which reading continued.

        The lock file keeps a second writer away, but not on every file system. Without this check,
        two writers that read the same lines would both store them.
        """
        row = self._connection.execute(
            "select offset, prefix_crc from files where id = ?", (file_id,)
        ).fetchone()
        if row != (offset, crc):
            raise BusyError(_OTHER_WRITER)

    def refer(self, file: OpenFile) -> None:
        """Fill in the references of a file; insert the project, session or subagent if missing."""
        self._find_references(file)
        self._connection.execute(
            f"update files set {' = ?, '.join(_REFERENCES)} = ? where id = ?",
            (*_references(file), file.id),
        )

    def _find_references(self, file: OpenFile) -> None:
        claim = file.claim
        source = file.source_id
        if claim.project_key is not None:
            file.project_id = self.identify("projects", source_id=source, key=claim.project_key)
            self._name_project(file.project_id, claim)
        if claim.team_key is not None:
            file.team_id = self.identify("teams", source_id=source, key=claim.team_key)
        if file.session_key is not None:
            file.session_id = self.session(source, file.session_key)
        if claim.agent_key is not None:
            file.subagent_id = self.subagent(source, file.session_key, claim)

    def session(self, source_id: int, session_key: str) -> int:
        """Return the id of a session, inserted if it is missing; it is derived again later."""
        session_id = self.identify("sessions", source_id=source_id, session_key=session_key)
        self._touched.sessions.add(session_id)
        return session_id

    def _name_project(self, project_id: int, claim: Claim) -> None:
        # Until a line states the real path, only the name of the directory is known.
        self._connection.execute(
            "update projects set name = coalesce(name, ?) where id = ?",
            (claim.project_directory, project_id),
        )

    def identify(self, table: str, **key: object) -> int:
        """Return the id of the row with this key, inserted if there is none."""
        where = " and ".join(f"{column} = :{column}" for column in key)
        row = self._connection.execute(f"select id from {table} where {where}", key).fetchone()
        if row is not None:
            return int(row[0])
        if table == "teams":  # it may never get a configuration: the directory's name must do
            key["name"] = key["key"]
        columns, values = ", ".join(key), ", ".join(f":{column}" for column in key)
        cursor = self._connection.execute(f"insert into {table} ({columns}) values ({values})", key)
        return int(cursor.lastrowid or 0)

    def subagent(self, source_id: int, session_key: str | None, claim: Claim) -> int:
        """Return the id of the subagent that a claim names, inserted if it is missing."""
        key = (source_id, session_key or "", claim.agent_key)
        row = self._connection.execute(
            "select id from subagents"
            " where source_id = ? and coalesce(session_key, '') = ? and agent_key = ?",
            key,
        ).fetchone()
        if row is not None:
            return int(row[0])
        cursor = self._connection.execute(
            "insert into subagents (source_id, session_key, agent_key, kind, workflow)"
            " values (?, ?, ?, 'task', ?)",
            (source_id, session_key, claim.agent_key, claim.workflow),
        )
        return int(cursor.lastrowid or 0)

    def clear_unreadable(self, file_id: int) -> None:
        """Remove the issue of a document that could not be parsed: it is read again."""
        self._connection.execute(
            "delete from issues where file_id = ? and quarantined = 1", (file_id,)
        )

    def reset(self, file_id: int) -> None:
        """Record that nothing has been read of a file."""
        self._connection.execute(
            "update files set offset = 0, line_count = 0, issue_count = 0, own_since = null"
            " where id = ?",
            (file_id,),
        )

    def note_stat(self, file_id: int, found: Found) -> int:
        """Store the stat of a file; return how many issues were added."""
        noted = self._note_times({file_id: found})
        self._connection.execute(
            f"update files set {COUNTS}, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?,"
            " device = ?, mtime = ? where id = ?",
            (
                found.size, found.mtime_ns, found.ctime_ns, found.inode, found.device,
                modified_at(found), file_id,
            ),
        )  # fmt: skip
        return noted

    def write_checkpoints(self, files: Collection[OpenFile]) -> int:
        """Store how far each file was read, and its counts; return how many issues were added."""
        noted = self._note_times({file.id: file.found for file in files})
        self._connection.executemany(
            WRITE_CHECKPOINT, (self._checkpoint(file) for file in files if not file.is_kept)
        )
        self._connection.executemany(
            f"update files set {COUNTS}, context = ? where id = ?",
            ((file.context, file.id) for file in files if file.is_kept),
        )
        for file in files:
            file.written = file.prefix
        return noted

    def _note_times(self, files: Mapping[int, Found]) -> int:
        """Add an issue to each of these files whose time is out of range; remove all others."""
        timed = {id_: found for id_, found in files.items() if found.mtime_ns != NO_TIME}
        odd = {id_ for id_, found in timed.items() if modified_at(found) is None}
        self._connection.executemany(CLEAR_ODD_TIME, ((id_,) for id_ in timed.keys() - odd))
        noted = self._connection.executemany(NOTE_ODD_TIME, ((id_,) for id_ in sorted(odd)))
        return max(0, noted.rowcount)

    def _checkpoint(self, file: OpenFile) -> dict[str, object]:
        found = file.found
        mark = file.prefix.checkpoint() if file.prefix else None
        return {
            "id": file.id,
            "size": found.size,
            "offset": mark.offset if mark else None,
            "head_hash": mark.head_hash if mark else None,
            "tail_hash": mark.tail_hash if mark else None,
            "prefix_crc": mark.prefix_crc if mark else None,
            "context": file.context,
            "now": self._now,
            "mtime": modified_at(found),
            # With no time, a file that was read in part looks changed to the next sync.
            "mtime_ns": found.mtime_ns if file.is_read else NO_TIME,
            "ctime_ns": found.ctime_ns,
            "inode": found.inode,
            "device": found.device,
        }


def modified_at(found: Found) -> str | None:
    """Return the modification time of a file as text, None if it is out of range."""
    return from_milliseconds(found.mtime_ns // 1_000_000)
