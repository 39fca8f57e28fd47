"""The pages of one conversation: messages, map, find, news, images, download and timeline."""

from __future__ import annotations

import json
import re
import sqlite3
from base64 import b64decode
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar, overload
from urllib.parse import parse_qsl, urlencode

from .. import sql, terminal
from ..ask import conversation as message_text
from ..ask import export as export_markdown
from ..ask import refs
from ..ask.blame import MadeCommit, commits_of
from ..ask.conversation import (
    PEOPLE,
    Conversation,
    File,
    Message,
    Only,
    Originals,
    Part,
    Place,
    Subagent,
    facts_of,
)
from ..ask.excerpt import FindResult, find
from ..ask.export import Choice, ExportedConversation
from ..ask.notes import Note, notes_above
from ..ask.refs import KeyMatch, Lines
from ..ask.since import Since, changed_since
from ..ask.usage import Rates, rates, spent, spent_of
from ..errors import ArchiveError, NotFoundError
from ..records import ASK, EDIT
from ..terminal import one_line
from . import conversations, pages, urls
from . import entries as export
from .entries import (
    Entries,
    Entry,
    Nested,
    TurnFacts,
    folded_copies,
    nested_in,
    set_links,
    with_beginning,
)
from .html import LARGEST, marked_html
from .pages import MOST_LINKS, PageError
from .urls import BlockPlace, Link, Paths, Permalinks, with_query

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import AsgiStream, Request, Response


T = TypeVar("T")
PathOf = Callable[[str], str]
"""Returns the address of the page of a key."""

# ------------------------------------------------------------------------------------------------
# Where the pages of a conversation begin: after a place in one of its files.


PAGE = 200
"""Messages on a page, results inside their calls counted."""

_CONTEXT = 6  # messages before the one that a search hit opens on


class Begin(NamedTuple):
    """Where a page begins: after a place in the file with this number."""

    file: int
    after: Place | None


FIRST = Begin(0, None)
_PAGE_END = Place(2**62, 0)


