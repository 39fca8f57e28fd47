"""Asks the indexes for rows that may be hits, and the vocabulary for how rare their words are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from math import log
from operator import itemgetter
from string import ascii_lowercase, digits

from .. import sql
from ..errors import Failure, kind_of
from . import matches
from .filters import Filters, Parameters
from .matches import fold
from .query import SAID, TITLE, TOOLS, Clause, Term, Terms, any_of, in_scope, like

# ------------------------------------------------------------------------------------------------
# The words of the index of messages: how rare a word is, and what was meant by one that is none.
#
# A word that the index holds neither whole nor as a beginning may be written wrong, or be a part
# of a longer one. What is tried, in this order, until something is found:
#
# 1. words that differ in one letter: each is made and looked up, 2. words that contain it, as
# `telemetry` is in `getTelemetryOptOut`, 3. words that differ in two letters and begin with the
# same one.
#
# The last two read the words one by one: no more than `MOST_READ`, once for a search.
#
# The words are those of a temporary table, which a connection that only reads can make. It is
# dropped again: connections of `serve` are used by others.


MOST_READ = 50_000
"""Words that are read one by one, once for a search."""

_SHORTEST, _LONGEST = 4, 40  # letters of a word whose spelling is looked at
_SHORTEST_OF_TWO = 6  # letters of a word that may be wrong in two of them
_MOST_FORMS = 500  # words that one beginning is counted with
_MOST_CONTAINING = 60
_MOST_MEANT = 3
_END = "\U0010ffff"

_CREATE = (
    "create virtual table if not exists temp.search_words using fts5vocab(main, messages_fts, row)"
)
_DROP = "drop table if exists temp.search_words"


class Vocabulary:
    """The words that messages hold."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._count: int | None = None
        self._rarity: dict[Term, float] = {}
        self._read: list[str] | None = None

    def rarity(self, forms: Iterable[Term]) -> float:
        """Return how much it says that a text holds one of these: 0 if nearly all do."""
        return max(map(self._rarity_of, forms), default=0.0)

    def knows(self, form: Term) -> bool:
        """Is there a word that begins so? It may be in copies only, or in a title."""
        start = fold(form.text)
        found = self._connection.execute(
            "select exists (select 1 from temp.search_words where term between ?1 and ?2)"
            " or exists (select 1 from sessions where instr(lower(title), ?1))",
            (start, start + _END),
        )
        return bool(found.fetchone()[0])

    def meant_by(self, word: str) -> tuple[str, ...]:
        """Return the words that may be meant by one that is unknown, the most frequent first."""
        wanted = fold(word)
        if not _SHORTEST <= len(wanted) <= _LONGEST:
            return ()
        ways = (self._one_letter_off, self._containing, self._two_letters_off)
        return next((found for way in ways if (found := way(wanted))), ())

    def _rarity_of(self, form: Term) -> float:
        if form not in self._rarity:
            end = _END if form.is_prefix else ""
            (row,) = self._connection.execute(
                "select coalesce(sum(doc), 0) from (select doc from temp.search_words"
                " where term between ?1 and ?1 || ?2 limit ?3)",
                (fold(form.text), end, _MOST_FORMS),
            )
            texts = self._texts()
            found = min(row[0], texts)
            self._rarity[form] = max(0.0, log((texts - found + 0.5) / (found + 0.5)))
        return self._rarity[form]

    def _texts(self) -> int:
        if self._count is None:
            (row,) = self._connection.execute("select coalesce(max(id), 0) from messages")
            self._count = int(row[0])
        return self._count

    def _one_letter_off(self, word: str) -> tuple[str, ...]:
        rows = self._connection.execute(
            "select v.term from json_each(?) j cross join temp.search_words v on v.term = j.value"
            " order by v.doc desc limit ?",
            (json.dumps(sorted(_one_letter_off(word))), _MOST_MEANT),
        )
        return tuple(row[0] for row in rows)

    def _containing(self, word: str) -> tuple[str, ...]:
        return tuple(other for other in self._words() if word in other)[:_MOST_CONTAINING]

    def _two_letters_off(self, word: str) -> tuple[str, ...]:
        if len(word) < _SHORTEST_OF_TWO:
            return ()
        alike = (
            other
            for other in self._words()
            if other[0] == word[0] and abs(len(other) - len(word)) <= 2
        )
        return tuple(islice((other for other in alike if _differ_by_two(word, other)), _MOST_MEANT))

    def _words(self) -> list[str]:
        """Return the words that begin with a letter, the most frequent first: read once."""
        if self._read is None:
            # Sorted here: SQLite would read all words to sort them, in spite of the limit.
            rows = self._connection.execute(
                "select term, doc from temp.search_words where term >= 'a' limit ?", (MOST_READ,)
            ).fetchall()
            self._read = [row[0] for row in sorted(rows, key=itemgetter(1), reverse=True)]
        return self._read


