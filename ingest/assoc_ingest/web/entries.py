"""The messages of a conversation as a page and as an exported HTML file show them."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from itertools import islice
from typing import NamedTuple

from markupsafe import Markup

from .. import edits, sql, terminal
from ..ask import conversation, export
from ..ask import conversation as message_text
from ..ask.conversation import Conversation, Message, Subagent, by_call, facts_of
from ..ask.export import Document, ExportedConversation
from ..terminal import one_line, readable, safe
from . import html, urls
from .html import (
    Budget,
    Picture,
    WholeText,
    body_of,
    fields,
    joined,
    markdown,
    plain,
    shortened,
    summary_of,
    typed,
)
from .pages import cut
from .urls import BlockPlace, Link, MessagePlaces, Permalinks

# ------------------------------------------------------------------------------------------------
# Messages as a page shows them: author, folding, and the result of a call inside it.
#
# An entry has the id of its message; its anchor is its line (`urls`). Messages that the program
# injects are gathered in one folded entry until the next message for the reader. A subagent is
# inside the call that spawned it; a long one is a link to its own page.


INLINE = 40
"""Messages of a subagent that are inside its call; a longer one has a page of its own."""

_BLOCKS = 4 * INLINE  # of such a subagent: a message may have any number of them
_MOST_INLINE = 400  # messages of subagents on one page
_LEVELS_ON_PAGE = 5  # of subagents inside each other
_MOST_AGENTS = 300  # on one page, however short
_SUMMARY = 90  # letters of what a folded entry says of itself
_FACTS = 300  # letters of what is said of a subagent
_MOST_PICTURES = 200  # on one page
_OPEN = 1_500  # letters of what is said that stand unfolded where folding is usual


class TurnFacts(NamedTuple):
    """What a turn took, used and cost, in words, and how its tokens are made up."""

    words: list[str]
    tokens: str


@dataclass(slots=True)
class Entry:
    """A message on the page, or several as one."""

    id: int
    shape: str
    """typed, text, call, aside, noise, rule or copies"""
    who: str
    kind: str
    timestamp: str | None = None
    body: Markup = field(default_factory=Markup)
    summary: str = ""
    """The text of a folded entry; '' if it is not folded."""
    facts: str = ""
    is_open: bool = False
    is_error: bool = False
    is_copy: bool = False
    is_cut: bool = False
    is_superseded: bool = False
    ids: list[int] = field(default_factory=list)
    """Messages inside this entry: their anchors are in it."""
    link: Link | None = None
    inside: list[str] = field(default_factory=list)
    """The anchors of the messages that are inside."""
    original: str | None = None
    """The address of the original of a copy."""
    becomes_new: str | None = None
    """The address of the first new message after a run of copies."""
    is_target: bool = False
    steps: tuple[str | None, str | None] | None = None
    """The addresses of the prompts before and after a prompt."""
    turn: TurnFacts | None = None
    """Of a prompt: what its turn took."""
    together: Sequence[Entry] = ()
    """The calls that were made before any of them had a result, this one included."""
    entries: list[Entry] = field(default_factory=list)
    """The entries of a run of copies."""
    call: int | None = None
    """Its id among the calls of tools."""
    result: Markup | None = None
    pictures: list[Picture] = field(default_factory=list)
    agents: list[Nested] = field(default_factory=list)
    more_agents: int = 0
    """How many more subagents the call spawned."""

    @property
    def clock(self) -> str:
        return terminal.clock(self.timestamp)

    @property
    def moment(self) -> str:
        return terminal.moment(self.timestamp)


@dataclass(slots=True)
class Nested:
    """A subagent where it was spawned."""

    key: str
    facts: str
    message_count: int
    entries: list[Entry] | None
    """None if it is too long to be shown here."""
    is_open: bool = False


class Entries:
    """Turns the messages of one conversation into entries, within the limits of a page."""

    def __init__(
        self,
        conversation: Conversation,
        targets: Collection[int] = (),
        budget: Budget | None = None,
        day: str = "",
    ) -> None:
        """Remember the conversation; the messages `targets` are shown unfolded.

        `day` is the one that stands above the messages.
        """
        self._conversation = conversation
        self._targets = targets
        self._budget = budget or Budget()
        self._spawned = by_call(conversation.subagents)
        self._shown: set[int] = set()
        self._room = _MOST_INLINE
        self._pictures_left = _MOST_PICTURES
        self._level = 0
        cwd = conversation.session["cwd"]
        self._directory = f"{cwd}/" if cwd else None
        self._day = day

    def of(self, messages: Iterable[Message], *, has_days: bool = True) -> Iterator[Entry]:
        """Yield the entries of messages, except those that are shown elsewhere."""
        noise: list[Message] = []
        together: list[Entry] = []
        for message in messages:
            if message.answers is not None:
                together = []  # a call after the first result is not one of them
            if message.stands_elsewhere:
                continue
            if message.is_repeat or message.kind in conversation.NOISE:
                noise.append(message)
                continue
            if noise and message.kind != "tool_use":  # hooks run at every call
                yield self._noise(noise)
                noise = []
            if has_days:
                yield from self._days(message)
            entry = self._entry(message)
            if message.kind == "tool_use":
                together.append(entry)
                entry.together = together
            else:
                together = []
            yield entry
        if noise:
            yield self._noise(noise)

    def nested_all(self, subagents: Sequence[Subagent]) -> tuple[list[Nested], int]:
        """Return the subagents that there is room for, and how many more there are."""
        new = [one for one in subagents if one.id not in self._shown]  # no cycle
        some = new[: max(_MOST_AGENTS - len(self._shown), 0)]
        self._shown.update(one.id for one in some)
        return list(map(self._nested, some)), len(new) - len(some)

    def _nested(self, subagent: Subagent) -> Nested:
        """Return a subagent with its entries, if it is short."""
        facts = _cut(facts_of(subagent), _FACTS)
        nested = Nested(subagent.agent_key, facts, subagent.message_count, None)
        is_short = subagent.message_count <= min(INLINE, self._room)
        if is_short and self._level < _LEVELS_ON_PAGE:
            messages = list(self._conversation.subagent_messages(subagent, limit=_BLOCKS + 1))
            if len(messages) <= _BLOCKS:
                self._room -= subagent.message_count
                self._level += 1
                nested.entries = list(self.of(messages, has_days=False))
                self._level -= 1
        return nested

    def _days(self, message: Message) -> Iterator[Entry]:
        day = terminal.day(message.timestamp or "")
        if day and day != self._day:
            self._day = day
            yield Entry(0, "rule", day, "day")

    def _entry(self, message: Message) -> Entry:
        kind, text = message.kind, message.content
        if kind in conversation.PEOPLE:
            entry = self._new(message, "typed", "You" if kind != "queued_prompt" else "You, queued")
            show = typed if kind in ("prompt", "queued_prompt") else plain
            entry.body = show(conversation.typed(kind, text).strip(), self._budget)
        elif kind == "text":
            entry = self._new(message, "text", "Agent")
            entry.body = markdown(text, self._budget)
        elif kind == "tool_use":
            entry = self._call(message)
        elif kind == "system" and text.startswith(conversation.COMPACTED):
            entry = self._new(message, "rule", "Conversation compacted")
        else:
            entry = self._aside(message)
        return entry

    def _new(self, message: Message, shape: str, who: str) -> Entry:
        return Entry(
            id=message.id,
            shape=shape,
            who=who,
            kind=message.kind,
            timestamp=message.timestamp,
            is_open=message.id in self._targets,
            is_copy=message.copy_of is not None,
            is_cut=bool(message.is_cut),
            is_superseded=bool(message.is_superseded),
            is_error=bool(message.is_error) or message.kind == "error",
        )

    def _call(self, message: Message) -> Entry:
        entry = self._new(message, "call", one_line(message.tool or "tool"))
        entry.summary = _cut(summary_of(message, self._directory))
        entry.facts, _ = conversation.call_facts(message)
        entry.is_error = message.status == "error"
        entry.body = body_of(message, self._budget)
        if message.result_id is not None:
            entry.ids = [message.result_id]
            entry.is_open = entry.is_open or message.result_id in self._targets
            text = self._conversation.text(message.result_id)
            entry.result = shortened(text, self._budget) if text.strip() else None
            entry.pictures = self._pictures(message.result_id, text)
        if message.output_file:
            note = "the output was too large for the transcript"
            entry.facts = f"{entry.facts} · {note}".removeprefix(" · ")
        entry.call = message.tool_call_id
        spawned = self._spawned.get(message.tool_call_id or 0, ())
        entry.agents, entry.more_agents = self.nested_all(spawned)
        return entry

    def _aside(self, message: Message) -> Entry:
        who = _WHO.get(message.kind, message.kind.replace("_", " ").capitalize())
        entry = self._new(message, "aside", who)
        text = conversation.heard(message.kind, message.content).strip()
        if message.kind == "image":
            beginning = self._budget.beginning(readable(text), _OPEN)
            entry.body = Markup('<p class="ai-image">{}</p>').format(beginning)
            entry.pictures = self._pictures(message.id, text)
            return entry
        is_prose = message.kind in ("agent_prompt", "compact_summary", "agent_message", "thinking")
        entry.body = (markdown if is_prose else shortened)(text, self._budget)
        is_line = len(text) <= _SUMMARY and "\n" not in text  # folded it would be no shorter
        if not is_line and (len(text) >= _OPEN or message.kind not in _UNFOLDED):
            entry.summary = _cut(one_line(text))
        return entry

    def _pictures(self, message: int, text: str) -> list[Picture]:
        pictures = list(islice(html.in_text(message, text), self._pictures_left))
        self._pictures_left -= len(pictures)
        return pictures

    def _noise(self, messages: list[Message]) -> Entry:
        counts: Counter[str] = Counter(
            "repeated block" if m.is_repeat else conversation.NOISE[m.kind] for m in messages
        )
        entry = self._new(messages[0], "noise", "")
        entry.ids = [message.id for message in messages[1:]]
        entry.is_open = any(message.id in self._targets for message in messages)
        entry.summary = ", ".join(terminal.many(count, word) for word, count in counts.items())
        if len(messages) == 1 and not messages[0].is_repeat:
            entry.summary += ": " + _cut(one_line(conversation.untagged(messages[0].content[:400])))
        entry.body = joined(shortened(message.content, self._budget) for message in messages)
        return entry


_UNFOLDED = {"agent_prompt", "agent_message", "error", "interrupt", "system"}

_WHO = {
    "agent_prompt": "Task", "compact_summary": "Summary of the conversation so far",
    "tool_result": "Result", "task_notification": "Background task",
    "agent_message": "Message from an agent", "bash_output": "Output",
    "command_output": "Output", "system": "Notice", "interrupt": "Interrupted",
}  # fmt: skip


def _cut(text: str, most: int = _SUMMARY) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# ------------------------------------------------------------------------------------------------
# Sets the addresses of the entries of a page, including nested ones.


def set_links(
    connection: sqlite3.Connection,
    addresses: Permalinks,
    entries: Iterable[Entry],
    targets: frozenset[int],
) -> dict[int, MessagePlaces]:
    """Set the addresses of entries, and mark the first that shows one of the messages `targets`.

    Returns the places of their messages.
    """
    every = list(nested_in(entries))
    rows = urls.rows(connection, {one for entry in every for one in (entry.id, *entry.ids)})
    places = {row.place for row in rows.values()}
    links = addresses.of(places | {row.original for row in rows.values() if row.original})
    is_marked = False
    for entry in every:
        row = rows.get(entry.id)
        if row is None:
            continue
        entry.link = links.get(row.place)
        for picture in entry.pictures:
            if picture.message in rows:
                picture.address = addresses.image(rows[picture.message].place, picture.number)
        inside = [links.get(rows[one].place) for one in entry.ids if one in rows]
        entry.inside = [link.anchor for link in inside if link is not None]
        if row.original is not None and row.original in links:
            entry.original = links[row.original].address
        if not is_marked and not targets.isdisjoint((entry.id, *entry.ids)):
            entry.is_target = is_marked = True
    return rows


def nested_in(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries and those of their subagents, in order."""
    for entry in entries:
        yield entry
        for agent in entry.agents:
            yield from nested_in(agent.entries or ())


