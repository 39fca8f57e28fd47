"""How many lines a conversation has gained since a page was read: an open page polls this."""

from __future__ import annotations

import json
import sqlite3
from functools import partial
from typing import TYPE_CHECKING

from .. import sql
from ..ask import refs
from ..ask.refs import KeyMatch
from . import pages
from .address import AddressedPlace, PathOf, addressed, line_at, read_from
from .pages import PageError
from .urls import BlockPlace, Permalinks

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

_TABLES = ("messages", "sessions", "subagents", "files")
MOST_NEW = 1_000
"""Maximum number of new blocks that are counted."""


async def view(datasette: Datasette, request: Request) -> Response:
    """Return as JSON how many lines follow a place, and the address of the first of them."""
    from datasette.utils.asgi import Response

    place = addressed(request.args.get("after"))
    if place is None:
        raise PageError(400, "Add a line to the address, such as ?after=12")
    news = await read_from(datasette, request, _TABLES, partial(_read, place))
    headers = {**pages.HEADERS, "cache-control": "no-store"}
    return Response(json.dumps(news), headers=headers, content_type="application/json")


def _read(
    place: AddressedPlace, connection: sqlite3.Connection, key: KeyMatch, path: PathOf
) -> dict[str, object]:
    line = line_at(connection, key, place, path(key.text))
    last = refs.messages_of(connection, line)[-1]
    behind = sql.ask(
        connection,
        "pages/message_after",
        file=line.file.id,
        subagent=last["subagent_id"],
        after_offset=last["byte_offset"],
        after_block=last["block"],
        limit=MOST_NEW,
    ).fetchall()
    address = ""
    if behind:
        first = BlockPlace(line.file.id, behind[0]["byte_offset"], 0)
        address = Permalinks(connection, path).by_byte(first)
    lines = len({row["byte_offset"] for row in behind})
    return {"lines": lines, "is_more": len(behind) == MOST_NEW, "address": address}
