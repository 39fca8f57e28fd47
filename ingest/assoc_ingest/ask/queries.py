"""Runs the queries in queries/ by name; which names there are; what responses used and cost."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import NamedTuple

from .. import sql, terminal
from ..errors import UsageError
from ..sql import Query
from ..terminal import Paint, table
from .answer import Answer, Item
from .conversation import Conversation, resume_line
from .filters import Filters, Nothing, did_you_mean, nothing
from .output import Format, say, write, write_csv, write_objects, write_rows
from .query import bindable

# ------------------------------------------------------------------------------------------------
# What responses used and cost together, and what of it is not known.
#
# A response is *partial* where its final count was never written, and *unpriced* where its model
# has no known price. Sums with such responses are lower bounds and marked so, see `humanize`;
# beside them stands an estimate of what the partial ones wrote (docs/costs.md).


class Estimate(NamedTuple):
    """What responses wrote and cost, with an estimate for those that never stated it.

    A model writes as many tokens for each byte as in its complete responses, or as all models do if
    it has too few of them. What is stated counts if that is more.
    """

    output_tokens: int
    cost_usd: float | None
    unmeasured: int
    """Partial responses without an estimate: the sums include their stated tokens."""


class Stated(NamedTuple):
    """What an agent says itself that a session used and cost, as far as it says it."""

    cost_usd: float | None = None
    output_tokens: int | None = None
    unpriced: int = 0
    """1: the agent knows no price for some of it."""
    is_followed: bool = False
    """The session went on after it."""
    models: Sequence[Mapping[str, object]] = ()
    by: str = "its agent"
    """Who says it: the agent, or the name of an application that repeats the conversation."""

    @property
    def words(self) -> str:
        return f"as {self.by} states{' before it went on' * self.is_followed}"


class Spent(NamedTuple):
    """What responses used and cost together, and how much of that is not known."""

    output_tokens: int = 0
    cost_usd: float | None = None
    responses: int = 0
    unpriced: int = 0
    partial: int = 0
    estimate: Estimate | None = None
    stated: Stated = Stated()

    def tokens(self, output: int) -> str:
        """Return a number of output tokens of these responses, with the estimate, in words."""
        text = f"{terminal.tokens(output, self.partial)} out"
        if self.estimate is not None:
            about, rest = self.estimate.output_tokens, self.estimate.unmeasured
            text += f" ({terminal.tokens(about, rest, is_estimate=True)})"
        stated = self.stated.output_tokens
        if stated is not None and _differ(stated, output):
            text += f", {terminal.tokens(stated)} {self.stated.words}"
        return text

    def cost(self) -> str:
        """Return the cost, with the estimate, in words; '' where it is not known.

        What the agent states is beside it if it is more than a tenth off.
        """
        stated = self.stated.cost_usd
        said = ""
        if stated is not None:
            said = f"{terminal.money(stated, 0, self.stated.unpriced)} {self.stated.words}"
        if self.cost_usd is None:
            return said
        notes = []
        if self.estimate is not None:
            rest = (self.estimate.unmeasured, self.unpriced)
            notes.append(terminal.money(self.estimate.cost_usd, *rest, is_estimate=True))
        if self.unpriced:
            notes.append(f"{terminal.many(self.unpriced, 'response')} unpriced")
        text = terminal.money(self.cost_usd, self.partial, self.unpriced)
        text += f" ({'; '.join(notes)})" if notes else ""
        if stated is not None and _differ(stated, self.cost_usd):
            return f"{text} as counted, {said}"
        return text

    def words(self, session: Mapping[str, object]) -> dict[str, str]:
        """Return the tokens and the cost of a session in words, as far as they are known."""
        number = {key: value for key, value in session.items() if isinstance(value, int)}
        tokens = ""
        if "input_tokens" in number:
            cached = number.get("cache_read_tokens", 0)
            fresh = number["input_tokens"] + number.get("cache_write_tokens", 0)
            tokens = self.tokens(number.get("output_tokens", 0))
            if fresh or cached or not self.partial:  # else the end of the run would have stated it
                known = f"{terminal.tokens(fresh)} in, {terminal.tokens(cached)} from cache"
                tokens = f"{known}, {tokens}"
        words = {"tokens": tokens, "cost": self.cost()}
        return {name: said for name, said in words.items() if said}

    def as_json(self) -> dict[str, object]:
        return {
            "cost_usd": self.cost_usd,
            "unpriced": self.unpriced,
            "partial": self.partial,
            "is_lower_bound": bool(self.unpriced or self.partial),
            "estimated_output_tokens": self.estimate and self.estimate.output_tokens,
            "estimated_cost_usd": self.estimate and self.estimate.cost_usd,
            "stated_cost_usd": self.stated.cost_usd,
            "stated_output_tokens": self.stated.output_tokens,
            "stated_by_model": list(self.stated.models),
        }


def _differ(stated: float, counted: float) -> bool:
    """Is what an agent states more than a tenth off? Less than a cent is not worth a word."""
    return abs(stated - counted) > max(0.01, 0.1 * max(stated, counted))


def stated(cost_usd: float | None, rows: Sequence[sqlite3.Row]) -> Stated:
    """Return what the agent of a session states, from the rows of `session_stated`.

    An application that repeats the conversation is asked if the agent says nothing.
    """
    own = [row for row in rows if row["stated_by"] is None]
    models = [
        {name: row[name] for name in ("model", "output_tokens", "cost_usd", "is_lower_bound")}
        for row in own
        if row["model"] != ""
    ]
    known = Stated(cost_usd, models=models)
    for row in own if cost_usd is not None or own else rows[:1]:
        if row["model"] == "":
            known = known._replace(
                cost_usd=row["cost_usd"] if row["stated_by"] else cost_usd,
                output_tokens=row["output_tokens"],
                unpriced=row["is_lower_bound"],
                is_followed=bool(row["is_followed"]),
                by=row["stated_by"] or known.by,
            )
    return known


def spent(connection: sqlite3.Connection, rows: Sequence[sqlite3.Row]) -> Spent:
    """Return the sum of rows, each of one model, such as those of `session_usage`."""
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    known = Spent(
        sum(row["output_tokens"] for row in rows),
        round(sum(costs), 6) if costs else None,
        sum(row["responses"] for row in rows),
        sum(row["unpriced"] for row in rows),
        sum(row["partial"] for row in rows),
    )
    partial = [row for row in rows if row["partial"]]
    return known._replace(estimate=estimate(connection, known, partial) if partial else None)


def spent_of(conversation: Conversation) -> Spent:
    """Return what the responses of a session used and cost, and what its agent states of that."""
    session = conversation.session
    rows = sql.ask(conversation.connection, "pages/session_stated", session=session["id"])
    cost = session["stated_cost_usd"]
    said = stated(cost if isinstance(cost, float) else None, rows.fetchall())
    return spent(conversation.connection, conversation.usage())._replace(stated=said)


def estimate(
    connection: sqlite3.Connection, known: Spent, partial: Iterable[sqlite3.Row]
) -> Estimate | None:
    """Return `estimate_with` the rates of this database."""
    return estimate_with(rates(connection), known, partial)


def estimate_with(rates: Rates, known: Spent, partial: Iterable[sqlite3.Row]) -> Estimate | None:
    """Return an estimate of what is known as a lower bound; None where nothing can be measured.

    `partial` has what the partial responses of models wrote, as in `usage_partial`; of one model
    there may be several rows.
    """
    sums: dict[str | None, Counter[str]] = defaultdict(Counter)
    for row in partial:
        sums[row["model"]].update({name: row[name] or 0 for name in _MEASURED})
    tokens = worth = 0.0
    unmeasured = measured = 0
    for model, of_model in sums.items():
        rate = rates.get(model, rates[None])
        if rate is None:
            unmeasured += of_model["partial"]
            continue
        unmeasured += of_model["unmeasured"]
        measured += of_model["partial"] - of_model["unmeasured"]
        tokens += max(0, rate * of_model["written_bytes"] - of_model["begun_tokens"])
        worth += max(0, rate * of_model["written_worth"] - of_model["begun_worth"])
    if not measured:
        return None
    cost = None if known.cost_usd is None else round(known.cost_usd + worth / 10**12, 6)
    return Estimate(known.output_tokens + round(tokens), cost, unmeasured)


_MEASURED = (
    "partial", "unmeasured", "begun_tokens", "written_bytes", "begun_worth", "written_worth",
)  # fmt: skip
Rates = dict[str | None, float | None]
_ENOUGH = 20
"""Complete responses from which the rate of a model follows."""


def rates(connection: sqlite3.Connection) -> Rates:
    """Return the output tokens for a byte that each model writes, of other models as None."""
    rows = sql.ask(connection, "pages/output_rates").fetchall()
    by_model: Rates = {
        row["model"]: row["output_tokens"] / row["written_bytes"]
        for row in rows
        if row["responses"] >= _ENOUGH
    }
    responses, tokens, written = (
        sum(row[name] for row in rows) for name in ("responses", "output_tokens", "written_bytes")
    )
    return {**by_model, None: tokens / written if responses >= _ENOUGH else None}


# ------------------------------------------------------------------------------------------------
# Which query a name means, and which names there are.
#
# `query` runs reports and lists, `list` runs lists. A name that neither knows is answered with
# the nearest one, or with the command that does what the name asks for.


_INTERNAL = {
    "search": (("search/", "search_"), "assoc-ingest search"),
    "pages": (("pages/", "show_"), "assoc-ingest show or assoc-ingest serve"),
}
"""Queries that no one runs by name: how their names begin, or once did, and who runs them."""

_HINT = (
    "Run one: assoc-ingest query NAME. For descriptions and parameters: assoc-ingest query --table"
)


def find_query(name: str) -> Query:
    """Return the report or list called `name`.

    Raises UsageError with the nearest name, or the command to use instead.
    """
    known = sql.named_queries()
    if name in known:
        return known[name]
    if name in sql.queries("lists"):
        raise UsageError(f"{name!r} is a list, so run: assoc-ingest list {name}")
    for folder, (beginnings, command) in _INTERNAL.items():
        if name.startswith(beginnings) or name in sql.queries(folder):
            raise UsageError(f"{name!r} cannot be run by name; use {command}.")
    hint = did_you_mean(_as_query(name), known) or " To see them all: assoc-ingest query"
    raise UsageError(f"No query named {name!r}.{hint}")


def find_list(what: str) -> Query:
    """Return the list called `what`; raise UsageError with the nearest, or all there are."""
    known = sql.queries("lists")
    if what in known:
        return known[what]
    if what in sql.queries("reports"):
        raise UsageError(f"{what!r} is a report, so run: assoc-ingest query {what}")
    hint = did_you_mean(_as_query(what), known) or f" There are: {', '.join(known)}."
    raise UsageError(f"No list named {what!r}.{hint}")


def write_query_names(form: Format) -> None:
    """Print the reports: name and title below a heading, or all there is to say of them."""
    headings = sql.reports_by_heading()
    described = [_described(report) for found in headings.values() for report in found]
    names = list(described[0])
    rows = [[_text(value) for value in item.values()] for item in described]
    if form.wanted is not None:
        answer = Answer(None, ["query"], form.wanted)
        write(answer.pieces(described[answer.start :], total=len(described)))
    elif form.name == "nl":
        write_objects(described)
    elif form.name == "csv":
        write_csv(names, rows, form)
    elif form.name == "whole":
        write(line + "\n" for line in table(names, rows))
    else:
        write(_listing(headings))
        say(f"\n{_HINT}")


def _described(report: Query) -> dict[str, object]:
    return {
        "name": report.name,
        "group": report.group,
        "title": report.title,
        "description": report.description,
        "parameters": list(report.parameters),
    }


def _text(value: object) -> object:
    return ", ".join(value) if isinstance(value, list) else value


def _listing(headings: dict[str, list[Query]]) -> Iterator[str]:
    paint = Paint.for_stream(sys.stdout)
    width = max(len(report.name) for found in headings.values() for report in found)
    for number, (heading, reports) in enumerate(headings.items()):
        yield "\n" * bool(number) + paint(heading, bold=True) + "\n"
        for report in reports:
            yield f"  {report.name:{width}}  {report.title}\n"


def _as_query(name: str) -> str:
    return name.casefold().replace("-", "_").removeprefix("ask_")


# ------------------------------------------------------------------------------------------------
# Runs the queries in queries/ by name, with parameters, and prints the rows.


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
        return nothing(wanted, lambda other: count_rows(connection, query, asked(other)))

    parameters = asked(wanted.applied(query.parameters, what, _lists_with))
    hidden = {name: n for name, n in _hidden(connection, query, parameters).items() if n}
    if form.wanted is not None:
        answer = Answer(connection, ["list", what, asdict(wanted)], form.wanted)
        items, _ = _items(connection, query, parameters, limit and answer.start + limit + 1)
        total = count_rows(connection, query, parameters)
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
        total = count_rows(connection, query, parameters)
        say(f"Only the first {limit:,} of {total:,} are shown; --limit 0 shows all.")
    for option, count in hidden.items():
        if option == "gone":
            say(f"{terminal.many(count, 'entry', 'entries')} no longer present; show with --gone.")
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
            if name not in ("partial", "is_lower_bound"):  # these are of the cost, too
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
    counted = count_rows(connection, query, parameters)
    for option in options:  # what is gone is part of all
        parameters = {**parameters, option: 1}
        before, counted = counted, count_rows(connection, query, parameters)
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
        total = count_rows(connection, query, {**bound, "limit": -1})
        if limit is not None:
            bound["limit"] = (answer.start if answer else 0) + limit + 1 if limit else -1
    cursor = connection.execute(query.sql, bound)
    names, rows = _names(cursor), [tuple(row) for row in cursor]
    total = len(rows) if total is None else total
    why = None if total else _why_no_rows(connection, query, parameters, bound)
    if answer:
        items = (dict(zip(names, row, strict=True)) for row in rows[answer.start :])
        before = {"nothing": why.as_json()} if why else None
        write(answer.pieces(items, total=total, limit=limit or None, before=before))
        return
    shown = rows[: limit or None]
    write_rows(connection, names, shown, form)
    if why:
        missing = [key for key, value in given.items() if value is None]
        said = "No rows." + (f" {_parameters_of(query)}" if missing else "")
        say("\n".join([said, *why.lines("row")]))
    elif total > len(shown):
        say(f"Only the first {len(shown)} of {total:,} rows are shown; --limit 0 shows all.")


def _why_no_rows(
    connection: sqlite3.Connection,
    query: Query,
    parameters: Mapping[str, str],
    bound: Mapping[str, object],
) -> Nothing:
    """Say how many rows a query has without each of its parameters, and without all of them."""
    names = [name for name, value in parameters.items() if value and name != "limit"]
    if not names:
        return Nothing((), 0)

    def count(*without: str) -> int:
        return count_rows(connection, query, {**bound, **dict.fromkeys(without), "limit": -1})

    filters = Filters.of(parameters)
    told = [
        filters.told(name) if name in _GIVEN else f"{name} {parameters[name]}" for name in names
    ]
    alone = [(name, words, count(name)) for name, words in zip(names, told, strict=True)]
    return Nothing(tuple(one for one in alone if one[2]), count(*names))


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


def count_rows(
    connection: sqlite3.Connection, query: Query, parameters: Mapping[str, object]
) -> int:
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
