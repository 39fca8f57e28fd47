"""`recap`: what was done in a period, by day and repository."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

from .question import Field, FilterFields, Reader, Size, question
from .recent import Said, endings, where_of

if TYPE_CHECKING:
    import sqlite3

    from ..ask.blame import MadeCommit
    from ..ask.filters import Filters, Nothing
    from ..ask.refs import Names
    from ..ask.usage import Spent

_OPEN = 100
_LISTED = 10  # open items and files that are named
_NOUNS = {"inbox": "unread message", "session": "unfinished conversation"}

Place = tuple[int, str | None]
"""A session, and the day unless the whole period is one."""
Rows = dict[Place, list["sqlite3.Row"]]


@dataclass
class Commit:
    """A commit as the conversation's own git command printed it."""

    ref: str | None
    hash: str
    subject: str
    branch: str


@dataclass
class Done:
    """What was done in a conversation on a day or, by repository, in the whole period."""

    key: str | None
    title: str | None
    day: Annotated[str | None, "Local date; null by repository."]
    repository: Annotated[str | None, "With all clones and worktrees."]
    started: str | None
    ended: str | None
    state: Annotated[str | None, "How the conversation ended, unless it went on later."]
    prompts: int
    commits: list[Commit]
    pull_requests: Annotated[list[str], "Addresses."]
    files: Annotated[list[str], "Files that were edited, relative to the repository if inside."]
    cost_usd: float | None
    is_lower_bound: bool
    outcome: Annotated[Said | None, "The last answer, unless the conversation went on later."]
    noted: Annotated[list[dict[str, object]], "Notes of the user on the conversation."]
    is_short: Annotated[bool, "At most one prompt, and no tool was called."]
    _session: int
    _repository: str | None
    _about: str


@dataclass
class Left:
    """An open item."""

    kind: Annotated[str, "task, todo, inbox, plan or session"]
    key: str | None
    text: str | None
    status: str | None
    repository: str | None


@dataclass
class Group:
    """What was done on one day in one repository."""

    day: str | None
    repository: str | None
    about: str
    items: list[Done]
    """Those that are not short."""
    short: int


@dataclass
class LeftIn:
    """What is open in one repository."""

    repository: str | None
    about: str
    """All of it, counted."""
    items: list[Left]


@dataclass
class Recap:
    """What was done in a period, and what of it is open."""

    since: Annotated[str | None, "When the period starts, UTC."]
    until: Annotated[str | None, "When it ends; null if it has not ended."]
    conversations: Annotated[int, "Number of conversations."]
    repositories: Annotated[int, "Number of repositories."]
    commits: Annotated[int, "Number of commits."]
    pull_requests: Annotated[int, "Number of pull requests."]
    files: Annotated[int, "Number of files that were edited."]
    cost_usd: Annotated[float | None, "What all responses of the period cost."]
    estimated_cost_usd: Annotated[float | None, "An estimate, if the cost is a lower bound."]
    is_lower_bound: Annotated[bool, "Does the cost leave something out?"]
    open: Annotated[list[Left], "The newest open items of the period."]
    open_count: Annotated[int, "All open items of the period, at most 100."]
    nothing: Annotated[dict[str, object] | None, "why there are no items"]
    total: Annotated[int, "Rows: conversations, counted on each of their days."]
    items: Annotated[list[Done], "Conversations, by day and repository, the newest first."]
    _has_more_open: bool
    _groups: list[Group]
    _repositories: list[Group]
    """All that was done by repository, if the items are not all of it."""
    _open: list[LeftIn]
    _about: str
    _period: str
    _is_markdown: bool
    _newest: str
    """The day of the newest conversation, if nothing was done in the period."""
    _why: list[str]


