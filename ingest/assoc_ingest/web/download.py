"""A conversation as a file to download: what `assoc-ingest export` writes, as HTML or Markdown.

The whole file is written to a temporary one, in one transaction, before its first byte is sent: a
download that has begun is complete, and a slow browser holds up no thread of Datasette and no
snapshot of the database.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from functools import partial
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

from ..ask import export as export_markdown
from ..ask.export import Choice, ExportedConversation
from ..ask.refs import KeyMatch
from . import entries, pages
from .address import TABLES, PathOf, read_from
from .pages import PageError

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import AsgiStream, Request

_TABLES = (*TABLES, "archive", "tool_result_files")
_FORMATS = {
    "html": (entries.pieces, "text/html; charset=utf-8"),
    "md": (export_markdown.pieces, "text/markdown; charset=utf-8"),
}
_QUERIES = 120  # times as long as one query an export may take
_IN_MEMORY = 4_000_000  # bytes; a larger file is on disk until it is sent
_CHUNK = 256 * 1024  # letters
_not_of_name = re.compile(r"[^0-9A-Za-z_-]+")
_LONGEST_NAME = 80
_one = Lock()  # an export keeps one of the few threads of Datasette busy


async def view(datasette: Datasette, request: Request) -> AsgiStream:
    """Return a conversation as a file, with its credentials masked unless `redact=0` is asked."""
    from datasette.utils.asgi import AsgiStream

    form, redacts = request.args.get("format") or "html", request.args.get("redact") != "0"
    if form not in _FORMATS:
        raise PageError(400, f"Unknown format {form!r}. It can be html or md.")
    if not _one.acquire(blocking=False):
        raise PageError(503, "Another export is being written. Try again in a moment.")
    file = SpooledTemporaryFile(  # noqa: SIM115 - closed when it is sent
        _IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline=""
    )
    try:
        write = partial(_write, form, Choice(redacts=redacts), file)
        key = await read_from(datasette, request, _TABLES, write, queries=_QUERIES)
    except BaseException:
        file.close()
        raise
    finally:
        _one.release()
    name = _not_of_name.sub("-", key)[:_LONGEST_NAME].strip("-") or "conversation"
    headers = {**pages.HEADERS, "content-disposition": f'attachment; filename="{name}.{form}"'}
    return AsgiStream(_sender(file), headers=headers, content_type=_FORMATS[form][1])


def _write(
    form: str,
    choice: Choice,
    file: IO[str],
    connection: sqlite3.Connection,
    key: KeyMatch,
    path: PathOf,
) -> str:
    """Write a conversation to a file; return its key."""
    conversation = ExportedConversation(connection, key.session_key, choice)
    for piece in _FORMATS[form][0](connection, conversation):
        file.write(piece)
    return key.session_key


def _sender(file: IO[str]) -> Callable[[Any], Any]:
    async def send(writer: Any) -> None:
        with file:
            file.seek(0)
            while chunk := file.read(_CHUNK):
                await writer.write(chunk)

    return send
