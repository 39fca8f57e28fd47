"""What was used and what it cost: the reports on usage, what they add up to, and what is not known.

A response is *partial* where its final count was never written, and *unpriced* where its model has
no known price. Sums with such responses are lower bounds and marked so, see `humanize`; beside them
stands an estimate of what the partial ones wrote (docs/costs.md).
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, NamedTuple

from .. import humanize, sql
from .answer import Answer
from .filters import Filters
from .output import Format, Row, say, write, write_rows, write_table

_PERIODS = ("day", "week", "month")

REPORTS = {
    "day": "usage_by_day",
    "week": "usage_by_week",
    "month": "usage_by_month",
    "model": "usage_by_model",
    "project": "usage_by_project",
    "session": "usage_by_session",
    "tool": "tool_use",
}
"""What usage can be grouped by, and the report that does it."""

_SUMS = ("calls", "errors", "declined")
"""Columns of tool calls that add up."""


class Estimate(NamedTuple):
    """What responses wrote and cost, with an estimate for those that never stated it.

    A model writes as many tokens for each byte as in its complete responses, or as all models do if
    it has too few of them. What is stated counts if that is more.
    """

    output_tokens: int
    cost_usd: float | None
    unmeasured: int
    """Partial responses of which nothing can be estimated: their stated tokens are in the sums."""


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
        text = f"{humanize.tokens(output, self.partial)} out"
        if self.estimate is not None:
            about, rest = self.estimate.output_tokens, self.estimate.unmeasured
            text += f" ({humanize.tokens(about, rest, is_estimate=True)})"
        stated = self.stated.output_tokens
        if stated is not None and _differ(stated, output):
            text += f", {humanize.tokens(stated)} {self.stated.words}"
        return text

    def cost(self) -> str:
        """Return the cost, with the estimate, in words; '' where it is not known.

        What the agent states is beside it if it is more than a tenth off.
        """
        stated = self.stated.cost_usd
        said = ""
        if stated is not None:
            said = f"{humanize.money(stated, 0, self.stated.unpriced)} {self.stated.words}"
        if self.cost_usd is None:
            return said
        notes = []
        if self.estimate is not None:
            rest = (self.estimate.unmeasured, self.unpriced)
            notes.append(humanize.money(self.estimate.cost_usd, *rest, is_estimate=True))
        if self.unpriced:
            notes.append(f"{humanize.many(self.unpriced, 'response')} unpriced")
        text = humanize.money(self.cost_usd, self.partial, self.unpriced)
        text += f" ({'; '.join(notes)})" if notes else ""
        if stated is not None and _differ(stated, self.cost_usd):
            return f"{text} as counted, {said}"
        return text

    def as_json(self) -> dict[str, object]:
        """Return the fields of an answer."""
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
        round(sum(costs), 4) if costs else None,
        sum(row["responses"] for row in rows),
        sum(row["unpriced"] for row in rows),
        sum(row["partial"] for row in rows),
    )
    partial = [row for row in rows if row["partial"]]
    return known._replace(estimate=estimate(connection, known, partial) if partial else None)


def estimate(
    connection: sqlite3.Connection, known: Spent, partial: Iterable[sqlite3.Row]
) -> Estimate | None:
    """Return an estimate of what is known as a lower bound; None where nothing can be measured.

    `partial` has what the partial responses of models wrote, as in `usage_partial`; of one model
    there may be several rows.
    """
    sums: dict[str | None, Counter[str]] = defaultdict(Counter)
    for row in partial:
        sums[row["model"]].update({name: row[name] or 0 for name in _MEASURED})
    rates = _rates(connection)
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
    cost = None if known.cost_usd is None else round(known.cost_usd + worth / 10**12, 4)
    return Estimate(known.output_tokens + round(tokens), cost, unmeasured)


_MEASURED = (
    "partial", "unmeasured", "begun_tokens", "written_bytes", "begun_worth", "written_worth",
)  # fmt: skip
_ENOUGH = 20
"""Complete responses from which the rate of a model follows."""


def _rates(connection: sqlite3.Connection) -> dict[str | None, float | None]:
    """Return the output tokens for a byte that each model writes, of other models as None."""
    rows = sql.ask(connection, "pages/output_rates").fetchall()
    rates: dict[str | None, float | None] = {
        row["model"]: row["output_tokens"] / row["written_bytes"]
        for row in rows
        if row["responses"] >= _ENOUGH
    }
    responses, tokens, written = (
        sum(row[name] for row in rows) for name in ("responses", "output_tokens", "written_bytes")
    )
    return {**rates, None: tokens / written if responses >= _ENOUGH else None}


def write_usage(
    connection: sqlite3.Connection, by: str, filters: Filters, form: Format, limit: int = 0
) -> None:
    """Print the report that groups `by`, with a total; at most `limit` rows, 0 for all.

    A table by day, week or month has at most `limit` of these. Raises UsageError for an option that
    this report does not have, or that names nothing.
    """
    report = sql.queries("reports")[REPORTS[by]]
    filters.applied(report.parameters, f"--by {by}", lambda _: ". Leave it out.")
    given = filters.parameters(connection)
    parameters = {name: given[name] for name in filters.given()}
    cursor = connection.execute(report.sql, {**dict.fromkeys(report.parameters), **parameters})
    names = [column[0] for column in cursor.description]
    rows: list[Row] = [tuple(row) for row in cursor]
    count = len(rows)
    total, known = _total(connection, by, names, rows, parameters)
    if form.wanted is not None:
        answer = Answer(connection, ["stats", by, asdict(filters)], form.wanted)
        items = (dict(zip(names, row, strict=True)) for row in rows[answer.start :])
        before = {"totals": total}
        write(answer.pieces(items, total=len(rows), limit=limit or None, before=before))
        return
    if form.name in ("nl", "csv"):
        write_rows(connection, names, rows[: limit or None], form)
    elif not rows:
        say("Nothing was used, as far as this database knows.")
        return
    else:
        groups = list(_periods(names, rows) if by in _PERIODS else ([row] for row in rows))
        shown = [row for group in groups[: limit or None] for row in group]
        shown.append(["total", *(total.get(name) for name in names[1:])])
        write_table(connection, names, shown, whole=form.name == "whole", has_total=True)
        _explain(known)
        count = len(groups)
    if limit and limit < count:
        what = f"{by}s" if by in _PERIODS and form.name not in ("nl", "csv") else "rows"
        say(f"Only the first {limit} of {count:,} {what} are shown; --limit 0 shows all.")


def _periods(names: Sequence[str], rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each period, behind one with their sums if there are several."""
    for period, found in groupby(rows, key=lambda row: row[0]):
        models = list(found)
        if len(models) > 1:
            sums = [_sum_of(column) for column in list(zip(*models, strict=True))[2:]]
            sums[names.index("is_lower_bound") - 2] = max(int(str(row[-1])) for row in models)
            yield [[period, f"{len(models)} models", *sums], *(["", *row[1:]] for row in models)]
        else:
            yield models


