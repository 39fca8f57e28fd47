"""A conversation as it is exported: its texts whole, its credentials masked, its places stable.

An anchor names a message by its place: `L12` is line 12 of the transcript, `L12.1` its second
block, `a4c1e-L3` line 3 of the subagent `a4c1e`, `f2-L12` a line of the second file. It stays the
same when the database is rebuilt.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from .. import sql
from ..secrets.mask import redact
from .conversation import TOOL_KINDS, Conversation, File, Message, Place, Subagent
from .lines import Lines
from .message_text import PEOPLE
from .originals import Image, Originals

LONGEST = 4_000_000
"""Characters of one text that are exported."""

_NAMES = ("tool", "model", "file")
_KEPT = ("session_key", "source", "started_at", "ended_at", "forked_from", "linked_session", "kind")


@dataclass(frozen=True, slots=True)
class Choice:
    """What is exported."""

    tools: bool = True
    thinking: bool = True
    redacts: bool = True
    every_record: bool = False
    """Also those that a page shows with another message, such as the results of calls."""


class ExportedConversation(Conversation):
    """A conversation whose texts are masked as they are read."""

    def __init__(
        self, connection: sqlite3.Connection, prefix: str, choice: Choice | None = None
    ) -> None:
        """Find the session, as Conversation does."""
        super().__init__(connection, prefix)
        self.choice = choice or Choice()
        self.masked: Counter[str] = Counter()
        """How many places were masked so far, by kind."""
        self.shortened = 0
        """How many texts are exported without their end so far."""
        self._originals = Originals(connection)
        self._lines = Lines(connection)
        self._names: dict[str, str] = {}
        self._prefixes: dict[tuple[str | None, int], str] = {}
        self._agents_files: Counter[str | None] = Counter()
        self.session = {
            key: self.clean(value) if isinstance(value, str) and key not in _KEPT else value
            for key, value in self.session.items()
        }
        self.other_roots = [self.clean(root) for root in self.other_roots]
        self.files = [file._replace(path=self.clean(file.path)) for file in self.files]
        self.subagents = [self._clean_subagent(one) for one in self.subagents]

    def clean(self, text: str) -> str:
        """Return a text with its credentials masked and counted."""
        if not self.choice.redacts:
            return text
        text, found = redact(text)
        self.masked.update(found)
        return text

    def messages(
        self, file: File, after: Place | None = None, limit: int = -1
    ) -> Iterator[Message]:
        """Yield the messages of one file that are exported."""
        self._name_file(None, file.id)
        return self._exported(super().messages(file, after, limit))

    def subagent_messages(
        self, subagent: Subagent, after: tuple[int, Place] | None = None, limit: int = -1
    ) -> Iterator[Message]:
        """Yield the messages of a subagent that are exported."""
        for message in self._exported(super().subagent_messages(subagent, after, limit)):
            self._name_file(subagent.agent_key, message.file_id)
            yield message

    def prompts(self) -> Iterator[Message]:
        """Yield what people typed in the main conversation, in order; nothing of it is counted."""
        counted = self.masked.copy(), self.shortened
        for file in self.files_with_messages():
            self._name_file(None, file.id)
            for message in super().messages(file):
                is_shown = not (message.stands_elsewhere or message.is_repeat)
                if message.kind in PEOPLE and is_shown:
                    yield self._clean_message(message)
        self.masked, self.shortened = counted

    def text(self, message: int) -> str:
        """Return the text of a message, which is a result."""
        row = sql.ask(self.connection, "pages/message_text", id=message).fetchone()
        if row is None:
            return ""
        text = str(row["text"] or "")
        if row["is_cut"]:
            place = (row["file_id"], row["byte_offset"], row["byte_length"])
            text = self._whole(self._originals.whole(*place, "tool_result", text), text)
        return self.clean(text)

    def output_file(self, message: Message) -> str:
        """Return what a call gave that was too large for the transcript, '' if there is nothing."""
        row = None
        if message.output_file is not None:
            row = sql.ask(
                self.connection, "pages/result_file", session=self._id, name=message.output_file
            ).fetchone()
        return self.clean(str(row["text"] or "")) if row is not None else ""

    def images(self, message: int, text: str) -> Iterator[Image]:
        """Yield the images of the line of a message for which this text has placeholders."""
        if "[image " in text:
            row = sql.ask(self.connection, "pages/message_text", id=message).fetchone()
            place = (row["file_id"], row["byte_offset"], row["byte_length"])
            yield from self._originals.images(*place, text)

    def line_number(self, message: Message) -> int | None:
        """Return the number of the line of a message, from 1; None where it is not known."""
        return self._lines.number(message.file_id, message.byte_offset)

    def anchor(self, message: Message, agent: str | None = None) -> str:
        """Return the anchor of a message of the main conversation, or of a subagent."""
        return self._anchor(agent, message.file_id, message.byte_offset, message.block)

    def result_anchor(self, message: int, agent: str | None = None) -> str | None:
        """Return the anchor of a result, None where it is in a file that is not exported."""
        row = sql.ask(self.connection, "pages/message_text", id=message).fetchone()
        if row is None or (agent, row["file_id"]) not in self._prefixes:
            return None
        return self._anchor(agent, row["file_id"], row["byte_offset"], row["block"])

    def _anchor(self, agent: str | None, file: int, offset: int, block: int) -> str:
        prefix = self._prefixes.get((agent, file), f"x{file}-")
        number = self._lines.number(file, offset)
        if number is None:
            return f"{prefix}B{offset}" + (f".{block}" if block else "")
        if not self._lines.is_start(file, offset):
            return f"{prefix}L{number}.B{offset}.{block}"
        return f"{prefix}L{number}" + (f".{block}" if block else "")

    def _name_file(self, agent: str | None, file: int) -> None:
        """Give the anchors in a file of the conversation, or of a subagent, their beginning."""
        if (agent, file) in self._prefixes:
            return
        self._agents_files[agent] += 1
        number = self._agents_files[agent]
        prefix = f"{quote(agent, safe='')}-" if agent is not None else ""
        self._prefixes[agent, file] = prefix + (f"f{number}-" if number > 1 else "")

    def _exported(self, messages: Iterable[Message]) -> Iterator[Message]:
        for message in messages:
            if self._is_wanted(message):
                yield self._clean_message(message)

    def _is_wanted(self, message: Message) -> bool:
        if message.stands_elsewhere and not self.choice.every_record:
            return False
        if message.kind in TOOL_KINDS:
            return self.choice.tools
        return self.choice.thinking or message.kind != "thinking"

    def _clean_message(self, message: Message) -> Message:
        if not (self.choice.redacts or message.is_cut):
            return message
        text = message.content
        if message.is_cut:
            place = (message.file_id, message.byte_offset, message.byte_length)
            found = self._originals.whole(*place, message.kind, text)
            text = self._whole(found, text, is_json=message.kind == "tool_use")
        target = message.target
        if self.choice.redacts:
            before = text
            text, masked = redact(before)
            self.masked.update(masked)
            if target is not None:
                target = _clean_target(target, before, text)
        names = {name: self._name(getattr(message, name)) for name in _NAMES}
        if message.text is not None:
            return replace(message, text=text, target=target, **names)  # type: ignore[arg-type]
        return replace(message, tool_text=text, target=target, **names)  # type: ignore[arg-type]

    def _name(self, name: str | None) -> str | None:
        """Return a name that many messages repeat, masked and counted once."""
        if name is None or not self.choice.redacts:
            return name
        if name not in self._names:
            self._names[name] = self.clean(name)
        return self._names[name]

    def _whole(self, found: str | None, stored: str, *, is_json: bool = False) -> str:
        """Return the whole text; where its end is not exported, a note says so."""
        if found is not None and len(found) <= LONGEST:
            return found
        self.shortened += 1
        if found is None:
            return stored if is_json else f"{stored}\n[the end is not in the database]"
        return f"{found[:LONGEST]}\n[{len(found) - LONGEST:,} more characters left out]"

    def _clean_subagent(self, subagent: Subagent) -> Subagent:
        texts = {
            name: self.clean(value)
            for name in ("agent_type", "description", "name", "model", "workflow")
            if isinstance(value := getattr(subagent, name), str)
        }
        return subagent._replace(**texts)  # type: ignore[arg-type]


def _clean_target(target: str, before: str, after: str) -> str:
    """Return the target of a call whose input was masked.

    It is the beginning of a value of the input, and may end in the midst of a credential.
    """
    try:
        given, masked = (json.loads(before), json.loads(after)) if after != before else ({}, {})
        values = [(value, masked[key]) for key, value in given.items()]
    except (ValueError, KeyError, AttributeError):  # the text was cut, or a key was masked
        values = []
    for value, harmless in values:
        if isinstance(value, str) and " ".join(value.split()).startswith(target):
            return " ".join(str(harmless).split())[: len(target)]
    return redact(target)[0]
