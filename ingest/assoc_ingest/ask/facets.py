"""Counts the hits of a search by kind, project, source, model, role, branch and month.

Messages are counted by one query over the full-text index, the newest ones first where there are
very many. The smaller stores are small: their hits are counted one by one.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass

from .. import sql
from . import query_parser
from .filters import Filters
from .search import store_rows

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
    """Return the counts of what `search` finds; without any where only single letters are asked."""
    words = query_parser.parse(query)
    found: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    total = _messages(connection, words, filters, found)
    is_cut = total >= MOST
    for row in store_rows(connection, words, filters, _MOST_OF_STORES):
        total += 1
        found["kind"][row["what"]] += 1
        found["source"][row["source"]] += 1
        if row["project"]:
            found["project"][row["project"]] += 1
        if row["timestamp"]:
            found["month"][row["timestamp"][:7]] += 1
    counts = {name: counter.most_common() for name, counter in found.items() if counter}
    if "month" in counts:
        counts["month"].sort(reverse=True)
    return Facets(total, is_cut, counts)


def _messages(
    connection: sqlite3.Connection,
    words: query_parser.Terms,
    filters: Filters,
    found: dict[str, Counter[str]],
) -> int:
    match, substrings = words.all_words(), words.all_substrings()
    index = "messages_fts" if match else "messages_cjk_fts"
    expression = match or substrings
    if expression is None:
        return 0
    query = sql.query("search/hit_counts")
    letters = json.dumps([query_parser.like(text) for text in words.letters], ensure_ascii=False)
    given = {
        **dict.fromkeys(query.parameters),
        **filters.parameters(connection),
        "match": expression,
        "cjk": substrings if match else None,
        "letters": letters,
        "limit": MOST,
    }
    total = 0
    # The index of trigrams has the columns of the word index, so the same query asks it.
    for row in connection.execute(
        query.sql.replace("messages_fts", index), {name: given[name] for name in query.parameters}
    ):
        if row["facet"] == "all":
            total = int(row["hits"])
        else:
            found[row["facet"]][str(row["value"])] += int(row["hits"])
    return total
