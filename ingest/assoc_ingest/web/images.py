"""Images of a conversation, from the archive: one at a time, when a browser asks for it.

The rows have a placeholder for each. The page asks for the image, and a browser that gets none
shows the placeholder: the archive may have lost the line, or it was forgotten; what is in it may be
too large, or no image at all.
"""

from __future__ import annotations

import sqlite3
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from .. import sql
from ..ask import refs
from ..ask.originals import Originals
from . import keys, pages, permalinks
from .conversation import session_path
from .pages import PageError
from .pictures import LARGEST

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = ("messages", "sessions", "subagents", "files", "archive")
_LONGEST_LINE = 64_000_000  # bytes: all of it is parsed
_HEADERS = {
    # Whatever a browser takes it for: it is of no origin, and nothing in it runs or loads.
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the image that a message has, or tell why there is none."""
    from datasette.utils.asgi import Response

    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    place = permalinks.asked(request.args.get("at"))
    number = pages.page_number(request.args.get("n"))
    if place is None:
        raise PageError(400, "Say of which line. An example: ?at=12")
    path = partial(session_path, datasette, database)
    media_type, data = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, prefix, place, number, path),
    )  # fmt: skip
    return Response(data, headers=_HEADERS, content_type=media_type)


def _read(
    connection: sqlite3.Connection,
    prefix: str,
    place: permalinks.Asked,
    number: int,
    path: Callable[[str], str],
) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image; raise PageError if there is none."""
    key = keys.find(connection, prefix, path)
    line = permalinks.find(connection, key, place, path(key.text))
    blocks = {row["block"]: row["id"] for row in refs.messages_of(connection, line)}
    message = blocks.get(place.block or 0)
    if message is None or line.notes:
        raise PageError(404, "There is no such message.")
    row = sql.ask(connection, "pages/message_text", id=message).fetchone()
    if row["byte_length"] > _LONGEST_LINE:
        raise PageError(404, "The line that has this image is too long to be read here.")
    found = Originals(connection).images(
        row["file_id"], row["byte_offset"], row["byte_length"], row["text"] or ""
    )
    image = next(islice(found, number - 1, None), None)
    if image is None:
        raise PageError(404, "The archive does not have this image.")
    if len(image.data) > LARGEST * 4 / 3 + 4:
        raise PageError(404, "This image is too large to be shown here.")
    data = b64decode(image.data)
    is_other = image.media_type == "image/webp" and data[8:12] != b"WEBP"
    if not data or is_other:
        raise PageError(404, "This is no image that a browser shows.")
    return image.media_type, data
