"""`stats`: what was used and what it cost, in a period, by one or two groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from .question import Field, FilterFields, Reader, Size, Table, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.filters import Filters
    from ..ask.usage import Rates, Spent

Cells = Sequence["sqlite3.Row"]
"""Rows of `pages/usage`: sums over the responses of a day, a model, a conversation."""
Row = Sequence[object]


class Group(NamedTuple):
    """What usage can be added up by: columns of `pages/usage`."""

    key: str
    """Rows with the same value are one."""
    name: str
    """What the rows are called by."""
    about: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


PERIODS = ("day", "week", "month")
GROUPS = {
    "day": Group("day", "day"),
    "week": Group("week_of", "week_of"),
    "month": Group("month", "month"),
    "repository": Group("repository_key", "repository", ids=("repository_key",)),
    "project": Group("project_id", "project", ("path",), ("project_id",)),
    "model": Group("model", "model"),
    "agent": Group("agent", "agent"),
    "branch": Group("git_branch", "git_branch"),
    "session": Group("session_id", "session_key", ("title", "project")),
    "subagent": Group("subagent_type", "subagent_type"),
}
_DATES = [GROUPS[name].name for name in PERIODS]
_ESTIMATES = ("estimated_output_tokens", "estimated_cost_usd")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_CALLS = ("calls", "errors", "declined", "total_ms", "letters")
"""Columns of tool calls that add up."""
_NO_COST = (
    "Tools cost nothing themselves: what they return is input of the responses after them. "
    "letters is the length of what they returned."
)


@dataclass
class Month:
    """What this month cost so far, and the same days of the last one."""

    since: Annotated[str, "Local date: the first of this month."]
    until: Annotated[str, "Local date: today."]
    cost_usd: float | None
    is_lower_bound: bool
    last_since: str
    last_until: str
    last_cost_usd: float | None
    last_is_lower_bound: bool
    _spent: Any
    _last_spent: Any

    def __str__(self) -> str:
        said, last = (_cost(one, one.cost()) for one in (self._spent, self._last_spent))
        return f"This month so far ({self.days}): {said}; {self.last_days}: {last}"

    @property
    def short(self) -> tuple[str, str]:
        """What both cost, without the estimates."""
        from ..terminal import money

        this, last = (
            _cost(one, money(one.cost_usd, one.partial, one.unpriced))
            for one in (self._spent, self._last_spent)
        )
        return this, last

    @property
    def days(self) -> str:
        return _days(self.since, self.until)

    @property
    def last_days(self) -> str:
        return _days(self.last_since, self.last_until)


@dataclass
class Usage:
    """What was used, by group, and what that adds up to."""

    period: Annotated[str, "The days that are counted, in local time."]
    totals: Annotated[dict[str, object], "what all rows add up to"]
    month: Annotated[Month | None, "This month so far, beside the same days of the last."]
    nothing: Annotated[dict[str, object] | None, "why there are no rows"]
    total: Annotated[int, "Rows of all groups."]
    items: Annotated[list[dict[str, object]], "Rows of a group: its name, tokens and costs."]
    columns: list[str]
    _groups: list[list[Row]]
    """The rows of a table: those of each group, behind one with their sum if they are split."""
    _by: str
    _said: str
    """What everything together used and cost, in a sentence."""
    _notes: list[str]
    """What a lower bound leaves out, and how much that may be; of no rows, why there are none."""
    _shares: list[str]
    """What subagents cost and what was read from the cache; this month so far."""
    _unmeasured: int = 0
    """Partial responses without an estimate: then a note says the one of all, with both signs."""
    _cells: Sequence[Any] = ()
    _spent: Any = None
    _filters: Any = None
    _days: tuple[str, str] | None = None
    """The first and the last local day."""

    def table(self, limit: int = 0, *, is_exact: bool = False) -> Table:
        """Return the rows of at most `limit` groups, 0 for all.

        What is exact has no sums in it, and as many rows as the limit says.
        """
        if not self._groups:
            return Table((), ["\n".join(["No usage recorded.", *self._notes, *self._shares])])
        if is_exact:
            return Table([[*item.values()] for item in self.items])
        shown = [row for group in self._groups[: limit or None] for row in group]
        left_out = _ESTIMATES if self._unmeasured else ()
        totals = [None if n in left_out else self.totals.get(n) for n in self.columns[1:]]
        notes = [*self._notes, *self._shares]
        notes = ["", *notes] if notes else []
        if limit and limit < len(self._groups):
            notes.append(
                f"Only the first {limit} of {len(self._groups):,} {plural(self._by)} are shown; "
                "--limit 0 shows all."
            )
        return Table([*shown, ["total", *totals]], notes, has_total=True)


def _check(by: str, split: str | None, filters: Filters, **_: object) -> None:
    from ..errors import UsageError

    if split and by == "tool":
        raise UsageError("Calls of tools are not split: leave out --split.")
    if split == by:
        raise UsageError(f"The rows are by {by} already: split them by something else.")


@question(
    "Usage",
    items="rows",
    about="Count tokens and costs of the recorded conversations by day, week, month, repository, "
    "project, model, agent, branch, session, type of subagent or tool, in a period. Each API "
    "response is counted once. is_lower_bound is 1 where responses have no final count or no known "
    "price: then the numbers are at least. Tools have no cost: their calls are counted.",
    tables=("responses", "prices", "tool_calls"),
    check=_check,
    terminal=Size(0), json=Size(100), mcp=Size(30, most=500), web=Size(100),
)  # fmt: skip
def stats(
    reader: Reader,
    when: Annotated[
        str | None,
        Field(
            "today, yesterday, week, month, last week, 7d, a date or all (the default).",
            name="[WHEN]",
            label="Period",
            is_argument=True,
            joins=lambda text: True,
        ),
    ] = None,
    *,
    by: Annotated[
        Literal[
            "day", "week", "month", "repository", "project", "model", "agent", "branch",
            "session", "subagent", "tool",
        ],
        Field("What to group by.", label="By"),
    ] = "day",
    split: Annotated[
        Literal[
            "day", "week", "month", "repository", "project", "model", "agent", "branch",
            "session", "subagent",
        ]
        | None,
        Field("What to split each of these by.", label="Split by"),
    ] = None,
    remote: Annotated[
        bool, Field("Use the fleet server, with the data of all machines.", is_option=True)
    ] = False,
    filters: Annotated[
        Filters,
        FilterFields(
            (
                "project", "repository", "session", "source", "model", "branch", "since", "until",
            )
        ),
    ],
) -> Usage:  # fmt: skip
    """Show token counts and costs, with a total.

    WHEN is today, yesterday, week, month or year (the current one, so far), last week, monday, 7d,
    a date or all (the default). Each API response is counted once. Costs are computed from the
    table of prices. ≥ means at least: some responses have no final token count, or their model has
    no price. `query usage_reconciliation` explains why other tools count more or less. -n limits
    the groups of a table.

    \b
    Examples:
      assoc-ingest stats last week
      assoc-ingest stats --by month --split model
      assoc-ingest stats month --by repository --json
    """
    filters = filters.within(when)
    return _calls(reader, filters) if by == "tool" else _usage(reader, filters, by, split)


# -- tokens and costs ------------------------------------------------------------------------------


def _usage(reader: Reader, filters: Filters, by: str, split: str | None) -> Usage:
    from ..ask.filters import nothing
    from ..terminal import many

    groups = [GROUPS[name] for name in (by, split) if name]
    bound = filters.parameters(reader.db)
    cells = cells_of(reader.db, bound, groups)
    sums = Sums(reader.db)
    rows: list[dict[str, object]] = []
    shown: list[list[Row]] = []
    for together, parts in grouped(cells, groups):
        own = [sums.row(groups, part) for part in parts]
        rows += own
        if split:
            words = many(len(own), split, plural(split))
            head = sums.row(groups, together, words)
            lines = [head, *({**row, groups[0].name: ""} for row in own)]
        else:
            lines = own
        shown.append([[*line.values()] for line in lines])
    why = None
    if not cells:
        why = nothing(filters, lambda other: _count(reader.db, other, groups))
    items = [*reader.page(rows)]
    totals, spent = sums.total(cells)
    month = _month(reader.db, bound, cells, sums)
    return Usage(
        _period(bound, cells), totals, month, why and why.as_json(), len(rows), items,
        [*rows[0]] if rows else [*groups[0].name], shown, by, _said(totals, spent),
        [*why.lines("row")] if why else [*_explained(spent)], [*_shares(spent, totals, month)],
        spent.estimate.unmeasured if spent.estimate else 0,
        cells, spent, filters, _days_of(bound, cells),
    )  # fmt: skip


def cells_of(
    connection: sqlite3.Connection, bound: Mapping[str, object], groups: Sequence[Group] = ()
) -> Cells:
    """Return the sums that everything else is added up from."""
    from .. import sql

    report = sql.query("pages/usage")
    given = {name: bound.get(name) for name in report.parameters}
    given["branches"] = 1 if GROUPS["branch"] in groups else None
    return connection.execute(report.sql, given).fetchall()


class Sums:
    """Adds up cells, with an estimate of what partial responses wrote."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rates: Rates | None = None

    def spent(self, cells: Cells) -> Spent:
        from ..ask.usage import rates, spent

        if self._rates is None and any(cell["partial"] for cell in cells):
            self._rates = rates(self._connection)
        return spent(self._connection, cells, self._rates)

    def row(self, groups: Sequence[Group], cells: Cells, split: str = "") -> dict[str, object]:
        """Return the row of these cells; `split` stands for what they are split by."""
        spent, first = self.spent(cells), cells[0]
        estimate = spent.estimate
        tokens, cost = (None, None) if estimate is None or estimate.unmeasured else estimate[:2]
        added = _added(cells, spent)
        row = {group.name: first[group.name] for group in groups}
        if split:
            row[groups[-1].name] = split
        row |= {"cost_usd": added.pop("cost_usd"), "estimated_cost_usd": cost}
        of_all = groups[: 1 if split else None]
        for group in groups:
            row |= {name: first[name] if group in of_all else None for name in group.about}
        for name, value in added.items():
            row[name] = value
            if name == "output_tokens":
                row["estimated_output_tokens"] = tokens
        if not any(group.name in _DATES for group in groups):
            row["last_activity"] = max(cell["last_activity"] or "" for cell in cells) or None
        for group in groups:
            row |= {name: first[name] if group in of_all else None for name in group.ids}
        return row

    def total(self, cells: Cells) -> tuple[dict[str, object], Spent]:
        spent = self.spent(cells)
        words = {name: value for name, value in spent.as_json().items() if "stated" not in name}
        total = _added(cells, spent)
        part, whole = total["subagent_cost_usd"], spent.cost_usd
        share = _percent(part or 0, whole) if whole else None
        return total | {"subagent_percent": share} | words, spent


