"""Token counts of Codex: each response once, and never what a thread inherited from another.

```json
{"type":"event_msg","payload":{"type":"token_count","info":{
 "total_token_usage":{"input_tokens":50,"cached_input_tokens":30,"output_tokens":5,
 "reasoning_output_tokens":2,"total_tokens":55},"last_token_usage":{"input_tokens":20}}}}
{"type":"token_usage_record","payload":{"response_id":"resp_1","thread_id":"t1","turn_id":"u1",
 "usage":{"input_tokens":20},"turn_token_usage":{},"thread_token_usage":{}}}
```

An event states the totals of the thread so far, and the counts of the last response. It is written
again when nothing was spent, so a response is an event whose totals differ from those before it.
The input contains what was read from the cache, and the output the reasoning. An event whose last
counts are all zero only sets the totals: those of a thread that this one continues, or an estimate
after a compaction. Totals that become smaller were reset.

Newer versions write a record per response beside the events, with totals of its own. From the first
record of the thread on, only records count.
"""

from __future__ import annotations

from typing import Any
from weakref import proxy

from ...fields import mapping, string
from ..chat_reader import ChatReader
from ..jsonl import JSONObject

_VECTOR = (
    "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens",
    "cache_write_input_tokens",
)  # fmt: skip
Vector = list[int]


class Tokens:
    """Counts the responses of one thread. `state` is the part of the context that it uses:

    - `total`: the totals of the last event;
    - `answered`: has the model said anything since then?
    - `records`: does the thread have records?
    - `joins`: the totals go on from another file, which this event may repeat.
    """

    def __init__(self, reader: ChatReader, state: dict[str, Any]) -> None:
        self._reader: ChatReader = proxy(reader)  # which has this: no cycle
        self._state = state

    def answer(self) -> None:
        """Note that the model said something."""
        self._state["answered"] = True

    def event(self, info: object, thread: str, *, is_inherited: bool, is_sure: bool) -> None:
        """Take a `token_count` of a thread in.

        If the thread may have inherited it, the response is partial: see `derive/responses.py`.
        """
        stated = mapping(info)
        if "total_token_usage" not in stated:
            return  # only rate limits
        total = self._vector(stated["total_token_usage"])
        before = self._state.get("total")
        was_answered = self._state.pop("answered", False)
        self._state["total"] = total
        if is_inherited or self._state.get("records") or total == before:
            return
        if self._state.pop("joins", False) and not was_answered:
            return
        last = self._last(stated, total, before)
        if any(last):
            self._state["last"] = last
            key = f"{thread}:{'+'.join(map(str, total[:4]))}"
            self._spend(key, last, is_partial=not is_sure)

    def record(self, payload: JSONObject, thread: str, *, is_sure: bool) -> None:
        """Take a `token_usage_record` in that is not inherited for certain.

        One of another thread may be inherited; its id is the same there, so it counts once.
        """
        usage = self._vector(payload.get("usage"))
        is_first = not self._state.get("records")
        self._state["records"] = True
        is_of_another = string(payload.get("thread_id")) not in (None, thread)
        if (is_sure and is_of_another) or not any(usage):
            return
        if is_first and usage == self._state.pop("last", None) and not self._state.get("answered"):
            return  # the event of the same response came first, and was counted
        key = string(payload.get("response_id"))
        if key is not None:
            self._spend(key, usage, is_partial=False)
        elif not is_of_another:
            self._spend(f"{thread}@{self._reader.start}", usage, is_partial=not is_sure)

    def _last(self, stated: JSONObject, total: Vector, before: Vector | None) -> Vector:
        if isinstance(stated.get("last_token_usage"), dict):
            return self._vector(stated["last_token_usage"])
        if before is None or any(now < then for now, then in zip(total, before, strict=True)):
            return total
        return [now - then for now, then in zip(total, before, strict=True)]

    def _vector(self, value: object) -> Vector:
        counts = mapping(value)
        return [self._reader.count(counts, key) for key in _VECTOR]

    def _spend(self, key: str, counts: Vector, *, is_partial: bool) -> None:
        given, cached, output, _, written = counts
        fresh = max(0, given - cached - written)
        self._reader.use(
            key, fresh=fresh, output=output, cached=cached, written=written, is_partial=is_partial
        )
