"""Counts the hits of a search by kind, project, source, model, role, branch and month.

Messages are counted by one query over the full-text index, the newest ones first where there are
very many. The smaller stores are small: their hits are counted one by one.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass

from . import query_parser
from .candidates import Candidates
from .filters import Filters
from .results import Answer

MOST = 20_000
"""Messages that are counted; of more, the newest."""

FACETS = ("kind", "project", "source", "model", "role", "branch", "month")
_MOST_OF_STORES = 500


@dataclass(frozen=True, slots=True)
class Facets:
    """Counts of hits, those of each facet the most frequent first."""

    total: int
    is_cut: bool
    """There are more messages than were counted."""
    counts: dict[str, list[tuple[str, int]]]


def facets(connection: sqlite3.Connection, query: str, filters: Filters) -> Facets:
    """Return the counts of what holds all words; none where only single letters are asked for."""
    terms = query_parser.parse(query)
    candidates = Candidates(connection, filters.limited_by(terms.fields), shown=_MOST_OF_STORES)
    found: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    total = 0
    for row in candidates.counts(terms, MOST):
        if row["facet"] == "all":
            total += int(row["hits"])
        else:
            found[row["facet"]][str(row["value"])] += int(row["hits"])
    is_cut = total >= MOST
    for row in candidates.store_rows(terms):
        total += 1
        _count(found, row["what"], row["source"], row["project"], row["timestamp"])
    return _facets(total, is_cut, found)


def facets_of(answer: Answer) -> Facets:
    """Return the counts of those hits that an answer lists: of a query that was relaxed."""
    found: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for hit in answer.hits:
        kind = hit.kind if hit.what == "message" else hit.what
        _count(found, kind or "", hit.source, hit.project, hit.time)
        for name, value in (("model", hit.model), ("branch", hit.branch)):
            if value and hit.what == "message":
                found[name][value] += 1
    return _facets(len(answer.hits), answer.is_cut, found)


def _count(
    found: dict[str, Counter[str]], kind: str, source: str, project: str | None, time: str | None
) -> None:
    found["kind"][kind] += 1
    found["source"][source] += 1
    if project:
        found["project"][project] += 1
    if time:
        found["month"][time[:7]] += 1


def _facets(total: int, is_cut: bool, found: dict[str, Counter[str]]) -> Facets:
    counts = {name: counter.most_common() for name, counter in found.items() if counter}
    if "month" in counts:
        counts["month"].sort(reverse=True)
    return Facets(total, is_cut, counts)
