"""The page of one conversation, or of one subagent of it, 200 messages at a time.

Where a page begins is named by the place of a message (`permalinks`): `?after=12` begins behind it,
`?at=12` a few before it (what a search hit opens), `?_end=1` shows the last. Order is the position
in the file. A message inside a subagent opens the page of that subagent, and so does the key of the
subagent in the path. Addresses with the id of a row (`?_at=345`) lead to those with a place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from .. import humanize
from ..ask.page import facts_of
from . import finding, keys, pages, permalinks
from .conversation_reader import Reader
from .permalinks import Permalinks
from .shown import Asked, Shown

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (
    "messages", "sessions", "subagents", "tool_calls", "files", "projects", "responses", "prices",
    "links", "teams", "tasks", "todos", "plans",
)  # fmt: skip
_SCRIPTS = ("session.js", "news.js")


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page of a conversation; a 300 with all of them where a prefix means several."""
    from datasette.utils import tilde_encode
    from datasette.utils.asgi import Response

    database = pages.named(request, "database")
    prefix = pages.named(request, "session")
    row = request.args.get("_at") or request.args.get("_after")
    query = (request.args.get("find") or "").strip()
    asked = Asked(
        agent=request.args.get("_agent"),
        at=permalinks.asked(request.args.get("at")),
        after=permalinks.asked(request.args.get("after")),
        row=permalinks.row_id(row),
        is_end=bool(request.args.get("_end")),
        said=bool(request.args.get("said")),
        find=query[: finding.LONGEST],
        goes=bool(request.args.get("go")),
    )
    path = partial(session_path, datasette, database)
    shown = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, prefix, asked, path),
    )  # fmt: skip
    if isinstance(shown, permalinks.Link):
        return Response.redirect(shown.address if request.args.get("_at") else shown.behind)
    if isinstance(shown, str):
        return Response.redirect(shown)
    if query != asked.find:
        note = f"Only the first {finding.LONGEST} characters of the query were used."
        shown.notes.append(note)
    key = str(shown.session["session_key"])
    context = {
        "database": database,
        "shown": shown,
        "session": shown.session,
        "title": shown.session["title"] or "(untitled)",
        "here": session_path(datasette, database, key),
        "table": lambda name: datasette.urls.table(database, name),
        "agent_facts": pages.cut(facts_of(shown.subagent)) if shown.subagent else "",
        "resume": _whole(shown.resume),
        "tilde": tilde_encode,
        "display": humanize,
        "kept": asked.keep,
        **_modes(request),
        "asked": asked,
    }
    return await pages.page(datasette, request, "session", context, scripts=_SCRIPTS)


def session_path(datasette: Datasette, database: str, key: str) -> str:
    """Return the address of the page of a conversation."""
    from datasette.utils import tilde_encode

    return f"{datasette.urls.database(database)}/-/session/{tilde_encode(key)}"


def _modes(request: Request) -> dict[str, str]:
    """Return the addresses of this page as it can be, too."""
    given = parse_qsl(request.query_string)

    def without(*names: str, **more: str) -> str:
        kept = [(name, value) for name, value in given if name not in names]
        return f"{request.path}?{urlencode([*kept, *more.items()])}"

    return {
        "everything": without("said"),
        "said": without("said", said="1"),
        "unmarked": without("find", "go"),
    }


def _whole(command: str | None) -> str | None:
    """Return a command if the page has room for all of it: one that is cut is another one."""
    return command if command is None or pages.cut(command) == command else None


def _read(
    connection: sqlite3.Connection, prefix: str, asked: Asked, path: Callable[[str], str]
) -> Shown | permalinks.Link | str:
    """Return what is on the page, or the address of another one that is asked for.

    That is the page of a message whose row is named, or of the first match of what is looked for.
    """
    key = keys.find(connection, prefix, path)
    if asked.row is None:
        reader = Reader(connection, key, asked, path)
        return (asked.goes and reader.match()) or reader.shown()
    if link := Permalinks(connection, path).of_row(asked.row, key):
        return link
    reader = Reader(connection, key, asked, path)
    reader.notes.append(
        f"There is no message {asked.row} in this conversation, which is shown from its beginning. "
        "The address has the number of a row, and such numbers change. Addresses with a line, "
        "behind the time of each message, do not."
    )
    return reader.shown()
