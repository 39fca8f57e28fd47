"""The list of conversations: filtered, in one of three orders, in pages.

Filters are parameters of the address, so that other pages link to what they count. Months and days
are those of the local calendar, as all times on the pages are local.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from .. import sql, terminal
from ..ask.filters import Filters, nothing
from ..terminal import one_line
from . import charts, pages
from .conversation import session_path
from .pages import PageError
from .urls import Counted

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (
    "sessions", "projects", "sources", "messages", "tool_calls", "files", "responses", "prices"
)  # fmt: skip
PAGE = 50
"""Conversations on a page."""

SORTS = {"newest": "Newest first", "cost": "Highest cost first", "messages": "Longest first"}
FILTERS = (
    "project", "branch", "model", "source", "status", "month", "day", "since", "until", "errors",
    "min_cost",
)  # fmt: skip
_VALUES = 100  # of a field of the form
_LONGEST_VALUE = 1_000  # letters of a value that a form or a link holds
_LONGEST_TITLE = 120
_MOST_MODELS = 2  # of a conversation


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is set, and the address of the list without it."""

    text: str
    address: str


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the list of conversations of the database that the address names."""
    from datasette.utils import tilde_decode

    database = tilde_decode(request.url_vars["database"])
    asked = {name: request.args.get(name) or "" for name in (*FILTERS, "sort")}
    if asked["sort"] not in ("", *SORTS):
        raise PageError(400, f"Unknown order {asked['sort']!r}. Choose one of: {', '.join(SORTS)}.")
    number = pages.page_number(request.args.get("page"))
    here = list_path(datasette, database)
    context = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, asked, number, here),
    )  # fmt: skip
    context |= {
        "title": "Conversations",
        "database": database,
        "asked": asked,
        "sorts": SORTS,
        "number": number,
        "here": here,
        "page_address": lambda page: address(here, {**asked, "page": str(page)}),
        **links(datasette, database),
    }
    return await pages.page(datasette, request, "conversations", context)


def list_path(datasette: Datasette, database: str) -> str:
    return f"{datasette.urls.database(database)}/-/sessions"


def links(datasette: Datasette, database: str) -> dict[str, Callable[..., str]]:
    here = list_path(datasette, database)
    base = datasette.urls.database(database)
    counted = Counted(datasette, database)
    return {
        "session_path": lambda key: session_path(datasette, database, key),
        "project_path": lambda project: f"{base}/-/project/{project}",
        "list_path": lambda **asked: address(here, asked),
        "usage_path": lambda key: counted.report("usage-by-session", session=key),
        "moment": terminal.moment,
        "many": terminal.many,
    }


def address(here: str, asked: Mapping[str, object]) -> str:
    """Return the address of the list with these filters; those without a value are left out."""
    given = {name: str(value) for name, value in asked.items() if value not in (None, "")}
    return f"{here}?{urlencode(given)}" if given else here


def wanted(connection: sqlite3.Connection, asked: Mapping[str, str]) -> dict[str, object]:
    """Return the parameters of the query `pages/conversations` for what an address asks for.

    Raises PageError, UsageError or NotFoundError for a value that means nothing.
    """
    for name, value in asked.items():
        if len(value) > _LONGEST_VALUE:
            raise PageError(400, f"The value of {name} is too long.")
    given = Filters.of(asked).parameters(connection)
    query = sql.query("pages/conversations").parameters
    known = {name: value for name, value in given.items() if name in query}
    return {**known, "sort": asked.get("sort")}


def rows(
    connection: sqlite3.Connection, limit: int, **wanted: object
) -> tuple[list[pages.Row], int]:
    found = pages.ask(connection, "pages/conversations", "models", limit=limit, **wanted)
    ids = json.dumps([row["id"] for row in found])
    usage = {row["id"]: row for row in sql.ask(connection, "pages/sessions_usage", sessions=ids)}
    ends = dict(map(tuple, sql.ask(connection, "pages/session_ends", sessions=ids)))
    for row in found:
        title = one_line(row["title"] or "") or "(untitled)"
        models = json.loads(row["models"] or "[]")
        row["title"] = title if len(title) <= _LONGEST_TITLE else title[:_LONGEST_TITLE] + "…"
        row["models"] = [pages.cut(one_line(str(model))) for model in models[:_MOST_MODELS]]
        row["more_models"] = len(models) - len(row["models"])
        row["cost"] = _cost(usage[row["id"]])
        row["cost_usd"] = usage[row["id"]]["cost_usd"]
        row["git_branch"] = terminal.branch_besides(row["project"], row["git_branch"])
        row["state"] = ends.get(row["id"])
    return found, found[0]["total"] if found else 0


def _read(
    connection: sqlite3.Connection, asked: Mapping[str, str], number: int, here: str
) -> dict[str, object]:
    parameters = wanted(connection, asked)
    project = _project(connection, parameters["project"])
    offset = (number - 1) * PAGE
    found, total = rows(connection, PAGE, offset=offset, **parameters)
    if number > 1 and not found:
        raise PageError(
            404, f"There is no page {number} of this list.",
            [("First page", address(here, asked))],
        )  # fmt: skip
    left = []
    if not total:
        why = nothing(Filters.of(asked), lambda other: count(connection, _given(other)))
        left = [*why.lines("conversation")]
    return {
        "rows": found,
        "total": total,
        "left": left,
        "has_more": offset + len(found) < total,
        "chips": list(_chips(asked, project, here)),
        "values": _values(connection, asked, project),
        "colour": charts.of_models(connection),
    }


def count(connection: sqlite3.Connection, asked: Mapping[str, str]) -> int:
    return rows(connection, 1, **wanted(connection, asked))[1]


def _given(filters: Filters) -> dict[str, str]:
    return {name: "1" if value is True else str(value) for name, value in filters.given().items()}


def _project(connection: sqlite3.Connection, ids: object) -> str | None:
    """Return the name of the first of the projects in a JSON array."""
    if not ids:
        return None
    row = sql.ask(connection, "pages/project", id=json.loads(str(ids))[0]).fetchone()
    return _name(row["name"] or row["key"])


def _values(
    connection: sqlite3.Connection, asked: Mapping[str, str], project: str | None
) -> dict[str, dict[str, str]]:
    """Return the values that the form offers, each with its text; those chosen are among them."""
    values: dict[str, dict[str, str]] = {"project": {}, "model": {}, "source": {}}
    for row in sql.ask(connection, "pages/conversation_values", limit=_VALUES):
        key = str(row["key"])
        if len(key) <= _LONGEST_VALUE:
            values[row["what"]][key] = _name(row["text"])
    for name, known in values.items():
        if asked[name]:
            text = project if name == "project" else None
            known.setdefault(asked[name], text or _name(asked[name]))
    return values


def _chips(asked: Mapping[str, str], project: str | None, here: str) -> Iterator[Chip]:
    filters = Filters.of(asked)
    for name in filters.given():
        text = f"project {project}" if name == "project" else filters.told(name)
        text = "with errors" if name == "errors" else text
        yield Chip(_name(text[0].upper() + text[1:]), address(here, {**asked, name: ""}))


def _name(text: object) -> str:
    return pages.cut(one_line(str(text or ""))) or "(unnamed)"


def _cost(usage: sqlite3.Row) -> str:
    cost, unpriced, partial = usage["cost_usd"], usage["unpriced"], usage["partial"]
    return "" if cost is None and not unpriced else terminal.money(cost, partial, unpriced)
