"""Runs the queries in queries/ by name, with parameters, and prints the rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from .. import humanize, sql
from ..errors import UsageError
from ..sql import Query
from .output import Format, Row, say, write_rows
from .project_names import project_ids
from .query_names import find_list, find_query
from .query_parser import bindable
from .resume import resume_line

_NUMBERS = {"limit", "days"}
"""Parameters that take a number; SQLite would read any other text as 0."""


def write_list(
    connection: sqlite3.Connection,
    what: str,
    form: Format,
    *,
    project: str | None = None,
    cwd: str | None = None,
    everything: bool = False,
    gone: bool = False,
    limit: int = 30,
) -> None:
    """Print the rows of `list WHAT`; say on standard error if there are more.

    Raises UsageError if there is no such list, or if it has not what is asked for.
    """
    query = find_list(what)
    if cwd is not None and "cwd" not in query.parameters:
        raise UsageError(f"--cwd works only with teams; for {what}, use --project.")
    if gone and "gone" not in query.parameters:
        raise UsageError(
            f"--gone does not apply to {what}, which never hides gone entries. Leave it out."
        )
    given: dict[str, object] = {
        "cwd": cwd,
        "project": project_ids(connection, project) if project else None,
        "all": 1 if everything else None,
        "gone": 1 if gone else None,
        "limit": limit + 1 if limit else -1,
    }
    parameters = {name: given[name] for name in query.parameters}
    cursor = connection.execute(query.sql, parameters)
    names = _names(cursor)
    rows: list[Row] = [tuple(row) for row in islice(cursor, limit or None)]
    if what == "sessions" and form.name in ("json", "nl"):
        rows = _with_cost(connection, names, rows)
        names = [*names, "cost_usd", "unpriced", "resume"]
    write_rows(connection, names, rows, form)
    if not rows:
        say("Nothing to list.")
    elif cursor.fetchone() is not None:
        say(f"Only the first {limit} are shown; --limit 0 shows all.")
    for option, hidden in _hidden(connection, query, parameters).items():
        if hidden and option == "gone":
            say(f"{humanize.many(hidden, 'entry', 'entries')} no longer present; show with --gone.")
        elif hidden:
            say(f"{hidden:,} more with --all.")


def _with_cost(
    connection: sqlite3.Connection, names: Sequence[str], rows: Iterable[Row]
) -> list[Row]:
    """Add to each session what it cost, and the command that goes on with it.

    The cost is a lower bound where responses are unpriced; both are None where they are not known.
    """
    sessions = [dict(zip(names, row, strict=True)) for row in rows]
    ids = json.dumps([session["id"] for session in sessions])
    usage = {row["id"]: row for row in sql.ask(connection, "pages/sessions_usage", sessions=ids)}
    added: list[Row] = []
    for session in sessions:
        known = usage[session["id"]]
        resume = resume_line(session, is_there=bool(known["is_there"]))
        added.append((*session.values(), known["cost_usd"], known["unpriced"], resume))
    return added


def _hidden(
    connection: sqlite3.Connection, query: Query, parameters: Mapping[str, object]
) -> dict[str, int]:
    """Return how many rows more a list would have with each option that it has."""
    options = [name for name in ("gone", "all") if name in parameters and not parameters[name]]
    if not options or parameters.get("all"):
        return {}
    more = {}
    counted = _count(connection, query, parameters)
    for option in options:  # what is gone is part of all
        parameters = {**parameters, option: 1}
        before, counted = counted, _count(connection, query, parameters)
        more[option] = counted - before
    return more


def write_answer(
    connection: sqlite3.Connection, name: str, parameters: Mapping[str, str], form: Format
) -> None:
    """Print the rows of a query; a parameter that is not given is NULL.

    Raises UsageError if there is no such query, or if it does not take these parameters.
    """
    query = find_query(name)
    unknown = [key for key in parameters if key not in query.parameters]
    if unknown:
        raise UsageError(f"{name} has no parameter {unknown[0]!r}. {_parameters_of(query)}")
    for key in _NUMBERS & parameters.keys():
        if not _is_number(parameters[key]):
            raise UsageError(f"The parameter {key} takes a number, not {parameters[key]!r}.")
    given = {key: parameters.get(key) for key in query.parameters}
    if given.get("project"):
        given["project"] = project_ids(connection, given["project"] or "")
    bound = {key: None if value is None else bindable(value) for key, value in given.items()}
    cursor = connection.execute(query.sql, bound)
    rows: Sequence[Row] = [tuple(row) for row in cursor]
    write_rows(connection, _names(cursor), rows, form)
    if not rows:
        missing = [key for key, value in given.items() if value is None]
        say("No rows." + (f" {_parameters_of(query)}" if missing else ""))


def _is_number(text: str) -> bool:
    """Is this a number, or nothing, which leaves the parameter out?"""
    digits = text.removeprefix("-").replace(".", "", 1)
    return not text or (digits.isascii() and digits.isdecimal())


def _count(connection: sqlite3.Connection, query: Query, parameters: Mapping[str, object]) -> int:
    statement = f"select count(*) from ({query.sql})"
    row = connection.execute(statement, {**parameters, "limit": -1}).fetchone()
    return int(row[0])


def _parameters_of(query: Query) -> str:
    if not query.parameters:
        return "It has no parameters."
    return f"Parameters: {', '.join(query.parameters)}."


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]