class Paging:
    """The pages of the main conversation, or of one subagent, in files in order."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        files: Sequence[int],
        subagent: int | None,
        only: Only | None = None,
    ) -> None:
        """Remember which messages are paged; `only` those of some kinds, where not all are."""
        self._connection = connection
        self._files = files
        self._subagent = subagent
        self._kinds = json.dumps(only.kinds) if only else None

    def last(self) -> Begin:
        return self._back(Begin(len(self._files) - 1, _PAGE_END), PAGE) if self._files else FIRST

    def end(self) -> BlockPlace | None:
        """Return the place of the last message of any kind in the last file."""
        if not self._files:
            return None
        file = self._files[-1]
        row = sql.ask(
            self._connection, "pages/message_before", file=file, subagent=self._subagent, limit=1
        ).fetchone()
        return BlockPlace(file, row["byte_offset"], row["block"]) if row else None

    def behind(self, place: BlockPlace) -> Begin:
        """Return where the page after a place begins; the first page if no file has the place."""
        if place.file not in self._files:
            return FIRST
        return Begin(self._files.index(place.file), Place(place.offset, place.block))

    def around(self, place: BlockPlace) -> Begin:
        """Return where a page begins that shows a place with some messages before it."""
        begin = self.behind(place)
        return begin if begin == FIRST else self._back(begin, _CONTEXT)

    def before(self, begin: Begin) -> BlockPlace | None:
        """Return the place after which the page before this one begins; None: it is the first."""
        if begin == FIRST:
            return None
        file, after = begin
        if after is None:
            file, after = file - 1, _PAGE_END
        # The place after which a page begins is on the page before it.
        place = Place(after.byte_offset, after.block + 1)
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
        place = Place(places[-1]["byte_offset"], places[-1]["block"])
        return Begin(begin.file, place)


# ------------------------------------------------------------------------------------------------
# The map of a conversation: its prompts in order, changed files, errors, subagents and compactions,
# each with a link to its place.
#
# A conversation can have any number of them. The map lists those nearest to the page, and says how
# many come before and after.


MAP_LINES = 100
"""Lines of each part of a map."""

_MOST_READ = 60_000  # prompts of a conversation that are looked at, and calls
_LINE_LETTERS = 80  # of a line
_AGENT_NAME = 500  # letters of the name of a subagent that are looked at
_BEFORE = MAP_LINES // 4  # lines before those that are on the page

MapOrder = tuple[float, int, int]
"""Number of the file, offset and block: what comes first is smaller."""

_END: MapOrder = (float("inf"), 0, 0)


class Stretch(NamedTuple):
    """The part of a conversation that is on a page: after one place, up to another."""

    behind: MapOrder
    until: MapOrder


class MapLine(NamedTuple):
    text: str
    facts: str
    address: str
    is_here: bool
    """Is its place on the page?"""


class MapPart(NamedTuple):
    """Things of one kind; `before` and `behind` count those not listed."""

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
    """Addresses of the prompts before and after each prompt on the page, by message."""
    is_whole: bool
    """False: the conversation has more than is looked at."""


class _Thing(NamedTuple):
    order: MapOrder
    place: BlockPlace | None
    text: str = ""
    """'' for a message, whose text is read when its line is made."""
    facts: str = ""
    message: int = 0
    address: str = ""
    """For things without a place in the conversation."""


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
        """`files` are in order; `address` and `page_of` return addresses."""
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
        things_by_name = (
            ("Prompts", prompts),
            ("Files changed", list(self._edited(calls))),
            ("Errors", sorted([*errors, *notices])),
            ("Subagents", sorted(self._agents(calls))),
            ("Compactions", compacted),
        )
        parts = [self._part(name, things, page) for name, things in things_by_name if things]
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
        """Return calls in order; of copies in several files, only the first."""
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
        start = max(0, min(here - _BEFORE, len(things) - MAP_LINES)) if is_in_order else 0
        chosen = things[start : start + MAP_LINES]
        texts = self._texts(one.message for one in chosen if one.message)
        lines = [self._line(one, texts, page) for one in chosen]
        return MapPart(name, len(things), lines, start, len(things) - start - len(chosen))

    def _line(self, one: _Thing, texts: Mapping[int, sqlite3.Row], page: Stretch) -> MapLine:
        text, facts = one.text, one.facts
        if row := texts.get(one.message):
            text = one_line(message_text.typed(row["kind"], row["text"] or "")).strip()
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

    def _order(self, place: BlockPlace) -> MapOrder:
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
    return (agent.description or agent.agent_type or agent.name or agent.kind)[:_AGENT_NAME]


def _order_of(thing: _Thing) -> MapOrder:
    return thing.order


def _place_of(row: sqlite3.Row) -> BlockPlace:
    return BlockPlace(row["file_id"], row["byte_offset"], row["block"])


def _cut_title(text: str) -> str:
    return text if len(text) <= _LINE_LETTERS else text[: _LINE_LETTERS - 1] + "…"


# ------------------------------------------------------------------------------------------------
# Find in a conversation, over all its pages: the matches before and after the page, and marked
# words.
#
# A match is a message that contains all words of the query. Matches in subagents come after those
# in the conversation itself, and link to the pages of the subagents.


LONGEST = 300
"""Letters of a query: it is in every link of the page."""

_MOST_MARKED = 500_000  # letters of a page that are looked through for words to mark

Order = tuple[int, int, int, int]


class Finding(NamedTuple):
    """The matches of a search in the conversation, as its page shows them."""

    total: int
    number: int | None
    """The number of the match that the page was opened at, from 1."""
    before: str | None
    """The address of the match before this place."""
    behind: str | None
    notes: Sequence[str]


class Finder:
    """The matches in a conversation in order, with the address of each."""

    def __init__(
        self, matches: FindResult, files: Sequence[int], address: Callable[[BlockPlace], str]
    ) -> None:
        self._found = matches
        self._address = address
        self._ranks = {file: rank for rank, file in enumerate(files)}
        self._orders = sorted(self._order(match[:3]) for match in matches.matches)
        self._ids = {match.id for match in matches.matches}

    def at(self, place: BlockPlace, *, is_line: bool) -> Finding:
        """Return the matches around a place, whose block may be unknown."""
        order = self._order(place)
        first = bisect_left(self._orders, order)
        here = self._orders[first] if first < len(self._orders) else None
        is_here = here is not None and (here == order or (is_line and here[:3] == order[:3]))
        return Finding(
            len(self._orders),
            first + 1 if is_here else None,
            self._opens(first - 1),
            self._opens(first + is_here),
            self._found.notes,
        )

    def behind(self, place: BlockPlace | None) -> str | None:
        """Return the address of the first match after a place, or of the first of all."""
        number = bisect_right(self._orders, self._order(place)) if place else 0
        return self._opens(number) or self._opens(0)

    def mark(self, entries: Iterable[Entry]) -> None:
        """Unfold the entries that are matches, and mark the words in them."""
        room = _MOST_MARKED
        look = self._found.marker.spans
        for entry in entries:
            if self._ids.isdisjoint((entry.id, *entry.ids)):
                continue
            entry.is_open = True
            room -= len(entry.body) + len(entry.result or "")
            if room < 0:
                continue
            entry.body = marked_html(entry.body, look)
            entry.summary = marked_html(entry.summary, look)
            if entry.result is not None:
                entry.result = marked_html(entry.result, look)

    def _opens(self, number: int) -> str | None:
        if not 0 <= number < len(self._orders):
            return None
        return self._address(BlockPlace(*self._orders[number][1:]))

    def _order(self, place: BlockPlace | tuple[int, int, int]) -> Order:
        file, offset, block = place
        return self._ranks.get(file, len(self._ranks)), file, offset, block


# ------------------------------------------------------------------------------------------------
# The parameters and the content of the page of a conversation.


_place = re.compile(
    r"(?:(?P<file>\d{1,9}):)?(?:B(?P<byte>\d{1,18})|(?P<line>\d{1,15}))(?:\.(?P<block>\d{1,9}))?",
    re.ASCII,
)


class AddressedPlace(NamedTuple):
    file: int
    line: int | None
    byte: int
    block: int | None


def addressed(text: str | None) -> AddressedPlace | None:
    """Parse the value of `at=`; raise PageError if it is not a place."""
    if not text:
        return None
    match = _place.fullmatch(text)
    if match is None:
        raise PageError(400, f"{text!r} is not the place of a message. For line 12, use ?at=12")
    line, block = match["line"], match["block"]
    return AddressedPlace(
        file=int(match["file"] or 1),
        line=int(line) if line else None,
        byte=int(match["byte"] or 0),
        block=int(block) if block else None,
    )


def row_id(text: str | None) -> int | None:
    """Parse the id of a row; raise PageError if it is not a number."""
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise PageError(400, f"{text!r} is not a message id.")
    return int(text)


def line_at(
    connection: sqlite3.Connection, key: KeyMatch, place: AddressedPlace, path: str
) -> refs.Line:
    """Return the line that a place in the files of `key` means, or the nearest with messages.

    Raises PageError, with what to open instead, where the file ends before; `path` is that of the
    page of `key`.
    """
    head = key.text if place.file == 1 else f"{key.text}/{place.file}"
    file = None
    try:
        file = refs.file_of(connection, key, place.file, head)
        if place.line is None:
            return _at_byte(connection, refs.Line(key, file, 0, place.byte, place.byte + 1), head)
        return refs.line_of(connection, key, file, place.line, head)
    except (NotFoundError, ArchiveError) as error:
        links = [("The conversation from the beginning", path)]
        if file is not None and (last := Lines(connection).count(file.id)):
            number = f"{place.file}:{last}" if place.file > 1 else str(last)
            links.append((f"Line {last:,}, the last", f"{path}?at={number}"))
        first, _, hint = str(error).rpartition(". ")  # the hint is one for the command line
        raise PageError(404, f"{first}." if first else hint, links) from error


def _at_byte(connection: sqlite3.Connection, line: refs.Line, head: str) -> refs.Line:
    if not refs.messages_of(connection, line):
        raise NotFoundError(f"No message begins at byte {line.byte_offset:,} of {head}.")
    return line


class PageRequest(NamedTuple):
    """The parameters of the address of a page."""

    agent: str | None
    at: AddressedPlace | None
    after: AddressedPlace | None
    row: int | None
    is_end: bool
    said: bool = False
    """Show only prompts and answers."""
    find: str = ""
    """The query of the search in the conversation."""
    goes: bool = False
    """Open the first match, or the first after `after`."""
    origin: str = ""
    """The machine whose files are meant, where several have the conversation."""
    listed: Mapping[str, str] = {}
    """The filters of the list that it was opened from."""

    def keep(self, address: str) -> str:
        values = {"find": self.find, "said": "1" if self.said else "", **self.listed}
        query = urlencode({name: value for name, value in values.items() if value})
        head, sign, anchor = address.partition("#")
        if not query:
            return address
        join = "" if head.endswith("?") else "&" if "?" in head else "?"
        return f"{head}{join}{query}{sign}{anchor}"


@dataclass(slots=True)
class Shown:
    """The values of the template."""

    session: pages.Row
    models: list[str]
    more_models: int
    files: list[File]
    has_more_files: bool
    roots: list[str]
    resume: str | None
    sizes: list[str]
    """Counts of prompts, messages and so on, worded as in `show`."""
    tokens: str
    cost: str
    has_more_subagents: bool
    subagent: Subagent | None
    spawned_in: str | None
    entries: list[Entry]
    rest: list[Nested]
    more_rest: int
    warmups: int
    earlier: str | None
    later: str | None
    is_first: bool
    links: list[pages.Row]
    noted: list[Note]
    commits: list[MadeCommit]
    """Those that its commands made; the first page of the conversation names them."""
    since: Since | None
    """What has changed since; also on the first page."""
    work: list[pages.Row]
    related: list[pages.Row]
    notes: list[str]
    map: Map
    finding: Finding | None
    """None without a search."""
    news: str
    """On the last page, the address that reports the number of new lines."""
    begin: str
    """The place after which the page begins, as in an address; '' for the first page."""
    beside: list[pages.Row]
    """The newest conversations of the list that it was opened from."""


# ------------------------------------------------------------------------------------------------
# Reads the content of one page.


MOST_SUBAGENTS = 5_000
"""Maximum number of subagents that the pages of a conversation show."""

MOST_FILES = 1_000
"""Maximum number of files whose messages the pages of a conversation show."""

_MOST_FILES = 50  # that a page names
_MOST_MODELS = 10

SAID = ("text", *sorted(PEOPLE))
"""Kinds of messages between people and agents."""

Line = tuple[int, int]
"""A file, and where the line begins in it."""


class Reader:
    """Reads one page of a conversation."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        key: KeyMatch,
        asked: PageRequest,
        path: PathOf,
    ) -> None:
        self._connection = connection
        self._asked = asked
        self._keep = asked.keep
        self._permalinks = Permalinks(connection, path)
        self._path = path
        self.notes: list[str] = []
        self._place: BlockPlace | None = None
        self._asked_place: BlockPlace | None = None
        self._named_subagent: int | None = None
        self._targets: frozenset[int] = frozenset()
        session_key, session_id = key.session_key, key.session_id
        if place := asked.at or asked.after:
            line = line_at(connection, key, place, path(key.text))
            session_key, session_id = line.file.session_key, line.file.session_id
            self._name(line, place)
        self._conversation = Conversation(
            connection, session_key, session_id=session_id,
            files=MOST_FILES + 1, subagents=MOST_SUBAGENTS + 1,
        )  # fmt: skip
        self._id = self._conversation.session["id"]
        self._subagent = self._find_subagent(asked.agent or key.agent_key)
        self._main = list(islice(self._conversation.files_with_messages(), MOST_FILES))
        self._files = [file.id for file in self._main]
        if self._subagent is not None:
            rows = sql.ask(self._connection, "pages/subagent_files", subagent=self._subagent.id)
            self._files = [row["id"] for row in rows]
        self._only = Only(SAID) if asked.said else None
        self._paging = Paging(
            connection, self._files, self._subagent.id if self._subagent else None, self._only
        )

    def _name(self, line: refs.Line, place: AddressedPlace) -> None:
        """Remember where the page begins and which messages it marks."""
        self.notes += line.notes
        rows = refs.messages_of(self._connection, line)
        if place.block is not None and not line.notes:
            rows = [row for row in rows if row["block"] == place.block] or rows
        row = rows[0]
        self._named_subagent = row["subagent_id"]
        self._place = BlockPlace(line.file.id, row["byte_offset"], row["block"])
        self._asked_place = self._place
        if row["answers"] is not None:  # a result is inside its call
            self._place = BlockPlace(row["call_file_id"], row["call_offset"], row["call_block"])
        if self._asked.at is not None:
            self._targets = frozenset(row["id"] for row in rows)
            if self._asked.said and not any(row["kind"] in SAID for row in rows):
                self.notes.append(
                    "The linked message is neither a prompt nor an answer, so it is hidden here."
                )

    def shown(self) -> Shown:
        conversation = self._conversation
        begin = self._begin()
        read = list(islice(self._from(begin), PAGE + 1))
        has_more = len(read) > PAGE
        messages = read[:PAGE]
        whose = self._subagent.started_at if self._subagent else conversation.session["started_at"]
        day = terminal.day(str(whose or "")) if begin == FIRST else ""
        entries = Entries(conversation, self._targets, day=day)
        page_entries = list(entries.of(messages))
        is_whole = self._subagent is None and not has_more and not self._asked.said
        rest, more_rest, warmups = self._unspawned(entries) if is_whole else ([], 0, 0)
        ways = self._ways(begin, messages[-1] if has_more else None)
        finder = self._finder()
        page_entries, anchors = self._linked(page_entries, rest, finder)
        models = conversation.models
        used = spent_of(conversation).words(conversation.session)
        related = pages.ask(self._connection, "pages/session_related", session=self._id)
        return Shown(
            session=pages.brief(conversation.session),
            models=list(map(pages.cut, models[:_MOST_MODELS])),
            more_models=max(len(models) - _MOST_MODELS, 0),
            files=conversation.files[:_MOST_FILES],
            has_more_files=len(conversation.files) > _MOST_FILES,
            has_more_subagents=len(conversation.subagents) > MOST_SUBAGENTS,
            roots=[str(conversation.session["root"]), *conversation.other_roots],
            resume=conversation.resume,
            sizes=self._sizes(),
            tokens=used.get("tokens", ""),
            cost=used.get("cost", ""),
            subagent=self._subagent,
            spawned_in=self._spawned_in(),
            entries=page_entries,
            rest=rest,
            more_rest=more_rest,
            warmups=warmups,
            earlier=ways[0],
            later=ways[1],
            is_first=begin == FIRST,
            links=pages.ask(self._connection, "pages/session_links", session=self._id),
            noted=notes_above(self._connection, str(conversation.session["session_key"]), None),
            commits=self._commits(begin),
            since=self._since(begin),
            work=pages.ask(self._connection, "pages/session_work", session=self._id),
            related=related[:MOST_LINKS],
            notes=self.notes,
            map=self._map(begin, messages[-1:], page_entries, anchors),
            finding=self._finding(finder, begin),
            begin=self._begin_name(begin),
            beside=conversations.beside(self._connection, self._asked.listed, conversation.session),
            news="" if has_more else self._news(),
        )

    def _commits(self, begin: Begin) -> list[MadeCommit]:
        if begin != FIRST or self._subagent is not None:
            return []
        asked = sql.ask(self._connection, "pages/blame_commits", session=self._id)
        made = islice(commits_of(self._connection, asked.fetchall()), MOST_LINKS)
        return [replace(one, subject=pages.cut(one.subject)) for _, one in made]

    def _since(self, begin: Begin) -> Since | None:
        if begin != FIRST or self._subagent is not None:
            return None
        since = changed_since(self._connection, self._conversation.session)
        return since and since._replace(files=list(map(pages.cut, since.files)))

    def _sizes(self) -> list[str]:
        sizes = self._conversation.sizes()
        if len(self._conversation.subagents) > MOST_SUBAGENTS:
            sizes[-1] = f"more than {MOST_SUBAGENTS:,} subagents"
        return sizes

    def _news(self) -> str:
        """Return the address that reports the number of new lines, '' if there is none."""
        end = self._paging.end()
        return self._permalinks.news(end) if end else ""

    def match(self) -> str | None:
        """Return the address of the first match, or of the first after the start of the page."""
        finder = self._finder()
        return finder.behind(self._asked_place) if finder else None

    def _finder(self) -> Finder | None:
        if not self._asked.find:
            return None
        kinds = SAID if self._asked.said else ()
        matches = find(self._connection, int(str(self._id)), self._asked.find, kinds)
        main = [file.id for file in self._main]
        return Finder(matches, main, lambda place: self._keep(self._permalinks.by_byte(place)))

    def _finding(self, finder: Finder | None, begin: Begin) -> Finding | None:
        if finder is None:
            return None
        if self._asked_place is not None and self._asked.at is not None:
            return finder.at(self._asked_place, is_line=self._asked.at.block is None)
        file = self._files[begin.file] if self._files else 0
        return finder.at(BlockPlace(file, *(begin.after or (-1, 0))), is_line=False)

    def _begin_name(self, begin: Begin) -> str:
        if begin.after is None or self._subagent is not None:
            return ""
        return self._permalinks.name(BlockPlace(self._files[begin.file], *begin.after))

    def _map(
        self, begin: Begin, last: list[Message], entries: list[Entry], anchors: Mapping[Line, str]
    ) -> Map:
        """Return the map, and link each prompt of the page to the ones before and after it."""

        def address(place: BlockPlace) -> str:
            anchor = anchors.get((place.file, place.offset))
            return f"#{anchor}" if anchor else self._keep(self._permalinks.by_byte(place))

        def page_of(subagent: Subagent) -> str:
            key = str(self._conversation.session["session_key"])
            agent = urlencode({"_agent": subagent.agent_key})
            return self._keep(f"{self._path(key)}?{agent}")

        first = begin.file, *(begin.after or (-1, 0))
        until = [(self._files.index(one.file_id), *one.place) for one in last]
        page = Stretch(first, *until or [first])
        mapper = Mapper(self._conversation, self._subagent, self._files, address, page_of)
        made = mapper.map(page)
        every = [entry for one in entries for entry in (one, *one.entries)]
        turns = {}
        if self._subagent is None:
            prompts = {entry.id for entry in every if entry.shape == "typed"}
            turns = _TimelineReader(self._conversation, self._path).facts(prompts)
        for entry in every:
            entry.steps = made.steps.get(entry.id)
            entry.turn = turns.get(entry.id)
        return made

    def _linked(
        self, entries: list[Entry], rest: list[Nested], finder: Finder | None
    ) -> tuple[list[Entry], dict[Line, str]]:
        """Give all entries their addresses; return them with runs of copies folded.

        Also returns the anchors of the lines that are on the page.
        """
        nested = [entry for one in rest for entry in one.entries or ()]
        every = [*entries, *nested]
        rows = set_links(self._connection, self._permalinks, every, self._targets)
        if finder is not None:
            finder.mark(nested_in(every))
        anchors: dict[Line, str] = {}
        for entry in every:
            if entry.link is not None:
                anchors.setdefault(rows[entry.id].place[:2], entry.link.anchor)
        key = str(self._conversation.session["session_key"])
        folded = list(folded_copies(entries, rows, key))
        if self._subagent is not None:
            return folded, anchors
        folded, beginning = with_beginning(self._connection, folded, rows)
        address = self._address(beginning) if beginning else None
        for entry in folded:
            if entry.shape == "copies":
                entry.becomes_new = address
        return folded, anchors

    def _address(self, place: BlockPlace) -> str | None:
        link = self._permalinks.of([place]).get(place)
        return link.address if link else None

    def _spawned_in(self) -> str | None:
        """Return the address of the call that spawned the subagent of this page."""
        call = self._subagent.call_id if self._subagent else None
        if call is None:
            return None
        row = urls.rows(self._connection, [call]).get(call)
        return self._address(row.place) if row else None

    def _find_subagent(self, wanted: str | None) -> Subagent | None:
        named = self._named_subagent
        if named is None and (wanted is None or self._place is not None):
            return None  # a line that is named is one of the main conversation
        for subagent in self._conversation.subagents:
            if subagent.id == named or (named is None and subagent.agent_key == wanted):
                return subagent
        if named is not None:
            raise PageError(404, "This conversation has too many subagents: this one is not shown.")
        raise PageError(404, f"This conversation has no subagent {wanted!r}.")

    def _begin(self) -> Begin:
        if self._asked.is_end:
            return self._paging.last()
        if self._place is None:
            return FIRST
        if self._asked.at is not None:
            return self._paging.around(self._place)
        return self._paging.behind(self._place)

    def _ways(self, begin: Begin, last: Message | None) -> tuple[str | None, str | None]:
        """Return the addresses of the pages before and after this one.

        The one before is '' where it is the first; `last` is the last message of this page.
        """
        earlier = self._paging.before(begin)
        later = last and BlockPlace(last.file_id, last.byte_offset, last.block)
        links = self._permalinks.of(place for place in (earlier, later) if place)
        return (
            self._keep(links[earlier].behind)
            if earlier in links
            else None
            if begin == FIRST
            else "",
            self._keep(links[later].behind) if later in links else None,
        )

    def _from(self, begin: Begin) -> Iterator[Message]:
        if self._only is not None:
            agent = self._subagent.id if self._subagent else None
            after_place = begin.after
            for file_id in self._files[begin.file :]:
                part = Part("", file_id, agent, after_place)
                yield from self._conversation.messages_of(part, self._only)
                after_place = None
            return
        if self._subagent is not None:
            after = (self._files[begin.file], begin.after) if begin.after else None
            yield from self._conversation.subagent_messages(self._subagent, after, PAGE + 1)
            return
        after_place = begin.after
        for file in self._main[begin.file :]:
            yield from self._conversation.messages(file, after_place, PAGE + 1)
            after_place = None

    def _unspawned(self, entries: Entries) -> tuple[list[Nested], int, int]:
        free = [one for one in self._conversation.subagents if one.spawned_by is None]
        rest, more = entries.nested_all([one for one in free if one.kind != "warmup"])
        return rest, more, sum(one.kind == "warmup" for one in free)


