"""`recent`: what was done lately, and what is left open."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated

from .question import FilterFields, Reader, Size, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.filters import Filters
    from ..ask.refs import Names

_OPEN = 100
_MOST_BRANCHES = 20
_PROMPTS = 4  # from each end
_LONGEST = 600  # letters of a prompt

Mask = Callable[[str], str]
_LISTS = ("sessions", "open")


@dataclass
class Prompt:
    """What a person typed, cut."""

    ref: str | None
    number: int
    time: str | None
    text: str


@dataclass
class Outcome:
    ref: str | None
    time: str | None
    text: str


@dataclass
class Said:
    """An answer, cut."""

    ref: str | None
    text: str


@dataclass
class Failed:
    """A command that failed."""

    ref: str | None
    text: str
    exit_code: int | None


@dataclass
class Recent:
    """A conversation, or an open item."""

    kind: Annotated[str, "conversation; for open items: task, todo, inbox, plan, session"]
    key: Annotated[str | None, "What `open` takes."]
    title: str | None
    project: str | None
    repository: str | None
    text: Annotated[str | None, "The open item."] = None
    status: str | None = None
    time: str | None = None
    branch: Annotated[str | None, "The last one in its lines."] = None
    cwd: str | None = None
    source: str | None = None
    started: str | None = None
    ended: str | None = None
    prompt_count: int | None = None
    tool_calls: int | None = None
    branches: Annotated[list[str], "All of them, if there are several."] = field(
        default_factory=list
    )
    state: Annotated[str | None, "How it ended."] = None
    noted: Annotated[list[dict[str, object]], "Notes of the user on it."] = field(
        default_factory=list
    )
    prompts: Annotated[list[Prompt], "The first and the last."] = field(default_factory=list)
    outcome: Annotated[Said | None, "The last answer."] = None
    failed_command: Annotated[Failed | None, "The last command, if it failed."] = None


@dataclass
class Work:
    """What was done and what is open."""

    conversations: Annotated[int, "Number of conversations."]
    open: Annotated[int, "Number of open items, at most 100."]
    nothing: Annotated[dict[str, object] | None, "why there are no items"]
    total: Annotated[int, "Conversations and open items."]
    items: Annotated[list[Recent], "Conversations, the newest first, then open items."]
    _has_more_open: bool
    _why: list[str]


@question(
    "Recent work and open items",
    items="conversations",
    about="Recent work and open items: the newest conversations of a project with their prompts, "
    "last answer, how they ended and a last command that failed; then unfinished tasks, todos, "
    "plans and unread messages. Call it at the beginning of work, with the cwd.",
    terminal=Size(6), json=Size(6), mcp=Size(6, most=50), web=Size(20),
)  # fmt: skip
def recent(
    reader: Reader,
    filters: Annotated[
        Filters, FilterFields(("project", "repository", "cwd", "branch", "since", "until"))
    ],
) -> Work:
    """Show what was done lately, and what is left open.

    The newest conversations with their first and last prompt, how they ended and what the agent
    said last; then unfinished tasks, todos and plans, and unread messages.

    \b
    Examples:
      assoc-ingest recent --project .
      assoc-ingest recent --since yesterday -n 20
    """
    from .. import sql
    from ..ask.filters import nothing
    from ..ask.refs import Names

    where = where_of(reader.db, filters)
    sessions = sql.ask(reader.db, "lists/sessions", **where, limit=reader.limit).fetchall()
    left = sql.ask(reader.db, "lists/open", **where, limit=_OPEN + 1).fetchall()
    rows = [*sessions, *left[:_OPEN]]
    names = Names(reader.db)
    why = None if rows else nothing(filters, lambda other: _count(reader.db, other))
    items = [
        _open(reader, row) if number >= len(sessions) else _conversation(reader, row, names)
        for number, row in enumerate(rows)
        if number >= reader.start
    ]
    return Work(
        len(sessions), min(len(left), _OPEN), why and why.as_json(), len(rows), items,
        len(left) > _OPEN, [*why.lines("item")] if why else [],
    )  # fmt: skip


def where_of(connection: sqlite3.Connection, filters: Filters) -> dict[str, object]:
    """Return the parameters of lists with these filters: a cwd means its projects."""
    from ..errors import UsageError

    if filters.cwd and (filters.project or filters.repository):
        raise UsageError("Give the cwd, or the project or repository, not both.")
    given = filters.parameters(connection)
    if filters.cwd:
        given["project"] = json.dumps(_around(connection, filters.cwd))
    return {name: given[name] for name in ("project", "branch", "since", "until")}


def _count(connection: sqlite3.Connection, filters: Filters) -> int:
    """Return how many conversations and open entries there are."""
    from .. import sql

    where = where_of(connection, filters)
    lists = (sql.ask(connection, f"lists/{name}", **where, limit=-1) for name in _LISTS)
    return sum(1 for rows in lists for _ in rows)


def _around(connection: sqlite3.Connection, directory: str) -> list[int]:
    """Return the projects of a directory: what is there, or nearest above it."""
    from .. import sql
    from ..ask.projects import find_projects, nearest_above
    from ..errors import NotFoundError, UsageError

    if not PurePosixPath(directory).is_absolute() and not PureWindowsPath(directory).is_absolute():
        raise UsageError("cwd is a directory: give its absolute path.")
    rows = sql.ask(connection, "pages/project_names").fetchall()
    above = nearest_above(directory, rows)
    if above is None:
        raise NotFoundError("Nothing is known of this directory or its parents.")
    ids = set(find_projects(connection, above["path"]))
    return sorted(ids | {row["id"] for row in rows if row["parent_id"] in ids})


def _open(reader: Reader, row: sqlite3.Row) -> Recent:
    return Recent(
        row["what"], _key(reader, row), row["session"], row["project"], row["repository"],
        row["text"], row["status"], row["last_activity"],
    )  # fmt: skip


def _conversation(reader: Reader, row: sqlite3.Row, names: Names) -> Recent:
    from .. import sql
    from ..ask.notes import notes_above, told

    id = row["id"]
    state, outcome = ending(reader.db, id, names, reader.mask)
    noted = notes_above(reader.db, str(row["session_key"]), None)
    failed = sql.ask(reader.db, "pages/last_commands", sessions=f"[{id}]").fetchone()
    return Recent(
        kind="conversation",
        key=_key(reader, row),
        title=row["title"],
        project=row["project"],
        repository=row["repository"],
        branch=row["git_branch"],
        cwd=row["cwd"],
        source=row["source"],
        started=row["started_at"],
        ended=row["ended_at"],
        prompt_count=row["prompt_count"],
        tool_calls=row["tool_call_count"],
        branches=branches(reader.db, id),
        state=state,
        noted=told(noted, reader.mask),
        prompts=prompts(reader.db, id, names, reader.mask, 1),
        outcome=Said(outcome.ref, outcome.text) if outcome else None,
        failed_command=None if failed is None else Failed(
            names.of(failed["file_id"], failed["byte_offset"]), failed["target"],
            failed["exit_code"],
        ),
    )  # fmt: skip


def _key(reader: Reader, row: sqlite3.Row) -> str | None:
    from ..ask.refs import short_key

    key = row["session_key"]
    return short_key(reader.db, str(key)) if key else None


def branches(connection: sqlite3.Connection, session: object) -> list[str]:
    """Return the branches on which a conversation was held, if there were several."""
    from .. import sql

    rows = sql.ask(connection, "pages/session_branches", session=session)
    stated = [str(row["branch"]) for row in islice(rows, _MOST_BRANCHES)]
    return stated if len(stated) > 1 else []


def prompts(
    connection: sqlite3.Connection, session: object, names: Names, mask: Mask, most: int = _PROMPTS
) -> list[Prompt]:
    """Return the first and the last prompts of a conversation."""
    from .. import sql
    from ..ask.conversation import typed

    rows = sql.ask(connection, "pages/session_prompts", sessions=f"[{session}]", limit=most)
    return [
        Prompt(
            names.of(row["file_id"], row["byte_offset"]), row["number"], row["timestamp"],
            _cut(mask(typed(row["kind"], row["text"] or "")), _LONGEST),
        )
        for row in rows
    ]  # fmt: skip


def ending(
    connection: sqlite3.Connection, session: int, names: Names, mask: Mask, most: int = _LONGEST
) -> tuple[str, Outcome | None]:
    """Return how a conversation ended, and the last text of the agent."""
    return endings(connection, [session], names, mask, most)[session]


def endings(
    connection: sqlite3.Connection,
    sessions: Collection[int],
    names: Names,
    mask: Mask,
    most: int = _LONGEST,
) -> dict[int, tuple[str, Outcome | None]]:
    """Return how each of these conversations ended, and the last text of the agent."""
    from .. import sql

    asked = json.dumps([*sessions])
    states = dict(map(tuple, sql.ask(connection, "pages/session_ends", sessions=asked)))
    newest: dict[int, sqlite3.Row] = {}
    for row in sql.ask(connection, "pages/last_answers", sessions=asked):
        newest.setdefault(row["session_id"], row)
    last = {session: row for session, row in newest.items() if row["byte_offset"] is not None}
    names.look_up(row["file_id"] for row in last.values())
    outcomes = {
        session: Outcome(
            names.of(row["file_id"], row["byte_offset"]),
            row["timestamp"],
            _cut(mask(str(row["text"])), most),
        )
        for session, row in last.items()
    }
    return {
        session: (str(states.get(session, "finished")), outcomes.get(session))
        for session in sessions
    }


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"
