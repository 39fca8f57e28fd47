"""Parses a query as people type it into terms for the indexes. No text is a syntax error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import NamedTuple

from ..errors import UsageError
from ..fields import bindable, has_cjk
from .filters import FILTERS

# ------------------------------------------------------------------------------------------------
# Stop words: words that say nothing about the subject of a question. Those of German and French are
# here because English texts lack them, and what is missing counts most; what is an English word or
# a name, too, such as `die`, `mit` or `comment`, is left out.


_WORDS = """
    a about after again all also am an and any are aren as at be because been before being but by
    can could did didn do does doesn doing don done during each either else etc ever every few for
    from get gets getting give given go goes going got had has hasn have haven having he her here
    hers him his how i if in into is isn it its itself just know last later let like ll look made
    make makes many may maybe me might mine more most much must my need needed needs neither no nor
    not now of off on once one only or other our ours out over own per please possible put quite
    rather re really s said same say see seem shall she should shouldn so some somehow something
    still such t tell than that the their them then there these they thing things think this those
    though through to too try trying under until up upon us use used uses using ve very via want
    wants was wasn way we well were weren what when where whether which while who whom whose why
    will with within without won would wouldn yes yet you your yours
"""
_GERMAN = """
    aber alle als auch auf aus bei beim das dass dem den der deren dessen diese diesem diesen dieser
    dieses doch ein eine einem einen einer eines er für gibt habe haben hat hatte hatten ich ihr
    ihre immer ist jede jeder kann keine können macht machen muss müssen nach nicht nichts noch nur
    oder ohne sehr sein seit sich sie sind über und uns unser unsere vom von vor wann warum weil
    welche welchem welchen welcher welches wenn werden wie wieso wir wird wo wurde wurden zu zum zur
"""
_FRENCH = """
    au aux avec avez avons c'est ce ces cette chez dans des donc elle elles est et eux été fait ils
    je la le les leur lors mais même nos notre nous ont ou où par pas pendant pour pourquoi qu'est
    quand que quel quelle quelles quels qui quoi sans ses sont sous sur une vers vos votre vous
"""
STOP_WORDS = frozenset(f"{_WORDS}{_GERMAN}{_FRENCH}".replace("'", " ").split())
"""In lower case; `don't` is two words in the index."""


# ------------------------------------------------------------------------------------------------
# The terms of a query, as the indexes take them.
#
# A query can need three indexes:
#
# - *words* go to the full-text index. Each is quoted, so nothing in it is syntax.
# - *substrings* are words with Chinese, Japanese or Korean letters. Those languages write no
#   spaces, so the word index holds whole runs of them. Three letters and more are found by
#   trigrams.
# - *letters* are such words of one or two letters, too short for a trigram: they are compared.
#
# Line starts. The input of a tool is stored as JSON, where a line break is the two letters `\n`.
# So the first word of a line is indexed with an `n` in front (a `t` after a tab, an `r` after a
# carriage return). `at_line_starts` searches for these forms as well, and `matches` then
# distinguishes `\npm` at a line start from the word `npm`.


MOST_WORDS = 100
"""Words of a query that are used: each is looked up in every index, and marked in every text."""

TOKEN = re.compile(r"[^\W_]+")
"""A word of the index."""

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
    """A part of a query that every hit contains: a word, a phrase, or words joined by OR."""

    alternatives: tuple[Term, ...]
    is_phrase: bool = False
    """It is quoted: every hit contains it, even one that lacks other words."""

    @property
    def name(self) -> str:
        return " OR ".join(term.text for term in self.alternatives)

    @property
    def is_stop_word(self) -> bool:
        """Is it a word that says nothing about the subject?"""
        if self.is_phrase or len(self.alternatives) > 1 or self.alternatives[0].is_prefix:
            return False
        words = TOKEN.findall(self.alternatives[0].text.lower().replace("\u2019", "'"))
        return all(word in STOP_WORDS for word in words)


@dataclass(frozen=True, slots=True)
class Terms:
    """A query: the clauses that a hit contains, and the terms that it does not contain."""

    clauses: tuple[Clause, ...] = ()
    without: tuple[Term, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    literal: str = ""
    """The words as they were typed, to find them in this order; '' if they have none."""
    count: int = 0
    """Words of the query; each Chinese, Japanese and Korean letter counts as one."""

    @property
    def note(self) -> str | None:
        """Say which part of the query is not used, if any."""
        if self.count <= MOST_WORDS:
            return None
        return f"The query has {self.count:,} words; only the first {MOST_WORDS} were used."

    @property
    def content(self) -> tuple[Clause, ...]:
        """The clauses without stop words; all of them if there are no others."""
        clauses = tuple(clause for clause in self.clauses if not clause.is_stop_word)
        return clauses or self.clauses

    @property
    def words(self) -> tuple[Term, ...]:
        return tuple(term for term in self._terms() if not term.has_cjk)

    @property
    def substrings(self) -> tuple[str, ...]:
        return tuple(text for text in self.parts() if len(text) >= TRIGRAM)

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(text for text in self.parts() if len(text) < TRIGRAM)

    @property
    def has_cjk(self) -> bool:
        """Does a part of the query need more than the word index?"""
        return any(term.has_cjk for term in (*self._terms(), *self.without))

    def parts(self) -> list[str]:
        """Return the terms that are found anywhere inside a text."""
        return [term.text.strip() for term in self._terms() if term.has_cjk]

    def texts(self) -> list[str]:
        return [*(word.text for word in self.words), *self.parts()]

    def without_numbers(self) -> Terms | None:
        """Return the query without its numbers; None if it has none, or too little is left.

        An error message has other numbers elsewhere: of lines, sizes and times.
        """
        clauses = []
        for clause in self.clauses:
            alternatives = tuple(filter(None, map(_without_numbers, clause.alternatives)))
            if alternatives:
                clauses.append(replace(clause, alternatives=alternatives))
        is_same = clauses == list(self.clauses)
        return None if is_same or len(clauses) < 2 else replace(self, clauses=tuple(clauses))

    def variants(self) -> list[Terms]:
        """Return queries that together find the same, none of them with OR across indexes."""
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
        """Return an expression for hits that `all_words` misses: a word begins a line in JSON."""
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
        """Return an expression for FTS5 without the hits that have an excluded term."""
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

    SQLite refuses a pattern of more than 50,000 bytes. Only the beginning of a longer text is used.
    """
    text = text[:_COMPARED]
    for special in (_LIKE_ESCAPE, "%", "_"):
        text = text.replace(special, _LIKE_ESCAPE + special)
    return f"%{text}%"


