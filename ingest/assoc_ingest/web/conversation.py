"""The pages of one conversation: what is asked, read and shown; find, news, images, download."""

from __future__ import annotations

import json
import re
import sqlite3
from base64 import b64decode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from .. import sql, terminal
from ..ask import export as export_markdown
from ..ask import refs
from ..ask.conversation import PEOPLE, Conversation, File, Message, Only, Originals, Part, Subagent
from ..ask.excerpt import FindResult, find
from ..ask.export import Choice, ExportedConversation
from ..ask.queries import spent_of
from ..ask.refs import KeyMatch
from ..ask.show import facts_of
from . import export, pages, urls
from .entries import (
    FIRST,
    PAGE,
    Begin,
    Entries,
    Entry,
    Map,
    Mapper,
    Nested,
    Paging,
    Stretch,
    folded_copies,
    nested_in,
    set_links,
    with_beginning,
)
from .html import LARGEST, marked_html
from .pages import MOST_LINKS, PageError
from .urls import BlockPlace, Permalinks

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import AsgiStream, Request, Response


# ------------------------------------------------------------------------------------------------
# Find in a conversation, over all its pages: where the page stands among the matches, and marks.
#
# A match is a message that holds all words of the query. Those of subagents come behind those of
# the conversation itself, and lead to the pages of the subagents.


LONGEST = 300
"""Letters of a query: it is in every link of the page."""

_MOST_MARKED = 500_000  # letters of a page that are looked through for words to mark

Order = tuple[int, int, int, int]


class Finding(NamedTuple):
    """What a page says of what was looked for."""

    total: int
    number: int | None
    """Which of the matches the page was opened at, from 1."""
    before: str | None
    """What opens the match before this place."""
    behind: str | None
    notes: Sequence[str]


class Finder:
    """Knows the order of the matches in a conversation with these files, and what opens each."""

    def __init__(
        self, found: FindResult, files: Sequence[int], address: Callable[[BlockPlace], str]
    ) -> None:
        self._found = found
        self._address = address
        self._ranks = {file: rank for rank, file in enumerate(files)}
        self._orders = sorted(self._order(match[:3]) for match in found.matches)
        self._ids = {match.id for match in found.matches}

    def at(self, place: BlockPlace, *, is_line: bool) -> Finding:
        """Return the find state of a page opened at a place, whose block may be unknown."""
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
        """Return what opens the first match behind a place, or the first of all."""
        number = bisect_right(self._orders, self._order(place)) if place else 0
        return self._opens(number) or self._opens(0)

    def mark(self, entries: Iterable[Entry]) -> None:
        """Mark what was looked for in those of the entries that are matches; they are unfolded."""
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
# What an address asks of the pages of a conversation, and what such a page shows.


class PageRequest(NamedTuple):
    """What an address asks for."""

    agent: str | None
    at: urls.AddressedPlace | None
    after: urls.AddressedPlace | None
    row: int | None
    is_end: bool
    said: bool = False
    """Only what was said: prompts and answers."""
    find: str = ""
    """What is looked for in the conversation."""
    goes: bool = False
    """Is the first match wanted, or the first behind `after`?"""

    def keep(self, address: str) -> str:
        values = {"find": self.find, "said": "1" if self.said else ""}
        kept = urlencode({name: value for name, value in values.items() if value})
        head, sign, anchor = address.partition("#")
        if not kept:
            return address
        join = "" if head.endswith("?") else "&" if "?" in head else "?"
        return f"{head}{join}{kept}{sign}{anchor}"


@dataclass(slots=True)
class Shown:
    """What the template gets."""

    session: pages.Row
    models: list[str]
    more_models: int
    files: list[File]
    has_more_files: bool
    roots: list[str]
    resume: str | None
    sizes: list[str]
    """How much the conversation has of what: the words that `show` has for it."""
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
    work: list[pages.Row]
    related: list[pages.Row]
    notes: list[str]
    map: Map
    finding: Finding | None
    """None: nothing is looked for."""
    news: str
    """On the last page, the address that reports the number of new lines."""
    begin: str
    """Behind which place the page begins, as an address names it; '' if with the first."""