@question(
    "Recap",
    items="conversations",
    about="What was done in a period, by day and repository: conversations with their outcome, "
    "commits, pull requests, edited files and cost, and what was left open. For questions such as "
    "what did I do yesterday, and for stand-ups.",
    tables=("responses", "prices"),
    terminal=Size(0), json=Size(100), mcp=Size(20, most=200), web=Size(500),
)  # fmt: skip
def recap(
    reader: Reader,
    when: Annotated[
        str | None,
        Field(
            "today, yesterday, week, month, last week, 7d or a date.",
            name="[WHEN]",
            is_argument=True,
            joins=lambda text: True,
        ),
    ] = None,
    *,
    by: Annotated[
        Literal["day", "repository"], Field("One list for each day, or one for each repository.")
    ] = "day",
    markdown: Annotated[bool, Field("Print Markdown.", is_option=True)] = False,
    remote: Annotated[
        bool, Field("Use the fleet server, with the data of all machines.", is_option=True)
    ] = False,
    filters: Annotated[
        Filters, FilterFields(("project", "repository", "cwd", "branch", "since", "until"))
    ],
) -> Recap:
    """Recap a period: outcomes, commits, files, cost, and what is open.

    WHEN is today (the default), yesterday, week, month or year (the current one, so far), last
    week, monday, 7d or a date. Work in a worktree belongs to its repository. A conversation of
    several days is listed on each, with what was done then. Commits are those that git printed in
    a conversation.

    \b
    Examples:
      assoc-ingest recap yesterday
      assoc-ingest recap last week --by repository --markdown
    """
    from .. import sql
    from ..ask.times import between
    from ..ask.usage import rates, spent
    from ..terminal import moment

    filters = filters.within(when or ("" if filters.since or filters.until else "today"))
    where = where_of(reader.db, filters)
    since, until = _text(where["since"]), _text(where["until"])
    sessions = {
        row["id"]: row for row in sql.ask(reader.db, "lists/sessions", **where, limit=-1).fetchall()
    }
    done, usage = _done(reader, sessions, where, is_by_day=by == "day")
    rate = rates(reader.db)

    def spent_by(done: Sequence[Done]) -> Spent:
        places = ((one._session, one.day) for one in done)
        return spent(reader.db, [row for place in places for row in usage.get(place, ())], rate)

    items = reader.page(done)
    _complete(reader, items, done, sessions, until, spent_by)
    left = _left_open(reader, where) if done else []
    why, newest = (None, None) if done else _nothing(reader, filters)
    total = spent_by(done)
    return Recap(
        since=since,
        until=until,
        conversations=len({one._session for one in done}),
        repositories=len({one._repository for one in done}),
        commits=sum(len(one.commits) for one in done),
        pull_requests=len({url for one in done for url in one.pull_requests}),
        files=_file_count(done),
        cost_usd=total.cost_usd,
        estimated_cost_usd=total.estimate and total.estimate.cost_usd,
        is_lower_bound=bool(total.partial or total.unpriced),
        open=left[:_LISTED],
        open_count=min(len(left), _OPEN),
        nothing=why and why.as_json(),
        total=len(done),
        items=[*items],
        _has_more_open=len(left) > _OPEN,
        _groups=[*_groups(done, items, spent_by)],
        _repositories=[*_by_repository(done, spent_by)] if len(items) < len(done) else [],
        _open=[*_left_in(left[:_OPEN])],
        _about=_about(done, total, is_sum=True),
        _period=between(since, until),
        _is_markdown=markdown,
        _newest=moment(newest)[:10],
        _why=[*why.lines("conversation")] if why else [],
    )  # fmt: skip


def _complete(
    reader: Reader,
    items: Sequence[Done],
    done: Sequence[Done],
    sessions: Mapping[int, sqlite3.Row],
    until: str | None,
    spent_by: Callable[[Sequence[Done]], Spent],
) -> None:
    """Add what only the listed conversations need: notes, costs and how they ended."""
    from ..ask.notes import noted_sessions, notes_above, told
    from ..ask.refs import Names
    from ..terminal import many

    last = {one._session: one for one in reversed(done)}
    ends = endings(reader.db, {one._session for one in items}, Names(reader.db), reader.mask)
    noted = noted_sessions(reader.db)
    for one in items:
        session = sessions[one._session]
        if session["session_key"] in noted:
            one.noted = told(notes_above(reader.db, session["session_key"], None), reader.mask)
        cost = spent_by([one])
        one.cost_usd = cost.cost_usd
        prompts = many(one.prompts, "prompt") if one.prompts else ""
        one._about = ", ".join(filter(None, (prompts, _about([one], cost))))
        went_on = last[one._session] is not one or (until and session["ended_at"] >= until)
        if not went_on:
            one.state, outcome = ends[one._session]
            one.outcome = Said(outcome.ref, outcome.text) if outcome else None