# ------------------------------------------------------------------------------------------------
# What a fork repeats: a run of copied messages is one line with a link to the originals.


def folded_copies(
    entries: Iterable[Entry], rows: Mapping[int, MessagePlaces], own: str
) -> Iterator[Entry]:
    """Yield entries, with consecutive copies from one other conversation folded into one.

    `own` is the key of the conversation of the page; `rows` has the places of its messages.
    """
    run: list[Entry] = []
    days: list[Entry] = []  # behind the run: they are part of it if it goes on
    for entry in entries:
        if run and not entry.id:
            days.append(entry)
            continue
        row = rows.get(entry.id)
        source = row.original_session if row is not None and row.original_session != own else None
        if run and source != rows[run[0].id].original_session:
            yield _fold(run, rows)
            yield from days
            run, days = [], []
        if source is None:
            yield entry
        else:
            run += [*days, entry]
            days = []
    if run:
        yield _fold(run, rows)
    yield from days


def _fold(run: list[Entry], rows: Mapping[int, MessagePlaces]) -> Entry:
    """Return one entry for a run of copies; its link is that of the first."""
    row = rows[run[0].id]
    inside = [rows[one] for entry in run for one in (entry.id, *entry.ids) if one in rows]
    # A message is a line of a person or an agent: a line has any number of blocks.
    messages = {one.place[:2] for one in inside if one.is_message}
    counted = (len(messages), "message") if messages else (len(inside), "notice")
    return Entry(
        0, "copies", cut(row.original_title or row.original_session or ""), "copies",
        summary=f"{terminal.many(*counted)} copied from another conversation",
        entries=run,
        is_open=any(entry.is_open for entry in run),
        original=run[0].original,
    )  # fmt: skip


