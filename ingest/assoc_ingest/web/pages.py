"""What all pages share: finding the database, permissions, versions of Datasette, keys in paths,
budgets.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote_plus, urlencode
from weakref import WeakKeyDictionary

from .. import sql, terminal
from ..ask import refs
from ..ask.refs import KeyMatch
from ..ask.times import since, until
from ..errors import AssocIngestError, Failure, FleetError, NotFoundError, UsageError, kind_of
from ..sql import Query
from ..store.database import APPLICATION_ID, snapshot
from ..terminal import safe
from . import serve
from .urls import PREFIX, Paths

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


# ------------------------------------------------------------------------------------------------
# The queries that Datasette offers.
#
# These are the reports and lists that can be run with an empty form: every parameter is optional,
# which is recognised by `coalesce(:name, '')` or `nullif(:name, '')`.
#
# `tool_use` is called `ask-tool-use` there. Its times may have any form that `since` and
# `until` accept elsewhere (`with_times`). Some queries have the name of a view, and each line of
# Datasette hides one of the two; no table has a dash in its name.


_IDS = "(select value from json_each(:project))"
_NAMED = (
    "(select o.id from projects n"
    " join projects o on coalesce(o.same_as, o.id) = coalesce(n.same_as, n.id)"
    " where :project collate nocase in (n.id || '', n.path, n.name, n.key)"
    " union select o.id from projects n"
    " join projects m on coalesce(m.same_as, m.id) = coalesce(n.same_as, n.id)"
    " join projects w on w.parent_id = m.id"
    " join projects o on coalesce(o.same_as, o.id) = coalesce(w.same_as, w.id)"
    " where :project collate nocase in (n.name, n.key))"
)
"""A command has already found the ids of a project; into a form, a person writes what it is. The
name of a repository includes its worktrees."""

_optional = re.compile(r"\b(?:coalesce|nullif)\(:(\w+), '")


@cache
def for_people() -> Mapping[str, Query]:
    """Return the queries by their names in Datasette."""
    return {
        PREFIX + name.replace("_", "-"): query._replace(sql=query.sql.replace(_IDS, _NAMED))
        for name, query in sql.named_queries().items()
        if set(query.parameters) <= set(_optional.findall(query.sql))
    }


def as_dictionaries() -> dict[str, dict[str, Any]]:
    """Return the queries as the hook of 0.65 wants them: new objects, since it changes them."""
    return {
        name: {
            "sql": query.sql,
            "title": query.title,
            "description": query.description,
            "params": list(query.parameters),
            "hide_sql": True,
        }
        for name, query in for_people().items()
    }


def with_times(query: bytes) -> bytes:
    """Return the query string of the address of a report, with times as they are stored.

    SQL compares them as text. Raises UsageError for one that is none.
    """
    parameters = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    read = {"since": since, "until": until}
    return urlencode(
        [(name, read[name](text) if name in read and text else text) for name, text in parameters]
    ).encode()


def is_report(path: str) -> bool:
    """Is this the path of one of these queries, in any format?"""
    return path.rpartition("/")[2].partition(".")[0] in for_people()


async def store(datasette: Any, database: str) -> None:
    """Give the queries to Datasette 1.0, which keeps them until it ends."""
    for name, query in for_people().items():
        await datasette.add_query(
            database,
            name,
            query.sql,
            title=query.title,
            description=query.description,
            parameters=list(query.parameters),
            hide_sql=True,
            is_trusted=True,  # they may be asked by those who may not write SQL
            source="assoc-ingest",
        )


# ------------------------------------------------------------------------------------------------
# Recognises assoc-ingest databases by their content, never by their name.


_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


async def is_ours(datasette: Any, database: str) -> bool:
    """Is this a database of assoc-ingest? It is asked once, though every cell wants to know."""
    held = datasette.databases.get(database)
    if held is None:
        return False
    if held not in _known:
        _known[held] = await _application_id(held) == APPLICATION_ID
    return _known[held]


async def our_databases(datasette: Any) -> list[str]:
    return [name for name in datasette.databases if await is_ours(datasette, name)]


async def is_for_us(datasette: Any) -> bool:
    """Is this server for assoc-ingest: is it `serve`, or has it only our databases?"""
    ours = await our_databases(datasette)
    others = set(datasette.databases) - {"_internal"} - set(ours)
    return bool(ours) and (serve.is_switched_on() or not others)


async def _application_id(database: Any) -> int:
    (row,) = (await database.execute("pragma application_id")).rows
    return int(row[0])


# ------------------------------------------------------------------------------------------------
# The differences between Datasette 0.65 and 1.0, in one place.


async def may_view(datasette: Any, actor: Any, database: str, tables: Iterable[str] = ()) -> bool:
    """May `actor` see the database, and each of these tables or views of it?"""
    asked: list[tuple[str, str | None, str | None]] = [("view-database", database, None)]
    asked += [("view-table", database, table) for table in tables]
    if not hasattr(datasette, "allowed"):  # in 0.65 no permission implies another
        asked.insert(0, ("view-instance", None, None))
    for action, parent, child in asked:
        if not await _may(datasette, actor, action, parent, child):
            return False
    return True


async def _may(
    datasette: Any, actor: Any, action: str, database: str | None, table: str | None
) -> bool:
    if not hasattr(datasette, "allowed"):
        resource = (database, table) if table else database
        answer = await datasette.permission_allowed(actor, action, resource, default=True)
        return bool(answer)
    from datasette.resources import DatabaseResource, TableResource

    place = TableResource(database, table) if table else DatabaseResource(database)
    return bool(await datasette.allowed(action=action, resource=place, actor=actor))


def remember_rules(datasette: Any) -> None:
    """Let 0.65 look up who may see a table once: the page of all tables asks hundreds of times.

    Each time it copies and merges all metadata. Where a plugin makes metadata, these may change.
    """
    from datasette.plugins import pm

    name = "_table_permission_allows"
    if hasattr(datasette, name) and not pm.hook.get_metadata.get_hookimpls():
        setattr(datasette, name, cache(getattr(datasette, name)))


def stores_queries(datasette: Any) -> bool:
    """Are queries given to Datasette once, when it starts? 0.65 asks a hook for them each time."""
    return hasattr(datasette, "add_query")


def jump_item(database: str, sql: str, parameters: dict[str, str]) -> Any:
    """Return what 1.0 takes for its menu of places to jump to; 0.65 has none and never asks."""
    from datasette.jump import JumpSQL

    return JumpSQL(sql=sql, params=parameters, database=database)


async def index(datasette: Any, request: Any) -> Any:
    """Return Datasette's own first page. 0.65 has it at `/` only, 1.0 at `/-/`, too."""
    from datasette.views.index import IndexView

    request.scope = {**request.scope, "url_route": {"kwargs": {"format": None}}}
    return await IndexView(datasette).dispatch_request(request)