# ------------------------------------------------------------------------------------------------
# Reads what is on one page of a conversation.


MOST_SUBAGENTS = 5_000
"""Maximum number of subagents that the pages of a conversation show."""

MOST_FILES = 1_000
"""Maximum number of files whose messages the pages of a conversation show."""

_MOST_FILES = 50  # that a page names
_MOST_MODELS = 10

SAID = ("text", *sorted(PEOPLE))
"""Kinds of what people and agents said to each other."""

Line = tuple[int, int]
"""A file, and where the line begins in it."""


class Reader:
    """Reads one page of a conversation."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        key: KeyMatch,
        asked: PageRequest,
        path: Callable[[str], str],
    ) -> None:
        self._connection = connection
        self._asked = asked
        self._keep = asked.keep
        self._permalinks = Permalinks(connection, path)
        self._path = path
        self.notes: list[str] = []
        self._place: urls.BlockPlace | None = None
        self._asked_place: urls.BlockPlace | None = None
        self._named_subagent: int | None = None
        self._targets: frozenset[int] = frozenset()
        session_key, session_id = key.session_key, key.session_id
        if place := asked.at or asked.after:
            line = urls.find(connection, key, place, path(key.text))
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
            found = sql.ask(self._connection, "pages/subagent_files", subagent=self._subagent.id)
            self._files = [row["id"] for row in found]
        self._only = Only(SAID) if asked.said else None
        self._paging = Paging(
            connection, self._files, self._subagent.id if self._subagent else None, self._only
        )

    def _name(self, line: refs.Line, place: urls.AddressedPlace) -> None:
        """Note the message where the page begins, and those that it marks."""
        self.notes += line.notes
        found = refs.messages_of(self._connection, line)
        if place.block is not None and not line.notes:
            found = [row for row in found if row["block"] == place.block] or found
        row = found[0]
        self._named_subagent = row["subagent_id"]
        self._place = urls.BlockPlace(line.file.id, row["byte_offset"], row["block"])
        self._asked_place = self._place
        if row["answers"] is not None:  # a result is inside its call
            self._place = urls.BlockPlace(
                row["call_file_id"], row["call_offset"], row["call_block"]
            )
        if self._asked.at is not None:
            self._targets = frozenset(row["id"] for row in found)
            if self._asked.said and not any(row["kind"] in SAID for row in found):
                self.notes.append(
                    "The address names no prompt and no answer: it is not shown here."
                )

    def shown(self) -> Shown:
        conversation = self._conversation
        begin = self._begin()
        found = list(islice(self._from(begin), PAGE + 1))
        has_more = len(found) > PAGE
        messages = found[:PAGE]
        entries = Entries(conversation, self._targets)
        shown = list(entries.of(messages))
        is_whole = self._subagent is None and not has_more and not self._asked.said
        rest, more_rest, warmups = self._unspawned(entries) if is_whole else ([], 0, 0)
        ways = self._ways(begin, messages[-1] if has_more else None)
        finder = self._finder()
        shown, anchors = self._linked(shown, rest, finder)
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
            entries=shown,
            rest=rest,
            more_rest=more_rest,
            warmups=warmups,
            earlier=ways[0],
            later=ways[1],
            is_first=begin == FIRST,
            links=pages.ask(self._connection, "pages/session_links", session=self._id),
            work=pages.ask(self._connection, "pages/session_work", session=self._id),
            related=related[:MOST_LINKS],
            notes=self.notes,
            map=self._map(begin, messages[-1:], shown, anchors),
            finding=self._finding(finder, begin),
            begin=self._begin_name(begin),
            news="" if has_more else self._news(),
        )

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
        """Return what opens the first match, or the first behind where the page begins."""
        finder = self._finder()
        return finder.behind(self._asked_place) if finder else None

    def _finder(self) -> Finder | None:
        if not self._asked.find:
            return None
        kinds = SAID if self._asked.said else ()
        found = find(self._connection, int(str(self._id)), self._asked.find, kinds)
        main = [file.id for file in self._main]
        return Finder(found, main, lambda place: self._keep(self._permalinks.by_byte(place)))

    def _finding(self, finder: Finder | None, begin: Begin) -> Finding | None:
        if finder is None:
            return None
        if self._asked_place is not None and self._asked.at is not None:
            return finder.at(self._asked_place, is_line=self._asked.at.block is None)
        file = self._files[begin.file] if self._files else 0
        return finder.at(urls.BlockPlace(file, *(begin.after or (-1, 0))), is_line=False)

    def _begin_name(self, begin: Begin) -> str:
        if begin.after is None or self._subagent is not None:
            return ""
        return self._permalinks.name(urls.BlockPlace(self._files[begin.file], *begin.after))

    def _map(
        self, begin: Begin, last: list[Message], shown: list[Entry], anchors: Mapping[Line, str]
    ) -> Map:
        """Return the map beside the page, and set the steps between prompts on it."""

        def address(place: urls.BlockPlace) -> str:
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
        for one in shown:
            for entry in (one, *one.entries):
                entry.steps = made.steps.get(entry.id)
        return made

    def _linked(
        self, shown: list[Entry], rest: list[Nested], finder: Finder | None
    ) -> tuple[list[Entry], dict[Line, str]]:
        """Give all entries their addresses; return them with runs of copies folded.

        Also returns the anchors of the lines that are on the page.
        """
        nested = [entry for one in rest for entry in one.entries or ()]
        every = [*shown, *nested]
        rows = set_links(self._connection, self._permalinks, every, self._targets)
        if finder is not None:
            finder.mark(nested_in(every))
        anchors: dict[Line, str] = {}
        for entry in every:
            if entry.link is not None:
                anchors.setdefault(rows[entry.id].place[:2], entry.link.anchor)
        key = str(self._conversation.session["session_key"])
        folded = list(folded_copies(shown, rows, key))
        if self._subagent is not None:
            return folded, anchors
        folded, beginning = with_beginning(self._connection, folded, rows)
        address = self._address(beginning) if beginning else None
        for entry in folded:
            if entry.shape == "copies":
                entry.becomes_new = address
        return folded, anchors

    def _address(self, place: urls.BlockPlace) -> str | None:
        link = self._permalinks.of([place]).get(place)
        return link.address if link else None

    def _spawned_in(self) -> str | None:
        """Return the address of the call that spawned the subagent whose page it is."""
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
            raise PageError(404, "This conversation has more subagents than its pages show.")
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
        """Return the addresses of the pages before and behind this one.

        The one before is '' where it is the first; `last` is the last message of this page.
        """
        earlier = self._paging.before(begin)
        later = last and urls.BlockPlace(last.file_id, last.byte_offset, last.block)
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
# Where a page begins is named by the place of a message (`permalinks`): `?after=12` begins behind
# it, `?at=12` a few before it (what a search hit opens), `?_end=1` shows the last. Order is the
# position in the file. A message inside a subagent opens the page of that subagent, and so does
# the key of the subagent in the path. Addresses with the id of a row (`?_at=345`) lead to those
# with a place.


TABLES = (
    "messages", "sessions", "subagents", "tool_calls", "files", "projects", "responses", "prices",
    "links", "teams", "tasks", "todos", "plans",
)  # fmt: skip
_SCRIPTS = ("session.js", "news.js")


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page of a conversation; a 300 with all of them where a prefix means several."""
    from datasette.utils import tilde_encode
    from datasette.utils.asgi import Response

    database = pages.named(request, "database")
    prefix = pages.named(request, "session")
    row = request.args.get("_at") or request.args.get("_after")
    query = (request.args.get("find") or "").strip()
    asked = PageRequest(
        agent=request.args.get("_agent"),
        at=urls.asked(request.args.get("at")),
        after=urls.asked(request.args.get("after")),
        row=urls.row_id(row),
        is_end=bool(request.args.get("_end")),
        said=bool(request.args.get("said")),
        find=query[:LONGEST],
        goes=bool(request.args.get("go")),
    )
    path = partial(session_path, datasette, database)
    shown = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, prefix, asked, path),
    )  # fmt: skip
    if isinstance(shown, urls.Link):
        return Response.redirect(shown.address if request.args.get("_at") else shown.behind)
    if isinstance(shown, str):
        return Response.redirect(shown)
    if query != asked.find:
        note = f"Only the first {LONGEST} characters of the query were used."
        shown.notes.append(note)
    key = str(shown.session["session_key"])
    context = {
        "database": database,
        "shown": shown,
        "session": shown.session,
        "title": shown.session["title"] or "(untitled)",
        "here": session_path(datasette, database, key),
        "table": lambda name: datasette.urls.table(database, name),
        "agent_facts": pages.cut(facts_of(shown.subagent)) if shown.subagent else "",
        "resume": _whole(shown.resume),
        "tilde": tilde_encode,
        "display": terminal,
        "kept": asked.keep,
        **_modes(request),
        "asked": asked,
    }
    return await pages.page(datasette, request, "session", context, scripts=_SCRIPTS)


