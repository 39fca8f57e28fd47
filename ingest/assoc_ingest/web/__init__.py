"""The Datasette plugin: pages to read, queries with forms, readable cells, and the guard.

It is active in every Datasette of its environment, and shows itself only for assoc-ingest
databases. One module serves both lines of Datasette: hooks that one of them does not know are
ignored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pluggy import HookimplMarker

from .. import sql
from ..errors import UsageError
from . import (
    conversation,
    conversations,
    download,
    frame,
    image,
    news,
    pages,
    project,
    reports,
    search_page,
    serve,
    timeline,
    usage,
)
from .pages import (
    PageError,
    error_page,
    is_ours,
    jump_item,
    may_view,
    our_databases,
    stores_queries,
)
from .urls import Paths

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import AsgiStream, Request, Response

# Datasette's own name for it; taken from pluggy, so that importing this loads no Datasette.
hookimpl = HookimplMarker("datasette")

_PLUGIN = "assoc_ingest"

Link = dict[str, str]
Later = Callable[[], Awaitable[Any]]
"""What a hook returns when it has to ask the database first: Datasette calls and awaits it."""


View = Callable[["Datasette", "Request"], Awaitable["Response | AsgiStream"]]

_PAGES: tuple[tuple[str, View], ...] = (
    (r"^/$", conversations.home),
    (r"^/-/assoc/?$", conversations.front),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/?$", conversation.view),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/export$", download.view),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/image$", image.view),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/news$", news.view),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/timeline$", timeline.view),
    (r"^/(?P<database>[^/]+)/-/sessions/?$", conversations.view),
    (r"^/(?P<database>[^/]+)/-/project/(?P<project>[^/]+)/?$", project.project),
    (r"^/(?P<database>[^/]+)/-/team/(?P<team>[^/]+)/?$", project.team),
    (r"^/-/assoc/search/?$", search_page.view),
    (r"^/-/assoc/(?:usage|dashboard)/?$", usage.first),
)
_OF_TABLES: tuple[tuple[str, View], ...] = (
    (r"^/-/$", pages.index),
    (r"^/(?P<database>[^/]+)/-/reports/?$", reports.view),
)
"""Pages that lead to Datasette's own, of which a server of a fleet has none."""


@hookimpl
def register_routes() -> list[tuple[str, View]]:
    if serve.remote() is None:
        views = [*_PAGES, *_OF_TABLES, *reports.views()]
    else:
        views = [*_PAGES, *reports.views(_REMOTE), (r"^/(?!-/static).*$", _local_only)]
    return [(pattern, _telling_errors(view)) for pattern, view in views]


_REMOTE = ("recap", "stats")
"""The questions that can be asked of a server."""


async def _local_only(datasette: Datasette, request: Request) -> Response:
    raise PageError(
        404,
        "This page is not there with --remote. Reports: run `assoc-ingest query NAME --remote`. "
        "Everything else: run `assoc-ingest pull`, then `assoc-ingest serve`.",
        [("All conversations", datasette.urls.path("/"))],
    )


@hookimpl
def startup(datasette: Any) -> Later:
    """Give the queries to a Datasette that stores them; run the SQL of visitors elsewhere."""

    async def start() -> None:
        pages.remember_rules(datasette)
        if serve.is_switched_on():
            serve.kept_apart(datasette)
        if stores_queries(datasette):
            for database in await our_databases(datasette):
                await pages.store(datasette, database)

    return start


@hookimpl
def canned_queries(datasette: Any, database: str) -> Later:
    """Give the queries to a Datasette that asks for them each time."""

    async def ask() -> dict[str, dict[str, Any]]:
        return pages.as_dictionaries() if await is_ours(datasette, database) else {}

    return ask


@hookimpl
def render_cell(
    row: Any, value: object, column: str, table: str | None, database: str, datasette: Any
) -> Later | None:
    """Format times, addresses and lower bounds, and link titles to their conversations."""
    if not isinstance(value, str | int | float) or not frame.is_worth_it(column, value):
        return None
    text = value

    async def render() -> object:
        if not await is_ours(datasette, database):
            return None
        return frame.cell(row, text, column, table, Paths(datasette, database))

    return render


@hookimpl
def menu_links(datasette: Any, actor: Any) -> Later:
    """Add the pages to the menu, if an assoc-ingest database may be seen."""

    async def links() -> list[Link]:
        for database in await our_databases(datasette):
            if await may_view(datasette, actor, database):
                return _links(datasette)
        return []

    return links


@hookimpl
def extra_template_vars(
    datasette: Any, request: Any, template: str | None, database: str | None
) -> Later:
    """Give every template our frame, None where Datasette's own page stays as it is."""

    async def variables() -> dict[str, Any]:
        return {"assoc": await frame.of(datasette, request, template, database)}

    return variables


@hookimpl
def jump_items_sql(datasette: Any, actor: Any) -> Later:
    """Offer conversations by their titles in the menu of Datasette 1.0 that opens with `/`."""

    async def items() -> list[Any]:
        return [
            jump_item(database, sql.query("pages/jump").sql, {"address": address})
            for database in await our_databases(datasette)
            if await may_view(datasette, actor, database, ["sessions", "projects"])
            for address in [Paths(datasette, database).session("")]
        ]

    return items


@hookimpl
def handle_exception(datasette: Any, request: Any, exception: Exception) -> Later:
    """Show a page of ours for what is missing, with suggestions."""

    async def answer() -> Any:
        return await frame.answer(datasette, request, exception)

    return answer


# Last, so that what other plugins answer passes the guard, too.
@hookimpl(trylast=True)
def asgi_wrapper(datasette: Any) -> Callable[[serve.App], serve.App]:
    """Parse the times of reports; under `serve`, let the guard check every request."""

    def wrap(plain: serve.App) -> serve.App:
        async def app(scope: serve.Scope, receive: serve.Receive, send: serve.Send) -> None:
            if scope["type"] == "http" and pages.is_report(scope["path"]):
                try:
                    times = pages.with_times(scope.get("query_string") or b"")
                except UsageError as error:
                    await serve.refuse((400, str(error)), send)
                    return
                scope = {**scope, "query_string": times}
            await plain(scope, receive, send)

        if not serve.is_switched_on():
            return app
        settings = datasette.plugin_config(_PLUGIN) or {}
        return serve.guarded(app, settings.get("allowed_hosts") or ())

    return wrap


def _links(datasette: Any) -> list[Link]:
    return [
        {"href": datasette.urls.path(frame.CONVERSATIONS), "label": "Conversations"},
        {"href": datasette.urls.path(frame.SEARCH), "label": "Search all conversations"},
        {"href": datasette.urls.path(frame.USAGE), "label": "Usage"},
    ]


def _telling_errors(view: View) -> View:
    async def shown(datasette: Datasette, request: Request) -> Response | AsgiStream:
        try:
            return await view(datasette, request)
        except PageError as error:
            return await error_page(datasette, request, error)

    return shown
