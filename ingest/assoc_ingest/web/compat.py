"""What differs between the two lines of Datasette: 0.65 and 1.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasette.app import Datasette


async def may_view(
    datasette: Datasette, actor: dict[str, object] | None, database: str, tables: Iterable[str] = ()
) -> bool:
    """Return whether an actor may see a database and all of these tables."""
    if hasattr(datasette, "allowed"):
        from datasette.resources import DatabaseResource, TableResource

        wanted = [("view-database", DatabaseResource(database))]
        wanted += [("view-table", TableResource(database, table)) for table in tables]
        for action, resource in wanted:
            if not await datasette.allowed(action=action, resource=resource, actor=actor):
                return False
        return True
    asked = [("view-database", database), *(("view-table", (database, t)) for t in tables)]
    for action, old_resource in asked:
        if not await datasette.permission_allowed(actor, action, old_resource, default=True):
            return False
    return True
