"""The timeline of a conversation: turns, tools and subagents as lanes, and the turns as a table.

A turn is a prompt and everything until the next one. It lasts until the last answer or result,
without the time in which a question or a declined call waited for a person. Pauses are cut out of
the axis, and each bar links to its place.

Calls are counted as in the header of the conversation: what repeats another file is left out, and
so are the turns that a fork repeats. Calls before the first prompt have a row of their own.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from .. import sql, terminal
from ..ask import conversation as message_text
from ..ask.conversation import Conversation
from ..ask.refs import KeyMatch
from ..ask.usage import Rates, rates, spent
from ..records import ASK
from ..terminal import one_line
from . import pages, urls
from .address import MOST_FILES, MOST_SUBAGENTS, TABLES, PathOf, read_from
from .entries import TurnFacts
from .map import MOST_READ, name_of
from .pages import PageError
from .urls import BlockPlace, Paths, Permalinks

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

# ------------------------------------------------------------------------------------------------
# Lays out spans of time as bars in lanes on one axis.
#
# The axis shows the time in which something ran: a pause is only a narrow gap. Bars too close to
# distinguish are merged, so that the number of bars in a lane is limited.


WIDTH = 1_000
"""Units of the axis."""

_NARROWEST = 3.0  # units of a bar
_GAP = 6.0  # units of a pause


class Span(NamedTuple):
    start: float
    end: float
    text: str
    address: str
    is_bad: bool = False


class Bar(NamedTuple):
    """A bar of a lane in units of the axis; `others` counts its spans that are not named."""

    x: float
    width: float
    text: str
    address: str
    is_bad: bool
    others: int


class Axis:
    """Maps seconds to places on the axis."""

    def __init__(self, spans: Iterable[Span]) -> None:
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
        """Return the place of a second; seconds of a pause are all at its gap."""
        run = max(bisect_right(self._runs, (second, float("inf"))) - 1, 0)
        start, end = self._runs[run]
        return self._places[run] + (min(max(second, start), end) - start) * self._scale


def lane(axis: Axis, spans: Iterable[Span], *, merges: bool = True) -> list[Bar]:
    """Return the bars of a lane, failures last, on top of the others.

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
    """Return spans in at most `most` rows without overlap, and how many did not fit."""
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


# ------------------------------------------------------------------------------------------------
# The turns and what ran in them.


TURNS = 50
"""Turns on a page."""

_MOST_TOOLS = 6  # lanes of tools; others are in one more
_MOST_ROWS = 8  # of subagents that run at once
MOST_NAMED = 5
"""Subagents of a turn that the table names."""

_TURN_LETTERS = 120  # of a prompt

_OF_AGENTS = json.dumps(
    ["text", "thinking", "tool_use", "tool_result", "error", "command_output", "bash_output"]
)
"""Kinds of messages that end a turn: output of an agent or a tool."""

_DECLINED = "declined"

LineOrder = tuple[int, int]
"""Number of the file, and the offset in it."""


@dataclass(slots=True)
class Turn:
    """A prompt and everything until the next one."""

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
        """Return when it ran: from start to end, without the time spent waiting for a person."""
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
        return terminal.duration(round(sum(end - start for start, end in self.runs) * 1000))

    @property
    def moment(self) -> str:
        return terminal.moment(self.started_at)


class Lane(NamedTuple):
    name: str
    facts: str
    kind: str
    bars: list[Bar]


