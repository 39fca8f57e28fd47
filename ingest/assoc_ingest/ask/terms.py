"""What a query asks for, as the indexes are asked for it.

Three indexes answer, and a query may need all of them:

- *words* go to the full-text index. Each is quoted, so nothing in it is syntax.
- *substrings* are words with Chinese, Japanese or Korean letters: those languages write no spaces,
  so the word index holds whole runs of them. Three letters and more are found by trigrams.
- *letters* are such words of one or two letters, too short for a trigram: they are compared.

Line starts. The input of a tool is stored as JSON, where a line break is the two letters `\\n`, so
the word at the start of a line of a command or a file is indexed with an `n` in front (a `t` after
a tab, an `r` after a carriage return). `at_line_starts` asks for these forms as well, and
`matches` then distinguishes `\\npm` at a line start from the word `npm`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

from ..fields import has_cjk
from .stop_words import STOP_WORDS

MOST_WORDS = 100
"""Words that a search asks for: each is looked up in every index, and found in every text."""

TOKEN = re.compile(r"[^\W_]+")
"""What the index takes for a word."""

ESCAPES = "ntr"
"""Letters that stand for a line break, a tab and a carriage return in JSON."""

TRIGRAM = 3
_LIKE_ESCAPE = "~"
_COMPARED = 5_000  # letters; each may take four bytes and be escaped
_MOST_VARIANTS = 16


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase."""

    text: str
    is_prefix: bool = False

    @property
    def has_cjk(self) -> bool:
        """Does it need more than the word index?"""
        return bool(has_cjk(self.text))

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
class Clause:
    """A part of a query that a hit must hold: a word, a phrase, or words joined by OR."""

    alternatives: tuple[Term, ...]
    is_phrase: bool = False
    """It stands in quotes: no hit may lack it, not even one that lacks other words."""

    @property
    def name(self) -> str:
        """Return the clause as it was typed."""
        return " OR ".join(term.text for term in self.alternatives)

    @property
    def is_stop_word(self) -> bool:
        """Is it a word that says nothing about what is looked for?"""
        if self.is_phrase or len(self.alternatives) > 1 or self.alternatives[0].is_prefix:
            return False
        words = TOKEN.findall(self.alternatives[0].text.lower().replace("\u2019", "'"))
        return all(word in STOP_WORDS for word in words)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a query asks for: clauses that a hit must all hold, and terms that it may not hold."""

    clauses: tuple[Clause, ...] = ()
    without: tuple[Term, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    literal: str = ""
    """The words as they were typed, to find them just so; '' where nothing would be."""
    count: int = 0
    """Words that the query has; of Chinese, Japanese and Korean each letter counts as one."""

    @property
    def note(self) -> str | None:
        """Say what of the query is not searched for, if anything."""
        if self.count <= MOST_WORDS:
            return None
        return f"The query has {self.count:,} words; only the first {MOST_WORDS} were used."

    @property
    def content(self) -> tuple[Clause, ...]:
        """The clauses that say what is looked for: all of them, if none does."""
        found = tuple(clause for clause in self.clauses if not clause.is_stop_word)
        return found or self.clauses

    @property
    def words(self) -> tuple[Term, ...]:
        """The terms for the word index."""
        return tuple(term for term in self._terms() if not term.has_cjk)

    @property
    def substrings(self) -> tuple[str, ...]:
        """The terms for the index of trigrams."""
        return tuple(text for text in self.parts() if len(text) >= TRIGRAM)

    @property
    def letters(self) -> tuple[str, ...]:
        """The terms that no index finds."""
        return tuple(text for text in self.parts() if len(text) < TRIGRAM)

    @property
    def has_cjk(self) -> bool:
        """Does a part of the query need more than the word index?"""
        return any(term.has_cjk for term in (*self._terms(), *self.without))

    def parts(self) -> list[str]:
        """Return the terms that are found anywhere inside a text."""
        return [term.text.strip() for term in self._terms() if term.has_cjk]

    def texts(self) -> list[str]:
        """Return every term as it was typed."""
        return [*(word.text for word in self.words), *self.parts()]

    def without_numbers(self) -> Terms | None:
        """Return the query without its numbers, None if it has none or too little is left.

        That is an error message as it was elsewhere: in another line, of another size, at another
        time.
        """
        clauses = []
        for clause in self.clauses:
            kept = tuple(filter(None, map(_without_numbers, clause.alternatives)))
            if kept:
                clauses.append(replace(clause, alternatives=kept))
        is_same = clauses == list(self.clauses)
        return None if is_same or len(clauses) < 2 else replace(self, clauses=tuple(clauses))

    def variants(self) -> list[Terms]:
        """Return queries that together ask the same, none of them with OR across indexes."""
        if not any(_needs_variants(clause) for clause in self.clauses):
            return [self]
        choices = (
            [Clause((term,), clause.is_phrase) for term in clause.alternatives]
            if _needs_variants(clause)
            else [clause]
            for clause in self.clauses
        )
        return [
            replace(self, clauses=chosen) for chosen in islice(product(*choices), _MOST_VARIANTS)
        ]

    def all_words(self) -> str | None:
        """Return the clauses of words for FTS5, None if there are none."""
        found = " AND ".join(any_of(clause.alternatives) for clause in self._in_words())
        return self.but(found) if found else None

    def all_substrings(self) -> str | None:
        """Return the substrings for a trigram index, None if there are none."""
        return " AND ".join(Term(text).expression() for text in self.substrings) or None

    def at_line_starts(self) -> str | None:
        """Return what finds hits that `all_words` misses because a word begins a line in JSON."""
        plain = " AND ".join(any_of(clause.alternatives) for clause in self._in_words())
        wide = " AND ".join(
            f"({' OR '.join(term.expression_at_line_starts() for term in clause.alternatives)})"
            for clause in self._in_words()
        )
        return self.but(f"(({wide}) NOT ({plain}))") if plain else None

    def line_start_patterns(self) -> list[str]:
        """Return LIKE patterns; a hit of `at_line_starts` that is one fits at least one."""
        firsts = [found[0] for word in self.words if (found := TOKEN.match(word.text))]
        return [like(f"\\{escape}{first}") for first in firsts for escape in ESCAPES]

    def but(self, expression: str) -> str:
        """Return an expression for FTS5 that leaves out what no hit may hold."""
        without = [term for term in self.without if not term.has_cjk]
        return f"({expression}) NOT {any_of(without)}" if without else expression

    def _terms(self) -> Iterator[Term]:
        return (term for clause in self.clauses for term in clause.alternatives)

    def _in_words(self) -> Iterator[Clause]:
        return (clause for clause in self.clauses if not clause.alternatives[0].has_cjk)


def any_of(terms: Iterable[Term]) -> str:
    """Return an expression for FTS5 that finds any of the terms."""
    return f"({' OR '.join(term.expression() for term in terms)})"


def _without_numbers(term: Term) -> Term | None:
    words = TOKEN.findall(term.text)
    kept = [word for word in words if not word.isdigit()]
    if len(kept) == len(words):
        return term
    return replace(term, text=" ".join(kept)) if kept else None


def _needs_variants(clause: Clause) -> bool:
    return len(clause.alternatives) > 1 and any(term.has_cjk for term in clause.alternatives)


def like(text: str) -> str:
    """Return the LIKE pattern (escape '~') for text that contains `text`.

    SQLite refuses a pattern of more than 50,000 bytes. Of a longer text the beginning is compared.
    """
    text = text[:_COMPARED]
    for special in (_LIKE_ESCAPE, "%", "_"):
        text = text.replace(special, _LIKE_ESCAPE + special)
    return f"%{text}%"
