"""The page of one conversation, or of one subagent of it, 200 messages at a time.

The address says where a page begins, by the place of a message: `?after=12` begins after it,
`?at=12` a few messages before it (for a search hit), and `?_end=1` shows the last page. Messages
are in the order of their file. A message of a subagent opens the page of that subagent, as the
subagent's key in the path does. Addresses with the id of a row (`?_at=345`) redirect to those
with a place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlencode

from .. import sql, terminal
from ..ask import refs
from ..ask.blame import MadeCommit, commits_of
from ..ask.conversation import PEOPLE, Conversation, File, Message, Only, Part, Subagent, facts_of
from ..ask.excerpt import find
from ..ask.notes import Note, notes_above
from ..ask.refs import KeyMatch
from ..ask.since import Since, changed_since
from ..ask.usage import spent_of
from . import conversations, pages, urls
from .address import (
    MOST_FILES,
    MOST_SUBAGENTS,
    TABLES,
    AddressedPlace,
    PathOf,
    addressed,
    line_at,
    read_from,
    row_id,
)
from .entries import Entries, Entry, Nested, folded_copies, nested_in, set_links, with_beginning
from .find import LONGEST, Finder, Finding
from .map import Map, Mapper, Stretch
from .pages import MOST_LINKS, PageError
from .paging import FIRST, PAGE, Begin, Paging
from .timeline import TimelineReader
from .urls import BlockPlace, Link, Paths, Permalinks, with_query

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


_MOST_FILES = 50  # that a page names
_MOST_MODELS = 10

SAID = ("text", *sorted(PEOPLE))
"""Kinds of messages between people and agents."""

Line = tuple[int, int]
"""A file, and where the line begins in it."""


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
            turns = TimelineReader(self._conversation, self._path).facts(prompts)
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


_SCRIPTS = ("session.js",)


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
    shown = await read_from(datasette, request, TABLES, partial(_read, asked))
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