def _left_open(reader: Reader, where: Mapping[str, object]) -> list[Left]:
    """Return what is open of the period, and one more than is counted if there is more."""
    from .. import sql
    from ..ask.refs import short_keys

    # Not only of the last month: what was left open in that period.
    rows = sql.ask(reader.db, "lists/open", **where, all=1, limit=_OPEN + 1).fetchall()
    keys = short_keys(reader.db, {row["session_key"] for row in rows if row["session_key"]})
    return [
        Left(
            row["what"], keys.get(row["session_key"]), row["text"], row["status"],
            row["repository"],
        )
        for row in rows
    ]  # fmt: skip


def _nothing(reader: Reader, filters: Filters) -> tuple[Nothing, str | None]:
    """Return why nothing was done in the period, and when the newest conversation ended."""
    from .. import sql
    from ..ask.filters import nothing

    why = nothing(filters, lambda other: _count(reader.db, other))
    return why, sql.ask(reader.db, "pages/newest_session").fetchone()["ended_at"]


def _groups(
    done: Sequence[Done], items: Sequence[Done], spent_by: Callable[[Sequence[Done]], Spent]
) -> Iterator[Group]:
    """Yield the items by day and repository.

    What a group adds up to is of all of it, also where the items end within it.
    """
    listed = {id(one) for one in items}
    for (day, _), grouped in groupby(done, lambda one: (one.day, one._repository)):
        rows = [*grouped]
        shown = [one for one in rows if id(one) in listed]
        if shown:
            yield Group(
                day,
                rows[0].repository,
                _about(rows, spent_by(rows), is_sum=True),
                [one for one in shown if not one.is_short],
                sum(one.is_short for one in shown),
            )


def _by_repository(
    done: Sequence[Done], spent_by: Callable[[Sequence[Done]], Spent]
) -> Iterator[Group]:
    """Yield what all conversations of each repository add up to, the busiest first."""
    repositories: dict[str | None, list[Done]] = {}
    for one in done:
        repositories.setdefault(one._repository, []).append(one)
    for rows in sorted(repositories.values(), key=len, reverse=True):
        yield Group(None, rows[0].repository, _about(rows, spent_by(rows), is_sum=True), [], 0)


def _left_in(left: Sequence[Left]) -> Iterator[LeftIn]:
    """Yield what is open by repository, all of it counted, and the first of it named."""
    from ..terminal import many

    listed = {id(one) for one in left[:_LISTED]}
    for repository, grouped in groupby(left, lambda one: one.repository):
        rows = [*grouped]
        counts = Counter(one.kind for one in rows)
        about = ", ".join(many(count, _NOUNS.get(kind, kind)) for kind, count in counts.items())
        yield LeftIn(repository, about, [one for one in rows if id(one) in listed])


def _count(connection: sqlite3.Connection, filters: Filters) -> int:
    from .. import sql

    where = where_of(connection, filters)
    return len(sql.ask(connection, "lists/sessions", **where, limit=-1).fetchall())


def _text(value: object) -> str | None:
    return None if value is None else str(value)


# -- what was done ---------------------------------------------------------------------------------


