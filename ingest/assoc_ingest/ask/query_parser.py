"""Parses a query as people type it; no text is a syntax error.

    word           a word; `word*` any word that begins so
    "two words"    a phrase
    -word          what no hit may hold; `--flag` and `-1` are words
    a OR b         one of them, as one word of the query
    field:value    a filter, for the few names in `FIELDS`; any other colon is text
    --             everything behind it is words

Invisible letters (soft hyphens, spaces of no width) are left out of a query. The indexes hold a
text that has some both as it is and without them (`joined_text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ..errors import UsageError
from ..fields import INVISIBLE, has_cjk
from . import terms
from .terms import MOST_WORDS, Clause, Term, Terms

FIELDS = ("kind", "project", "session", "source", "branch", "since", "until", "tool")
"""What a query can limit itself: each is an option of the command, too."""

_term = re.compile(
    rf"(?:(?P<minus>-)|(?P<field>{'|'.join(FIELDS)}):)?+"
    r'"(?P<phrase>[^"]*)(?:"(?P<phrase_star>\*?)|\Z)|(?P<word>\S+)'
)
_unbindable = re.compile("[\x00\ud800-\udfff]")
INVISIBLE_RUN = re.compile(f"[{INVISIBLE}]+")
_raw_syntax = str.maketrans("(){}:^+,", " " * 8)
_RAW_WORDS = frozenset({"AND", "OR", "NOT", "NEAR"})


class _Token(NamedTuple):
    """One word of a query, and what it is there for."""

    role: str
    """`term`, `without`, `or`, or the name of a field"""
    term: Term
    is_phrase: bool = False


def parse(query: str) -> Terms:
    """Take a query apart; what holds no letter and no digit is left out, as in the index.

    What is said twice is one term. Behind the first `MOST_WORDS` words, all others are left out.
    """
    gathered = _Gathered()
    for token in _tokens(bindable(query)):
        gathered.add(token)
    return gathered.terms()


class _Gathered:
    """The parts of a query, as far as it was read."""

    def __init__(self) -> None:
        self._clauses: list[Clause] = []
        self._without: list[Term] = []
        self._fields: list[tuple[str, str]] = []
        self._literal: list[str] = []
        self._seen: set[_Token] = set()
        self._count = 0
        self._is_or = False

    def add(self, token: _Token) -> None:
        """Take the next word of the query."""
        if token.role in FIELDS:
            self._fields.append((token.role, token.term.text))
        elif token.role == "or":
            self._is_or = bool(self._clauses)
        elif terms.TOKEN.search(token.term.text):
            if token not in self._seen and (term := self._within_bounds(token.term)):
                self._add(token, term)
            self._seen.add(token)
            self._is_or = False

    def terms(self) -> Terms:
        """Return the whole query."""
        has_or = any(len(clause.alternatives) > 1 for clause in self._clauses)
        literal = "" if has_or or "" in self._literal else " ".join(self._literal)
        fields = tuple(dict.fromkeys(self._fields))
        return Terms(tuple(self._clauses), tuple(self._without), fields, literal, self._count)

    def _within_bounds(self, term: Term) -> Term | None:
        """Return the term, or as much of it as a query may have, None if that is nothing."""
        ends = _ends(term.text)
        room, self._count = MOST_WORDS - self._count, self._count + len(ends)
        if room <= 0:
            return None
        return Term(term.text[: ends[room - 1]]) if len(ends) > room else term

    def _add(self, token: _Token, term: Term) -> None:
        if token.role == "without":
            self._without.append(term)
            return
        self._literal.append("" if term.is_prefix else term.text)
        before = self._clauses.pop() if self._is_or else Clause((), token.is_phrase)
        is_phrase = token.is_phrase and before.is_phrase
        self._clauses.append(Clause((*before.alternatives, term), is_phrase))


def parse_raw(expression: str) -> Terms:
    """Return what an FTS5 expression asks for, to mark it: its words and phrases.

    Raises UsageError if they are more than a search takes: unlike words, an expression cannot be
    cut.
    """
    words = (word for word in terms.TOKEN.findall(expression) if word not in _RAW_WORDS)
    if (count := sum(1 for _ in words)) > MOST_WORDS:
        raise UsageError(
            f"--raw: the expression has {count:,} words; at most {MOST_WORDS} are allowed."
        )
    found = parse("-- " + expression.translate(_raw_syntax))
    others = {*_RAW_WORDS, *_columns_in(expression)}
    kept = [clause for clause in found.clauses if clause.alternatives[0].text not in others]
    return Terms(tuple(kept))


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
    return [match.end() for match in terms.TOKEN.finditer(text)]


def bindable(text: str) -> str:
    """Return a query as SQLite takes it, and without invisible letters.

    An argument of a command may hold undecodable bytes.
    """
    return INVISIBLE_RUN.sub("", _unbindable.sub(" ", text))


def _tokens(query: str) -> Iterator[_Token]:
    is_text = False
    for match in _term.finditer(query):
        if match["word"] == "--" and not is_text:
            is_text = True
        else:
            yield _quoted(match, is_text) if match["word"] is None else _word(match[0], is_text)


def _quoted(match: re.Match[str], is_text: bool) -> _Token:
    term = Term(match["phrase"], bool(match["phrase_star"]))
    if is_text:
        return _Token("term", term, is_phrase=True)
    role = match["field"] or ("without" if match["minus"] else "term")
    return _Token(role, term, is_phrase=True)


def _word(word: str, is_text: bool) -> _Token:
    stem = word.rstrip("*")
    term = Term(stem, is_prefix=stem != word)
    field, _, value = word.partition(":")
    if is_text:
        return _Token("term", term)
    if word == "OR":
        return _Token("or", term)
    if field in FIELDS and value:
        return _Token(field, Term(value))
    if word[0] == "-" and word[1:2].isalpha():
        return _Token("without", replace(term, text=stem[1:]))
    return _Token("term", term)
