"""A piece of stored text with its matches marked.

The characters 2 and 3 stand around a match. Stored text may hold these two itself: there they are
dropped. The terminal and the web split a snippet at the marks, make each piece harmless, and only
then add colour or a tag.

SQLite's snippet() does the same, but what it costs grows with the square of the matches.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .matches import Span

OPEN, CLOSE = "\x02", "\x03"
ELLIPSIS = "…"

_mark = re.compile(f"[{OPEN}{CLOSE}]")
_BEFORE, _LETTERS = 60, 200
_LONGEST = 400
"""Letters of a piece that is longer because its first match is."""


def parts(snippet: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a snippet, each with whether it is a match."""
    is_match = False
    for piece in _mark.split(snippet):
        if piece:
            yield piece, is_match
        is_match = not is_match


def plain(snippet: str) -> tuple[str, list[list[int]]]:
    """Return a snippet without its marks, and [start, end] of each match in it."""
    text = ""
    spans: list[list[int]] = []
    for piece, is_match in parts(snippet):
        if is_match:
            spans.append([len(text), len(text) + len(piece)])
        text += piece
    return text, spans


def around(text: str, spans: Iterable[Span], letters: int = _LETTERS) -> str:
    """Return about `letters` letters of `text` where most different matches are, all marked."""
    ordered = sorted(spans)
    first = ordered[_richest(text, ordered, letters - _BEFORE)] if ordered else (0, 0)
    begin = _word_start(text, max(0, first[0] - _BEFORE)) if ordered else 0
    end = min(len(text), max(begin + letters, min(first[1], begin + _LONGEST)))
    pieces = [ELLIPSIS] if begin else []
    position = begin
    for start, stop in ordered[bisect_left(ordered, (begin, 0)) :]:
        if start >= end:
            break
        if start < position or (stop > end and start != first[0]):
            continue  # inside the match before it, or beyond the piece
        stop = min(stop, end)
        pieces += [_unmarked(text[position:start]), OPEN, _unmarked(text[start:stop]), CLOSE]
        position = stop
    pieces.append(_unmarked(text[position:end]))
    return "".join(pieces) + (ELLIPSIS if end < len(text) else "")


def _richest(text: str, ordered: Sequence[Span], room: int) -> int:
    """Return the number of the match from which on `room` letters have most different ones."""
    words = [text[start : min(stop, start + _LONGEST)].lower() for start, stop in ordered]
    among: Counter[str] = Counter()
    best = most = behind = 0
    for number, (start, _) in enumerate(ordered):
        while behind < len(ordered) and (behind <= number or ordered[behind][1] <= start + room):
            among[words[behind]] += 1
            behind += 1
        if len(among) > most:
            best, most = number, len(among)
        among[words[number]] -= 1
        if not among[words[number]]:
            del among[words[number]]
    return best


def _unmarked(text: str) -> str:
    return _mark.sub("", text)


def _word_start(text: str, position: int) -> int:
    """Return the start of the next word, if it is near, so that no word is cut in two."""
    space = text.find(" ", position, position + 20) if position else -1
    return position if space < 0 else space + 1