def session_path(datasette: Datasette, database: str, key: str) -> str:
    from datasette.utils import tilde_encode

    return f"{datasette.urls.database(database)}/-/session/{tilde_encode(key)}"


def _modes(request: Request) -> dict[str, str]:
    """Return the addresses of this page as it can be, too."""
    given = parse_qsl(request.query_string)

    def without(*names: str, **more: str) -> str:
        kept = [(name, value) for name, value in given if name not in names]
        return f"{request.path}?{urlencode([*kept, *more.items()])}"

    return {
        "everything": without("said"),
        "said": without("said", said="1"),
        "unmarked": without("find", "go"),
    }


def _whole(command: str | None) -> str | None:
    """Return a command if the page has room for all of it: one that is cut is another one."""
    return command if command is None or pages.cut(command) == command else None


def _read(
    connection: sqlite3.Connection, prefix: str, asked: PageRequest, path: Callable[[str], str]
) -> Shown | urls.Link | str:
    """Return what is on the page, or the address of another one that is asked for.

    That is the page of a message whose row is named, or of the first match of what is looked for.
    """
    key = pages.find(connection, prefix, path)
    if asked.row is None:
        reader = Reader(connection, key, asked, path)
        return (asked.goes and reader.match()) or reader.shown()
    if link := Permalinks(connection, path).of_row(asked.row, key):
        return link
    reader = Reader(connection, key, asked, path)
    reader.notes.append(
        f"There is no message {asked.row} in this conversation, which is shown from its beginning. "
        "The address has the number of a row, and such numbers change. Addresses with a line, "
        "behind the time of each message, do not."
    )
    return reader.shown()