def with_beginning(
    connection: sqlite3.Connection, entries: list[Entry], rows: Mapping[int, MessagePlaces]
) -> tuple[list[Entry], BlockPlace | None]:
    """Return entries with a line before the first message of a fork that is no copy.

    Also return the place of that message, which may be on a later page; None without copies.
    """
    first = next((number for number, one in enumerate(entries) if one.shape == "copies"), None)
    if first is None:
        return entries, None
    place = rows[next(one.id for one in entries[first].entries if one.id)].place
    own = sql.ask(connection, "pages/first_own_message", file=place.file).fetchone()
    if own is None or (own["byte_offset"], own["block"]) < place[1:]:
        return entries, None
    beginning = BlockPlace(place.file, own["byte_offset"], own["block"])
    for number, entry in enumerate(entries):
        if own["id"] in (entry.id, *entry.ids):
            rule = Entry(0, "rule", "New messages start here", "new")
            return [*entries[:number], rule, *entries[number:]], beginning
    return entries, beginning


# ------------------------------------------------------------------------------------------------
# One conversation as one HTML file that needs nothing else: no server, no network, no other file.
#
# Messages look as on the pages, with all of their texts and images. Style and images are inline,
# and the policy lets nothing load or run except the few lines of script that fold and unfold. It is
# yielded piece by piece, so the length of a conversation does not matter.


