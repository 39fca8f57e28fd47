"""Messages as a page shows them: who wrote them, what is folded, the map, where pages begin."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, overload

from markupsafe import Markup

from .. import sql, terminal
from ..ask import conversation, show
from ..ask.conversation import Conversation, Message, Subagent
from ..ask.show import by_call, facts_of
from ..records import EDIT
from ..terminal import one_line, readable
from . import html, urls
from .html import Picture, body_of, joined, markdown, plain, shortened, summary_of
from .pages import Budget, cut
from .urls import BlockPlace, Link, MessagePlaces, Permalinks

# ------------------------------------------------------------------------------------------------
# Where the pages of a conversation begin: behind a place in one of its files.


PAGE = 200
"""Messages on a page, results inside their calls counted."""

_CONTEXT = 6  # messages before the one that a search hit opens on


class Begin(NamedTuple):
    """Where a page begins: behind a place in the file with this number."""

    file: int
    after: conversation.Place | None


FIRST = Begin(0, None)
_PAGE_END = conversation.Place(2**62, 0)


class Paging:
    """The pages of the main conversation, or of one subagent, in files in order."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        files: Sequence[int],
        subagent: int | None,
        only: conversation.Only | None = None,
    ) -> None:
        """Remember which messages are paged; `only` those of some kinds, where not all are."""
        self._connection = connection
        self._files = files
        self._subagent = subagent
        self._kinds = json.dumps(only.kinds) if only else None

    def last(self) -> Begin:
        return self._back(Begin(len(self._files) - 1, _PAGE_END), PAGE) if self._files else FIRST

    def end(self) -> BlockPlace | None:
        """Return the place of the last message, of whatever kind, in the last file."""
        if not self._files:
            return None
        file = self._files[-1]
        row = sql.ask(
            self._connection, "pages/message_before", file=file, subagent=self._subagent, limit=1
        ).fetchone()
        return BlockPlace(file, row["byte_offset"], row["block"]) if row else None

    def behind(self, place: BlockPlace) -> Begin:
        """Return where the page behind a place begins; the first, if it is in none of the files."""
        if place.file not in self._files:
            return FIRST
        return Begin(self._files.index(place.file), conversation.Place(place.offset, place.block))

    def around(self, place: BlockPlace) -> Begin:
        """Return where a page begins that has a place, with some messages before it."""
        begin = self.behind(place)
        return begin if begin == FIRST else self._back(begin, _CONTEXT)

    def before(self, begin: Begin) -> BlockPlace | None:
        """Return behind which place the page before another begins; None: it is the first."""
        if begin == FIRST:
            return None
        file, after = begin
        if after is None:
            file, after = file - 1, _PAGE_END
        # The place behind which a page begins is on the page before it.
        place = conversation.Place(after.byte_offset, after.block + 1)
        before = self._back(Begin(file, place), PAGE)
        if before.after is None and before.file:
            before = self._back(Begin(before.file - 1, _PAGE_END), 0)
        return before.after and BlockPlace(self._files[before.file], *before.after)

    def _back(self, begin: Begin, count: int) -> Begin:
        """Return where `count` messages before the beginning of a page is, in the same file."""
        after = begin.after
        places = sql.ask(
            self._connection,
            "pages/message_before",
            file=self._files[begin.file],
            subagent=self._subagent,
            before_offset=after.byte_offset if after else 0,
            before_block=after.block if after else 0,
            kinds=self._kinds,
            limit=count + 1,
        ).fetchall()
        if len(places) <= count:
            return Begin(begin.file, None)
        found = conversation.Place(places[-1]["byte_offset"], places[-1]["block"])
        return Begin(begin.file, found)


# ------------------------------------------------------------------------------------------------
# Messages as a page shows them: who wrote them, what is folded, and what belongs to a call.
#
# An entry knows the id of its message; its anchor is its line (`permalinks`). What the program
# injects is gathered in one folded entry until a message for the reader follows. A subagent is
# inside the call that spawned it; a long one is a link to a page of its own.