# ------------------------------------------------------------------------------------------------
# A conversation as a file to download: what `assoc-ingest export` writes, as HTML or Markdown.
#
# The whole file is written to a temporary one, in one transaction, before its first byte is sent:
# a download that has begun is complete, and however slowly a browser reads, no thread of
# Datasette and no state of the database waits for it.


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

    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    form, redacts = request.args.get("format") or "html", request.args.get("redact") != "0"
    if form not in _FORMATS:
        raise PageError(400, f"Unknown format {form!r}. It can be html or md.")
    if not _one.acquire(blocking=False):
        raise PageError(503, "Another export is being written. Try again in a moment.")
    file = SpooledTemporaryFile(  # noqa: SIM115 - closed when it is sent
        _IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline=""
    )
    try:
        key = await pages.read(
            datasette, request, database, DOWNLOAD_TABLES,
            lambda connection: _write(
                connection, prefix, form, Choice(redacts=redacts), file,
                lambda key: session_path(datasette, database, key),
            ),
            queries=_QUERIES,
        )  # fmt: skip
    except BaseException:
        file.close()
        raise
    finally:
        _one.release()
    name = _not_of_name.sub("-", key)[:_LONGEST_NAME].strip("-") or "conversation"
    headers = {**pages.HEADERS, "content-disposition": f'attachment; filename="{name}.{form}"'}
    return AsgiStream(_sender(file), headers=headers, content_type=_FORMATS[form][1])


