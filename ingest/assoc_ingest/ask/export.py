"""A conversation as a file to keep or to send: Markdown, JSON lines, what it says of itself, its
name.
"""

from __future__ import annotations

import html
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from .. import edits, sql, terminal
from ..records import RUN
from ..secrets.mask import redact
from ..terminal import cut, one_line, readable, safe_json
from . import conversation as message_text
from .conversation import (
    PEOPLE,
    TOOL_KINDS,
    Conversation,
    File,
    Image,
    Message,
    Originals,
    Place,
    Subagent,
    by_call,
    facts_of,
)
from .filters import Filters, projects_in
from .notes import notes_above, told
from .refs import Lines, short_key
from .usage import spent_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# ------------------------------------------------------------------------------------------------
# Stored text as Markdown that cannot break out of its place.
#
# What agents write is Markdown already. Its blocks are written again one by one: a code block
# that is never closed gets its end, a heading moves below those of the document. In what is left
# no `<` stays that could begin a tag, no image is loaded, no link leads to a script, no name is
# mentioned and no issue closed. Other text is escaped, or stands in a fence that is longer than
# any in it.


LONGEST_TEXT = 60_000
"""Characters of Markdown that are parsed; a longer text is put into a fence."""

_special = re.compile(r"[\\`<!\]@#]")
_ticks = re.compile(r"`+")
_fences = re.compile(r"`{3,}+")
_active = re.compile(r"[\\`*_\[\]~|$!<>&@#]")
_line_start = re.compile(r"\A\s*(?:[-+=]|\d{1,9}[.)])")
_tag_start = re.compile(r"<[A-Za-z/!?]")
_destination = re.compile(r"(?:https?://|mailto:|#|\.{0,2}/|[\w.-]{1,200}(?:[/)#?\s]|\Z))", re.I)
_info = re.compile(r"[\w+#.-]{1,20}")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_BREAK = "&#8203;"
"""Inserted after `@` and `#`, to prevent mentions and links to issues."""

_DEEPEST = 14  # lists and quotes inside each other; programs stop at about twenty
_FEW_LINES = 40  # that are quoted; more of them stand in a fence


def prose(text: str, level: int) -> str:
    """Return Markdown that an agent wrote, its headings below those of this level."""
    text = readable(text).strip("\n")
    if len(text) > LONGEST_TEXT or text.count("|") > LONGEST_TEXT // 20:
        return fenced(text, "markdown")
    tokens = _parser().parse(text)
    if max((token.level for token in tokens), default=0) > _DEEPEST:
        return fenced(text, "markdown")
    return "\n\n".join(_blocks(tokens, text.split("\n"), level))


def quoted(text: str) -> str:
    """Return typed text as a quotation, or in a fence if it has its own layout."""
    lines = readable(text).strip("\n").split("\n")
    has_shape = any(
        line.startswith("    ") or line.lstrip().startswith(("```", "|")) for line in lines
    )
    if has_shape or len(lines) > _FEW_LINES:
        return fenced("\n".join(lines))
    shown = [_line_start.sub(_not_an_item, escaped(line), count=1) for line in lines]
    ends = [
        "\\" if line and after else "" for line, after in zip(shown, [*shown[1:], ""], strict=True)
    ]
    return "\n".join(f"> {line}{end}".rstrip(" ") for line, end in zip(shown, ends, strict=True))


def escaped(text: str) -> str:
    """Return a line of text without anything that Markdown would obey."""
    return _active.sub(lambda match: _inactive(match, text), text)


def heading(text: str, level: int) -> str:
    return f"{'#' * min(level, 6)} {escaped(one_line(text))}"


