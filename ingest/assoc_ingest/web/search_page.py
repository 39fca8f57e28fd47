"""The page of a search over all stores of one database: a card for each conversation, and facets.

What is found, and in which order, is that of the command line (`search_results`); a card shows it
(`search_cards`), and facets narrow it (`search_facets`), as the address says (`search_address`).

Whatever the names and the query are, the page has an end: snippets are short (`snippets`), names
are cut, and of the values of a facet those with the most hits are offered.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .. import humanize, sql
from ..errors import UsageError
from . import pages, search_address
from .conversation import session_path
from .pages import PageError
from .search_address import LONGEST_QUERY, SORTS, Asked
from .search_cards import Cards, Paths
from .search_facets import Chosen, Projects, chosen, offered
from .search_results import PAGE, Results, results

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (
    "messages", "sessions", "subagents", "projects", "files", "inbox_items", "tasks", "todos",
    "plans", "documents", "prompts", "tool_result_files",
)  # fmt: skip
_WORDS = 6  # of a query that found nothing, each as a link
_RAW = "--raw: "  # what an error begins with that is about the expression


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page; without a query, the form alone."""
    names = await pages.databases(datasette, request, TABLES)
    if not names:
        raise PageError(
            404, "No assoc-ingest database is open here, or you have no permission to see it."
        )
    asked = search_address.parse(request, datasette.urls.path("/-/assoc/search"))
    database = asked.values.get("db") or names[0]
    context: dict[str, object] = {
        "title": f"{asked.query} – search" if asked.query.strip() else "Search",
        "asked": asked,
        "database": database,
        "databases": names,
        "kept": asked.kept,
        "sorts": SORTS,
        "found": None,
        "page_size": PAGE,
        "many": humanize.many,
        "moment": humanize.moment,
        "table": lambda name: datasette.urls.table(database, name),
    }  # fmt: skip
    if asked.query.strip():
        make = _Page(datasette, database, asked)
        context |= await pages.read(datasette, request, database, TABLES, make.read)
    return await pages.page(datasette, request, "search", context)


class _Page:
    """What the template shows of one search."""

    def __init__(self, datasette: Datasette, database: str, asked: Asked) -> None:
        self._datasette = datasette
        self._database = database
        self._asked = asked

    def read(self, connection: sqlite3.Connection) -> dict[str, object]:
        """Return the context of the template."""
        asked, found = self._asked, self._results(connection)
        if asked.page > 1 and not found.cards:
            raise PageError(
                404, f"There is no page {asked.page} of this search.",
                [("First page", asked.address())],
            )  # fmt: skip
        projects = Projects(connection)
        set_filters = list(chosen(asked, found, projects))
        context: dict[str, object] = {
            "found": found,
            "cards": Cards(connection, asked, found, self._paths(), projects).all(),
            "facets": list(offered(asked, found, projects)),
            "chosen": set_filters,
            "corrected": self._corrected(found),
            "said": self._said(found),
        }
        if not found.cards:
            context |= self._nothing(connection, found, set_filters)
        return context

    def _paths(self) -> Paths:
        base = self._datasette.urls.database(self._database)
        return Paths(
            session=partial(session_path, self._datasette, self._database),
            project=lambda key: f"{base}/-/project/{key}",
            table=partial(self._datasette.urls.table, self._database),
        )

    def _results(self, connection: sqlite3.Connection) -> Results:
        """Return what was found; raise PageError where the query is an expression and is wrong."""
        try:
            return results(connection, self._asked)
        except UsageError as error:
            of_raw = str(error).removeprefix(_RAW)
            if "raw" not in self._asked.values or of_raw == str(error):
                raise
            message = of_raw.removesuffix(", or leave out --raw.").rstrip(".")
            is_wrong = message.startswith("not ")
            message = f"The query is {message}." if is_wrong else f"{message.capitalize()}."
            plain = [("Search for its words instead", self._asked.address(raw=None))]
            raise PageError(400, message, plain) from error

    def _said(self, found: Results) -> list[str]:
        """Return what to know of the query, and of what was found, in a sentence each."""
        cut = f"Only the first {LONGEST_QUERY:,} characters of the query were used."
        said = [cut] * self._asked.is_cut + list(found.notes)
        if found.without and found.cards:
            said.append(f"Left out: what holds {', '.join(found.without)}.")
        if found.relaxation and found.cards:
            is_part = self._asked.page > 1 or self._asked.narrowed
            # A word that is missing here may be elsewhere among what was found.
            known = replace(found.relaxation, missing=()) if is_part else found.relaxation
            said += known.lines()
            if found.is_mixed:
                said.append("Only some of these have all words.")
        return [pages.cut(line) for line in said]

    def _corrected(self, found: Results) -> tuple[str, str] | None:
        """Return the query with the words that were taken for others, and its address."""
        query = self._asked.query
        for word, meant in found.corrected.items():
            query = _with(query, word, meant[0])
        return (query, self._asked.address(q=query)) if query != self._asked.query else None

    def _nothing(
        self, connection: sqlite3.Connection, found: Results, set_filters: list[Chosen]
    ) -> dict[str, object]:
        """Return what helps where nothing was found."""
        words = found.words if len(found.words) > 1 else ()
        return {
            "nothing": found.nothing,
            "labels": {
                name: f"{name} {filter.text}"
                for name, filter in zip(self._asked.filters, set_filters, strict=True)
            },
            "words": [(word, self._asked.address(q=word)) for word in words[:_WORDS]],
            "fresh": sql.ask(connection, "pages/fresh").fetchone(),
            "read": sql.ask(connection, "pages/indexed_files").fetchone(),
        }


def _with(query: str, word: str, other: str) -> str:
    """Return the query with another word in place of one."""
    return " ".join(other if one == word else one for one in query.split(" "))
