"""How a record becomes a row: one insert statement per type of record.

A transcript may be read in any number of stretches, so an insert says how an existing row is merged
with another stretch: counts add up, first values stay, last values replace. The resulting row does
not depend on the stretches.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from operator import itemgetter

from ..records import (
    ASK,
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
    SessionEntry,
    StatedUsage,
    Statement,
    Summary,
    Superseded,
    Task,
    TaskChange,
    TaskDependency,
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
from ..when import milliseconds


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

    An upsert would be slower: its update changes references, so SQLite would prepare to undo every
    insert.
    """
    new = {name: f"?{number}" for number, name in enumerate(TOOL_CALL, 1)}
    place = ("byte_offset", "byte_length", "block", "call_id", "subagent_id")
    of_call = ("name", "target", "action", "paths", "started_at", "response_key", *place)
    of_result = ("ended_at", "exit_code", "output_file", "search_count", "result_id", "status")
    is_new_call = f"call_id is null and {new['call_id']} is not null"
    is_new_result = f"result_id is null and {new['result_id']} is not null"
    assignments = [f"{name} = iif({is_new_call}, {new[name]}, {name})" for name in of_call]
    assignments += [f"{name} = iif({is_new_result}, {new[name]}, {name})" for name in of_result]
    assignments.append(
        # The record has the duration that the tool states, if it does. Otherwise the times in the
        # row count: the record may be that of a later call with the same id.
        f"duration_ms = case when {new['status']} = 'declined' or status = 'declined'"
        f" or iif({is_new_call}, {new['action']}, action) is 'ask' then null"
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

    The call says what it is and where it stands. Where a plan was saved, only the result says.
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
    is_of_person = call.status == "declined" or call.action == ASK
    if call.started_at and call.ended_at and not is_of_person:
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
