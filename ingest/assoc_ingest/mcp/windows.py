"""Messages of a conversation as items: those around a line, or all in order, a page at a time.

A page begins behind a place in a file, which its cursor holds, so that the last page of a long
conversation costs as little as the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .. import sql
from ..ask.conversation import Conversation, Message, Part, Place, Subagent
from ..ask.lookup import Key
from ..ask.message_text import PEOPLE, typed
from ..ask.refs import Line
from ..errors import UsageError
from .answers import Item
from .quotes import heading, quoted


class Position(NamedTuple):
    """A message, and the letter of its text from which on it was not shown."""

    file: int
    """The id of its file; 0 for the beginning."""
    offset: int
    block: int
    letter: int = 0


_LARGE, _BLOCKS = 10**10, 1_000  # bytes of a file, and blocks of a line, at most


@dataclass(slots=True)
class Window:
    """Messages of one conversation or subagent, from a position on."""

    conversation: Conversation
    parts: list[Part]
    marks: frozenset[int] = frozenset()
    agent_key: str | None = None
    earlier: int = 0
    """Messages before it, where that is known: at least one."""

    def items(self, start: Position, positions: list[Position]) -> Iterator[Item]:
        """Yield the messages; the position of each is added to `positions` before it is yielded."""
        names = self.conversation.names()
        for part in self._parts_from(start):
            root = str(self.conversation.session["root"])
            for message in self.conversation.messages_of(part):
                if message.stands_elsewhere and message.answers is None:
                    continue
                positions.append(Position(part.file, message.byte_offset, message.block))
                line = names.line(message.file_id, message.byte_offset)
                item: Item = {
                    "ref": names.at(message.file_id, line),
                    "is_marked": True if message.id in self.marks else None,
                    "agent_key": self.agent_key,
                    **_shown(message),
                    "file": f"{root}/{message.file}",
                    "line": line,
                    "byte": message.byte_offset,
                }
                yield {field: value for field, value in item.items() if value is not None}

    def furthest(self) -> Position:
        """Return a position with numbers as long as those of any message here."""
        sizes = {file.id: file.size for file in self.conversation.files}
        most = max((sizes.get(part.file, _LARGE) for part in self.parts), default=0)
        return Position(max((part.file for part in self.parts), default=0), most, _BLOCKS)

    def _parts_from(self, start: Position) -> list[Part]:
        """Return the parts from a position on. Raises UsageError if its file is not there."""
        if not start.file:
            return self.parts
        files = [part.file for part in self.parts]
        if start.file not in files:
            raise UsageError("The cursor leads to what is no longer there. Open the ref again.")
        first, *others = self.parts[files.index(start.file) :]
        before = _before(start)
        if first.after is None or before > first.after:
            first = first._replace(after=before)
        return [first, *others]


def whole(conversation: Conversation, key: Key) -> Window:
    """Return all messages of a conversation, or of a subagent."""
    subagent = _subagent(conversation, key.agent_key)
    return Window(conversation, [*conversation.parts(subagent)], agent_key=key.agent_key)


def around(conversation: Conversation, line: Line, before: int, after: int) -> Window:
    """Return the messages before and after a line, and those of the line itself."""
    rows = conversation.line(line)
    inside = next((row["subagent_id"] for row in rows if row["subagent_id"] is not None), None)
    key = next((one.agent_key for one in conversation.subagents if one.id == inside), None)
    part = Part(line.file.path, line.file.id, inside)
    first = Place(rows[0]["byte_offset"], rows[0]["block"])
    last = Place(rows[-1]["byte_offset"], rows[-1]["block"])
    earlier, _ = conversation.around(part, first, before + 1)
    _, later = conversation.around(part, last, after + 1)
    part = part._replace(
        after=earlier[before] if len(earlier) > before else None,
        until=later[after] if len(later) > after else None,
    )
    return Window(
        conversation,
        [part],
        frozenset(row["id"] for row in rows),
        key,
        max(len(earlier) - before, 0),
    )


def render(item: Item) -> str:
    """Return a message as text."""
    known = [item.get(field) for field in ("ref", "kind", "tool", "status")]
    mark = "this-line" if "is_marked" in item else None
    taken_back = "taken-back" if "is_taken_back" in item else None
    lines = ["", heading(*known, str(item.get("time") or "")[:16], taken_back, mark)]
    if "target" in item and "text" not in item:
        lines.append(quoted(str(item["target"])))
    if "text" in item:
        lines.append(quoted(str(item["text"])))
    if "letters" in item:
        lines.append(f"(of {item['letters']} letters; all: this ref with before 0 and after 0)")
    return "\n".join(lines)


def _shown(message: Message) -> Item:
    """Return what a message says; what a person typed without the tags around it."""
    text = message.content
    if message.kind in PEOPLE:
        text = typed(message.kind, text)
    return {
        "kind": message.kind,
        "time": message.timestamp,
        "model": message.model,
        "tool": message.tool,
        "target": message.target,
        "status": message.status,
        "exit_code": message.exit_code,
        "text": text,
        "is_cut_in_index": True if message.is_cut else None,
        "is_taken_back": True if message.is_superseded else None,
    }


def _before(position: Position) -> Place:
    """Return the place right before a position: a query begins behind a place."""
    if position.block:
        return Place(position.offset, position.block - 1)
    return Place(position.offset - 1, 2**31)


def _subagent(conversation: Conversation, agent_key: str | None) -> Subagent | None:
    found = [one for one in conversation.subagents if one.agent_key == agent_key]
    if agent_key is not None and not found:
        raise UsageError(f"Nothing of the subagent {agent_key!r} is indexed.")
    return max(found, key=lambda one: one.message_count, default=None)


def outcome(conversation: Conversation) -> tuple[Item | None, str]:
    """Return the last text of the agent, and how the conversation ended."""
    session = conversation.session["id"]
    ends = sql.ask(conversation.connection, "pages/session_ends", sessions=f"[{session}]")
    row = ends.fetchone()
    state = str(row["state"]) if row is not None else "finished"
    last = sql.ask(conversation.connection, "pages/last_answer", session=session).fetchone()
    if last is None:
        return None, state
    ref = conversation.names().of(last["file_id"], last["byte_offset"])
    return {"ref": ref, "time": last["timestamp"], "text": last["text"]}, state
