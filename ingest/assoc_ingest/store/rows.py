"""From records to rows: gathered and inserted in bulk, or matched by their key.

Here are also the rows of `files`, and of the sessions and projects that the others refer to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from ..derive import copies, projects
from ..derive.changeset import Touched
from ..errors import BusyError
from ..fields import from_milliseconds, milliseconds
from ..files.exclusions import LEFT_OUT
from ..files.tail import Prefix
from ..files.walk import NO_TIME, UNSTATED_TIME, FoundFile
from ..records import (
    ASK,
    AddedLine,
    Agent,
    AgentLine,
    AgentLink,
    AgentMeta,
    AgentTotals,
    Context,
    Document,
    FileSnapshot,
    HookEvent,
    InboxItem,
    Issue,
    LineExtra,
    LineType,
    Link,
    Message,
    Paste,
    Plan,
    PlanLine,
    ProjectEntry,
    Prompt,
    Record,
    Retention,
    SessionEntry,
    StatedUsage,
    Statement,
    Summary,
    Superseded,
    Task,
    TaskChange,
    TaskDependency,
    Team,
    TeamMember,
    Todo,
    ToolCall,
    ToolResultFile,
    Transcript,
    UnmatchedResult,
    Usage,
    WorkflowAgent,
    WorkflowLink,
    WorkingDirectory,
)
from ..source import Claim, KnownFile, parts_of

# ------------------------------------------------------------------------------------------------
# Entries of documents, which are kept when their document drops them: tasks, inboxes, all lists.
#
# Agents and applications rewrite these documents as a whole, and delete them when they are done;
# what was in them is worth keeping. So an entry is matched by its key, and its row is updated in
# place and keeps its id. An entry that the document no longer contains gets `gone_at`; if it
# comes back, `gone_at` is cleared. Only changes are written, so an unchanged inbox costs only
# reading it. Every change of a task that a sync sees is kept in `task_changes`.
#
# Which records are entries: messages of an inbox; tasks and todos of a file, not those that a
# transcript states (`statements`); documents that are tickets; links that name their session, as
# those in transcripts do not; what a list says about a session, not what the session's own file
# says (`meta`, `relocated`). All entries are in documents that are read as one line, so each
# version of a document has all of its entries.


Row = tuple[tuple[object, ...], Any]
"""An entry to be stored: the ids that its record refers to, and the record."""


@dataclass(frozen=True, slots=True)
class Entries:
    """How entries of one type are stored in a table."""

    table: str
    key: Callable[[Any], object]
    """What identifies an entry within its document."""
    references: tuple[str, ...] = ()
    """Columns of ids that the store adds to the record."""
    is_entry: Callable[[Any], bool] = lambda record: True
    condition: str = "1"
    """The same as `is_entry`, in SQL."""
    shared_key: tuple[str, ...] = ()
    """Columns that identify an entry in all documents, where several may have the same one."""
    found: dict[str, str] = field(default_factory=dict)
    """Columns of keys that may change, each with the column of the id that `references` fills."""


ENTRIES: dict[type, Entries] = {
    Task: Entries(
        "tasks",
        attrgetter("list_key", "task_key"),
        ("source_id",),
        condition="channel = 'file'",
        shared_key=("source_id", "list_key", "task_key"),
    ),
    InboxItem: Entries(
        "inbox_items",
        attrgetter("timestamp", "sender", "text_hash", "ordinal"),
        ("team_id",),
        lambda item: bool(item.channel == "inbox"),
        "channel = 'inbox'",
    ),
    SessionEntry: Entries(
        "session_entries",
        attrgetter("session_key", "kind"),
        ("session_id", "project_id"),
        lambda entry: entry.kind not in ("meta", "relocated"),
        "kind not in ('meta', 'relocated')",
        found={"linked_session_key": "linked_session_id"},
    ),
    ProjectEntry: Entries("project_entries", attrgetter("key"), ("project_id",)),
    Todo: Entries(
        "todos",
        attrgetter("content", "ordinal"),
        condition="channel = 'file'",
        found={"session_key": "session_id", "agent_key": "subagent_id"},
    ),
    TeamMember: Entries(
        "team_members",
        lambda member: (member.agent_id or member.name, member.ordinal),
        ("team_id",),
    ),
    Link: Entries(
        "links",
        attrgetter("kind", "url", "session_key"),
        is_entry=lambda link: link.session_key is not None,
        condition="session_key is not null",
    ),
    Document: Entries(
        "documents",
        attrgetter("ordinal"),
        ("project_id",),
        lambda document: bool(document.kind == "ticket"),
        "kind = 'ticket'",
        found={"session_key": "session_id"},
    ),
}
"""The types of records that can be entries."""

CONDITIONS = {entries.table: entries.condition for entries in ENTRIES.values()}
"""The tables that have entries, and the condition for a row to be one."""

_TRACKED = ("subject", "description", "status", "owner", "active_form", "metadata")


@dataclass(frozen=True, slots=True)
class Version:
    """A document as it was read: from the disk at the time `now`, or again from its archive."""

    file_id: int
    source_id: int
    now: str
    is_replayed: bool = False
    gone_at: str | None = None
    """When the document went missing: entries that are read again stay gone."""


def split(records: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Split records of one type into entries, without duplicates, and all others.

    A list may have an entry twice. Two entries of a session are merged; of a task the last one
    counts, of anything else the first.
    """
    found: dict[object, Any] = {}
    others = []
    for record in records:
        entries = ENTRIES[type(record)]
        if not entries.is_entry(record):
            others.append(record)
            continue
        key = entries.key(record)
        found[key] = _merged(found[key], record) if key in found else record
    return list(found.values()), others


