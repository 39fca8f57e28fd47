"""What the address of a page of a conversation names: the conversation, and a place in it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..ask import refs
from ..ask.refs import KeyMatch, Lines
from ..errors import ArchiveError, NotFoundError
from . import pages
from .pages import PageError
from .urls import Paths

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

T = TypeVar("T")
PathOf = Callable[[str], str]
"""Returns the address of the page of a key."""

TABLES = (
    "messages", "sessions", "subagents", "tool_calls", "files", "projects", "responses", "prices",
    "links", "teams", "tasks", "todos", "plans", "sources", "notes",
)  # fmt: skip
"""What the pages of a conversation read."""

MOST_SUBAGENTS = 5_000
"""Maximum number of subagents that the pages of a conversation show."""

MOST_FILES = 1_000
"""Maximum number of files whose messages the pages of a conversation show."""

_place = re.compile(
    r"(?:(?P<file>\d{1,9}):)?(?:B(?P<byte>\d{1,18})|(?P<line>\d{1,15}))(?:\.(?P<block>\d{1,9}))?",
    re.ASCII,
)


class AddressedPlace(NamedTuple):
    file: int
    line: int | None
    byte: int
    block: int | None


def addressed(text: str | None) -> AddressedPlace | None:
    """Parse the value of `at=`; raise PageError if it is not a place."""
    if not text:
        return None
    match = _place.fullmatch(text)
    if match is None:
        raise PageError(400, f"{text!r} is not the place of a message. For line 12, use ?at=12")
    line, block = match["line"], match["block"]
    return AddressedPlace(
        file=int(match["file"] or 1),
        line=int(line) if line else None,
        byte=int(match["byte"] or 0),
        block=int(block) if block else None,
    )


def row_id(text: str | None) -> int | None:
    """Parse the id of a row; raise PageError if it is not a number."""
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise PageError(400, f"{text!r} is not a message id.")
    return int(text)


def line_at(
    connection: sqlite3.Connection, key: KeyMatch, place: AddressedPlace, path: str
) -> refs.Line:
    """Return the line that a place in the files of `key` means, or the nearest with messages.

    Raises PageError, with what to open instead, where the file ends before; `path` is that of the
    page of `key`.
    """
    head = key.text if place.file == 1 else f"{key.text}/{place.file}"
    file = None
    try:
        file = refs.file_of(connection, key, place.file, head)
        if place.line is None:
            return _at_byte(connection, refs.Line(key, file, 0, place.byte, place.byte + 1), head)
        return refs.line_of(connection, key, file, place.line, head)
    except (NotFoundError, ArchiveError) as error:
        links = [("The conversation from the beginning", path)]
        if file is not None and (last := Lines(connection).count(file.id)):
            number = f"{place.file}:{last}" if place.file > 1 else str(last)
            links.append((f"Line {last:,}, the last", f"{path}?at={number}"))
        first, _, hint = str(error).rpartition(". ")  # the hint is one for the command line
        raise PageError(404, f"{first}." if first else hint, links) from error


def _at_byte(connection: sqlite3.Connection, line: refs.Line, head: str) -> refs.Line:
    if not refs.messages_of(connection, line):
        raise NotFoundError(f"No message begins at byte {line.byte_offset:,} of {head}.")
    return line


async def read_from(
    datasette: Datasette,
    request: Request,
    tables: Sequence[str],
    function: Callable[[sqlite3.Connection, KeyMatch, PathOf], T],
    **limits: int,
) -> T:
    """Return what `function` reads from the conversation that the address names."""
    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    path = Paths(datasette, database).session

    def read(connection: sqlite3.Connection) -> T:
        key = pages.find(connection, prefix, path)
        return function(pages.of_conversation(connection, key.session_key), key, path)

    return await pages.read(datasette, request, database, tables, read, **limits)
