"""Filters of a question (project, session, source, branch, time, model, cost ...), parsed in one
place.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from difflib import SequenceMatcher
from pathlib import Path, PureWindowsPath
from typing import NamedTuple, NoReturn

from .. import sql, terminal
from ..errors import NotFoundError, UsageError, did_you_mean
from ..paths import comparable, comparable_name, here, slashed
from .refs import find_session, shared_length

# ------------------------------------------------------------------------------------------------
# Which projects `--project` means, decided in one place: an id, a path, or a name.
#
# 1. An absolute path is the project at exactly that path. So are `.`, `~` and paths that begin so.
# 2. A number is an id, as printed by `list projects --json`.
# 3. Anything else is a name, or the name of the directory below `projects/`, in the same case.
# 4. Commands that read also accept another case, and a part of a name or path if only one project
#    has it. For them, a name includes the worktrees of that repository: what was said there is
#    about it, too.
#
# Commands that remove accept only the first three, and nothing that could mean two projects.


_LISTED = 20
_COMPARED = 200
_LEAST_SHARED = 2  # parts of a path, of which the first of most is empty
_ID_DIGITS = 18
_SEE_THEM = "To see them: assoc-ingest list projects"


def project_ids(
    connection: sqlite3.Connection, project: str, *, with_worktrees: bool = True
) -> str:
    """Return the ids of the projects that `project` means to a query: a JSON array."""
    return json.dumps(find_projects(connection, project, with_worktrees=with_worktrees))


def find_projects(
    connection: sqlite3.Connection,
    project: str,
    *,
    exactly: bool = False,
    with_worktrees: bool = True,
) -> list[int]:
    """Return the ids of the projects that `project` means: at least one.

    A directory is a project in each root that knows it. With `exactly`, the text must name one
    directory in full. Raises NotFoundError with the nearest, and UsageError with all that the text
    could mean.
    """
    known = sql.ask(connection, "pages/project_names").fetchall()
    path = as_path(project)
    if path is not None:
        return _ids(_at(path, known) or _missing_path(path, known))
    by_id = [row for row in known if _is_id(project) and row["id"] == int(project)]
    by_name = [row for row in known if row["name"] == project]
    by_key = [row for row in known if row["key"] == comparable_name(project)]
    if exactly:
        found = _only(project, _unique(by_id + by_name + by_key))
        return _ids(_same(found or _not_exact(project, known), known))
    if by_id:
        return _ids(_same(by_id, known))
    found = by_name or by_key or _in_other_case(project, known)
    found = found or _only(project, _loosely(project, known)) or _missing(project, known)
    found = _same(found, known)
    if with_worktrees:
        found = _unique([*found, *_same(_worktrees(found, known), known)])
    return _ids(found)


# -- what the text is ------------------------------------------------------------------------------


def as_path(project: str) -> str | None:
    """Return `project` as an absolute path, None if it is an id or a name."""
    text = slashed(project) if PureWindowsPath(project).is_absolute() else project
    if text.split("/")[0] in (".", ".."):
        directory = here()
        if directory is None:
            raise UsageError(
                "The current directory no longer exists. Give a project: --project NAME"
            )
        text = (directory / text).as_posix()
    elif text.startswith("~"):
        text = _expanded(text)
    is_path = text.startswith("/") or PureWindowsPath(text).is_absolute()
    return posixpath.normpath(text) if is_path else None


def _expanded(text: str) -> str:
    """Return a path below a user's home; if there is no such home, it is a name."""
    try:
        return Path(text).expanduser().as_posix()
    except RuntimeError:
        return text


def _is_id(project: str) -> bool:
    return project.isascii() and project.isdigit() and len(project) <= _ID_DIGITS


# -- what fits it ----------------------------------------------------------------------------------


def _at(path: str, known: Iterable[sqlite3.Row]) -> list[sqlite3.Row]:
    place = comparable(path)
    return [row for row in known if row["path"] and comparable(row["path"]) == place]


