"""What the search page found: cards in order, one page of them, and what they can be narrowed to.

A card stands for a conversation, or for what belongs to none. The best stand where the search of
the command line puts them. Behind those it has not ranked, because there are very many, stand the
others, with what people and agents said before thinking, and thinking before tools. In one
conversation each hit is a card.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .. import sql
from ..ask import facets
from ..ask.candidates import Candidate, Candidates
from ..ask.expressions import SAID
from ..ask.facets import Hits, Part, Place
from ..ask.filters import Filters, Nothing
from ..ask.find import Findings, find
from ..ask.hits import Hit, read_hits
from ..ask.ranking import ALL_WORDS, LAST_TIER, RELAXED, Found
from ..ask.search_result import Relaxation
from .search_address import Asked

PAGE = 20
"""Cards on a page."""

_RANKED = 10  # conversations at least: as many as the command line ranks
_SHOWN = 3  # hits of a card


@dataclass(slots=True)
class Card:
    """A conversation that was found, or one thing that belongs to none."""

    hits: int = 0
    newest: str = ""
    parts: list[Part] = field(default_factory=list)
    ranked: list[Found] = field(default_factory=list)
    """Those hits that the search has put in order, best first."""
    shown: list[Hit] = field(default_factory=list)
    """Filled for the page that is shown; at least one."""

    @property
    def is_close(self) -> bool:
        """Does even its best hit lack a word?"""
        return bool(self.ranked) and self.ranked[0].why == RELAXED

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
    """What a search found, and the cards of one page."""

    cards: list[Card]
    page: int
    total: int
    """Cards at all."""
    hits: int
    is_cut: bool
    """There are more of both: they were not counted."""
    counts: dict[str, Counter[str]]
    """How many cards each value of a facet has."""
    relaxation: Relaxation | None
    corrected: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    words: tuple[str, ...]
    """The words of the query that say what is looked for."""
    without: tuple[str, ...]
    fields: frozenset[str]
    """The filters that are in the query itself."""
    has_close: bool
    """Are there hits that lack a word?"""
    split: int | None
    """From which card of the page on all lack a word; None if that is no border."""
    is_mixed: bool
    """Do some cards of the page lack a word, and not only the last ones?"""
    nothing: Nothing | None
    """Why nothing was found."""

    @property
    def has_more(self) -> bool:
        """Is there another page?"""
        return self.page * PAGE < self.total


def results(connection: sqlite3.Connection, asked: Asked) -> Results:
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
        known = facets.parts_of(connection, (one.candidate for one in ranked), apart=apart)
        ranked = [one for one in ranked if known[one.candidate.place].fits(wanted)]
    cards = _in_order(
        _cards(parts, ranked, apart=apart), newest=asked.values.get("sort") == "newest"
    )
    why = found.nothing
    if wanted and not cards:
        why = _why_nothing(asked, hits.parts, wanted)
    start = (asked.page - 1) * PAGE
    shown = _read(connection, cards[start : start + PAGE], found, hits)
    return _results(
        asked, found, parts, cards, shown,
        is_cut=hits.is_cut, has_close=bool(close), why=why,
    )  # fmt: skip


def _why_nothing(
    asked: Asked, parts: Iterable[Part], wanted: Mapping[str, frozenset[str]]
) -> Nothing:
    """Say how many cards there are without each filter that came later, and without all of them."""
    filters = Filters.of(asked.filters)

    def left(*names: str) -> int:
        others = {name: values for name, values in wanted.items() if name not in names}
        return len({part.owner for part in parts if part.fits(others)})

    alone = ((name, filters.told(name), left(name)) for name in wanted)
    return Nothing(tuple(one for one in alone if one[2]), left(*wanted))


def _not_counted(every: Candidates, found: Findings, close: Iterable[Found]) -> list[Candidate]:
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


def _without_owner(ranked: Iterable[Found], hits: Hits, *, apart: bool) -> list[Candidate]:
    owners = {part.owner for part in hits.parts}
    return [one.candidate for one in ranked if facets.owner_of(one.candidate, apart) not in owners]


def _cards(parts: Iterable[Part], ranked: Iterable[Found], *, apart: bool) -> list[Card]:
    """Return the cards, those with ranked hits first, in their order."""
    cards: dict[object, Card] = {}
    for one in ranked:
        cards.setdefault(facets.owner_of(one.candidate, apart), Card()).ranked.append(one)
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
    known |= {one.place: Found(one, ALL_WORDS, LAST_TIER, 0.0) for one in others}
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


def _results(
    asked: Asked, found: Findings, parts: list[Part], cards: list[Card], shown: list[Card], *,
    is_cut: bool, has_close: bool, why: Nothing | None,
) -> Results:  # fmt: skip
    lacking = [card.is_close for card in shown]
    first = lacking.index(True) if True in lacking else 0
    split = first if first and all(lacking[first:]) else None
    return Results(
        cards=shown,
        page=asked.page,
        total=len(cards),
        hits=sum(card.hits for card in cards),
        is_cut=is_cut,
        counts=facets.counts(parts),
        relaxation=found.relaxation(),
        corrected=found.question.corrected if found.question else {},
        notes=found.notes(len(cards)),
        words=tuple(clause.name for clause in found.terms.content),
        without=tuple(term.text for term in found.terms.without),
        fields=frozenset(name for name, _ in found.terms.fields),
        has_close=has_close,
        split=split,
        is_mixed=split is None and len(set(lacking)) > 1,
        nothing=why,
    )
