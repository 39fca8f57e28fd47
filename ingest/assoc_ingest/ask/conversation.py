"""One conversation as it is stored: its session, its messages in file order, their texts and
originals.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice, takewhile
from typing import NamedTuple

from .. import sql, tags
from ..edits import Change, changes_in
from ..errors import ArchiveError
from ..fields import json_text, placeholder, string
from ..files import archive
from ..records import EDIT, PLAN
from ..tags import inside
from ..terminal import cut, duration, is_typable, many, one_line, to_copy, tokens
from .query import TOKEN
from .refs import Line, Names, find_session, messages_of, short_key

# ------------------------------------------------------------------------------------------------
# What an edit changes, in one line.


_SHOWN = 60


def shortly(arguments: dict[str, object]) -> str:
    """Return what the input of an edit changes: `-2 +3 · old line → new line`."""
    gone: list[str] = []
    come: list[str] = []
    for change in islice(changes_in(arguments), 100):
        gone += change.lines("-")
        come += change.lines("+")
    first_gone, first_come = _first_difference(gone, come)
    counts = " ".join(f"{sign}{len(lines)}" for sign, lines in (("-", gone), ("+", come)) if lines)
    shown = " → ".join(cut(one_line(line), _SHOWN) for line in (first_gone, first_come) if line)
    return " · ".join(filter(None, (counts, shown)))


def _first_difference(gone: list[str], come: list[str]) -> tuple[str, str]:
    """Return the first line on each side that the other does not have."""
    others = set(come)
    kept = set(gone)
    first_gone = next((line for line in gone if line.strip() and line not in others), "")
    first_come = next((line for line in come if line.strip() and line not in kept), "")
    return first_gone, first_come


# ------------------------------------------------------------------------------------------------
# The command that goes on with a session, for those who want to: as the source of it says.


_RESUMABLE = ("main", "background")
"""Kinds of sessions that a person can resume."""


def resume_line(session: Mapping[str, object], *, is_there: bool) -> str | None:
    """Return what to type into a shell, None if the session cannot be resumed.

    `session` has the columns `kind`, `source`, `session_key` and `cwd`. It may have `project_path`,
    where a session without a `cwd` was held; `is_there` says whether the agent still has a
    transcript of it.
    """
    from ..sources import SOURCES  # many commands print no resume line, and sources take long

    source = SOURCES.get(str(session["source"]))
    if source is None or not is_there or session["kind"] not in _RESUMABLE:
        return None
    command = source.resume_command(str(session["session_key"]))
    if command is None or not all(map(is_typable, command)):
        return None
    line = to_copy(*command)
    directory = session["cwd"] or session.get("project_path")
    if not isinstance(directory, str) or not is_typable(directory):
        return line
    return f"{to_copy('cd', name=directory)} && {line}"


# ------------------------------------------------------------------------------------------------
# What a line holds that its rows do not: images, and the whole of a text that was cut.
#
# The bytes come from the archive. Where that has lost them, or the line is of a shape that nobody
# foresaw, the rows have to do.


_SIGNATURES = {
    # What a browser can show; an SVG is a document of its own, and may hold anything.
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_LONGEST_LINE = 256 * 1024 * 1024
_MOST_IMAGES = 100  # of one message
_MOST_INPUTS = 1_000  # objects of a line that are compared with the input of a call


@dataclass(frozen=True, slots=True)
class Image:
    """An image as its line holds it."""

    placeholder: str
    """What the text of the message says in its place."""
    media_type: str
    data: str
    """The bytes in base64; '' where they are no image that a browser shows."""


class Originals:
    """Reads lines of a conversation from the archive."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._line: tuple[tuple[int, int], object] = ((-1, -1), None)

    def whole(
        self, file_id: int, byte_offset: int, length: int, kind: str, stored: str
    ) -> str | None:
        """Return the whole text that begins with `stored`, None if it is not found."""
        inputs = 0
        for value in _values(self._value(file_id, byte_offset, length)):
            if isinstance(value, str) and len(value) > len(stored) and value.startswith(stored):
                return value
            if kind == "tool_use" and isinstance(value, dict) and inputs < _MOST_INPUTS:
                inputs += 1
                text = json_text(value)
                if len(text) > len(stored) and text.startswith(stored):
                    return text
        return None

    def images(self, file_id: int, byte_offset: int, length: int, text: str) -> Iterator[Image]:
        seen: set[tuple[str, str]] = set()
        for value in _values(self._value(file_id, byte_offset, length)):
            if len(seen) >= _MOST_IMAGES:
                break
            media_type, data = _image_in(value)
            if media_type is None or data is None:
                continue
            source = {"media_type": media_type, "data": data}
            shown = placeholder({"type": "image", "source": source})
            if shown in text and (media_type, data) not in seen:
                seen.add((media_type, data))
                yield Image(shown, media_type, _checked(media_type, data))

    def _value(self, file_id: int, offset: int, length: int) -> object:
        """Return the JSON value of a line; the last one is remembered, it may have many blocks."""
        place = (file_id, offset)
        if self._line[0] != place:
            value = None
            with suppress(ArchiveError, ValueError, RecursionError):
                if length <= _LONGEST_LINE:
                    data = archive.read(self._connection, file_id, offset, offset + length)
                    value = json.loads(b"".join(data))
            self._line = (place, value)
        return self._line[1]


