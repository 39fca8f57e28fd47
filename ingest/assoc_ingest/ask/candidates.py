"""Asks the indexes for rows that may be hits, and the vocabulary how rare words are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf, log
from operator import itemgetter

from .. import sql, tags
from ..errors import Failure, UsageError, kind_of
from . import matches
from .filters import Filters, Parameters
from .hits import TAGGED
from .matches import fold
from .query import SAID, TITLE, TOOLS, Clause, Term, Terms, any_of, in_scope, like

# ------------------------------------------------------------------------------------------------
# The vocabulary of the index of messages: how rare a word is, and which known words an unknown one
# may mean.
#
# A word that the index holds neither whole nor as a prefix may be misspelled, or a part of a longer
# one. These are tried in order, until one of them finds something:
#
# 1. words that differ in one letter, but not in the first one: each is made and looked up, 2. words
# that contain it, as `telemetry` is in `getTelemetryOptOut`, 3. words that differ in two letters,
# which are neither their first nor their last ones. Neighbours of short words mean something else.
#
# The last two read the words one by one: at most `MOST_READ`, once for a search, and only for a
# short query. In a long one a word that occurs nowhere is rather one that nobody said.
#
# The words are those of a temporary table, which a read-only connection can create. It is dropped
# again, because connections of `serve` are shared.


MOST_READ = 50_000
"""Words that a search reads one by one, at most."""

_SHORTEST, _LONGEST = 5, 40  # letters of a word that is corrected
_SHORTEST_OF_TWO = 9  # letters of a word that is corrected in two of them
_MOST_FORMS = 500  # words that are counted for one prefix
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
        """Return how rare texts with one of these are: 0 if nearly all texts have one."""
        return max(map(self._rarity_of, forms), default=0.0)

    @property
    def rarest(self) -> float:
        """The rarity of a word that no message has."""
        return _rarity(0, self._texts())

    def knows(self, form: Term) -> bool:
        """Does any word begin so? It may occur only in copies, or in a title."""
        start = fold(form.text)
        found = self._connection.execute(
            "select exists (select 1 from temp.search_words where term between ?1 and ?2)"
            " or exists (select 1 from sessions where instr(lower(title), ?1))",
            (start, start + _END),
        )
        return bool(found.fetchone()[0])

    def meant_by(self, word: str, *, reading: bool) -> tuple[str, ...]:
        """Return the known words that an unknown one may mean, the most frequent first.

        Only with `reading`, words are read one by one.
        """
        wanted = fold(word)
        if not _SHORTEST <= len(wanted) <= _LONGEST:
            return ()
        if (found := self._one_letter_off(wanted)) or not reading:
            return found
        return self._containing(wanted) or self._two_letters_off(wanted)

    def _rarity_of(self, form: Term) -> float:
        if form not in self._rarity:
            end = _END if form.is_prefix else ""
            (row,) = self._connection.execute(
                "select coalesce(sum(doc), 0) from (select doc from temp.search_words"
                " where term between ?1 and ?1 || ?2 limit ?3)",
                (fold(form.text), end, _MOST_FORMS),
            )
            texts = self._texts()
            self._rarity[form] = _rarity(min(row[0], texts), texts)
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
            if other[0] == word[0] and other[-1] == word[-1] and abs(len(other) - len(word)) <= 2
        )
        return tuple(islice((other for other in alike if _differ_by_two(word, other)), _MOST_MEANT))

    def _words(self) -> list[str]:
        """Return the words that begin with a letter, the most frequent first."""
        if self._read is None:
            # Sorted here: SQLite would read all words to sort them, in spite of the limit.
            rows = self._connection.execute(
                "select term, doc from temp.search_words where term >= 'a' limit ?", (MOST_READ,)
            ).fetchall()
            self._read = [row[0] for row in sorted(rows, key=itemgetter(1), reverse=True)]
        return self._read


def _rarity(found: int, texts: int) -> float:
    return max(0.0, log((texts - found + 0.5) / (found + 0.5)))


class _Unreadable(Vocabulary):
    """A vocabulary that cannot be read: each word counts as known, and all as equally rare."""

    rarest = inf

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
    """Return all words at distance one: a letter removed, added or changed, or two exchanged.

    The first letter is only exchanged: who changes it writes another word.
    """
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    made = {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    splits = splits[1:]
    made |= {head + tail[1:] for head, tail in splits if tail}
    made |= {head + letter + tail[1:] for head, tail in splits if tail for letter in letters}
    made |= {head + letter + tail for head, tail in splits for letter in letters}
    return made - {word}


def _differ_by_two(word: str, other: str) -> bool:
    """Are two words at distance two: letters removed, added, changed or exchanged?"""
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
# Asks the indexes: rows that may be hits, without their texts, which may be long.
#
# Every question has a limit, and is asked with the filters of the search. Copies of messages in
# forked sessions are never found, and neither is what only a tag holds: no reader would see it.


_STORES = {
    SAID: ("note", "inbox", "task", "todo", "plan", "document", "prompt"),
    TOOLS: ("tool_result_file",),
}
"""What is no message, as the view `searchable` calls it, by the scope that it belongs to."""

_MOST_OF_STORE = 50
_MOST_READ = 200  # texts of a conversation in which a line may begin with a word
_MOST_TAGGED = 2_000  # rows that are read if most have their words in tags alone
_MESSAGES, _TRIGRAMS = "messages_fts", "messages_cjk_fts"
_BEST, _NEWEST = f"order by {_MESSAGES}.rank", f"order by {_MESSAGES}.rowid desc"

Holds = Callable[[str], bool]
"""Does a text hold what is asked for?"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that an index found."""

    row: sqlite3.Row
    scope: str
    """said, tools or title"""
    is_at_line_start: bool = False
    """Was it found only because a word begins a line inside JSON?"""

    @property
    def place(self) -> tuple[str, int]:
        """The store and the row: the same one may be found in several ways."""
        return self.row["what"], self.row["id"]

    @property
    def is_note(self) -> bool:
        return bool(self.row["what"] == "note")

    @property
    def is_message(self) -> bool:
        """Is it a message? Ranks of other stores mean something else."""
        return bool(self.row["what"] == "message")


