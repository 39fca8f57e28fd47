"""What the address of the search page asks for, and the addresses of other searches from there.

    q, db, sort, page    the query; in which database; by relevance or `newest` first; which page
    kind, project ...    filters, as the options of the command with these names
    raw=1                the query is an FTS5 expression
    closest=0            only what has all words
    narrow=kind,month    these filters came later: they leave out some of what was found, and are
                         not part of the question

A value of a facet is offered with the number of what it leads to. So its link says what the page
did that it stands on: a question that is asked again within a filter may be relaxed where it was
not before, or otherwise.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ..ask.facets import FACETS
from ..ask.filters import Filters
from ..ask.project_names import project_ids
from . import pages
from .pages import PageError

if TYPE_CHECKING:
    from datasette.utils.asgi import Request

FILTERS = (*FACETS, "session", "tool", "since", "until")
SORTS = {"": "Best first", "newest": "Newest first"}
LONGEST_QUERY = 4_000  # letters: it is in each of the links
LONGEST_VALUE = 1_000  # letters of a value that is a link
_OTHERS = ("q", "db", "sort", "page", "raw", "closest", "narrow")


@dataclass(frozen=True, slots=True)
class Asked:
    """One search, as its address says it; parameters without a value are left out."""

    here: str
    values: Mapping[str, str]
    is_cut: bool = False
    """Was the query too long?"""

    @property
    def query(self) -> str:
        """The query, as it was typed."""
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
        """The filters that are set."""
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
        """Return the filters that are part of the question."""
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


def parse(request: Request, here: str) -> Asked:
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
    return Asked(here, values, is_cut=len(given["q"]) > LONGEST_QUERY)


def _check(what: str, value: str, known: tuple[str, ...]) -> None:
    if value and value not in known:
        raise PageError(400, f"Unknown {what} {value!r}. Choose one of: {', '.join(known)}.")
