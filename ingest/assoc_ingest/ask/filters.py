"""What limits a search, a list, a sum or a page: one object, wherever it is asked for.

A filter is given as an option, as `field:value` inside of a query, as an argument of a tool, or in
the address of a page. It is read here alone, and means the same everywhere (docs/search.md). Of
what a query says itself, kinds add up; of anything else, what the query says counts.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple

from .. import humanize
from ..errors import UsageError
from ..sources import SOURCES
from . import since as times
from .lookup import find_session
from .near_names import did_you_mean
from .project_names import project_ids

WHAT = (
    "message", "session", "inbox", "task", "todo", "plan", "document", "prompt",
    "tool_result_file",
)  # fmt: skip
MESSAGE_KINDS = (
    "prompt", "command", "command_output", "bash_input", "bash_output", "task_notification",
    "agent_message", "agent_prompt", "memory_input", "interrupt", "compact_summary",
    "queued_prompt", "meta", "text", "thinking", "tool_use", "tool_result", "image", "error",
    "system", "attachment", "hook",
)  # fmt: skip
ROLES = ("user", "assistant", "system")

_SHOWN = 10  # words that are nowhere

Parameters = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Filters:
    """What is left out. Each is as the user gives it; what is empty leaves out nothing."""

    kind: tuple[str, ...] = ()
    """Hits of any of these kinds."""
    project: str | None = None
    session: str | None = None
    source: str | None = None
    branch: str | None = None
    model: str | None = None
    role: str | None = None
    tool: str | None = None
    status: str | None = None
    """A part of what a list has as its status, or of how a session ended."""
    errors: bool = False
    """Sessions in which something failed."""
    min_cost: str | None = None
    """Sessions that cost so many dollars, or more."""
    since: str | None = None
    until: str | None = None
    month: str | None = None
    day: str | None = None
    cwd: str | None = None
    all: bool = False
    """What a list hides is shown."""
    gone: bool = False
    with_worktrees: bool = True
    """The name of a repository includes its worktrees."""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Filters:
        """Return the filters among named values; other names are of no concern."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in given.items() if name in names and value})  # type: ignore[arg-type]

    def limited_by(self, fields: Iterable[tuple[str, str]]) -> Filters:
        """Return the filters with what a query says of itself: names and values."""
        limited = self
        for name, value in fields:
            kinds = (*limited.kind, value)
            limited = replace(limited, **{name: kinds if name == "kind" else value})  # type: ignore[arg-type]
        return limited

    def without(self, *names: str) -> Filters:
        """Return the filters but for some."""
        empty = Filters()
        return replace(self, **{name: getattr(empty, name) for name in names})

    def given(self) -> dict[str, object]:
        """Return the filters that leave something out, by their names."""
        shows_more = ("all", "gone", "with_worktrees")
        return {
            name: value for name, value in asdict(self).items() if value and name not in shows_more
        }

    def told(self, name: str) -> str:
        """Return a filter that is set, as a sentence can name it."""
        value = getattr(self, name)
        if name in ("since", "until", "month", "day"):
            return times.told(name, value)
        if name == "errors":
            return "errors"
        value = ", ".join(value) if name == "kind" else value
        return f"min cost ${value}" if name == "min_cost" else f"{name} {value}"

    @property
    def is_of_messages(self) -> bool:
        """Is there a filter that nothing but messages can fit?"""
        return bool(self.model or self.role or self.branch)

    def applied(self, known: Collection[str], where: str, having: Callable[[str], str]) -> Filters:
        """Return the filters, all of which have to be known where they are applied.

        Raises UsageError for another one; `having` says for its name where it can be given.
        """
        given = {**self.given(), **({"gone": True} if self.gone else {})}
        for name in given:
            if name not in known:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} does not apply to {where}{having(name)}")
        return self

    def parameters(self, connection: sqlite3.Connection) -> Parameters:
        """Return the parameters of the queries; raise where a filter names nothing."""
        for kind in self.kind:
            _check("kind", kind, (*WHAT, *MESSAGE_KINDS))
        if self.source and self.source not in SOURCES:  # one of a newer version has rows, too
            rows = connection.execute("select kind from sources where kind = ?", (self.source,))
            known_source(None if rows.fetchone() else self.source)
        _check("role", self.role, ROLES)
        projects = None
        if self.project:
            projects = project_ids(connection, self.project, with_worktrees=self.with_worktrees)
        periods = [times.whole(text) for text in (self.month, self.day) if text]
        starts = [*(one.start for one in periods), *map(times.since, filter(None, [self.since]))]
        ends = [*(one.end for one in periods), *map(times.until, filter(None, [self.until]))]
        return {
            "kind": json.dumps(self.kind) if self.kind else None,
            "project": projects,
            "session": find_session(connection, self.session) if self.session else None,
            "source": self.source,
            "since": max(starts, default=None),
            "until": min(ends, default=None),
            "tool": self.tool,
            "model": self.model,
            "role": self.role,
            "branch": self.branch,
            "status": self.status,
            "errors": 1 if self.errors else None,
            "min_cost": _dollars(self.min_cost) if self.min_cost else None,
            "cwd": self.cwd,
            "all": 1 if self.all else None,
            "gone": 1 if self.gone else None,
        }


class Nothing(NamedTuple):
    """Why nothing was found: how much there is without a filter, and words that are nowhere."""

    filters: tuple[tuple[str, str, int], ...]
    """Name and words of each filter without which there is something, and how much that is."""
    in_all: int
    """How much there is without all of them."""
    words: tuple[str, ...] = ()
    """Words of a query that nothing holds."""
    is_close: bool = False
    """What there is lacks some of the words."""

    def lines(self, noun: str) -> Iterator[str]:
        """Yield what a reader should know, in a sentence each."""
        end = " with some of the words." if self.is_close else "."
        for _, told, count in self.filters:
            yield f"Without {told}: {humanize.many(count, noun)}{end}"
        if self.in_all and not self.filters:
            yield f"Without all filters: {humanize.many(self.in_all, noun)}{end}"
        if self.words:
            shown, more = self.words[:_SHOWN], len(self.words) - _SHOWN
            yield f"Found nowhere: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}."

    def as_json(self) -> dict[str, object]:
        """Return the same for programs."""
        filters = [{"filter": name, "told": told, "without": count}
                   for name, told, count in self.filters]  # fmt: skip
        return {
            "filters": filters,
            "without_filters": self.in_all,
            "is_close": self.is_close,
            "words": list(self.words),
        }


def nothing(filters: Filters, count: Callable[[Filters], int]) -> Nothing:
    """Say what there would be without each of the filters alone, and without all of them."""
    given = filters.given()
    if not given:
        return Nothing((), 0)
    alone = ((name, filters.told(name), count(filters.without(name))) for name in given)
    return Nothing(tuple(one for one in alone if one[2]), count(filters.without(*given)))


def source_names() -> tuple[str, ...]:
    """Return the names of the systems that can be asked for."""
    return tuple(SOURCES)


def known_source(name: str | None) -> None:
    """Raise UsageError if there is no source of this name."""
    _check("source", name, source_names())


def _check(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value and value not in known:
        names = dict.fromkeys(known)
        hint = did_you_mean(value, names)
        raise UsageError(f"Unknown {name} {value!r}.{hint} Choose one of: {', '.join(names)}.")


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise UsageError(f"{text!r} is not an amount of dollars, such as 2.50.")
    return amount