@dataclass
class Candidates:
    """The indexes of one database, as one search asks them."""

    connection: sqlite3.Connection
    filters: Filters
    literal: str | None = None
    """The text that makes a row a verbatim hit."""
    limit: int = 0
    """The most hits that are shown."""
    newest: bool = False
    """Are the newest messages wanted instead of the best?"""
    left_out: frozenset[str] = frozenset()
    """Keys of sessions that are not searched."""
    met: set[str] = field(default_factory=set)
    """Those of them in which something was found."""
    is_cut: bool = False
    """Did a question have more rows than its limit?"""
    _parameters: Parameters = field(default_factory=dict)

    def __post_init__(self) -> None:
        inside_json = self.literal and json.dumps(self.literal, ensure_ascii=False)[1:-1]
        self._parameters = {
            **self.filters.parameters(self.connection),
            "literal": _lower(self.literal or "") or None,
            "escaped": _lower(inside_json or "") or None,
        }

    def with_all(self, terms: Terms, scope: str, limit: int) -> list[Candidate]:
        """Return rows that contain all terms, messages first."""
        found: list[Candidate] = []
        for variant in terms.variants():
            words, substrings = variant.all_words(), variant.all_substrings()
            if match := words or substrings:
                found += self.ask(
                    "search/messages", scope, limit, _MESSAGES if words else _TRIGRAMS,
                    _holds_all(variant),
                    match=in_scope(scope, match),
                    cjk=in_scope(scope, substrings) if words and substrings else None,
                    letters=_patterns(variant.letters),
                    without=_left_out(variant, cjk_only=words is not None),
                )  # fmt: skip
            elif variant.letters:
                found += self.ask(
                    "search/messages_letters", scope, limit,
                    letters=_patterns(variant.letters),
                    without=_left_out(variant, cjk_only=False),
                )  # fmt: skip
            if not self.stores(scope) or not variant.clauses:
                continue
            if variant.has_cjk:
                found += self.ask(
                    "search/entries_cjk", scope, max(_MOST_OF_STORE, self.limit),
                    patterns=_patterns(variant.texts()),
                    without=_left_out(variant, cjk_only=False),
                )  # fmt: skip
            else:
                found += self.in_stores(words or "", scope)
        return found

    def at_line_starts(self, terms: Terms, limit: int) -> list[Candidate]:
        """Return calls in which a word of the query begins a line inside JSON."""
        found: list[Candidate] = []
        for variant in terms.variants():
            match, patterns = variant.at_line_starts(), variant.line_start_patterns()
            if match is not None and patterns:
                substrings = variant.all_substrings()
                found += self.ask(
                    "search/messages", TOOLS, limit,
                    match=in_scope(TOOLS, match),
                    cjk=in_scope(TOOLS, substrings) if substrings else None,
                    letters=_patterns(variant.letters),
                    without=_left_out(variant),
                    line_starts=json.dumps(patterns),
                )  # fmt: skip
        return self._at_line_starts(terms, found)

    def with_any(
        self, terms: Terms, match: str | None, forms: Iterable[Term], scope: str, limit: int
    ) -> list[Candidate]:
        """Return what an expression for these forms of words finds.

        `terms` says what no hit may hold. What holds the query as it was typed has all words, so it
        is not looked for: that would mean to read all of these texts.
        """
        if match is None:
            return []
        holds = _holds_all(Terms((Clause(tuple(forms)),)))
        found = self.ask(
            "search/messages", scope, limit, _MESSAGES, holds,
            match=in_scope(scope, match), without=_left_out(terms), literal=None,
        )  # fmt: skip
        return found + self.in_stores(match, scope)

    def with_expression(self, expression: str, scope: str, limit: int) -> list[Candidate]:
        """Return what an FTS5 expression finds that the user wrote; UsageError if it is none."""
        try:
            found = self.ask("search/messages", scope, limit, match=in_scope(scope, expression))
        except sqlite3.OperationalError as error:
            if not _is_syntax(error):
                raise
            raise UsageError(
                f"--raw: not a valid FTS5 expression ({_detail(error)}). "
                "Quote words with punctuation in double quotes, or leave out --raw."
            ) from error
        for what in self.stores(scope):
            try:
                found += self.ask("search/entries", scope, limit, what=what, match=expression)
            except sqlite3.OperationalError as error:
                # It was good for messages: it names a column that this store lacks.
                if not _is_syntax(error):
                    raise
        return found

    def with_any_trigram(self, terms: Terms, match: str, scope: str, limit: int) -> list[Candidate]:
        """Return messages that an expression for trigrams finds."""
        match, without = in_scope(scope, match), _left_out(terms, cjk_only=False)
        return self.ask("search/messages", scope, limit, _TRIGRAMS, match=match, without=without)

    def in_titles(self, terms: Terms, limit: int) -> list[Candidate]:
        """Return sessions whose title contains all terms, the newest first."""
        if self.filters.is_of_messages or self.filters.tool:
            return []
        holds = _holds_all(terms)  # LIKE finds `the` in `other`
        patterns = json.dumps(
            [[like(term.text.strip()) for term in clause.alternatives] for clause in terms.clauses],
            ensure_ascii=False,
        )
        without = _left_out(terms, cjk_only=False)
        titles = self.ask("search/sessions", TITLE, limit, patterns=patterns, without=without)
        return [title for title in titles if holds(title.row["text"])]

    def in_stores(self, match: str, scope: str) -> list[Candidate]:
        """Return what an expression finds in the smaller stores, of each its best."""
        limit = max(_MOST_OF_STORE, self.limit)
        found: list[Candidate] = []
        for what in self.stores(scope):
            found += self.ask("search/entries", scope, limit, what=what, match=match)
        return found

    def stores(self, scope: str) -> tuple[str, ...]:
        """Return the names of the smaller stores that may hold what fits the filters."""
        is_excluded = self.filters.is_of_messages or (self.filters.tool and scope == SAID)
        return () if is_excluded else _STORES[scope]

    def finds(self, match: str) -> bool:
        """Does any message fit this expression?"""
        # A copy, because this limit says nothing about the search.
        return bool(copy(self).ask("search/messages", SAID, 1, match=match))

    def has_any(self, forms: Iterable[Term]) -> bool:
        """Does anything hold one of these: a message, a title, or what is in a smaller store?"""
        known = tuple(forms)
        match = any_of(known)
        terms = Terms((Clause(known),))
        return bool(
            self.finds(match)
            or (terms.has_cjk and self.with_all(terms, SAID, 1) + self.with_all(terms, TOOLS, 1))
            or self.in_stores(match, SAID)
            or self.in_stores(match, TOOLS)
            or self.in_titles(terms, 1)
        )

    def in_conversation(self, session: int, terms: Terms, limit: int) -> list[sqlite3.Row]:
        """Return the places in one conversation of what holds everything that is asked for.

        Words that begin a line inside JSON are found, too.
        """
        given: Parameters = {"session_key": self._parameters["session"], "session": session}
        found: list[Candidate] = []
        at_line_starts: list[Candidate] = []
        for variant in terms.variants():
            match, substrings = variant.all_words(), variant.all_substrings()
            index = _MESSAGES if match is not None or not substrings else _TRIGRAMS
            given |= {
                "match": match or substrings,
                "cjk": substrings if match else None,
                "letters": _patterns(variant.letters),
                "without": _left_out(variant, cjk_only=match is not None),
            }
            found += self.ask(
                "pages/session_find", SAID, limit, index, _holds_all(variant), **given
            )
            wide, patterns = variant.at_line_starts(), variant.line_start_patterns()
            if wide is not None and patterns:
                lines = {**given, "match": wide, "line_starts": json.dumps(patterns)}
                at_line_starts += self.ask("pages/session_find", TOOLS, _MOST_READ, **lines)
        found += self._at_line_starts(terms, at_line_starts)
        return [candidate.row for candidate in found]

    def ask(
        self, name: str, scope: str, limit: int, index: str = _MESSAGES,
        holds: Holds | None = None, /, **given: str | float | None,
    ) -> list[Candidate]:  # fmt: skip
        """Return the rows of a query, about `limit` of them.

        The index of trigrams has the columns of the word index, so the same query asks both.
        `holds` checks texts with tags: a row is left out if only the tags have the words.
        """
        query = sql.query(name)
        text = query.sql.replace(_BEST, _NEWEST) if self.newest else query.sql
        text = text.replace(_MESSAGES, index)
        parameters = {**dict.fromkeys(query.parameters), **self._parameters, **given}
        while True:
            parameters |= {"scope": scope, "limit": limit}
            rows = self.connection.execute(text, parameters).fetchall()
            found = [Candidate(row, scope) for row in rows]
            if self.left_out:
                self.met |= {one.row["session_key"] for one in found} & self.left_out
                found = [one for one in found if one.row["session_key"] not in self.left_out]
            shown = self._but_in_tags(found, holds) if holds is not None else found
            is_cut = len(rows) == limit
            if not is_cut or 2 * len(shown) > limit or limit >= _MOST_TAGGED:
                self.is_cut |= is_cut
                return shown
            limit = _MOST_TAGGED

    def _but_in_tags(self, found: list[Candidate], holds: Holds) -> list[Candidate]:
        tagged = [candidate for candidate in found if candidate.row["kind"] in TAGGED]
        if not tagged:
            return found
        texts = self.texts(tagged)
        hidden = {place for place, text in texts.items() if not holds(tags.shown(text))}
        return [candidate for candidate in found if candidate.place not in hidden]

    def _at_line_starts(self, terms: Terms, found: list[Candidate]) -> list[Candidate]:
        """Return those of the candidates whose texts have the words of a query as words."""
        holds = _holds_all(terms)
        texts = self.texts(found)
        return [
            replace(candidate, is_at_line_start=True)
            for candidate in found
            if holds(texts[candidate.place])
        ]

    def texts(self, found: Iterable[Candidate]) -> dict[tuple[str, int], str]:
        """Return the texts of messages and titles, '' for others."""
        places = json.dumps([candidate.place for candidate in found])
        read = sql.ask(self.connection, "pages/hits", places=places)
        return {(row["what"], row["id"]): row["text"] or "" for row in read}


