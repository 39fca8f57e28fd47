"""The only writer. A batch is one transaction: rows, index rows, archive, checkpoints.

`Batch` takes the records of many files, about 32 MB of input, and writes them in bulk:

1. a file is registered: its row, and the session, subagent and project that its path names;
2. a rewritten file loses its rows and its archive;
3. records are gathered and inserted with `executemany`, the ids of messages given here, so that
   tool calls can refer to them;
4. at the end the checkpoints are written, the derived facts of what was touched are refreshed
   (`derive`), the new messages enter the full-text index with one statement, and all is committed.

A kill anywhere leaves the database as it was before the batch, or as it is after. Any error of
SQLite ends the batch: going on after one row failed would commit rows without their checkpoint.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..derive import agents, unnamed_results
from ..derive.changeset import Touched
from ..derive.refresh import refresh
from ..derive.statements import note_groups
from ..errors import BusyError
from ..files import archive, lost
from ..files.archive import Frame
from ..files.exclusions import LEFT_OUT
from ..files.stored_names import NO_TIME
from ..files.tail import Prefix
from ..files.walk import Found, Place
from ..records import (
    Agent,
    AgentLine,
    Document,
    Issue,
    Message,
    Plan,
    ProjectEntry,
    Record,
    Retention,
    SessionEntry,
    Statement,
    Team,
    ToolCall,
    ToolResultFile,
    Transcript,
    Usage,
)
from ..source import Checkpoint, Claim, KnownFile
from ..when import from_milliseconds
from . import upserts
from .delete import clear_rows, remove_entries, remove_files
from .fts import MESSAGE_COLUMNS
from .inserts import (
    CONTEXT,
    COUNTS,
    FORGIVE_ODD_TIME,
    INSERTS,
    NOTE_ODD_TIME,
    WRITE_CHECKPOINT,
    tool_call_row,
    write_tool_calls,
)

BATCH_BYTES = 16 * 1024 * 1024
"""Input after which a batch is committed."""

FILE_BYTES = 4 * 1024
"""What a file counts for beside its bytes: a hundred thousand of one line each would else be one
batch, which holds something in memory for each of them."""

_R = TypeVar("_R")

_FLUSH_BYTES = 8 * 1024 * 1024  # input whose records are held in memory before they are inserted
_INDEXED_AT_ONCE = 20_000  # messages; SQLite keeps in memory what it needs to undo a statement
_OTHER_WRITER = "Another process wrote to the database meanwhile. Sync again."
_SAMPLED_ISSUES = 100  # quarantined pieces of one file that keep a sample


@dataclass(slots=True)
class OpenFile:
    """A file that takes part in the batch: its references, and what changes in its row."""

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
    """The file was read to its end: its stat may be believed."""
    is_kept: bool = False
    """Its records come from the archive: what its row says of the disk stays."""
    gone_at: str | None = None
    """Since when it is missing, if its records come from the archive."""
    has_entries: bool = False
    """Entries of it may be there that what is read now has to be held against, see `upserts`."""
    context: str | None = None
    """What the lines that were read leave to those that follow; see `source.Context`."""
    written: Prefix | None = None
    """Where the batch before ended, if the file goes on in this one."""


@dataclass(slots=True)
class Written:
    """What a batch wrote."""

    rows: int = 0
    issues: int = 0
    quarantined: int = 0


@dataclass
class Batch:
    """One transaction: `open_file`, `add` per stretch, then `prepare` and `finish`."""

    connection: sqlite3.Connection
    now: str
    written: Written = field(default_factory=Written)
    input_bytes: int = 0

    def __post_init__(self) -> None:
        self._pending: dict[type, list[Any]] = {}
        self._pending_bytes = 0
        self._calling: set[int] = set()  # files that have tool calls among what is pending
        self._files: dict[int, OpenFile] = {}
        self._touched = Touched()
        self.connection.execute("begin immediate")
        (last, unmatched) = self.connection.execute(
            "select (select max(id) from messages), exists (select 1 from unmatched_results)"
        ).fetchone()
        self._first_id = self._next_id = (last or 0) + 1
        self._has_unmatched = bool(unmatched)

    # -- files -----------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Has the batch as much input as one transaction should have?"""
        return self.input_bytes >= BATCH_BYTES

    def open_file(
        self,
        source_id: int,
        found: Found,
        claim: Claim,
        known: KnownFile | None,
        prefix: Prefix | None,
        *,
        generation: int = 0,
        is_rewritten: bool = False,
    ) -> OpenFile:
        """Take a file into the batch; `known` is its row, `prefix` where its reading continues.

        A rewritten file loses what was read of it. A prefix of None is that of a document that
        cannot be read at present: it keeps its rows, and all it gets is the issue that says so.
        """
        session_key = claim.session_key
        if session_key is None and known is not None and not is_rewritten:
            session_key = known.session_key
        file = OpenFile(0, source_id, claim, found, None, None, session_key, prefix)
        if known is not None:
            self._expect(known.id, known.checkpoint.offset, known.checkpoint.prefix_crc)
            lost.settle_path(self.connection, known.id)
        file.id = known.id if known else self._insert_file(file, generation)
        if known is not None and not is_rewritten:
            file.context = known.context
        if is_rewritten:
            self._begin_anew(file.id)
            file.has_entries = True
        elif prefix is None:
            self._forgive(file.id)
        self._refer(file)
        if known is not None and known.path != found.path:
            self._touched.moved.add(file.id)
            # The first of its new path; at the old one it may have followed one that is gone.
            self.connection.execute("update files set generation = 0 where id = ?", (file.id,))
        self._take_in(file)
        return file

    def close_file(self, file: OpenFile) -> None:
        """Note that a file was read to its end; an earlier batch may have its last part."""
        file.is_read = True
        self._take_in(file)

    def _take_in(self, file: OpenFile) -> None:
        if file.id not in self._files:
            self.input_bytes += FILE_BYTES
            if file.written is not None:
                self._expect(file.id, file.written.offset, file.written.crc)
        self._files[file.id] = file
        self._touched.files.add(file.id)

    def _expect(self, file_id: int, offset: int, crc: int) -> None:
        """Raise BusyError unless the file was read as far as the reading that follows assumes.

        The lock file keeps a second writer away, but not on every file system. Without this look,
        two writers that read the same lines would both count them.
        """
        row = self.connection.execute(
            "select offset, prefix_crc from files where id = ?", (file_id,)
        ).fetchone()
        if row != (offset, crc):
            raise BusyError(_OTHER_WRITER)

    def note_stat(self, known: KnownFile, found: Found, *, is_document: bool) -> None:
        """Remember how the directory shows a file whose content is as it was read.

        A document may have been broken meanwhile: now that it is whole again, no issue says so.
        """
        lost.settle_path(self.connection, known.id)
        if is_document:
            self._forgive(known.id)
            self._touched.files.add(known.id)
        self._note_times({known.id: found})
        self.connection.execute(
            f"update files set {COUNTS}, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?,"
            " device = ?, mtime = ? where id = ?",
            (
                found.size, found.mtime_ns, found.ctime_ns, found.inode, found.device,
                _modified_at(found), known.id,
            ),
        )  # fmt: skip

    def _insert_file(self, file: OpenFile, generation: int) -> int:
        found, claim = file.found, file.claim
        cursor = self.connection.execute(
            "insert into files (path, kind, size, offset, line_count, issue_count,"
            " first_seen_at, last_synced_at, agent_key, project_key, workflow, generation,"
            " inode, device, mtime_ns, ctime_ns, prefix_crc, source_id)"
            " values (?, ?, ?, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?)"
            " on conflict do nothing",
            (
                found.path, claim.kind, found.size, self.now, self.now, claim.agent_key,
                claim.project_key, claim.workflow, generation, found.inode, found.device,
                file.source_id,
            ),
        )  # fmt: skip
        if not cursor.rowcount:
            raise BusyError(_OTHER_WRITER)
        return int(cursor.lastrowid or 0)

    def _refer(self, file: OpenFile) -> None:
        """Fill the references of a file: project, session and subagent, made where missing."""
        claim = file.claim
        source = file.source_id
        if claim.project_key is not None:
            file.project_id = self._identify("projects", source_id=source, key=claim.project_key)
            self._name_project(file.project_id, claim)
        if claim.team_key is not None:
            file.team_id = self._identify("teams", source_id=source, key=claim.team_key)
        if file.session_key is not None:
            file.session_id = self._session(source, file.session_key)
        if claim.agent_key is not None:
            file.subagent_id = self._subagent(source, file.session_key, claim)
        self.connection.execute(
            "update files set path = ?, kind = ?, project_key = ?, workflow = ?, team_key = ?,"
            " session_key = ?, session_id = ?, subagent_id = ?, project_id = ?, team_id = ?"
            " where id = ?",
            (
                file.found.path, claim.kind, claim.project_key, claim.workflow, claim.team_key,
                file.session_key, file.session_id, file.subagent_id, file.project_id,
                file.team_id, file.id,
            ),
        )  # fmt: skip

    def _session(self, source_id: int, session_key: str) -> int:
        session_id = self._identify("sessions", source_id=source_id, session_key=session_key)
        self._touched.sessions.add(session_id)
        return session_id

    def _name_project(self, project_id: int, claim: Claim) -> None:
        # Until a line states the real path, the directory's own name is all there is.
        self.connection.execute(
            "update projects set name = coalesce(name, ?) where id = ?",
            (claim.project_directory, project_id),
        )

    def _identify(self, table: str, **key: object) -> int:
        """Return the id of the row with this key, inserted if there is none."""
        where = " and ".join(f"{column} = :{column}" for column in key)
        row = self.connection.execute(f"select id from {table} where {where}", key).fetchone()
        if row is not None:
            return int(row[0])
        if table == "teams":  # its configuration may never come: the directory's name is a name
            key["name"] = key["key"]
        columns, values = ", ".join(key), ", ".join(f":{column}" for column in key)
        cursor = self.connection.execute(f"insert into {table} ({columns}) values ({values})", key)
        return int(cursor.lastrowid or 0)

    def _subagent(self, source_id: int, session_key: str | None, claim: Claim) -> int:
        key = (source_id, session_key or "", claim.agent_key)
        row = self.connection.execute(
            "select id from subagents"
            " where source_id = ? and coalesce(session_key, '') = ? and agent_key = ?",
            key,
        ).fetchone()
        if row is not None:
            return int(row[0])
        cursor = self.connection.execute(
            "insert into subagents (source_id, session_key, agent_key, kind, workflow)"
            " values (?, ?, ?, 'task', ?)",
            (source_id, session_key, claim.agent_key, claim.workflow),
        )
        return int(cursor.lastrowid or 0)

    def _begin_anew(self, file_id: int) -> None:
        """Remove all that was read from a file; what others derived from it is refreshed."""
        self._flush()
        clear_rows(self.connection, self._touched, file_id)
        archive.clear(self.connection, file_id)
        self.connection.execute(
            "update files set offset = 0, line_count = 0, issue_count = 0, own_since = null"
            " where id = ?",
            (file_id,),
        )

    def open_archived(
        self, source_id: int, claim: Claim, known: KnownFile, *, keeps_rows: bool = False
    ) -> OpenFile:
        """Take in a file that is read again from its archive: rows go, archive and stat stay.

        With `keeps_rows`, only what is missing is going to be added.
        """
        found = Found(
            tuple(known.path.split("/")), "", known.size, known.mtime_ns, known.ctime_ns,
            known.inode, known.device,
        )  # fmt: skip
        file = OpenFile(
            known.id, source_id, claim, found, None, None, known.session_key, None, is_kept=True,
            gone_at=known.gone_at, has_entries=True, context=known.context,
        )  # fmt: skip
        self._flush()
        if not keeps_rows:
            clear_rows(self.connection, self._touched, file.id)
        self.connection.execute("update files set own_since = null where id = ?", (file.id,))
        self._refer(file)
        self._take_in(file)
        return file

    def touch(self, file_id: int) -> None:
        """Note that rows of a file are about to change."""
        self._flush()
        self._touched.before_clearing(self.connection, file_id)
        note_groups(self.connection, self._touched, file_id)
        self._touched.files.add(file_id)

    def remove(self, file_ids: Iterable[int]) -> None:
        """Remove files with everything that was read of them, and what only followed from them."""
        self._flush()
        remove_files(self.connection, self._touched, file_ids)

    def remove_entries(self, since: str, before: str) -> None:
        """Remove the entries of lists that are gone since a time between these two."""
        self._flush()
        remove_entries(self.connection, self._touched, since, before)

    def _forgive(self, file_id: int) -> None:
        """Remove the issue of a document that could not be read: it is looked at again."""
        self.connection.execute(
            "delete from issues where file_id = ? and quarantined = 1", (file_id,)
        )

    def mark_gone(self, file_ids: Iterable[int]) -> None:
        """Note that files are missing since now; their rows stay."""
        ids = list(file_ids)
        self.connection.executemany(
            "update files set gone_at = max(?, last_synced_at, first_seen_at) where id = ?",
            [(self.now, id_) for id_ in ids],
        )
        for file_id in ids:
            upserts.mark_file_gone(self.connection, file_id, self.now)
            agents.mark_file_gone(self.connection, file_id, self.now)
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
        """Append a stretch of `size` bytes to a file: what it means, its bytes, where it ends.

        The file may have been opened in the batch before this one. What its lines leave to those
        that follow is set in `OpenFile.context`.
        """
        self._take_in(file)
        if frames:
            archive.append(self.connection, file.id, frames)
            if file.prefix is not None and file.prefix.offset:
                archive.merge(self.connection, file.id, file.prefix.offset)
        file.prefix = prefix
        self.input_bytes += size
        self._pending_bytes += size
        self._append_records(file, records)
        if self._pending_bytes >= _FLUSH_BYTES:
            self._flush()

    def _append_records(self, file: OpenFile, records: Iterable[Record]) -> None:
        by_type: dict[type, list[Any]] = {}
        for record in records:
            by_type.setdefault(record.__class__, []).append(record)
        for transcript in _of(Transcript, by_type):
            self._take_transcript(file, transcript)
        agents = self._agents_at(file, _of(AgentLine, by_type))
        ids = self._append_messages(file, _of(Message, by_type), agents)
        self._append_tool_calls(file, _of(ToolCall, by_type), ids, agents)
        self._touched.responses.update(use.response_key for use in _of(Usage, by_type))
        by_type[Issue] = self._counted_issues(file, _of(Issue, by_type))
        if Statement in by_type:
            self._touched.stated.add(file.id)
        self._apply_documents(file, by_type)
        self._apply_entries(file, by_type)
        for kind, rows in by_type.items():
            if kind in INSERTS and kind not in (Message, ToolCall):
                names = CONTEXT.get(kind, ())
                if kind is SessionEntry:
                    bound = [(file.id, *self._references(file, row, names), *row) for row in rows]
                else:
                    references = [getattr(file, name) for name in names]
                    bound = [(file.id, *references, *row) for row in rows]
                self._pending.setdefault(kind, []).extend(bound)

    def _apply_documents(self, file: OpenFile, by_type: dict[type, list[Any]]) -> None:
        """Apply what is not simply inserted, and fill in what the directory tells."""
        if file.claim.kind in agents.LISTING_KINDS and file.prefix is not None:
            listed = by_type.pop(Agent, [])
            agents.apply_agents(self.connection, file.id, file.source_id, listed, self.now)
        for team in _of(Team, by_type):
            self.connection.execute(
                "update teams set name = ?, description = ?, created_at = ?, lead_agent_key = ?,"
                " lead_session_key = ?, file_id = ? where id = ?",
                (*team, file.id, file.team_id),
            )
        for retention in _of(Retention, by_type):
            self.connection.execute(
                "update sources set cleanup_period_days = ? where id = ?",
                (*retention, file.source_id),
            )
        modified_at = _modified_at(file.found)
        for kind in (Plan, Document):
            if rows := by_type.get(kind):
                by_type[kind] = [
                    row._replace(modified_at=row.modified_at or modified_at) for row in rows
                ]
        if files := by_type.get(ToolResultFile):
            by_type[ToolResultFile] = [row._replace(size=file.found.size) for row in files]

    def _apply_entries(self, file: OpenFile, by_type: dict[type, list[Any]]) -> None:
        """Make the entries of a list those that it names now; take them out of `by_type`."""
        had_entries, file.has_entries = file.has_entries, False
        # What was whole when it was read, and is broken for this program, keeps its rows.
        is_broken = file.is_kept and any(i.quarantined for i in _of(Issue, by_type))
        version = upserts.Version(file.id, file.source_id, self.now, file.is_kept, file.gone_at)
        for kind in upserts.ENTRIES:
            if kind not in by_type and not had_entries:
                continue
            entries, by_type[kind] = upserts.parted(by_type.get(kind, ()))
            if (entries or had_entries) and not is_broken:
                names = upserts.ENTRIES[kind].references
                rows = [(tuple(self._references(file, entry, names)), entry) for entry in entries]
                upserts.apply(self.connection, kind, version, rows)

    def _references(self, file: OpenFile, record: Record, names: Sequence[str]) -> list[int | None]:
        """Return the ids that a row has beside its record: those of its file, or what it names."""
        ids = {name: getattr(file, name) for name in names}
        key = None
        if isinstance(record, SessionEntry):
            ids["session_id"] = self._session(file.source_id, record.session_key)
            key = record.project_key
        elif isinstance(record, ProjectEntry):
            key = record.key
        if key is not None:
            ids["project_id"] = self._identify("projects", source_id=file.source_id, key=key)
            self._touched.projects.add(ids["project_id"])
        return list(ids.values())

    def _take_transcript(self, file: OpenFile, transcript: Transcript) -> None:
        if file.session_key is None and transcript.stated_session_key is not None:
            file.session_key = transcript.stated_session_key
            self._learn_session(file)
        if transcript.sidechain_count and file.claim.kind == "transcript":
            self._touched.sidechains.add(file.id)
        if transcript.session_kind is not None:
            before = self.connection.execute(
                "select session_kind from transcripts where file_id = ?", (file.id,)
            ).fetchone()
            if before is not None and before[0] != transcript.session_kind:
                self._touched.moved.add(file.id)

    def _agents_at(self, file: OpenFile, lines: Sequence[AgentLine]) -> dict[int, int]:
        """Return the subagents of lines that are theirs, by offset; made where missing."""
        keys: dict[str, int] = {}
        for line in lines:
            if line.agent_key not in keys:
                claim = replace(file.claim, agent_key=line.agent_key)
                keys[line.agent_key] = self._subagent(file.source_id, file.session_key, claim)
        return {line.byte_offset: keys[line.agent_key] for line in lines}

    def _append_messages(
        self, file: OpenFile, messages: Iterable[Message], agents: Mapping[int, int]
    ) -> dict[tuple[int, int] | None, int]:
        """Take messages in; return the ids of tool blocks by their position."""
        ids: dict[tuple[int, int] | None, int] = {}
        next_id = self._next_id
        file_id, session_id, subagent_id = file.id, file.session_id, file.subagent_id
        rows = self._pending.setdefault(Message, [])
        for message in messages:
            agent = agents.get(message.byte_offset, subagent_id) if agents else subagent_id
            rows.append((next_id, file_id, session_id, agent, *message))
            if message.kind == "tool_use" or message.kind == "tool_result":
                ids[message.byte_offset, message.block] = next_id
            next_id += 1
        self.written.rows += next_id - self._next_id
        self._next_id = next_id
        return ids

    def _append_tool_calls(
        self,
        file: OpenFile,
        calls: Sequence[ToolCall],
        ids: dict[tuple[int, int] | None, int],
        agents: Mapping[int, int],
    ) -> None:
        if not calls:
            return
        if file.id in self._calling:  # halves of a call meet in the table, not among what waits
            self._flush()
        self._calling.add(file.id)
        if self._has_unmatched:
            unnamed_results.take_back(self.connection, file.id)
        rows = self._pending.setdefault(ToolCall, [])
        for call in calls:
            blocks = (ids.get(call.call), ids.get(call.result))  # of a half, one is None
            if call.result is not None:
                self._touched.answered.setdefault(file.id, set()).add(call.tool_use_id)
            subagent = agents.get(call.byte_offset, file.subagent_id)
            rows.append(tool_call_row(call, blocks, (file.id, file.session_id, subagent)))

    def _counted_issues(self, file: OpenFile, issues: list[Issue]) -> list[Issue]:
        """Count issues; past the hundredth quarantined piece of a file, drop the samples."""
        quarantined = sum(issue.quarantined for issue in issues)
        self.written.issues += len(issues)
        # What is left out on purpose is a piece without a record, but no failure to report.
        self.written.quarantined += sum(i.quarantined for i in issues if i.reason != LEFT_OUT)
        if not quarantined:
            return issues
        self._flush()  # issues of earlier stretches are counted in the table
        (before,) = self.connection.execute(
            "select count(*) from issues where file_id = ? and quarantined = 1", (file.id,)
        ).fetchone()
        kept = []
        for issue in issues:
            before += issue.quarantined
            is_bare = issue.quarantined and before > _SAMPLED_ISSUES
            kept.append(issue._replace(sample=None) if is_bare else issue)
        return kept

    def _learn_session(self, file: OpenFile) -> None:
        """Refer an agent file to the session that its lines name, where its path names none."""
        self._flush()
        self._refer(file)
        for table in ("messages", "tool_calls"):
            self.connection.execute(
                f"update {table} set session_id = ?, subagent_id = ? where file_id = ?",
                (file.session_id, file.subagent_id, file.id),
            )
        for table in ("links", "file_snapshots", "inbox_items"):
            self.connection.execute(
                f"update {table} set session_id = ? where file_id = ?", (file.session_id, file.id)
            )

    def _flush(self) -> None:
        """Insert the gathered rows."""
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        self._calling.clear()
        for kind in INSERTS:
            if rows := pending.get(kind):
                if kind is ToolCall:
                    write_tool_calls(self.connection, rows)
                else:
                    self.connection.executemany(INSERTS[kind], rows)

    # -- the end ---------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Write the rows that are left, derived facts and checkpoints."""
        self._flush()
        self._write_checkpoints()
        self._touched.first_message_id = self._first_id
        refresh(self.connection, self._touched)

    def finish(self) -> Written:
        """Index the new messages and commit: a few long statements, which SQLite runs alone."""
        for table in ("messages_fts", "messages_cjk_fts"):
            self._index(table)
        self.connection.execute("commit")
        return self.written

    def rollback(self) -> None:
        """Leave the database as it was before the batch."""
        if self.connection.in_transaction:
            self.connection.execute("rollback")

    def _index(self, table: str) -> None:
        content = "messages" if table == "messages_fts" else "messages_cjk"
        for first in range(self._first_id, self._next_id, _INDEXED_AT_ONCE):
            self.connection.execute(
                f"insert into {table} (rowid, {MESSAGE_COLUMNS})"
                f" select id, {MESSAGE_COLUMNS} from {content} where id >= ? and id < ?",
                (first, min(first + _INDEXED_AT_ONCE, self._next_id)),
            )

    def _note_times(self, files: Mapping[int, Found]) -> None:
        """Leave an issue at each of these files whose time is left out, and at no other."""
        timed = {id_: found for id_, found in files.items() if found.mtime_ns != NO_TIME}
        odd = {id_ for id_, found in timed.items() if _modified_at(found) is None}
        self.connection.executemany(FORGIVE_ODD_TIME, ((id_,) for id_ in timed.keys() - odd))
        noted = self.connection.executemany(NOTE_ODD_TIME, ((id_,) for id_ in sorted(odd)))
        self.written.issues += max(0, noted.rowcount)

    def _write_checkpoints(self) -> None:
        files = self._files.values()
        self._note_times({file.id: file.found for file in files})
        self.connection.executemany(
            WRITE_CHECKPOINT, (self._checkpoint(file) for file in files if not file.is_kept)
        )
        self.connection.executemany(
            f"update files set {COUNTS}, context = ? where id = ?",
            ((file.context, file.id) for file in files if file.is_kept),
        )
        for file in self._files.values():
            file.written = file.prefix

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
            "now": self.now,
            "mtime": _modified_at(found),
            # One that was read in part looks changed to the next sync.
            "mtime_ns": found.mtime_ns if file.is_read else NO_TIME,
            "ctime_ns": found.ctime_ns,
            "inode": found.inode,
            "device": found.device,
        }