class Timeline(NamedTuple):
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
    number = pages.page_number(request.args.get("page"))
    shown = await read_from(datasette, request, TABLES, partial(_read, number))
    database = pages.named(request, "database")
    title = shown.session["title"] or "(untitled)"
    context = {
        "database": database,
        "shown": shown,
        "conversation": title,
        "title": f"Timeline of {title}",
        "here": Paths(datasette, database).session(str(shown.session["session_key"])),
        "number": number,
        "pages": -(-shown.total // TURNS),
        "width": WIDTH,
        "most_named": MOST_NAMED,
    }
    return await pages.page(datasette, request, "timeline", context)


def _read(number: int, connection: sqlite3.Connection, key: KeyMatch, path: PathOf) -> Timeline:
    conversation = Conversation(
        connection, key.session_key, session_id=key.session_id,
        files=MOST_FILES, subagents=MOST_SUBAGENTS,
    )  # fmt: skip
    return TimelineReader(conversation, path).page(number)


class TimelineReader:
    def __init__(self, conversation: Conversation, path: PathOf) -> None:
        self._conversation = conversation
        self._connection = conversation.connection
        self._permalinks = Permalinks(conversation.connection, path)
        self._here = path(str(conversation.session["session_key"]))
        files = islice(conversation.files_with_messages(), MOST_FILES)
        self._ranks = {file.id: rank for rank, file in enumerate(files)}
        self._files = list(self._ranks)

    def page(self, number: int) -> Timeline:
        """Return a page; raise PageError if it does not exist."""
        rows = self._ask("map_prompts")
        prompts = self._prompts(rows)
        first = (number - 1) * TURNS
        if first and first >= len(prompts):
            links = [("The timeline from the beginning", f"{self._here}/timeline")]
            raise PageError(404, f"The timeline has no page {number:,}.", links)
        calls = self._ask("timeline_calls")
        own = self._own(calls)
        turns = self._turns(prompts, first, TURNS)
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
            max(len(rows), len(calls)) < MOST_READ,
        )  # fmt: skip

    def facts(self, messages: Collection[int]) -> dict[int, TurnFacts]:
        """Return what the turns that begin with these messages took, used and cost.

        A response of a subagent counts in the turn whose call spawned it, however deep that is.
        """
        prompts = self._prompts(self._ask("map_prompts"))
        numbers = [number for number, one in enumerate(prompts) if one[2] in messages]
        if not numbers:
            return {}
        first, behind = numbers[0], numbers[-1] + 1
        turns = self._turns(prompts, first, behind - first)
        starts = [one[:2] for one in prompts[first:behind]]
        end = prompts[behind][:2] if behind < len(prompts) else None
        waits = self._own(self._ask("timeline_calls", waits=1))
        for _ in self._calls(waits, turns, starts, end):
            pass  # it notes in the turns when they waited
        used = self._used(starts, end)
        rate = rates(self._connection) if any(row["partial"] for row in chain(*used)) else None
        return {
            prompts[first + number][2]: self._words(turn, used[number], rate)
            for number, turn in enumerate(turns)
        }

    def _words(self, turn: Turn, rows: Sequence[sqlite3.Row], rate: Rates | None) -> TurnFacts:
        if not rows:
            return TurnFacts([turn.took] if turn.took else [], "")
        known = spent(self._connection, rows, rate)
        sums: Counter[str] = Counter()
        for row in rows:
            sums.update({name: row[name] for name in row.keys() if name.endswith("_tokens")})  # noqa: SIM118
        tokens, cost = known.tokens(known.output_tokens), known.cost() or "cost unknown"
        words = [word for word in (turn.took, tokens, cost) if word]
        return TurnFacts(words, known.words(sums).get("tokens", ""))

    def _used(self, starts: list[LineOrder], end: LineOrder | None) -> list[list[sqlite3.Row]]:
        """Return what each of some turns in a row used, by model; nothing where it is too much."""
        used: list[list[sqlite3.Row]] = [[] for _ in starts]
        responses = self._ask("turn_responses")
        if len(responses) >= MOST_READ:
            return used
        spawned = self._spawned()
        chosen = []
        for row in responses:
            agent = row["subagent_id"]
            is_own = agent is None and row["file_id"] in self._ranks
            order = self._order(row) if is_own else spawned.get(agent)
            if order is None or order < starts[0] or (end is not None and order >= end):
                continue
            chosen.append((bisect_right(starts, order) - 1, row["id"]))
        for row in sql.ask(self._connection, "pages/turn_usage", responses=json.dumps(chosen)):
            used[row["turn"]].append(row)
        return used

    def _spawned(self) -> dict[int, LineOrder]:
        """Return where the subagents were spawned, those of subagents with the outermost one."""
        agents = {agent.agent_key: agent for agent in self._conversation.subagents}
        calls = {}
        for agent in agents.values():
            outer, seen = agent, {agent.agent_key}
            while outer.parent in agents and outer.parent not in seen:
                seen.add(outer.parent)
                outer = agents[outer.parent]
            if outer.call_id is not None:
                calls[agent.id] = outer.call_id
        rows = urls.rows(self._connection, set(calls.values()))
        return {
            agent: (self._ranks[rows[call].place.file], rows[call].place.offset)
            for agent, call in calls.items()
            if call in rows and rows[call].place.file in self._ranks
        }

    def _prompts(self, rows: Iterable[sqlite3.Row]) -> list[tuple[int, int, int]]:
        """Return the prompts that begin a turn, in order: rank of the file, offset, id."""
        # A queued prompt is typed while a turn runs, and belongs to that turn.
        begins = (row for row in rows if row["kind"] != "queued_prompt" and not row["is_copy"])
        return sorted(
            (*self._order(row), row["id"]) for row in begins if row["file_id"] in self._ranks
        )

    def _ask(self, query: str, **more: object) -> list[sqlite3.Row]:
        session = self._conversation.session["id"]
        rows = sql.ask(self._connection, f"pages/{query}", session=session, limit=MOST_READ, **more)
        return rows.fetchall()

    def _own(self, calls: Iterable[sqlite3.Row]) -> list[sqlite3.Row]:
        """Return the calls of the conversation itself, without those of its subagents."""
        ranks = self._ranks
        return [row for row in calls if row["subagent_id"] is None and row["file_id"] in ranks]

    def _order(self, row: sqlite3.Row) -> LineOrder:
        return self._ranks[row["file_id"]], row["byte_offset"]

    def _turns(self, prompts: Sequence[tuple[int, int, int]], first: int, count: int) -> list[Turn]:
        """Return some turns, with the times of their first and last messages."""
        some = prompts[first : first + count]
        lasts = [
            self._last(one, prompts[number] if number < len(prompts) else None)
            for number, one in enumerate(some, start=first + 1)
        ]
        ids = json.dumps([*(one[2] for one in some), *lasts])
        messages = {row["id"]: row for row in sql.ask(self._connection, "pages/map_texts", ids=ids)}
        turns = []
        for number, (one, last) in enumerate(zip(some, lasts, strict=True), start=first + 1):
            row = messages[one[2]]
            start, end = _seconds(row["timestamp"]), _seconds(messages[last]["timestamp"])
            text = one_line(message_text.typed(row["kind"], row["text"] or "")) or "(no text)"
            turns.append(
                Turn(
                    number, text if len(text) <= _TURN_LETTERS else text[: _TURN_LETTERS - 1] + "…",
                    self._permalinks.by_byte(BlockPlace(self._files[one[0]], one[1], 0)),
                    row["timestamp"], start, max(start, end) if start and end else start,
                )
            )  # fmt: skip
        return turns

    def _before(self, calls: Sequence[sqlite3.Row], starts: Sequence[LineOrder]) -> Turn | None:
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
        """Return the id of the last message of a prompt's turn."""
        rank, offset, message = prompt
        before = behind[1] if behind is not None and behind[0] == rank else None
        row = sql.ask(
            self._connection, "pages/message_before",
            file=self._files[rank], before_offset=before, kinds=_OF_AGENTS, limit=1,
        ).fetchone()  # fmt: skip
        return int(row["id"]) if row and row["byte_offset"] > offset else message

    def _calls(
        self, rows: Iterable[sqlite3.Row], turns: Sequence[Turn], starts: list[LineOrder],
        end: LineOrder | None,
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
        """Return the time of a message; without one, the end of time."""
        ids = json.dumps([message])
        row = sql.ask(self._connection, "pages/map_texts", ids=ids).fetchone()
        return (_seconds(row["timestamp"]) if row else None) or float("inf")

    def _agents(self, turns: Sequence[Turn], until: float) -> Iterator[Span]:
        """Yield the subagents that started on the page, and add them to their turns."""
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
            span = Span(
                start, max(start, end or start), text[:_TURN_LETTERS], f"{self._here}?{query}"
            )
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
        if spans_of_tool := by_tool.get(name):
            facts = terminal.many(len(spans_of_tool), "call")
            drawn.append(Lane(name or "Other tools", facts, "tool", lane(axis, spans_of_tool)))
    rows, left = packed(agents, _MOST_ROWS)
    for number, row in enumerate(rows):
        facts = f"{len(agents):,}" if not number else ""
        name = "Subagents" if not number else ""
        drawn.append(Lane(name, facts, "agent", lane(axis, row)))
    return drawn, left, axis.seconds


def _seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
