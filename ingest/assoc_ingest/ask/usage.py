"""What responses used and cost together, and what of it is not known.

A response is *partial* if its final count was never written, and *unpriced* if its model has no
known price. Sums with such responses are lower bounds and marked so (`terminal.money`). Beside
them is an estimate of what the partial ones wrote (docs/costs.md).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import sql, terminal
from .conversation import Conversation

ESTIMATED = {name: f"estimated_{name}" for name in ("output_tokens", "tokens", "cost_usd")}
"""The columns of rows that can be lower bounds, and those of the estimates beside them."""


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


def spent(
    connection: sqlite3.Connection, rows: Sequence[sqlite3.Row], known_rates: Rates | None = None
) -> Spent:
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
    if not partial:
        return known
    return known._replace(estimate=estimate_with(known_rates or rates(connection), known, partial))


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


def partial_responses(
    connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]], *by: str
) -> dict[tuple[object, ...], list[sqlite3.Row]]:
    """Return what the partial responses in the sessions of these rows wrote, by columns of it."""
    parts: dict[tuple[object, ...], list[sqlite3.Row]] = {}
    keys = json.dumps([row["session_key"] for row in rows])
    for part in sql.ask(connection, "pages/partial_responses", sessions=keys) if rows else ():
        parts.setdefault(tuple(part[name] for name in by), []).append(part)
    return parts


def columns_with_estimates(names: Iterable[str]) -> list[str]:
    return [new for name in names for new in (name, ESTIMATED.get(name)) if new is not None]


def with_estimates(
    connection: sqlite3.Connection,
    rows: Sequence[Mapping[str, Any]],
    partial: Sequence[Sequence[sqlite3.Row]],
) -> Iterator[dict[str, Any]]:
    """Yield rows with an estimate beside tokens and cost, as `columns_with_estimates` names them.

    `partial` has what the partial responses of each row wrote. A row has no estimate if it has
    none of them, or if one cannot be measured.
    """
    rate = rates(connection) if any(partial) else {}
    for row, parts in zip(rows, partial, strict=True):
        counted = Spent(row.get("output_tokens", row.get("tokens")) or 0, row.get("cost_usd"))
        found = estimate_with(rate, counted, parts) if parts else None
        tokens, cost = (None, None) if found is None or found.unmeasured else found[:2]
        estimates = {name: cost if name == "cost_usd" else tokens for name in ESTIMATED}
        yield {
            name: estimates[known] if name == ESTIMATED.get(known) else row[known]
            for known in row
            for name in columns_with_estimates([known])
        }