def _values(value: object) -> Iterator[object]:
    """Yield all values inside a value, in order."""
    pending = [value]
    while pending:
        value = pending.pop()
        yield value
        if isinstance(value, dict):
            pending.extend(reversed(value.values()))
        elif isinstance(value, list):
            pending.extend(reversed(value))


def _image_in(value: object) -> tuple[str | None, str | None]:
    """Return the type and the bytes of an image that is an object, or the URL of its data."""
    if isinstance(value, str) and value.startswith("data:image/"):
        media_type, _, data = value[5:].partition(";base64,")
        return media_type[:100], data
    if not isinstance(value, dict):
        return None, None
    return string(value.get("media_type")), string(value.get("data"))


def _checked(media_type: str, data: str) -> str:
    from base64 import b64decode

    try:
        first = b64decode(data[:64], validate=True)
        b64decode(data, validate=True)
    except ValueError:
        return ""
    return data if first.startswith(_SIGNATURES.get(media_type, (b"\0 none",))) else ""


# ------------------------------------------------------------------------------------------------
# Stored text for a reader, without the tags in which the agent wrapped it.


PEOPLE = frozenset({"prompt", "command", "bash_input", "memory_input", "queued_prompt"})
"""Kinds of what a person typed."""

NOISE = {"meta": "injected text", "attachment": "attachment", "hook": "hook"}
"""Kinds of what the program injects: what follows each other of these is shown as one line."""

COMPACTED = "Conversation compacted"
"""How the notice begins behind which an agent knows only a summary of what was said before."""

BORDERS = ("the conversation continues", "taken back from here")
"""The lines behind and before messages that are no longer part of the conversation."""


@dataclass(frozen=True, slots=True)
class Aside:
    """How a message is shown that is neither prompt nor answer nor call."""

    head: str
    lines: int
    colour: str | None = None


_LETTERS = ("teammate-message", "cross-session-message")
_SENDERS = ("teammate_id", "from-name", "from")

_ASIDES = {
    "thinking": Aside("∴ ", 4),
    "compact_summary": Aside("≡ ", 8),
    "task_notification": Aside("task: ", 3),
    "agent_message": Aside("✉ ", 8, "cyan"),
    "command_output": Aside("", 6),
    "bash_output": Aside("", 6),
    "tool_result": Aside("result: ", 4),
    "interrupt": Aside("■ ", 2, "yellow"),
    "error": Aside("✗ ", 8, "red"),
    "image": Aside("", 1),
    "system": Aside("· ", 3),
}


def aside(kind: str) -> Aside:
    """Return how a message of this kind is shown; a kind of tomorrow is shown like a notice."""
    return _ASIDES.get(kind, Aside(f"{kind}: ", 3))


def typed(kind: str, text: str) -> str:
    """Return what a person typed: `/command arguments`, `! command`, `# memory`, or the prompt."""
    if kind == "command":
        name, arguments = inside(text, "command-name"), inside(text, "command-args")
        return f"{name or inside(text, 'command-message') or text} {arguments or ''}".strip()
    if kind == "bash_input":
        return f"! {untagged(text)}"
    if kind == "memory_input":
        return f"# {untagged(text)}"
    return text


def heard(kind: str, text: str) -> str:
    """Return what the program or another agent says, in few words where it is wrapped."""
    if kind == "task_notification":
        summary, status = inside(text, "summary"), inside(text, "status")
        return summary or status or untagged(text)
    if kind == "agent_message":
        sender, body = _sender(text), untagged(text)
        return f"{sender}: {body}" if sender is not None else body
    if kind in ("command_output", "bash_output"):
        return untagged(text)
    return text


def whole(text: str, shown: str) -> str:
    """Return what is shown of a stored text if that leaves out no word but tags, else the text."""
    words = set(_words(tags.without(text)))
    for tag in tags.openings(text):
        words.update(*map(_words, (tag.attributes or {}).values()))
    return shown if words <= set(_words(shown)) else text


def _words(text: str) -> list[str]:
    found: list[str] = TOKEN.findall(text)
    return found


def untagged(text: str) -> str:
    """Return the text without the tags around its parts: `<stdout>a</stdout><stderr/>` is `a`."""
    parts = [element.text.strip("\n") for element in tags.outermost(text.strip())]
    inner = "\n".join(part for part in parts if part.strip())
    return inner if parts else text


