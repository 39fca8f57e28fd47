"""Finds sessions by a prefix of their key."""

from __future__ import annotations

import sqlite3
from itertools import takewhile

from .. import sql
from ..errors import NotFoundError, UsageError
from ..terminal import cut, one_line
from .query_parser import bindable

_SHORTEST = 8
_LISTED = 100


def find_session(connection: sqlite3.Connection, prefix: str) -> str:
    """Return the one session key that begins with `prefix`."""
    wanted = prefix.strip()
    rows = sessions_beginning_with(connection, wanted)
    if not rows:
        raise NotFoundError(
            f"No session matches {prefix!r}. To see them: assoc-ingest list sessions"
        )
    keys = dict.fromkeys(str(row["session_key"]) for row in rows)
    exact = next((key for key in keys if key in (wanted, wanted.lower())), None)
    if exact is None and len(keys) > 1:
        raise UsageError(_ambiguous(prefix, rows))
    return exact or next(iter(keys))


def short_key(connection: sqlite3.Connection, key: str) -> str:
    """Return the shortest beginning of `key`, eight letters at least, that means only it."""
    (row,) = sql.ask(connection, "pages/session_key_neighbours", key=key)
    shared = max(_shared(key, row["before"]), _shared(key, row["after"]))
    return key[: max(_SHORTEST, shared + 1)]


def short_agent_key(connection: sqlite3.Connection, key: str) -> str:
    """Return the shortest beginning of a subagent's key that means only it, as `short_key` does."""
    (row,) = sql.ask(connection, "pages/agent_key_neighbours", key=key)
    shared = max(_shared(key, row["before"]), _shared(key, row["after"]))
    return key[: max(_SHORTEST, shared + 1)]


def sessions_beginning_with(connection: sqlite3.Connection, prefix: str) -> list[sqlite3.Row]:
    """Return the sessions whose key begins with `prefix`; if none does, with it in lower case."""
    for wanted in (prefix.strip(), prefix.strip().lower()):
        found = sql.ask(connection, "pages/sessions_by_prefix", prefix=bindable(wanted))
        if rows := found.fetchall():
            return rows
    return []


def _ambiguous(prefix: str, rows: list[sqlite3.Row]) -> str:
    lines = [f"{len(rows)} sessions begin with {prefix!r}; give a longer prefix:"]
    for row in rows[:_LISTED]:
        title = cut(one_line(row["title"] or ""), 60)
        lines.append(f"  {row['session_key']}  {(row['ended_at'] or '')[:10]:10}  {title}".rstrip())
    if len(rows) > _LISTED:
        lines.append(f"  and {len(rows) - _LISTED} more")
    return "\n".join(lines)


def _shared(key: str, other: str | None) -> int:
    pairs = zip(key, other or "", strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
