"""Runs the queries in queries/ by name, with parameters, and prints the rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from itertools import islice

from .. import humanize, sql
from ..errors import UsageError
from ..sql import Query
from .answer import Answer, Item
from .filters import Filters, Nothing, nothing
from .output import Format, say, write, write_objects, write_rows
from .query_names import find_list, find_query
from .query_parser import bindable
from .resume import resume_line

_NUMBERS = {"limit", "days"}
"""Parameters that take a number; SQLite would read any other text as 0."""

_GIVEN = {field.name for field in fields(Filters)}
"""Parameters that mean what the options of these names mean."""


def write_list(
    connection: sqlite3.Connection, what: str, form: Format, wanted: Filters, limit: int = 30
) -> None:
    """Print at most `limit` rows of `list WHAT`, 0 for all, and say what is left out.

    Raises UsageError if there is no such list, or if it has not what is asked for.
    """
    query = find_list(what)

    def asked(filters: Filters) -> dict[str, object]:
        given = filters.parameters(connection)
        return {name: value for name, value in given.items() if name in query.parameters}

    def why_nothing() -> Nothing:
        return nothing(wanted, lambda other: _count(connection, query, asked(other)))

    parameters = asked(wanted.applied(query.parameters, what, _lists_with))
    hidden = {name: n for name, n in _hidden(connection, query, parameters).items() if n}
    if form.wanted is not None:
        answer = Answer(connection, ["list", what, asdict(wanted)], form.wanted)
        items, _ = _items(connection, query, parameters, limit and answer.start + limit + 1)
        total = _count(connection, query, parameters)
        rest = islice(items, answer.start, None)
        before: dict[str, object] = {"hidden": {f"--{name}": n for name, n in hidden.items()}}
        before |= {} if total else {"nothing": why_nothing().as_json()}
        write(answer.pieces(rest, total=total, limit=limit or None, before=before))
        return
    items, names = _items(connection, query, parameters, limit and limit + 1)
    shown = [*islice(items, limit or None)]
    if form.name == "nl":
        write_objects(shown)
    else:
        write_rows(connection, names, [tuple(item.values()) for item in shown], form)
    if not shown:
        say("\n".join(["Nothing to list.", *why_nothing().lines("row")]))
    elif next(items, None) is not None:
        total = _count(connection, query, parameters)
        say(f"Only the first {limit:,} of {total:,} are shown; --limit 0 shows all.")
    for option, count in hidden.items():
        if option == "gone":
            say(f"{humanize.many(count, 'entry', 'entries')} no longer present; show with --gone.")
        else:
            say(f"{count:,} more with --all.")


def _lists_with(option: str) -> str:
    """Return the end of a sentence that says to which lists an option applies."""
    having = [name for name, one in sql.queries("lists").items() if option in one.parameters]
    return f", but to: {', '.join(having)}." if having else "."


def _items(
    connection: sqlite3.Connection, query: Query, parameters: Mapping[str, object], limit: int
) -> tuple[Iterator[Item], list[str]]:
    """Return the rows of a list, at most `limit` or all for 0, and the names of their columns."""
    cursor = connection.execute(query.sql, {**parameters, "limit": limit or -1})
    names = _names(cursor)
    items = (dict(zip(names, row, strict=True)) for row in cursor)
    if query.name != "list_sessions":
        return items, names
    sessions = _with_cost(connection, list(items))
    return iter(sessions), list(sessions[0]) if sessions else names


def _with_cost(connection: sqlite3.Connection, sessions: list[dict[str, object]]) -> list[Item]:
    """Add to each session what it cost, and the command that goes on with it.

    Cost and output are lower bounds where responses are unpriced or partial; all are None where
    they are not known.
    """
    ids = json.dumps([session["id"] for session in sessions])
    usage = {row["id"]: row for row in sql.ask(connection, "pages/sessions_usage", sessions=ids)}
    added: list[Item] = []
    for session in sessions:
        known = usage[session["id"]]
        item: dict[str, object] = {}
        for name, value in session.items():
            item[name] = value
            if name == "ended_at":
                item["cost_usd"] = known["cost_usd"]
        item["models"] = json.loads(str(session["models"] or "[]"))
        item["unpriced"], item["partial"] = known["unpriced"], known["partial"]
        item["is_lower_bound"] = int(bool(known["unpriced"] or known["partial"]))
        place = {**session, "project_path": known["project_path"]}
        item["resume"] = resume_line(place, is_there=bool(known["is_there"]))
        added.append(item)
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


def write_query(
    connection: sqlite3.Connection,
    name: str,
    parameters: Mapping[str, str],
    form: Format,
    limit: int | None = None,
) -> None:
    """Print at most `limit` rows of a query, 0 for all; a parameter that is not given is NULL.

    None leaves the number to the query, which may limit itself by a parameter of that name. Raises
    UsageError if there is no such query, or if it does not take these parameters.
    """
    query = find_query(name)
    given = _given(connection, query, parameters)
    bound = {
        key: bindable(value) if isinstance(value, str) else value for key, value in given.items()
    }
    answer = form.wanted and Answer(connection, ["query", name, dict(parameters)], form.wanted)
    total = None
    if "limit" in bound and not bound["limit"]:  # the query limits itself
        total = _count(connection, query, {**bound, "limit": -1})
        if limit is not None:
            bound["limit"] = (answer.start if answer else 0) + limit + 1 if limit else -1
    cursor = connection.execute(query.sql, bound)
    names, rows = _names(cursor), [tuple(row) for row in cursor]
    total = len(rows) if total is None else total
    if answer:
        items = (dict(zip(names, row, strict=True)) for row in rows[answer.start :])
        write(answer.pieces(items, total=total, limit=limit or None))
        return
    shown = rows[: limit or None]
    write_rows(connection, names, shown, form)
    if not rows:
        missing = [key for key, value in given.items() if value is None]
        say("No rows." + (f" {_parameters_of(query)}" if missing else ""))
    elif total > len(shown):
        say(f"Only the first {len(shown)} of {total:,} rows are shown; --limit 0 shows all.")


def _given(
    connection: sqlite3.Connection, query: Query, parameters: Mapping[str, str]
) -> dict[str, object]:
    """Return all parameters of a query as it takes them. Raises UsageError for what it does not."""
    unknown = [key for key in parameters if key not in query.parameters]
    if unknown:
        raise UsageError(f"{query.name} has no parameter {unknown[0]!r}. {_parameters_of(query)}")
    for key in _NUMBERS & parameters.keys():
        if not _is_number(parameters[key]):
            raise UsageError(f"The parameter {key} takes a number, not {parameters[key]!r}.")
    filters = Filters.of(parameters).parameters(connection)
    known = {key: filters[key] for key in _GIVEN & parameters.keys() if key in filters}
    return {key: known.get(key, parameters.get(key)) for key in query.parameters}


def _is_number(text: str) -> bool:
    """Is this a number, or nothing, which leaves the parameter out?"""
    digits = text.removeprefix("-").replace(".", "", 1)
    return not text or (digits.isascii() and digits.isdecimal())


def _count(connection: sqlite3.Connection, query: Query, parameters: Mapping[str, object]) -> int:
    # PostgreSQL before 16 wants a name for it.
    statement = f"select count(*) from ({query.sql}) as counted"
    (count,) = connection.execute(statement, {"limit": -1, **parameters}).fetchone()
    return int(count)


def _parameters_of(query: Query) -> str:
    if not query.parameters:
        return "It has no parameters."
    return f"Parameters: {', '.join(query.parameters)}."


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]
