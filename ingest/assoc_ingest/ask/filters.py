"""The filters of a search, a list, a sum or a page: one list of what each is, for all of them.

A filter comes from an option, from `field:value` in a query, from an argument of a tool, or from
the address or the form of a page. Only this module says what it is called and reads it, so it means
the same everywhere (docs/search.md). Kinds in a query add to those of the options; any other filter
in a query replaces that of the option. The condition stands in each query: it gets the filters as
parameters of the same names.

The help of a command has the sentences of `FILTERS`, so what takes long to import is imported where
a filter is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import terminal
from ..errors import UsageError, did_you_mean
from . import times

if TYPE_CHECKING:
    import sqlite3

WHAT = (
    "message", "session", "note", "inbox", "task", "todo", "plan", "document", "prompt",
    "tool_result_file",
)  # fmt: skip
MESSAGE_KINDS = (
    "prompt", "command", "command_output", "bash_input", "bash_output", "task_notification",
    "agent_message", "agent_prompt", "memory_input", "interrupt", "compact_summary",
    "queued_prompt", "meta", "text", "thinking", "tool_use", "tool_result", "image", "error",
    "system", "attachment", "hook",
)  # fmt: skip
ROLES = ("user", "assistant", "system")

_SHOWS_MORE = ("all", "gone")  # of `Filters`: these are no filters
_SHOWN = 10  # words that are nowhere
_THIS = ("week", "month", "year")  # the current one, as a period

Value = str | int | float | None
Parameters = dict[str, Value]


# ------------------------------------------------------------------------------------------------
# How a filter is read: as what queries get for it. Each raises for what names nothing that exists.


def _kinds(_: sqlite3.Connection, filters: Filters) -> Value:
    for kind in filters.kind:
        _check("kind", kind, (*WHAT, *MESSAGE_KINDS))
    return json.dumps(filters.kind) if filters.kind else None


def projects_in(connection: sqlite3.Connection, filters: Filters) -> str | None:
    """Return the ids of the projects of a project and a repository: a JSON array for queries."""
    ids: list[int] | None = None
    if filters.project:
        from .projects import find_projects

        ids = find_projects(connection, filters.project, with_worktrees=filters.with_worktrees)
    if filters.repository:
        from .repositories import find_repository

        inside = find_repository(connection, filters.repository)
        ids = inside if ids is None else [id_ for id_ in ids if id_ in inside]
    return None if ids is None else json.dumps(ids)


def _session(connection: sqlite3.Connection, filters: Filters) -> Value:
    if not filters.session:
        return None
    from .refs import find_session

    return find_session(connection, filters.session)


def _source(connection: sqlite3.Connection, filters: Filters) -> Value:
    source = filters.source
    if source and source not in source_names():  # a newer version has more
        rows = connection.execute("select kind from sources where kind = ?", (source,))
        known_source(None if rows.fetchone() else source)
    return source


def _role(_: sqlite3.Connection, filters: Filters) -> Value:
    _check("role", filters.role, ROLES)
    return filters.role


def _since(_: sqlite3.Connection, filters: Filters) -> Value:
    starts = [times.whole(text).start for text in filters.periods]
    return max([*starts, *([times.since(filters.since)] if filters.since else [])], default=None)


def _until(_: sqlite3.Connection, filters: Filters) -> Value:
    ends = [times.whole(text).end for text in filters.periods]
    return min([*ends, *([times.until(filters.until)] if filters.until else [])], default=None)


def _dollars(_: sqlite3.Connection, filters: Filters) -> Value:
    if not filters.min_cost:
        return None
    try:
        amount = float(filters.min_cost)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise UsageError(f"{filters.min_cost!r} is not an amount of dollars, such as 2.50.")
    return amount


# ------------------------------------------------------------------------------------------------
# The list of them.


class Filter(NamedTuple):
    """What an answer can be limited by."""

    name: str
    """Of the option, the argument, the field of a query or form, and the parameter of queries."""
    about: str = ""
    """The help of the option and of the argument. A command completes some of the sentences."""
    label: str = ""
    """What a page calls it."""
    example: str = ""
    """What an empty field of a form says."""
    kind: str = "text"
    """text, flag, list (of values), time, period (a part of the calendar) or dollars."""
    is_in_query: bool = False
    """Can it be a part of the query, as in `since:7d`?"""
    read: Callable[[sqlite3.Connection, Filters], Value] | None = None
    """Returns what queries get for it, if that is not the text itself."""
    of: str = ""
    """The filter whose parameter also limits queries to this one, if they have none of its own."""

    @property
    def parameter(self) -> str:
        return self.of or self.name

    @property
    def type(self) -> type:
        kinds: dict[str, type] = {"flag": bool, "list": list}
        return kinds.get(self.kind, str)

    def shown(self, value: Any) -> str:
        if self.kind in ("time", "period"):
            return times.shown(self.name, value)
        if self.kind == "list":
            return ", ".join(value)
        return "" if self.kind == "flag" else "$" * (self.kind == "dollars") + value

    def told(self, value: Any) -> str:
        return f"{self.name.replace('_', ' ')} {self.shown(value)}".rstrip()


FILTERS = {
    one.name: one
    for one in (
        Filter(
            "kind", "Only hits of this kind (prompt, text, thinking, tool_use, plan, task ...)",
            "Kind", "all; such as prompt", "list", is_in_query=True, read=_kinds,
        ),
        Filter(
            "project", "Only this project", "Project", "all; name, path or id",
            is_in_query=True, read=projects_in,
        ),
        Filter(
            "repository", "Only this repository, with all its clones and worktrees: name or path.",
            "Repository", "all; such as owner/name", is_in_query=True, of="project",
        ),
        Filter(
            "cwd",
            "Only the project of this directory, or of the nearest one above it: an absolute path.",
            "Directory", "any; such as /srv/shop",
        ),
        Filter(
            "session", "Only this session, given by a prefix of its key.",
            "Conversation", "all; the whole key", is_in_query=True, read=_session,
        ),
        Filter("source", "Only this source", "Source", "all", is_in_query=True, read=_source),
        Filter(
            "branch", "Only work on this git branch.", "Branch", "all; such as main",
            is_in_query=True,
        ),
        Filter("model", "Only this model.", "Model", "all"),
        Filter("role", label="Role", read=_role),
        Filter(
            "tool", "Only calls of this tool, and their output.", "Tool", "all; such as Bash",
            is_in_query=True,
        ),
        Filter(
            "status",
            "Only this status, such as pending, or sessions that ended this way: error, "
            "interrupted, finished. A part is enough.",
            "Status", "any; such as pending or error",
        ),
        Filter(
            "errors", "Only sessions in which a call or a request failed.", "With errors",
            kind="flag",
        ),
        Filter(
            "min_cost", "Only sessions that cost this many dollars or more.", "Cost from ($)",
            "any; such as 2.50", "dollars", read=_dollars,
        ),
        Filter(
            "since",
            "From this time on: 12h, 7d, yesterday, monday, 'last week', '3 weeks ago' or a date.",
            "From", "such as 7d, yesterday, 2026-01-31", "time", is_in_query=True, read=_since,
        ),
        Filter(
            "until", "Up to this time; a day, week or month is included.",
            "Up to", "such as yesterday, 2026-01-31", "time", is_in_query=True, read=_until,
        ),
        Filter("month", label="Month", example="2026-01", kind="period"),
        Filter("day", label="Day", example="2026-01-31", kind="period"),
    )
}  # fmt: skip
"""All filters. Those without help are no options: pages link to them."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters as the user typed them; an empty one leaves out nothing."""

    kind: tuple[str, ...] = ()
    project: str | None = None
    repository: str | None = None
    session: str | None = None
    source: str | None = None
    branch: str | None = None
    model: str | None = None
    role: str | None = None
    tool: str | None = None
    status: str | None = None
    errors: bool = False
    min_cost: str | None = None
    since: str | None = None
    until: str | None = None
    month: str | None = None
    day: str | None = None
    cwd: str | None = None
    all: bool = False
    """Show what a list hides."""
    gone: bool = False
    with_worktrees: bool = True
    """The name of a repository includes its worktrees."""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Filters:
        """Return the filters among named values; other names are ignored."""
        names = {field.name for field in fields(cls)}
        values: dict[str, Any] = {n: value for n, value in given.items() if n in names and value}
        if isinstance(values.get("kind"), str):
            values["kind"] = (values["kind"],)
        return cls(**values)

    def limited_by(self, fields: Iterable[tuple[str, str]]) -> Filters:
        """Return the filters with those in a query: names and values."""
        filters = self
        for name, value in fields:
            kinds = (*filters.kind, value)
            filters = replace(filters, **{name: kinds if name == "kind" else value})  # type: ignore[arg-type]
        return filters

    def within(self, when: str | None) -> Filters:
        """Return the filters with a period such as `last week`; `week` is this one, so far."""
        text = " ".join((when or "").split())
        if text.lower() in ("", "all"):
            return self
        if self.since or self.until:
            raise UsageError("Give a period, or --since and --until, not both.")
        text = f"this {text}" if text.lower() in _THIS else text
        start, end = times.period(text)
        # 7d and 12h name the moment from which on: what has not ended has no end.
        return replace(self, since=text, until=None if start == end else text)

    def without(self, *names: str) -> Filters:
        empty = Filters()
        return replace(self, **{name: getattr(empty, name) for name in names})

    def given(self) -> dict[str, object]:
        """Return the filters that are set, by their names."""
        return {name: value for name, value in asdict(self).items() if value and name in FILTERS}

    def told(self, name: str) -> str:
        return FILTERS[name].told(getattr(self, name))

    @property
    def periods(self) -> list[str]:
        """Days and months, which limit both `since` and `until`."""
        return [text for text in (self.month, self.day) if text]

    @property
    def is_of_messages(self) -> bool:
        """Is there a filter that only messages can match?"""
        return bool(self.model or self.role or self.branch)

    def applied(self, known: Collection[str], where: str, having: Callable[[str], str]) -> Filters:
        """Return the filters. Raises UsageError if one of them is not known `where` they apply.

        `having` returns the end of that sentence, for the name of the filter.
        """
        given = {**self.given(), **({"gone": True} if self.gone else {})}
        for name in given:
            if parameter_of(name) not in known:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} does not apply to {where}{having(name)}")
        return self

    def parameters(self, connection: sqlite3.Connection) -> Parameters:
        """Return the parameters of the queries; raise if a filter names nothing that exists."""

        def given(name: str) -> Value:
            value = getattr(self, name) or None
            return 1 if value is True else value

        return {
            one.name: one.read(connection, self) if one.read else given(one.name)
            for one in FILTERS.values()
            if one.kind != "period" and not one.of
        } | {name: given(name) for name in _SHOWS_MORE}


