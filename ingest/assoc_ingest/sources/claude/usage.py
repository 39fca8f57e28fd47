"""Token counts of Claude Code: one API response has several lines, of which one counts.

Every line of a response states its usage so far, and most lines repeat the first or an early count.
The line with the most output tokens has the final one; if there are several, the last of them. Its
counts are used together: gateways move tokens between fields as a response grows, so the maximum of
each field would be a sum that never existed. The sums over all lines are kept, too, to explain the
numbers of programs that add up lines. The response belongs to the time of its first line.

`iterations` lists the requests that one response took. Mostly they are of one model, and the usage
is that of the last. If another model was asked first, or beside, that is a request of its own.

Where no line has the final count, what the response wrote still tells how much it was. Its length
is measured here, so that it can be compared with that of complete responses (docs/costs.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...fields import MAX_NAME, is_count, mapping, string
from ...records import StatedUsage, Usage
from ..jsonl import JSONObject

Complain = Callable[[str, object], None]
"""Called with a field and its unusable value."""

_BARE_SIGNATURE = 260  # letters of the signature of an empty thought; the others are base64
_BYTES_OF_CALL = 100  # of text take as many tokens as a call beside its arguments

_STATED = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_MOST_MODELS = 50

_SYNTHETIC = "<synthetic>"  # created by the client: no request, no tokens


def usage_of_line(
    line: JSONObject,
    model: str | None,
    uuid: str | None,
    timestamp: str | None,
    position: tuple[int, int],
    place: str,
    complain: Complain,
) -> Usage | None:
    """Return what one assistant line states about its response, None if it states nothing.

    `position` is the offset and the length of the line, `place` names its transcript: a response
    without any id is identified by them.
    """
    message = mapping(line.get("message"))
    usage = message.get("usage", line.get("usage"))
    if usage.__class__ is not dict:
        if usage is not None:
            complain("usage", usage)
        return None
    api_id = string(message.get("id")) or string(line.get("id"))
    if model == _SYNTHETIC:
        return None
    key = api_id or uuid or f"{place}@{position[0]}"
    counts = mapping(usage)
    five, hour = _cache_writes(counts, complain)
    fresh = _tokens(counts, "input_tokens", complain)
    output = _tokens(counts, "output_tokens", complain)
    cached = _tokens(counts, "cache_read_input_tokens", complain)
    return Usage(
        response_key=key,
        api_message_id=api_id,
        request_id=string(line.get("requestId")),
        stated_session_key=string(line.get("sessionId")),
        model=model,
        timestamp=timestamp,
        input_tokens=fresh,
        output_tokens=output,
        cache_read_tokens=cached,
        cache_write_5m_tokens=five,
        cache_write_1h_tokens=hour,
        web_searches=_tokens(
            mapping(counts.get("server_tool_use")), "web_search_requests", complain
        ),
        partial=1 if message.get("stop_reason") is None else 0,
        byte_offset=position[0],
        byte_length=position[1],
        line_count=1,
        all_input_tokens=fresh,
        all_output_tokens=output,
        all_cache_read_tokens=cached,
        all_cache_write_tokens=five + hour,
        stop_reason=string(message.get("stop_reason")),
        written_bytes=0,  # its blocks add to it
    )


def stated_usage(
    line: JSONObject, timestamp: str | None, position: tuple[int, int], complain: Complain
) -> Iterator[StatedUsage]:
    """Yield what a line `cost-state` says of its session so far, by model and for all of them.

    ```json
    {"type":"cost-state","sessionId":"..","totalCostUSD":0.75,"hasUnknownModelCost":false,
     "modelUsage":{"claude-opus-5[1m]":{"inputTokens":1,"outputTokens":1,"costUSD":0.74,
      "cacheReadInputTokens":1,"cacheCreationInputTokens":1,"webSearchRequests":0}}}
    ```

    It is the only place that names helper models, which have no line of their own.
    """
    models = line.get("modelUsage")
    if models is not None and not isinstance(models, dict):
        complain("modelUsage", models)
    found = []
    for model, value in list(mapping(models).items())[:_MOST_MODELS]:
        counts = mapping(value)
        stated = [
            None if counts.get(key) is None else _count(counts[key], key, complain)
            for key in _STATED
        ]
        cost = _dollars(counts.get("costUSD"), "costUSD", complain)
        found.append(_stated(model[:MAX_NAME], timestamp, stated, cost, position))
    total_cost = _dollars(line.get("totalCostUSD"), "totalCostUSD", complain)
    if total_cost is None:
        return
    yield from found
    columns = zip(*(one[2:6] for one in found), strict=True) if found else [()] * 4
    sums = [_sum(column) for column in columns]
    whole = _stated("", timestamp, sums, total_cost, position)
    yield whole._replace(is_lower_bound=int(line.get("hasUnknownModelCost") is True))


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _stated(
    model: str,
    timestamp: str | None,
    counts: Sequence[int | None],
    cost: float | None,
    position: tuple[int, int],
) -> StatedUsage:
    fresh, output, cached, written = counts
    return StatedUsage(model, timestamp, fresh, output, cached, written, cost, 0, *position)


def _dollars(value: object, key: str, complain: Complain) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        complain(key, value)
        return None
    return float(value)


def written_bytes(kind: str, block: JSONObject, text: str) -> int | None:
    """Return the length of what the model wrote for one block, None where it cannot be known.

    `text` is that of its row. A signature holds all that was thought, encrypted, and the text may
    be a summary of it or missing.
    """
    if kind == "thinking":
        signature = string(block.get("signature")) or ""
        hidden = (len(signature) - _BARE_SIGNATURE) * 3 // 4
        return max(_length(text), hidden) if text or signature else None
    if kind == "redacted_thinking":
        return None
    return _length(text) + (_BYTES_OF_CALL if kind == "tool_use" else 0)


def total(first: int | None, second: int | None) -> int | None:
    """Return the sum of two lengths, None if either is not known."""
    return None if first is None or second is None else first + second


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def other_requests(stated: Usage, usage: JSONObject, complain: Complain) -> Iterator[Usage]:
    """Yield the requests to other models that a response with this usage took."""
    iterations = usage.get("iterations")
    requests = [mapping(item) for item in iterations] if isinstance(iterations, list) else []
    models = [string(request.get("model")) for request in requests]
    named = {model for model in models if model is not None}
    if len(named) < 2:
        return
    own = stated.model if stated.model in named else models[-1]
    for number, (request, model) in enumerate(zip(requests, models, strict=True)):
        if model is None or model in (own, _SYNTHETIC) or len(model) > MAX_NAME:
            continue
        five, hour = _cache_writes(request, complain)
        yield stated._replace(
            response_key=f"{stated.response_key}/{number}",
            model=model,
            input_tokens=_tokens(request, "input_tokens", complain),
            output_tokens=_tokens(request, "output_tokens", complain),
            cache_read_tokens=_tokens(request, "cache_read_input_tokens", complain),
            cache_write_5m_tokens=five,
            cache_write_1h_tokens=hour,
            web_searches=0,
            written_bytes=None,
            line_count=0,
            all_input_tokens=0,
            all_output_tokens=0,
            all_cache_read_tokens=0,
            all_cache_write_tokens=0,
            stop_reason=None,
        )


def merged(known: Usage, later: Usage) -> Usage:
    """Return the usage of a response after a later line was read."""
    best, other = (known, later) if known.output_tokens > later.output_tokens else (later, known)
    return best._replace(
        timestamp=known.timestamp or later.timestamp,
        request_id=best.request_id or other.request_id,
        line_count=known.line_count + later.line_count,
        all_input_tokens=known.all_input_tokens + later.all_input_tokens,
        all_output_tokens=known.all_output_tokens + later.all_output_tokens,
        all_cache_read_tokens=known.all_cache_read_tokens + later.all_cache_read_tokens,
        all_cache_write_tokens=known.all_cache_write_tokens + later.all_cache_write_tokens,
        written_bytes=total(known.written_bytes, later.written_bytes),
    )


def _cache_writes(counts: JSONObject, complain: Complain) -> tuple[int, int]:
    """Return the cache writes for five minutes and for an hour; undivided ones are the former."""
    split = mapping(counts.get("cache_creation"))
    five = _tokens(split, "ephemeral_5m_input_tokens", complain)
    hour = _tokens(split, "ephemeral_1h_input_tokens", complain)
    if five or hour:
        return five, hour
    return _tokens(counts, "cache_creation_input_tokens", complain), 0


def _tokens(counts: JSONObject, key: str, complain: Complain) -> int:
    value = counts.get(key)
    return 0 if value is None else _count(value, key, complain) or 0


def _count(value: object, key: str, complain: Complain) -> int | None:
    if not is_count(value):
        complain(key, value)
        return None
    return value  # type: ignore[return-value]
