"""What all pages share: finding the database, checking permissions, showing errors.

A page is made in three steps: the event loop asks Datasette who may look, a thread of Datasette
reads everything in one transaction, so that a sync between two queries cannot make a page
contradict itself, and a template is filled. What a user can get wrong ends as a page that says so.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote_plus

from .. import sql
from ..errors import AssocIngestError, NotFoundError, UsageError
from ..failures import Failure, kind_of
from ..store.transaction import snapshot
from ..terminal import safe
from . import compat
from .detect import is_ours

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

T = TypeVar("T")
Row = dict[str, Any]

_POLICY = "content-security-policy"
HEADERS = {
    # Our pages need no script at all: whatever slipped through could not run.
    _POLICY: (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
MOST_LINKS = 100
"""Places to go that a page lists; it says how many more there are."""

_QUERIES = 5  # times as long as one query a whole page may take
_LONG = 1_000  # letters of a title, a name or a path, whoever made them so long
_LONGEST_NUMBER = 7  # digits of a page of a list
_LARGEST = 20_000_000  # letters of a page: a browser would stop at more


class PageError(Exception):
    """A page cannot be shown: the status, a sentence, places to go instead, what to search for."""

    def __init__(
        self,
        status: int,
        message: str,
        links: Sequence[tuple[str, str]] = (),
        wanted: str | None = None,
    ) -> None:
        more = len(links) - MOST_LINKS
        super().__init__(cut(message) + (f" The first {MOST_LINKS}:" if more > 0 else ""))
        self.status = status
        self.links = [(cut(text), address) for text, address in links[:MOST_LINKS]]
        self.wanted = None if wanted is None else cut(wanted)


def named(request: Request, part: str) -> str:
    """Return what a part of the path names: written as Datasette writes it, or percent-encoded."""
    return unquoted(request.url_vars[part])


def unquoted(text: str) -> str:
    """Return a part of a path without its quotation, Datasette's own or that of the web."""
    return unquote_plus(text.replace("~", "%"))


async def databases(datasette: Datasette, request: Request, tables: Sequence[str]) -> list[str]:
    """Return the names of the assoc-ingest databases that may be seen."""
    return [
        name
        for name in datasette.databases
        if await is_ours(datasette, name)
        and await compat.may_view(datasette, request.actor, name, tables)
    ]


async def read(
    datasette: Datasette,
    request: Request,
    database: str,
    tables: Sequence[str],
    function: Callable[[sqlite3.Connection], T],
    queries: int = _QUERIES,
) -> T:
    """Return what `function` reads from an assoc-ingest database.

    It may take as long as so many queries may.

    Raises PageError where there is none, where it says NotFoundError or UsageError, and where it
    takes too long; Forbidden where the actor may not see one of `tables`.
    """
    from datasette import Forbidden

    if database not in datasette.databases or not await is_ours(datasette, database):
        raise PageError(404, f"There is no assoc-ingest database named {database!r}.")
    if not await compat.may_view(datasette, request.actor, database, tables):
        raise Forbidden(f"You have no permission to see all the data of {database} on this page.")
    limit = queries * int(datasette.setting("sql_time_limit_ms"))
    try:
        found: T = await datasette.get_database(database).execute_fn(
            lambda connection: _in_one_transaction(connection, limit, function)
        )
    except NotFoundError as error:
        raise PageError(404, _first_sentence(error)) from error
    except UsageError as error:
        raise PageError(400, _first_sentence(error)) from error
    except sqlite3.OperationalError as error:
        if kind_of(error) is not Failure.INTERRUPTED:
            raise
        message = "This took too long. Narrow the request or raise sql_time_limit_ms."
        raise PageError(503, message) from error
    return found


async def page(
    datasette: Datasette,
    request: Request,
    template: str,
    context: Mapping[str, object],
    status: int = 200,
    scripts: Sequence[str] = (),
) -> Response:
    """Return a template as a response, with headers that let nothing run or load.

    Static files of ours that are `scripts` may run, and ask this server: they have a number that
    nobody can guess, so nothing else does.
    """
    from datasette.utils.asgi import Response

    headers, nonce = HEADERS, secrets.token_urlsafe(16)
    if scripts:
        policy = f"{HEADERS[_POLICY]}; script-src 'nonce-{nonce}'; connect-src 'self'"
        headers = {**HEADERS, _POLICY: policy}
    body = await datasette.render_template(
        [f"assoc_{template}.html"],
        {"urls": datasette.urls, "scripts": scripts, "nonce": nonce, **context},
        request=request,
    )
    if len(body) > _LARGEST and status == 200:  # a page that tells an error is never too large
        message = f"This page is too large ({len(body):,} characters). Open the rows in Tables."
        raise PageError(503, message)
    # What a template shows as it is (titles, names, paths) may hold letters that reverse a line.
    return Response.html(safe(body), status=status, headers=headers)


async def error_page(
    datasette: Datasette, request: Request, error: PageError, database: str | None = None
) -> Response:
    """Return the page that shows an error; a search in it is for the database, or the address's."""
    context: dict[str, object] = {
        "title": _TITLES.get(error.status, "Error"),
        "message": str(error),
    }
    context |= {"links": error.links, "wanted": error.wanted}
    if error.wanted is not None:
        context["database"] = database or named(request, "database")
    return await page(datasette, request, "error", context, error.status)


def ask(
    connection: sqlite3.Connection, name: str, /, *whole: str, **parameters: object
) -> list[Row]:
    """Return the rows of a query as a page shows them: texts cut, but those of columns `whole`."""
    return [brief(row, *whole) for row in sql.ask(connection, name, **parameters)]


def brief(row: sqlite3.Row | Mapping[str, object], *whole: str) -> Row:
    """Return a row with its texts cut where they are too long to be a name, but for some."""
    return {
        key: cut(value) if isinstance(value, str) and key not in whole else value
        for key, value in dict(row).items()
    }


def cut(text: str) -> str:
    """Return a title, a name or a path as a page shows it."""
    return text if len(text) <= _LONG else text[:_LONG] + "…"


def page_number(text: str | None) -> int:
    """Return the number of a page of a list, 1 without one. Raises PageError if it is none."""
    # Of more digits than any page has, int() would raise at some length.
    is_number = text and text.isascii() and text.isdigit() and len(text) < _LONGEST_NUMBER
    number = int(text) if text and is_number else 0
    if text and not number:
        raise PageError(400, f"{cut(text)!r} is not a page number.")
    return number or 1


_TITLES = {
    300: "Which one?",
    400: "Invalid request",
    404: "Not found",
    503: "Took too long",
}


def _in_one_transaction(
    connection: sqlite3.Connection, limit: int, function: Callable[[sqlite3.Connection], T]
) -> T:
    from datasette.utils import sqlite_timelimit

    with snapshot(connection), sqlite_timelimit(connection, limit):
        return function(connection)


def _first_sentence(error: AssocIngestError) -> str:
    """Return the message without the command that it recommends, which is not for a page."""
    return str(error).split(" To see them:")[0]
