"""Where the words of a query are in a text, and snippets that mark them."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice

from .. import fields
from ..fields import has_invisible
from . import query

# ------------------------------------------------------------------------------------------------
# Finds the words of a query in a text, to show and mark them.
#
# The indexes say which texts hold the words, not where. A text with invisible letters is indexed as
# it is and without them, and searched both ways here.


Span = tuple[int, int]

ENOUGH, MOST = 200, 20_000
"""The most places in a text of one phrase, and of Chinese, Japanese or Korean letters."""

_SHORT = 100  # letters of a word for which the expression itself checks what precedes it


class Places:
    """Finds the words of a query in a text as the index does, also behind the escapes of JSON."""

    def __init__(self, words: Iterable[query.Term]) -> None:
        tokens = ((query.TOKEN.findall(fold(word.text)), word.is_prefix) for word in words)
        self._patterns = [_pattern(found, is_prefix) for found, is_prefix in tokens if found]

    def find(self, text: str) -> list[Span]:
        """Return the spans of all words, [] if one of the words is missing."""
        spans, is_whole = self._look(text)
        return spans if is_whole else []

    def some(self, text: str) -> list[Span]:
        """Return the spans of the words that occur."""
        return self._look(text)[0]

    def _look(self, text: str) -> tuple[list[Span], bool]:
        found: set[int] = set()

        def look(one: str) -> Iterator[Span]:
            folded = fold(one)
            for number, pattern in enumerate(self._patterns):
                for span in islice(_standing(pattern, folded), ENOUGH):
                    found.add(number)
                    yield span

        return in_both_ways(text, look), len(found) == len(self._patterns)


def _pattern(tokens: Sequence[str], is_prefix: bool) -> re.Pattern[str]:
    """Return the expression for a phrase. It begins with letters, which makes it fast."""
    first, *others = map(re.escape, tokens)
    begin = (
        f"(?:(?<![^\\W_]{first})|(?<=\\\\[{query.ESCAPES}]{first}))" if len(first) <= _SHORT else ""
    )
    end = r"[^\W_]*+" if is_prefix else r"(?![^\W_])"
    return re.compile(first + begin + "".join(rf"[\W_]++{other}" for other in others) + end)


def _standing(pattern: re.Pattern[str], folded: str) -> Iterator[Span]:
    """Yield the places where a phrase begins a word, also behind an escape, as in `\\nword`."""
    for match in pattern.finditer(folded):
        start = match.start()
        if not start or not folded[start - 1].isalnum() or _is_escape(folded, start - 1):
            yield match.span()


def _is_escape(folded: str, letter: int) -> bool:
    """Does this letter belong to an escape? An even number of backslashes is a path: C:\\\\new."""
    place = letter
    while place and folded[place - 1] == "\\":
        place -= 1
    return folded[letter] in query.ESCAPES and (letter - place) % 2 == 1


def fold(text: str) -> str:
    """Return a text in lower case and without accents, as the index has its words, of equal length.

    Most letters beyond ASCII are dashes and quotes. To replace the few others one after another is
    much faster than to translate the text.
    """
    if not text.isascii():
        for letter in {*text}:
            if letter > "\x7f" and (folded := _FOLDING[ord(letter)]) != ord(letter):
                text = text.replace(letter, chr(folded))
    return text.lower()


def substrings_in(text: str, parts: Sequence[str]) -> list[Span]:
    """Return the positions of any of `parts` in `text`, ignoring case."""
    if not parts:
        return []
    pattern = re.compile("|".join(map(re.escape, parts)), re.IGNORECASE)

    def look(one: str) -> Iterator[Span]:
        return (match.span() for match in islice(pattern.finditer(one), MOST))

    return in_both_ways(text, look)


def in_both_ways(text: str, look: Callable[[str], Iterable[Span]]) -> list[Span]:
    """Return what `look` finds in a text, and in the text without its invisible letters.

    All spans are those of the text itself, invisible letters included.
    """
    spans = set(look(text))
    if has_invisible(text):
        gaps = [match.span() for match in fields.INVISIBLE_RUN.finditer(text)]
        before = [0, *accumulate(end - start for start, end in gaps)]
        # Where each gap would be in the text without them all.
        places = [start - shift for (start, _), shift in zip(gaps, before, strict=False)]

        def back(place: int) -> int:
            return place + before[bisect_right(places, place)]

        bare = fields.INVISIBLE_RUN.sub("", text)
        spans.update((back(start), back(end - 1) + 1) for start, end in look(bare) if start < end)
    return sorted(spans)


class _Folding(dict[int, int]):
    """Each letter in lower case and without its accent, as unicode61 folds it, one for one."""

    def __missing__(self, code: int) -> int:
        bare = unicodedata.normalize("NFD", chr(code))[0].lower()
        self[code] = ord(bare) if len(bare) == 1 and code < 0x3000 else code
        return self[code]


_FOLDING = _Folding()


# ------------------------------------------------------------------------------------------------
# A piece of stored text with its matches marked.
#
# The characters 2 and 3 enclose a match; in stored text they are dropped. The terminal and the web
# split a snippet at the marks, make each piece harmless, and only then add colour or a tag.
#
# SQLite's snippet() does the same, but its cost grows with the square of the matches.


OPEN, CLOSE = "\x02", "\x03"
ELLIPSIS = "…"

MARK = re.compile(f"([{OPEN}{CLOSE}])")
_BEFORE, _LETTERS = 60, 200
_LONGEST = 400
"""Letters of a piece that is longer because its first match is."""


def parts(snippet: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a snippet, each with a flag that says if it is a match."""
    for number, piece in enumerate(MARK.split(snippet)[::2]):
        if piece:
            yield piece, number % 2 == 1


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
    """Return the piece of `text` with most different matches, about `letters` long, all marked."""
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
    """Return the number of the match after which `room` letters have most different matches."""
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
    return MARK.sub("", text)


def _word_start(text: str, position: int) -> int:
    """Return the start of the next word, if it is near, so that no word is cut in two."""
    space = text.find(" ", position, position + 20) if position else -1
    return position if space < 0 else space + 1