def fenced(text: str, info: str = "") -> str:
    """Return a text in a fence that is longer than any in it."""
    text = readable(text).strip("\n")
    longest = max((len(match[0]) for match in _fences.finditer(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text}\n{fence}"


def code(text: str) -> str:
    text = one_line(text)
    longest = max((len(match[0]) for match in _ticks.finditer(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def in_html(text: str) -> str:
    """Return a line of text for the inside of a tag of ours."""
    shown = html.escape(one_line(text), quote=False)
    return shown.replace("#", f"#{_BREAK}").replace("@", f"@{_BREAK}")


def _not_an_item(match: re.Match[str]) -> str:
    """Return the beginning of a line that would be an item of a list, or underline a heading."""
    return f"{match[0][:-1]}\\{match[0][-1]}"


def _inactive(match: re.Match[str], text: str) -> str:
    letter = match[0]
    if letter in "<&":
        return html.escape(letter)
    if letter in "@#" and text[match.end() : match.end() + 1].isalnum():
        return letter + _BREAK
    return "\\" + letter if letter != "@" else letter


# -- what an agent wrote -----------------------------------------------------------------------


def _blocks(tokens: list[Token], lines: list[str], level: int) -> Iterator[str]:
    for token, inner in _outermost(tokens):
        first, last = token.map or (0, 0)
        if token.type == "heading_open":
            marks = "#" * min(level + int(token.tag[1:]), 6)
            yield f"{marks} {_inline(inner[0].content.replace(chr(10), ' '))}"
        elif token.type in ("fence", "code_block"):
            info = _info.match(token.info.strip())
            yield fenced(token.content, info[0] if info else "")
        elif token.type == "hr":
            yield "---"
        else:
            yield "\n".join(_written_again([token, *inner], lines, first, last)).rstrip()


def _outermost(tokens: list[Token]) -> Iterator[tuple[Token, list[Token]]]:
    """Yield each token that is in no other, with all that are in it."""
    first = 0
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[first], tokens[first + 1 : number]
            first = number + 1


def _written_again(
    tokens: Iterable[Token], lines: list[str], first: int, last: int
) -> Iterator[str]:
    """Yield the lines of a block: those of code as they are, each run of text harmless."""
    ends: dict[int, tuple[int, str]] = {}
    for token in tokens:
        kind = {"fence": "code", "code_block": "code", "table_open": "table", "inline": "text"}
        if token.map is not None and token.type in kind and token.map[0] not in ends:
            ends[token.map[0]] = (token.map[1], kind[token.type])
    number = first
    while number < last:
        end, kind_of = ends.get(number, (number + 1, "text"))
        end = max(min(end, last), number + 1)
        if kind_of == "code":
            yield from lines[number:end]
        elif kind_of == "table":  # a cell ends before what is written as code in it does
            yield from ("|".join(map(_inline, line.split("|"))) for line in lines[number:end])
        else:
            yield _inline("\n".join(lines[number:end]))
        number = end


def _inline(text: str) -> str:
    """Return a run of text, which is parsed as one, without what must not be in it."""
    parts: list[str] = []
    closings = _closings(text)
    position = 0
    while (match := _special.search(text, position)) is not None:
        start, letter = match.start(), match[0]
        parts.append(text[position:start])
        following = text[start + 1 : start + 2]
        position = start + 1
        if letter == "`":
            run = _ticks.match(text, start)
            length = len(run[0]) if run else 1
            end = closings.get(start)
            position = end if end is not None else start + length
            span = text[start:position]
            parts.append(_code_span(span, length) if end is not None else "\\`" * length)
        elif letter == "\\" and following in _PUNCTUATION and following:
            parts.append(letter + following)
            position = start + 2
        else:
            parts.append(_harmless(letter, following, text, start))
    return "".join([*parts, text[position:]])


def _harmless(letter: str, following: str, text: str, start: int) -> str:
    if letter == "<":
        return "&lt;"
    if letter == "!" and following == "[":
        return "!\\"
    if letter == "]" and following == ":":
        return "]\\"
    if letter == "]" and following == "(":
        destination = text[start + 2 : start + 300].lstrip()
        return "]" if _destination.match(destination) else "]\\"
    if letter in "@#" and following.isalnum() and not text[max(start - 1, 0) : start].isalnum():
        return letter + _BREAK
    return letter


def _closings(text: str) -> dict[int, int]:
    """Return where the code ends that begins at each run of back quotes: behind one as long.

    From the last run to the first, so that each is looked at once.
    """
    closings: dict[int, int] = {}
    next_of: dict[int, int] = {}
    for run in reversed(list(_ticks.finditer(text))):
        length = len(run[0])
        if length in next_of:
            closings[run.start()] = next_of[length]
        next_of[length] = run.end()
    return closings


def _code_span(span: str, length: int) -> str:
    """Return code in a line; with tags of ours if it has a tag in it, wherever it ends up."""
    if _tag_start.search(span) is None:
        return span
    inner = " ".join(span[length:-length].split())
    return f"<code>{_active.sub(lambda match: f'&#{ord(match[0])};', inner)}</code>"


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    known = MarkdownIt("commonmark", {"html": False})
    return known.enable(["table", "strikethrough"]).disable(["reference"])


# ------------------------------------------------------------------------------------------------
# A conversation as it is exported: its texts whole, its credentials masked, its places stable.
#
# An anchor names a message by its place: `L12` is line 12 of the transcript, `L12.1` its second
# block, `a4c1e-L3` line 3 of the subagent `a4c1e`, `f2-L12` a line of the second file. It stays
# the same when the database is rebuilt.


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
        self._name_file(None, file.id)
        return self._exported(super().messages(file, after, limit))

    def subagent_messages(
        self, subagent: Subagent, after: tuple[int, Place] | None = None, limit: int = -1
    ) -> Iterator[Message]:
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
        row = sql.ask(self.connection, "pages/message_text", id=message).fetchone()
        if row is None:
            return ""
        text = str(row["text"] or "")
        if row["is_cut"]:
            place = (row["file_id"], row["byte_offset"], row["byte_length"])
            text = self._whole(self._originals.whole(*place, "tool_result", text), text)
        return self.clean(text)

    def output_file(self, message: Message) -> str:
        """Return output of a call that was too large for the transcript, '' if there is none."""
        row = None
        if message.output_file is not None:
            row = sql.ask(
                self.connection, "pages/result_file", session=self._id, name=message.output_file
            ).fetchone()
        return self.clean(str(row["text"] or "")) if row is not None else ""

    def images(self, message: int, text: str) -> Iterator[Image]:
        if "[image " in text:
            row = sql.ask(self.connection, "pages/message_text", id=message).fetchone()
            place = (row["file_id"], row["byte_offset"], row["byte_length"])
            yield from self._originals.images(*place, text)

    def line_number(self, message: Message) -> int | None:
        """Return the number of the line of a message, from 1; None where it is not known."""
        return self._lines.number(message.file_id, message.byte_offset)

    def anchor(self, message: Message, agent: str | None = None) -> str:
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


# ------------------------------------------------------------------------------------------------
# What an exported conversation says of itself: at its head, and at its end.


def title_of(conversation: ExportedConversation) -> str:
    return one_line(str(conversation.session["title"] or "")) or "(untitled)"


def facts(
    connection: sqlite3.Connection, conversation: ExportedConversation
) -> Iterator[tuple[str, str]]:
    """Yield names and values: where and when it was held, with what, at what cost."""
    session = conversation.session
    text = {key: one_line(value) for key, value in session.items() if isinstance(value, str)}
    prompts, _, *others = conversation.sizes()
    used = spent_of(conversation).words(session)
    found = {
        "Project": text.get("project"),
        "Branch": text.get("git_branch"),
        "Agent name": text.get("agent"),
        "Model": ", ".join(map(one_line, conversation.models)),
        "When": _when(text.get("started_at"), text.get("ended_at")),
        "Messages": ", ".join([f"{session['message_count']:,}", prompts, *others]),
        "Tokens": used.get("tokens"),
        "Cost": used.get("cost"),
        "Stated cost": _dollars(session["stated_cost_usd"]),
        "Tag": text.get("tag"),
        "Fork of": text.get("forked_from"),
        "Linked to": text.get("linked_session"),
        "Source": text["source"],
        "Session": text["session_key"],
    }
    yield from ((name, value) for name, value in found.items() if value)
    for note in notes_above(connection, text["session_key"], None):
        said = one_line(conversation.clean(note.text or ""))
        yield note.label.capitalize(), f"{note.ref} {said}".rstrip()


def exported_links(
    connection: sqlite3.Connection, conversation: ExportedConversation
) -> Iterator[tuple[str, str, str]]:
    """Yield what a conversation links to: the kind, the address, and what to call it."""
    for row in sql.ask(connection, "pages/session_links", session=conversation.session["id"]):
        url = conversation.clean(str(row["url"]))
        title = conversation.clean(str(row["title"])) if row["title"] else url
        yield str(row["kind"]).replace("_", " "), url, one_line(title)


def places(conversation: ExportedConversation) -> Iterator[str]:
    for file in conversation.files:
        yield one_line(file.path) + (" (deleted)" if file.gone_at else "")
    for root in (str(conversation.session["root"]), *conversation.other_roots):
        yield f"in {one_line(root)}"


def closing(conversation: ExportedConversation) -> Iterator[str]:
    choice = conversation.choice
    if conversation.masked:
        yield f"Masked: {counted(conversation.masked)}."
    elif not choice.redacts:
        yield "Credentials are not masked."
    if conversation.shortened:
        count = terminal.many(conversation.shortened, "text")
        yield f"Without its end: {count}; the original file has all of it."
    left_out = [name for name, kept in _PARTS.items() if not getattr(choice, kept)]
    if left_out:
        yield f"Left out: {' and '.join(left_out)}."
    yield "Exported with assoc-ingest."


def counted(masked: Counter[str]) -> str:
    return ", ".join(f"{kind} ({count:,})" for kind, count in masked.most_common())


_PARTS = {"tool calls": "tools", "thinking": "thinking"}


def _when(start: str | None, end: str | None) -> str:
    """Return the time with its zone: who reads a file may be in another one."""
    if not start and not end:
        return ""
    zone = datetime.fromisoformat(start or end or "").astimezone()
    return f"{terminal.span(start, end)} (UTC{zone:%z})".replace("(UTC+0000)", "(UTC)")


def _dollars(amount: object) -> str:
    return terminal.money(amount) if isinstance(amount, int | float) else ""


# ------------------------------------------------------------------------------------------------
# The parts of an exported conversation in order, whatever they look like.


_LEVELS = 20  # of subagents inside each other; a deeper one is at the end


class Document:
    """Yields the messages of a conversation piece by piece: one of any length is written.

    A subclass says what each piece looks like. No subagent is shown twice, so there is no cycle.
    """

    closing = "</details>"
    """What ends the messages of a subagent."""

    def __init__(self, connection: sqlite3.Connection, conversation: ExportedConversation) -> None:
        self.connection = connection
        self.conversation = conversation
        self.level = 0
        """How many subagents the present one is inside of."""
        self._spawned = by_call(conversation.subagents)
        self._shown: set[int] = set()

    def file(self, path: str) -> Iterator[str]:
        """Yield what stands before the messages of a second file."""
        raise NotImplementedError

    def messages(self, messages: Iterable[Message]) -> Iterator[str]:
        raise NotImplementedError

    def heading(self, text: str) -> str:
        raise NotImplementedError

    def note(self, text: str) -> str:
        raise NotImplementedError

    def opening(self, subagent: Subagent) -> str:
        """Return what begins a folded part with the messages of a subagent."""
        raise NotImplementedError

    def body(self) -> Iterator[str]:
        """Yield all messages, those of subagents without a call at the end."""
        written = 0
        for file in self.conversation.files_with_messages():
            if written:
                yield from self.file(one_line(self.conversation.clean(file.path)))
            for piece in self.messages(self.conversation.messages(file)):
                written += 1
                yield piece
        if not written:
            yield self.note("No messages of this conversation are indexed.")
        yield from self._without_call()

    def spawned(self, call: int | None) -> list[Subagent]:
        """Return the subagents of a call that are not shown yet; from now on they are."""
        return self._new(self._spawned.get(call or 0, ()) if self.level < _LEVELS else ())

    def subagent(self, subagent: Subagent) -> Iterator[str]:
        yield self.opening(subagent)
        self.level += 1
        yield from self.messages(self.conversation.subagent_messages(subagent))
        self.level -= 1
        yield self.closing

    def _without_call(self) -> Iterator[str]:
        rest = self._new(self.conversation.subagents)
        others = [one for one in rest if one.kind != "warmup"]
        if others and self.conversation.choice.tools:
            yield self.heading("Subagents without a call here")
            for subagent in others:
                yield from self.subagent(subagent)
        hidden = 0 if self.conversation.choice.tools else len(others)
        for count, word in ((hidden, "subagent"), (len(rest) - len(others), "warm-up agent")):
            if count:
                yield self.note(f"{terminal.many(count, word)} not shown.")

    def _new(self, subagents: Iterable[Subagent]) -> list[Subagent]:
        new = [one for one in subagents if one.id not in self._shown]
        self._shown.update(one.id for one in new)
        return new


# ------------------------------------------------------------------------------------------------
# A conversation as Markdown that reads well in a pull request.
#
# Each prompt is a heading with the prompt as a quotation below it; what the agent wrote stands as
# it is; everything else is folded: thinking, tool calls, and inside of these the subagents.


_TITLE = 80  # columns of a prompt in its heading
_SUMMARY = 100  # columns of what a folded part says of itself
_FEW_PROMPTS = 2  # need no table of contents
_OF_ADDRESSES = "!#$%&'()*+,/:;=?@[]~"
_REPEATED = "repeated block"


def pieces(connection: sqlite3.Connection, conversation: ExportedConversation) -> Iterator[str]:
    for block in _MarkdownDocument(connection, conversation).blocks():
        yield f"{block}\n\n"


def index(title: str, rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a page that links to files: the name of each, its title, and facts about it."""
    yield f"{heading(title, 1)}\n\n"
    for name, text, about in rows:
        yield f"- [{escaped(one_line(text))}]({quote(name)}) {escaped(one_line(about))}\n"


class _MarkdownDocument(Document):
    """Writes the blocks of one conversation; between two of them is an empty line."""

    def __init__(self, connection: sqlite3.Connection, conversation: ExportedConversation) -> None:
        super().__init__(connection, conversation)
        self._prompts = 0
        cwd = conversation.session["cwd"]
        self._directory = f"{cwd}/" if cwd else None

    def blocks(self) -> Iterator[str]:
        yield from self._header()
        yield from self.body()
        yield "---"
        for sentence in closing(self.conversation):
            yield escaped(sentence)

    def file(self, path: str) -> Iterator[str]:
        yield "---"
        yield code(path)

    def heading(self, text: str) -> str:
        return heading(text, 2)

    def note(self, text: str) -> str:
        return text

    def opening(self, subagent: Subagent) -> str:
        return f"<details>\n<summary><b>Subagent</b> {in_html(facts_of(subagent))}</summary>"

    def _header(self) -> Iterator[str]:
        conversation = self.conversation
        yield heading(title_of(conversation), 1)
        found = facts(self.connection, conversation)
        yield "\n".join(f"- **{name}:** {escaped(value)}" for name, value in found)
        if conversation.resume is not None:
            yield f"Resume: {code(conversation.resume)}"
        if links := list(exported_links(self.connection, conversation)):
            yield "\n".join(f"- {escaped(kind)}: {_linked(url)}" for kind, url, _ in links)
        yield from _folded("Source files", [fenced("\n".join(places(conversation)))])
        prompts = [
            f"{number}. [{escaped(self._title(message))}](#{conversation.anchor(message)})"
            for number, message in enumerate(conversation.prompts(), start=1)
        ]
        if len(prompts) > _FEW_PROMPTS:
            yield from _folded("Prompts", ["\n".join(prompts)])

    def messages(self, messages: Iterable[Message]) -> Iterator[str]:
        noise: list[Message] = []
        is_taken_back = False
        for message in messages:
            if message.is_repeat or message.kind in message_text.NOISE:
                noise.append(message)
                continue
            is_turn = message.is_superseded != is_taken_back
            if noise and (is_turn or message.kind != "tool_use"):  # hooks run at every call
                yield from _noise(noise)
                noise = []
            if is_turn:
                is_taken_back = not is_taken_back
                yield "---"
                yield f"*{message_text.BORDERS[is_taken_back].capitalize()}*"
            yield from self._message(message)
        if noise:
            yield from _noise(noise)

    def _message(self, message: Message) -> Iterator[str]:
        kind, text = message.kind, message.content
        if kind in message_text.PEOPLE:
            yield from self._typed(message)
        elif kind == "text":
            yield prose(text, self.level + 2)
        elif kind == "tool_use":
            yield from self._call(message)
        elif kind == "agent_prompt":
            yield heading("The task", self.level + 2)
            yield quoted(text)
        elif kind == "system" and text.startswith(message_text.COMPACTED):
            yield "---"
            yield "*Conversation compacted*"
        elif kind == "image":
            yield escaped(one_line(text))
        else:
            yield from self._aside(message)

    def _typed(self, message: Message) -> Iterator[str]:
        title = self._title(message)
        if self.level == 0:
            self._prompts += 1
            yield f'<a id="{self.conversation.anchor(message)}"></a>'
            yield heading(f"{self._prompts}. {title}", 2)
        else:
            yield heading(title, self.level + 2)
        queued = "queued " if message.kind == "queued_prompt" else ""
        if message.timestamp:
            yield f"*{queued}{terminal.moment(message.timestamp)}*"
        text = message_text.typed(message.kind, message.content).strip()
        if text != title:
            yield quoted(text)

    def _title(self, message: Message) -> str:
        return cut(one_line(message_text.typed(message.kind, message.content)), _TITLE)

    def _aside(self, message: Message) -> Iterator[str]:
        name = message.kind.replace("_", " ").capitalize()
        is_notification = message.kind == "task_notification"  # with words outside of its tags
        text = message.content if is_notification else message_text.untagged(message.content)
        summary = f"{name}: {one_line(message_text.heard(message.kind, message.content))}"
        is_prose = message.kind in ("thinking", "compact_summary", "agent_message")
        body = prose(text, self.level + 2) if is_prose else fenced(text.strip())
        yield from _folded(cut(summary, _SUMMARY), [body])

    def _call(self, message: Message) -> Iterator[str]:
        facts, _ = message_text.call_facts(message)
        target = cut(message_text.target_of(message, self._directory), _SUMMARY)
        mark = "✗ " if message.status == "error" else ""
        summary = f"{mark}<b>{in_html(message.tool or 'tool')}</b>"
        summary += f" <code>{in_html(target)}</code>" if target else ""
        summary += f" · {in_html(facts)}" if facts else ""
        yield f"<details>\n<summary>{summary}</summary>"
        yield from _input(message)
        for subagent in self.spawned(message.tool_call_id):
            yield from self.subagent(subagent)
        if message.result_id is not None:
            text = self.conversation.text(message.result_id)
            yield "Result:" if text.strip() else "No output."
            if text.strip():
                yield fenced(text)
        if output := self.conversation.output_file(message):
            yield "Whole output, from its own file:"
            yield fenced(output)
        yield "</details>"


def _linked(url: str) -> str:
    """Return an address as a link, if it leads to a page."""
    if not url.startswith(("https://", "http://")):
        return code(url)
    return f"<{quote(url, safe=_OF_ADDRESSES)}>"


def _input(message: Message) -> Iterator[str]:
    """Yield the input of a call: changes as a difference, a command as one, the rest as JSON."""
    arguments = message_text.arguments_of(message)
    if not arguments:
        if message.content.strip("{} \n"):
            yield fenced(message.content)
        return
    rest = dict(arguments)
    if changes := message_text.changes_of(message):
        for change in changes:
            lines = [f"{sign} {line}" for sign in "-+" for line in change.lines(sign)]
            yield fenced(change.patch or "\n".join(lines), "diff")
        rest = edits.rest_of(arguments)
    elif message.action == RUN and isinstance(arguments.get("command"), str):
        yield fenced(str(rest.pop("command")), "sh")
    for key, value in list(rest.items()):
        if isinstance(value, str) and "\n" in value:
            del rest[key]
            yield f"{escaped(one_line(key))}:"
            yield fenced(value)
    if rest:
        yield fenced(json.dumps(rest, ensure_ascii=False, indent=2), "json")


def _noise(messages: list[Message]) -> Iterator[str]:
    counts: Counter[str] = Counter(
        _REPEATED if one.is_repeat else message_text.NOISE[one.kind] for one in messages
    )
    summary = ", ".join(terminal.many(count, word) for word, count in counts.items())
    yield from _folded(summary, (fenced(one.content) for one in messages))


def _folded(summary: str, blocks: Iterable[str]) -> Iterator[str]:
    yield f"<details>\n<summary>{in_html(summary)}</summary>"
    yield from blocks
    yield "</details>"


# ------------------------------------------------------------------------------------------------
# A conversation as JSON lines: its records as the database has them.
#
# One object on each line; `record` says what it is, in this order:
#
# - `session`, once: the columns that `show --json` has, `models`, `files`, and `format`, which is
#   1;
# - `message`, any number: one block of the main conversation, with the fields of `show --json`,
#   `line` (the number of its line, from 1, or null) and `agent_key` (null);
# - for each subagent a `subagent`, and then its `message` lines, with its `agent_key`;
# - `end`, once: how many messages there were, and how many credentials were `masked`, by kind. A
#   file
#   without this line is not complete.


FORMAT = 1


def lines(conversation: ExportedConversation) -> Iterator[str]:
    files = [file._asdict() for file in conversation.files]
    session = {**conversation.session, "models": conversation.models, "files": files}
    found = notes_above(conversation.connection, str(session["session_key"]), None)
    noted = told(found, conversation.clean)
    yield _line("session", {"format": FORMAT, **session, "noted": noted})
    count = 0
    for file in conversation.files_with_messages():
        for message in conversation.messages(file):
            count += 1
            yield _message(conversation, message, None)
    for subagent in conversation.subagents:
        facts = subagent._asdict()
        del facts["spawned_by"]  # the id of a tool call; call_id is the message that called
        yield _line("subagent", facts)
        for message in conversation.subagent_messages(subagent):
            count += 1
            yield _message(conversation, message, subagent.agent_key)
    yield _line("end", {"messages": count, "masked": dict(conversation.masked)})


def _message(conversation: ExportedConversation, message: Message, agent: str | None) -> str:
    place = {"agent_key": agent, "line": conversation.line_number(message)}
    return _line("message", {**place, **message.as_json()})


def _line(record: str, fields: dict[str, object]) -> str:
    return safe_json({"record": record, **fields}) + "\n"


# ------------------------------------------------------------------------------------------------
# Which conversations of a project are exported, and how their files are called.


_not_of_name = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 50
_SHOWN = 120  # letters of a title in an index


class Named(NamedTuple):
    """A conversation with the name of its file."""

    session_key: str
    name: str
    title: str
    about: str


def conversations_of(
    connection: sqlite3.Connection, filters: Filters, form: str, *, redacts: bool
) -> list[Named]:
    """Return the conversations of a project or repository, newest first, each with its own name.

    A name consists of the date, the title and the key, in letters that every system takes.
    Raises NotFoundError or UsageError if the filters mean none.
    """
    ids = projects_in(connection, filters)
    found: dict[str, Named] = {}
    taken = {"index"}
    for row in sql.ask(connection, "lists/sessions", project=ids, limit=-1):
        key = str(row["session_key"])
        if key in found:  # the same conversation in two homes
            continue
        title = str(row["title"] or "(untitled)")
        title = cut(one_line(redact(title)[0] if redacts else title), _SHOWN)
        at = row["started_at"] or row["ended_at"]
        stem = stem_of(connection, at, title, key)
        number, name = 1, stem
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        counts = f"{terminal.moment(at)} · {terminal.many(row['prompt_count'], 'prompt')}"
        found[key] = Named(key, f"{name}.{form}", title, counts)
    return list(found.values())


def stem_of(connection: sqlite3.Connection, at: str | None, title: str, key: str) -> str:
    """Return the name of a file for a conversation, without its extension."""
    parts = (terminal.moment(at)[:10], _slug(title), _slug(short_key(connection, key)))
    return "-".join(filter(None, parts))


def _slug(text: str) -> str:
    """Return a text in lower-case letters, digits and dashes, none at its ends."""
    return _not_of_name.sub("-", text.lower())[:_LONGEST_SLUG].strip("-")