def _merged(first: Any, second: Any) -> Any:
    if isinstance(first, Task):
        return second
    if isinstance(first, SessionEntry):
        return first._replace(**{k: v for k, v in second._asdict().items() if v is not None})
    return first


def apply(
    connection: sqlite3.Connection, kind: type, version: Version, rows: Sequence[Row]
) -> None:
    """Update the stored entries of one type of a document to those of this version.

    Entries that it does not contain get `gone_at`. If it is re-parsed from the archive, its bytes
    are those that were read before: a row that it does not contain, and that is not gone, is a
    mistake and is deleted.
    """
    entries = ENTRIES[kind]
    names = ("file_id", "gone_at", *entries.references, *kind._fields)  # type: ignore[attr-defined]
    known = _known(connection, kind, names, version, rows)
    added, kept = [], set()
    for references, record in rows:
        row = known.get(entries.key(record))
        if row is None:
            added.append((version.file_id, version.gone_at, *references, *record))
            continue
        id_, file_id, gone_at, *_ = row
        kept.add(id_)
        if version.gone_at is not None and file_id != version.file_id:
            continue  # another document has it, too
        # An entry cannot be gone later than its document: a lost row was made again at that time.
        gone_at = version.gone_at and min(gone_at or version.gone_at, version.gone_at)
        values = (version.file_id, gone_at, *references, *record)
        if row[1:] != values:
            _update(connection, entries, names, row, values)
            if kind is Task and not version.is_replayed:
                _note_changes(connection, names, row, values, version.now)
    connection.executemany(
        f"insert into {entries.table} ({', '.join(names)}) values ({', '.join('?' * len(names))})",
        added,
    )
    missing = [
        id_
        for id_, file_id, gone_at, *_ in known.values()
        if gone_at is None and id_ not in kept and file_id == version.file_id
    ]
    if version.is_replayed:
        connection.executemany(
            f"delete from {entries.table} where id = ?", [(id_,) for id_ in missing]
        )
    else:
        connection.executemany(
            f"update {entries.table} set gone_at = ? where id = ?",
            [(version.now, id_) for id_ in missing],
        )


def _known(
    connection: sqlite3.Connection,
    kind: type,
    names: Sequence[str],
    version: Version,
    rows: Sequence[Row],
) -> dict[object, tuple[Any, ...]]:
    """Return the rows of the document by key, and those of other documents that it has, too."""
    entries = ENTRIES[kind]
    select = f"select id, {', '.join(names)} from {entries.table} where"
    first = 3 + len(entries.references)  # the position of the record's first field

    def key(row: Sequence[Any]) -> object:
        return entries.key(kind(*row[first:]))

    found = connection.execute(
        f"{select} file_id = ? and {entries.condition}", (version.file_id,)
    ).fetchall()
    known = {key(row): row for row in found}
    if entries.shared_key:
        where = " and ".join(f"{column} = ?" for column in entries.shared_key)
        place = [names.index(column) for column in entries.shared_key]
        for references, record in rows:
            if entries.key(record) not in known:
                values = (None, None, *references, *record)
                row = connection.execute(
                    f"{select} {where} and {entries.condition}",
                    [values[number] for number in place],
                ).fetchone()
                if row is not None:
                    known[key(row)] = row
    return known


