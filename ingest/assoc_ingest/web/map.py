"""The map of a conversation: its prompts in order, files, errors, subagents and compactions.

Each has a link to its place. A conversation can have any number of them. The map lists those
nearest to the page, and says how many come before and after.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

from .. import sql, terminal
from ..ask import conversation as message_text
from ..ask.conversation import Conversation, Subagent
from ..records import EDIT
from ..terminal import one_line
from .urls import BlockPlace

MAP_LINES = 100
"""Lines of each part of a map."""

MOST_READ = 60_000  # prompts of a conversation that are looked at, and calls
_LINE_LETTERS = 80  # of a line
_AGENT_NAME = 500  # letters of the name of a subagent that are looked at
_BEFORE = MAP_LINES // 4  # lines before those that are on the page

MapOrder = tuple[float, int, int]
"""Number of the file, offset and block: what comes first is smaller."""

_END: MapOrder = (float("inf"), 0, 0)


class Stretch(NamedTuple):
    """The part of a conversation that is on a page: after one place, up to another."""

    behind: MapOrder
    until: MapOrder


class MapLine(NamedTuple):
    text: str
    facts: str
    address: str
    is_here: bool
    """Is its place on the page?"""


class MapPart(NamedTuple):
    """Things of one kind; `before` and `behind` count those not listed."""

    name: str
    total: int
    lines: list[MapLine]
    before: int
    behind: int


@dataclass(frozen=True, slots=True)
class Map:
    """The map beside one page."""

    parts: list[MapPart]
    steps: Mapping[int, tuple[str | None, str | None]]
    """Addresses of the prompts before and after each prompt on the page, by message."""
    is_whole: bool
    """False: the conversation has more than is looked at."""


class _Thing(NamedTuple):
    order: MapOrder
    place: BlockPlace | None
    text: str = ""
    """'' for a message, whose text is read when its line is made."""
    facts: str = ""
    message: int = 0
    address: str = ""
    """For things without a place in the conversation."""


class Mapper:
    """Makes the map of a conversation, or of one subagent of it."""

    def __init__(
        self,
        conversation: Conversation,
        subagent: Subagent | None,
        files: Sequence[int],
        address: Callable[[BlockPlace], str],
        page_of: Callable[[Subagent], str],
    ) -> None:
        """`files` are in order; `address` and `page_of` return addresses."""
        self._connection = conversation.connection
        self._conversation = conversation
        self._subagent = subagent
        self._files = {file: rank for rank, file in enumerate(files)}
        self._address = address
        self._page_of = page_of
        self._is_whole = True

    def map(self, page: Stretch) -> Map:
        prompts = _Messages(self._files, self._ask("map_prompts"))
        notices = _Messages(self._files, self._ask("map_notices", kind="error"))
        compacted = _Messages(self._files, self._ask("map_notices", kind="compact_summary"))
        calls = self._calls()
        errors = [
            self._call(row, one_line(f"{row['name']} {self._short(row['target'])}"))
            for row in calls
            if row["status"] == "error"
        ]
        things_by_name = (
            ("Prompts", prompts),
            ("Files changed", list(self._edited(calls))),
            ("Errors", sorted([*errors, *notices])),
            ("Subagents", sorted(self._agents(calls))),
            ("Compactions", compacted),
        )
        parts = [self._part(name, things, page) for name, things in things_by_name if things]
        return Map(parts, self._steps(prompts, page), self._is_whole)

    def _ask(self, query: str, **more: object) -> list[sqlite3.Row]:
        rows = sql.ask(
            self._connection,
            f"pages/{query}",
            session=self._conversation.session["id"],
            subagent=self._subagent.id if self._subagent else None,
            limit=MOST_READ,
            **more,
        ).fetchall()
        self._is_whole &= len(rows) < MOST_READ
        return rows

    def _calls(self) -> list[sqlite3.Row]:
        """Return calls in order; of copies in several files, only the first."""
        rows = [row for row in self._ask("map_calls") if row["file_id"] in self._files]
        rows.sort(key=lambda row: self._order(_place_of(row)))
        first: dict[object, sqlite3.Row] = {}
        for row in rows:
            first.setdefault(row["tool_use_id"] or row["id"], row)
        return list(first.values())

    def _call(self, row: sqlite3.Row, text: str, facts: str = "") -> _Thing:
        place = _place_of(row)
        return _Thing(self._order(place), place, text or "tool", facts)

    def _edited(self, calls: Iterable[sqlite3.Row]) -> Iterator[_Thing]:
        """Yield files, those that were changed most often first, each with its first change."""
        first: dict[str, sqlite3.Row] = {}
        counts: Counter[str] = Counter()
        for row in calls:
            if row["action"] != EDIT or row["status"] in ("error", "declined"):
                continue
            targets = json.loads(row["paths"]) if row["paths"] else [row["target"]]
            for target in filter(None, targets):
                first.setdefault(target, row)
                counts[target] += 1
        for target, count in counts.most_common():
            yield self._call(
                first[target], one_line(self._short(target)), terminal.many(count, "change")
            )

    def _agents(self, calls: Iterable[sqlite3.Row]) -> Iterator[_Thing]:
        """Yield the subagents that were spawned here, and those whose call is unknown."""
        spawning = {row["id"]: row for row in calls if row["spawned"]}
        for agent in self._conversation.subagents:
            text = one_line(name_of(agent))
            facts = terminal.many(agent.message_count, "message")
            if agent.spawned_by in spawning:
                yield self._call(spawning[agent.spawned_by], text, facts)
            elif agent.spawned_by is None and agent.kind != "warmup" and self._subagent is None:
                yield _Thing(_END, None, text, facts, address=self._page_of(agent))

    def _part(self, name: str, things: Sequence[_Thing], page: Stretch) -> MapPart:
        is_in_order = name != "Files changed"
        here = bisect_right(things, page.behind, key=_order_of) if is_in_order else 0
        start = max(0, min(here - _BEFORE, len(things) - MAP_LINES)) if is_in_order else 0
        chosen = things[start : start + MAP_LINES]
        texts = self._texts(one.message for one in chosen if one.message)
        lines = [self._line(one, texts, page) for one in chosen]
        return MapPart(name, len(things), lines, start, len(things) - start - len(chosen))

    def _line(self, one: _Thing, texts: Mapping[int, sqlite3.Row], page: Stretch) -> MapLine:
        text, facts = one.text, one.facts
        if row := texts.get(one.message):
            text = one_line(message_text.typed(row["kind"], row["text"] or "")).strip()
            facts = terminal.clock(row["timestamp"])
            if row["kind"] == "compact_summary":
                text = "Compacted"
        is_here = page.behind < one.order <= page.until
        address = one.address if one.place is None else self._address(one.place)
        return MapLine(_cut_title(text) or "(no text)", facts, address, is_here)

    def _texts(self, messages: Iterable[int]) -> dict[int, sqlite3.Row]:
        ids = json.dumps(list(messages))
        return {row["id"]: row for row in sql.ask(self._connection, "pages/map_texts", ids=ids)}

    def _steps(
        self, prompts: Sequence[_Thing], page: Stretch
    ) -> dict[int, tuple[str | None, str | None]]:
        def address(number: int) -> str | None:
            place = prompts[number].place if 0 <= number < len(prompts) else None
            return self._address(place) if place is not None else None

        first, end = (bisect_right(prompts, order, key=_order_of) for order in page)
        return {
            prompts[number].message: (address(number - 1), address(number + 1))
            for number in range(first, end)
        }

    def _order(self, place: BlockPlace) -> MapOrder:
        return self._files[place.file], place.offset, place.block

    def _short(self, target: str | None) -> str:
        cwd = self._conversation.session["cwd"]
        return (target or "").removeprefix(f"{cwd}/" if cwd else "")


class _Messages(Sequence[_Thing]):
    """Messages in order; each becomes a `_Thing` only on demand: there may be very many."""

    def __init__(self, ranks: Mapping[int, int], rows: Iterable[sqlite3.Row]) -> None:
        self._files = list(ranks)
        self._found = sorted(
            (ranks[file], offset, block, message)
            for message, file, offset, block, *_ in rows
            if file in ranks
        )

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, number: int) -> _Thing: ...
    @overload
    def __getitem__(self, number: slice) -> list[_Thing]: ...
    def __getitem__(self, number: int | slice) -> _Thing | list[_Thing]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        rank, offset, block, message = self._found[number]
        place = BlockPlace(self._files[rank], offset, block)
        return _Thing((rank, offset, block), place, message=message)


def name_of(agent: Subagent) -> str:
    return (agent.description or agent.agent_type or agent.name or agent.kind)[:_AGENT_NAME]


def _order_of(thing: _Thing) -> MapOrder:
    return thing.order


def _place_of(row: sqlite3.Row) -> BlockPlace:
    return BlockPlace(row["file_id"], row["byte_offset"], row["block"])


def _cut_title(text: str) -> str:
    return text if len(text) <= _LINE_LETTERS else text[: _LINE_LETTERS - 1] + "…"