INLINE = 40
"""Messages of a subagent that are inside its call; a longer one has a page of its own."""

_BLOCKS = 4 * INLINE  # of such a subagent: a message may have any number of them
_MOST_INLINE = 400  # messages of subagents on one page
_LEVELS = 5  # of subagents inside each other
_MOST_AGENTS = 300  # on one page, however short
_SUMMARY = 90  # letters of what a folded entry says of itself
_FACTS = 300  # letters of what is said of a subagent
_MOST_PICTURES = 200  # on one page
_OPEN = 1_500  # letters of what is said that stand unfolded where folding is usual


@dataclass(slots=True)
class Entry:
    """One thing on the page."""

    id: int
    shape: str
    """typed, text, call, aside, noise, rule or copies"""
    who: str
    kind: str
    timestamp: str | None = None
    body: Markup = field(default_factory=Markup)
    summary: str = ""
    """What a folded entry shows; '' for one that is not folded."""
    facts: str = ""
    is_open: bool = False
    is_error: bool = False
    is_copy: bool = False
    is_cut: bool = False
    is_superseded: bool = False
    ids: list[int] = field(default_factory=list)
    """Messages that are inside: their anchors lead here."""
    link: Link | None = None
    inside: list[str] = field(default_factory=list)
    """The anchors of the messages that are inside."""
    original: str | None = None
    """Of a copy, the address where it was first said."""
    becomes_new: str | None = None
    """Of a run of copies, what opens the first message behind it that is no copy of anything."""
    is_target: bool = False
    steps: tuple[str | None, str | None] | None = None
    """Of a prompt, what opens the one before and the one behind it."""
    entries: list[Entry] = field(default_factory=list)
    """Of a run of copies, those that it consists of."""
    result: Markup | None = None
    pictures: list[Picture] = field(default_factory=list)
    agents: list[Nested] = field(default_factory=list)
    more_agents: int = 0
    """How many more the call spawned."""

    @property
    def clock(self) -> str:
        """Return the local time of day."""
        return terminal.clock(self.timestamp)

    @property
    def moment(self) -> str:
        """Return the local date and time."""
        return terminal.moment(self.timestamp)


@dataclass(slots=True)
class Nested:
    """A subagent where it was spawned."""

    key: str
    facts: str
    message_count: int
    entries: list[Entry] | None
    """None: it is too long to stand here."""
    is_open: bool = False