# ------------------------------------------------------------------------------------------------
# The page of one conversation, or of one subagent of it, 200 messages at a time.
#
# The address says where a page begins, by the place of a message: `?after=12` begins after it,
# `?at=12` a few messages before it (for a search hit), and `?_end=1` shows the last page. Messages
# are in the order of their file. A message of a subagent opens the page of that subagent, as the
# subagent's key in the path does. Addresses with the id of a row (`?_at=345`) redirect to those
# with a place.


TABLES = (
    "messages", "sessions", "subagents", "tool_calls", "files", "projects", "responses", "prices",
    "links", "teams", "tasks", "todos", "plans", "sources", "notes",
)  # fmt: skip
_SCRIPTS = ("session.js",)


async def _read_from(
    datasette: Datasette,
    request: Request,
    tables: Sequence[str],
    function: Callable[[sqlite3.Connection, KeyMatch, PathOf], T],
    **limits: int,
) -> T:
    """Return what `function` reads from the conversation that the address names."""
    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    path = Paths(datasette, database).session

    def read(connection: sqlite3.Connection) -> T:
        key = pages.find(connection, prefix, path)
        return function(pages.of_conversation(connection, key.session_key), key, path)

    return await pages.read(datasette, request, database, tables, read, **limits)


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page of a conversation; a 300 with all of them where a prefix means several."""
    from datasette.utils.asgi import Response

    row = request.args.get("_at") or request.args.get("_after")
    query = (request.args.get("find") or "").strip()
    asked = PageRequest(
        agent=request.args.get("_agent"),
        at=addressed(request.args.get("at")),
        after=addressed(request.args.get("after")),
        row=row_id(row),
        is_end=bool(request.args.get("_end")),
        said=bool(request.args.get("said")),
        find=query[:LONGEST],
        goes=bool(request.args.get("go")),
        origin=request.args.get("origin") or "",
        listed={name: value for name in conversations.FILTERS if (value := request.args.get(name))},
    )
    shown = await _read_from(datasette, request, TABLES, partial(_read, asked))
    if isinstance(shown, Link):
        return Response.redirect(shown.address if request.args.get("_at") else shown.behind)
    if isinstance(shown, str):
        return Response.redirect(shown)
    if query != asked.find:
        note = f"Only the first {LONGEST} characters of the query were used."
        shown.notes.append(note)
    database = pages.named(request, "database")
    context = {
        "database": database,
        "shown": shown,
        "session": shown.session,
        "title": shown.session["title"] or "(untitled)",
        "here": Paths(datasette, database).session(str(shown.session["session_key"])),
        "agent_facts": pages.cut(facts_of(shown.subagent)) if shown.subagent else "",
        "resume": _whole(shown.resume),
        "kept": asked.keep,
        "list_query": with_query("", asked.listed),
        **_modes(request),
        "asked": asked,
    }
    return await pages.page(datasette, request, "session", context, scripts=_SCRIPTS)


def _modes(request: Request) -> dict[str, str]:
    """Return the addresses of the other forms of this page."""
    parameters = parse_qsl(request.query_string)

    def without(*names: str, **more: str) -> str:
        others = [(name, value) for name, value in parameters if name not in names]
        return f"{request.path}?{urlencode([*others, *more.items()])}"

    return {
        "everything": without("said"),
        "said": without("said", said="1"),
        "unmarked": without("find", "go"),
    }


def _whole(command: str | None) -> str | None:
    """Return a command unless it would be cut: that would be another command."""
    return command if command is None or pages.cut(command) == command else None


def _read(
    asked: PageRequest, connection: sqlite3.Connection, key: KeyMatch, path: PathOf
) -> Shown | Link | str:
    """Return the content of the page, or the address to redirect to.

    That is the page of a message named by its row, or of the first match of a search.
    """
    if asked.origin and (number := pages.first_file_on(connection, key, asked.origin)) > 1:
        line = asked.at.line or f"B{asked.at.byte}" if asked.at else 1
        return f"{path(key.text)}?at={number}:{line}"
    if asked.row is None:
        reader = Reader(connection, key, asked, path)
        return (asked.goes and reader.match()) or reader.shown()
    if link := Permalinks(connection, path).of_row(asked.row, key):
        return link
    reader = Reader(connection, key, asked, path)
    reader.notes.append(
        f"This conversation has no message {asked.row}, so it is shown from the beginning. The "
        "address names a database row, and row numbers can change. The links on the times of "
        "messages are permanent."
    )
    return reader.shown()


# ------------------------------------------------------------------------------------------------
# A conversation as a file to download: what `assoc-ingest export` writes, as HTML or Markdown.
#
# The whole file is written to a temporary one, in one transaction, before its first byte is sent: a
# download that has begun is complete, and a slow browser holds up no thread of Datasette and no
# snapshot of the database.


DOWNLOAD_TABLES = (*TABLES, "archive", "tool_result_files")
_FORMATS = {
    "html": (export.pieces, "text/html; charset=utf-8"),
    "md": (export_markdown.pieces, "text/markdown; charset=utf-8"),
}
_QUERIES = 120  # times as long as one query an export may take
_IN_MEMORY = 4_000_000  # bytes; a larger file is on disk until it is sent
_CHUNK = 256 * 1024  # letters
_not_of_name = re.compile(r"[^0-9A-Za-z_-]+")
_LONGEST_NAME = 80
_one = Lock()  # an export keeps one of the few threads of Datasette busy


async def download(datasette: Datasette, request: Request) -> AsgiStream:
    """Return a conversation as a file, with its credentials masked unless `redact=0` is asked."""
    from datasette.utils.asgi import AsgiStream

    form, redacts = request.args.get("format") or "html", request.args.get("redact") != "0"
    if form not in _FORMATS:
        raise PageError(400, f"Unknown format {form!r}. It can be html or md.")
    if not _one.acquire(blocking=False):
        raise PageError(503, "Another export is being written. Try again in a moment.")
    file = SpooledTemporaryFile(  # noqa: SIM115 - closed when it is sent
        _IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline=""
    )
    try:
        write = partial(_write, form, Choice(redacts=redacts), file)
        key = await _read_from(datasette, request, DOWNLOAD_TABLES, write, queries=_QUERIES)
    except BaseException:
        file.close()
        raise
    finally:
        _one.release()
    name = _not_of_name.sub("-", key)[:_LONGEST_NAME].strip("-") or "conversation"
    headers = {**pages.HEADERS, "content-disposition": f'attachment; filename="{name}.{form}"'}
    return AsgiStream(_sender(file), headers=headers, content_type=_FORMATS[form][1])


def _write(
    form: str,
    choice: Choice,
    file: IO[str],
    connection: sqlite3.Connection,
    key: KeyMatch,
    path: PathOf,
) -> str:
    """Write a conversation to a file; return its key."""
    conversation = ExportedConversation(connection, key.session_key, choice)
    for piece in _FORMATS[form][0](connection, conversation):
        file.write(piece)
    return key.session_key


def _sender(file: IO[str]) -> Callable[[Any], Any]:
    async def send(writer: Any) -> None:
        with file:
            file.seek(0)
            while chunk := file.read(_CHUNK):
                await writer.write(chunk)

    return send


# ------------------------------------------------------------------------------------------------
# Images of a conversation, from the archive: one at a time, when a browser asks for it.
#
# The rows have a placeholder for each. A browser that gets no image shows the placeholder: the
# archive may have lost the line or been told to forget it, or the data may be too large or not an
# image.


IMAGE_TABLES = ("messages", "sessions", "subagents", "files", "archive")
_LONGEST_LINE = 64_000_000  # bytes: all of it is parsed
_HEADERS = {
    # If a browser takes it for anything else, it has no origin, and nothing in it runs or loads.
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


async def image(datasette: Datasette, request: Request) -> Response:
    from datasette.utils.asgi import Response

    place = addressed(request.args.get("at"))
    number = pages.page_number(request.args.get("n"))
    if place is None:
        raise PageError(400, "Add a line to the address, such as ?at=12")
    read = partial(_read_image, place, number)
    media_type, data = await _read_from(datasette, request, IMAGE_TABLES, read)
    return Response(data, headers=_HEADERS, content_type=media_type)


def _read_image(
    place: AddressedPlace,
    number: int,
    connection: sqlite3.Connection,
    key: KeyMatch,
    path: PathOf,
) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image; raise PageError if there is none."""
    line = line_at(connection, key, place, path(key.text))
    blocks = {row["block"]: row["id"] for row in refs.messages_of(connection, line)}
    message = blocks.get(place.block or 0)
    if message is None or line.notes:
        raise PageError(404, "This message does not exist.")
    row = sql.ask(connection, "pages/message_text", id=message).fetchone()
    if row["byte_length"] > _LONGEST_LINE:
        raise PageError(404, "The line with this image is too long to read here.")
    images = Originals(connection).images(
        row["file_id"], row["byte_offset"], row["byte_length"], row["text"] or ""
    )
    image = next(islice(images, number - 1, None), None)
    if image is None:
        raise PageError(404, "The archive does not have this image.")
    if len(image.data) > LARGEST * 4 / 3 + 4:
        raise PageError(404, "This image is too large to show here.")
    data = b64decode(image.data)
    is_other = image.media_type == "image/webp" and data[8:12] != b"WEBP"
    if not data or is_other:
        raise PageError(404, "Browsers cannot show this image.")
    return image.media_type, data


