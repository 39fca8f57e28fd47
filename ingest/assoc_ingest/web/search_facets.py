"""What the search page offers to narrow a search, and what of it is chosen.

A facet is a plain link. It is offered where it has several values, each with as many cards as the
page has that it leads to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .. import sql
from ..ask.facets import FACETS
from ..terminal import one_line
from . import pages
from .search_address import LONGEST_VALUE, Asked
from .search_results import Results

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
    """Return a name as the page shows it."""
    return one_line(pages.cut(text)) or nameless


def is_narrowing(found: Results, name: str) -> bool:
    """Is a filter to leave out some of what was found, rather than to be asked with?"""
    own = {name, "since", "until"} if name == "month" else {name}
    return found.has_close or not own.isdisjoint(found.fields)


def offered(asked: Asked, found: Results, projects: Projects) -> Iterator[Facet]:
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


def chosen(asked: Asked, found: Results, projects: Projects) -> Iterator[Chosen]:
    """Yield the filters that are set."""
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
