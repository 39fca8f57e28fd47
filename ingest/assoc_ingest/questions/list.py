"""`list`: the rows of one kind, such as sessions, projects or tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from .question import Field, FilterFields, Reader, Size, Table, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.filters import Filters, Nothing
    from ..sql import Query

_ADDED = ("unpriced", "partial", "is_lower_bound", "is_starred", "resume")
"""The last columns of sessions: what is unknown of the cost, and the command that resumes one."""

Row = dict[str, Any]


@dataclass
class Listing:
    """The rows of a list."""

    hidden: Annotated[dict[str, int], "options that show more rows, and how many: {--all, --gone}"]
    nothing: Annotated[dict[str, object] | None, "why there are no rows"]
    total: Annotated[int, "All rows."]
    items: Annotated[list[Row], "Rows."]
    columns: list[str]
    _notes: list[str]

    def table(self, limit: int = 0, *, is_exact: bool = False) -> Table:
        """Return the rows, which are limited already."""
        return Table([tuple(item.values()) for item in self.items], self._notes)


@question(
    "Lists",
    items="rows",
    about="",
    terminal=Size(30), json=Size(30),
)  # fmt: skip
def list_(
    reader: Reader,
    what: Annotated[str, Field("What to list.", completes="lists")],
    *,
    filters: Annotated[
        Filters,
        FilterFields(
            (
                "project",
                "repository",
                "source",
                "branch",
                "model",
                "status",
                "since",
                "until",
                "errors",
                "min_cost",
            )
        ),
    ],
    cwd: Annotated[
        str | None,
        Field("Only teams with a member in this directory; all teams if there are none."),
    ] = None,
    all: Annotated[bool, Field("Include rows that are hidden by default.")] = False,
    gone: Annotated[
        bool, Field("Include entries that no longer exist; --all includes them too.")
    ] = False,
    remote: Annotated[
        bool, Field("Use the fleet server, with the data of all machines.", is_option=True)
    ] = False,
) -> Listing:
    """List sessions, repositories, tasks and more.

    WHAT is one of: sessions, repositories, projects, open (unfinished work), notes, tasks, todos,
    plans, inbox, teams, agents, subagents, prompts, links, files, issues. Next to a lower bound (≥)
    is an estimate (~), if it can be measured.

    \b
    Examples:
      assoc-ingest list sessions --project shop --since 7d
      assoc-ingest list open
      assoc-ingest list tasks --all --json
    """  # fmt: skip
    from .. import sql
    from ..ask.filters import nothing
    from ..paths import is_directory, real_path

    query = find_list(what)
    if cwd is not None and reader.has_disk and is_directory(cwd):
        cwd = str(real_path(cwd))
    filters = replace(filters, cwd=cwd, all=all, gone=gone)
    filters.applied(query.parameters, what, _lists_with)
    given = parameters(reader.db, query, filters)
    until = reader.start + reader.limit
    cursor = reader.db.execute(query.sql, {**given, "limit": until + 1})
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    total = len(rows) if len(rows) <= until else sql.count(reader.db, query, given)
    why = None
    if not total:
        why = nothing(filters, lambda other: count(reader.db, query, other))
    hidden = _hidden(reader.db, query, given)
    items = _completed(reader.db, what, reader.page(rows), remote=remote)
    return Listing(
        {f"--{name}": count for name, count in hidden.items()},
        why and why.as_json(), total, items, columns(what, names),
        _notes(len(items), total, why, hidden),
    )  # fmt: skip


def parameters(connection: sqlite3.Connection, query: Query, filters: Filters) -> dict[str, object]:
    """Return the parameters of a list that are filters, as it takes them."""
    given = filters.parameters(connection)
    return {name: value for name, value in given.items() if name in query.parameters}


def count(connection: sqlite3.Connection, query: Query, filters: Filters) -> int:
    """Return how many rows a list has with these filters."""
    from .. import sql

    return sql.count(connection, query, parameters(connection, query, filters))


def find_list(what: str) -> Query:
    """Return the list called `what`; raise UsageError with the nearest, or all there are."""
    from .. import sql
    from ..errors import UsageError, did_you_mean

    lists = sql.queries("lists")
    if what in lists:
        return lists[what]
    if what in sql.queries("reports"):
        raise UsageError(f"{what!r} is a report, so run: assoc-ingest query {what}")
    hint = did_you_mean(sql.normalized(what), lists) or f" There are: {', '.join(lists)}."
    raise UsageError(f"No list named {what!r}.{hint}")


def columns(what: str, names: Sequence[str]) -> list[str]:
    """Return the columns of a list whose query has these."""
    from ..ask.usage import columns_with_estimates

    if what == "sessions":
        at = names.index("ended_at") + 1
        names = [*names[:at], "cost_usd", *names[at:]]
        names = [*(name for name in names if name not in _ADDED), *_ADDED]
    if what == "notes":
        names = ["ref", *names]
    return columns_with_estimates(names)


def _lists_with(option: str) -> str:
    """Return the end of a sentence that says to which lists an option applies."""
    from .. import sql
    from ..ask.filters import parameter_of

    wanted = parameter_of(option)
    having = [name for name, one in sql.queries("lists").items() if wanted in one.parameters]
    return f", but to: {', '.join(having)}." if having else "."


def _completed(
    connection: sqlite3.Connection, what: str, rows: Sequence[Row], *, remote: bool
) -> list[Row]:
    """Return rows with what their query does not know: costs, and estimates of lower bounds."""
    if what == "sessions":
        names = columns(what, [*rows[0]]) if rows else ()
        starred = _starred(connection)
        sessions = (
            {**row, "is_starred": int(row["session_key"] in starred), "resume": _resume(row)}
            for row in with_costs(connection, rows)
        )
        return [{name: row[name] for name in names} for row in sessions]
    if what == "notes" and remote:
        return [{"ref": None, **row} for row in rows]  # nothing here opens it
    if what == "notes":
        return _with_refs(connection, rows)
    return _of_subagents(connection, rows) if what == "subagents" else [*rows]


def with_costs(connection: sqlite3.Connection, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield sessions with what each cost, and what else `pages/sessions_usage` says of it.

    Cost and output are lower bounds if responses are unpriced or partial; all are None if they are
    not known.
    """
    from .. import sql
    from ..ask.usage import partial_responses, with_estimates

    ids = json.dumps([row["id"] for row in rows])
    usage = {row["id"]: row for row in sql.ask(connection, "pages/sessions_usage", sessions=ids)}
    unsure = [row for row in rows if row["partial"]]
    partial = partial_responses(connection, unsure, "session_id")
    sessions = []
    for row in rows:
        used = dict(usage[row["id"]])
        is_lower_bound = int(bool(used["unpriced"] or used["partial"]))
        models = json.loads(row["models"] or "[]")
        sessions.append({**row, **used, "models": models, "is_lower_bound": is_lower_bound})
    parts = [partial.get((row["id"],), []) for row in rows]
    return with_estimates(connection, sessions, parts)