def parameter_of(name: str) -> str:
    """Return the parameter of queries that a filter, or anything else of this name, limits."""
    return FILTERS[name].parameter if name in FILTERS else name


class Nothing(NamedTuple):
    """Why nothing was found: how much there is without a filter, and words that occur nowhere."""

    filters: tuple[tuple[str, str, int], ...]
    """Name and words of each filter without which there would be something, and how much."""
    in_all: int
    """How much there would be without all of them."""
    words: tuple[str, ...] = ()
    """Words of a query that occur nowhere."""
    is_close: bool = False
    """These counts are of items with only some of the words."""
    is_lower_bound: bool = False
    """Not everything was counted: there may be more."""

    def lines(self, noun: str) -> Iterator[str]:
        """Yield the reasons, one sentence each."""
        end = " with some of the words." if self.is_close else "."
        sign = "≥" if self.is_lower_bound else ""
        for _, told, count in self.filters:
            yield f"Without {told}: {sign}{terminal.many(count, noun)}{end}"
        if self.in_all and not self.filters:
            yield f"Without all filters: {sign}{terminal.many(self.in_all, noun)}{end}"
        if self.words:
            shown, more = self.words[:_SHOWN], len(self.words) - _SHOWN
            yield f"Found nowhere: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}."

    def as_json(self) -> dict[str, object]:
        filters = [{"filter": name, "told": told, "without": count}
                   for name, told, count in self.filters]  # fmt: skip
        return {
            "filters": filters,
            "without_filters": self.in_all,
            "is_close": self.is_close,
            "words": list(self.words),
            **({"is_lower_bound": True} if self.is_lower_bound else {}),
        }


def nothing(filters: Filters, count: Callable[[Filters], int]) -> Nothing:
    """Count what there would be without each of the filters, and without all of them."""
    given = filters.given()
    if not given:
        return Nothing((), 0)
    alone = ((name, filters.told(name), count(filters.without(name))) for name in given)
    return Nothing(tuple(one for one in alone if one[2]), count(filters.without(*given)))


def source_names() -> tuple[str, ...]:
    from ..sources import SOURCES  # a third of what a command takes to start

    return tuple(SOURCES)


def known_source(name: str | None) -> None:
    """Raise UsageError if there is no source of this name."""
    _check("source", name, source_names())


def _check(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value and value not in known:
        names = dict.fromkeys(known)
        hint = did_you_mean(value, names)
        raise UsageError(f"Unknown {name} {value!r}.{hint} Choose one of: {', '.join(names)}.")
