"""Asks the indexes: rows that may be hits, without their texts, which may be long.

Every question has a limit, and is asked with the filters of the search. Copies of messages in
forked sessions are never found.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from .. import sql
from . import matches
from .expressions import SAID, TITLE, TOOLS, everything, in_scope, left_out, like_patterns
from .filters import Filters, Parameters
from .terms import Clause, Term, Terms, any_of

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
        """Return what holds everything that is asked for, messages first."""
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
        """Return sessions whose title holds everything that is asked for, the newest first."""
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
