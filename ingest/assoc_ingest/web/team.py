"""The page of one team: its members, each one's inbox as a thread, and its tasks."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from .. import humanize, sql
from . import pages
from .budget import Budget
from .conversation import session_path
from .html import markdown
from .named_row import named_row
from .tool_input import fields

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = ("teams", "team_members", "inbox_items", "tasks", "task_dependencies", "sessions")
MOST = 200
"""Messages of a team on its page, and tasks; the tables have the others."""

MOST_MEMBERS = 100
"""Members of a team on its page."""

_SHOWN = {"type", "from", "timestamp"}  # of a message between programs: they stand above it


@dataclass(slots=True)
class Letter:
    """A message from one member to another."""

    id: int
    sender: str
    moment: str
    kind: str
    body: Markup
    is_unread: bool
    is_gone: bool


@dataclass(slots=True)
class Thread:
    """The inbox of one member, the oldest message first."""

    name: str
    member: pages.Row | None
    letters: list[Letter] = field(default_factory=list)


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page of the team that the address names by number, name or key."""
    from datasette.utils import tilde_decode

    database = tilde_decode(request.url_vars["database"])
    wanted = pages.named(request, "team")
    base = f"{datasette.urls.database(database)}/-"
    budget = Budget()
    context = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, wanted, f"{base}/team", budget),
    )  # fmt: skip
    context |= {
        "database": database,
        "display": humanize,
        "markdown": partial(markdown, budget=budget),
        "base": base,
        "most": MOST,
        "session_path": lambda key: session_path(datasette, database, key),
        "table": lambda name: datasette.urls.table(database, name),
    }
    return await pages.page(datasette, request, "team", context)


def _read(
    connection: sqlite3.Connection, wanted: str, address: str, budget: Budget
) -> dict[str, object]:
    team = named_row(connection, "pages/team", wanted, "team", address)
    members = pages.ask(connection, "pages/team_members", "prompt", team=team["id"])
    letters = pages.ask(
        connection, "pages/team_inbox", "text", "summary", team=team["id"], limit=MOST + 1
    )
    tasks = pages.ask(
        connection, "pages/team_tasks", "description", team=team["id"], limit=MOST + 1
    )
    # Asked before the threads are laid out: the time that this takes counts as the queries' own.
    gone = dict(map(tuple, sql.ask(connection, "pages/team_gone", team=team["id"])))
    return {
        "title": team["name"],
        "team": team,
        "threads": _threads(members[:MOST_MEMBERS], letters[:MOST], budget),
        "more_members": max(len(members) - MOST_MEMBERS, 0),
        "has_older": len(letters) > MOST,
        "gone": gone,
        "tasks": tasks[:MOST],
        "has_more_tasks": len(tasks) > MOST,
    }


def _threads(members: list[pages.Row], letters: list[pages.Row], budget: Budget) -> list[Thread]:
    threads = {str(member["name"]): Thread(str(member["name"]), member) for member in members}
    for row in reversed(letters):
        name = str(row["recipient"] or "(nobody)")
        thread = threads.setdefault(name, Thread(name, None))
        thread.letters.append(
            Letter(
                id=row["id"],
                sender=str(row["sender"] or "(unknown)"),
                moment=humanize.moment(row["timestamp"]),
                kind=row["kind"],
                body=_body(row, budget),
                is_unread=row["is_read"] == 0,
                is_gone=row["gone_at"] is not None,
            )
        )
    return list(threads.values())


def _body(row: pages.Row, budget: Budget) -> Markup:
    """Return what a message says; programs write JSON to each other."""
    text = row["text"] or row["summary"] or ""
    try:
        inner = json.loads(text) if row["kind"] != "message" else None
        if isinstance(inner, dict):
            shown = {key: value for key, value in inner.items() if key not in _SHOWN}
            return fields(shown, budget)
    except (ValueError, RecursionError):  # no JSON, or nested a thousand times
        pass
    return markdown(text, budget)
