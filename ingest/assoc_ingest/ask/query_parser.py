"""Parses a query as people type it: plain words, "phrases", word*; never a syntax error.

Three indexes answer, and a query may need all of them:

- *words* go to the full-text index. Each is quoted, so nothing in it is syntax.
- *substrings* are words with Chinese, Japanese or Korean letters: those languages write no spaces,
  so the word index holds whole runs of them. Three letters and more are found by trigrams.
- *letters* are such words of one or two letters, too short for a trigram: they are compared.

Line starts. The input of a tool is stored as JSON, where a line break is the two letters `\\n`, so
the word at the start of a line of a command or a file is indexed with an `n` in front (a `t` after
a tab, an `r` after a carriage return). `at_line_starts` asks for these forms as well, and
`matches` then distinguishes `\\npm` at a line start from the word `npm`.

Invisible letters (soft hyphens, spaces of no width) are left out of a query. The indexes hold a
text that has some both as it is and without them (`joined_text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..errors import UsageError
from ..fields import INVISIBLE, has_cjk

MOST_WORDS = 100
"""Words that a search asks for: each is looked up in every index, and found in every text."""

TOKEN = re.compile(r"[^\W_]+")
"""What the index takes for a word."""

_term = re.compile(r'"(?P<phrase>[^"]*)(?:"(?P<phrase_star>\*?)|\Z)|(?P<word>\S+)')
_unbindable = re.compile("[\x00\ud800-\udfff]")
INVISIBLE_RUN = re.compile(f"[{INVISIBLE}]+")
_raw_syntax = str.maketrans("(){}:^+,", " " * 8)
_RAW_WORDS = frozenset({"AND", "OR", "NOT", "NEAR"})
ESCAPES = "ntr"
"""Letters that stand for a line break, a tab and a carriage return in JSON."""

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
        if not TOKEN.match(self.text):
            return self.expression()
        forms = [self.expression(first) for first in ("", *ESCAPES)]
        return f"({' OR '.join(forms)})"


@dataclass(frozen=True, slots=True)
class Terms:
    """The words, substrings and letters that a hit must all hold."""

    words: tuple[Term, ...]
    substrings: tuple[str, ...]
    letters: tuple[str, ...]
    count: int = 0
    """Words that the query has; of Chinese, Japanese and Korean each letter counts as one."""

    @property
    def note(self) -> str | None:
        """Say what of the query is not searched for, if anything."""
        if self.count <= MOST_WORDS:
            return None
        return f"The query has {self.count:,} words; only the first {MOST_WORDS} were used."

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
        firsts = [found[0] for word in self.words if (found := TOKEN.match(word.text))]
        return [like(f"\\{escape}{first}") for first in firsts for escape in ESCAPES]


def parse(query: str) -> Terms:
    """Take a query apart; what holds no letter and no digit is left out, as in the index.

    What is said twice is one term. Behind the first `MOST_WORDS` words, all others are left out.
    """
    words: list[Term] = []
    substrings: list[str] = []
    letters: list[str] = []
    count = 0
    found = map(_as_term, _term.finditer(bindable(query)))
    for term in dict.fromkeys(term for term in found if TOKEN.search(term.text)):
        ends = _ends(term.text)
        room, count = MOST_WORDS - count, count + len(ends)
        if room <= 0:
            continue
        used = Term(term.text[: ends[room - 1]]) if len(ends) > room else term
        if has_cjk(used.text):
            text = used.text.strip()
            (substrings if len(text) >= _TRIGRAM else letters).append(text)
        else:
            words.append(used)
    return Terms(tuple(words), tuple(substrings), tuple(letters), count)


def parse_raw(expression: str) -> Terms:
    """Return what an FTS5 expression asks for, to mark it: its words and phrases.

    Raises UsageError if they are more than a search takes: unlike words, an expression cannot be
    cut.
    """
    words = (word for word in TOKEN.findall(expression) if word not in _RAW_WORDS)
    if (count := sum(1 for _ in words)) > MOST_WORDS:
        raise UsageError(
            f"--raw: the expression has {count:,} words; at most {MOST_WORDS} are allowed."
        )
    found = parse(expression.translate(_raw_syntax))
    others = {*_RAW_WORDS, *_columns_in(expression)}
    return replace(found, words=tuple(w for w in found.words if w.text not in others))


def _columns_in(expression: str) -> Iterator[str]:
    """Yield the names of columns to which an expression limits a part of it: what a colon ends."""
    for part in expression.split(":")[:-1]:
        known = part.rstrip()
        if known.endswith("}"):
            yield from known[known.rfind("{") + 1 : -1].split()
        else:
            yield from known.rsplit(None, 1)[-1:]


def _ends(text: str) -> list[int]:
    """Return where each word of a term ends: what the index sees as one, or a letter of CJK."""
    if has_cjk(text):
        return list(range(1, len(text) + 1))
    return [match.end() for match in TOKEN.finditer(text)]


def bindable(text: str) -> str:
    """Return a query as SQLite takes it, and without invisible letters.

    An argument of a command may hold undecodable bytes.
    """
    return INVISIBLE_RUN.sub("", _unbindable.sub(" ", text))


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
