"""A piece of stored text in which the matches are marked.

SQLite's snippet() puts the characters 2 and 3 around a match. Stored text may hold these two
itself, so what comes back is balanced before anyone believes it. The terminal and the web split
a snippet at the marks, make each piece harmless, and only then add colour or a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .terms import Span

OPEN, CLOSE = "\x02", "\x03"
ELLIPSIS = "…"

_mark = re.compile(f"[{OPEN}{CLOSE}]")
_BEFORE, _LETTERS = 60, 200


def balanced(snippet: str) -> str:
    """Return `snippet` with every mark closed and none inside another; stray ones are dropped."""
    pieces: list[str] = []
    is_open = False
    for piece in re.split(f"([{OPEN}{CLOSE}])", snippet):
        if piece in (OPEN, CLOSE):
            if is_open == (piece == OPEN):
                continue
            is_open = not is_open
        pieces.append(piece)
    return "".join(pieces) + (CLOSE if is_open else "")


def parts(snippet: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a balanced snippet, each with whether it is a match."""
    is_match = False
    for piece in _mark.split(snippet):
        if piece:
            yield piece, is_match
        is_match = not is_match


def plain(snippet: str) -> tuple[str, list[list[int]]]:
    """Return a balanced snippet without its marks, and [start, end] of each match in it."""
    text = ""
    spans: list[list[int]] = []
    for piece, is_match in parts(snippet):
        if is_match:
            spans.append([len(text), len(text) + len(piece)])
        text += piece
    return text, spans


def around(text: str, spans: Iterable[Span], letters: int = _LETTERS) -> str:
    """Return about `letters` letters of `text` from the first match on, all matches marked."""
    ordered = sorted(spans)
    begin = _word_start(text, max(0, ordered[0][0] - _BEFORE)) if ordered else 0
    end = min(len(text), max(begin + letters, ordered[0][1] if ordered else 0))
    pieces = [ELLIPSIS] if begin else []
    position = begin
    for start, stop in ordered:
        if start < position or stop > end:
            continue  # inside the match before it, or beyond the piece
        pieces += [_unmarked(text[position:start]), OPEN, _unmarked(text[start:stop]), CLOSE]
        position = stop
    pieces.append(_unmarked(text[position:end]))
    return "".join(pieces) + (ELLIPSIS if end < len(text) else "")


def _unmarked(text: str) -> str:
    return _mark.sub("", text)


def _word_start(text: str, position: int) -> int:
    """Return the start of the next word, if it is near, so that no word is cut in two."""
    space = text.find(" ", position, position + 20) if position else -1
    return position if space < 0 else space + 1