def _modified_at(found: Found) -> str | None:
    """Return the time of a file as text, None if it is no time that anybody means."""
    return from_milliseconds(found.mtime_ns // 1_000_000)


def _of(kind: type[_R], by_type: dict[type, list[Any]]) -> list[_R]:
    return by_type.get(kind, [])


_KNOWN = (
    "select id, path, kind, generation, size, mtime_ns, ctime_ns, inode, device, gone_at,"
    " session_key, agent_key, offset, head_hash, tail_hash, prefix_crc, context from files"
)


def known_files(
    connection: sqlite3.Connection, source_id: int, place: Place | None = None
) -> Iterator[KnownFile]:
    """Yield every generation of every path of a source, or of a place in it; the newest last."""
    where, start = "source_id = :source", ""
    if place is not None and place.parts:
        start = f"{'/'.join(place.parts)}/"
        where += " and path > :start and path < :end"  # '0' is the letter behind '/'
    if place is not None and not place.is_deep:
        where += " and instr(substr(path, length(:start) + 1), '/') = 0"
    rows = connection.execute(
        f"{_KNOWN} where {where} order by path, generation",
        {"source": source_id, "start": start, "end": f"{start[:-1]}0"},
    )
    return map(_known, rows)


def known_file(connection: sqlite3.Connection, file_id: int) -> KnownFile | None:
    """Return one file, None if it is no longer there."""
    row = connection.execute(f"{_KNOWN} where id = ?", (file_id,)).fetchone()
    return _known(row) if row is not None else None


def _known(row: Sequence[Any]) -> KnownFile:
    fields: list[Any] = [*row[:12], Checkpoint(*row[12:16]), row[16]]
    return KnownFile(*fields)
