"""Recognises assoc-ingest databases among Datasette's: by their content, never by their name."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from ..store.database import APPLICATION_ID
from . import guard

_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


async def is_ours(datasette: Any, database: str) -> bool:
    """Is this a database of assoc-ingest? It is asked once, though every cell wants to know."""
    found = datasette.databases.get(database)
    if found is None:
        return False
    if found not in _known:
        _known[found] = await _application_id(found) == APPLICATION_ID
    return _known[found]


async def our_databases(datasette: Any) -> list[str]:
    """Return the names of the assoc-ingest databases."""
    return [name for name in datasette.databases if await is_ours(datasette, name)]


async def is_for_us(datasette: Any) -> bool:
    """Is the server there for assoc-ingest: is it `serve`, or has it nothing but our databases?"""
    ours = await our_databases(datasette)
    others = set(datasette.databases) - {"_internal"} - set(ours)
    return bool(ours) and (guard.is_switched_on() or not others)


async def _application_id(database: Any) -> int:
    (row,) = (await database.execute("pragma application_id")).rows
    return int(row[0])
