"""Finds in one conversation what a search would find in all of them, in the order of its files.

A query is read as `search` reads it, and the same indexes answer. What is found holds all of its
words: nothing is relaxed, because a reader goes from one place to the next.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from . import matches, query_parser
from .candidates import Candidates
from .filters import Filters
from .terms import Terms

MOST = 20_000
"""Messages that are found at most."""

_MOST_MARKED = 20  # words of a query that are marked


class Match(NamedTuple):
    """A block that holds what was looked for."""

    file: int
    byte_offset: int
    block: int
    id: int


class Found(NamedTuple):
    """What was found, and what of the query was not looked for."""

    matches: list[Match]
    marker: Marker
    notes: tuple[str, ...] = ()


def find(
    connection: sqlite3.Connection, session: int, query: str, kinds: Sequence[str] = ()
) -> Found:
    """Return what of the conversation with this row id holds all that a query asks for.

    `kinds` of messages are found, if any are named, and else those of the query. A filter of the
    query that names nothing raises UsageError or NotFoundError.
    """
    terms = query_parser.parse(query)
    filters = Filters().limited_by(terms.fields)
    if kinds:
        wanted = tuple(kind for kind in kinds if not filters.kind or kind in filters.kind)
        filters = replace(filters, kind=wanted or ("session",))  # no message is one
    notes: tuple[str, ...] = (terms.note,) if terms.note else ()
    if not terms.clauses:
        return Found([], Marker(terms), ("The query has no word to look for.",))
    candidates = Candidates(connection, filters)
    found = {
        Match(row["file_id"], row["byte_offset"], row["block"], row["id"])
        for row in candidates.in_conversation(session, terms, MOST)
    }
    if len(found) >= MOST:
        notes += (f"There are more than {MOST:,}; some are left out.",)
    return Found(sorted(found), Marker(terms), notes)


class Marker:
    """Finds the words of a query in a text, to mark them."""

    def __init__(self, terms: Terms) -> None:
        self._words = matches.Places(terms.words[:_MOST_MARKED])
        self._parts = terms.parts()[:_MOST_MARKED]

    def spans(self, text: str) -> list[matches.Span]:
        """Return where the words stand, in order; none inside of another."""
        found = sorted({*self._words.some(text), *matches.substrings_in(text, self._parts)})
        spans: list[matches.Span] = []
        for start, end in found:
            if start < end and (not spans or start >= spans[-1][1]):
                spans.append((start, end))
        return spans