# ------------------------------------------------------------------------------------------------
# Takes English endings off a word: plurals, -ed and -ing.
#
# The index holds words as they are written, and a prefix finds all words that begin with it. So the
# rest need not be a word: `cach` finds cache, caches, cached and caching.


_LEAST = 4  # letters of a prefix; fewer would find too much
_VOWELS = frozenset("aeiouy")
_ENDINGS = ("ing", "ed", "es", "s")


def forms(word: str) -> tuple[Term, ...]:
    """Return the terms that find a word with any ending; the first one finds the word itself."""
    if not (word.isascii() and word.isalpha()) or len(word) < _LEAST - 1:
        return (Term(word),)
    stem = _stem(word.lower())
    if len(stem) >= _LEAST:
        return (Term(stem, is_prefix=True),)
    return tuple(Term(form) for form in dict.fromkeys((word.lower(), stem, f"{stem}s")))


def _stem(word: str) -> str:
    if len(word) < _LEAST:
        return word
    if word.endswith("ies"):
        return _without_y(word[:-3] + "y")
    ending = next((ending for ending in _ENDINGS if word.endswith(ending)), "")
    stem = word.removesuffix(ending)
    if ending == "es" and not stem.endswith(("s", "x", "z", "ch", "sh")):
        stem += "e"
    if (ending == "s" and stem.endswith(("s", "u", "i"))) or not _is_word(stem):
        return word
    if ending in ("ing", "ed") and _is_doubled(stem):
        stem = stem[:-1]
    return _without_e(_without_y(stem))


def _is_word(stem: str) -> bool:
    return len(stem) >= _LEAST - 1 and not _VOWELS.isdisjoint(stem)


def _is_doubled(stem: str) -> bool:
    """Does it end as in `runn`, of running? `add`, `call` and `see` are words."""
    return len(stem) >= _LEAST and stem[-1] == stem[-2] and stem[-1] not in "lszaeiou"


def _without_e(stem: str) -> str:
    return stem[:-1] if stem.endswith("e") and len(stem) > _LEAST else stem


def _without_y(stem: str) -> str:
    has_plural_in_ies = stem.endswith("y") and stem[-2] not in _VOWELS and len(stem) > _LEAST
    return stem[:-1] if has_plural_in_ies else stem


# ------------------------------------------------------------------------------------------------
# Parses a query as people type it; no text is a syntax error.
#
#     word           a word; `word*` any word that begins so
#     "two words"    a phrase
#     -word          no hit has this word; `--flag` and `-1` are words
#     a OR b         one of them, as one word of the query
#     field:value    a filter, for the few names in `FIELDS`; any other colon is text
#     --             everything behind it is words
#
# Invisible letters (soft hyphens, zero-width spaces) are removed from a query. The indexes hold a
# text with such letters twice, once without them (`joined_text`).


FIELDS = tuple(one.name for one in FILTERS.values() if one.is_in_query)
"""The filters in a query; each is an option of the command, too."""