def _sender(text: str) -> str | None:
    """Return who sent a message that is wrapped as one from an agent."""
    for tag in tags.openings(text):
        if tag.name in _LETTERS:
            for key, value in (tag.attributes or {}).items():
                if key in _SENDERS:
                    return value
    return None


# ------------------------------------------------------------------------------------------------
# What a call says that it does, and what a subagent was.


_WITHOUT_RESULT = {"pending": "unfinished", "declined": "declined"}
"""What is said of a call that never ran to its end."""

BOXES = {"completed": "☑", "in_progress": "◐"}
"""How the status of a thing to do is shown; of any other it is an empty box."""


def changes_of(message: Message) -> list[Change]:
    """Return what a call changes in files: its result only says that it was done."""
    return [*changes_in(arguments_of(message))] if message.action == EDIT else []


def things_to_do(message: Message) -> list[object] | None:
    """Return the list of things to do that a call states, None if it states none."""
    todos = arguments_of(message).get("todos") if message.action == PLAN else None
    return todos if isinstance(todos, list) else None


def target_of(message: Message, directory: str | None) -> str:
    """Return what the call was applied to, a path below `directory` without it."""
    target = one_line(message.target or _first_text(arguments_of(message)) or "")
    return target.removeprefix(directory) if directory else target


def _first_text(value: object) -> str | None:
    """Return the first text inside a value, for a call that has no target."""
    if isinstance(value, str):
        return value.strip() or None
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((text for item in inner if (text := _first_text(item))), None)


def arguments_of(message: Message) -> dict[str, object]:
    """Return the input of the call; {} where its text was cut and is no JSON any more."""
    try:
        value = json.loads(message.content)
    except ValueError:  # the text ends at 256 KiB
        return {}
    if isinstance(value, str):
        return {"input": value}
    return value if isinstance(value, dict) else {}


def call_facts(message: Message) -> tuple[str, str | None]:
    facts = [duration(message.duration_ms)]
    colour = None
    if message.status == "error":
        facts.insert(0, f"exit {message.exit_code}" if message.exit_code else "error")
        colour = "red"
    elif message.status in _WITHOUT_RESULT:
        facts.insert(0, _WITHOUT_RESULT[message.status])
        colour = "yellow"
    return " · ".join(fact for fact in facts if fact), colour


def by_call(subagents: Iterable[Subagent]) -> dict[int, list[Subagent]]:
    """Return the subagents that a call spawned, under the number of that call."""
    found: dict[int, list[Subagent]] = {}
    for subagent in subagents:
        if subagent.spawned_by is not None:
            found.setdefault(subagent.spawned_by, []).append(subagent)
    return found


def facts_of(subagent: Subagent) -> str:
    """Return one line about a subagent: what it is, what for, how long, its key."""
    facts = [
        subagent.agent_type or subagent.name or subagent.kind,
        subagent.description,
        many(subagent.message_count, "message") if subagent.message_count else None,
        f"{tokens(subagent.tokens, subagent.partial)} tokens" if subagent.tokens else None,
        subagent.agent_key,
    ]
    return " · ".join(fact for fact in facts if fact)


# ------------------------------------------------------------------------------------------------
# One conversation as it is stored: its session, its messages in file order, its subagents.
#
# Messages are read as they are asked for: a session of 20,000 messages is never in memory.


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
    """1: the same line occurs earlier in the same file."""
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
        """Return the stable JSON object; facts about a call are in `call`."""
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
        return [str(model) for model in json.loads(str(self.session["models"] or "[]"))]

    @property
    def resume(self) -> str | None:
        """Return the shell command that resumes the session, None if there is none."""
        is_there = any(file.kind == "transcript" and file.gone_at is None for file in self.files)
        return resume_line(self.session, is_there=is_there)

    def sizes(self) -> list[str]:
        """Return how much of each kind there is, in words."""
        counts = {
            "prompt": self.session["prompt_count"],
            "message": self.session["message_count"],
            "tool call": self.session["tool_call_count"],
            "subagent": len(self.subagents) or None,
        }
        return [many(count, word) for word, count in counts.items() if isinstance(count, int)]

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
        return Names(self.connection)

    def short_key(self, subagent: Subagent | None = None) -> str:
        key = subagent.agent_key if subagent else str(self.session["session_key"])
        return short_key(self.connection, key)

    def place_of(self, message: int) -> tuple[int, int] | None:
        row = self._ask("message_place", id=message).fetchone()
        return (row["file_id"], row["byte_offset"]) if row else None

    def _ask(self, query: str, **parameters: object) -> sqlite3.Cursor:
        return sql.ask(self.connection, f"pages/{query}", **parameters)

    def text(self, message: int) -> str:
        return self.whole_text(message)[0]

    def whole_text(self, message: int) -> tuple[str, bool]:
        row = self._ask("message_text", id=message).fetchone()
        return (str(row["text"]), bool(row["is_cut"])) if row else ("", False)