# ------------------------------------------------------------------------------------------------
# How many lines a conversation has gained since a page was read: an open page polls this.


NEWS_TABLES = ("messages", "sessions", "subagents", "files")
MOST_NEW = 1_000
"""Maximum number of new blocks that are counted."""


async def news(datasette: Datasette, request: Request) -> Response:
    """Return as JSON how many lines follow a place, and the address of the first of them."""
    from datasette.utils.asgi import Response

    place = addressed(request.args.get("after"))
    if place is None:
        raise PageError(400, "Add a line to the address, such as ?after=12")
    news = await _read_from(datasette, request, NEWS_TABLES, partial(_read_news, place))
    headers = {**pages.HEADERS, "cache-control": "no-store"}
    return Response(json.dumps(news), headers=headers, content_type="application/json")


def _read_news(
    place: AddressedPlace, connection: sqlite3.Connection, key: KeyMatch, path: PathOf
) -> dict[str, object]:
    line = line_at(connection, key, place, path(key.text))
    last = refs.messages_of(connection, line)[-1]
    behind = sql.ask(
        connection,
        "pages/message_after",
        file=line.file.id,
        subagent=last["subagent_id"],
        after_offset=last["byte_offset"],
        after_block=last["block"],
        limit=MOST_NEW,
    ).fetchall()
    address = ""
    if behind:
        first = BlockPlace(line.file.id, behind[0]["byte_offset"], 0)
        address = Permalinks(connection, path).by_byte(first)
    lines = len({row["byte_offset"] for row in behind})
    return {"lines": lines, "is_more": len(behind) == MOST_NEW, "address": address}


