"""`stats`: what was used and what it cost, by day, week, month, model, project, session or tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

from .question import Field, FilterFields, Reader, Size, Table, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.filters import Filters
    from ..ask.usage import Spent

_PERIODS = ("day", "week", "month")
_REPORTS = {
    **{by: f"usage_by_{by}" for by in (*_PERIODS, "model", "project", "session")},
    "tool": "tool_use",
}
_KEYS = {
    "day": ("day", "model"), "week": ("week_of", "model"), "month": ("month", "model"),
    "model": ("model",), "project": ("id",), "session": ("session_key",),
}  # fmt: skip
"""The columns that tell the rows of a report apart; `usage_partial` has them, too."""
_ESTIMATES = ("estimated_output_tokens", "estimated_cost_usd")
_USED = (
    *("cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
    *("responses", "sessions", "unpriced", "partial"),
)
"""What is said of all rows: their sums, but for the sessions, which can occur in several."""
_SUMS = ("calls", "errors", "declined")  # columns of tool calls that add up

Row = Sequence[object]


@dataclass
class Usage:
    """The rows of a report on usage, and what they add up to."""

    totals: Annotated[dict[str, object], "what all rows add up to"]
    nothing: Annotated[dict[str, object] | None, "why there are no rows"]
    total: Annotated[int, "Rows of all groups."]
    items: Annotated[list[dict[str, object]], "Rows of a group: its name, tokens and costs."]
    columns: list[str]
    _rows: Sequence[Row]
    _by: str
    _said: str
    """What everything together used and cost, in a sentence."""
    _notes: list[str]
    """What a lower bound leaves out, and how much that may be; of no rows, why there are none."""
    _unmeasured: int = 0
    """Partial responses without an estimate: then a note says the one of all, with both signs."""

    def table(self, limit: int = 0, *, is_exact: bool = False) -> Table:
        """Return at most `limit` rows, 0 for all; of periods, all rows of so many.

        What is exact has no sums in it.
        """
        rows = self._rows
        if not rows:
            return Table((), ["\n".join(["No usage recorded.", *self._notes])])
        has_periods = self._by in _PERIODS and not is_exact
        groups = list(_periods(self.columns, rows)) if has_periods else [[row] for row in rows]
        shown = [row for group in groups[: limit or None] for row in group]
        notes = []
        if not is_exact:
            left_out = _ESTIMATES if self._unmeasured else ()
            totals = [None if n in left_out else self.totals.get(n) for n in self.columns[1:]]
            shown.append(["total", *totals])
            notes += ["", *self._notes] if self._notes else []
        if limit and limit < len(groups):
            what = f"{self._by}s" if has_periods else "rows"
            notes.append(
                f"Only the first {limit} of {len(groups):,} {what} are shown; --limit 0 shows all."
            )
        return Table(shown, notes, has_total=not is_exact)


@question(
    "Tokens and costs",
    items="rows",
    about="Count tokens and costs of the recorded conversations by day, week, month, model, "
    "project, session or tool. Each API response is counted once. is_lower_bound is 1 where "
    "responses have no final count or no known price: then the numbers are at least.",
    tables=("responses", "prices"),
    terminal=Size(0), json=Size(100), mcp=Size(30, most=500), web=Size(100),
)  # fmt: skip
def stats(
    reader: Reader,
    *,
    by: Annotated[
        Literal["day", "week", "month", "model", "project", "session", "tool"],
        Field("What to group by."),
    ] = "day",
    filters: Annotated[
        Filters, FilterFields(("project", "session", "source", "model", "since", "until"))
    ],
) -> Usage:
    """Show token counts and costs, with a total.

    Each API response is counted once. Costs are computed from the table of prices. ≥ means at
    least: some responses have no final token count, or their model has no price. `query
    usage_reconciliation` explains why other tools count more or less. -n limits the days, weeks or
    months of a table.

    \b
    Examples:
      assoc-ingest stats --since 7d
      assoc-ingest stats --by month --project shop
      assoc-ingest stats --by model --json
    """
    from .. import sql
    from ..ask.filters import nothing

    report = sql.queries("reports")[_REPORTS[by]]
    filters.applied(report.parameters, f"--by {by}", lambda _: ". Leave it out.")
    bound = filters.parameters(reader.db)
    given = {name: bound[name] for name in filters.given()}
    cursor = reader.db.execute(report.sql, {**dict.fromkeys(report.parameters), **given})
    columns = [column[0] for column in cursor.description]
    rows: list[Row] = [tuple(row) for row in cursor]
    totals, spent, partial = _total(reader.db, by, columns, rows, given)
    if by != "tool":
        columns, rows = _with_estimates(reader.db, by, columns, rows, partial)
    items = [dict(zip(columns, row, strict=True)) for row in reader.page(rows)]
    why = None
    if not rows:
        why = nothing(
            filters, lambda other: sql.count(reader.db, report, other.parameters(reader.db))
        )
    return Usage(
        totals, why and why.as_json(), len(rows), items, columns, rows,
        by, _said(totals, spent, by), [*why.lines("row")] if why else [*_explained(spent)],
        spent.estimate.unmeasured if spent.estimate else 0,
    )  # fmt: skip


def _said(totals: Mapping[str, object], spent: Spent, by: str) -> str:
    from ..terminal import many

    if by == "tool":
        return f"{many(int(str(totals['calls'])), 'tool call')} in all."
    words = (spent.tokens(spent.output_tokens), spent.cost())
    return f"In all {', '.join(filter(None, words))}."


def _total(
    connection: sqlite3.Connection,
    by: str,
    names: Sequence[str],
    rows: Sequence[Row],
    parameters: Mapping[str, object],
) -> tuple[dict[str, object], Spent, list[sqlite3.Row]]:
    from .. import sql
    from ..ask.usage import Spent, estimate

    if by != "tool":
        cells = [dict(zip(names, row, strict=True)) for row in rows]
        total: dict[str, Any] = {name: _sum_of(cell.get(name) for cell in cells) for name in _USED}
        cost = total["cost_usd"]
        total = {name: value or 0 for name, value in total.items()}
        total["cost_usd"] = None if cost is None else round(cost, 6)
        (total["sessions"],) = sql.ask(connection, "pages/usage_sessions", **parameters).fetchone()
        known = Spent(*(total[name] for name in Spent._fields[: Spent._fields.index("estimate")]))
        partial = []
        if known.partial:
            partial = sql.ask(connection, "pages/usage_partial", **parameters).fetchall()
            known = known._replace(estimate=estimate(connection, known, partial))
        said = {name: value for name, value in known.as_json().items() if "stated" not in name}
        return total | said, known, partial
    sums = {name: sum(int(str(row[names.index(name)])) for row in rows) for name in _SUMS}
    percent = round(100.0 * sums["errors"] / sums["calls"], 1) if sums["calls"] else None
    return {**sums, "error_percent": percent}, Spent(), []


def _with_estimates(
    connection: sqlite3.Connection,
    by: str,
    names: Sequence[str],
    rows: Sequence[Row],
    partial: Iterable[sqlite3.Row],
) -> tuple[list[str], list[Row]]:
    """Return columns and rows with an estimate beside output and cost, where there can be one.

    A session that two homes have is two rows with one key: neither has an estimate.
    """
    from ..ask.usage import columns_with_estimates, with_estimates

    groups: dict[tuple[object, ...], list[sqlite3.Row]] = {}
    for part in partial:
        groups.setdefault(tuple(part[name] for name in _KEYS[by]), []).append(part)
    cells = [dict(zip(names, row, strict=True)) for row in rows]
    keys = [tuple(cell[name] for name in _KEYS[by]) for cell in cells]
    occurs = Counter(keys)
    parts = [groups.get(key, []) if occurs[key] == 1 else [] for key in keys]
    estimated = with_estimates(connection, cells, parts)
    return columns_with_estimates(names), [tuple(cell.values()) for cell in estimated]


def _periods(names: Sequence[str], rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each period, behind one with their sums if there are several."""
    for period, group in groupby(rows, key=lambda row: row[0]):
        models = list(group)
        if len(models) > 1:
            sums = [_sum_of(column) for column in list(zip(*models, strict=True))[2:]]
            bound = names.index("is_lower_bound")
            sums[bound - 2] = max(int(str(row[bound])) for row in models)
            for estimated in _ESTIMATES:
                sums[names.index(estimated) - 2] = _sum_of_estimates(models, names, estimated)
            yield [[period, f"{len(models)} models", *sums], *(["", *row[1:]] for row in models)]
        else:
            yield models


def _sum_of_estimates(rows: Sequence[Row], names: Sequence[str], estimated: str) -> object:
    """Return the sum of the estimates, or of what is known where all of it is; None without one."""
    known = estimated.removeprefix("estimated_")
    cells = [dict(zip(names, row, strict=True)) for row in rows]
    if not any(cell["partial"] for cell in cells):
        return None
    values = [cell[estimated if cell["partial"] else known] for cell in cells]
    return None if None in values else _sum_of(values)


def _sum_of(column: Iterable[Any]) -> object:
    values = [value for value in column if value is not None]
    return sum(values) if values else None


def _explained(spent: Spent) -> Iterator[str]:
    from ..terminal import many

    if spent.unpriced:
        yield (
            f"≥ is at least: {many(spent.unpriced, 'response')} without a known price. "
            "To see the models: assoc-ingest query unpriced_models"
        )
    if spent.partial:
        yield (
            f"≥ is at least: {many(spent.partial, 'response')} never stated a final count "
            "of output tokens."
        )
    if spent.estimate is not None:
        about = f"{spent.tokens(spent.output_tokens)}, {spent.cost()}".removesuffix(", ")
        yield f"~ is an estimate by the length of what these wrote: {about}."
