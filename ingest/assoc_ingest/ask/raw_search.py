"""A search for an FTS5 expression, which the user wrote: ranked by the indexes alone.

What people and agents said stands before what tools gave. Ranks of two indexes cannot be compared,
so the first hit of a smaller store stands after the fourth message, its second after the eighth,
and so on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice

from ..errors import UsageError
from .candidates import Candidate, Candidates
from .expressions import SAID, TOOLS
from .ranking import ALL_WORDS, Cluster, Found, conversation

_MESSAGES_PER_STORE_HIT = 4
_SYNTAX_ERRORS = (
    "fts5:", "no such column", "unterminated string", "unknown special query", "malformed MATCH",
)  # fmt: skip


def found(candidates: Candidates, expression: str, limit: int, *, tools: bool) -> list[Found]:
    """Return what an expression finds, best first; raise UsageError if it is none."""
    listed: list[Found] = []
    for scope in (TOOLS,) if tools else (SAID, TOOLS):
        messages = _messages(candidates, expression, scope, limit)
        stores = [
            iter(_store(candidates, what, expression, scope, limit))
            for what in candidates.stores(scope)
        ]
        mixed = _mixed(iter(messages), stores)
        listed += [Found(candidate, ALL_WORDS, 0, 0.0) for candidate in mixed]
    return listed


def in_stores(candidates: Candidates, expression: str, limit: int) -> list[Candidate]:
    """Return what an expression finds in the smaller stores."""
    return [
        candidate
        for scope in (SAID, TOOLS)
        for what in candidates.stores(scope)
        for candidate in _store(candidates, what, expression, scope, limit)
    ]


def clusters(listed: Iterable[Found]) -> list[Cluster]:
    """Return what was found by conversation, in the order of their first hits."""
    by_key: dict[object, Cluster] = {}
    for one in listed:
        by_key.setdefault(conversation(one.candidate), Cluster([], 0.0)).found.append(one)
    return list(by_key.values())


def _messages(candidates: Candidates, expression: str, scope: str, limit: int) -> list[Candidate]:
    try:
        return candidates.raw(expression, scope, limit)
    except sqlite3.OperationalError as error:
        if not _is_syntax(error):
            raise
        raise UsageError(
            f"--raw: not a valid FTS5 expression ({_detail(error)}). "
            "Quote words with punctuation in double quotes, or leave out --raw."
        ) from error


def _store(
    candidates: Candidates, what: str, expression: str, scope: str, limit: int
) -> list[Candidate]:
    try:
        return candidates.in_store(what, expression, scope, limit)
    except sqlite3.OperationalError as error:
        # The expression was good for messages: it names a column that this store lacks.
        if not _is_syntax(error):
            raise
        return []


def _mixed(messages: Iterator[Candidate], stores: list[Iterator[Candidate]]) -> Iterator[Candidate]:
    """Yield four messages, one hit of each store, four messages, and so on."""
    while True:
        some = [*islice(messages, _MESSAGES_PER_STORE_HIT)]
        some += [hit for store in stores for hit in islice(store, 1)]
        if not some:
            return
        yield from some


def _detail(error: sqlite3.OperationalError) -> str:
    detail = str(error).removeprefix("fts5: ")
    return detail.replace('near ")"', "at its end")  # the bracket is that of the scope


def _is_syntax(error: sqlite3.OperationalError) -> bool:
    return str(error).startswith(_SYNTAX_ERRORS)
