"""Which lines of a rollout belong to its own thread, and which it took from another one.

A fork, and a subagent that was given the conversation, begin with lines of their parent. How they
are told apart depends on the version; the first that applies counts:

1. `subagent_history_start_ordinal` of the first `session_meta`: the `ordinal` where the own begin.
2. `history_base`: the lines of the parent stay in its file, so all are own; but the totals of
   tokens go on, and a turn may begin by repeating them.
3. A second `session_meta` with another id: the lines after it were copied, most of them with the
   time of the copy. The own part begins with the first turn that is younger than the thread: ids
   of turns and threads are UUIDs of version 7, which begin with their time. For other ids, the
   time when the turn started counts. Without either, nobody can tell: see `is_sure`.
4. `forked_from_id` without a second `session_meta`: some versions copied lines, others did not.
   Turns tell as in 3, but what was spent before the first younger one is compared with what the
   parent spent: see `derive/responses.py`.
5. Otherwise, all lines are own.
"""

from __future__ import annotations

import re
from typing import Any

from ...fields import integer, mapping, string
from ...when import utc
from ..claude.paths import folded
from ..jsonl import JSONObject

_UNIQUE = 32  # letters of an id; a shorter one counts the turns of its thread
_uuid7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch

OWN, COPIED, UNKNOWN = "own", "copied", "unknown"
SPAWN = "thread_spawn"
"""What makes the thread of a subagent."""


def spawn_of(payload: JSONObject) -> tuple[str | None, JSONObject]:
    """Return what made the thread of a `session_meta`, and what is said about it.

    That is `thread_spawn` for a subagent, another word for what the program started on its own
    (a review, a guardian), and None for a thread of the user.
    """
    by = mapping(payload.get("source")).get("subagent")
    if isinstance(by, str) and by:
        return by, {}
    for kind, about in mapping(by).items():
        return (about if isinstance(about, str) else kind), mapping(about)
    source = string(payload.get("thread_source"))
    if source in (None, "user"):
        return None, {}
    return (SPAWN if source == "subagent" else source), {}


def session_of(payload: JSONObject) -> str | None:
    """Return the session that a subagent's thread belongs to: the first one, if it is stated."""
    _, about = spawn_of(payload)
    own = string(payload.get("id"))
    stated = (
        payload.get("session_id"), payload.get("parent_thread_id"), about.get("parent_thread_id"),
        payload.get("forked_from_id"),
    )  # fmt: skip
    return next((folded(key) for key in stated if isinstance(key, str) and key != own), None)


class Thread:
    """The thread of a rollout. `state` is the part of the context that it uses.

    - `id`, `began`: the thread and when it began; `of`: the first other thread that is named;
    - `part`: own, copied, or unknown; `from`: the ordinal where the own part begins;
    - `turn`: the current turn; `chain`: what the lines so far say, where turns have no ids.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    @property
    def id(self) -> str | None:
        """The thread, as its lines name it."""
        return self.state.get("id")

    @property
    def is_inherited(self) -> bool:
        """Does the current line belong to another thread for certain?"""
        return bool(self.state.get("part") == COPIED)

    @property
    def is_marked(self) -> bool:
        """Is it marked where copied lines begin, so that what is inherited is so for certain?"""
        return "of" in self.state or "from" in self.state

    @property
    def is_sure(self) -> bool:
        """Is the current line the thread's own for certain?"""
        return bool(self.state.get("part", OWN) == OWN)

    @property
    def turn(self) -> str | None:
        """The id of the current turn, if no other thread can have a turn with this id."""
        turn: str = self.state.get("turn") or ""
        return turn if len(turn) >= _UNIQUE else None

    def meta(self, payload: JSONObject) -> bool:
        """Take a `session_meta` in. Returns whether it is that of the thread itself."""
        key = string(payload.get("id"))
        if key is None:
            return False
        key = folded(key)[:200]
        if "id" not in self.state:
            self._begin(key, payload)
            return True
        if key != self.id:
            self.state.setdefault("of", key)
            self.state["chain"] = key
            if "from" not in self.state:
                self.state["part"] = COPIED
        return False

    def _begin(self, key: str, payload: JSONObject) -> None:
        self.state["id"] = self.state["chain"] = key
        self.state["began"] = utc(payload.get("timestamp"))
        start = integer(payload.get("subagent_history_start_ordinal"))
        if start is not None:
            self.state["from"] = start
            self.state["part"] = COPIED
        if mapping(payload.get("history_base")):
            self.state["joins"] = True
        elif start is None and string(payload.get("forked_from_id")) is not None:
            self.state["part"] = UNKNOWN

    def line(self, value: JSONObject) -> None:
        """Take the place of a line in: from an ordinal on, all are own."""
        start, place = self.state.get("from"), value.get("ordinal")
        if start is not None and isinstance(place, int) and place >= start:
            self.state["part"] = OWN

    def begin_turn(self, payload: JSONObject) -> None:
        """Take the id of a turn in, which a `task_started` or a `turn_context` states."""
        turn = (string(payload.get("turn_id")) or "")[:200]
        if turn != self.state.get("turn"):
            self.state["turn"] = turn
            self.state.pop("items", None)
        if self.state.get("part", OWN) != OWN and "from" not in self.state:
            self.state["part"] = self._part_of(turn, utc(payload.get("started_at")))

    def _part_of(self, turn: str, started_at: str | None) -> str:
        if _uuid7(turn) and _uuid7(self.id or ""):
            return OWN if turn > (self.id or "") else COPIED
        began = self.state.get("began")
        if started_at is not None and began is not None:  # in whole seconds
            return OWN if started_at[:19] >= began[:19] else COPIED
        return UNKNOWN
