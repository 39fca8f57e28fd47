"""Reads what is on one page of a conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from urllib.parse import urlencode

from .. import sql
from ..ask import heading, refs
from ..ask.conversation import Conversation, Message, Only, Part, Subagent
from ..ask.find_within import find
from ..ask.lookup import Key
from ..ask.message_text import PEOPLE
from . import copies, entry_links, pages, permalinks
from .conversation_map import Map, Mapper, Stretch
from .entries import Entries, Entry, Nested
from .finding import Finder, Finding
from .pages import MOST_LINKS, PageError
from .paging import FIRST, PAGE, Begin, Paging
from .permalinks import Permalinks
from .shown import Asked, Shown

MOST_SUBAGENTS = 5_000
"""Subagents of a conversation of which its pages know."""

MOST_FILES = 1_000
"""Files of a conversation of which its pages show the messages."""

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
        key: Key,
        asked: Asked,
        path: Callable[[str], str],
    ) -> None:
        self._connection = connection
        self._asked = asked
        self._keep = asked.keep
        self._permalinks = Permalinks(connection, path)
        self._path = path
        self.notes: list[str] = []
        self._place: permalinks.Place | None = None
        self._asked_place: permalinks.Place | None = None
        self._named_subagent: int | None = None
        self._targets: frozenset[int] = frozenset()
        session_key, session_id = key.session_key, key.session_id
        if place := asked.at or asked.after:
            line = permalinks.find(connection, key, place, path(key.text))
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

    def _name(self, line: refs.Line, place: permalinks.Asked) -> None:
        """Note the message where the page begins, and those that it marks."""
        self.notes += line.notes
        found = refs.messages_of(self._connection, line)
        if place.block is not None and not line.notes:
            found = [row for row in found if row["block"] == place.block] or found
        row = found[0]
        self._named_subagent = row["subagent_id"]
        self._place = permalinks.Place(line.file.id, row["byte_offset"], row["block"])
        self._asked_place = self._place
        if row["answers"] is not None:  # a result is inside its call
            self._place = permalinks.Place(
                row["call_file_id"], row["call_offset"], row["call_block"]
            )
        if self._asked.at is not None:
            self._targets = frozenset(row["id"] for row in found)
            if self._asked.said and not any(row["kind"] in SAID for row in found):
                self.notes.append(
                    "The address names no prompt and no answer: it is not shown here."
                )

    def shown(self) -> Shown:
        """Return what is on the page."""
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
        numbers, known = heading.numbers_of(conversation), heading.spent_of(conversation)
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
            tokens=heading.tokens_of(numbers, known).removeprefix("tokens "),
            cost=heading.cost_of(known).removeprefix("cost "),
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
        sizes = heading.sizes_of(self._conversation)
        if len(self._conversation.subagents) > MOST_SUBAGENTS:
            sizes[-1] = f"more than {MOST_SUBAGENTS:,} subagents"
        return sizes

    def _news(self) -> str:
        """Return the address that tells how many lines came since, '' if there is none."""
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
        return finder.at(permalinks.Place(file, *(begin.after or (-1, 0))), is_line=False)

    def _begin_name(self, begin: Begin) -> str:
        if begin.after is None or self._subagent is not None:
            return ""
        return self._permalinks.name(permalinks.Place(self._files[begin.file], *begin.after))

    def _map(
        self, begin: Begin, last: list[Message], shown: list[Entry], anchors: Mapping[Line, str]
    ) -> Map:
        """Return the map beside the page, and set the steps between prompts on it."""

        def address(place: permalinks.Place) -> str:
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
        rows = entry_links.set_links(self._connection, self._permalinks, every, self._targets)
        if finder is not None:
            finder.mark(entry_links.nested_in(every))
        anchors: dict[Line, str] = {}
        for entry in every:
            if entry.link is not None:
                anchors.setdefault(rows[entry.id].place[:2], entry.link.anchor)
        key = str(self._conversation.session["session_key"])
        folded = list(copies.folded(shown, rows, key))
        if self._subagent is not None:
            return folded, anchors
        folded, beginning = copies.with_beginning(self._connection, folded, rows)
        address = self._address(beginning) if beginning else None
        for entry in folded:
            if entry.shape == "copies":
                entry.becomes_new = address
        return folded, anchors

    def _address(self, place: permalinks.Place) -> str | None:
        link = self._permalinks.of([place]).get(place)
        return link.address if link else None

    def _spawned_in(self) -> str | None:
        """Return the address of the call that spawned the subagent whose page it is."""
        call = self._subagent.call_id if self._subagent else None
        if call is None:
            return None
        row = permalinks.rows(self._connection, [call]).get(call)
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
        later = last and permalinks.Place(last.file_id, last.byte_offset, last.block)
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