def _write(
    connection: sqlite3.Connection,
    prefix: str,
    form: str,
    choice: Choice,
    file: IO[str],
    path: Callable[[str], str],
) -> str:
    """Write a conversation to a file; return its key."""
    key = pages.find(connection, prefix, path).session_key
    for piece in _FORMATS[form][0](connection, ExportedConversation(connection, key, choice)):
        file.write(piece)
    return key


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
# The rows have a placeholder for each. The page asks for the image, and a browser that gets none
# shows the placeholder: the archive may have lost the line, or it was forgotten; what is in it
# may be too large, or no image at all.


IMAGE_TABLES = ("messages", "sessions", "subagents", "files", "archive")
_LONGEST_LINE = 64_000_000  # bytes: all of it is parsed
_HEADERS = {
    # Whatever a browser takes it for: it is of no origin, and nothing in it runs or loads.
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


async def image(datasette: Datasette, request: Request) -> Response:
    """Return the image that a message has, or tell why there is none."""
    from datasette.utils.asgi import Response

    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    place = urls.asked(request.args.get("at"))
    number = pages.page_number(request.args.get("n"))
    if place is None:
        raise PageError(400, "Add a line to the address, such as ?at=12")
    path = partial(session_path, datasette, database)
    media_type, data = await pages.read(
        datasette, request, database, IMAGE_TABLES,
        lambda connection: _read_image(connection, prefix, place, number, path),
    )  # fmt: skip
    return Response(data, headers=_HEADERS, content_type=media_type)


def _read_image(
    connection: sqlite3.Connection,
    prefix: str,
    place: urls.AddressedPlace,
    number: int,
    path: Callable[[str], str],
) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image; raise PageError if there is none."""
    key = pages.find(connection, prefix, path)
    line = urls.find(connection, key, place, path(key.text))
    blocks = {row["block"]: row["id"] for row in refs.messages_of(connection, line)}
    message = blocks.get(place.block or 0)
    if message is None or line.notes:
        raise PageError(404, "There is no such message.")
    row = sql.ask(connection, "pages/message_text", id=message).fetchone()
    if row["byte_length"] > _LONGEST_LINE:
        raise PageError(404, "The line with this image is too long to read here.")
    found = Originals(connection).images(
        row["file_id"], row["byte_offset"], row["byte_length"], row["text"] or ""
    )
    image = next(islice(found, number - 1, None), None)
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
# How many lines a conversation got since a page was read: what an open page asks now and then.


NEWS_TABLES = ("messages", "sessions", "subagents", "files")
MOST = 1_000
"""Blocks behind the page that are counted: then there are that many or more."""


async def news(datasette: Datasette, request: Request) -> Response:
    """Return, as JSON, how many lines came behind a place, and what opens the first of them."""
    from datasette.utils.asgi import Response

    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    place = urls.asked(request.args.get("after"))
    if place is None:
        raise PageError(400, "Add a line to the address, such as ?after=12")
    path = partial(session_path, datasette, database)
    news = await pages.read(
        datasette, request, database, NEWS_TABLES,
        lambda connection: _read_news(connection, prefix, place, path),
    )  # fmt: skip
    headers = {**pages.HEADERS, "cache-control": "no-store"}
    return Response(json.dumps(news), headers=headers, content_type="application/json")


def _read_news(
    connection: sqlite3.Connection,
    prefix: str,
    place: urls.AddressedPlace,
    path: Callable[[str], str],
) -> dict[str, object]:
    key = pages.find(connection, prefix, path)
    line = urls.find(connection, key, place, path(key.text))
    last = refs.messages_of(connection, line)[-1]
    behind = sql.ask(
        connection,
        "pages/message_after",
        file=line.file.id,
        subagent=last["subagent_id"],
        after_offset=last["byte_offset"],
        after_block=last["block"],
        limit=MOST,
    ).fetchall()
    address = ""
    if behind:
        first = urls.BlockPlace(line.file.id, behind[0]["byte_offset"], 0)
        address = urls.Permalinks(connection, path).by_byte(first)
    lines = len({row["byte_offset"] for row in behind})
    return {"lines": lines, "is_more": len(behind) == MOST, "address": address}
