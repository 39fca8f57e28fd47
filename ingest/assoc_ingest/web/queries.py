"""The queries that Datasette offers, and the form in which it wants them.

These are the reports and lists that a person can run with an empty form: every parameter may be
left out, which is seen from `coalesce(:name, '')` or `nullif(:name, '')`.

There, `usage_by_day` is called `ask-usage-by-day`. Its times may be any that `since` and `until`
take elsewhere (`with_times`). Some are called as a view is, and each line of
Datasette hides one of the two behind the other; no table has a dash in its name.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

from .. import sql
from ..ask.since import since, until
from ..sql import Query

PREFIX = "ask-"
"""What their names in Datasette begin with."""

_IDS = "(select value from json_each(:project))"
_NAMED = (
    "(select o.id from projects n"
    " join projects o on coalesce(o.same_as, o.id) = coalesce(n.same_as, n.id)"
    " where :project collate nocase in (n.id || '', n.path, n.name))"
)
"""A command has already found the ids of a project; into a form, a person writes what it is."""

_optional = re.compile(r"\b(?:coalesce|nullif)\(:(\w+), '")


def for_people() -> dict[str, Query]:
    """Return the queries that are shown, by the names that they have in Datasette."""
    return {
        PREFIX + name.replace("_", "-"): query._replace(sql=query.sql.replace(_IDS, _NAMED))
        for name, query in sql.named_queries().items()
        if set(query.parameters) <= set(_optional.findall(query.sql))
    }


def as_dictionaries() -> dict[str, dict[str, Any]]:
    """Return the queries as the hook of 0.65 wants them; it writes into what it gets."""
    return {
        name: {
            "sql": query.sql,
            "title": query.title,
            "description": query.description,
            "params": list(query.parameters),
            "hide_sql": True,
        }
        for name, query in for_people().items()
    }


def with_times(query: bytes) -> bytes:
    """Return what stands behind the ? of the address of a report, its times as they are stored.

    SQL compares them as text. Raises UsageError for one that is none.
    """
    given = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    read = {"since": since, "until": until}
    return urlencode(
        [(name, read[name](text) if name in read and text else text) for name, text in given]
    ).encode()


def is_report(path: str) -> bool:
    """Is this the path of one of these queries, in any form of its rows?"""
    return path.rpartition("/")[2].partition(".")[0] in for_people()


async def store(datasette: Any, database: str) -> None:
    """Give the queries to Datasette 1.0, which keeps them until it ends."""
    for name, query in for_people().items():
        await datasette.add_query(
            database,
            name,
            query.sql,
            title=query.title,
            description=query.description,
            parameters=list(query.parameters),
            hide_sql=True,
            is_trusted=True,  # they may be asked by those who may not write SQL
            source="assoc-ingest",
        )
