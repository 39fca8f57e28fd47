"""Counts the tokens of responses, each once, in the three ways in which agents state them.

- *Stated*: a line has the counts of its response. Several lines can have those of one, while it
  grows: the one with the most output counts, as a whole (`merged`).
- *Cumulative*: a line has the totals so far. A response is the difference to those before it
  (`since`).
- *A record wins*: newer versions write a record of each request beside the totals. Which of the two
  counts is up to the source; the record is then a stated count.

All of them end as a `Usage`: input that no cache had, what was read from a cache, what was written
to one, and the output. Most programs state an input that includes the cache (`beside_cache`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..records import Usage


class Counts(NamedTuple):
    """What one response took."""

    fresh: int
    """Input that no cache had."""
    output: int
    cached: int = 0
    written: int = 0
    """Input that was written to a cache; for an hour: `written_1h`."""
    written_1h: int = 0


def beside_cache(given: int, output: int, cached: int, written: int = 0) -> Counts:
    """Return the counts of a response whose input (`given`) includes what the cache had."""
    return Counts(max(0, given - cached - written), output, cached, written)


def since(total: Sequence[int], before: Sequence[int] | None) -> list[int]:
    """Return what was spent between two totals. Totals that became smaller were reset."""
    if before is None or any(now < then for now, then in zip(total, before, strict=True)):
        return list(total)
    return [now - then for now, then in zip(total, before, strict=True)]


def usage(
    key: str,
    counts: Counts,
    *,
    model: str | None,
    moment: str | None,
    place: tuple[int, int],
    is_partial: bool = False,
    **stated: Any,
) -> Usage:
    """Return what one line states of the response `key`; `stated` are more fields of `Usage`."""
    fresh, output, cached, written, written_1h = counts
    return Usage(
        key,
        stated.pop("api_message_id", None),
        stated.pop("request_id", None),
        stated.pop("stated_session_key", None),
        model,
        moment,
        fresh,
        output,
        cached,
        written,
        written_1h,
        stated.pop("web_searches", 0),
        int(is_partial),
        *place,
        line_count=1,
        all_input_tokens=fresh,
        all_output_tokens=output,
        all_cache_read_tokens=cached,
        all_cache_write_tokens=written + written_1h,
        **stated,
    )


def merged(known: Usage | None, later: Usage) -> Usage:
    """Return the usage of a response after a later line was read.

    The line with the most output counts, of several the last, with its other counts as they are:
    gateways move tokens between fields as a response grows, so the maximum of each field would be a
    sum that never existed. The sums over all lines are kept, too, to explain the numbers of
    programs that add up lines. The response belongs to the time of its first line.
    """
    if known is None:
        return later
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


def total(first: int | None, second: int | None) -> int | None:
    """Return the sum of two lengths, None if either is not known."""
    return None if first is None or second is None else first + second
