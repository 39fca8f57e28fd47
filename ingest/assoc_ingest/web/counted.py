"""Addresses of what a number counts: rows of a table, or a report whose rows add up to it.

A link with such an address says the number in `data-count`, and in `data-sum` which columns of the
report add up to it; without that, it is the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from . import queries

if TYPE_CHECKING:
    from datasette.app import Datasette

EVER = "2000-01-01"
"""Before all times: a report that begins here leaves out only what has no time."""


class Counted:
    """Makes the addresses for one database."""

    def __init__(self, datasette: Datasette, database: str) -> None:
        self._urls = datasette.urls
        self._database = database

    def rows(self, table: str, **asked: object) -> str:
        """Return the address of the rows of a table or a view, of those that the filters leave."""
        return self._address(str(self._urls.table(self._database, table)), asked)

    def report(self, name: str, **asked: object) -> str:
        """Return the address of a report with these parameters."""
        path = str(self._urls.query(self._database, queries.PREFIX + name))
        return self._address(path, asked)

    def _address(self, path: str, asked: dict[str, object]) -> str:
        given = {name: str(value) for name, value in asked.items() if value not in (None, "")}
        return f"{path}?{urlencode(given)}" if given else path
