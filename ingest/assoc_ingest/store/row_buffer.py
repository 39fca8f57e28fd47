"""Gathers records as rows and inserts them in bulk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from ..derive import agents, unnamed_results
from ..derive.changeset import Touched
from ..files.exclusions import LEFT_OUT
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
from . import upserts
from .file_rows import FileRows, OpenFile, modified_at
from .inserts import CONTEXT, INSERTS, tool_call_row, write_tool_calls

_R = TypeVar("_R")

_FLUSH_BYTES = 8 * 1024 * 1024  # input whose records are held in memory before they are inserted
_SAMPLED_ISSUES = 100  # quarantined pieces of one file that keep a sample


@dataclass(slots=True)
class Written:
    """What a batch wrote."""

    rows: int = 0
    issues: int = 0
    quarantined: int = 0


class Text(NamedTuple):
    """What is indexed of a message."""

    id: int
    text: str | None
    tool_text: str | None
    has_invisible: int


_TEXT = len(CONTEXT[Message]) + 2 + Message._fields.index("text")  # in a row: id and file_id first
_HAS_INVISIBLE = _TEXT + Message._fields.index("has_invisible") - Message._fields.index("text")


class RowBuffer:
    """Turns the records of a batch into rows, and inserts them when there are enough."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        touched: Touched,
        file_rows: FileRows,
        now: str,
        *,
        keeps_texts: bool = False,
    ) -> None:
        """With `keeps_texts`, what is inserted into messages is kept in `texts`."""
        self._connection = connection
        self._touched = touched
        self._file_rows = file_rows
        self._now = now
        self.written = Written()
        self.texts: list[Text] = []
        self._keeps_texts = keeps_texts
        self._pending: dict[type, list[Any]] = {}
        self._bytes = 0
        self._calling: set[int] = set()  # files with pending tool calls
        self._later: list[tuple[object, ...]] = []  # pending calls that may have rows already
        (last, unmatched) = connection.execute(
            "select (select max(id) from messages), exists (select 1 from unmatched_results)"
        ).fetchone()
        self.first_id = self.next_id = (last or 0) + 1
        self._has_unmatched = bool(unmatched)

    def add(self, file: OpenFile, records: Iterable[Record], size: int) -> None:
        """Add the records of `size` bytes of a file."""
        self._append(file, records)
        self._bytes += size
        if self._bytes >= _FLUSH_BYTES:
            self.flush()

    def _append(self, file: OpenFile, records: Iterable[Record]) -> None:
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
        file.is_empty = False

    def _apply_documents(self, file: OpenFile, by_type: dict[type, list[Any]]) -> None:
        """Apply records that are not simply inserted; fill in what comes from the file's stat."""
        if file.claim.kind in agents.LISTING_KINDS and file.prefix is not None:
            listed = by_type.pop(Agent, [])
            agents.apply_agents(self._connection, file.id, file.source_id, listed, self._now)
        for team in _of(Team, by_type):
            self._connection.execute(
                "update teams set name = ?, description = ?, created_at = ?, lead_agent_key = ?,"
                " lead_session_key = ?, file_id = ? where id = ?",
                (*team, file.id, file.team_id),
            )
        for retention in _of(Retention, by_type):
            self._connection.execute(
                "update sources set cleanup_period_days = ? where id = ?",
                (*retention, file.source_id),
            )
        modified = modified_at(file.found)
        for kind in (Plan, Document):
            if rows := by_type.get(kind):
                by_type[kind] = [
                    row._replace(modified_at=row.modified_at or modified) for row in rows
                ]
        if files := by_type.get(ToolResultFile):
            by_type[ToolResultFile] = [row._replace(size=file.found.size) for row in files]

    def _apply_entries(self, file: OpenFile, by_type: dict[type, list[Any]]) -> None:
        """Update the entries of a list to those that it has now; remove them from `by_type`."""
        had_entries, file.has_entries = file.has_entries, False
        # A document that an earlier version could parse, and this one cannot, keeps its rows.
        is_broken = file.is_kept and any(i.quarantined for i in _of(Issue, by_type))
        version = upserts.Version(file.id, file.source_id, self._now, file.is_kept, file.gone_at)
        for kind in upserts.ENTRIES:
            if kind not in by_type and not had_entries:
                continue
            entries, by_type[kind] = upserts.split(by_type.get(kind, ()))
            if (entries or had_entries) and not is_broken:
                names = upserts.ENTRIES[kind].references
                rows = [(tuple(self._references(file, entry, names)), entry) for entry in entries]
                upserts.apply(self._connection, kind, version, rows)

    def _references(self, file: OpenFile, record: Record, names: Sequence[str]) -> list[int | None]:
        """Return the ids that a row has besides its record: of its file, or of what it names."""
        ids = {name: getattr(file, name) for name in names}
        key = None
        if isinstance(record, SessionEntry):
            ids["session_id"] = self._file_rows.session(file.source_id, record.session_key)
            key = record.project_key
        elif isinstance(record, ProjectEntry):
            key = record.key
        if key is not None:
            ids["project_id"] = self._file_rows.identify(
                "projects", source_id=file.source_id, key=key
            )
            self._touched.projects.add(ids["project_id"])
        return list(ids.values())

    def _take_transcript(self, file: OpenFile, transcript: Transcript) -> None:
        if file.session_key is None and transcript.stated_session_key is not None:
            file.session_key = transcript.stated_session_key
            self._link_session(file)
        if transcript.sidechain_count and file.claim.kind == "transcript":
            self._touched.sidechains.add(file.id)
        ranking = (transcript.session_kind, transcript.forked_from_key)
        if any(ranking):
            before = self._connection.execute(
                "select session_kind, forked_from_key from transcripts where file_id = ?",
                (file.id,),
            ).fetchone()
            if before is not None and any(
                new is not None and new != old for new, old in zip(ranking, before, strict=True)
            ):
                self._touched.moved.add(file.id)

    def _agents_at(self, file: OpenFile, lines: Sequence[AgentLine]) -> dict[int, int]:
        """Return the ids of the subagents of lines, by offset; missing subagents are inserted."""
        keys: dict[str, int] = {}
        for line in lines:
            if line.agent_key not in keys:
                claim = replace(file.claim, agent_key=line.agent_key)
                keys[line.agent_key] = self._file_rows.subagent(
                    file.source_id, file.session_key, claim
                )
        return {line.byte_offset: keys[line.agent_key] for line in lines}

    def _append_messages(
        self, file: OpenFile, messages: Iterable[Message], agents: Mapping[int, int]
    ) -> dict[tuple[int, int] | None, int]:
        """Add messages; return the ids of tool blocks by their position."""
        ids: dict[tuple[int, int] | None, int] = {}
        next_id = self.next_id
        file_id, session_id, subagent_id = file.id, file.session_id, file.subagent_id
        rows = self._pending.setdefault(Message, [])
        for message in messages:
            agent = agents.get(message.byte_offset, subagent_id) if agents else subagent_id
            rows.append((next_id, file_id, session_id, agent, *message))
            if message.kind == "tool_use" or message.kind == "tool_result":
                ids[message.byte_offset, message.block] = next_id
            next_id += 1
        self.written.rows += next_id - self.next_id
        self.next_id = next_id
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
        if file.id in self._calling:  # halves of a call are merged in the table only
            self.flush()
        self._calling.add(file.id)
        if self._has_unmatched:
            unnamed_results.take_back(self._connection, file.id)
        rows = self._pending.setdefault(ToolCall, [])
        for call in calls:
            blocks = (ids.get(call.call), ids.get(call.result))  # for half a call, one is None
            if call.result is not None:
                self._touched.answered.setdefault(file.id, set()).add(call.tool_use_id)
            subagent = agents.get(call.byte_offset, file.subagent_id)
            rows.append(tool_call_row(call, blocks, (file.id, file.session_id, subagent)))
        if not file.is_empty:
            self._later.extend(rows[-len(calls) :])

    def _counted_issues(self, file: OpenFile, issues: list[Issue]) -> list[Issue]:
        """Count issues; drop the samples after the hundredth quarantined piece of a file."""
        quarantined = sum(issue.quarantined for issue in issues)
        self.written.issues += len(issues)
        # What is left out on purpose is quarantined, too, but it is not a failure to report.
        self.written.quarantined += sum(i.quarantined for i in issues if i.reason != LEFT_OUT)
        if not quarantined:
            return issues
        self.flush()  # so that the table has the issues of earlier stretches
        (before,) = self._connection.execute(
            "select count(*) from issues where file_id = ? and quarantined = 1", (file.id,)
        ).fetchone()
        kept = []
        for issue in issues:
            before += issue.quarantined
            is_bare = issue.quarantined and before > _SAMPLED_ISSUES
            kept.append(issue._replace(sample=None) if is_bare else issue)
        return kept

    def _link_session(self, file: OpenFile) -> None:
        """Link an agent's file to the session that its lines name, where its path names none."""
        self._file_rows.refer(file)
        if file.is_empty:
            return
        self.flush()
        for table in ("messages", "tool_calls"):
            self._connection.execute(
                f"update {table} set session_id = ?, subagent_id = ? where file_id = ?",
                (file.session_id, file.subagent_id, file.id),
            )
        for table in ("links", "file_snapshots", "inbox_items", "line_extras"):
            self._connection.execute(
                f"update {table} set session_id = ? where file_id = ?", (file.session_id, file.id)
            )
        rows = self._connection.execute(
            "select response_key from usage where file_id = ?", (file.id,)
        )
        self._touched.responses.update(key for (key,) in rows)

    def flush(self) -> None:
        """Insert the gathered rows."""
        pending, self._pending, self._bytes = self._pending, {}, 0
        later, self._later = self._later, []
        self._calling.clear()
        for kind in INSERTS:
            if rows := pending.get(kind):
                if kind is Message and self._keeps_texts:
                    self.texts.extend(
                        Text(row[0], row[_TEXT], row[_TEXT + 1], row[_HAS_INVISIBLE])
                        for row in rows
                    )
                if kind is ToolCall:
                    write_tool_calls(self._connection, rows, later)
                else:
                    self._connection.executemany(INSERTS[kind], rows)


def _of(kind: type[_R], by_type: dict[type, list[Any]]) -> list[_R]:
    return by_type.get(kind, [])