def _in_other_case(project: str, known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return the projects whose name differs only in case, if they all have the same name."""
    rows = [row for row in known if (row["name"] or "").casefold() == project.casefold()]
    return rows if len({row["name"] for row in rows}) == 1 else []


def _loosely(project: str, known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return the projects with this name in any case or, if none, with the text in name or path."""
    wanted = project.casefold()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda text: text == wanted,
        lambda text: bool(wanted) and wanted.replace("\\", "/") in text,
    )
    for fits in tests:
        rows = [row for row in known if any(fits(text.casefold()) for text in _texts(row))]
        if rows:
            return rows
    return []


def _texts(row: sqlite3.Row) -> tuple[str, ...]:
    return tuple(filter(None, (row["name"], row["key"], row["path"])))


def _ids(rows: Iterable[sqlite3.Row]) -> list[int]:
    return [int(row["id"]) for row in rows]


def _unique(rows: Iterable[sqlite3.Row]) -> list[sqlite3.Row]:
    return list({row["id"]: row for row in rows}.values())


def _place(row: sqlite3.Row) -> str:
    return comparable(row["path"]) if row["path"] else str(row["key"])


def _same(found: list[sqlite3.Row], known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return all projects in the same directories: each agent and home has its own."""
    directories = {row["same_as"] or row["id"] for row in found}
    return [row for row in known if (row["same_as"] or row["id"]) in directories]


def _worktrees(found: list[sqlite3.Row], known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    ids = set(_ids(found))
    return [row for row in known if row["parent_id"] in ids]


# -- what does not ---------------------------------------------------------------------------------


def _only(project: str, rows: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return the rows; raise if they are of several directories."""
    if len({_place(row) for row in rows}) > 1:
        raise UsageError(
            f"{project!r} matches {len(rows)} projects; give the path or id of one:{_listed(rows)}"
        )
    return rows


def _listed(rows: list[sqlite3.Row]) -> str:
    lines = [f"\n  {row['id']}  {row['path'] or row['key']}" for row in rows[:_LISTED]]
    return "".join(lines) + (f"\n  and {len(rows) - _LISTED} more" if rows[_LISTED:] else "")


def _not_exact(project: str, known: list[sqlite3.Row]) -> NoReturn:
    if found := _loosely(project, known):
        raise UsageError(
            f"No project is named exactly {project!r}; give the name, path or id of one:"
            f"{_listed(found)}"
        )
    _missing(project, known)


def _missing(project: str, known: list[sqlite3.Row]) -> NoReturn:
    hint = did_you_mean(project, (row["name"] for row in known if row["name"]), show=repr)
    raise NotFoundError(f"No project is named {project!r}.{hint} {_SEE_THEM}")


def _missing_path(path: str, known: list[sqlite3.Row]) -> NoReturn:
    parts = {row["path"]: comparable(row["path"]).split("/") for row in known if row["path"]}
    nearest = _nearest(comparable(path).split("/"), parts)
    hint = f" Did you mean {nearest!r}?" if nearest else ""
    raise NotFoundError(f"No project has the path {path!r}.{hint} {_SEE_THEM}")


def _nearest(wanted: list[str], known: dict[str, list[str]]) -> str | None:
    """Return the path that shares most of its first parts, among those the most similar one."""
    if not known:
        return None
    shared = {text: shared_length(wanted, parts) for text, parts in known.items()}
    longest = max(shared.values())
    if longest < _LEAST_SHARED:
        return None
    candidates = sorted(text for text, length in shared.items() if length == longest)
    matcher = SequenceMatcher(b="/".join(wanted).casefold(), autojunk=False)

    def likeness(text: str) -> float:
        matcher.set_seq1(text.casefold())
        return matcher.ratio()

    return max(candidates[:_COMPARED], key=likeness)


# ------------------------------------------------------------------------------------------------
# Parses times as people write them. `since` and `until` mean the same wherever they can be given.
#
#     30m, 12h                 that long ago, to the second
#     7d, 2w, last 7 days      the last 7 days, of which today is one: from the day 6 days ago on
#     3 days ago, 2 weeks ago  that day; also months and years
#     today, yesterday, monday ... sunday (the last one, which may be today)
#     this week, last week, this month, last month, this year, last year
#     2026-01-31, 2026-01, 2026, 2026-01-31T12:00
#
# For a period, `since` is its start and `until` its end. Days, weeks and months are those of the
# local calendar; weeks begin on Monday.


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ago = re.compile(
    r"(?:last )?(\d{1,6})\s*([mhdw]|(?:minute|hour|day|week)s?)", re.IGNORECASE | re.ASCII
).fullmatch
_long_ago = re.compile(r"(\d{1,6}) (minute|hour|day|week|month|year)s? ago", re.ASCII).fullmatch
_date = re.compile(r"\d{4}(-\d\d(-\d\d)?)?", re.ASCII).fullmatch
_moment = re.compile(r"\d{4}-\d\d-\d\d[T ].+", re.ASCII).fullmatch
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIRST = 2000  # year of the first time that is stored


class Period(NamedTuple):
    """The stored times at which a period begins and ends; for a moment, these are the same."""

    start: str
    end: str


def ago(text: str) -> timedelta | None:
    """Return a span of time such as `90d`; None if the text is none."""
    match = _ago(text.strip())
    return timedelta(**{_UNITS[match[2][0].lower()]: int(match[1])}) if match else None


def since(text: str, now: datetime | None = None) -> str:
    """Return the stored time at which a period begins."""
    return period(text, now).start


def until(text: str, now: datetime | None = None) -> str:
    """Return the stored time at which a period ends."""
    return period(text, now).end


def period(text: str, now: datetime | None = None) -> Period:
    """Return the period that a text names, see the table above. Raises UsageError."""
    try:
        start, end = _span(text.strip(), (now or present()).astimezone())
        return Period(_stored(start), _stored(end))
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"Invalid time {text!r}. Use 30m, 12h, 7d, today, yesterday, monday, 'last week', "
            "'3 weeks ago' or a date such as 2026-01-31."
        ) from None


