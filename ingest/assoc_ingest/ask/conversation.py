"""One conversation as it is stored: its session, its messages in file order, its subagents.

Messages are read as they are asked for: a session of 20,000 messages is never in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import NamedTuple

from .. import sql
from ..terminal import safe_json
from .lookup import find_session
from .resume import resume_line

TOOL_KINDS = frozenset({"tool_use", "tool_result", "attachment", "hook", "meta"})
"""Kinds that are left out unless tools are wanted."""

_CALL = (
    "tool",
    "target",
    "action",
    "status",
    "duration_ms",
    "exit_code",
    "output_file",
    "result_id",
)


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
    link_method: str | None
    spawned_by: int | None
    call_id: int | None
    parent: str | None
    agent_key: str
    id: int


class Conversation:
    """A session and what belongs to it."""

    def __init__(
        self, connection: sqlite3.Connection, prefix: str, *, files: int = -1, subagents: int = -1
    ) -> None:
        """Find the session; raise NotFoundError or UsageError if `prefix` does not name one.

        A conversation that is in two homes is read from where there is more of it. `files` and
        `subagents` are how many of them are known, a negative number is all.
        """
        self._connection = connection
        key = find_session(connection, prefix)
        rows = sql.ask(self._connection, "pages/session", session_key=key).fetchall()
        self.session: dict[str, object] = dict(rows[0])
        self.other_roots = [str(row["root"]) for row in rows[1:]]
        self._id = int(rows[0]["id"])
        found = sql.ask(self._connection, "pages/session_files", session=self._id, limit=files)
        self.files = [File(*row) for row in found]
        found = sql.ask(
            self._connection, "pages/session_subagents", session=self._id, limit=subagents
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
            self._connection, "pages/session_files", session=self._id, with_messages=1
        ):
            yield File(*row)

    def messages(
        self, file: File, after: Place | None = None, limit: int = -1
    ) -> Iterator[Message]:
        """Yield the messages of the main conversation in one file, at most `limit` behind `after`.

        A negative `limit` means no limit.
        """
        offset, block = after or (None, None)
        for row in sql.ask(
            self._connection,
            "pages/session_messages",
            file=file.id,
            after_offset=offset,
            after_block=block,
            limit=limit,
        ):
            yield Message(**dict(row))

    def subagent_messages(
        self, subagent: Subagent, after: tuple[int, Place] | None = None, limit: int = -1
    ) -> Iterator[Message]:
        """Yield the messages of a subagent, at most `limit` behind a place in a file of it."""
        file, (offset, block) = after or (None, (None, None))
        for row in sql.ask(
            self._connection,
            "pages/subagent_messages",
            subagent=subagent.id,
            after_file=file,
            after_offset=offset,
            after_block=block,
            limit=limit,
        ):
            yield Message(**dict(row))

    def text(self, message: int) -> str:
        """Return the text of a message."""
        row = sql.ask(self._connection, "pages/message_text", id=message).fetchone()
        return str(row["text"]) if row else ""


def as_json(conversation: Conversation, *, tools: bool) -> Iterator[str]:
    """Yield the pieces of one JSON object: {session: {}, messages: [], subagents: []}."""
    files = [file._asdict() for file in conversation.files]
    session = {**conversation.session, "models": conversation.models, "files": files}
    main = chain.from_iterable(map(conversation.messages, conversation.files))
    yield f'{{"session": {safe_json(session)},\n"messages": ['
    yield from _list(_messages_json(main, tools=tools))
    yield '],\n"subagents": ['
    for number, subagent in enumerate(conversation.subagents):
        facts = subagent._asdict()
        del facts["spawned_by"]  # the id of a tool call; call_id is the message that called
        yield ",\n" if number else "\n"
        yield safe_json(facts)[:-1] + ', "messages": ['
        messages = conversation.subagent_messages(subagent)
        yield from _list(_messages_json(messages, tools=tools))
        yield "]}"
    yield "]}\n"


def _messages_json(messages: Iterable[Message], *, tools: bool) -> Iterator[str]:
    for message in messages:
        if tools or message.kind not in TOOL_KINDS:
            yield safe_json(message.as_json())


def _list(items: Iterable[str]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield (",\n" if number else "\n") + item
