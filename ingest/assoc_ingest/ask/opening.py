"""What a reference opens: a conversation, a part of it, or an entry of another kind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ..errors import NotFoundError, UsageError
from . import show, show_json, stores
from .answer import Wanted
from .conversation import Conversation
from .excerpt import Options
from .page import Look
from .refs import Key, Line, resolve, split
from .stores import Entry

Opened = tuple[Conversation, Key | Line] | list[Entry]


def opened(connection: sqlite3.Connection, reference: str, options: Options) -> Opened:
    """Return what a reference means: a place in a conversation, or entries of another kind.

    Raises NotFoundError or UsageError where it means nothing, or not what the options ask for.
    """
    if (named := split(reference)) is not None:
        options.check(None)
        try:
            return stores.find(connection, *named)
        except NotFoundError as error:
            try:  # a session may be called like a store
                what = resolve(connection, reference)
            except (NotFoundError, UsageError):
                raise error from None
    else:
        what = resolve(connection, reference)
    options.check(what)
    key = what.key if isinstance(what, Line) else what
    session = what.file.session_id if isinstance(what, Line) else what.session_id
    return Conversation(connection, key.session_key, session_id=session), what


def has_mark(found: Opened) -> bool:
    """Is one of the lines marked, because a line was asked for?"""
    return not isinstance(found, list) and isinstance(found[1], Line)


def lines(found: Opened, look: Look, options: Options) -> Iterator[str]:
    """Yield what was opened, line by line."""
    if isinstance(found, list):
        return stores.lines(found, look)
    return show.lines(found[0], look, found[1], options)


def as_json(
    connection: sqlite3.Connection,
    reference: str,
    options: Options,
    wanted: Wanted,
    limit: int | None = None,
) -> Iterator[str]:
    """Yield the pieces of what a reference opens as one JSON object, see `answer`."""
    found = opened(connection, reference, options)
    if isinstance(found, list):
        return stores.as_json(connection, reference, found, wanted)
    return show_json.as_json(found[0], found[1], options, wanted, limit)