def _update(
    connection: sqlite3.Connection,
    entries: Entries,
    names: Sequence[str],
    row: Sequence[object],
    values: Sequence[object],
) -> None:
    outdated = [
        id_column
        for column, id_column in entries.found.items()
        if row[1 + names.index(column)] != values[names.index(column)]
    ]
    assignments = [f"{name} = ?" for name in names] + [f"{name} = null" for name in outdated]
    connection.execute(
        f"update {entries.table} set {', '.join(assignments)} where id = ?", (*values, row[0])
    )


def _note_changes(
    connection: sqlite3.Connection,
    names: Sequence[str],
    row: Sequence[object],
    values: Sequence[object],
    now: str,
) -> None:
    """Keep the earlier values of a task, which are stored nowhere else."""
    changes = [
        (row[0], name, before, after, now)
        for name, before, after in zip(names, row[1:], values, strict=True)
        if name in _TRACKED and before != after
    ]
    connection.executemany(
        "insert into task_changes (task_id, field, old_value, new_value, seen_at)"
        " values (?, ?, ?, ?, ?)",
        changes,
    )


def has_entries(connection: sqlite3.Connection, file_id: int) -> bool:
    """Are there entries of a document, gone or not?"""
    (found,) = connection.execute(_HAS_ENTRIES, {"file": file_id}).fetchone()
    return bool(found)


_HAS_ENTRIES = "select " + " or ".join(
    f"exists (select 1 from {table} where file_id = :file and {condition})"
    for table, condition in CONDITIONS.items()
)


def mark_file_gone(connection: sqlite3.Connection, file_id: int, now: str) -> None:
    """Record that a document is missing, and its entries with it."""
    for table, condition in CONDITIONS.items():
        connection.execute(
            f"update {table} set gone_at = ? where file_id = ? and gone_at is null and {condition}",
            (now, file_id),
        )


def mark_file_back(connection: sqlite3.Connection, file_id: int, gone_at: str) -> None:
    """Record that a document is there again, broken: its entries are those that it had before."""
    for table, condition in CONDITIONS.items():
        connection.execute(
            f"update {table} set gone_at = null where file_id = ? and gone_at >= ? and {condition}",
            (file_id, gone_at),
        )


# ------------------------------------------------------------------------------------------------
# How a record becomes a row: one insert statement per type of record.
#
# A transcript may be read in any number of stretches, so an insert says how an existing row is
# merged with another stretch: counts add up, first values stay, last values replace. The
# resulting row does not depend on the stretches.


def _transcript_merge() -> str:
    merged = {
        "started_at": "min(coalesce(started_at, excluded.started_at),"
        " coalesce(excluded.started_at, started_at))",
        "ended_at": "max(coalesce(ended_at, excluded.ended_at),"
        " coalesce(excluded.ended_at, ended_at))",
        "message_count": "message_count + excluded.message_count",
        "sidechain_count": "sidechain_count + excluded.sidechain_count",
    }
    for column in Transcript._fields:
        is_first = column.startswith("first_") or column == "stated_session_key"
        order = (column, f"excluded.{column}") if is_first else (f"excluded.{column}", column)
        merged.setdefault(column, f"coalesce({order[0]}, {order[1]})")
    assignments = ", ".join(f"{column} = {value}" for column, value in merged.items())
    return f"on conflict (file_id) do update set {assignments}"


def _entry_merge() -> str:
    assignments = (
        f"{column} = coalesce(excluded.{column}, {column})"
        for column in ("project_id", *SessionEntry._fields)
        if column not in ("session_key", "kind")
    )
    return f"on conflict (file_id, session_key, kind) do update set {', '.join(assignments)}"