def _sum_of(column: Iterable[Any]) -> object:
    values = [value for value in column if value is not None]
    return sum(values) if values else None


def _total(
    connection: sqlite3.Connection,
    by: str,
    names: Sequence[str],
    rows: Sequence[Row],
    parameters: Mapping[str, object],
) -> tuple[dict[str, object], Spent]:
    if by != "tool":
        total = dict(sql.ask(connection, "pages/usage_total", **parameters).fetchone())
        known = Spent(*(total[name] for name in Spent._fields[: Spent._fields.index("estimate")]))
        if known.partial:
            partial = sql.ask(connection, "pages/usage_partial", **parameters)
            known = known._replace(estimate=estimate(connection, known, partial))
        said = {name: value for name, value in known.as_json().items() if "stated" not in name}
        return total | said, known
    sums = {name: sum(int(str(row[names.index(name)])) for row in rows) for name in _SUMS}
    percent = round(100.0 * sums["errors"] / sums["calls"], 1) if sums["calls"] else None
    return {**sums, "error_percent": percent}, Spent()


def _explain(known: Spent) -> None:
    """Say what a lower bound leaves out, and how much that may be."""
    if known.unpriced or known.partial:
        say("")
    if known.unpriced:
        say(
            f"≥ is at least: {humanize.many(known.unpriced, 'response')} without a known price. "
            "To see the models: assoc-ingest query unpriced_models"
        )
    if known.partial:
        say(
            f"≥ is at least: {humanize.many(known.partial, 'response')} never stated a final count "
            "of output tokens."
        )
    if known.estimate is not None:
        about = f"{known.tokens(known.output_tokens)}, {known.cost()}".removesuffix(", ")
        say(f"~ is an estimate by the length of what these wrote: {about}.")