# ------------------------------------------------------------------------------------------------
# The timeline of a conversation: turns, tools and subagents as lanes, and the turns as a table.
#
# A turn is a prompt and everything until the next one. It lasts until the last answer or result,
# without the time in which a question or a declined call waited for a person. Pauses are cut out of
# the axis, and each bar links to its place.
#
# Calls are counted as in the header of the conversation: what repeats another file is left out, and
# so are the turns that a fork repeats. Calls before the first prompt have a row of their own.


# ------------------------------------------------------------------------------------------------
# Lays out spans of time as bars in lanes on one axis.
#
# The axis shows the time in which something ran: a pause is only a narrow gap. Bars too close to
# distinguish are merged, so that the number of bars in a lane is limited.


WIDTH = 1_000
"""Units of the axis."""

_NARROWEST = 3.0  # units of a bar
_GAP = 6.0  # units of a pause


class Span(NamedTuple):
    start: float
    end: float
    text: str
    address: str
    is_bad: bool = False


class Bar(NamedTuple):
    """A bar of a lane in units of the axis; `others` counts its spans that are not named."""

    x: float
    width: float
    text: str
    address: str
    is_bad: bool
    others: int


class Axis:
    """Maps seconds to places on the axis."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._runs: list[tuple[float, float]] = []
        for start, end in sorted((span.start, span.end) for span in spans):
            if self._runs and start <= self._runs[-1][1]:
                self._runs[-1] = self._runs[-1][0], max(end, self._runs[-1][1])
            else:
                self._runs.append((start, end))
        lengths = [end - start for start, end in self._runs]
        gap = min(_GAP, WIDTH / 4 / max(len(self._runs), 1))
        self.seconds = sum(lengths)
        """How long something ran."""
        scale = (WIDTH - gap * max(len(self._runs) - 1, 0)) / (self.seconds or 1.0)
        self._scale = scale
        self._places = [0.0]
        for length in lengths:
            self._places.append(self._places[-1] + length * scale + gap)

    def x(self, second: float) -> float:
        """Return the place of a second; seconds of a pause are all at its gap."""
        run = max(bisect_right(self._runs, (second, float("inf"))) - 1, 0)
        start, end = self._runs[run]
        return self._places[run] + (min(max(second, start), end) - start) * self._scale


def lane(axis: Axis, spans: Iterable[Span], *, merges: bool = True) -> list[Bar]:
    """Return the bars of a lane, failures last, on top of the others.

    Where one `merges`, bars that touch each other are one, which leads to the first of them.
    """
    every = sorted(spans)
    return [
        bar
        for is_bad in (False, True)
        for bar in _bars(axis, (one for one in every if one.is_bad == is_bad), merges)
    ]


def _bars(axis: Axis, spans: Iterable[Span], merges: bool) -> Iterator[Bar]:
    last: Bar | None = None
    for span in spans:
        x = min(axis.x(span.start), WIDTH - _NARROWEST)
        width = max(axis.x(span.end) - x, _NARROWEST)
        if merges and last is not None and x < last.x + last.width:
            end = max(x + width, last.x + last.width)
            last = last._replace(width=end - last.x, others=last.others + 1)
            continue
        if last is not None:
            yield last
        last = Bar(x, width, span.text, span.address, span.is_bad, 0)
    if last is not None:
        yield last


def packed(spans: Iterable[Span], most: int) -> tuple[list[list[Span]], int]:
    """Return spans in at most `most` rows without overlap, and how many did not fit."""
    rows: list[list[Span]] = []
    left = 0
    for span in sorted(spans):
        row = next((row for row in rows if row[-1].end <= span.start), None)
        if row is not None:
            row.append(span)
        elif len(rows) < most:
            rows.append([span])
        else:
            left += 1
    return rows, left


TURNS = 50
"""Turns on a page."""

_MOST_TOOLS = 6  # lanes of tools; others are in one more
_MOST_ROWS = 8  # of subagents that run at once
MOST_NAMED = 5
"""Subagents of a turn that the table names."""

_TURN_LETTERS = 120  # of a prompt

_OF_AGENTS = json.dumps(
    ["text", "thinking", "tool_use", "tool_result", "error", "command_output", "bash_output"]
)
"""Kinds of messages that end a turn: output of an agent or a tool."""

_DECLINED = "declined"

LineOrder = tuple[int, int]
"""Number of the file, and the offset in it."""


@dataclass(slots=True)
class Turn:
    """A prompt and everything until the next one."""

    number: int
    text: str
    address: str
    started_at: str | None
    start: float | None
    end: float | None
    calls: int = 0
    errors: int = 0
    agents: list[Span] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    """When it waited for a person."""

    @property
    def runs(self) -> list[tuple[float, float]]:
        """Return when it ran: from start to end, without the time spent waiting for a person."""
        if self.start is None or self.end is None:
            return []
        runs, start = [], self.start
        for begin, end in sorted(self.waits):
            if begin > start:
                runs.append((start, min(begin, self.end)))
            start = max(start, end)
        return [*runs, (start, self.end)] if start < self.end or not runs else runs

    @property
    def took(self) -> str:
        return terminal.duration(round(sum(end - start for start, end in self.runs) * 1000))

    @property
    def moment(self) -> str:
        return terminal.moment(self.started_at)


class Lane(NamedTuple):
    name: str
    facts: str
    kind: str
    bars: list[Bar]


class Timeline(NamedTuple):
    session: pages.Row
    turns: list[Turn]
    total: int
    lanes: list[Lane]
    working: str
    """How long anything ran."""
    calls: int
    """Calls of the whole conversation, those of subagents included."""
    subagent_calls: int
    not_drawn: int
    """Subagents for which there was no room."""
    is_whole: bool


async def timeline(datasette: Datasette, request: Request) -> Response:
    number = pages.page_number(request.args.get("page"))
    shown = await _read_from(datasette, request, TABLES, partial(_read_timeline, number))
    database = pages.named(request, "database")
    title = shown.session["title"] or "(untitled)"
    context = {
        "database": database,
        "shown": shown,
        "conversation": title,
        "title": f"Timeline of {title}",
        "here": Paths(datasette, database).session(str(shown.session["session_key"])),
        "number": number,
        "pages": -(-shown.total // TURNS),
        "width": WIDTH,
        "most_named": MOST_NAMED,
    }
    return await pages.page(datasette, request, "timeline", context)


def _read_timeline(
    number: int, connection: sqlite3.Connection, key: KeyMatch, path: PathOf
) -> Timeline:
    conversation = Conversation(
        connection, key.session_key, session_id=key.session_id,
        files=MOST_FILES, subagents=MOST_SUBAGENTS,
    )  # fmt: skip
    return _TimelineReader(conversation, path).page(number)


class _TimelineReader:
    def __init__(self, conversation: Conversation, path: PathOf) -> None:
        self._conversation = conversation
        self._connection = conversation.connection
        self._permalinks = Permalinks(conversation.connection, path)
        self._here = path(str(conversation.session["session_key"]))
        files = islice(conversation.files_with_messages(), MOST_FILES)
        self._ranks = {file.id: rank for rank, file in enumerate(files)}
        self._files = list(self._ranks)

    def page(self, number: int) -> Timeline:
        """Return a page; raise PageError if it does not exist."""
        rows = self._ask("map_prompts")
        prompts = self._prompts(rows)
        first = (number - 1) * TURNS
        if first and first >= len(prompts):
            links = [("The timeline from the beginning", f"{self._here}/timeline")]
            raise PageError(404, f"The timeline has no page {number:,}.", links)
        calls = self._ask("timeline_calls")
        own = self._own(calls)
        turns = self._turns(prompts, first, TURNS)
        starts = [one[:2] for one in prompts[first : first + TURNS]]
        if not first and (before := self._before(own, starts)):
            turns, starts = [before, *turns], [(-1, 0), *starts]
        end = prompts[first + TURNS][:2] if first + TURNS < len(prompts) else None
        spans = list(self._calls(own, turns, starts, end))
        behind = prompts[first + TURNS][2] if end is not None else None
        agents = list(self._agents(turns, self._begin_of(behind)))
        drawn, not_drawn, working = _lanes(turns, spans, agents)
        return Timeline(
            pages.brief(self._conversation.session), turns, len(prompts), drawn,
            terminal.duration(round(working * 1000)), len(calls),
            sum(row["subagent_id"] is not None for row in calls), not_drawn,
            max(len(rows), len(calls)) < _MOST_READ,
        )  # fmt: skip

    def facts(self, messages: Collection[int]) -> dict[int, TurnFacts]:
        """Return what the turns that begin with these messages took, used and cost.

        A response of a subagent counts in the turn whose call spawned it, however deep that is.
        """
        prompts = self._prompts(self._ask("map_prompts"))
        numbers = [number for number, one in enumerate(prompts) if one[2] in messages]
        if not numbers:
            return {}
        first, behind = numbers[0], numbers[-1] + 1
        turns = self._turns(prompts, first, behind - first)
        starts = [one[:2] for one in prompts[first:behind]]
        end = prompts[behind][:2] if behind < len(prompts) else None
        waits = self._own(self._ask("timeline_calls", waits=1))
        for _ in self._calls(waits, turns, starts, end):
            pass  # it notes in the turns when they waited
        used = self._used(starts, end)
        rate = rates(self._connection) if any(row["partial"] for row in chain(*used)) else None
        return {
            prompts[first + number][2]: self._words(turn, used[number], rate)
            for number, turn in enumerate(turns)
        }

    def _words(self, turn: Turn, rows: Sequence[sqlite3.Row], rate: Rates | None) -> TurnFacts:
        if not rows:
            return TurnFacts([turn.took] if turn.took else [], "")
        known = spent(self._connection, rows, rate)
        sums: Counter[str] = Counter()
        for row in rows:
            sums.update({name: row[name] for name in row.keys() if name.endswith("_tokens")})  # noqa: SIM118
        tokens, cost = known.tokens(known.output_tokens), known.cost() or "cost unknown"
        words = [word for word in (turn.took, tokens, cost) if word]
        return TurnFacts(words, known.words(sums).get("tokens", ""))

    def _used(self, starts: list[LineOrder], end: LineOrder | None) -> list[list[sqlite3.Row]]:
        """Return what each of some turns in a row used, by model; nothing where it is too much."""
        used: list[list[sqlite3.Row]] = [[] for _ in starts]
        responses = self._ask("turn_responses")
        if len(responses) >= _MOST_READ:
            return used
        spawned = self._spawned()
        chosen = []
        for row in responses:
            agent = row["subagent_id"]
            is_own = agent is None and row["file_id"] in self._ranks
            order = self._order(row) if is_own else spawned.get(agent)
            if order is None or order < starts[0] or (end is not None and order >= end):
                continue
            chosen.append((bisect_right(starts, order) - 1, row["id"]))
        for row in sql.ask(self._connection, "pages/turn_usage", responses=json.dumps(chosen)):
            used[row["turn"]].append(row)
        return used

    def _spawned(self) -> dict[int, LineOrder]:
        """Return where the subagents were spawned, those of subagents with the outermost one."""
        agents = {agent.agent_key: agent for agent in self._conversation.subagents}
        calls = {}
        for agent in agents.values():
            outer, seen = agent, {agent.agent_key}
            while outer.parent in agents and outer.parent not in seen:
                seen.add(outer.parent)
                outer = agents[outer.parent]
            if outer.call_id is not None:
                calls[agent.id] = outer.call_id
        rows = urls.rows(self._connection, set(calls.values()))
        return {
            agent: (self._ranks[rows[call].place.file], rows[call].place.offset)
            for agent, call in calls.items()
            if call in rows and rows[call].place.file in self._ranks
        }

    def _prompts(self, rows: Iterable[sqlite3.Row]) -> list[tuple[int, int, int]]:
        """Return the prompts that begin a turn, in order: rank of the file, offset, id."""
        # A queued prompt is typed while a turn runs, and belongs to that turn.
        begins = (row for row in rows if row["kind"] != "queued_prompt" and not row["is_copy"])
        return sorted(
            (*self._order(row), row["id"]) for row in begins if row["file_id"] in self._ranks
        )

    def _ask(self, query: str, **more: object) -> list[sqlite3.Row]:
        session = self._conversation.session["id"]
        rows = sql.ask(
            self._connection, f"pages/{query}", session=session, limit=_MOST_READ, **more
        )
        return rows.fetchall()

    def _own(self, calls: Iterable[sqlite3.Row]) -> list[sqlite3.Row]:
        """Return the calls of the conversation itself, without those of its subagents."""
        ranks = self._ranks
        return [row for row in calls if row["subagent_id"] is None and row["file_id"] in ranks]

    def _order(self, row: sqlite3.Row) -> LineOrder:
        return self._ranks[row["file_id"]], row["byte_offset"]

    def _turns(self, prompts: Sequence[tuple[int, int, int]], first: int, count: int) -> list[Turn]:
        """Return some turns, with the times of their first and last messages."""
        some = prompts[first : first + count]
        lasts = [
            self._last(one, prompts[number] if number < len(prompts) else None)
            for number, one in enumerate(some, start=first + 1)
        ]
        ids = json.dumps([*(one[2] for one in some), *lasts])
        messages = {row["id"]: row for row in sql.ask(self._connection, "pages/map_texts", ids=ids)}
        turns = []
        for number, (one, last) in enumerate(zip(some, lasts, strict=True), start=first + 1):
            row = messages[one[2]]
            start, end = _seconds(row["timestamp"]), _seconds(messages[last]["timestamp"])
            text = one_line(message_text.typed(row["kind"], row["text"] or "")) or "(no text)"
            turns.append(
                Turn(
                    number, text if len(text) <= _TURN_LETTERS else text[: _TURN_LETTERS - 1] + "…",
                    self._permalinks.by_byte(BlockPlace(self._files[one[0]], one[1], 0)),
                    row["timestamp"], start, max(start, end) if start and end else start,
                )
            )  # fmt: skip
        return turns

    def _before(self, calls: Sequence[sqlite3.Row], starts: Sequence[LineOrder]) -> Turn | None:
        """Return a turn for the calls before the first prompt, None if there are none."""
        before = [row for row in calls if not starts or self._order(row) < starts[0]]
        if not before:
            return None
        first = min(before, key=self._order)
        times = [
            second
            for row in before
            for column in ("started_at", "ended_at")
            if (second := _seconds(row[column])) is not None
        ]
        place = BlockPlace(first["file_id"], first["byte_offset"], first["block"])
        return Turn(
            0, "Before the first prompt", self._permalinks.by_byte(place), first["started_at"],
            min(times, default=None), max(times, default=None),
        )  # fmt: skip

    def _last(self, prompt: tuple[int, int, int], behind: tuple[int, int, int] | None) -> int:
        """Return the id of the last message of a prompt's turn."""
        rank, offset, message = prompt
        before = behind[1] if behind is not None and behind[0] == rank else None
        row = sql.ask(
            self._connection, "pages/message_before",
            file=self._files[rank], before_offset=before, kinds=_OF_AGENTS, limit=1,
        ).fetchone()  # fmt: skip
        return int(row["id"]) if row and row["byte_offset"] > offset else message

    def _calls(
        self, rows: Iterable[sqlite3.Row], turns: Sequence[Turn], starts: list[LineOrder],
        end: LineOrder | None,
    ) -> Iterator[tuple[str, Span]]:  # fmt: skip
        """Yield the tools and times of the calls on the page, and count them in their turns."""
        for row in rows:
            order = self._order(row)
            number = bisect_right(starts, order) - 1
            if number < 0 or (end is not None and order >= end):
                continue
            is_bad = row["status"] == "error"
            turns[number].calls += 1
            turns[number].errors += is_bad
            start = _seconds(row["started_at"])
            if start is None:
                continue
            stop = _seconds(row["ended_at"]) or start + (row["duration_ms"] or 0) / 1000
            if row["status"] == _DECLINED or row["action"] == ASK:
                turns[number].waits.append((start, stop))
                stop = start
            name = one_line(row["name"] or "tool")
            place = BlockPlace(row["file_id"], row["byte_offset"], row["block"])
            text = f"{name}, {terminal.clock(row['started_at'])}"
            address = self._permalinks.by_byte(place)
            yield name, Span(start, max(start, stop), text, address, is_bad)

    def _begin_of(self, message: int | None) -> float:
        """Return the time of a message; without one, the end of time."""
        ids = json.dumps([message])
        row = sql.ask(self._connection, "pages/map_texts", ids=ids).fetchone()
        return (_seconds(row["timestamp"]) if row else None) or float("inf")

    def _agents(self, turns: Sequence[Turn], until: float) -> Iterator[Span]:
        """Yield the subagents that started on the page, and add them to their turns."""
        timed = [turn for turn in turns if turn.start is not None]
        begins = [turn.start or 0.0 for turn in timed]
        for agent in self._conversation.subagents:
            start, end = _seconds(agent.started_at), _seconds(agent.ended_at)
            number = bisect_right(begins, start) - 1 if start is not None else -1
            if start is None or number < 0 or start >= until or agent.kind == "warmup":
                continue
            turn = timed[number]
            text = one_line(name_of(agent))
            query = urlencode({"_agent": agent.agent_key})
            span = Span(
                start, max(start, end or start), text[:_TURN_LETTERS], f"{self._here}?{query}"
            )
            turn.agents.append(span)
            yield span