def _usage_merge() -> str:
    # The line with the most output tokens counts, always as a whole; of several, the last.
    better = "excluded.output_tokens >= output_tokens"
    sums = [name for name in Usage._fields if name.startswith(("all_", "line_count", "written"))]
    own = ("response_key", "api_message_id", "request_id", "output_tokens", "timestamp", *sums)
    assignments = [
        f"{column} = iif({better}, excluded.{column}, {column})"
        for column in Usage._fields
        if column not in own
    ]
    assignments += [
        f"request_id = iif({better}, coalesce(excluded.request_id, request_id),"
        " coalesce(request_id, excluded.request_id))",
        "output_tokens = max(output_tokens, excluded.output_tokens)",
        "timestamp = coalesce(timestamp, excluded.timestamp)",
        *(f"{column} = {column} + excluded.{column}" for column in sums),
    ]
    return f"on conflict (file_id, response_key) do update set {', '.join(assignments)}"


def _milliseconds(start: str, end: str) -> str:
    days = f"julianday({end}) - julianday({start})"
    return f"max(0, cast(round(86400000 * ({days})) as integer))"


TOOL_CALL = (
    "name", "target", "action", "paths", "status", "started_at", "ended_at", "duration_ms",
    "exit_code", "output_file", "search_count", "response_key", "tool_use_id", "call_id",
    "result_id", "byte_offset", "byte_length", "block", "file_id", "session_id", "subagent_id",
)  # fmt: skip
"""The values of a tool call's row, in order: the fields of its record with ids in place of
positions, and the references of its file. An insert has one more: the milliseconds between call and
result."""


def _tool_call_insert() -> str:
    """Insert a call that has no row yet, with the duration that its result states, if it does."""
    values = [f"?{number}" for number in range(1, len(TOOL_CALL) + 1)]
    stated = TOOL_CALL.index("duration_ms")
    values[stated] = f"coalesce(?{stated + 1}, ?{len(TOOL_CALL) + 1})"
    return (
        f"insert into tool_calls ({', '.join(TOOL_CALL)}) values ({', '.join(values)})"
        " on conflict do nothing"
    )


def _tool_call_merge() -> str:
    """Merge the halves of a call: the first call in the file and the first result, in any order.
    A result of a call that still runs gives way to the next one.

    An upsert would be slower: its update changes references, so SQLite would prepare to undo every
    insert.
    """
    new = {name: f"?{number}" for number, name in enumerate(TOOL_CALL, 1)}
    place = ("byte_offset", "byte_length", "block", "call_id", "subagent_id")
    of_call = ("name", "target", "action", "paths", "started_at", "response_key", *place)
    of_result = ("ended_at", "exit_code", "output_file", "search_count", "result_id", "status")
    is_new_call = f"call_id is null and {new['call_id']} is not null"
    is_new_result = f"(result_id is null or status = 'pending') and {new['result_id']} is not null"
    assignments = [f"{name} = iif({is_new_call}, {new[name]}, {name})" for name in of_call]
    assignments += [f"{name} = iif({is_new_result}, {new[name]}, {name})" for name in of_result]
    assignments.append(
        # The record has the duration that the tool states, if it does. Otherwise the times in the
        # row count: the record may be that of a later call with the same id.
        f"duration_ms = case when {new['status']} = 'declined' or status = 'declined'"
        f" or iif({is_new_call}, {new['action']}, action) is 'ask'"
        f" or iif({is_new_result}, {new['status']}, status) = 'pending' then null"
        f" when {is_new_result} then"
        f" coalesce({new['duration_ms']}, {_milliseconds('started_at', new['ended_at'])})"
        f" when {is_new_call}"
        f" then coalesce(duration_ms, {_milliseconds(new['started_at'], 'ended_at')})"
        " else duration_ms end"
    )
    return (
        f"update tool_calls set {', '.join(assignments)}"
        f" where file_id = {new['file_id']} and tool_use_id = {new['tool_use_id']}"
    )


def _message_merge() -> str:
    """Merge the halves of a message that a tool sent: the call, and the names its result adds.

    Either may have only a preview of the text: the longer text is the message.
    """
    of_text = ("text", "kind", "payload", "text_hash")
    is_longer = "length(coalesce(excluded.text, '')) > length(coalesce(text, ''))"
    assignments = [f"{name} = iif({is_longer}, excluded.{name}, {name})" for name in of_text]
    assignments += [
        f"{name} = coalesce({name}, excluded.{name})"
        for name in ("sender", "recipient", "summary", "message_key", "team_name")
    ]
    return (
        "on conflict (file_id, tool_use_id) where tool_use_id is not null"
        f" do update set {', '.join(assignments)} on conflict do nothing"
    )


