"""How many lines a conversation got since a page was read: what an open page asks now and then."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .. import sql
from ..ask import refs
from . import keys, pages, permalinks
from .conversation import session_path
from .pages import PageError

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = ("messages", "sessions", "subagents", "files")
MOST = 1_000
"""Blocks behind the page that are counted: then there are that many or more."""


async def view(datasette: Datasette, request: Request) -> Response:
    """Return, as JSON, how many lines came behind a place, and what opens the first of them."""
    from datasette.utils.asgi import Response

    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    place = permalinks.asked(request.args.get("after"))
    if place is None:
        raise PageError(400, "Say behind which line. An example: ?after=12")
    path = partial(session_path, datasette, database)
    news = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, prefix, place, path),
    )  # fmt: skip
    headers = {**pages.HEADERS, "cache-control": "no-store"}
    return Response(json.dumps(news), headers=headers, content_type="application/json")


def _read(
    connection: sqlite3.Connection,
    prefix: str,
    place: permalinks.Asked,
    path: Callable[[str], str],
) -> dict[str, object]:
    key = keys.find(connection, prefix, path)
    line = permalinks.find(connection, key, place, path(key.text))
    last = refs.messages_of(connection, line)[-1]
    behind = sql.ask(
        connection,
        "pages/message_after",
        file=line.file.id,
        subagent=last["subagent_id"],
        after_offset=last["byte_offset"],
        after_block=last["block"],
        limit=MOST,
    ).fetchall()
    address = ""
    if behind:
        first = permalinks.Place(line.file.id, behind[0]["byte_offset"], 0)
        address = permalinks.Permalinks(connection, path).by_byte(first)
    lines = len({row["byte_offset"] for row in behind})
    return {"lines": lines, "is_more": len(behind) == MOST, "address": address}
