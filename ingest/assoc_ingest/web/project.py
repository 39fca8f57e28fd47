"""The page of one project: its sessions, tasks, plans, notes, links, worktrees and teams."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from .. import humanize, sql
from . import pages
from .budget import Budget
from .conversation import session_path
from .cost import Cost, together
from .counted import Counted
from .html import markdown
from .named_row import named_row
from .pages import MOST_LINKS, PageError

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = ("projects", "sessions", "tasks", "plans", "documents", "links", "teams")
PAGE = 50
"""Sessions on a page."""

MOST = 30
"""Tasks, texts and links on a page, of each."""


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page of the project that the address names by number, name or key."""
    from datasette.utils import tilde_decode

    database = tilde_decode(request.url_vars["database"])
    wanted = pages.named(request, "project")
    number = pages.page_number(request.args.get("page"))
    base = f"{datasette.urls.database(database)}/-"
    context = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, wanted, number, f"{base}/project"),
    )  # fmt: skip
    context |= {
        "database": database,
        "display": humanize,
        "markdown": partial(markdown, budget=Budget()),
        "base": base,
        "counted": Counted(datasette, database),
        "number": number,
        "session_path": lambda key: session_path(datasette, database, key),
        "table": lambda name: datasette.urls.table(database, name),
    }
    return await pages.page(datasette, request, "project", context)


def _read(
    connection: sqlite3.Connection, wanted: str, number: int, address: str
) -> dict[str, object]:
    project = named_row(connection, "pages/project", wanted, "project", address)
    same = sql.ask(connection, "pages/same_projects", id=project["id"]).fetchall()
    ids = [row["id"] for row in same]
    every = json.dumps(ids)
    found: dict[str, list[pages.Row]] = {}
    more = []
    for name, *whole in (("tasks", "description"), ("texts", "text"), ("links",)):
        rows = pages.ask(connection, f"pages/project_{name}", *whole, project=every, limit=MOST + 1)
        found[name] = rows[:MOST]
        if rows[MOST:]:
            more.append(name)
    related = pages.ask(connection, "pages/project_related", project=every)
    usage = _Usage(ids, sql.ask(connection, "pages/project_usage", project=every))
    offset = (number - 1) * PAGE
    sessions = pages.ask(
        connection, "pages/project_sessions", project=every, limit=PAGE + 1, offset=offset
    )
    if number > 1 and not sessions:
        raise PageError(
            404, f"There is no page {number} of this project.",
            [("First page", f"{address}/{project['id']}")],
        )  # fmt: skip
    return {
        "title": project["name"] or project["key"],
        "project": project,
        "ids": ids,
        "agents": list(dict.fromkeys(row["agent"] for row in same)),
        "usage": usage,
        "sessions": sessions[:PAGE],
        "has_more": len(sessions) > PAGE,
        "gone": dict(map(tuple, sql.ask(connection, "pages/project_gone", project=every))),
        "related": related[:MOST_LINKS],
        "more_related": max(len(related) - MOST_LINKS, 0),
        "more": more,
        "most": MOST,
        **found,
    }


class _Usage:
    """What a project and its worktrees hold and cost, each alone and all together."""

    def __init__(self, ids: list[int], rows: Iterable[sqlite3.Row]) -> None:
        """`ids` are the projects of one directory."""
        self.sessions: dict[int, int] = {}
        self.costs: dict[int, Cost] = {}
        for row in rows:
            self.sessions[row["id"]] = row["session_count"]
            self.costs[row["id"]] = Cost(
                row["cost_usd"] or 0.0, row["responses"], row["unpriced"], row["partial"]
            )
        self.own_sessions = sum(self.sessions[one] for one in ids)
        self.own_cost = together(self.costs[one] for one in ids)
        self.all_sessions = sum(self.sessions.values())
        self.all_cost = together(self.costs.values())
        self.has_worktrees = len(self.sessions) > len(ids)
