"""Finds sessions and subagents by a prefix of their key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from .. import sql
from ..errors import NotFoundError, UsageError
from ..terminal import cut, one_line
from .query_parser import bindable

_SHORTEST = 8
_LISTED = 100
_NEAREST = 3
_NEAR = 3  # letters that a key shares with one that is near it


class Key(NamedTuple):
    """What a key means: a session, or a subagent of it."""

    session_key: str
    agent_key: str | None = None
    session_id: int | None = None
    """Of a subagent: its session, where several homes have it."""

    @property
    def text(self) -> str:
        """Return the key itself."""
        return self.agent_key or self.session_key


def find_key(connection: sqlite3.Connection, prefix: str) -> Key:
    """Return the session or subagent whose key is `prefix`, else the one that begins with it.

    A session goes before a subagent. Raises NotFoundError where nothing has such a key, and
    UsageError where several have.
    """
    wanted = prefix.strip()
    sessions = sessions_beginning_with(connection, wanted)
    agents = agents_beginning_with(connection, wanted)
    for row in agents:
        if row["agent_key"] == wanted and wanted not in (row["session_key"] for row in sessions):
            return Key(row["session_key"], wanted, row["session_id"])
    if sessions or not agents:
        return Key(find_session(connection, prefix))
    keys = dict.fromkeys(str(row["agent_key"]) for row in agents)
    if len(keys) > 1:
        raise UsageError(_ambiguous_agent(prefix, agents))
    return Key(agents[0]["session_key"], agents[0]["agent_key"], agents[0]["session_id"])


def find_session(connection: sqlite3.Connection, prefix: str) -> str:
    """Return the one session key that begins with `prefix`."""
    wanted = prefix.strip()
    rows = sessions_beginning_with(connection, wanted)
    if not rows:
        if agents := agents_beginning_with(connection, wanted):
            session = one_line(short_key(connection, agents[0]["session_key"]))
            raise NotFoundError(f"{prefix!r} is a subagent. Give its session: {session}")
        raise NotFoundError(
            f"No session matches {prefix!r}{_nearest(connection, wanted)}. "
            "To see them: assoc-ingest list sessions"
        )
    keys = dict.fromkeys(str(row["session_key"]) for row in rows)
    exact = next((key for key in keys if key in (wanted, wanted.lower())), None)
    if exact is None and len(keys) > 1:
        raise UsageError(_ambiguous(prefix, rows))
    return exact or next(iter(keys))


def short_key(connection: sqlite3.Connection, key: str) -> str:
    """Return the shortest beginning of `key`, eight letters at least, that means only it."""
    return shortest(key, _neighbours(connection, key))


def short_agent_key(connection: sqlite3.Connection, key: str) -> str:
    """Return the shortest beginning of a subagent's key that means only it, as `short_key` does."""
    (row,) = sql.ask(connection, "pages/agent_key_neighbours", key=key)
    return shortest(key, (row["before"], row["after"]))


def shortest(key: str, neighbours: Iterable[str | None]) -> str:
    """Return the shortest beginning of `key`, eight letters at least, that none of these has."""
    shared = max(_shared(key, other) for other in neighbours)
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


def _ambiguous_agent(prefix: str, rows: list[sqlite3.Row]) -> str:
    keys = {row["agent_key"]: row["description"] or row["agent_type"] or "" for row in rows}
    lines = [f"{len(keys)} subagents begin with {prefix!r}; give a longer prefix:"]
    for key, text in list(keys.items())[:_LISTED]:
        lines.append(f"  {one_line(key)}  {cut(one_line(text), 60)}".rstrip())
    return "\n".join(lines)


def agents_beginning_with(connection: sqlite3.Connection, prefix: str) -> list[sqlite3.Row]:
    """Return the subagents whose key begins with `prefix`."""
    found = sql.ask(connection, "pages/agents_by_prefix", prefix=bindable(prefix))
    return found.fetchall() if prefix else []


def nearest_keys(connection: sqlite3.Connection, key: str) -> list[str]:
    """Return the keys that begin most like one that is not there, the nearest first."""
    wanted = key.strip()
    near = {
        other: _shared(wanted, other)
        for other in _neighbours(connection, bindable(wanted))
        if other
    }
    found = [
        other for other in sorted(near, key=lambda other: -near[other]) if near[other] >= _NEAR
    ]
    return found[:_NEAREST]


def _nearest(connection: sqlite3.Connection, key: str) -> str:
    found = nearest_keys(connection, key)
    listed = ", ".join(one_line(short_key(connection, other)) for other in found)
    return f"; the nearest {'key is' if len(found) == 1 else 'keys are'} {listed}" if found else ""


def _neighbours(connection: sqlite3.Connection, key: str) -> tuple[str | None, ...]:
    (row,) = sql.ask(connection, "pages/key_neighbours", key=key)
    return tuple(row)


def _shared(key: str, other: str | None) -> int:
    pairs = zip(key, other or "", strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
