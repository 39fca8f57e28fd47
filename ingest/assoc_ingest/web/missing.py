"""What is shown where Datasette finds no page: a search for what was asked, and the nearest names.

Only where the page would be one of ours; what asks for data gets Datasette's own answer.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from . import frame, pages, queries
from .pages import PageError

_LONGEST = 100  # letters of a name that is compared with others
_NEAR = 5


async def answer(datasette: Any, request: Any, exception: Exception) -> Any:
    """Return the page that tells what is missing or wrong, None to leave that to Datasette."""
    status = getattr(exception, "status", None)
    if status == 400 and "/-/" in request.path:  # 0.65 takes it for the row of a table
        status = 404
    asks_for_data = request.path.endswith((".json", ".csv")) or "json" in str(
        request.headers.get("accept") or ""
    )
    if status not in (400, 404) or asks_for_data or getattr(exception, "message_is_html", False):
        return None
    found = await frame.of(datasette, request, None, None)
    if found is None:
        return None
    if status == 400:
        return await pages.error_page(datasette, request, PageError(400, str(exception)))
    wanted = pages.unquoted(request.path.rstrip("/").rpartition("/")[2])
    links = await _near(datasette, str(found.database), wanted)
    near = " The nearest names:" if links else ""
    error = PageError(404, f"There is no page {pages.cut(request.path)!r}.{near}", links, wanted)
    return await pages.error_page(datasette, request, error, found.database)


async def _near(datasette: Any, database: str, wanted: str) -> list[tuple[str, str]]:
    """Return tables, views and reports that are called nearly so, and their addresses."""
    held = datasette.get_database(database)
    urls = datasette.urls
    tables = {*await held.table_names(), *await held.view_names()}
    tables -= set(await held.hidden_table_names())
    known = {name: urls.table(database, name) for name in sorted(tables)}
    known |= {name: urls.query(database, name) for name in queries.for_people()}
    names = get_close_matches(wanted[:_LONGEST], known, _NEAR)
    return [(name, known[name]) for name in names]
