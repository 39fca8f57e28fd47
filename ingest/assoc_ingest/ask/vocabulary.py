"""The words of the index of messages: how rare a word is, and what was meant by one that is none.

A word that the index holds neither whole nor as a beginning may be written wrong, or be a part of
a longer one. What is tried, in this order, until something is found:

1. words that differ in one letter: each is made and looked up,
2. words that contain it, as `telemetry` is in `getTelemetryOptOut`,
3. words that differ in two letters and begin with the same one.

The last two read the words one by one. No more than `MOST_READ` are read, twice for each search.

The words are those of a temporary table, which a connection that only reads can make. It is
dropped again: connections of `serve` are used by others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import log
from string import ascii_lowercase, digits

from ..failures import Failure, kind_of
from .matches import fold
from .terms import Term

MOST_READ = 50_000
"""Words that are read one by one, for one word of a query."""

_MOST_READINGS = 2  # of all words of a query together
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
        self._readings = 0

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
        rows = self._read(
            "a" if word[0].isalpha() else "", _END, "instr(term, ?4) > 0", word, _MOST_CONTAINING
        )
        return tuple(row[0] for row in rows)

    def _two_letters_off(self, word: str) -> tuple[str, ...]:
        if len(word) < _SHORTEST_OF_TWO:
            return ()
        first = word[0]
        rows = self._read(
            first, first + _END, "abs(length(term) - length(?4)) <= 2", word, MOST_READ
        )
        near = (row[0] for row in rows if _differ_by_two(word, row[0]))
        return tuple(near)[:_MOST_MEANT]

    def _read(self, start: str, end: str, rule: str, word: str, most: int) -> list[sqlite3.Row]:
        self._readings += 1
        if self._readings > _MOST_READINGS:
            return []
        return self._connection.execute(
            f"select term from (select term, doc from temp.search_words"
            f" where term between ?1 and ?2 limit ?3) where {rule} order by doc desc limit ?5",
            (start, end, MOST_READ, word, most),
        ).fetchall()


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
