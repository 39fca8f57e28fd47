"""The timeline of a conversation: turns, tools and subagents as lanes, and the turns as a table.

A page has so many turns: a turn is a prompt and all that follows until the next one. It lasts until
the last answer or result. The time in which a question or a declined call waited for a person is no
part of it. Pauses are cut out of the axis (`lanes`), and each bar is a link to its place.

Calls are counted as in the header of the conversation: what repeats another file is left out, and
so are the turns that a fork repeats. Calls before the first prompt have a row of their own.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from .. import sql, terminal
from ..ask import conversation as message_text
from ..ask.conversation import Conversation
from ..records import ASK
from ..terminal import one_line
from . import conversation, pages
from .conversation import MOST_FILES, MOST_SUBAGENTS
from .entries import name_of
from .pages import PageError
from .urls import BlockPlace, Permalinks

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


# ------------------------------------------------------------------------------------------------
# Lays spans of time out as bars in lanes, one beside the other, on one axis.
#
# The axis shows the time in which something ran: of a pause only a narrow gap is left. Bars that
# would be too close to be told apart are one, so that a lane has an end however many spans it
# has.


WIDTH = 1_000
"""Units of the axis."""

_NARROWEST = 3.0  # units of a bar
_GAP = 6.0  # units of a pause


class Span(NamedTuple):
    """Something that ran from one second to another."""

    start: float
    end: float
    text: str
    address: str
    is_bad: bool = False


class Bar(NamedTuple):
    """A bar of a lane, in units of the axis; `others` of its spans are not named."""

    x: float
    width: float
    text: str
    address: str
    is_bad: bool
    others: int


class Axis:
    """Where on the axis a second is."""

    def __init__(self, spans: Iterable[Span]) -> None:
        """Remember when anything ran."""
        self._runs: list[tuple[float, float]] = []
        for start, end in sorted((span.start, span.end) for span in spans):
            if self._runs and start <= self._runs[-1][1]:
                self._runs[-1] = self._runs[-1][0], max(end, self._runs[-1][1])
            else:
                self._runs.append((start, end))
        lengths = [end - start for start, end in self._runs]
        gap = min(_GAP, WIDTH / 4 / max(len(self._runs), 1))
        self.seconds = sum(lengths)
        """How long something ran."""
        scale = (WIDTH - gap * max(len(self._runs) - 1, 0)) / (self.seconds or 1.0)
        self._scale = scale
        self._places = [0.0]
        for length in lengths:
            self._places.append(self._places[-1] + length * scale + gap)

    def x(self, second: float) -> float:
        """Return the place of a second; of one in a pause that of the gap."""
        run = max(bisect_right(self._runs, (second, float("inf"))) - 1, 0)
        start, end = self._runs[run]
        return self._places[run] + (min(max(second, start), end) - start) * self._scale


def lane(axis: Axis, spans: Iterable[Span], *, merges: bool = True) -> list[Bar]:
    """Return the bars of a lane, those of what went wrong last, on top of the others.

    Where one `merges`, bars that touch each other are one, which leads to the first of them.
    """
    every = sorted(spans)
    return [
        bar
        for is_bad in (False, True)
        for bar in _bars(axis, (one for one in every if one.is_bad == is_bad), merges)
    ]


def _bars(axis: Axis, spans: Iterable[Span], merges: bool) -> Iterator[Bar]:
    last: Bar | None = None
    for span in spans:
        x = min(axis.x(span.start), WIDTH - _NARROWEST)
        width = max(axis.x(span.end) - x, _NARROWEST)
        if merges and last is not None and x < last.x + last.width:
            end = max(x + width, last.x + last.width)
            last = last._replace(width=end - last.x, others=last.others + 1)
            continue
        if last is not None:
            yield last
        last = Bar(x, width, span.text, span.address, span.is_bad, 0)
    if last is not None:
        yield last


def packed(spans: Iterable[Span], most: int) -> tuple[list[list[Span]], int]:
    """Return spans in at most so many rows without overlap, and how many have no room."""
    rows: list[list[Span]] = []
    left = 0
    for span in sorted(spans):
        row = next((row for row in rows if row[-1].end <= span.start), None)
        if row is not None:
            row.append(span)
        elif len(rows) < most:
            rows.append([span])
        else:
            left += 1
    return rows, left


TURNS = 50
"""Turns on a page."""

_MOST_READ = 60_000  # prompts of a conversation that are looked at, and calls
_MOST_TOOLS = 6  # lanes of tools; others are in one more
_MOST_ROWS = 8  # of subagents that run at once
MOST_NAMED = 5
"""Subagents of a turn that the table names."""

_LETTERS = 120  # of a prompt

_OF_AGENTS = json.dumps(
    ["text", "thinking", "tool_use", "tool_result", "error", "command_output", "bash_output"]
)
"""Kinds of messages that end a turn: what an agent or a tool said."""

_DECLINED = "declined"

Order = tuple[int, int]
"""Number of the file, and the offset in it."""


@dataclass(slots=True)
class Turn:
    """A prompt, and what followed it."""

    number: int
    text: str
    address: str
    started_at: str | None
    start: float | None
    end: float | None
    calls: int = 0
    errors: int = 0
    agents: list[Span] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    """When it waited for a person."""

    @property
    def runs(self) -> list[tuple[float, float]]:
        """Return when it ran: the time from beginning to end without that of waiting."""
        if self.start is None or self.end is None:
            return []
        runs, start = [], self.start
        for begin, end in sorted(self.waits):
            if begin > start:
                runs.append((start, min(begin, self.end)))
            start = max(start, end)
        return [*runs, (start, self.end)] if start < self.end or not runs else runs

    @property
    def took(self) -> str:
        """Return how long the turn took, in words."""
        return terminal.duration(round(sum(end - start for start, end in self.runs) * 1000))

    @property
    def moment(self) -> str:
        """Return the local date and time."""
        return terminal.moment(self.started_at)


class Lane(NamedTuple):
    """A lane of the chart."""

    name: str
    facts: str
    kind: str
    bars: list[Bar]


class Timeline(NamedTuple):
    """What is on one page of a timeline."""

    session: pages.Row
    turns: list[Turn]
    total: int
    lanes: list[Lane]
    working: str
    """How long anything ran."""
    calls: int
    """Calls of the whole conversation, those of subagents included."""
    subagent_calls: int
    not_drawn: int
    """Subagents for which there was no room."""
    is_whole: bool


async def view(datasette: Datasette, request: Request) -> Response:
    database, prefix = pages.named(request, "database"), pages.named(request, "session")
    number = pages.page_number(request.args.get("page"))
    path = partial(conversation.session_path, datasette, database)
    shown = await pages.read(
        datasette, request, database, conversation.TABLES,
        lambda connection: _read(connection, prefix, number, path),
    )  # fmt: skip
    title = shown.session["title"] or "(untitled)"
    context = {
        "database": database,
        "shown": shown,
        "conversation": title,
        "title": f"Timeline of {title}",
        "here": path(str(shown.session["session_key"])),
        "number": number,
        "pages": -(-shown.total // TURNS),
        "display": terminal,
        "width": WIDTH,
        "most_named": MOST_NAMED,
    }
    return await pages.page(datasette, request, "timeline", context)


def _read(
    connection: sqlite3.Connection, prefix: str, number: int, path: Callable[[str], str]
) -> Timeline:
    key = pages.find(connection, prefix, path)
    found = Conversation(
        connection, key.session_key, session_id=key.session_id,
        files=MOST_FILES, subagents=MOST_SUBAGENTS,
    )  # fmt: skip
    return _Reader(found, path).page(number)


class _Reader:
    def __init__(self, found: Conversation, path: Callable[[str], str]) -> None:
        self._conversation = found
        self._connection = found.connection
        self._permalinks = Permalinks(found.connection, path)
        self._here = path(str(found.session["session_key"]))
        files = islice(found.files_with_messages(), MOST_FILES)
        self._ranks = {file.id: rank for rank, file in enumerate(files)}
        self._files = list(self._ranks)

    def page(self, number: int) -> Timeline:
        """Return a page; raise PageError if there are fewer."""
        rows = self._ask("map_prompts")
        # What is queued is typed while a turn runs, and belongs to it.
        begins = (row for row in rows if row["kind"] != "queued_prompt" and not row["is_copy"])
        prompts = sorted(
            (*self._order(row), row["id"]) for row in begins if row["file_id"] in self._ranks
        )
        first = (number - 1) * TURNS
        if first and first >= len(prompts):
            links = [("The timeline from its beginning", f"{self._here}/timeline")]
            raise PageError(404, f"The timeline has no page {number:,}.", links)
        calls = self._ask("timeline_calls")
        own = [row for row in calls if row["subagent_id"] is None and row["file_id"] in self._ranks]
        turns = self._turns(prompts, first)
        starts = [one[:2] for one in prompts[first : first + TURNS]]
        if not first and (before := self._before(own, starts)):
            turns, starts = [before, *turns], [(-1, 0), *starts]
        end = prompts[first + TURNS][:2] if first + TURNS < len(prompts) else None
        spans = list(self._calls(own, turns, starts, end))
        behind = prompts[first + TURNS][2] if end is not None else None
        agents = list(self._agents(turns, self._begin_of(behind)))
        drawn, not_drawn, working = _lanes(turns, spans, agents)
        return Timeline(
            pages.brief(self._conversation.session), turns, len(prompts), drawn,
            terminal.duration(round(working * 1000)), len(calls),
            sum(row["subagent_id"] is not None for row in calls), not_drawn,
            max(len(rows), len(calls)) < _MOST_READ,
        )  # fmt: skip

    def _ask(self, query: str) -> list[sqlite3.Row]:
        session = self._conversation.session["id"]
        rows = sql.ask(self._connection, f"pages/{query}", session=session, limit=_MOST_READ)
        return rows.fetchall()

    def _order(self, row: sqlite3.Row) -> Order:
        return self._ranks[row["file_id"]], row["byte_offset"]

    def _turns(self, prompts: Sequence[tuple[int, int, int]], first: int) -> list[Turn]:
        """Return the turns of a page, with the times of their first and last messages."""
        some = prompts[first : first + TURNS]
        lasts = [
            self._last(one, prompts[number] if number < len(prompts) else None)
            for number, one in enumerate(some, start=first + 1)
        ]
        ids = json.dumps([*(one[2] for one in some), *lasts])
        known = {row["id"]: row for row in sql.ask(self._connection, "pages/map_texts", ids=ids)}
        turns = []
        for number, (one, last) in enumerate(zip(some, lasts, strict=True), start=first + 1):
            row = known[one[2]]
            start, end = _seconds(row["timestamp"]), _seconds(known[last]["timestamp"])
            text = one_line(message_text.typed(row["kind"], row["text"] or "")) or "(no text)"
            turns.append(
                Turn(
                    number, text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…",
                    self._permalinks.by_byte(BlockPlace(self._files[one[0]], one[1], 0)),
                    row["timestamp"], start, max(start, end) if start and end else start,
                )
            )  # fmt: skip
        return turns

    def _before(self, calls: Sequence[sqlite3.Row], starts: Sequence[Order]) -> Turn | None:
        """Return a turn for the calls before the first prompt, None if there are none."""
        before = [row for row in calls if not starts or self._order(row) < starts[0]]
        if not before:
            return None
        first = min(before, key=self._order)
        times = [
            second
            for row in before
            for column in ("started_at", "ended_at")
            if (second := _seconds(row[column])) is not None
        ]
        place = BlockPlace(first["file_id"], first["byte_offset"], first["block"])
        return Turn(
            0, "Before the first prompt", self._permalinks.by_byte(place), first["started_at"],
            min(times, default=None), max(times, default=None),
        )  # fmt: skip

    def _last(self, prompt: tuple[int, int, int], behind: tuple[int, int, int] | None) -> int:
        """Return the message at the end of the turn of a prompt."""
        rank, offset, message = prompt
        before = behind[1] if behind is not None and behind[0] == rank else None
        row = sql.ask(
            self._connection, "pages/message_before",
            file=self._files[rank], before_offset=before, kinds=_OF_AGENTS, limit=1,
        ).fetchone()  # fmt: skip
        return int(row["id"]) if row and row["byte_offset"] > offset else message

    def _calls(
        self, rows: Iterable[sqlite3.Row], turns: Sequence[Turn], starts: list[Order],
        end: Order | None,
    ) -> Iterator[tuple[str, Span]]:  # fmt: skip
        """Yield the tools and times of the calls on the page, and count them in their turns."""
        for row in rows:
            order = self._order(row)
            number = bisect_right(starts, order) - 1
            if number < 0 or (end is not None and order >= end):
                continue
            is_bad = row["status"] == "error"
            turns[number].calls += 1
            turns[number].errors += is_bad
            start = _seconds(row["started_at"])
            if start is None:
                continue
            stop = _seconds(row["ended_at"]) or start + (row["duration_ms"] or 0) / 1000
            if row["status"] == _DECLINED or row["action"] == ASK:
                turns[number].waits.append((start, stop))
                stop = start
            name = one_line(row["name"] or "tool")
            place = BlockPlace(row["file_id"], row["byte_offset"], row["block"])
            text = f"{name}, {terminal.clock(row['started_at'])}"
            address = self._permalinks.by_byte(place)
            yield name, Span(start, max(start, stop), text, address, is_bad)

    def _begin_of(self, message: int | None) -> float:
        """Return when a message was said; without one, when nothing more is."""
        ids = json.dumps([message])
        row = sql.ask(self._connection, "pages/map_texts", ids=ids).fetchone()
        return (_seconds(row["timestamp"]) if row else None) or float("inf")

    def _agents(self, turns: Sequence[Turn], until: float) -> Iterator[Span]:
        """Yield the subagents that began on the page; they are noted in their turns."""
        timed = [turn for turn in turns if turn.start is not None]
        begins = [turn.start or 0.0 for turn in timed]
        for agent in self._conversation.subagents:
            start, end = _seconds(agent.started_at), _seconds(agent.ended_at)
            number = bisect_right(begins, start) - 1 if start is not None else -1
            if start is None or number < 0 or start >= until or agent.kind == "warmup":
                continue
            turn = timed[number]
            text = one_line(name_of(agent))
            query = urlencode({"_agent": agent.agent_key})
            span = Span(start, max(start, end or start), text[:_LETTERS], f"{self._here}?{query}")
            turn.agents.append(span)
            yield span


def _lanes(
    turns: Sequence[Turn], calls: Sequence[tuple[str, Span]], agents: Sequence[Span]
) -> tuple[list[Lane], int, float]:
    """Return the lanes of a chart, how many subagents have no room, and how long anything ran."""
    spans = [
        Span(start, end, f"{turn.number}: {turn.text}", turn.address)
        for turn in turns
        for start, end in turn.runs
    ]
    timed = sum(bool(turn.runs) for turn in turns)
    everything = [*spans, *(span for _, span in calls), *agents]
    if not everything:
        return [], 0, 0.0
    axis = Axis(everything)
    drawn = [Lane("Turns", f"{timed:,}", "turn", lane(axis, spans, merges=False))]
    by_tool: dict[str, list[Span]] = {}
    counts = Counter(name for name, _ in calls)
    chosen = {name for name, _ in counts.most_common(_MOST_TOOLS)}
    for name, span in calls:
        by_tool.setdefault(name if name in chosen else "", []).append(span)
    for name in (*sorted(chosen, key=lambda name: (-counts[name], name)), ""):
        if found := by_tool.get(name):
            facts = terminal.many(len(found), "call")
            drawn.append(Lane(name or "Other tools", facts, "tool", lane(axis, found)))
    rows, left = packed(agents, _MOST_ROWS)
    for number, row in enumerate(rows):
        facts = f"{len(agents):,}" if not number else ""
        name = "Subagents" if not number else ""
        drawn.append(Lane(name, facts, "agent", lane(axis, row)))
    return drawn, left, axis.seconds


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