def _statement_merge() -> str:
    """Merge the halves of a statement: the first call in the file, and the first result.

    The call says what it is and where it is. Where a plan was saved, only the result says.
    """
    is_call = "stated is null and excluded.stated is not null"
    of_call = ("kind", "list_key", "timestamp", "byte_offset", "byte_length", "block")
    assignments = [f"{name} = iif({is_call}, excluded.{name}, {name})" for name in of_call]
    assignments += [
        f"{name} = coalesce({name}, excluded.{name})" for name in ("stated", "answered")
    ]
    assignments.append(
        f"task_key = iif({is_call}, coalesce(excluded.task_key, task_key),"
        " coalesce(task_key, excluded.task_key))"
    )
    return (
        "on conflict (file_id, tool_use_id) where tool_use_id is not null"
        f" do update set {', '.join(assignments)} on conflict do nothing"
    )


CONTEXT: dict[type, tuple[str, ...]] = {
    Message: ("session_id", "subagent_id"),
    LineExtra: ("session_id",),
    Link: ("session_id",),
    FileSnapshot: ("session_id",),
    TeamMember: ("team_id",),
    InboxItem: ("session_id", "team_id"),
    Document: ("project_id",),
    SessionEntry: ("session_id", "project_id"),
    ProjectEntry: ("project_id",),
    ToolResultFile: ("session_id",),  # set later, the whole text would be written a second time
}
"""References of a row that are those of its file, or that the store looks up."""


def _insert(table: str, columns: tuple[str, ...], conflict: str = "") -> str:
    values = ", ".join("?" * len(columns))
    return f"insert into {table} ({', '.join(columns)}) values ({values}) {conflict}"


def _of_file(table: str, record: type, conflict: str = "") -> str:
    columns = ("file_id", *CONTEXT.get(record, ()), *record._fields)  # type: ignore[attr-defined]
    return _insert(table, columns, conflict)


# A stretch repeats values that were stated before it: only a different value is a change.
_CONTEXT = """
insert into contexts (file_id, name, value, byte_offset)
select ?1, ?2, ?3, ?4
where ?3 is not (
    select value from contexts where file_id = ?1 and name = ?2 order by byte_offset desc limit 1
)
on conflict do nothing
"""

INSERTS: dict[type, str] = {
    # Messages arrive with their ids, so that tool calls of the same batch can refer to them.
    Message: _insert("messages", ("id", "file_id", *CONTEXT[Message], *Message._fields)),
    ToolCall: _tool_call_insert(),
    AddedLine: _of_file("added_lines", AddedLine),
    UnmatchedResult: _of_file("unmatched_results", UnmatchedResult, "on conflict do nothing"),
    Superseded: _of_file("superseded", Superseded, "on conflict do nothing"),
    LineExtra: _of_file("line_extras", LineExtra, "on conflict do nothing"),
    Usage: _of_file("usage", Usage, _usage_merge()),
    StatedUsage: _of_file("stated_usage", StatedUsage, "on conflict do nothing"),
    Transcript: _of_file("transcripts", Transcript, _transcript_merge()),
    WorkingDirectory: _of_file("working_directories", WorkingDirectory, "on conflict do nothing"),
    Context: _CONTEXT,
    AgentLine: _of_file("agent_lines", AgentLine, "on conflict do nothing"),
    AgentTotals: _of_file("agent_totals", AgentTotals, "on conflict do nothing"),
    AgentMeta: _of_file("agent_metas", AgentMeta, "on conflict do nothing"),
    AgentLink: _of_file("agent_links", AgentLink, "on conflict do nothing"),
    WorkflowLink: _of_file("workflow_links", WorkflowLink, "on conflict do nothing"),
    WorkflowAgent: _of_file(
        "workflow_agents",
        WorkflowAgent,
        "on conflict (file_id, agent_key) do update set label = excluded.label,"
        " phase = excluded.phase, state = excluded.state, byte_offset = excluded.byte_offset",
    ),
    Summary: _of_file("summaries", Summary, "on conflict do nothing"),
    Link: _of_file("links", Link, "on conflict do nothing"),
    FileSnapshot: _of_file("file_snapshots", FileSnapshot, "on conflict do nothing"),
    SessionEntry: _of_file("session_entries", SessionEntry, _entry_merge()),
    ProjectEntry: _of_file("project_entries", ProjectEntry),
    TaskDependency: _of_file("task_links", TaskDependency, "on conflict do nothing"),
    TaskChange: _of_file("task_changes", TaskChange),
    Statement: _of_file("statements", Statement, _statement_merge()),
    Todo: _of_file("todos", Todo),
    TeamMember: _of_file("team_members", TeamMember),
    InboxItem: _of_file("inbox_items", InboxItem, _message_merge()),
    Plan: _of_file("plans", Plan),
    PlanLine: _of_file("plan_lines", PlanLine),
    Document: _of_file("documents", Document, "on conflict do nothing"),
    Prompt: _of_file("prompts", Prompt, "on conflict do nothing"),
    Paste: _of_file("pastes", Paste),
    ToolResultFile: _of_file("tool_result_files", ToolResultFile),
    HookEvent: _of_file("hook_events", HookEvent, "on conflict do nothing"),
    Issue: _of_file("issues", Issue),
    LineType: _insert(
        "line_types",
        ("file_id", "type", "subtype", "count", "first_offset"),
        "on conflict (file_id, type, subtype) do update set count = count + excluded.count,"
        " first_offset = coalesce(first_offset, excluded.first_offset)",
    ),
}
"""The statement for each type of record, in the order in which they are executed."""