_SYNTAX_ERRORS = (
    "fts5:", "no such column", "unterminated string", "unknown special query", "malformed MATCH",
)  # fmt: skip


def _is_syntax(error: sqlite3.OperationalError) -> bool:
    return str(error).startswith(_SYNTAX_ERRORS)


def _detail(error: sqlite3.OperationalError) -> str:
    detail = str(error).removeprefix("fts5: ")
    return detail.replace('near ")"', "at its end")  # the bracket is that of the scope


def _holds_all(terms: Terms) -> Holds:
    """Return a check whether a text holds all clauses, of each one alternative.

    Clauses with Chinese, Japanese or Korean are not checked.
    """
    clauses = [
        matches.Places(clause.alternatives)
        for clause in terms.clauses
        if not any(term.has_cjk for term in clause.alternatives)
    ]
    return lambda text: all(places.some(text) for places in clauses)


def _left_out(terms: Terms, *, cjk_only: bool = True) -> str | None:
    """Return LIKE patterns for what no hit may hold, where the word index cannot tell."""
    texts = [term.text for term in terms.without if term.has_cjk or not cjk_only]
    return _patterns(texts) if texts else None


def _patterns(texts: Iterable[str]) -> str:
    return json.dumps([like(text) for text in texts], ensure_ascii=False)


def _lower(text: str) -> str:
    """Return the text in lower case as SQLite makes it: letters beyond ASCII as they are."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)