class Entries:
    """Makes entries of the messages of one conversation, as many as a page shows."""

    def __init__(
        self,
        conversation: Conversation,
        targets: Collection[int] = (),
        budget: Budget | None = None,
    ) -> None:
        """Remember the conversation; the messages `targets` are shown unfolded."""
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
        self._day = ""

    def of(self, messages: Iterable[Message]) -> Iterator[Entry]:
        """Yield the entries of messages, those that stand elsewhere left out."""
        noise: list[Message] = []
        for message in messages:
            if message.stands_elsewhere:
                continue
            if message.is_repeat or message.kind in conversation.NOISE:
                noise.append(message)
                continue
            if noise and message.kind != "tool_use":  # hooks run at every call
                yield self._noise(noise)
                noise = []
            yield from self._days(message)
            yield self._entry(message)
        if noise:
            yield self._noise(noise)

    def nested_all(self, subagents: Sequence[Subagent]) -> tuple[list[Nested], int]:
        """Return subagents as there is room for them, and how many more there are."""
        new = [one for one in subagents if one.id not in self._shown]  # no cycle
        some = new[: max(_MOST_AGENTS - len(self._shown), 0)]
        self._shown.update(one.id for one in some)
        return list(map(self._nested, some)), len(new) - len(some)

    def _nested(self, subagent: Subagent) -> Nested:
        """Return a subagent with its entries, if it is short."""
        facts = _cut(facts_of(subagent), _FACTS)
        nested = Nested(subagent.agent_key, facts, subagent.message_count, None)
        is_short = subagent.message_count <= min(INLINE, self._room)
        if is_short and self._level < _LEVELS:
            found = list(self._conversation.subagent_messages(subagent, limit=_BLOCKS + 1))
            if len(found) <= _BLOCKS:
                self._room -= subagent.message_count
                self._level += 1
                day, self._day = self._day, "nested"
                nested.entries = list(self.of(found))
                self._day = day
                self._level -= 1
        return nested

    def _days(self, message: Message) -> Iterator[Entry]:
        day = terminal.day(message.timestamp or "")
        if day and day != self._day and self._day != "nested":
            self._day = day
            yield Entry(0, "rule", day, "day")

    def _entry(self, message: Message) -> Entry:
        kind, text = message.kind, message.content
        if kind in conversation.PEOPLE:
            entry = self._new(message, "typed", "You" if kind != "queued_prompt" else "You, queued")
            entry.body = plain(conversation.typed(kind, text).strip(), self._budget)
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
        entry.facts, _ = show.call_facts(message)
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
        spawned = self._spawned.get(message.tool_call_id or 0, ())
        entry.agents, entry.more_agents = self.nested_all(spawned)
        return entry

    def _aside(self, message: Message) -> Entry:
        who = _WHO.get(message.kind, message.kind.replace("_", " ").capitalize())
        entry = self._new(message, "aside", who)
        text = conversation.heard(message.kind, message.content).strip()
        if message.kind == "image":
            shown = self._budget.beginning(readable(text), _OPEN)
            entry.body = Markup('<p class="ai-image">{}</p>').format(shown)
            entry.pictures = self._pictures(message.id, text)
            return entry
        is_prose = message.kind in ("agent_prompt", "compact_summary", "agent_message", "thinking")
        entry.body = (markdown if is_prose else shortened)(text, self._budget)
        is_line = len(text) <= _SUMMARY and "\n" not in text  # folded it would be no shorter
        if not is_line and (len(text) >= _OPEN or message.kind not in _UNFOLDED):
            entry.summary = _cut(one_line(text))
        return entry

    def _pictures(self, message: int, text: str) -> list[Picture]:
        found = list(islice(html.in_text(message, text), self._pictures_left))
        self._pictures_left -= len(found)
        return found

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
# Gives the entries of a page their addresses, those that are inside of others included.


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
    """Yield entries and those of the subagents in them, in order."""
    for entry in entries:
        yield entry
        for agent in entry.agents:
            yield from nested_in(agent.entries or ())


# ------------------------------------------------------------------------------------------------
# What a fork repeats: a run of copied messages is one line, which leads to the originals.


