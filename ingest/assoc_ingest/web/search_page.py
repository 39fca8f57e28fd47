"""The page of a search: its address, results, facets and cards."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from .. import sql
from ..ask import search
from ..ask.candidates import Candidate, Candidates
from ..ask.filters import Filters, Nothing, project_ids
from ..ask.hits import Hit
from ..ask.query import SAID
from ..ask.search import (
    ALL_WORDS,
    FACETS,
    LAST_TIER,
    FacetHits,
    Findings,
    Hits,
    Place,
    Ranked,
    SearchResult,
    find,
    preference_of_kind,
    read_hits,
)
from ..errors import UsageError
from ..questions.question import context
from ..questions.search import Search, conversation
from ..terminal import one_line
from . import pages, urls
from .pages import PageError
from .urls import Paths, Permalinks

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


# ------------------------------------------------------------------------------------------------
# What the address of the search page asks for, and the addresses of other searches from there.
#
#     q, db, sort, page    the query; in which database; by relevance or `newest` first; which page
#     kind, project ...    filters, as the options of the command with these names
#     raw=1                the query is an FTS5 expression
#     closest=0            only what has all words
#     narrow=kind,month    these filters came later: they leave out some of what was found, and are
#                          not part of the question
#
# A value of a facet is offered with the number of what it leads to. So its link says what the
# page did that it stands on: a question that is asked again within a filter may be relaxed where
# it was not before, or otherwise.


FILTERS = (*FACETS, "session", "tool", "since", "until")
SORTS = {"": "Best first", "newest": "Newest first"}
LONGEST_QUERY = 4_000  # letters: it is in each of the links
LONGEST_VALUE = 1_000  # letters of a value that is a link
_OTHERS = ("q", "db", "sort", "page", "raw", "closest", "narrow")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search, as its address says it; parameters without a value are left out."""

    here: str
    values: Mapping[str, str]
    is_cut: bool = False
    """Was the query too long?"""

    @property
    def query(self) -> str:
        return self.values.get("q", "")

    @property
    def page(self) -> int:
        """The number of the page, from 1."""
        return pages.page_number(self.values.get("page"))

    @property
    def narrowed(self) -> frozenset[str]:
        """The names of the filters that only leave out some of what was found."""
        names = frozenset(filter(None, self.values.get("narrow", "").split(",")))
        return names & self.values.keys()

    @property
    def filters(self) -> dict[str, str]:
        return {name: self.values[name] for name in FILTERS if name in self.values}

    @property
    def kept(self) -> dict[str, str]:
        """What the next question is asked with, too."""
        names = (*FILTERS, "sort", "raw")
        return {name: self.values[name] for name in names if name in self.values}

    def address(self, **changes: str | None) -> str:
        """Return the address of the search with other values, its first page if none is said."""
        changed = {**self.values, "page": None, **changes}
        return f"{self.here}?{urlencode({name: text for name, text in changed.items() if text})}"

    def without(self, name: str) -> str:
        """Return the address of the search without a filter."""
        if not self.filters.keys() - {name}:
            return self.address(**{name: None}, narrow=None, closest=None)
        return self.address(**{name: None}, narrow=",".join(sorted(self.narrowed - {name})))

    def without_filters(self) -> str:
        """Return the address of the search without any."""
        return self.address(**dict.fromkeys(FILTERS), narrow=None, closest=None)

    def within(self, name: str, value: str, *, narrowing: bool) -> str:
        """Return the address of the part of what was found that has a value of a filter.

        `narrowing`: some of it lacks a word, or the query itself has such a filter.
        """
        if narrowing:
            return self.address(**{name: value}, narrow=",".join(sorted({*self.narrowed, name})))
        return self.address(**{name: value}, closest="0")

    def question(self) -> Filters:
        names = self.filters.keys() - self.narrowed
        given: dict[str, object] = {name: self.values[name] for name in names}
        return Filters.of({**given, "kind": (given["kind"],) if "kind" in given else ()})

    def wanted(self, connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
        """Return the values of the other filters that are left."""
        found = {name: frozenset((self.values[name],)) for name in self.narrowed}
        if "project" in found:
            ids = json.loads(project_ids(connection, self.values["project"]))
            found["project"] = frozenset(map(str, ids))
        return found


def parse(request: Request, here: str) -> SearchRequest:
    """Return what an address asks for; raise PageError for a value that means nothing."""
    given = {name: request.args.get(name) or "" for name in (*_OTHERS, *FILTERS)}
    for name, text in given.items():
        if name != "q" and len(text) > LONGEST_VALUE:
            raise PageError(400, f"The value of {name} is too long.")
    _check("order", given["sort"], tuple(SORTS)[1:])
    for name in given["narrow"].split(","):
        _check("filter", name, (*FACETS, "session"))
    values = {name: text for name, text in given.items() if text}
    if "q" in values:
        values["q"] = given["q"][:LONGEST_QUERY]
    return SearchRequest(here, values, is_cut=len(given["q"]) > LONGEST_QUERY)


def _check(what: str, value: str, known: tuple[str, ...]) -> None:
    if value and value not in known:
        raise PageError(400, f"Unknown {what} {value!r}. Choose one of: {', '.join(known)}.")


# ------------------------------------------------------------------------------------------------
# What the search page found: cards in order, one page of them, and what they can be narrowed to.
#
# A card stands for a conversation, or for what belongs to none. The best stand where the search
# of the command line puts them. Behind those it has not ranked, because there are very many,
# stand the others, with what people and agents said before thinking, and thinking before tools.
# In one conversation each hit is a card.


PAGE = 20
"""Cards on a page."""

_RANKED = 10  # conversations at least: as many as the command line ranks
_SHOWN = 3  # hits of a card


@dataclass(slots=True)
class Card:
    """A conversation that was found, or one thing that belongs to none."""

    hits: int = 0
    newest: str = ""
    parts: list[FacetHits] = field(default_factory=list)
    ranked: list[Ranked] = field(default_factory=list)
    """Those hits that the search has put in order, best first."""
    shown: list[Hit] = field(default_factory=list)
    """Filled for the page that is shown; at least one."""

    @property
    def preference(self) -> int:
        """What people and agents said comes first."""
        return min(part.preference for part in self.parts)

    def best(self) -> list[Place]:
        """Return a few of its hits: those that were ranked first, then the newest of each part."""
        others = sorted(self.parts, key=lambda part: part.newest, reverse=True)
        others.sort(key=lambda part: part.preference)
        places = [one.candidate.place for one in self.ranked]
        places += [part.places[0] for part in others]
        places += [part.places[-1] for part in others]
        return list(dict.fromkeys(places))[:_SHOWN]


@dataclass(frozen=True, slots=True)
class Results:
    """What a search found, and one page of it."""

    answer: Search
    """Of the page, a conversation for each card."""
    cards: list[Card]
    counts: dict[str, Counter[str]]
    """How many cards each value of a facet has."""
    findings: Findings
    has_close: bool
    """Are there hits that lack a word?"""


def results(connection: sqlite3.Connection, asked: SearchRequest) -> Results:
    """Return a page of what was found.

    Raises UsageError or NotFoundError where the address asks for what means nothing.
    """
    raw = asked.query if "raw" in asked.values else None
    question, wanted = asked.question(), asked.wanted(connection)
    apart = "session" in asked.values
    found = find(
        connection, asked.query, question, limit=_RANKED, raw=raw is not None,
        closest=asked.values.get("closest") != "0",
    )  # fmt: skip
    close = found.beyond()
    every = Candidates(connection, question.limited_by(found.terms.fields))
    hits = Hits.of(every, found.terms, raw, apart=apart)
    hits.add(connection, _not_counted(every, found, close))
    ranked = found.listed if apart else [one for group in found.groups for one in group.found]
    if hits.is_cut:
        # What is older than all that was counted may be among the best.
        hits.add(connection, _without_owner(ranked, hits, apart=apart))
    parts = hits.parts
    if wanted:
        parts = [part for part in parts if part.fits(wanted)]
        known = search.parts_of(connection, (one.candidate for one in ranked), apart=apart)
        ranked = [one for one in ranked if known[one.candidate.place].fits(wanted)]
    cards = _in_order(
        _cards(parts, ranked, apart=apart), newest=asked.values.get("sort") == "newest"
    )
    why = found.nothing
    if wanted and not cards:
        why = _why_nothing(asked, hits.parts, wanted)
    start = (asked.page - 1) * PAGE
    shown = _read(connection, cards[start : start + PAGE], found, hits)
    answer = _answer(asked, found, cards, shown, why, is_cut=hits.is_cut)
    return Results(answer, shown, search.counts(parts), found, bool(close))


def _why_nothing(
    asked: SearchRequest, parts: Iterable[FacetHits], wanted: Mapping[str, frozenset[str]]
) -> Nothing:
    """Say how many cards there are without each filter that came later, and without all of them."""
    filters = Filters.of(asked.filters)

    def left(*names: str) -> int:
        others = {name: values for name, values in wanted.items() if name not in names}
        return len({part.owner for part in parts if part.fits(others)})

    alone = ((name, filters.told(name), left(name)) for name in wanted)
    return Nothing(tuple(one for one in alone if one[2]), left(*wanted))


def _not_counted(every: Candidates, found: Findings, close: Iterable[Ranked]) -> list[Candidate]:
    """Return those close hits that are not among the ones with all words.

    Where there are many with all words, the search has not seen them all: one of the others may
    have been found again as one that lacks some.
    """
    candidates = [one.candidate for one in close]
    ids = {one.place[1] for one in candidates if one.is_message}
    if not ids or not found.candidates.is_cut:
        return candidates
    rows = every.counted(found.terms, len(ids) + 1, apart=True, among=ids)
    known = {("message", row["apart"]) for row in rows}
    return [one for one in candidates if one.place not in known]


def _without_owner(ranked: Iterable[Ranked], hits: Hits, *, apart: bool) -> list[Candidate]:
    owners = {part.owner for part in hits.parts}
    return [one.candidate for one in ranked if search.owner_of(one.candidate, apart) not in owners]


def _cards(parts: Iterable[FacetHits], ranked: Iterable[Ranked], *, apart: bool) -> list[Card]:
    """Return the cards, those with ranked hits first, in their order."""
    cards: dict[object, Card] = {}
    for one in ranked:
        cards.setdefault(search.owner_of(one.candidate, apart), Card()).ranked.append(one)
    for part in parts:
        card = cards.setdefault(part.owner, Card())
        card.parts.append(part)
        card.hits += part.hits
        card.newest = max(card.newest, part.newest)
    return [card for card in cards.values() if card.parts]


def _in_order(cards: list[Card], *, newest: bool) -> list[Card]:
    by_time = sorted(cards, key=lambda card: card.newest, reverse=True)
    if newest:
        return by_time
    ranked = [card for card in cards if card.ranked and not card.ranked[0].is_thought]
    first = sorted(ranked, key=lambda card: card.ranked[0].tier)
    thoughts = [card for card in cards if card.ranked and card.ranked[0].is_thought]
    others = thoughts + [card for card in by_time if not card.ranked]
    return first + sorted(others, key=lambda card: card.preference)


def _read(
    connection: sqlite3.Connection, cards: Iterable[Card], found: Findings, hits: Hits
) -> list[Card]:
    """Read what is shown of these cards; what says the same as another hit is not shown again."""
    shown = list(cards)
    known = {one.candidate.place: one for card in shown for one in card.ranked}
    places = {place for card in shown for place in card.best()} - known.keys()
    ids = [number for what, number in places - hits.rows.keys()]
    rows = sql.ask(connection, "pages/found_messages", ids=json.dumps(ids))
    others = [Candidate(row, SAID) for row in rows]
    others += [hits.rows[place] for place in places & hits.rows.keys()]
    known |= {one.place: Ranked(one, ALL_WORDS, LAST_TIER, 0.0) for one in others}
    wanted = [known[place] for card in shown for place in card.best() if place in known]
    read = read_hits(connection, wanted, found.marker)
    for card in shown:
        distinct: dict[str, Hit] = {}
        for place in card.best():
            if hit := read.get(place):
                distinct.setdefault(hit.snippet, hit)
        card.shown = list(distinct.values())
        found.marker.look(card.shown[0].title or "" if card.shown else "")
    return [card for card in shown if card.shown]


def _answer(
    asked: SearchRequest,
    found: Findings,
    cards: list[Card],
    shown: list[Card],
    why: Nothing | None,
    *,
    is_cut: bool,
) -> Search:
    """Return the cards of a page as the answer of the question `search`."""
    notes = [*found.notes(len(cards))]
    if asked.is_cut:
        notes.insert(0, f"Only the first {LONGEST_QUERY:,} characters of the query were used.")
    if found.terms.without and cards:
        words = ", ".join(term.text for term in found.terms.without)
        notes.append(f"Excluded: messages with {words}.")
    relaxation = found.relaxation() if cards else None
    if relaxation and (asked.page > 1 or asked.narrowed):
        # A word that is missing here may be elsewhere among what was found.
        relaxation = replace(relaxation, missing=())
    total = len(cards)
    result = SearchResult(
        (), (), total, sum(card.hits for card in cards), is_cut, relaxation, tuple(notes)
    )
    items = [conversation(card.shown, card.hits - len(card.shown)) for card in shown]
    if asked.values.get("sort") == "newest":
        for item, card in zip(items, shown, strict=True):
            item.time = card.newest
    nothing = why.as_json() if why else None
    return Search(total, is_cut, result.relaxed(), notes, nothing, items, asked.query, result)


# ------------------------------------------------------------------------------------------------
# What the search page offers to narrow a search, and what of it is chosen.
#
# A facet is a plain link. It is offered where it has several values, each with as many cards as
# the page has that it leads to.


_VALUES, _MORE_VALUES = 8, 40  # of a facet: those that are seen, and those that unfold
_LONG_QUERY = 300  # letters of a query with which so many links would be too much
_LABELS = {"session": "Conversation", "since": "From", "until": "Up to"}


class Value(NamedTuple):
    """A value of a facet, and the address of what it leads to."""

    key: str
    text: str
    cards: int
    address: str


class Facet(NamedTuple):
    """What was found can be narrowed by these values."""

    name: str
    values: list[Value]
    folded: list[Value]
    """Further ones."""
    left_out: int
    """How many more there are."""


class Chosen(NamedTuple):
    """A filter that is set, and the address without it."""

    name: str
    text: str
    address: str


class Projects:
    """The names and the directories of projects."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = sql.ask(connection, "pages/project_names")
        self._known = {str(row["id"]): row for row in rows}

    def name(self, key: str) -> str:
        """Return the name of the project with this id; what is none, as it is."""
        row = self._known.get(key)
        return shown_name((row["name"] or row["key"] or "") if row else key, "(unnamed)")

    def names(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the names of projects; of one name, with directories, and else with sources."""
        names = {key: self.name(key) for key in keys}
        for column in ("path", "source"):
            facts: dict[str, set[str]] = {}
            for key, name in names.items():
                facts.setdefault(name, set()).add(self._fact(key, column))
            names = {
                key: f"{name} ({self._fact(key, column)})" if len(facts[name]) > 1 else name
                for key, name in names.items()
            }
        return names

    def _fact(self, key: str, column: str) -> str:
        row = self._known.get(key)
        return shown_name((row[column] or row["key"] or "") if row else key)


def shown_name(text: str, nameless: str = "(untitled)") -> str:
    return one_line(pages.cut(text)) or nameless


def is_narrowing(found: Results, name: str) -> bool:
    """Is a filter to leave out some of what was found, rather than to be asked with?"""
    own = {name, "since", "until"} if name == "month" else {name}
    return found.has_close or not own.isdisjoint(name for name, _ in found.findings.terms.fields)


def offered(asked: SearchRequest, found: Results, projects: Projects) -> Iterator[Facet]:
    """Yield the facets that are not chosen and have more than one value."""
    for name in FACETS:
        counter = found.counts.get(name)
        if name in asked.values or not counter or len(counter) < 2:
            continue
        ordered = counter.most_common()
        if name == "month":
            ordered.sort(reverse=True)
        narrowing = is_narrowing(found, name)
        texts = _texts(name, counter, projects)
        values = [
            Value(key, texts[key], cards, asked.within(name, key, narrowing=narrowing))
            for key, cards in ordered[: _VALUES + _MORE_VALUES]
            if len(key) <= LONGEST_VALUE
        ]
        seen = values[:_VALUES]
        folded = values[_VALUES:] if len(asked.query) <= _LONG_QUERY else []
        yield Facet(name, seen, folded, len(ordered) - len(seen) - len(folded))


def chosen(asked: SearchRequest, found: Results, projects: Projects) -> Iterator[Chosen]:
    for name, value in asked.filters.items():
        text = _texts(name, [value], projects)[value]
        if name == "session":
            titles = [hit.title for card in found.cards for hit in card.shown[:1]]
            text = shown_name(next(filter(None, titles), value))
        yield Chosen(_LABELS.get(name, name.capitalize()), text, asked.without(name))


def _texts(name: str, keys: Iterable[str], projects: Projects) -> dict[str, str]:
    """Return how the values of a facet are shown."""
    if name == "project":
        return projects.names(keys)
    return {key: shown_name(key.replace("_", " ") if name == "kind" else key) for key in keys}


# ------------------------------------------------------------------------------------------------
# Where a card leads to: a hit to its message by a link that lasts; what is no message, to its row.


_ROWS = {
    "message": "messages", "session": "sessions", "inbox": "inbox_items", "task": "tasks",
    "todo": "todos", "plan": "plans", "document": "documents", "prompt": "prompts",
    "tool_result_file": "tool_result_files",
}  # fmt: skip


class CardLinks(NamedTuple):
    """Where a card leads to, besides its hits."""

    project: tuple[str, str] | None
    """Name and address."""
    more: str | None
    """The address of the other hits in the conversation."""


class Addresses:
    """The addresses of hits."""

    def __init__(
        self, datasette: Datasette, database: str, connection: sqlite3.Connection, found: Results
    ) -> None:
        self._session = Paths(datasette, database).session
        self._table = partial(datasette.urls.table, database)
        hits = (hit for card in found.cards for hit in card.shown)
        rows = urls.rows(connection, [hit.id for hit in hits if hit.what == "message"])
        links = Permalinks(connection, self._session).of(row.place for row in rows.values())
        self._messages = {
            one: links[row.place].address for one, row in rows.items() if row.place in links
        }

    def of(self, hit: Hit) -> str:
        if hit.what == "message" and hit.id in self._messages:
            return self._messages[hit.id]
        if hit.what in ("message", "session") and hit.session_key:
            return self._session(hit.session_key)
        return f"{self._table(_ROWS[hit.what])}/{hit.id}"


def weight(hit: Hit) -> str:
    """Return how much a hit counts: said, thinking or tools."""
    if hit.what != "message":
        return "tools" if hit.what == "tool_result_file" else "said"
    if hit.kind == "thinking":
        return "thinking"
    return (
        "said" if preference_of_kind(hit.kind or "") < preference_of_kind("thinking") else "tools"
    )


# ------------------------------------------------------------------------------------------------
# The page of a search over all stores of one database: a card for each conversation, and facets.
#
# What is found, and in which order, is that of the command line (`search_results`); a card shows
# it (`search_cards`), and facets narrow it (`search_facets`), as the address says
# (`search_address`).
#
# Whatever the names and the query are, the page has an end: snippets are short (`snippets`),
# names are cut, and of the values of a facet those with the most hits are offered.


TABLES = (
    "messages", "sessions", "subagents", "projects", "files", "inbox_items", "tasks", "todos",
    "plans", "documents", "prompts", "tool_result_files",
)  # fmt: skip
_WORDS = 6  # of a query that found nothing, each as a link
_RAW = "--raw: "  # what an error begins with that is about the expression


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page; without a query, the form alone."""
    names = await pages.databases(datasette, request, TABLES)
    if not names:
        raise PageError(
            404, "No assoc-ingest database is open here, or you have no permission to see it."
        )
    asked = parse(request, datasette.urls.path("/-/assoc/search"))
    database = asked.values.get("db") or names[0]
    shown: dict[str, object] = {
        "title": f"{asked.query} – search" if asked.query.strip() else "Search",
        "asked": asked,
        "database": database,
        "databases": names,
        "body": None,
    }
    if asked.query.strip():
        make = _Page(datasette, database, names, asked)
        shown |= await pages.read(datasette, request, database, TABLES, make.read)
    return await pages.page(datasette, request, "search", shown)


class _Page:
    """What the template shows of one search."""

    def __init__(
        self, datasette: Datasette, database: str, databases: list[str], asked: SearchRequest
    ) -> None:
        self._datasette = datasette
        self._database = database
        self._databases = databases
        self._asked = asked

    def read(self, connection: sqlite3.Connection) -> dict[str, object]:
        from ..questions.view import rendered

        asked, found = self._asked, self._results(connection)
        if asked.page > 1 and not found.cards:
            raise PageError(
                404, f"There is no page {asked.page} of this search.",
                [("First page", asked.address())],
            )  # fmt: skip
        projects = Projects(connection)
        set_filters = list(chosen(asked, found, projects))
        known = {
            **context(found.answer),
            "asked": asked,
            "start": (asked.page - 1) * PAGE,
            "sorts": SORTS,
            "corrected": self._corrected(found),
            "chosen": set_filters,
            "links": [self._links(card, found, projects) for card in found.cards],
            "address": Addresses(self._datasette, self._database, connection, found).of,
            "weight": weight,
        }
        if not found.cards:
            known |= self._nothing(connection, found, set_filters)
        return {
            "body": rendered("search", "html", "answer" if found.cards else "empty", known),
            "is_cut": found.answer.is_at_least,
            "facets": list(offered(asked, found, projects)),
            "chosen": set_filters,
        }

    def _links(self, card: Card, found: Results, projects: Projects) -> CardLinks:
        asked, part = self._asked, card.parts[0]
        project = more = None
        if key := part.values.get("project"):
            base = self._datasette.urls.database(self._database)
            project = (projects.name(key), f"{base}/-/project/{key}")
        if part.session_key and card.hits > len(card.shown) and "session" not in asked.values:
            narrowing = is_narrowing(found, "session")
            more = asked.within("session", part.session_key, narrowing=narrowing)
        return CardLinks(project, more)

    def _results(self, connection: sqlite3.Connection) -> Results:
        """Return what was found; raise PageError where the query is an expression and is wrong."""
        try:
            return results(connection, self._asked)
        except UsageError as error:
            of_raw = str(error).removeprefix(_RAW)
            if "raw" not in self._asked.values or of_raw == str(error):
                raise
            message = of_raw.removesuffix(", or leave out --raw.").rstrip(".")
            is_wrong = message.startswith("not ")
            message = f"The query is {message}." if is_wrong else f"{message.capitalize()}."
            plain = [("Search for its words instead", self._asked.address(raw=None))]
            raise PageError(400, message, plain) from error

    def _corrected(self, found: Results) -> tuple[str, str] | None:
        """Return the query with the words that were taken for others, and its address."""
        query = self._asked.query
        question = found.findings.question
        for word, meant in question.corrected.items() if question else ():
            query = _with(query, word, meant[0])
        return (query, self._asked.address(q=query)) if query != self._asked.query else None

    def _nothing(
        self, connection: sqlite3.Connection, found: Results, set_filters: list[Chosen]
    ) -> dict[str, object]:
        """Return what helps where nothing was found."""
        clauses = found.findings.terms.content
        words = [clause.name for clause in clauses] if len(clauses) > 1 else []
        return {
            "labels": {
                name: f"{name} {filter.text}"
                for name, filter in zip(self._asked.filters, set_filters, strict=True)
            },
            "words": [(word, self._asked.address(q=word)) for word in words[:_WORDS]],
            "fresh": sql.ask(connection, "pages/fresh").fetchone(),
            "read": sql.ask(connection, "pages/indexed_files").fetchone(),
            "others": [
                (name, self._asked.address(db=name))
                for name in self._databases
                if name != self._database
            ],
            "issues": f"{self._datasette.urls.table(self._database, 'issues')}?quarantined=1",
        }


def _with(query: str, word: str, other: str) -> str:
    """Return the query with another word in place of one."""
    return " ".join(other if one == word else one for one in query.split(" "))
