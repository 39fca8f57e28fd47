"""The differences between Datasette 0.65 and 1.0, in one place.

Pages and hooks ask here, and need not know which of them they run in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


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
    """Return what the metadata of a database says of each of its tables and views."""
    if hasattr(datasette, "get_resource_metadata"):
        known = {
            table: (await datasette.get_resource_metadata(database, table)).get("description")
            for table in await _tables(datasette, database)
        }
    else:
        entries = (datasette.metadata("tables", database=database) or {}).items()
        known = {table: (entry or {}).get("description") for table, entry in entries}
    return {table: str(text) for table, text in known.items() if text}


async def _tables(datasette: Any, database: str) -> list[str]:
    held = datasette.get_database(database)
    return [*await held.table_names(), *await held.view_names()]
