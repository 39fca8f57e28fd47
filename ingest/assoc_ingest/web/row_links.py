"""Where a row leads to: the message it was read from, its conversation, its project, its team."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .. import sql
from ..terminal import one_line
from . import pages
from .conversation import session_path
from .pages import PageError
from .permalinks import Permalinks, Place

TABLES = ("sessions", "subagents", "files", "messages", "tool_calls")
_LONGEST_TITLE = 100


class Way(NamedTuple):
    """A place to go from a row."""

    text: str
    address: str


async def of(
    datasette: Any, request: Any, database: str, table: str, row: Mapping[str, Any]
) -> list[Way]:
    """Return the places that a row of a table leads to, the nearest first.

    There are none for those who may not see what is there.
    """
    from datasette import Forbidden

    base = datasette.urls.database(database)
    reader = _Reader(table, row, base, lambda key: session_path(datasette, database, key))
    try:
        return await pages.read(
            datasette, request, database, TABLES, lambda connection: list(reader.ways(connection))
        )
    except (Forbidden, PageError):
        return []


class _Reader(NamedTuple):
    table: str
    row: Mapping[str, Any]
    base: str
    path: Callable[[str], str]

    def ways(self, connection: sqlite3.Connection) -> Iterator[Way]:
        message = self._message(connection)
        if message:
            yield Way("Open the message in its conversation", message)
        owner = sql.ask(
            connection, "pages/row_owner",
            session=self._id("session"), subagent=self._id("subagent"),
        ).fetchone()  # fmt: skip
        if owner["agent_key"]:
            yield Way("Open the subagent", self.path(owner["agent_key"]))
        if owner["session_key"]:
            title = one_line(owner["title"] or "(untitled)")[:_LONGEST_TITLE]
            yield Way(f"Open the conversation: {title}", self.path(owner["session_key"]))
        for what in ("project", "team"):
            if (number := self._id(what)) is not None:
                yield Way(f"Open the {what}", f"{self.base}/-/{what}/{number}")

    def _id(self, what: str) -> int | None:
        """Return the id of the session, project or such that the row is, or refers to."""
        value = self.row.get("id" if self.table == f"{what}s" else f"{what}_id")
        return value if isinstance(value, int) else None

    def _message(self, connection: sqlite3.Connection) -> str | None:
        file, offset = self.row.get("file_id"), self.row.get("byte_offset")
        if not isinstance(file, int) or not isinstance(offset, int):
            return None
        block = self.row.get("block")
        place = Place(file, offset, block if isinstance(block, int) else 0)
        link = Permalinks(connection, self.path).of([place]).get(place)
        # Another line of the file has no message of its own: the page shows the nearest.
        return link.address if link is not None else None