def whole(text: str) -> Period:
    """Return the period that a text names. Raises UsageError for a moment."""
    named = period(text)
    if named.start == named.end:
        raise UsageError(
            f"{text!r} is neither a day nor a month. Use yesterday, 'last month', 2026-01-31 or "
            "2026-01."
        )
    return named


def present() -> datetime:
    """Return the time to which spans such as `7d` are relative."""
    return datetime.now().astimezone()


def _span(text: str, now: datetime) -> tuple[date, date]:
    """Return the first day of a period and the day after it, or a moment twice."""
    today = now.date()
    if _date(text):
        first = date.fromisoformat((text + "-01-01")[:10])
        return first, _after(first, ("year", "month", "day")[text.count("-")])
    if _moment(text):
        return (moment := datetime.fromisoformat(text).astimezone()), moment
    words = " ".join(text.lower().replace("-", " ").replace("_", " ").split())
    span = ago(words)
    if span is not None:
        if span % timedelta(days=1) or words.rstrip("s").endswith(("m", "minute", "h", "hour")):
            return now - span, now - span
        return (first := today - span + timedelta(days=1)), first
    if match := _long_ago(words):
        return _back(now, int(match[1]), match[2])
    if words in ("today", "yesterday"):
        return _back(now, ("today", "yesterday").index(words), "day")
    if words in _DAYS:
        return _back(now, (today.weekday() - _DAYS.index(words)) % 7, "day")
    which, _, unit = words.partition(" ")
    if which in ("this", "last") and unit in ("week", "month", "year"):
        first = _beginning(today, unit)
        if which == "last":
            first = _beginning(first - timedelta(days=1), unit)
        return first, _after(first, unit)
    raise ValueError(text)


