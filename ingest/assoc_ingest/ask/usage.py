"""What was used and what it cost, with a total: the reports on usage, and what they add up to."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import humanize, sql
from ..errors import UsageError
from ..terminal import Figure
from .answer import Answer
from .lookup import find_session
from .output import Format, Row, say, write, write_rows, write_table
from .project_names import project_ids
from .since import since as time_of
from .since import until as time_until

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


@dataclass(frozen=True, slots=True)
class Usage:
    """Which usage is asked for: the options of `stats`, as the user gives them."""

    project: str | None = None
    session: str | None = None
    model: str | None = None
    since: str | None = None
    until: str | None = None

    def parameters(self, connection: sqlite3.Connection) -> dict[str, str]:
        """Return those parameters of the reports that are given; raise where one names nothing."""
        given = {
            "project": self.project and project_ids(connection, self.project),
            "session": self.session and find_session(connection, self.session),
            "model": self.model,
            "since": self.since and time_of(self.since),
            "until": self.until and time_until(self.until),
        }
        return {name: value for name, value in given.items() if value}


def write_usage(
    connection: sqlite3.Connection, by: str, usage: Usage, form: Format, limit: int = 0
) -> None:
    """Print the report that groups `by`, with a total; at most `limit` rows of JSON, 0 for all.

    Raises UsageError for an option that this report does not have, or that names nothing.
    """
    report = sql.queries("reports")[REPORTS[by]]
    parameters = usage.parameters(connection)
    for name in parameters:
        if name not in report.parameters:
            raise UsageError(f"--{name} does not apply to --by {by}. Leave it out.")
    cursor = connection.execute(report.sql, {**dict.fromkeys(report.parameters), **parameters})
    names = [column[0] for column in cursor.description]
    rows: list[Row] = [tuple(row) for row in cursor]
    total = _total(connection, by, names, rows, parameters)
    if form.wanted is not None:
        answer = Answer(connection, ["stats", by, parameters], form.wanted)
        items = (dict(zip(names, row, strict=True)) for row in rows[answer.start :])
        before = {"totals": total}
        write(answer.pieces(items, total=len(rows), limit=limit or None, before=before))
    elif form.name in ("nl", "csv"):
        write_rows(connection, names, rows, form)
    elif not rows:
        say("Nothing was used, as far as this database knows.")
    else:
        shown = [_marked(names, row) for row in (*rows, [total.get(name) for name in names])]
        shown[-1] = ["total", *shown[-1][1:]]
        write_table(connection, names, shown, whole=form.name == "whole", has_total=True)
        _explain(total)


def _total(
    connection: sqlite3.Connection,
    by: str,
    names: Sequence[str],
    rows: Sequence[Row],
    parameters: Mapping[str, str],
) -> dict[str, object]:
    if by != "tool":
        return dict(sql.ask(connection, "pages/usage_total", **parameters).fetchone())
    sums = {name: sum(int(str(row[names.index(name)])) for row in rows) for name in _SUMS}
    percent = round(100.0 * sums["errors"] / sums["calls"], 1) if sums["calls"] else None
    return {**sums, "error_percent": percent}


def _marked(names: Sequence[str], row: Row) -> list[object]:
    """Return a row whose cost is marked as a lower bound where a response has no price."""
    cells = dict(zip(names, row, strict=True))
    cost = cells.get("cost_usd")
    if isinstance(cost, float) and cells.get("unpriced"):
        cells["cost_usd"] = Figure(humanize.dollars(cost, at_least=True))
    return list(cells.values())


def _explain(total: Mapping[str, object]) -> None:
    """Say what a lower bound leaves out."""
    unpriced, partial = (int(str(total.get(name) or 0)) for name in ("unpriced", "partial"))
    if unpriced:
        say(
            f"\n≥ is at least: {humanize.many(unpriced, 'response')} without a known price. "
            "To see the models: assoc-ingest query unpriced_models"
        )
    if partial:
        say(
            f"{humanize.many(partial, 'response')} never stated a final count, so output tokens "
            "and cost are at least these."
        )
