"""One conversation as it is stored: its session, its messages in file order, its subagents.

Messages are read as they are asked for: a session of 20,000 messages is never in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import NamedTuple

from .. import sql
from .lookup import find_session, short_key
from .refs import Line, Names, messages_of
from .resume import resume_line

TOOL_KINDS = frozenset({"tool_use", "tool_result", "attachment", "hook", "meta"})
"""Kinds that are left out unless tools are wanted."""

_CALL = (
    "tool", "target", "action", "status", "duration_ms", "exit_code", "output_file", "result_id",
)  # fmt: skip


class Place(NamedTuple):
    """Where a block is in its file."""

    byte_offset: int
    block: int


@dataclass(frozen=True, slots=True)
class Message:
    """One content block, with what is known of the tool call that it makes or answers."""

    kind: str
    text: str | None
    tool_text: str | None
    role: str | None
    timestamp: str | None
    model: str | None
    uuid: str | None
    parent_uuid: str | None
    is_meta: int
    is_error: int
    is_cut: int
    is_superseded: int
    """1: the conversation took it back."""
    copy_of: int | None
    is_repeat: int
    """1: the same line stands earlier in the same file."""
    tool_call_id: int | None
    tool: str | None
    target: str | None
    action: str | None
    """What the tool does, see `records.ACTIONS`."""
    status: str | None
    duration_ms: int | None
    exit_code: int | None
    output_file: str | None
    result_id: int | None
    answers: int | None
    """Of a result, the message that called."""
    file: str
    file_id: int
    byte_offset: int
    byte_length: int
    block: int
    id: int

    @property
    def content(self) -> str:
        """Return its text, whichever column holds it."""
        return self.text if self.text is not None else self.tool_text or ""

    @property
    def place(self) -> Place:
        """Return where it is in its file."""
        return Place(self.byte_offset, self.block)

    @property
    def stands_elsewhere(self) -> bool:
        """Is it shown with another message, or is there nothing in it to show?"""
        if self.answers is not None:
            return True  # it stands under its call
        if self.is_repeat:
            return self.kind == "queued_prompt"  # delivered: it stands where it was read
        is_call = self.kind in ("tool_use", "tool_result")
        return not is_call and not self.content.strip()

    def as_json(self) -> dict[str, object]:
        """Return the stable JSON object; what is known of a call stands under `call`."""
        fields = asdict(self)
        call = {key: fields.pop(key) for key in _CALL}
        for key in ("is_repeat", "tool_call_id", "file_id"):
            del fields[key]
        return {**fields, "call": call if self.kind == "tool_use" else None}


class Only(NamedTuple):
    """Which messages are wanted, where not all are."""

    kinds: tuple[str, ...] = ()
    tool: str | None = None
    """Calls of this tool, too."""
    errors: bool = False
    """Calls that failed and errors of the API, too."""


class Part(NamedTuple):
    """A stretch of one file, of the main conversation or of one subagent."""

    path: str
    file: int
    subagent: int | None = None
    after: Place | None = None
    until: Place | None = None
    """The first place that is not part of it."""


class File(NamedTuple):
    """A file of the conversation."""

    path: str
    kind: str
    size: int
    line_count: int
    issue_count: int
    gone_at: str | None
    id: int


class Subagent(NamedTuple):
    """A subagent of the conversation."""

    agent_type: str | None
    description: str | None
    kind: str
    name: str | None
    model: str | None
    workflow: str | None
    started_at: str | None
    ended_at: str | None
    message_count: int
    tokens: int | None
    partial: int
    """Responses among them that never stated their final count."""
    link_method: str | None
    spawned_by: int | None
    call_id: int | None
    parent: str | None
    agent_key: str
    id: int


class Conversation:
    """A session and what belongs to it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        prefix: str,
        *,
        session_id: int | None = None,
        files: int = -1,
        subagents: int = -1,
    ) -> None:
        """Find the session; raise NotFoundError or UsageError if `prefix` does not name one.

        A conversation that is in two homes is read from where there is more of it, or where it has
        this `session_id`. `files` and `subagents` are how many of them are known, a negative number
        is all.
        """
        self.connection = connection
        key = find_session(connection, prefix)
        rows = sql.ask(self.connection, "pages/session", session_key=key).fetchall()
        rows.sort(key=lambda row: row["id"] != session_id)  # the order of the others stays
        self.session: dict[str, object] = dict(rows[0])
        self.other_roots = [str(row["root"]) for row in rows[1:]]
        self.other_titles = [row["title"] for row in rows[1:]]
        self._id = int(rows[0]["id"])
        found = sql.ask(self.connection, "pages/session_files", session=self._id, limit=files)
        self.files = [File(*row) for row in found]
        found = sql.ask(
            self.connection, "pages/session_subagents", session=self._id, limit=subagents
        )
        self.subagents = [Subagent(*row) for row in found]

    @property
    def models(self) -> list[str]:
        """Return the models that answered."""
        return [str(model) for model in json.loads(str(self.session["models"] or "[]"))]

    @property
    def resume(self) -> str | None:
        """Return what to type into a shell to go on with the session, None if nobody can."""
        is_there = any(file.kind == "transcript" and file.gone_at is None for file in self.files)
        return resume_line(self.session, is_there=is_there)

    def files_with_messages(self) -> Iterator[File]:
        """Yield the files that hold the main conversation, not those of large outputs."""
        for row in sql.ask(
            self.connection, "pages/session_files", session=self._id, with_messages=1
        ):
            yield File(*row)

    def messages(
        self, file: File, after: Place | None = None, limit: int = -1
    ) -> Iterator[Message]:
        """Yield the messages of the main conversation in one file, at most `limit` behind `after`.

        A negative `limit` means no limit.
        """
        return self._messages(Part(file.path, file.id, None, after), None, limit)

    def messages_of(self, part: Part, only: Only | None = None) -> Iterator[Message]:
        """Yield the messages of a part; those that are wanted, where not all are."""
        messages = self._messages(part, only)
        return takewhile(lambda m: part.until is None or m.place < part.until, messages)

    def _messages(self, part: Part, only: Only | None, limit: int = -1) -> Iterator[Message]:
        offset, block = part.after or (None, None)
        for row in sql.ask(
            self.connection,
            "pages/session_messages",
            file=part.file,
            subagent=part.subagent,
            after_offset=offset,
            after_block=block,
            kinds=json.dumps(only.kinds) if only else None,
            tool=only.tool if only else None,
            errors=1 if only and only.errors else None,
            limit=limit,
        ):
            yield Message(**dict(row))

    def subagent_messages(
        self, subagent: Subagent, after: tuple[int, Place] | None = None, limit: int = -1
    ) -> Iterator[Message]:
        """Yield the messages of a subagent, at most `limit` behind a place in a file of it."""
        file, (offset, block) = after or (None, (None, None))
        for row in sql.ask(
            self.connection,
            "pages/subagent_messages",
            subagent=subagent.id,
            after_file=file,
            after_offset=offset,
            after_block=block,
            limit=limit,
        ):
            yield Message(**dict(row))

    def parts(self, subagent: Subagent | None = None) -> Iterator[Part]:
        """Yield the parts of the main conversation, or of a subagent: one for each file."""
        if subagent is None:
            yield from (Part(file.path, file.id) for file in self.files)
        else:
            for row in self._ask("subagent_files", subagent=subagent.id):
                yield Part(row["path"], row["id"], subagent.id)

    def turns(self, part: Part) -> list[int]:
        """Return the offsets in the file of a part at which turns begin, in order."""
        if part.subagent is None:
            rows = self._ask("turns", session=self._id, file=part.file)
        else:
            rows = self._ask("subagent_turns", subagent=part.subagent, file=part.file)
        return [row["byte_offset"] for row in rows]

    def line(self, line: Line) -> list[sqlite3.Row]:
        """Return what is known of the messages of a line."""
        return messages_of(self.connection, line)

    def around(self, part: Part, place: Place, count: int) -> tuple[list[Place], list[Place]]:
        """Return the places of so many messages of a file before a place, and behind it."""
        where = {"file": part.file, "subagent": part.subagent, "limit": count}
        offset, block = place
        before = self._ask("message_before", **where, before_offset=offset, before_block=block)
        behind = self._ask("message_after", **where, after_offset=offset, after_block=block)
        first, second = ([Place(row[0], row[1]) for row in rows] for rows in (before, behind))
        return first, second

    def tools(self) -> list[tuple[str, int]]:
        """Return the tools that were called, and how often, the most used first."""
        return [(row["name"], row["calls"]) for row in self._ask("session_tools", session=self._id)]

    def usage(self) -> list[sqlite3.Row]:
        """Return tokens and cost by model."""
        return self._ask("session_usage", session=self._id).fetchall()

    def names(self) -> Names:
        """Return what makes references to lines of it."""
        return Names(self.connection)

    def short_key(self, subagent: Subagent | None = None) -> str:
        """Return what `show` takes for it, or for a subagent of it."""
        key = subagent.agent_key if subagent else str(self.session["session_key"])
        return short_key(self.connection, key)

    def place_of(self, message: int) -> tuple[int, int] | None:
        """Return the file of a message and its offset in it."""
        row = self._ask("message_place", id=message).fetchone()
        return (row["file_id"], row["byte_offset"]) if row else None

    def _ask(self, query: str, **parameters: object) -> sqlite3.Cursor:
        return sql.ask(self.connection, f"pages/{query}", **parameters)

    def text(self, message: int) -> str:
        """Return the text of a message."""
        return self.whole_text(message)[0]

    def whole_text(self, message: int) -> tuple[str, bool]:
        """Return the text of a message, and whether its file has more of it."""
        row = self._ask("message_text", id=message).fetchone()
        return (str(row["text"]), bool(row["is_cut"])) if row else ("", False)
