"""Which conversation the path of a page names; where it names none or several, what is near."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from .. import humanize
from ..ask import lookup
from ..ask.lookup import Key
from ..errors import NotFoundError, UsageError
from . import pages
from .pages import PageError


def find(connection: sqlite3.Connection, prefix: str, path: Callable[[str], str]) -> Key:
    """Return the conversation or subagent whose key begins with `prefix`.

    Raises PageError with links to what the prefix can mean, or to the nearest keys; `path` gives
    the address of the page of a key.
    """
    try:
        return lookup.find_key(connection, prefix)
    except NotFoundError as error:
        near = lookup.nearest_keys(connection, prefix)
        message = f"No session matches {prefix!r}." + (" The nearest keys:" if near else "")
        raise PageError(404, message, [(key, path(key)) for key in near], prefix) from error
    except UsageError as error:
        rows = lookup.sessions_beginning_with(connection, prefix)
        word = "sessions" if rows else "subagents"
        found = [
            (
                f"{row['title'] or '(untitled)'} · {humanize.moment(row['ended_at'])} · "
                f"{row['session_key']}",
                path(row["session_key"]),
            )
            for row in rows
        ] or [
            (
                f"{row['description'] or row['agent_type'] or ''} · {row['agent_key']}",
                path(row["agent_key"]),
            )
            for row in lookup.agents_beginning_with(connection, prefix)
        ]
        message = f"{len(found):,} {word} begin with {pages.cut(prefix)!r}."
        raise PageError(300, message, found) from error