def _added(cells: Cells, spent: Spent) -> dict[str, Any]:
    """Return what can be added up, whatever it is grouped by."""
    tokens = {name: sum(cell[name] for cell in cells) for name in _TOKENS}
    read = tokens["cache_read_tokens"]
    subagents = [cell["subagent_cost_usd"] for cell in cells]
    costs = [cost for cost in subagents if cost is not None]
    return {
        "cost_usd": spent.cost_usd,
        **tokens,
        "cache_percent": _percent(
            read, tokens["input_tokens"] + read + tokens["cache_write_tokens"]
        ),
        "sessions": len({cell["session_id"] for cell in cells} - {None}),
        "responses": spent.responses,
        "subagent_cost_usd": round(sum(costs), 6) if costs else None,
        "unpriced": spent.unpriced,
        "partial": spent.partial,
        "is_lower_bound": int(spent.unpriced + spent.partial > 0),
    }


def _percent(part: float, whole: float) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def grouped(cells: Cells, groups: Sequence[Group]) -> Iterator[tuple[Cells, list[Cells]]]:
    """Yield the cells of each group, and those of each part that it is split into."""
    group, *rest = groups
    found: dict[object, list[sqlite3.Row]] = {}
    for cell in cells:
        found.setdefault(cell[group.key], []).append(cell)
    for together in sorted(found.values(), key=_order(group)):
        yield together, [part for part, _ in grouped(together, rest)] if rest else [together]


