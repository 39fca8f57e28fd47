"""What the templates of all pages need to know: the navigation, and what we add to Datasette's.

`templates/` has some of Datasette's own names: `base.html`, `table.html` and so on. Each passes on
to Datasette's template unless it is given a frame, so a database of another program is shown as
if this plugin were not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from .. import humanize
from . import columns, compat, queries, row_links
from .detect import is_for_us, our_databases
from .reports import Report, report_of, totals

CONVERSATIONS, SEARCH, DASHBOARD = "/-/assoc", "/-/assoc/search", "/-/assoc/dashboard"

_SECTIONS = (
    ("Search", re.compile(r"/-/assoc/search/?")),
    ("Dashboard", re.compile(r"/-/assoc/dashboard/?|/[^/]+/-/(?:project|team)/.*")),
    ("Conversations", re.compile(r"/|/-/assoc/?|/[^/]+/-/sessions?(?:/.*)?")),
    ("Reports", re.compile(rf"/[^/]+/(?:-/reports/?|{queries.PREFIX}.*)")),
    ("Tables", re.compile(r"/-/|/[^/]+(?:/[^-].*)?")),
)
"""To which place of the navigation an address belongs: the first that fits."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the navigation."""

    text: str
    address: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What templates ask for, for one page."""

    datasette: Any
    request: Any
    database: str | None
    """The assoc-ingest database of the page, else the first one that may be seen."""
    is_one_of_many: bool
    """Are there several assoc-ingest databases, so that addresses have to name theirs?"""

    def navigation(self) -> list[Place]:
        """Return the places of the header; without a database only those that need none."""
        urls = self.datasette.urls
        asked = f"?{urlencode({'db': self.database})}" if self.is_one_of_many else ""
        base = urls.database(self.database) if self.database else None
        places = {
            "Conversations": urls.path(CONVERSATIONS) + asked,
            "Search": urls.path(SEARCH) + asked,
            "Dashboard": urls.path(DASHBOARD) + asked,
            "Reports": f"{base}/-/reports" if base else None,
            "Tables": base or urls.path("/-/"),
        }
        current = self._section()
        return [
            Place(text, address, text == current) for text, address in places.items() if address
        ]

    def others(self, links: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
        """Return the links of a menu that other plugins have put there."""
        own = {self.datasette.urls.path(path) for path in (CONVERSATIONS, SEARCH, DASHBOARD)}
        return [link for link in links if link["href"] not in own]

    def columns(
        self, table: str, known: Sequence[Mapping[str, Any]], asked: Mapping[str, str]
    ) -> list[int]:
        """Return the places of the columns that a table shows first."""
        return columns.shown(table, [column["name"] for column in known], asked)

    async def ways(self, table: str, cells: Iterable[Mapping[str, Any]]) -> list[row_links.Way]:
        """Return where the row of a table leads to: its message, its conversation, its project."""
        row = {cell["column"]: cell["raw"] for cell in cells}
        return await row_links.of(self.datasette, self.request, str(self.database), table, row)

    def report_names(self) -> list[str]:
        """Return the names that our reports and lists have among the queries of the database."""
        return list(queries.for_people())

    async def descriptions(self) -> dict[str, str]:
        """Return what metadata says of the tables of the database."""
        return await compat.descriptions(self.datasette, str(self.database))

    async def report(self, name: str | None) -> Report | None:
        """Return the report or list with this name in Datasette, None if there is no such one."""
        return await report_of(self.datasette, self.request, str(self.database), name)

    def totals(
        self, report: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> list[tuple[float, bool] | None]:
        """Return the sums below the columns of a report."""
        return totals(report, columns, rows)

    def moment(self, text: str) -> str:
        """Return a stored time as a field of a form shows it, and takes it again."""
        return humanize.moment(text)

    def _section(self) -> str:
        path = self.request.path if self.request else ""
        path = "/" + path.removeprefix(self.datasette.setting("base_url")).lstrip("/")
        return next((text for text, form in _SECTIONS if form.fullmatch(path)), "")


async def of(datasette: Any, request: Any, template: str | None, database: str | None) -> Any:
    """Return the frame of a page, None for one that stays as Datasette has it."""
    actor = request.actor if request else None
    ours = [
        name
        for name in await our_databases(datasette)
        if await compat.may_view(datasette, actor, name)
    ]
    named = database or _in_path(datasette, request)
    is_own_page = (template or "").startswith("assoc_")
    if named not in ours:
        is_other = named in datasette.databases or not ours or not await is_for_us(datasette)
        if is_other and not is_own_page:
            return None
        named = ours[0] if ours else None
    return Frame(datasette, request, named, len(ours) > 1)


def _in_path(datasette: Any, request: Any) -> str | None:
    """Return what the address begins with: where a page tells an error, nothing else says it."""
    from datasette.utils import tilde_decode

    if request is None:
        return None
    path = request.path.removeprefix(datasette.setting("base_url")).lstrip("/")
    return str(tilde_decode(path.split("/")[0]))
