"""All hits of a search, counted: how many there are, and how many a narrower search would have.

A search lists its best hits. Here are all of them, without their texts, in *parts*: hits of one
conversation that agree in everything that a search can be limited to. What a value of a facet
counts is what remains of these parts where others are left out, so the two can never differ.

What holds all words is asked for in full (`Hits.of`). What lacks a word, or has it only where a
line begins inside JSON, are the closest candidates of the search, and these are all there is of
them (`Hits.add`).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from .. import sql
from . import raw_search
from .candidates import Candidate, Candidates
from .ranking import conversation, preference, preference_of_kind
from .terms import Terms

MOST = 30_000
"""Messages that are counted; of more, the newest."""

FACETS = ("kind", "project", "source", "model", "role", "branch", "month")
"""What a search can be narrowed to, by a value that is offered."""

_MOST_OF_STORE = 2_000
_MOST_OF_TITLES = 2_000
_WITH_OWN_KIND = ("inbox", "document")
"""What can be asked for by its name and by its own kind."""

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Hits of one conversation that agree in everything that a search can be limited to."""

    owner: object
    """The conversation; what belongs to none, and with `apart` every hit, is one of its own."""
    session_key: str | None
    own_kind: str | None
    """A kind that the filter takes, too, besides the one that the facet has of them."""
    values: Mapping[str, str]
    """Their value of each facet that they have one of. A project is its id."""
    hits: int
    newest: str
    places: tuple[Place, ...]
    """The newest and the oldest."""
    preference: int

    def fits(self, wanted: Mapping[str, frozenset[str]]) -> bool:
        """Have they one of the wanted values of each facet, and of `session`?"""
        return all(not values.isdisjoint(self._all(name)) for name, values in wanted.items())

    def _all(self, name: str) -> Iterable[str]:
        found = self.session_key if name == "session" else self.values.get(name)
        return (found or "", self.own_kind or "") if name == "kind" else (found or "",)


@dataclass(slots=True)
class Hits:
    """All hits of a search."""

    parts: list[Part]
    rows: dict[Place, Candidate]
    """Those that are no messages, and those that were added."""
    is_cut: bool = False
    """Are there more than were counted?"""
    _apart: bool = False

    @classmethod
    def of(
        cls, candidates: Candidates, terms: Terms, raw: str | None = None, *, apart: bool = False
    ) -> Hits:
        """Return whatever holds all words, or fits the expression `raw`.

        With `apart`, each hit is a part.
        """
        candidates.shown = _MOST_OF_STORE
        others: list[Candidate] = []
        counted: list[sqlite3.Row] = []
        if raw is not None:
            counted = candidates.counted_raw(raw, MOST, apart=apart)
            others = raw_search.in_stores(candidates, raw, _MOST_OF_STORE)
        elif terms.clauses:
            counted = candidates.counted(terms, MOST, apart=apart)
            others = candidates.with_all_but_messages(terms, _MOST_OF_TITLES)
        hits = cls([_part(row) for row in counted], {}, candidates.is_cut, apart)
        hits.add(candidates.connection, others)
        return hits

    def add(self, connection: sqlite3.Connection, found: Iterable[Candidate]) -> None:
        """Add rows, each of them once."""
        new = {one.place: one for one in found if one.place not in self.rows}
        self.rows |= new
        self.parts += parts_of(connection, new.values(), apart=self._apart).values()


def parts_of(
    connection: sqlite3.Connection, found: Iterable[Candidate], *, apart: bool = False
) -> dict[Place, Part]:
    """Return each row as a part of its own."""
    known = {one.place: one for one in found}
    ids = [id_ for what, id_ in known if what == "message"]
    rows = sql.ask(connection, "pages/hit_facts", ids=json.dumps(ids)) if ids else ()
    facts = {("message", row["id"]): row for row in rows}
    return {place: _part_of(one, facts.get(place), apart=apart) for place, one in known.items()}


def owner_of(candidate: Candidate, apart: bool) -> object:
    """Return what tells the conversation of a row from others; with `apart`, the row itself."""
    return candidate.place if apart else conversation(candidate)


def counts(parts: Iterable[Part]) -> dict[str, Counter[str]]:
    """Return how many owners each value of a facet has: as many as a search for it finds."""
    owners: dict[str, dict[str, set[object]]] = {name: {} for name in FACETS}
    others: dict[str, set[object]] = {}
    for part in parts:
        for name, value in part.values.items():
            owners[name].setdefault(value, set()).add(part.owner)
        if part.own_kind:
            others.setdefault(part.own_kind, set()).add(part.owner)
    for value, found in owners["kind"].items():  # a kind of messages may be one of an inbox, too
        found |= others.get(value, set())
    return {
        name: Counter({value: len(found) for value, found in values.items()})
        for name, values in owners.items()
        if values
    }


def _part(row: sqlite3.Row) -> Part:
    last = "message", row["last_id"]
    project = row["project_id"]
    values = {
        "kind": row["kind"],
        "project": None if project is None else str(project),
        "source": row["source"],
        "model": row["model"],
        "role": row["role"],
        "branch": row["branch"],
        "month": row["month"],
    }
    return Part(
        owner=row["session_key"] if row["apart"] is None else last,
        session_key=row["session_key"],
        own_kind=None,
        values={name: value for name, value in values.items() if value},
        hits=row["hits"],
        newest=row["newest"] or "",
        places=(last,) if row["hits"] == 1 else (last, ("message", row["first_id"])),
        preference=preference_of_kind(row["kind"]),
    )


def _part_of(candidate: Candidate, facts: sqlite3.Row | None, *, apart: bool) -> Part:
    """Return a row as a part; `facts` are what is only known of messages."""
    row = candidate.row
    project = row["project_id"]
    values = {
        "kind": row["kind"] if candidate.is_message else row["what"],
        "project": None if project is None else str(project),
        "source": row["source"],
        "model": facts["model"] if facts else None,
        "role": facts["role"] if facts else None,
        "branch": facts["branch"] if facts else None,
        "month": _month(row["timestamp"]),
    }
    return Part(
        owner=owner_of(candidate, apart),
        session_key=row["session_key"],
        own_kind=row["kind"] if row["what"] in _WITH_OWN_KIND else None,
        values={name: value for name, value in values.items() if value},
        hits=1,
        newest=row["timestamp"] or "",
        places=(candidate.place,),
        preference=preference(candidate),
    )


def _month(time: str | None) -> str | None:
    """Return the month of the local calendar."""
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m}" if time else None