def _lanes(
    turns: Sequence[Turn], calls: Sequence[tuple[str, Span]], agents: Sequence[Span]
) -> tuple[list[Lane], int, float]:
    """Return the lanes of a chart, how many subagents have no room, and how long anything ran."""
    spans = [
        Span(start, end, f"{turn.number}: {turn.text}", turn.address)
        for turn in turns
        for start, end in turn.runs
    ]
    timed = sum(bool(turn.runs) for turn in turns)
    everything = [*spans, *(span for _, span in calls), *agents]
    if not everything:
        return [], 0, 0.0
    axis = Axis(everything)
    drawn = [Lane("Turns", f"{timed:,}", "turn", lane(axis, spans, merges=False))]
    by_tool: dict[str, list[Span]] = {}
    counts = Counter(name for name, _ in calls)
    chosen = {name for name, _ in counts.most_common(_MOST_TOOLS)}
    for name, span in calls:
        by_tool.setdefault(name if name in chosen else "", []).append(span)
    for name in (*sorted(chosen, key=lambda name: (-counts[name], name)), ""):
        if spans_of_tool := by_tool.get(name):
            facts = terminal.many(len(spans_of_tool), "call")
            drawn.append(Lane(name or "Other tools", facts, "tool", lane(axis, spans_of_tool)))
    rows, left = packed(agents, _MOST_ROWS)
    for number, row in enumerate(rows):
        facts = f"{len(agents):,}" if not number else ""
        name = "Subagents" if not number else ""
        drawn.append(Lane(name, facts, "agent", lane(axis, row)))
    return drawn, left, axis.seconds


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