TABLES = {kind: statement.split()[2] for kind, statement in INSERTS.items()} | {Task: "tasks"}
"""The table for each type of record; tasks are only inserted by `upserts`."""

COLUMNS: dict[type, tuple[str, ...]] = {
    **{kind: kind._fields for kind in TABLES},  # type: ignore[attr-defined]
    ToolCall: TOOL_CALL[: TOOL_CALL.index("file_id")],
    LineType: ("type", "subtype", "count", "first_offset"),
}
"""The columns that the rows of each type have from their records."""

_MERGE_TOOL_CALL = _tool_call_merge()
_HAS_ROW = "select 1 from tool_calls where file_id = ? and tool_use_id = ?"
_call_of = itemgetter(TOOL_CALL.index("file_id"), TOOL_CALL.index("tool_use_id"))


_CALL = ToolCall._fields.index("call")  # this field and the next are positions; rows have ids


def tool_call_row(
    call: ToolCall, blocks: tuple[int | None, int | None], references: Sequence[int | None]
) -> tuple[object, ...]:
    """Return the values of a tool call's row, with the ids of its blocks and those of its file."""
    between = None
    has_no_duration = call.status in ("declined", "pending") or call.action == ASK
    if call.started_at and call.ended_at and not has_no_duration:
        between = max(0, milliseconds(call.ended_at) - milliseconds(call.started_at))
    return (*call[:_CALL], *blocks, *call[_CALL + 2 :], *references, between)


def write_tool_calls(
    connection: sqlite3.Connection,
    rows: list[tuple[object, ...]],
    later: Iterable[tuple[object, ...]],
) -> None:
    """Insert tool calls, after `later`, some of these rows, are merged into existing ones.

    No two of `rows` may belong to one call: only rows in the table are merged. These are few, and
    to look for them costs less than an update that finds none.
    """
    halves = [row for row in later if connection.execute(_HAS_ROW, _call_of(row)).fetchone()]
    connection.executemany(_MERGE_TOOL_CALL, [row[: len(TOOL_CALL)] for row in halves])
    connection.executemany(INSERTS[ToolCall], rows)


CLEARED = (
    "tool_calls",  # before messages, which they refer to
    "messages",
    "added_lines",
    "unmatched_results",
    "superseded",
    "line_extras",
    "usage",
    "stated_usage",
    "transcripts",
    "working_directories",
    "contexts",
    "agent_lines",
    "agent_totals",
    "agent_metas",
    "agent_links",
    "workflow_links",
    "workflow_agents",
    "summaries",
    "links",
    "file_snapshots",
    "session_entries",
    "task_links",
    "task_changes",
    "statements",
    "inbox_items",
    "plan_lines",
    "plans",
    "documents",
    "prompts",
    "pastes",
    "tool_result_files",
    "hook_events",
    "issues",
    "line_types",
)
"""Tables of what was read from a file, in the order in which a rewrite deletes their rows.

Entries that a list no longer contains are kept by `upserts`, agents of an application by `agents`.
"""