def _back(now: datetime, count: int, unit: str) -> tuple[date, date]:
    """Return the moment so many minutes or hours ago, or the day so many days, weeks ... ago."""
    if unit in ("minute", "hour"):
        moment = now - timedelta(**{f"{unit}s": count})
        return moment, moment
    day = now.date()
    if unit in ("day", "week"):
        day -= timedelta(**{f"{unit}s": count})
    else:
        months = day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1)
        first = date(months // 12, months % 12 + 1, 1)
        length = (_after(first, "month") - first).days
        day = first.replace(day=min(day.day, length))
    return day, _after(day, "day")


def _beginning(day: date, unit: str) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _after(first: date, unit: str) -> date:
    """Return the first day after the day, week, month or year that begins on `first`."""
    if first.year == date.max.year:
        return date.max
    days = {"day": 1, "week": 7, "month": 31, "year": 366}[unit]
    after = first + timedelta(days=days)
    return after if unit in ("day", "week") else _beginning(after, unit)


def _stored(moment: date) -> str:
    """Return the stored form of a moment, or of the start of a day."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if moment.year < _FIRST:
        raise ValueError(moment)
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def told(name: str, text: str) -> str:
    """Return a filter with a time as the user typed it, and the day or moment that it means."""
    if name in ("month", "day") and _date(text):
        return f"{name} {text}"
    start, end = period(text)
    at = start if name != "until" or start == end else _before(end)
    shown = terminal.moment(at)
    if shown.endswith("00:00") and ":" not in text:
        shown = shown[:10]
    if name == "until" and start == end:
        shown = f"before {shown}"
    return f"{name} {shown}" if _moment(text) or text == shown else f"{name} {text} ({shown})"


def as_given(name: str, stored: str) -> str:
    """Return a stored time of a filter as a person types it: as a day if it is its start or end."""
    shown = terminal.moment(stored)
    if not shown.endswith(" 00:00"):
        return shown
    return terminal.moment(_before(stored) if name == "until" else stored)[:10]


def _before(end: str) -> str:
    """Return the start of the day that ends at a stored time."""
    return _stored(datetime.fromisoformat(end).astimezone().date() - timedelta(days=1))


# ------------------------------------------------------------------------------------------------
# The filters of a search, a list, a sum or a page: one object for all of them.
#
# A filter comes from an option, from `field:value` in a query, from an argument of a tool, or from
# the address of a page. Only this module reads it, so it means the same everywhere
# (docs/search.md). Kinds in a query add to those of the options; any other filter in a query
# replaces that of the option.


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
    """Filters as the user typed them; an empty one leaves out nothing."""

    kind: tuple[str, ...] = ()
    """Only hits of these kinds."""
    project: str | None = None
    session: str | None = None
    source: str | None = None
    branch: str | None = None
    model: str | None = None
    role: str | None = None
    tool: str | None = None
    status: str | None = None
    """A part of the status in a list, or of how a session ended."""
    errors: bool = False
    """Only sessions in which something failed."""
    min_cost: str | None = None
    """Only sessions that cost this many dollars or more."""
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
        return cls(**{name: value for name, value in given.items() if name in names and value})  # type: ignore[arg-type]

    def limited_by(self, fields: Iterable[tuple[str, str]]) -> Filters:
        """Return the filters with those in a query: names and values."""
        filters = self
        for name, value in fields:
            kinds = (*filters.kind, value)
            filters = replace(filters, **{name: kinds if name == "kind" else value})  # type: ignore[arg-type]
        return filters

    def without(self, *names: str) -> Filters:
        empty = Filters()
        return replace(self, **{name: getattr(empty, name) for name in names})

    def given(self) -> dict[str, object]:
        """Return the filters that are set, by their names."""
        shows_more = ("all", "gone", "with_worktrees")
        return {
            name: value for name, value in asdict(self).items() if value and name not in shows_more
        }

    def told(self, name: str) -> str:
        value = getattr(self, name)
        if name in ("since", "until", "month", "day"):
            return told(name, value)
        if name == "errors":
            return "errors"
        value = ", ".join(value) if name == "kind" else value
        return f"min cost ${value}" if name == "min_cost" else f"{name} {value}"

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
            if name not in known:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} does not apply to {where}{having(name)}")
        return self

    def parameters(self, connection: sqlite3.Connection) -> Parameters:
        """Return the parameters of the queries; raise if a filter names nothing that exists."""
        for kind in self.kind:
            _check("kind", kind, (*WHAT, *MESSAGE_KINDS))
        if self.source and self.source not in source_names():  # a newer version has more
            rows = connection.execute("select kind from sources where kind = ?", (self.source,))
            known_source(None if rows.fetchone() else self.source)
        _check("role", self.role, ROLES)
        projects = None
        if self.project:
            projects = project_ids(connection, self.project, with_worktrees=self.with_worktrees)
        periods = [whole(text) for text in (self.month, self.day) if text]
        starts = [*(one.start for one in periods), *map(since, filter(None, [self.since]))]
        ends = [*(one.end for one in periods), *map(until, filter(None, [self.until]))]
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


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise UsageError(f"{text!r} is not an amount of dollars, such as 2.50.")
    return amount
