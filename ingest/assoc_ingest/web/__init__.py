"""The Datasette plugin: pages to read, queries with forms, readable cells, and the guard.

It is active in every Datasette of its environment, and shows itself only for assoc-ingest
databases. One module serves both lines of Datasette: hooks that one of them does not know are
ignored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pluggy import HookimplMarker

from .. import sql
from . import cells, guard, queries
from .compat import jump_item, may_view, stores_queries
from .detect import is_ours, our_databases
from .routes import View, routes

# Datasette's own name for it; taken from pluggy, so that importing this loads no Datasette.
hookimpl = HookimplMarker("datasette")

FRONT, SEARCH, DASHBOARD = "/-/assoc", "/-/assoc/search", "/-/assoc/dashboard"
_PLUGIN = "assoc_ingest"

Link = dict[str, str]
Later = Callable[[], Awaitable[Any]]
"""What a hook returns when it has to ask the database first: Datasette calls and awaits it."""


@hookimpl
def register_routes() -> list[tuple[str, View]]:
    """Tell Datasette the addresses of our pages."""
    return routes()


@hookimpl
def startup(datasette: Any) -> Later:
    """Give the queries to a Datasette that keeps them."""

    async def start() -> None:
        if stores_queries(datasette):
            for database in await our_databases(datasette):
                await queries.store(datasette, database)

    return start


@hookimpl
def canned_queries(datasette: Any, database: str) -> Later:
    """Give the queries to a Datasette that asks for them each time."""

    async def ask() -> dict[str, dict[str, Any]]:
        return queries.as_dictionaries() if await is_ours(datasette, database) else {}

    return ask


@hookimpl
def render_cell(
    row: Any, value: object, column: str, table: str | None, database: str, datasette: Any
) -> Later | None:
    """Show times and addresses as such, and lead from a title to its conversation."""
    if not isinstance(value, str) or not cells.is_worth_it(column, value):
        return None
    text = value

    async def render() -> object:
        if not await is_ours(datasette, database):
            return None
        return cells.cell(row, text, column, table, datasette.urls.database(database))

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
def database_actions(datasette: Any, database: str) -> Later:
    """Add the pages to the menu of an assoc-ingest database."""

    async def links() -> list[Link]:
        return _links(datasette) if await is_ours(datasette, database) else []

    return links


@hookimpl
def table_actions(datasette: Any, database: str) -> Later:
    """Put our pages into the menu of each of its tables."""
    return database_actions(datasette, database)


@hookimpl
def row_actions(datasette: Any, database: str, table: str, row: Any) -> Later:
    """Lead from the row of a session to its conversation. Datasette 1.0 has such a menu."""

    async def links() -> list[Link]:
        if table != "sessions" or not await is_ours(datasette, database):
            return []
        path = datasette.urls.database(database) + cells.conversation_path(row["session_key"])
        return [{"href": path, "label": "Read the conversation"}]

    return links


# Last, so that what other plugins answer passes the guard, too.
@hookimpl
def jump_items_sql(datasette: Any, actor: Any) -> Later:
    """Offer conversations by their titles in the menu of Datasette 1.0 that opens with `/`."""

    async def items() -> list[Any]:
        return [
            jump_item(database, sql.query("pages/jump").sql, {"address": address})
            for database in await our_databases(datasette)
            if await may_view(datasette, actor, database, ["sessions", "projects"])
            for address in [f"{datasette.urls.database(database)}/-/session/"]
        ]

    return items


@hookimpl(trylast=True)
def asgi_wrapper(datasette: Any) -> Callable[[guard.App], guard.App]:
    """Let every request pass the guard, where `serve` has switched it on."""

    def wrap(app: guard.App) -> guard.App:
        if not guard.is_switched_on():
            return app
        settings = datasette.plugin_config(_PLUGIN) or {}
        return guard.guarded(app, settings.get("allowed_hosts") or ())

    return wrap


def _links(datasette: Any) -> list[Link]:
    return [
        {"href": datasette.urls.path(FRONT), "label": "Conversations"},
        {"href": datasette.urls.path(SEARCH), "label": "Search all conversations"},
        {"href": datasette.urls.path(DASHBOARD), "label": "Dashboard"},
    ]
