"""The page of a search over all stores of one database: hits with marks, and facets to narrow them.

A facet is a plain link. A hit in a conversation opens that conversation on its message.

Whatever the names and the query are, the page has an end: snippets are short (`snippets`), names
are cut, and of the values of a facet those with the most hits are offered.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from .. import humanize
from ..ask import query_parser
from ..ask.blocks import bare, named_source, who_of
from ..ask.facets import FACETS, Facets, facets, facets_of
from ..ask.filters import Filters
from ..ask.hits import Hit
from ..ask.ranking import RELAXED
from ..ask.search import search
from . import pages, permalinks
from .conversation import session_path
from .html import marked
from .pages import PageError
from .permalinks import Permalinks

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (
    "messages", "sessions", "subagents", "projects", "files", "inbox_items", "tasks", "todos",
    "plans", "documents", "prompts", "tool_result_files",
)  # fmt: skip
_STEPS = (30, 100, 300)
"""How many hits are shown; each step is a link."""
_VALUES = 8  # of a facet
_LONGEST_QUERY = 4_000  # letters: it is in each of the links
_LONGEST_VALUE = 1_000  # letters of a value that is a link
_ROWS = {
    "message": "messages", "session": "sessions", "inbox": "inbox_items", "task": "tasks",
    "todo": "todos", "plan": "plans", "document": "documents", "prompt": "prompts",
    "tool_result_file": "tool_result_files",
}  # fmt: skip
_month = re.compile(r"(\d{4})-(0[1-9]|1[0-2])").fullmatch


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit as the page shows it."""

    title: str
    address: str
    row: str
    who: str
    project: str | None
    source: str | None
    moment: str
    snippet: Markup | None


class Value(NamedTuple):
    """A value of a facet: choosing it, or taking the choice back, is a link."""

    text: str
    hits: int
    address: str
    is_chosen: bool


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page; without a query, the form alone."""
    names = await pages.databases(datasette, request, TABLES)
    if not names:
        raise PageError(
            404, "No assoc-ingest database is open here, or you have no permission to see it."
        )
    given = {key: request.args.get(key) or "" for key in ("q", "db", "n", *FACETS)}
    asked = {key: value[:_LONGEST_QUERY] for key, value in given.items()}
    database = asked["db"] or names[0]
    count = int(asked["n"]) if asked["n"] in map(str, _STEPS) else _STEPS[0]
    here = datasette.urls.path("/-/assoc/search")
    context: dict[str, object] = {
        "title": f"{asked['q']} – search" if asked["q"].strip() else "Search",
        "query": asked["q"],
        "database": database,
        "databases": names,
        "asked": {key: asked[key] for key in FACETS if asked[key]},
        "note": _note(given["q"], asked["q"]),
        "hits": None,
    }
    if asked["q"].strip():
        filters = _filters(asked)
        path = partial(session_path, datasette, database)
        hits, links, counts, said = await pages.read(
            datasette, request, database, TABLES,
            lambda connection: _found(connection, asked["q"], filters, count, path),
        )  # fmt: skip
        # Titles have no facets but these, where the hits themselves were not counted.
        titles = sum(hit.what == "session" and hit.why != RELAXED for hit in hits)
        more = next((step for step in _STEPS if step > count), None)
        notes = [context["note"], *said]
        context |= {
            "note": " ".join(str(note) for note in notes if note) or None,
            "hits": [_shown(datasette, database, hit, links) for hit in hits[:count]],
            "counts": counts,
            "total": counts.total + titles,
            "facets": [
                (name, values, 0 if asked[name] else len(counts.counts[name]) - len(values))
                for name in FACETS
                if name in counts.counts or asked[name]
                for values in [list(_values(here, asked, name, counts))]
            ],
            "more": _address(here, {**asked, "n": str(more)}) if more and hits[count:] else None,
            "has_rest": len(hits) > count,
        }
    return await pages.page(datasette, request, "search", context)


def _note(given: str, asked: str) -> str | None:
    """Say what of the query is not searched for, if anything."""
    note = query_parser.parse(asked).note
    if given != asked:
        cut = f"Only the first {_LONGEST_QUERY:,} characters of the query were used."
        return f"{cut} {note}" if note else cut
    return note


def _filters(asked: dict[str, str]) -> Filters:
    since = until = None
    if asked["month"]:
        match = _month(asked["month"])
        if match is None:
            raise PageError(400, f"{asked['month']!r} is not a month such as 2026-01.")
        year, month = int(match[1]), int(match[2])
        since = f"{year:04}-{month:02}-01T00:00:00Z"
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        until = f"{year:04}-{month:02}-01T00:00:00Z"
    return Filters(
        kind=(asked["kind"],) if asked["kind"] else (),
        project=asked["project"] or None,
        source=asked["source"] or None,
        since=since,
        until=until,
        model=asked["model"] or None,
        role=asked["role"] or None,
        branch=asked["branch"] or None,
        with_worktrees=False,  # they are values of the same facet
    )


def _found(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters,
    count: int,
    path: Callable[[str], str],
) -> tuple[list[Hit], dict[int, str], Facets, list[str]]:
    """Return the hits with all words, or if there are none the closest, and what to say of them.

    Also returns the addresses of the messages among them.
    """
    answer = search(connection, query, filters, limit=count + 1, shown=0, closest=False)
    hits = list(answer.hits)
    rows = permalinks.rows(connection, [hit.id for hit in hits[:count] if hit.what == "message"])
    links = Permalinks(connection, path).of(row.place for row in rows.values())
    addresses = {one: links[row.place].address for one, row in rows.items() if row.place in links}
    if answer.relaxation is None:
        return hits, addresses, facets(connection, query, filters), []
    return hits, addresses, facets_of(answer), answer.relaxation.lines()


def _shown(datasette: Datasette, database: str, hit: Hit, messages: Mapping[int, str]) -> Shown:
    row = f"{datasette.urls.table(database, _ROWS[hit.what])}/{hit.id}"
    address = row
    if hit.session_key:
        address = session_path(datasette, database, hit.session_key)
        if hit.what == "message":
            address = messages.get(hit.id, address)
    return Shown(
        title=pages.cut(hit.title or (hit.file or "").rpartition("/")[2] or "(untitled)"),
        address=address,
        row=row,
        who=pages.cut(who_of(hit)),
        project=pages.cut(hit.project) if hit.project else None,
        source=named_source(hit),
        moment=humanize.moment(hit.time),
        snippet=None if hit.what == "session" else marked(bare(hit)),
    )


def _values(here: str, asked: dict[str, str], name: str, counts: Facets) -> Iterator[Value]:
    found = counts.counts.get(name, [])
    if asked[name]:
        hits = dict(found).get(asked[name], counts.total)
        taken_back = _address(here, {**asked, name: "", "n": ""})
        yield Value(pages.cut(asked[name]), hits, taken_back, True)
        return
    offered = [(value, hits) for value, hits in found if len(value) <= _LONGEST_VALUE]
    for value, hits in offered[:_VALUES]:
        chosen = _address(here, {**asked, name: value, "n": ""})
        yield Value(pages.cut(value), hits, chosen, False)


def _address(here: str, asked: dict[str, str]) -> str:
    return f"{here}?{urlencode({key: value for key, value in asked.items() if value})}"