def _done(
    reader: Reader,
    sessions: Mapping[int, sqlite3.Row],
    where: Mapping[str, object],
    *,
    is_by_day: bool,
) -> tuple[list[Done], Rows]:
    """Return what was done, by day, then by repository, the newest first; and the responses."""
    from .. import sql
    from ..ask.blame import commits_of
    from ..ask.refs import Names, short_keys

    given = {"sessions": json.dumps([*sessions]), "since": where["since"], "until": where["until"]}

    def by_place(name: str) -> Rows:
        rows: Rows = {}
        for row in sql.ask(reader.db, f"pages/recap_{name}", **given):
            place = row["session_id"], row["day"] if is_by_day else None
            rows.setdefault(place, []).append(row)
        return rows

    homes = {
        row["id"]: row
        for row in sql.ask(reader.db, "pages/recap_sessions", sessions=given["sessions"])
    }
    prompts, usage = by_place("prompts"), by_place("usage")
    calls, links = by_place("calls"), by_place("links")
    runs = [(row, place) for place, rows in calls.items() for row in rows if row["action"] == "run"]
    runs.sort(key=lambda run: run[0]["timestamp"])
    places, names = dict(runs), Names(reader.db)
    commits: dict[Place, list[Commit]] = {}
    all_made = [*commits_of(reader.db, [row for row, _ in runs])]
    names.look_up({row["file_id"] for row, _ in all_made})
    for row, made in all_made:
        commits.setdefault(places[row], []).append(as_commit(reader, row, made, names))
    listed = {**prompts, **usage, **calls, **links}
    keys = short_keys(reader.db, {sessions[session]["session_key"] for session, _ in listed})
    done = []
    for place in listed:
        session, day = place
        row, home = sessions[session], homes[session]
        spoken = [*prompts.get(place, ()), *usage.get(place, ())]
        acted = [*calls.get(place, ()), *links.get(place, ())]
        starts = [one["started_at"] for one in spoken] + [one["timestamp"] for one in acted]
        ends = [one["ended_at"] for one in spoken] + [one["timestamp"] for one in acted]
        done.append(
            Done(
                key=keys[row["session_key"]],
                title=row["title"],
                day=day,
                repository=home["repository"],
                started=min(starts),
                ended=max(ends),
                state=None,
                prompts=sum(one["prompts"] for one in prompts.get(place, ())),
                commits=commits.get(place, []),
                pull_requests=[*dict.fromkeys(one["url"] for one in links.get(place, ()))],
                files=_files(calls.get(place, ()), home),
                cost_usd=None,
                is_lower_bound=any(
                    one["partial"] or one["unpriced"] for one in usage.get(place, ())
                ),
                outcome=None,
                noted=[],
                is_short=is_short(row),
                _session=session,
                _repository=home["repository_key"],
                _about="",
            )
        )
    _sort(done)
    return done, usage


def _sort(done: list[Done]) -> None:
    """Sort by day, then by repository, the newest first."""
    newest: dict[tuple[str | None, str | None], str] = {}
    for one in done:
        group = one.day, one._repository
        newest[group] = max(newest.get(group, ""), one.ended or "")
    done.sort(key=lambda one: (one.ended or "", one._session), reverse=True)
    done.sort(
        key=lambda one: (
            one.day or "", newest[one.day, one._repository], one._repository or "",
        ),
        reverse=True,
    )  # fmt: skip


def is_short(session: Mapping[str, Any] | sqlite3.Row) -> bool:
    """Was it a single question, or the call of a script?"""
    return session["prompt_count"] <= 1 and not session["tool_call_count"]


def as_commit(reader: Reader, row: sqlite3.Row, made: MadeCommit, names: Names) -> Commit:
    """Return a commit with the reference of what git printed."""
    ref = names.of(row["file_id"], row["byte_offset"])
    return Commit(ref, made.hash, reader.mask(made.subject), made.branch)


def _files(calls: Sequence[sqlite3.Row], home: sqlite3.Row) -> list[str]:
    """Return the edited files, each once, those of the repository relative to it."""
    from ..paths import slashed

    bases = [
        slashed(base).rstrip("/") + "/"
        for base in (home["path"], home["repository_path"], home["cwd"])
        if base
    ]
    files = {}
    for row in calls:
        if row["action"] == "edit" and row["path"]:
            path = slashed(row["path"])
            base = next((base for base in bases if path.startswith(base)), "")
            files[path[len(base) :]] = True
    return [*files]


def _file_count(done: Sequence[Done]) -> int:
    return len({(one._repository, path) for one in done for path in one.files})


def _about(done: Sequence[Done], spent: Spent, *, is_sum: bool = False) -> str:
    """Return what these add up to, in a phrase."""
    from ..terminal import many

    repositories = len({one._repository for one in done})
    parts = [many(len({one._session for one in done}), "conversation")] if is_sum else []
    if repositories > 1:
        parts[0] += f" in {repositories:,} repositories"
    counts = {
        "commit": sum(len(one.commits) for one in done),
        "pull request": len({url for one in done for url in one.pull_requests}),
        "file": _file_count(done),
    }
    parts += [many(count, noun) for noun, count in counts.items() if count]
    return ", ".join(filter(None, [*parts, spent.cost()]))