async def descriptions(datasette: Any, database: str) -> dict[str, str]:
    """Return the description of each table and view in the metadata of a database."""
    if hasattr(datasette, "get_resource_metadata"):
        texts = {
            table: (await datasette.get_resource_metadata(database, table)).get("description")
            for table in await _tables(datasette, database)
        }
    else:
        entries = (datasette.metadata("tables", database=database) or {}).items()
        texts = {table: (entry or {}).get("description") for table, entry in entries}
    return {table: str(text) for table, text in texts.items() if text}


async def _tables(datasette: Any, database: str) -> list[str]:
    held = datasette.get_database(database)
    return [*await held.table_names(), *await held.view_names()]


# ------------------------------------------------------------------------------------------------
# What all pages share: finding the database, checking permissions, showing errors.
#
# A page is made in three steps: the event loop asks Datasette who may look, a thread of Datasette
# reads everything in one transaction, so that a sync between two queries cannot make a page
# contradict itself, and a template is filled. A user's mistake ends in a page that explains it.


T = TypeVar("T")
Row = dict[str, Any]

_POLICY = "content-security-policy"
HEADERS = {
    # Our pages need no script at all: any that slipped through could not run.
    _POLICY: (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
MOST_LINKS = 100
"""Maximum number of links that a page lists; it says how many more there are."""

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
    """Return a decoded part of the path: Datasette's own encoding, or percent-encoding."""
    return unquoted(request.url_vars[part])


def unquoted(text: str) -> str:
    return unquote_plus(text.replace("~", "%"))


async def databases(datasette: Datasette, request: Request, tables: Sequence[str]) -> list[str]:
    """Return the names of the assoc-ingest databases that may be seen."""
    return [
        name
        for name in datasette.databases
        if await is_ours(datasette, name) and await may_view(datasette, request.actor, name, tables)
    ]


async def database_of(
    datasette: Datasette, request: Request, tables: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the database `?db=`, else the first that may be seen, and the names of all of them."""
    names = await databases(datasette, request, tables)
    if not names:
        raise PageError(
            404, "No assoc-ingest database is open here, or you have no permission to see it."
        )
    return request.args.get("db") or names[0], names


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
    if not await may_view(datasette, request.actor, database, tables):
        raise Forbidden(f"You have no permission to see all the data of {database} on this page.")
    limit = queries * int(datasette.setting("sql_time_limit_ms"))
    try:
        if (server := serve.remote()) is not None:
            return await _from_server(server.start(function, limit / 1000), server, request)
        result: T = await datasette.get_database(database).execute_fn(
            lambda connection: _in_one_transaction(connection, limit, function)
        )
    except FleetError as error:
        raise PageError(503, str(error)) from error
    except NotFoundError as error:
        raise PageError(404, _first_sentence(error)) from error
    except UsageError as error:
        raise PageError(400, _first_sentence(error)) from error
    except sqlite3.OperationalError as error:
        if kind_of(error) is not Failure.INTERRUPTED:
            raise
        message = "This took too long. Narrow the request or raise sql_time_limit_ms."
        raise PageError(503, message) from error
    return result


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
        {"scripts": scripts, "nonce": nonce, **_for_all(datasette, context), **context},
        request=request,
    )
    if len(body) > _LARGEST and status == 200:  # a page that tells an error is never too large
        message = f"This page is too large ({len(body):,} characters). Open the rows in Tables."
        raise PageError(503, message)
    # Titles, names and paths may contain characters that reverse a line.
    return Response.html(safe(body), status=status, headers=headers)


def _for_all(datasette: Datasette, context: Mapping[str, object]) -> dict[str, object]:
    database = context.get("database")
    paths = Paths(datasette, str(database)) if database else None
    return {"urls": datasette.urls, "paths": paths, "display": terminal}


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
    """Return a row with its texts cut to the length of a name, except those of columns `whole`."""
    return {
        key: cut(value) if isinstance(value, str) and key not in whole else value
        for key, value in dict(row).items()
    }


def cut(text: str) -> str:
    return text if len(text) <= _LONG else text[:_LONG] + "…"


def page_number(text: str | None) -> int:
    """Parse the number of a page, 1 without one. Raises PageError if it is not a number."""
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
    503: "Not available now",
}


def _in_one_transaction(
    connection: sqlite3.Connection, limit: int, function: Callable[[sqlite3.Connection], T]
) -> T:
    from datasette.utils import sqlite_timelimit

    with snapshot(connection), sqlite_timelimit(connection, limit):
        return function(connection)


async def _from_server(reading: serve.Reading[T], server: serve.Remote, request: Request) -> T:
    """Return what is read from a server; it ends when the reader of the page goes away."""
    call = asyncio.get_running_loop().run_in_executor(server.threads, reading.run)
    gone = asyncio.ensure_future(_is_gone(request))
    waiting: set[asyncio.Future[Any]] = {call, gone}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            reading.give_up()
        return await call
    finally:
        gone.cancel()


async def _is_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def of_conversation(connection: sqlite3.Connection, key: str) -> sqlite3.Connection:
    """Return the database with a conversation: this one, or a copy of it from a server."""
    copied = getattr(connection, "of_conversation", None)
    return connection if copied is None else copied(key)


def first_file_on(connection: sqlite3.Connection, key: KeyMatch, origin: str) -> int:
    """Return the number of the first file of a conversation that comes from a machine."""
    machines: dict[int, str] = getattr(connection, "machines", dict)()
    files = refs.files_of(connection, key) if machines else []
    return next((n for n, f in enumerate(files, 1) if machines[f.session_id] == origin), 1)


def _first_sentence(error: AssocIngestError) -> str:
    """Return the message without the command that it recommends, which is not for a page."""
    return str(error).split(" To see them:")[0]


# ------------------------------------------------------------------------------------------------
# Finds the conversation that a path names; if it names none or several, suggests others.


def find(connection: sqlite3.Connection, prefix: str, path: Callable[[str], str]) -> KeyMatch:
    """Return the conversation or subagent whose key begins with `prefix`.

    Raises PageError with links to what the prefix can mean, or to the nearest keys; `path` gives
    the address of the page of a key.
    """
    try:
        return refs.find_key(connection, prefix)
    except NotFoundError as error:
        near = refs.nearest_keys(connection, prefix)
        message = f"No conversation matches {prefix!r}." + (" The nearest keys:" if near else "")
        raise PageError(404, message, [(key, path(key)) for key in near], prefix) from error
    except UsageError as error:
        rows = refs.sessions_beginning_with(connection, prefix)
        word = "conversations" if rows else "subagents"
        links = [
            (
                f"{row['title'] or '(untitled)'} · {terminal.moment(row['ended_at'])} · "
                f"{row['session_key']}",
                path(row["session_key"]),
            )
            for row in rows
        ] or [
            (
                f"{row['description'] or row['agent_type'] or ''} · {row['agent_key']}",
                path(row["agent_key"]),
            )
            for row in refs.agents_beginning_with(connection, prefix)
        ]
        message = f"{len(links):,} {word} begin with {cut(prefix)!r}."
        raise PageError(300, message, links) from error