LARGEST_IMAGE = 3_000_000
"""Characters of base64 of one image, about 2 MB; a larger one is left out."""

_ALL_IMAGES = 40_000_000  # characters of base64 of all images of a file
_PROMPT = 90  # letters of a prompt in the table of contents


def pieces(connection: sqlite3.Connection, conversation: ExportedConversation) -> Iterator[str]:
    for piece in _Page(connection, conversation).pieces():
        yield safe(piece)  # titles and names may hold letters that reverse a line


def index(title: str, rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a page that links to files: the name of each, its title, and facts about it."""
    yield from _head(title)
    lines = [(name, one_line(text), one_line(about)) for name, text, about in rows]
    yield safe(html.macro("export", "index", title, lines))


class ExportedEntries(Entries):
    """Entries with all of their texts. A subagent is not in its entry: `_Page` writes it there."""

    def __init__(self, conversation: ExportedConversation) -> None:
        super().__init__(conversation, budget=WholeText())
        self._exported = conversation
        self._room_for_images = _ALL_IMAGES
        self.agent: str | None = None
        """The subagent whose messages are made entries."""

    def nested_all(self, subagents: Sequence[Subagent]) -> tuple[list[Nested], int]:
        """Return nothing: a long one would be in memory."""
        return [], 0

    def _new(self, message: Message, shape: str, who: str) -> Entry:
        entry = super()._new(message, shape, who)
        entry.is_cut = False
        entry.link = Link("", "", self._exported.anchor(message, self.agent))
        return entry

    def _entry(self, message: Message) -> Entry:
        entry = super()._entry(message)
        if entry.shape == "typed":  # whoever reads the file may be someone else
            entry.who = entry.who.replace("You", "User")
        return entry

    def _call(self, message: Message) -> Entry:
        entry = super()._call(message)
        entry.body += _rest_of_input(message, self._budget)
        if message.result_id is not None:
            anchor = self._exported.result_anchor(message.result_id, self.agent)
            entry.inside = [anchor] if anchor is not None else []
            if entry.result is not None:
                entry.result += self._images(message.result_id, str(entry.result))
        if output := self._exported.output_file(message):
            whole = html.macro("export", "whole_output", shortened(output, self._budget))
            entry.result = (entry.result or Markup("")) + whole
        return entry

    def _noise(self, messages: list[Message]) -> Entry:
        entry = super()._noise(messages)
        entry.inside = [self._exported.anchor(one, self.agent) for one in messages[1:]]
        return entry

    def _aside(self, message: Message) -> Entry:
        if message.kind == "image":
            entry = self._new(message, "aside", "Image")
            entry.body = self._images(message.id, message.content)
            entry.body = entry.body or html.macro("export", "no_image", readable(message.content))
            return entry
        entry = super()._aside(message)
        if message.kind == "task_notification":  # of which a page shows the summary
            heard = message_text.heard(message.kind, message.content)
            entry.summary = entry.summary or one_line(heard)
            entry.body = shortened(message.content.strip(), self._budget)
        if message.kind == "thinking":
            entry.summary = entry.summary or one_line(message.content)
        return entry

    def _images(self, message: int, text: str) -> Markup:
        pieces_of_images = []
        for image in self._exported.images(message, text):
            fits = len(image.data) <= min(LARGEST_IMAGE, self._room_for_images)
            self._room_for_images -= len(image.data) if fits else 0
            pieces_of_images.append(html.macro("export", "image", image, bool(image.data) and fits))
        return joined(pieces_of_images)


def _rest_of_input(message: Message, budget: Budget) -> Markup:
    """Return the parts of an input that a page leaves out."""
    arguments = message_text.arguments_of(message)
    changes = message_text.changes_of(message)
    if changes and not isinstance(arguments.get("edits"), list):
        return fields(edits.rest_of(arguments), budget)
    if changes or message_text.things_to_do(message) is not None:
        whole = json.dumps(arguments, ensure_ascii=False, indent=2)
        return html.macro("export", "whole_input", shortened(whole, budget))
    return Markup("")


class _Page(Document):
    closing = "</details>\n"

    def __init__(self, connection: sqlite3.Connection, conversation: ExportedConversation) -> None:
        super().__init__(connection, conversation)
        self._entries = ExportedEntries(conversation)

    def pieces(self) -> Iterator[str]:
        conversation = self.conversation
        title = export.title_of(conversation)
        yield from _head(title)
        facts = export.facts(self.connection, conversation)
        links = export.exported_links(self.connection, conversation)
        places = export.places(conversation)
        yield html.macro("export", "header", title, facts, conversation.resume, [*links], places)
        # The table of contents: the prompts in order.
        yield html.macro("export", "prompts_begin")
        for message in conversation.prompts():
            text = one_line(message_text.typed(message.kind, message.content))
            anchor, time = conversation.anchor(message), terminal.clock(message.timestamp)
            yield html.macro("export", "prompt", anchor, _cut(text, _PROMPT), time)
        yield html.macro("export", "prompts_end")
        yield from self.body()
        yield html.macro("export", "end", export.closing(conversation), _static("export.js"))

    def file(self, path: str) -> Iterator[str]:
        yield self.heading(path)

    def heading(self, text: str) -> str:
        return html.macro("export", "heading", text)

    def note(self, text: str) -> str:
        return html.macro("export", "note", text)

    def opening(self, subagent: Subagent) -> str:
        return html.macro("export", "subagent", one_line(facts_of(subagent)))

    def subagent(self, subagent: Subagent) -> Iterator[str]:
        around, self._entries.agent = self._entries.agent, subagent.agent_key
        yield from super().subagent(subagent)
        self._entries.agent = around

    def messages(self, messages: Iterable[Message]) -> Iterator[str]:
        """Yield each entry when it is complete; days only outside of subagents."""
        for entry in self._entries.of(messages, has_days=not self.level):
            if entry.shape != "call":
                yield html.macro("export", "entry", entry)
                continue
            subagents = self.spawned(entry.call)
            count = terminal.many(len(subagents), "subagent") if subagents else ""
            yield html.macro(
                "export", "call", entry, " · ".join(filter(None, (entry.facts, count)))
            )
            for subagent in subagents:
                yield from self.subagent(subagent)
            yield html.macro("export", "result", entry)


def _head(title: str) -> Iterator[str]:
    style, script = _static("assoc.css", "export.css"), _static("export.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    yield html.macro("export", "head", policy, title, style)


@cache
def _static(*names: str) -> Markup:
    """Return the joined text of our own files."""
    place = resources(__package__).joinpath("static")
    text = "".join(place.joinpath(name).read_text("utf-8") for name in names)
    return Markup(text)  # noqa: S704 - no stored text


def _hash(text: str) -> str:
    """Return the name of an allowed inline text in a policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
