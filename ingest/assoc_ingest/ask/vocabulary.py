"""The words of the index of messages: how rare a word is, and what was meant by one that is none.

A word that the index holds neither whole nor as a beginning may be written wrong, or be a part of
a longer one. What is tried, in this order, until something is found:

1. words that differ in one letter: each is made and looked up,
2. words that contain it, as `telemetry` is in `getTelemetryOptOut`,
3. words that differ in two letters and begin with the same one.

The last two read the words one by one: no more than `MOST_READ`, once for a search.

The words are those of a temporary table, which a connection that only reads can make. It is
dropped again: connections of `serve` are used by others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from math import log
from operator import itemgetter
from string import ascii_lowercase, digits

from ..failures import Failure, kind_of
from .matches import fold
from .terms import Term

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
