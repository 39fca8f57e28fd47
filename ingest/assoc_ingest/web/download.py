"""A conversation as a file to download: what `assoc-ingest export` writes, as HTML or Markdown.

The whole file is written to a temporary one, in one transaction, before its first byte is sent: a
download that has begun is complete, and however slowly a browser reads, no thread of Datasette and
no state of the database waits for it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

from ..ask import export_markdown
from ..ask.export import Choice, ExportedConversation
from . import conversation, export, keys, pages
from .pages import PageError

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import AsgiStream, Request

TABLES = (*conversation.TABLES, "archive", "tool_result_files")
_FORMATS = {
    "html": (export.pieces, "text/html; charset=utf-8"),
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

    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    form, redacts = request.args.get("format") or "html", request.args.get("redact") != "0"
    if form not in _FORMATS:
        raise PageError(400, f"Unknown format {form!r}. It can be html or md.")
    if not _one.acquire(blocking=False):
        raise PageError(503, "Another export is being written. Try again in a moment.")
    file = SpooledTemporaryFile(  # noqa: SIM115 - closed when it is sent
        _IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline=""
    )
    try:
        key = await pages.read(
            datasette, request, database, TABLES,
            lambda connection: _write(
                connection, prefix, form, Choice(redacts=redacts), file,
                lambda key: conversation.session_path(datasette, database, key),
            ),
            queries=_QUERIES,
        )  # fmt: skip
    except BaseException:
        file.close()
        raise
    finally:
        _one.release()
    name = _not_of_name.sub("-", key)[:_LONGEST_NAME].strip("-") or "conversation"
    headers = {**pages.HEADERS, "content-disposition": f'attachment; filename="{name}.{form}"'}
    return AsgiStream(_sender(file), headers=headers, content_type=_FORMATS[form][1])


def _write(
    connection: sqlite3.Connection,
    prefix: str,
    form: str,
    choice: Choice,
    file: IO[str],
    path: Callable[[str], str],
) -> str:
    """Write a conversation to a file; return its key."""
    key = keys.find(connection, prefix, path).session_key
    for piece in _FORMATS[form][0](connection, ExportedConversation(connection, key, choice)):
        file.write(piece)
    return key


def _sender(file: IO[str]) -> Callable[[Any], Any]:
    async def send(writer: Any) -> None:
        with file:
            file.seek(0)
            while chunk := file.read(_CHUNK):
                await writer.write(chunk)

    return send
