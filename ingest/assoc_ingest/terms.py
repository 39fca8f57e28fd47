"""A query as people type it: plain words, "phrases", word*; never a syntax error.

Three indexes answer, and a query may need all of them:

- *words* go to the full-text index. Each is quoted, so nothing in it is syntax.
- *substrings* are words with Chinese, Japanese or Korean letters: those languages write no spaces,
  so the word index holds whole runs of them. Three letters and more are found by trigrams.
- *letters* are such words of one or two letters, too short for a trigram: they are compared.

Line starts. The input of a tool is stored as JSON, where a line break is the two letters `\\n`, so
the word at the start of a line of a command or a file is indexed with an `n` in front (a `t` after
a tab, an `r` after a carriage return). `at_line_starts` asks for these forms as well, and
`Places` then tells `\\npm` at a line start from the word `npm`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .sources.fields import has_cjk

Span = tuple[int, int]

_token = re.compile(r"[^\W_]+")
_term = re.compile(r'"(?P<phrase>[^"]*)(?:"(?P<phrase_star>\*?)|\Z)|(?P<word>\S+)')
_unbindable = re.compile("[\x00\ud800-\udfff]")
_ESCAPES = "ntr"
_TRIGRAM = 3
_LIKE_ESCAPE = "~"
_COMPARED = 5_000  # letters; each may take four bytes and be escaped


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase."""

    text: str
    is_prefix: bool = False

    def expression(self, first: str = "") -> str:
        """Return the term for FTS5, with the letter `first` in front."""
        quoted = (first + self.text).replace('"', '""')
        return f'"{quoted}"' + ("*" if self.is_prefix else "")

    def expression_at_line_starts(self) -> str:
        """Return the term for FTS5, in all forms that it has in JSON."""
        if not _token.match(self.text):
            return self.expression()
        forms = [self.expression(first) for first in ("", *_ESCAPES)]
        return f"({' OR '.join(forms)})"


@dataclass(frozen=True, slots=True)
class Terms:
    """The words, substrings and letters that a hit must all hold."""

    words: tuple[Term, ...]
    substrings: tuple[str, ...]
    letters: tuple[str, ...]

    @property
    def has_cjk(self) -> bool:
        """Does a part of the query need more than the word index?"""
        return bool(self.substrings or self.letters)

    def parts(self) -> list[str]:
        """Return the terms that are found anywhere inside a text."""
        return [*self.substrings, *self.letters]

    def texts(self) -> list[str]:
        """Return every term as it was typed."""
        return [*(word.text for word in self.words), *self.parts()]

    def all_words(self) -> str | None:
        """Return the words for FTS5, None if there are none."""
        return " ".join(word.expression() for word in self.words) or None

    def all_substrings(self) -> str | None:
        """Return the substrings for a trigram index, None if there are none."""
        return " ".join(Term(text).expression() for text in self.substrings) or None

    def at_line_starts(self) -> str | None:
        """Return what finds hits that `all_words` misses because a word begins a line in JSON."""
        plain = self.all_words()
        if plain is None:
            return None
        wide = " AND ".join(word.expression_at_line_starts() for word in self.words)
        return f"({wide}) NOT ({plain})"

    def line_start_patterns(self) -> list[str]:
        """Return LIKE patterns; a hit of `at_line_starts` that is one fits at least one."""
        firsts = [found[0] for word in self.words if (found := _token.match(word.text))]
        return [like(f"\\{escape}{first}") for first in firsts for escape in _ESCAPES]


def parse(query: str) -> Terms:
    """Take a query apart; what holds no letter and no digit is left out, as in the index."""
    words: list[Term] = []
    substrings: list[str] = []
    letters: list[str] = []
    for match in _term.finditer(bindable(query)):
        term = _as_term(match)
        if has_cjk(term.text):
            text = term.text.strip()
            (substrings if len(text) >= _TRIGRAM else letters).append(text)
        elif _token.search(term.text):
            words.append(term)
    return Terms(tuple(words), tuple(substrings), tuple(letters))


def bindable(text: str) -> str:
    """Return `text` as SQLite takes it: an argument of a command may hold undecodable bytes."""
    return _unbindable.sub(" ", text)


def _as_term(match: re.Match[str]) -> Term:
    if (phrase := match["phrase"]) is not None:
        return Term(phrase, bool(match["phrase_star"]))
    word = match["word"]
    stem = word.rstrip("*")
    return Term(stem, is_prefix=stem != word)


def like(text: str) -> str:
    """Return the LIKE pattern (escape '~') for text that contains `text`.

    SQLite refuses a pattern of more than 50,000 bytes. Of a longer text the beginning is compared.
    """
    text = text[:_COMPARED]
    for special in (_LIKE_ESCAPE, "%", "_"):
        text = text.replace(special, _LIKE_ESCAPE + special)
    return f"%{text}%"


class Places:
    """Where the words of a query stand in a text, as the index would say it, JSON escapes seen."""

    def __init__(self, words: Iterable[Term]) -> None:
        self._patterns = [_place(word) for word in words]

    def find(self, text: str) -> list[Span]:
        """Return the spans of all words; none at all if one of the words is missing."""
        folded = text.lower() if text.isascii() else text.translate(_FOLDING)
        spans: list[Span] = []
        for pattern in self._patterns:
            found = [match.span(1) for match in pattern.finditer(folded)]
            if not found:
                return []
            spans += found
        return spans


def substrings_in(text: str, parts: Sequence[str]) -> list[Span]:
    """Return where any of `parts` stands in `text`, whatever its case."""
    pattern = re.compile("|".join(map(re.escape, parts)), re.IGNORECASE)
    return [match.span() for match in pattern.finditer(text)] if parts else []


class _Folding(dict[int, int]):
    """Each letter in lower case and without its accent, as unicode61 folds it, one for one."""

    def __missing__(self, code: int) -> int:
        bare = unicodedata.normalize("NFD", chr(code))[0].lower()
        self[code] = ord(bare) if len(bare) == 1 and code < 0x3000 else code
        return self[code]


_FOLDING = _Folding()

# A word begins where no letter stands before it, or after an escape: an odd number of
# backslashes and one of n, t, r. An even number is a path such as C:\\new.
_BEGIN = r"(?:(?<![^\W_])|(?<!\\)(?:\\\\)*\\[ntr])"
_BETWEEN = r"[\W_]+"
_END = r"(?![^\W_])"


def _place(word: Term) -> re.Pattern[str]:
    tokens = map(re.escape, _token.findall(word.text.translate(_FOLDING)))
    body = _BETWEEN.join(tokens)
    return re.compile(f"{_BEGIN}({body}){'' if word.is_prefix else _END}")
