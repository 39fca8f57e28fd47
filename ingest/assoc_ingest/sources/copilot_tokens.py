"""Token counts of Copilot CLI, which states them in three ways.

The input of all numbers includes what was read from the cache and written to it, and the output
includes reasoning. A *run* goes from the start or the resumption of a session to its shutdown.

1. Newer versions (1.0.9x on) write a `session.usage_record` for each request. In a run with such
   records, only they count.
2. Otherwise `modelMetrics` of `session.shutdown` has sums by model. They are those of the whole
   session and go on when it is resumed; in early 2026, they were those of the run. So sums that are
   smaller than the last ones are those of a run.
3. A run without an end has only the `outputTokens` of its messages.

The log may end anywhere, so the output of a message counts as soon as it is read. The first message
of a run and model is marked as partial: it has the response that is replaced when the run ends,
by its own output and everything that no message of the run has.
"""

from __future__ import annotations

from typing import Any
from weakref import proxy

from ..records import StatedUsage
from .chat_reader import ChatReader
from .jsonl import JSONObject

_FIELDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_MOST_MODELS = 50


class Tokens:
    """Counts the tokens of one session.

    `context` has what later lines need: by model, the first message of the run with its output
    (`first`), the output of all its messages (`said`), the sums of the last shutdown (`stated`),
    those of earlier runs that it leaves out (`earlier`); and whether the run has records
    (`has_records`).
    """

    def __init__(self, reader: ChatReader, context: dict[str, Any]) -> None:
        self._reader: ChatReader = proxy(reader)  # which has this: no cycle
        self._context = context

    def message(self, data: JSONObject, identity: str | None) -> None:
        """Count the output of a message, until a record or the end of the run says more."""
        reader = self._reader
        output, model = reader.count(data, "outputTokens"), reader.model or ""
        key = reader.name(data, "apiCallId") or identity
        if not output or key is None or self._context.get("has_records"):
            return
        first, said = self._of_run("first"), self._of_run("said")
        is_first = model not in first
        if is_first and len(first) < _MOST_MODELS:
            first[model] = [key, output]
        if model in first:
            said[model] = said.get(model, 0) + output
        reader.use(key, fresh=0, output=output, is_partial=is_first)

    def record(self, data: JSONObject, identity: str | None) -> None:
        """Count a request as its record states it."""
        reader = self._reader
        usage = reader.mapping(data, "usage")
        reader.model = reader.name(usage, "model")
        key = reader.name(usage, "apiCallId") or identity
        self._context["has_records"] = True
        stated = self._counts(usage)
        for first, output in self._of_run("first").values():
            if first == key:
                stated[1] = max(stated[1], output)  # or the message would still count instead
        self._spend(key, stated)

    def shutdown(self, data: JSONObject, identity: str | None) -> None:
        """Count what no message of the run has."""
        metrics = self._reader.mapping(data, "modelMetrics")
        stated = {
            model: self._counts(self._reader.mapping(of_model, "usage"))
            for model in list(metrics)[:_MOST_MODELS]
            if (of_model := self._reader.mapping(metrics, model))
        }
        before: dict[str, list[int]] = self._context.get("stated", {})
        goes_on = all(
            model in stated and all(map(int.__ge__, stated[model], sums))
            for model, sums in before.items()
        )
        if stated:
            self._state(stated, {} if goes_on else before)
        first, said = self._of_run("first"), self._of_run("said")
        for model, sums in {} if self._context.get("has_records") else stated.items():
            past = before.get(model, [0, 0, 0, 0]) if goes_on else [0, 0, 0, 0]
            rest = [now - then for now, then in zip(sums, past, strict=True)]
            key, output = first.get(model) or (f"{identity}:{model}", 0)
            rest[1] = max(0, rest[1] - said.get(model, 0)) + output
            self._reader.model = model
            self._spend(key, rest)
        self._context.update(stated=stated, has_records=False, first={}, said={})

    def _state(self, stated: dict[str, list[int]], ended: dict[str, list[int]]) -> None:
        """Keep what the session states: these sums, and those of `ended` runs before them."""
        reader, earlier = self._reader, self._of_run("earlier")
        for model, sums in ended.items():
            earlier[model] = _sum(earlier.get(model), sums)
        models = {
            model: _sum(earlier.get(model), stated.get(model)) for model in {**earlier, **stated}
        }
        models[""] = _sum(*models.values())
        for model, (given, output, cached, written) in models.items():
            fresh = max(0, given - cached - written)
            place = (reader.start, reader.length)
            reader.records.append(
                StatedUsage(model, reader.moment, fresh, output, cached, written, None, 0, *place)
            )

    def _counts(self, usage: JSONObject) -> list[int]:
        return [self._reader.count(usage, field) for field in _FIELDS]

    def _of_run(self, name: str) -> dict[str, Any]:
        """Return what is known of this run by model, to be changed."""
        known: dict[str, Any] = self._context.setdefault(name, {})
        return known

    def _spend(self, key: str | None, stated: list[int]) -> None:
        given, output, cached, written = stated
        fresh = max(0, given - cached - written)
        if key is not None and any(stated):
            self._reader.use(key, fresh=fresh, output=output, cached=cached, written=written)


def _sum(*counts: list[int] | None) -> list[int]:
    return [sum(column) for column in zip([0, 0, 0, 0], *filter(None, counts), strict=True)]
