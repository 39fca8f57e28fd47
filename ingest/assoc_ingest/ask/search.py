"""The answer to a query: the best conversations with their best hits, and the best hits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

from .filters import Filters
from .find import Findings, find
from .hits import Hit, read_hits
from .ranking import Cluster
from .search_result import Group, SearchResult


def search(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 10,
    tools: bool = False,
    raw: bool = False,
    shown: int = 3,
    closest: bool = True,
    clean: Callable[[str], str] | None = None,
) -> SearchResult:
    """Return the best `limit` conversations, `shown` hits of each, and the best `limit` hits.

    All else is as in `find`.
    """
    found = find(
        connection, query, filters,
        limit=limit, tools=tools, raw=raw, closest=closest, clean=clean,
    )  # fmt: skip
    answer = _answer(found, limit, shown)
    if raw:
        return answer
    for group in answer.groups:
        found.marker.look(group.title or "")
    return replace(answer, relaxation=found.relaxation(), notes=found.notes(answer.count))


def _answer(found: Findings, limit: int, shown: int) -> SearchResult:
    """Read what is shown of what was found."""
    first = found.groups[:limit] if shown else []
    read = [one for cluster in first for one in cluster.found[:shown]]
    best = found.listed[:limit]
    hits = read_hits(found.candidates.connection, [*read, *best], found.marker)
    return SearchResult(
        tuple(_group(cluster, hits, shown) for cluster in first),
        tuple(hits[one.candidate.place] for one in best if one.candidate.place in hits),
        len(found.groups),
        sum(cluster.count for cluster in found.groups) if shown else len(found.listed),
        found.candidates.is_cut,
        None,
        (),
        found.nothing,
    )


def _group(cluster: Cluster, hits: dict[tuple[str, int], Hit], shown: int) -> Group:
    """Return a group with its best hits; what says the same as another is not shown again."""
    distinct: dict[str, Hit] = {}
    for one in cluster.found[: min(shown, cluster.count)]:
        if hit := hits.get(one.candidate.place):
            distinct.setdefault(hit.snippet, hit)
    best = tuple(distinct.values())
    return Group(cluster.session_key, best[0].title, best, cluster.count - len(best))
