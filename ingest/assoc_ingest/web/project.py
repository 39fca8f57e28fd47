"""The pages of one project and of one team."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from .. import sql
from . import pages
from .html import Budget, fields, markdown
from .pages import MOST_LINKS, PageError
from .urls import Paths
from .usage import Used

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


# ------------------------------------------------------------------------------------------------
# Finds the project or team that an address names by id, name or key.


def named_row(
    connection: sqlite3.Connection,
    query: str,
    wanted: str,
    word: str,
    address: Callable[[object], str],
) -> pages.Row:
    """Return the one row that `query` finds.

    Raises PageError: 404 where there is none, 300 with links where there are more.
    """
    digits = wanted.removeprefix("-")  # an id of a server can be negative
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 20
    number = int(wanted) if is_number and abs(int(wanted)) < 2**63 else None
    rows = pages.ask(connection, query, id=number, name=wanted)
    if not rows:
        raise PageError(404, f"No {word} matches {wanted!r}.")
    if len(rows) > 1:
        links = [
            (f"{row['name']} in {row['root']} ({row['key']})", address(row["id"])) for row in rows
        ]
        raise PageError(300, f"{len(rows)} {word}s are named {wanted!r}.", links)
    return rows[0]


# ------------------------------------------------------------------------------------------------
# The page of one team: its members, each one's inbox as a thread, and its tasks.


TEAM_TABLES = ("teams", "team_members", "inbox_items", "tasks", "task_dependencies", "sessions")
MOST_SHOWN = 200
"""Messages of a team on its page, and tasks; the tables have the others."""
MOST_MEMBERS = 100
"""Members of a team on its page."""

_SHOWN = {"type", "from", "timestamp"}  # of a message between programs: they stand above it


async def team(datasette: Datasette, request: Request) -> Response:
    """Return the page of a team; the address has its number, name or key."""
    database = pages.named(request, "database")
    wanted = pages.named(request, "team")
    paths = Paths(datasette, database)
    budget = Budget()
    context = await pages.read(
        datasette, request, database, TEAM_TABLES,
        lambda connection: _read_team(connection, wanted, paths.team, budget),
    )  # fmt: skip
    context |= {
        "database": database,
        "markdown": partial(markdown, budget=budget),
        "most": MOST_SHOWN,
    }
    return await pages.page(datasette, request, "team", context)


def _read_team(
    connection: sqlite3.Connection, wanted: str, address: Callable[[object], str], budget: Budget
) -> dict[str, object]:
    team = named_row(connection, "pages/team", wanted, "team", address)
    members = pages.ask(connection, "pages/team_members", "prompt", team=team["id"])
    letters = pages.ask(
        connection, "pages/team_inbox", "text", "summary", team=team["id"], limit=MOST_SHOWN + 1
    )
    tasks = pages.ask(
        connection, "pages/team_tasks", "description", team=team["id"], limit=MOST_SHOWN + 1
    )
    # Asked before the threads are laid out: the time that this takes counts as the queries' own.
    gone = dict(map(tuple, sql.ask(connection, "pages/team_gone", team=team["id"])))
    return {
        "title": team["name"],
        "team": team,
        "threads": _threads(members[:MOST_MEMBERS], letters[:MOST_SHOWN], budget),
        "more_members": max(len(members) - MOST_MEMBERS, 0),
        "has_older": len(letters) > MOST_SHOWN,
        "gone": gone,
        "tasks": tasks[:MOST_SHOWN],
        "has_more_tasks": len(tasks) > MOST_SHOWN,
    }


def _threads(members: list[pages.Row], letters: list[pages.Row], budget: Budget) -> list[pages.Row]:
    """Return the inbox of each member, the oldest message first."""
    threads: dict[str, pages.Row] = {
        str(one["name"]): {"name": one["name"], "member": one, "letters": []} for one in members
    }
    for row in reversed(letters):
        name = str(row["recipient"] or "(nobody)")
        thread = threads.setdefault(name, {"name": name, "member": None, "letters": []})
        thread["letters"].append({**row, "body": _body(row, budget)})
    return list(threads.values())


def _body(row: pages.Row, budget: Budget) -> Markup:
    """Return the text of a message; programs write JSON to each other."""
    text = row["text"] or row["summary"] or ""
    try:
        inner = json.loads(text) if row["kind"] != "message" else None
        if isinstance(inner, dict):
            others = {key: value for key, value in inner.items() if key not in _SHOWN}
            return fields(others, budget)
    except (ValueError, RecursionError):  # no JSON, or nested a thousand times
        pass
    return markdown(text, budget)


# ------------------------------------------------------------------------------------------------
# The page of one project: its sessions, tasks, plans, notes, links, worktrees and teams.


TABLES = ("projects", "sessions", "tasks", "plans", "documents", "links", "teams")
PAGE = 50
"""Sessions on a page."""

MOST = 30
"""Tasks, texts and links on a page, of each."""


async def project(datasette: Datasette, request: Request) -> Response:
    """Return the page of a project; the address has its number, name or key."""
    database = pages.named(request, "database")
    wanted = pages.named(request, "project")
    number = pages.page_number(request.args.get("page"))
    paths = Paths(datasette, database)
    context = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, wanted, number, paths.project),
    )  # fmt: skip
    context |= {
        "database": database,
        "markdown": partial(markdown, budget=Budget()),
        "number": number,
    }
    return await pages.page(datasette, request, "project", context)


def _read(
    connection: sqlite3.Connection, wanted: str, number: int, address: Callable[[object], str]
) -> dict[str, object]:
    project = named_row(connection, "pages/project", wanted, "project", address)
    same = sql.ask(connection, "pages/same_projects", id=project["id"]).fetchall()
    ids = [row["id"] for row in same]
    every = json.dumps(ids)
    lists: dict[str, list[pages.Row]] = {}
    more = []
    for name, *whole in (("tasks", "description"), ("texts", "text"), ("links",)):
        rows = pages.ask(connection, f"pages/project_{name}", *whole, project=every, limit=MOST + 1)
        lists[name] = rows[:MOST]
        if rows[MOST:]:
            more.append(name)
    related = pages.ask(connection, "pages/project_related", project=every)
    usage = _usage(ids, sql.ask(connection, "pages/project_usage", project=every))
    offset = (number - 1) * PAGE
    sessions = pages.ask(
        connection, "pages/project_sessions", project=every, limit=PAGE + 1, offset=offset
    )
    if number > 1 and not sessions:
        raise PageError(
            404, f"There is no page {number} of this project.",
            [("First page", address(project['id']))],
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
        **lists,
    }


def _usage(ids: list[int], rows: Iterable[sqlite3.Row]) -> pages.Row:
    """Return conversations and costs of the projects of one directory and of their worktrees."""
    sessions, costs = {}, {}
    for row in rows:
        sessions[row["id"]] = row["session_count"]
        costs[row["id"]] = Used(
            row["cost_usd"] or 0.0, row["responses"], row["unpriced"], row["partial"]
        )
    return {
        "sessions": sessions,
        "costs": costs,
        "own_sessions": sum(sessions[one] for one in ids),
        "own_cost": sum((costs[one] for one in ids), Used()),
        "all_sessions": sum(sessions.values()),
        "all_cost": sum(costs.values(), Used()),
        "has_worktrees": len(sessions) > len(ids),
    }