_term = re.compile(
    rf"(?:(?P<minus>-)|(?P<field>{'|'.join(FIELDS)}):)?+"
    r'"(?P<phrase>[^"]*)(?:"(?P<phrase_star>\*?)|\Z)'
    # A time of several words.
    r"|(?P<time>(?i:(?:since|until):(?:(?:this|last)\s+(?:week|month|year)"
    r"|last\s+\d+\s+(?:minute|hour|day|week)s?"
    r"|\d+\s+(?:minute|hour|day|week|month|year)s?\s+ago))(?!\S))"
    r"|(?P<word>\S+)"
)
_quoted_or_told = re.compile(
    r'"[^"]*(?:"|\Z)'
    r"|(?<!\S)(?P<time>(?i:yesterday|today|(?:this|last) (?:week|month|year)"
    r"|\d{1,3} (?:day|week|month)s? ago))(?=[\s?.,!]|\Z)"
    r"|(?<!\S)(?i:on (?:the )?branch) (?P<branch>[\w./-]*\w)"
)
_last = re.compile(r"(?i)(?<!\S)(?:last|latest|newest|most recent)(?!\S)").search
_raw_syntax = str.maketrans("(){}:^+,", " " * 8)
_RAW_WORDS = frozenset({"AND", "OR", "NOT", "NEAR"})


def told(query: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a question that say when or on which branch, and the filters they are."""
    for match in _quoted_or_told.finditer(query):
        if match["time"]:
            time = match["time"].lower()
            yield match[0], f'since:"{time}" until:"{time}"'
        elif match["branch"]:
            yield match[0], f'branch:"{match["branch"]}"'


def asks_for_the_last(query: str) -> str | None:
    """Return the word of a question that asks for the newest of something, None if none does."""
    found = _last(query)
    return found[0] if found else None


class _Token(NamedTuple):
    """One word of a query, and its role."""

    role: str
    """`term`, `without`, `or`, or the name of a field."""
    term: Term
    is_phrase: bool = False


def parse(query: str) -> Terms:
    """Parse a query. Like the index, it leaves out words without a letter or digit.

    A word that occurs twice is one term. Only the first `MOST_WORDS` words are used.
    """
    builder = _Builder()
    for token in _tokens(bindable(query)):
        builder.add(token)
    return builder.terms()


class _Builder:
    """Builds the terms from the words of a query, one after another."""

    def __init__(self) -> None:
        self._clauses: list[Clause] = []
        self._without: list[Term] = []
        self._fields: list[tuple[str, str]] = []
        self._literal: list[str] = []
        self._seen: set[_Token] = set()
        self._count = 0
        self._is_or = False

    def add(self, token: _Token) -> None:
        if token.role in FIELDS:
            self._fields.append((token.role, token.term.text))
        elif token.role == "or":
            self._is_or = bool(self._clauses)
        elif TOKEN.search(token.term.text):
            if token not in self._seen and (term := self._within_bounds(token.term)):
                self._add(token, term)
            self._seen.add(token)
            self._is_or = False

    def terms(self) -> Terms:
        has_or = any(len(clause.alternatives) > 1 for clause in self._clauses)
        literal = "" if has_or or "" in self._literal else " ".join(self._literal)
        fields = tuple(dict.fromkeys(self._fields))
        return Terms(tuple(self._clauses), tuple(self._without), fields, literal, self._count)

    def _within_bounds(self, term: Term) -> Term | None:
        """Return as much of a term as a query may still have, None if that is nothing."""
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
    """Return the words and phrases of an FTS5 expression, to mark them in hits.

    Raises UsageError if they are too many: unlike a query, an expression cannot be cut.
    """
    words = (word for word in TOKEN.findall(expression) if word not in _RAW_WORDS)
    if (count := sum(1 for _ in words)) > MOST_WORDS:
        raise UsageError(
            f"--raw: the expression has {count:,} words; at most {MOST_WORDS} are allowed."
        )
    terms = parse("-- " + expression.translate(_raw_syntax))
    others = {*_RAW_WORDS, *_columns_in(expression)}
    clauses = (one for one in terms.clauses if one.alternatives[0].text not in others)
    return Terms(tuple(clauses))


def _columns_in(expression: str) -> Iterator[str]:
    """Yield the names of columns in an expression: a colon follows them."""
    for part in expression.split(":")[:-1]:
        before = part.rstrip()
        if before.endswith("}"):
            yield from before[before.rfind("{") + 1 : -1].split()
        else:
            yield from before.rsplit(None, 1)[-1:]


def _ends(text: str) -> list[int]:
    """Return where each word of a term ends: a word of the index, or a CJK letter."""
    if has_cjk(text):
        return list(range(1, len(text) + 1))
    return [match.end() for match in TOKEN.finditer(text)]


def _tokens(query: str) -> Iterator[_Token]:
    is_text = False
    for match in _term.finditer(query):
        if match["word"] == "--" and not is_text:
            is_text = True
        elif match["time"] is not None:
            words = [match["time"]] if not is_text else match["time"].split()
            yield from (_word(word, is_text) for word in words)
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


SAID, TOOLS, TITLE = "said", "tools", "title"
"""Scopes: text of people and agents, tool input and output, titles."""

_COLUMNS = {SAID: "text joined_text", TOOLS: "tool_text joined_tool_text"}


def in_scope(scope: str, expression: str) -> str:
    """Limit an FTS5 expression to text of people and agents, or to tool input and output."""
    return f"{{{_COLUMNS[scope]}}} : ({expression})"