def folded_copies(
    entries: Iterable[Entry], rows: Mapping[int, MessagePlaces], own: str
) -> Iterator[Entry]:
    """Yield entries; what follows each other and was first said in one other conversation is one.

    `own` is the key of the conversation whose page it is, and `rows` has the places of its
    messages.
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
            rule = Entry(0, "rule", "This conversation becomes new here", "new")
            return [*entries[:number], rule, *entries[number:]], beginning
    return entries, beginning


# ------------------------------------------------------------------------------------------------
# The map of a conversation: its prompts in order, the files that it changed, errors, subagents
# and compactions, each a link to its place.
#
# A conversation may have any number of them. Of each kind, the map has those nearest to the page
# that is read, and says how many come before and behind.


MOST = 100
"""Lines of each part of a map."""

_MOST_READ = 60_000  # prompts of a conversation that are looked at, and calls
_LETTERS = 80  # of a line
_LONGEST_NAME = 500  # letters of the name of a subagent that are looked at
_BEFORE = MOST // 4  # lines before those that are on the page

Order = tuple[float, int, int]
"""Number of the file, offset and block: what comes first is smaller."""

_END: Order = (float("inf"), 0, 0)


class Stretch(NamedTuple):
    """What of a conversation is on a page: behind one place, up to another."""

    behind: Order
    until: Order


class MapLine(NamedTuple):
    """A line of the map."""

    text: str
    facts: str
    address: str
    is_here: bool
    """Is its place on the page?"""


class MapPart(NamedTuple):
    """Things of one kind; `before` and `behind` are how many more there are."""

    name: str
    total: int
    lines: list[MapLine]
    before: int
    behind: int


@dataclass(frozen=True, slots=True)
class Map:
    """The map beside one page."""

    parts: list[MapPart]
    steps: Mapping[int, tuple[str | None, str | None]]
    """Of each prompt on the page, by its message: what opens those before and behind it."""
    is_whole: bool
    """False: the conversation has more than is looked at."""


class _Thing(NamedTuple):
    """What the map has a line for."""

    order: Order
    place: BlockPlace | None
    text: str = ""
    """'' for a message, whose text is read when its line is made."""
    facts: str = ""
    message: int = 0
    address: str = ""
    """Of what has no place in the conversation."""


class Mapper:
    """Makes the map of a conversation, or of one subagent of it."""

    def __init__(
        self,
        conversation: Conversation,
        subagent: Subagent | None,
        files: Sequence[int],
        address: Callable[[BlockPlace], str],
        page_of: Callable[[Subagent], str],
    ) -> None:
        """Remember what is mapped: `files` in order; `address` says what opens a place."""
        self._connection = conversation.connection
        self._conversation = conversation
        self._subagent = subagent
        self._files = {file: rank for rank, file in enumerate(files)}
        self._address = address
        self._page_of = page_of
        self._is_whole = True

    def map(self, page: Stretch) -> Map:
        prompts = _Messages(self._files, self._ask("map_prompts"))
        notices = _Messages(self._files, self._ask("map_notices", kind="error"))
        compacted = _Messages(self._files, self._ask("map_notices", kind="compact_summary"))
        calls = self._calls()
        errors = [
            self._call(row, one_line(f"{row['name']} {self._short(row['target'])}"))
            for row in calls
            if row["status"] == "error"
        ]
        found = (
            ("Prompts", prompts),
            ("Files changed", list(self._edited(calls))),
            ("Errors", sorted([*errors, *notices])),
            ("Subagents", sorted(self._agents(calls))),
            ("Compactions", compacted),
        )
        parts = [self._part(name, things, page) for name, things in found if things]
        return Map(parts, self._steps(prompts, page), self._is_whole)

    def _ask(self, query: str, **more: object) -> list[sqlite3.Row]:
        rows = sql.ask(
            self._connection,
            f"pages/{query}",
            session=self._conversation.session["id"],
            subagent=self._subagent.id if self._subagent else None,
            limit=_MOST_READ,
            **more,
        ).fetchall()
        self._is_whole &= len(rows) < _MOST_READ
        return rows

    def _calls(self) -> list[sqlite3.Row]:
        """Return calls in order; of one that several files of the conversation have, the first."""
        rows = [row for row in self._ask("map_calls") if row["file_id"] in self._files]
        rows.sort(key=lambda row: self._order(_place_of(row)))
        first: dict[object, sqlite3.Row] = {}
        for row in rows:
            first.setdefault(row["tool_use_id"] or row["id"], row)
        return list(first.values())

    def _call(self, row: sqlite3.Row, text: str, facts: str = "") -> _Thing:
        place = _place_of(row)
        return _Thing(self._order(place), place, text or "tool", facts)

    def _edited(self, calls: Iterable[sqlite3.Row]) -> Iterator[_Thing]:
        """Yield files, those that were changed most often first, each with its first change."""
        first: dict[str, sqlite3.Row] = {}
        counts: Counter[str] = Counter()
        for row in calls:
            if row["action"] != EDIT or row["status"] in ("error", "declined"):
                continue
            targets = json.loads(row["paths"]) if row["paths"] else [row["target"]]
            for target in filter(None, targets):
                first.setdefault(target, row)
                counts[target] += 1
        for target, count in counts.most_common():
            yield self._call(
                first[target], one_line(self._short(target)), terminal.many(count, "change")
            )

    def _agents(self, calls: Iterable[sqlite3.Row]) -> Iterator[_Thing]:
        """Yield the subagents that were spawned here, and those whose call is unknown."""
        spawning = {row["id"]: row for row in calls if row["spawned"]}
        for agent in self._conversation.subagents:
            text = one_line(name_of(agent))
            facts = terminal.many(agent.message_count, "message")
            if agent.spawned_by in spawning:
                yield self._call(spawning[agent.spawned_by], text, facts)
            elif agent.spawned_by is None and agent.kind != "warmup" and self._subagent is None:
                yield _Thing(_END, None, text, facts, address=self._page_of(agent))

    def _part(self, name: str, things: Sequence[_Thing], page: Stretch) -> MapPart:
        is_in_order = name != "Files changed"
        here = bisect_right(things, page.behind, key=_order_of) if is_in_order else 0
        start = max(0, min(here - _BEFORE, len(things) - MOST)) if is_in_order else 0
        chosen = things[start : start + MOST]
        texts = self._texts(one.message for one in chosen if one.message)
        lines = [self._line(one, texts, page) for one in chosen]
        return MapPart(name, len(things), lines, start, len(things) - start - len(chosen))

    def _line(self, one: _Thing, texts: Mapping[int, sqlite3.Row], page: Stretch) -> MapLine:
        text, facts = one.text, one.facts
        if row := texts.get(one.message):
            text = one_line(conversation.typed(row["kind"], row["text"] or "")).strip()
            facts = terminal.clock(row["timestamp"])
            if row["kind"] == "compact_summary":
                text = "Compacted"
        is_here = page.behind < one.order <= page.until
        address = one.address if one.place is None else self._address(one.place)
        return MapLine(_cut_title(text) or "(no text)", facts, address, is_here)

    def _texts(self, messages: Iterable[int]) -> dict[int, sqlite3.Row]:
        ids = json.dumps(list(messages))
        return {row["id"]: row for row in sql.ask(self._connection, "pages/map_texts", ids=ids)}

    def _steps(
        self, prompts: Sequence[_Thing], page: Stretch
    ) -> dict[int, tuple[str | None, str | None]]:
        def address(number: int) -> str | None:
            place = prompts[number].place if 0 <= number < len(prompts) else None
            return self._address(place) if place is not None else None

        first, end = (bisect_right(prompts, order, key=_order_of) for order in page)
        return {
            prompts[number].message: (address(number - 1), address(number + 1))
            for number in range(first, end)
        }

    def _order(self, place: BlockPlace) -> Order:
        return self._files[place.file], place.offset, place.block

    def _short(self, target: str | None) -> str:
        cwd = self._conversation.session["cwd"]
        return (target or "").removeprefix(f"{cwd}/" if cwd else "")


class _Messages(Sequence[_Thing]):
    """Messages in order; each becomes a `_Thing` only on demand: there may be very many."""

    def __init__(self, ranks: Mapping[int, int], rows: Iterable[sqlite3.Row]) -> None:
        self._files = list(ranks)
        self._found = sorted(
            (ranks[file], offset, block, message)
            for message, file, offset, block, *_ in rows
            if file in ranks
        )

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, number: int) -> _Thing: ...
    @overload
    def __getitem__(self, number: slice) -> list[_Thing]: ...
    def __getitem__(self, number: int | slice) -> _Thing | list[_Thing]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        rank, offset, block, message = self._found[number]
        place = BlockPlace(self._files[rank], offset, block)
        return _Thing((rank, offset, block), place, message=message)


def name_of(agent: Subagent) -> str:
    return (agent.description or agent.agent_type or agent.name or agent.kind)[:_LONGEST_NAME]


def _order_of(thing: _Thing) -> Order:
    return thing.order


def _place_of(row: sqlite3.Row) -> BlockPlace:
    return BlockPlace(row["file_id"], row["byte_offset"], row["block"])


def _cut_title(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"
