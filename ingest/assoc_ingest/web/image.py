"""Images of a conversation, from the archive: one at a time, when a browser asks for it.

The rows have a placeholder for each. A browser that gets no image shows the placeholder: the
archive may have lost the line or been told to forget it, or the data may be too large or not an
image.
"""

from __future__ import annotations

import sqlite3
from base64 import b64decode
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from .. import sql
from ..ask import refs
from ..ask.conversation import Originals
from ..ask.refs import KeyMatch
from . import pages
from .address import AddressedPlace, PathOf, addressed, line_at, read_from
from .html import LARGEST
from .pages import PageError

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

_TABLES = ("messages", "sessions", "subagents", "files", "archive")
_LONGEST_LINE = 64_000_000  # bytes: all of it is parsed
_HEADERS = {
    # If a browser takes it for anything else, it has no origin, and nothing in it runs or loads.
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


async def view(datasette: Datasette, request: Request) -> Response:
    from datasette.utils.asgi import Response

    place = addressed(request.args.get("at"))
    number = pages.page_number(request.args.get("n"))
    if place is None:
        raise PageError(400, "Add a line to the address, such as ?at=12")
    read = partial(_read, place, number)
    media_type, data = await read_from(datasette, request, _TABLES, read)
    return Response(data, headers=_HEADERS, content_type=media_type)


def _read(
    place: AddressedPlace,
    number: int,
    connection: sqlite3.Connection,
    key: KeyMatch,
    path: PathOf,
) -> tuple[str, bytes]:
    """Return the media type and the bytes of an image; raise PageError if there is none."""
    line = line_at(connection, key, place, path(key.text))
    blocks = {row["block"]: row["id"] for row in refs.messages_of(connection, line)}
    message = blocks.get(place.block or 0)
    if message is None or line.notes:
        raise PageError(404, "This message does not exist.")
    row = sql.ask(connection, "pages/message_text", id=message).fetchone()
    if row["byte_length"] > _LONGEST_LINE:
        raise PageError(404, "The line with this image is too long to read here.")
    images = Originals(connection).images(
        row["file_id"], row["byte_offset"], row["byte_length"], row["text"] or ""
    )
    image = next(islice(images, number - 1, None), None)
    if image is None:
        raise PageError(404, "The archive does not have this image.")
    if len(image.data) > LARGEST * 4 / 3 + 4:
        raise PageError(404, "This image is too large to show here.")
    data = b64decode(image.data)
    is_other = image.media_type == "image/webp" and data[8:12] != b"WEBP"
    if not data or is_other:
        raise PageError(404, "Browsers cannot show this image.")
    return image.media_type, data