ODD_TIME = "the time of the file lies outside the years 2000 to 2100"
"""Reason of the issue of a file whose modification time is not stored."""

NOTE_ODD_TIME = f"""
insert into issues (reason, quarantined, file_id, byte_offset, byte_length)
select '{ODD_TIME}', 0, ?1, 0, 0
where not exists (select 1 from issues where file_id = ?1 and reason = '{ODD_TIME}')
"""

CLEAR_ODD_TIME = f"delete from issues where file_id = ? and reason = '{ODD_TIME}'"

LINE_COUNT = """
    (select coalesce(sum(count), 0) from line_types where file_id = files.id)
    + (select count(*) from issues where file_id = files.id and quarantined = 1)"""
"""The pieces that were read of a file: objects and quarantined stretches."""

ISSUE_COUNT = "(select count(*) from issues where file_id = files.id)"
"""The number of issues of a file."""

COUNTS = f"line_count = {LINE_COUNT}, issue_count = {ISSUE_COUNT}"
"""The assignments that update the counts of a file."""

WRITE_CHECKPOINT = f"""
update files
set size = :size,
    offset = coalesce(:offset, offset),
    head_hash = coalesce(:head_hash, head_hash),
    tail_hash = coalesce(:tail_hash, tail_hash),
    prefix_crc = coalesce(:prefix_crc, prefix_crc),
    context = :context,
    {COUNTS},
    mtime = :mtime,
    mtime_ns = :mtime_ns,
    ctime_ns = :ctime_ns,
    inode = :inode,
    device = :device,
    last_synced_at = :now,
    gone_at = null
where id = :id
"""


# ------------------------------------------------------------------------------------------------
# The rows of `files` and what they refer to: sessions, subagents, projects, teams.


_OTHER_WRITER = "Another process has written to the database in the meantime. Run sync again."


@dataclass(slots=True)
class OpenFile:
    """A file of the batch: its references, and what changes in its row."""

    id: int
    source_id: int
    claim: Claim
    found: FoundFile
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
    found = FoundFile(
        parts_of(known.path), "", known.size, known.mtime_ns, known.ctime_ns, known.inode,
        known.device,
    )  # fmt: skip
    session_key = known.session_key if claim.kind == known.kind else claim.session_key
    return OpenFile(
        known.id, source_id, claim, found, None, None, session_key, None, is_kept=True,
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

    def note_stat(self, file_id: int, found: FoundFile) -> int:
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

    def _note_times(self, files: Mapping[int, FoundFile]) -> int:
        """Add an issue to each of these files whose time is out of range; remove all others."""
        timed = {id_: found for id_, found in files.items() if found.mtime_ns != NO_TIME}
        unstated = {id_ for id_, found in timed.items() if found.mtime_ns == UNSTATED_TIME}
        odd = {id_ for id_, found in timed.items() if modified_at(found) is None} - unstated
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


def modified_at(found: FoundFile) -> str | None:
    """Return the modification time of a file as text, None if it is out of range."""
    return from_milliseconds(found.mtime_ns // 1_000_000)


# ------------------------------------------------------------------------------------------------
# Gathers records as rows and inserts them in bulk.


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
        if file.claim.kind in projects.LISTING_KINDS and file.prefix is not None:
            listed = by_type.pop(Agent, [])
            projects.apply_agents(self._connection, file.id, file.source_id, listed, self._now)
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
        version = Version(file.id, file.source_id, self._now, file.is_kept, file.gone_at)
        for kind in ENTRIES:
            if kind not in by_type and not had_entries:
                continue
            entries, by_type[kind] = split(by_type.get(kind, ()))
            if (entries or had_entries) and not is_broken:
                names = ENTRIES[kind].references
                rows = [(tuple(self._references(file, entry, names)), entry) for entry in entries]
                apply(self._connection, kind, version, rows)

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
            copies.take_back(self._connection, file.id)
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
        self._touched.is_append = False
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