class _Unreadable(Vocabulary):
    """Words that cannot be read: each counts as known, and as rare as any other."""

    def rarity(self, forms: Iterable[Term]) -> float:
        return 1.0

    def knows(self, form: Term) -> bool:
        return True


@contextmanager
def vocabulary(connection: sqlite3.Connection) -> Iterator[Vocabulary]:
    """Open the words of an index for one search."""
    try:
        connection.execute(_CREATE)
    except sqlite3.OperationalError as error:
        # With a full disk the database is opened so that it refuses even temporary tables.
        if kind_of(error) is not Failure.DENIED:
            raise
        yield _Unreadable(connection)
        return
    try:
        yield Vocabulary(connection)
    finally:
        connection.execute(_DROP)


def _one_letter_off(word: str) -> set[str]:
    """Return what a word becomes by one letter less, more, changed, or with two exchanged."""
    letters = ascii_lowercase + digits
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    made = {head + tail[1:] for head, tail in splits if tail}
    made |= {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    made |= {head + letter + tail[1:] for head, tail in splits if tail for letter in letters}
    made |= {head + letter + tail for head, tail in splits for letter in letters}
    return made - {word}


def _differ_by_two(word: str, other: str) -> bool:
    """Does `other` become `word` by two letters less, more, changed, or exchanged?"""
    if len(set(word) ^ set(other)) > 4:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for number, letter in enumerate(word, 1):
        previous, row, earlier = row, [number], before
        for place, other_letter in enumerate(other, 1):
            least = min(
                previous[place] + 1,
                row[place - 1] + 1,
                previous[place - 1] + (letter != other_letter),
            )
            if (
                number > 1 < place
                and letter == other[place - 2]
                and other_letter == word[number - 2]
            ):
                least = min(least, earlier[place - 2] + 1)
            row.append(least)
        before = previous
        if min(row) > 2:
            return False
    return row[-1] <= 2


# ------------------------------------------------------------------------------------------------
# What the indexes are asked for a query: expressions of FTS5, and LIKE patterns for the rest.


def everything(terms: Terms) -> Parameters:
    """Return parameters that search one index for all terms; what it cannot tell is compared."""
    match, substrings = terms.all_words(), terms.all_substrings()
    return {
        "match": match or substrings,
        "cjk": substrings if match else None,
        "letters": like_patterns(terms.letters),
        "without": left_out(terms, cjk_only=match is not None),
    }


def left_out(terms: Terms, *, cjk_only: bool = True) -> str | None:
    """Return LIKE patterns for what no hit may hold, where the word index cannot tell."""
    texts = [term.text for term in terms.without if term.has_cjk or not cjk_only]
    return like_patterns(texts) if texts else None


def like_patterns(texts: Iterable[str]) -> str:
    return json.dumps([like(text) for text in texts], ensure_ascii=False)


# ------------------------------------------------------------------------------------------------
# Asks the indexes: rows that may be hits, without their texts, which may be long.
#
# Every question has a limit, and is asked with the filters of the search. Copies of messages in
# forked sessions are never found.


# What is no message, as the view `searchable` calls it, by the scope that it belongs to.
_STORES = {
    SAID: ("inbox", "task", "todo", "plan", "document", "prompt"),
    TOOLS: ("tool_result_file",),
}
_MOST_OF_STORE = 50
_MOST_READ = 200  # texts of a conversation in which a line may begin with a word
_MESSAGES, _TRIGRAMS = "messages_fts", "messages_cjk_fts"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that an index found."""

    row: sqlite3.Row
    scope: str
    """said, tools or title"""
    is_at_line_start: bool = False
    """Is it found only because a word begins a line inside JSON?"""

    @property
    def place(self) -> tuple[str, int]:
        """Which row it is: the same one may be found in several ways."""
        return self.row["what"], self.row["id"]

    @property
    def is_message(self) -> bool:
        """Is it a message? Ranks of other stores mean something else."""
        return bool(self.row["what"] == "message")


@dataclass
class Candidates:
    """The indexes of one database, as one search asks them."""

    connection: sqlite3.Connection
    filters: Filters
    literal: str = ""
    """What a row is called verbatim for."""
    shown: int = 0
    """How many hits are to be shown at most."""
    is_cut: bool = False
    """Did a question have more rows than its limit?"""
    _parameters: Parameters = field(default_factory=dict)

    def __post_init__(self) -> None:
        inside_json = json.dumps(self.literal, ensure_ascii=False)[1:-1]
        self._parameters = {
            **self.filters.parameters(self.connection),
            "literal": _lower(self.literal) or None,
            "escaped": _lower(inside_json) or None,
        }

    def with_all(self, terms: Terms, scope: str, limit: int) -> list[Candidate]:
        """Return rows that contain all terms, messages first."""
        found: list[Candidate] = []
        for variant in terms.variants():
            found += self._messages_with_all(variant, scope, limit)
            found += self._stores_with_all(variant, scope, limit)
        return found

    def at_line_starts(self, terms: Terms, limit: int) -> list[Candidate]:
        """Return calls in which a word of the query begins a line inside JSON."""
        found: list[Candidate] = []
        for variant in terms.variants():
            match, patterns = variant.at_line_starts(), variant.line_start_patterns()
            if match is not None and patterns:
                lines = json.dumps(patterns)
                found += self._fts(variant, TOOLS, match, limit, line_starts=lines)
        return self._with_words(terms, found)

    def _with_words(self, terms: Terms, found: list[Candidate]) -> list[Candidate]:
        """Return those of the candidates whose texts have the words of a query as words."""
        where = matches.Places(terms.words)
        texts = self._texts(found)
        return [
            replace(candidate, is_at_line_start=True)
            for candidate in found
            if where.find(texts[candidate.place])
        ]

    def with_any(self, terms: Terms, match: str, scope: str, limit: int) -> list[Candidate]:
        """Return what an expression for words finds; of `terms`, what no hit may hold."""
        found = self._candidates(
            "search/messages", scope, limit, match=in_scope(scope, match), without=left_out(terms)
        )
        return found + self._in_stores(match, scope)

    def with_any_trigram(self, terms: Terms, match: str, scope: str, limit: int) -> list[Candidate]:
        """Return messages that an expression for trigrams finds."""
        without = left_out(terms, cjk_only=False)
        return self._candidates(
            "search/messages", scope, limit, _TRIGRAMS,
            match=in_scope(scope, match), without=without,
        )  # fmt: skip

    def in_titles(self, terms: Terms, limit: int) -> list[Candidate]:
        """Return sessions whose title contains all terms, the newest first."""
        if self.filters.is_of_messages or self.filters.tool:
            return []
        found = []
        for variant in terms.variants():
            patterns = like_patterns(variant.texts())
            where = matches.Places(variant.words)  # LIKE finds `the` in `other`
            found += [
                candidate
                for candidate in self._candidates(
                    "search/sessions", TITLE, limit, patterns=patterns,
                    without=left_out(terms, cjk_only=False),
                )
                if not variant.words or where.find(candidate.row["text"])
            ]  # fmt: skip
        return found

    def with_all_but_messages(self, terms: Terms, limit: int) -> list[Candidate]:
        """Return the titles that hold everything that is asked for, and rows of smaller stores.

        Of each store there are at most `shown`, of titles at most `limit`.
        """
        found = self.in_titles(terms, limit)
        for scope in (SAID, TOOLS):
            for variant in terms.variants():
                found += self._stores_with_all(variant, scope, self.shown)
        return found

    def counted(
        self, terms: Terms, limit: int, *, apart: bool = False, among: Iterable[int] | None = None
    ) -> list[sqlite3.Row]:
        """Return the messages that hold everything that is asked for, counted in groups.

        Of very many, the newest `limit` are counted. With `apart`, each is a group of its own;
        with `among`, only these are counted.
        """
        variants = terms.variants()
        match, substrings = variants[0].all_words(), variants[0].all_substrings()
        if len(variants) == 1 and (match or substrings):
            return self._counted(
                limit, _MESSAGES if match else _TRIGRAMS, apart=apart, among=among,
                **everything(variants[0]),
            )  # fmt: skip
        ids = {
            candidate.place[1]
            for variant in variants
            for scope in (SAID, TOOLS)
            for candidate in self._messages_with_all(variant, scope, limit)
        }
        return self._counted(limit, apart=apart, among=among, ids=json.dumps(sorted(ids)))

    def counted_raw(self, expression: str, limit: int, *, apart: bool = False) -> list[sqlite3.Row]:
        """Return what an expression that the user wrote finds in messages, counted in groups."""
        return self._counted(limit, apart=apart, match=expression)

    def _counted(
        self, limit: int, index: str = _MESSAGES, *, apart: bool,
        among: Iterable[int] | None = None, **given: str | float | None,
    ) -> list[sqlite3.Row]:  # fmt: skip
        parameters = {
            **self._parameters,
            **given,
            "apart": 1 if apart else None,
            "among": None if among is None else json.dumps(sorted(among)),
        }
        rows = list(_rows(self.connection, "search/hit_groups", parameters, limit, index))
        self.is_cut |= sum(row["hits"] for row in rows) >= limit
        return rows

    def in_conversation(self, session: int, terms: Terms, limit: int) -> list[sqlite3.Row]:
        """Return the places in one conversation of what holds everything that is asked for.

        Words that begin a line inside JSON are found, too.
        """
        given = {**self._parameters, "session_key": self._parameters["session"], "session": session}
        found: list[sqlite3.Row] = []
        at_line_starts: list[Candidate] = []
        for variant in terms.variants():
            is_in_words = variant.all_words() is not None
            index = _MESSAGES if is_in_words or not variant.substrings else _TRIGRAMS
            parameters = {**given, **everything(variant)}
            found += _rows(self.connection, "pages/session_find", parameters, limit, index)
            match, patterns = variant.at_line_starts(), variant.line_start_patterns()
            if match is not None and patterns:
                parameters |= {"match": match, "line_starts": json.dumps(patterns)}
                rows = _rows(
                    self.connection, "pages/session_find", parameters, _MOST_READ, _MESSAGES
                )
                at_line_starts += (Candidate(row, TOOLS) for row in rows)
        return found + [candidate.row for candidate in self._with_words(terms, at_line_starts)]

    def finds(self, match: str) -> bool:
        """Does any message fit this expression?"""
        parameters = {**self._parameters, "match": match}
        return any(_rows(self.connection, "search/messages", parameters, 1, _MESSAGES))

    def has_any(self, forms: Iterable[Term]) -> bool:
        """Does anything hold one of these: a message, a title, or what is in a smaller store?"""
        known = tuple(forms)
        match = any_of(known)
        terms = Terms((Clause(known),))
        return bool(
            self.finds(match)
            or (terms.has_cjk and self.with_all(terms, SAID, 1) + self.with_all(terms, TOOLS, 1))
            or self._in_stores(match, SAID)
            or self._in_stores(match, TOOLS)
            or any(self.in_titles(Terms((Clause((form,)),)), 1) for form in known)
        )

    def raw(self, expression: str, scope: str, limit: int) -> list[Candidate]:
        """Return the messages that an expression finds that the user wrote."""
        match = in_scope(scope, expression)
        return self._candidates("search/messages", scope, limit, match=match)

    def in_store(self, what: str, match: str, scope: str, limit: int) -> list[Candidate]:
        """Return what an expression finds in one of the smaller stores."""
        return self._candidates("search/entries", scope, limit, what=what, match=match)

    def _messages_with_all(self, terms: Terms, scope: str, limit: int) -> list[Candidate]:
        words, substrings = terms.all_words(), terms.all_substrings()
        if words:
            return self._fts(terms, scope, words, limit)
        if substrings:
            return self._fts(terms, scope, substrings, limit, _TRIGRAMS)
        if terms.letters:
            letters, without = like_patterns(terms.letters), left_out(terms, cjk_only=False)
            return self._candidates(
                "search/messages_letters", scope, limit, letters=letters, without=without
            )
        return []

    def _stores_with_all(self, terms: Terms, scope: str, limit: int) -> list[Candidate]:
        if not self.stores(scope) or not terms.clauses:
            return []
        if terms.has_cjk:
            patterns, without = like_patterns(terms.texts()), left_out(terms, cjk_only=False)
            return self._candidates(
                "search/entries_cjk", scope, limit, patterns=patterns, without=without
            )
        return self._in_stores(terms.all_words() or "", scope)

    def _in_stores(self, match: str, scope: str) -> list[Candidate]:
        limit = max(_MOST_OF_STORE, self.shown)
        found: list[Candidate] = []
        for what in self.stores(scope):
            found += self.in_store(what, match, scope, limit)
        return found

    def stores(self, scope: str) -> tuple[str, ...]:
        """Return the names of the smaller stores that may hold what fits the filters."""
        is_excluded = self.filters.is_of_messages or (self.filters.tool and scope == SAID)
        return () if is_excluded else _STORES[scope]

    def _fts(
        self, terms: Terms, scope: str, match: str, limit: int, index: str = _MESSAGES,
        line_starts: str | None = None,
    ) -> list[Candidate]:  # fmt: skip
        substrings = terms.all_substrings() if index == _MESSAGES else None
        return self._candidates(
            "search/messages", scope, limit, index,
            match=in_scope(scope, match),
            cjk=in_scope(scope, substrings) if substrings else None,
            letters=like_patterns(terms.letters),
            without=left_out(terms, cjk_only=index == _MESSAGES),
            line_starts=line_starts,
        )  # fmt: skip

    def _candidates(
        self, name: str, scope: str, limit: int, index: str = _MESSAGES, **given: str | None
    ) -> list[Candidate]:
        parameters = {**self._parameters, **given, "scope": scope}
        found = list(_rows(self.connection, name, parameters, limit, index))
        self.is_cut |= len(found) == limit
        return [Candidate(row, scope) for row in found]

    def _texts(self, found: Iterable[Candidate]) -> dict[tuple[str, int], str]:
        places = json.dumps([candidate.place for candidate in found])
        read = sql.ask(self.connection, "pages/hits", places=places)
        return {(row["what"], row["id"]): row["text"] or "" for row in read}


def _rows(
    connection: sqlite3.Connection, name: str, parameters: Parameters, limit: int, index: str
) -> Iterator[sqlite3.Row]:
    """Yield the rows of a query, as many as are asked for.

    The index of trigrams has the columns of the word index, so the same query asks it.
    """
    query = sql.query(name)
    given = {**dict.fromkeys(query.parameters), **parameters, "limit": limit}
    known: Parameters = {key: given[key] for key in query.parameters}
    return iter(connection.execute(query.sql.replace(_MESSAGES, index), known))


def _lower(text: str) -> str:
    """Return the text in lower case as SQLite makes it: letters beyond ASCII as they are."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)