def _order(group: Group) -> Callable[[Cells], tuple[object, ...]]:
    """Return what puts the newest period first, else what cost most."""
    if group.name in _DATES:
        return lambda cells: tuple(-ord(letter) for letter in cells[0][group.key] or "")

    def costs(cells: Cells) -> tuple[object, ...]:
        cost = sum(cell["cost_usd"] or 0 for cell in cells)
        responses = sum(cell["responses"] for cell in cells)
        return -cost, -responses, cells[0][group.name] or "", str(cells[0][group.key])

    return costs


def _count(connection: sqlite3.Connection, filters: Filters, groups: Sequence[Group]) -> int:
    cells = cells_of(connection, filters.parameters(connection), groups)
    return len({tuple(cell[group.key] for group in groups) for cell in cells})


def _month(
    connection: sqlite3.Connection, bound: Mapping[str, object], cells: Cells, sums: Sums
) -> Month | None:
    """Return what this month cost so far; None if neither it nor the last one has any responses."""
    from ..ask import times

    today = times.present().date()
    first = today.replace(day=1)
    last_first = (first - timedelta(days=1)).replace(day=1)
    last_end = min(last_first + (today - first), first - timedelta(days=1))
    if bound["since"] or bound["until"]:
        month = {**bound, "since": times.since(f"{last_first}"), "until": None}
        cells = cells_of(connection, month)
    this, last = (
        sums.spent([cell for cell in cells if f"{start}" <= (cell["day"] or "") <= f"{end}"])
        for start, end in ((first, today), (last_first, last_end))
    )
    if not (this.responses or last.responses):
        return None
    return Month(
        f"{first}", f"{today}", this.cost_usd, bool(this.partial or this.unpriced),
        f"{last_first}", f"{last_end}", last.cost_usd, bool(last.partial or last.unpriced),
        this, last,
    )  # fmt: skip