def _starred(connection: sqlite3.Connection) -> set[str]:
    """Return the keys of the conversations to which the user gave a star."""
    rows = connection.execute(
        "select session_key from notes where is_starred = 1 and path is null and line_key is null"
    )
    return {key for (key,) in rows}


def _with_refs(connection: sqlite3.Connection, rows: Sequence[Row]) -> list[Row]:
    """Return notes with what opens their target, which only the archive knows of a line."""
    from ..ask.notes import notes

    return [{"ref": notes(connection, id=row["id"])[0].ref, **row} for row in rows]


def _resume(session: Row) -> str | None:
    from ..ask.conversation import resume_line

    return resume_line(session, is_there=bool(session["is_there"]))


def _of_subagents(connection: sqlite3.Connection, rows: Sequence[Row]) -> list[Row]:
    """Add an estimate to each subagent whose tokens are a lower bound.

    A subagent that two homes have is two rows with one key: neither has an estimate.
    """
    from ..ask.usage import partial_responses, with_estimates

    unsure = [row for row in rows if row["is_lower_bound"]]
    partial = partial_responses(connection, unsure, "session_key", "agent_key")
    parts = [partial.get((row["session_key"], row["agent_key"]), []) for row in rows]
    homes = [{part["subagent_id"] for part in of_row} for of_row in parts]
    parts = [part if len(ids) == 1 else [] for part, ids in zip(parts, homes, strict=True)]
    return [*with_estimates(connection, rows, parts)]


def _hidden(
    connection: sqlite3.Connection, query: Query, parameters: Mapping[str, object]
) -> dict[str, int]:
    """Return how many more rows a list has with each option that it has."""
    from .. import sql

    options = [name for name in ("gone", "all") if name in parameters and not parameters[name]]
    if not options or parameters.get("all"):
        return {}
    more = {}
    counted = sql.count(connection, query, parameters)
    for option in options:  # all includes what is gone
        parameters = {**parameters, option: 1}
        before, counted = counted, sql.count(connection, query, parameters)
        more[option] = counted - before
    return {name: count for name, count in more.items() if count}


def _notes(shown: int, total: int, why: Nothing | None, hidden: Mapping[str, int]) -> list[str]:
    """Return what a reader should know of the rows, in sentences."""
    from ..terminal import many

    notes = []
    if why is not None:
        notes += ["Nothing to list.", *why.lines("row")]
    elif shown < total:
        notes.append(f"Only the first {shown:,} of {total:,} are shown; --limit 0 shows all.")
    for option, count in hidden.items():
        if option == "gone":
            notes.append(f"{many(count, 'entry', 'entries')} no longer present; show with --gone.")
        else:
            notes.append(f"{count:,} more with --all.")
    return notes