def _cost(spent: Spent, known: str) -> str:
    return known or "unknown" if spent.responses else "nothing"


def _days(since: str, until: str) -> str:
    from ..terminal import days

    end = date.fromisoformat(until)
    return days(date.fromisoformat(since), end, end)


def _period(bound: Mapping[str, object], cells: Cells = ()) -> str:
    """Return the days that are counted: those that were asked for, else all that have any."""
    from ..ask import times

    since, until = (str(bound[name] or "") for name in ("since", "until"))
    if since or until:
        return times.between(since, until, is_until_now=True)
    days = _days_of(bound, cells)
    return " to ".join(dict.fromkeys(days)) if days else ""


def _days_of(bound: Mapping[str, object], cells: Cells) -> tuple[str, str] | None:
    """Return the first and the last day: as far as they are not given, of what was used."""
    from ..ask import times

    days = [cell["day"] for cell in cells if cell["day"]]
    if not days:
        return None
    since, until = (str(bound[name] or "") for name in ("since", "until"))
    last = times.as_given("until", until)[:10] if until else ""
    if since and not until:
        last = max(f"{times.present():%Y-%m-%d}", *days)
    return (times.as_given("since", since)[:10] if since else min(days)), last or max(days)


def _said(totals: Mapping[str, object], spent: Spent) -> str:
    from ..terminal import many

    words = (spent.tokens(spent.output_tokens), spent.cost())
    where = many(int(str(totals["sessions"])), "conversation")
    return f"In all {', '.join(filter(None, words))} in {where}."


def _shares(spent: Spent, totals: Mapping[str, Any], month: Month | None) -> Iterator[str]:
    from ..terminal import money

    cost, share = totals["subagent_cost_usd"], totals["subagent_percent"]
    if cost is not None:
        sign = "~" if totals["is_lower_bound"] else ""
        part = money(cost, spent.partial, spent.unpriced)
        yield f"Subagents cost {part} of that ({sign}{share} %)."
    if totals["cache_percent"]:
        yield f"{totals['cache_percent']} % of all input was read from the cache."
    if month:
        yield f"{month}."


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


def plural(group: str) -> str:
    return {"repository": "repositories", "branch": "branches"}.get(group, f"{group}s")


# -- calls of tools --------------------------------------------------------------------------------


def _calls(reader: Reader, filters: Filters) -> Usage:
    """Return how often each tool was called. A call has no cost of its own."""
    from .. import sql
    from ..ask.filters import nothing
    from ..terminal import many

    report = sql.query("reports/tool_use")
    filters.applied(report.parameters, "--by tool", lambda _: ". Leave it out.")

    def bound(filters: Filters) -> dict[str, object]:
        known = filters.parameters(reader.db)
        return {name: known[name] for name in report.parameters}

    given = bound(filters)
    cursor = reader.db.execute(report.sql, given)
    columns = [column[0] for column in cursor.description]
    rows = [dict(zip(columns, row, strict=True)) for row in cursor]
    totals: dict[str, Any] = {name: sum(row[name] or 0 for row in rows) for name in _CALLS}
    totals["error_percent"] = _percent(totals["errors"], totals["calls"])
    why = None
    if not rows:
        why = nothing(filters, lambda other: sql.count(reader.db, report, bound(other)))
    return Usage(
        _period(given), totals, None, why and why.as_json(), len(rows), [*reader.page(rows)],
        columns, [[[*row.values()]] for row in rows], "tool",
        f"{many(totals['calls'], 'tool call')} in all.",
        [*why.lines("row")] if why else [_NO_COST], [],
    )  # fmt: skip
