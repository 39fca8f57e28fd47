"""From a query to what it finds, in order: exact first, then relaxed.

1. The query is taken apart (`query_parser`). What it says of itself (`kind:plan`) joins the
   filters, which limit every question that follows.
2. *Exact.* Whatever holds all words: what people and agents said, the smaller stores, titles that
   were given to conversations; then what tools were given and gave, and calls in which a word
   begins a line inside JSON. Each of these questions has a limit (`candidates`).
3. What was found gets its place (`ranking`): rows that hold the query just as it was typed stand
   first, rows with all words of a short query second.
4. *Relaxed.* If those are of few conversations, a second round asks for rows with any of the words:
   stop words left out, endings taken off, words that do not exist corrected (`relaxing`). It asks
   tools only if what was said is still of few conversations. Of one word that was found just as it
   was typed, nothing else is looked for. What holds everything but the numbers of the query comes
   first, wherever it stands: an error message is in what a tool gave.
5. Everything is grouped by conversation. The conversations that are about it gain.
6. Only the hits that are shown are read: their texts may be long (`hits`, `search`).

Words of three letters and more in Chinese, Japanese and Korean are relaxed to their trigrams.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from . import query_parser, raw_search
from .candidates import Candidate, Candidates
from .expressions import SAID, TOOLS
from .facets import Hits
from .filters import Filters, Nothing, nothing
from .hits import Marker
from .ranking import (
    LAST_TIER,
    RELAXED,
    VERBATIM,
    Cluster,
    Found,
    Relevance,
    clusters,
    conversation,
    in_one_list,
    is_short,
    rank_exact,
    rank_relaxed,
)
from .relaxing import Relaxed, Word, relaxed, words_of
from .search_result import Relaxation
from .terms import Terms
from .vocabulary import Vocabulary, vocabulary

ENOUGH = 10
"""Conversations with all words; with fewer, others are looked for."""

_MOST = 200  # candidates of one question
_MOST_RELAXED = 400
_MOST_OF_TITLES = 20
_MOST_IN_ALL = 2_000  # candidates of one question where many conversations are asked for
_PER_CONVERSATION = 20


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found, as it has put it in order, before the texts are read."""

    candidates: Candidates
    terms: Terms
    groups: list[Cluster]
    listed: list[Found]
    """The same hits as one list."""
    question: Relaxed | None
    """How the query was relaxed, if it was."""
    marker: Marker
    note: str | None = None
    nothing: Nothing | None = None
    """Why nothing was found."""

    def beyond(self) -> list[Found]:
        """Return the hits that lack a word, or have it only where a line begins inside JSON."""
        return [
            one
            for cluster in self.groups
            for one in cluster.found
            if one.why == RELAXED or one.candidate.is_at_line_start
        ]

    def relaxation(self) -> Relaxation | None:
        """Say how the query was relaxed, as far as the texts that were read tell."""
        return _relaxation(self.question, self.groups, self.marker, self.candidates)

    def notes(self, count: int) -> tuple[str, ...]:
        """Say what of the query was not searched for, and why `count` is 0."""
        return (*((self.note,) if self.note else ()), *_notes(self.terms, count))


def find(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 10,
    tools: bool = False,
    raw: bool = False,
    closest: bool = True,
    clean: Callable[[str], str] | None = None,
) -> Findings:
    """Return what holds a query in order, at least `limit` conversations if there are as many.

    `tools` leaves out what was said. Without `closest`, only what has all words is looked for. Of a
    very long query the beginning is searched for, as `query_parser.parse` says. `raw` takes the
    query as an FTS5 expression and raises UsageError if it is none, or too long. A filter that
    names nothing raises UsageError or NotFoundError. `clean` masks what no snippet may show.
    """
    filters = filters or Filters()
    if raw:
        expression = query_parser.bindable(query)
        terms = query_parser.parse_raw(expression)
        candidates = Candidates(connection, filters)
        listed = raw_search.found(candidates, expression, max(limit, _MOST), tools=tools)
        groups = raw_search.clusters(listed)
        return Findings(candidates, terms, groups, listed, None, Marker(terms, clean=clean))
    terms = query_parser.parse(query)
    note = None
    if terms.without and not terms.fields and '-"' not in query:  # no command has -"a phrase"
        typed = _as_it_stands(connection, query, filters)
        if typed is not None:
            note = f"Nothing is left out: a message holds -{terms.without[0].text} as it stands."
            terms = typed
    filters = filters.limited_by(terms.fields)
    candidates = Candidates(connection, filters, terms.literal, limit)
    why = None
    with vocabulary(connection) as words:
        search = _Search(terms, candidates, words, limit, tools=tools, closest=closest)
        groups, question = search.found()
        if not groups and terms.clauses:
            why = search.why_nothing()
    marker = Marker(terms, question, clean)
    listed = in_one_list(groups)
    return Findings(candidates, terms, groups, listed, question, marker, note, why)


def _as_it_stands(connection: sqlite3.Connection, query: str, filters: Filters) -> Terms | None:
    """Return a query with its `-words` as words if something holds all of it, just as it was typed.

    That is a command that was copied: `go mod download -modcacherw` leaves nothing out.
    """
    terms = query_parser.parse(f"-- {query}")
    candidates = Candidates(connection, filters, terms.literal)
    found = (
        candidate
        for scope in (SAID, TOOLS)
        for candidate in candidates.with_all(terms, scope, _MOST)
    )
    return terms if any(candidate.row["verbatim"] for candidate in found) else None


class _Search:
    """One search for words."""

    def __init__(
        self,
        terms: Terms,
        candidates: Candidates,
        words: Vocabulary,
        limit: int,
        *,
        tools: bool,
        closest: bool,
    ) -> None:
        self._terms = terms
        self._limit = limit
        self._closest = closest
        self._candidates = candidates
        self._vocabulary = words
        self._most = max(_MOST, limit, min(limit * _PER_CONVERSATION, _MOST_IN_ALL))
        self._scopes = (TOOLS,) if tools else (SAID, TOOLS)

    def found(self) -> tuple[list[Cluster], Relaxed | None]:
        """Ask the indexes, and put in order what they have; say how the query was relaxed."""
        relevance = self._relevance(words_of(self._terms.content))
        found = rank_exact(self._exact(), self._terms, relevance)
        question = None
        if self._is_to_be_relaxed(found):
            question = relaxed(
                self._terms, self._vocabulary, self._candidates, correcting=not found
            )
            relevance = self._relevance(question.words)
            found += self._but_for_numbers(found, relevance)
            found += self._relaxed(question, found, relevance)
        return clusters(self._candidates.connection, found, relevance), question

    def why_nothing(self) -> Nothing:
        """Say what would be found without filters: with all words, or else with some."""
        candidates = self._candidates
        why = nothing(candidates.filters, self._count_exact)
        if not why.in_all and self._closest:
            why = nothing(candidates.filters, self._count_closest)._replace(is_close=True)
        everything = Candidates(candidates.connection, Filters())
        words = words_of(self._terms.content)
        nowhere = tuple(word.name for word in words if not everything.has_any(word.forms))
        return why._replace(words=nowhere)

    def _count_exact(self, filters: Filters) -> int:
        """Return how many conversations have all words with other filters."""
        if SAID not in self._scopes:
            return self._count_closest(filters)
        hits = Hits.of(Candidates(self._candidates.connection, filters), self._terms)
        return len({part.owner for part in hits.parts})

    def _count_closest(self, filters: Filters) -> int:
        candidates = replace(self._candidates, filters=filters, is_cut=False)
        search = _Search(
            self._terms, candidates, self._vocabulary, self._limit,
            tools=SAID not in self._scopes, closest=self._closest,
        )  # fmt: skip
        return len(search.found()[0])

    def _relevance(self, words: tuple[Word, ...]) -> Relevance:
        return Relevance(words, lambda word: self._vocabulary.rarity(word.forms))

    def _exact(self) -> list[Candidate]:
        if not self._terms.clauses:
            return []
        found = self._with_all(self._most)
        if self._candidates.is_cut and not self._is_full(found):
            self._candidates.is_cut = False
            found = self._with_all(_MOST_IN_ALL)  # few conversations have very many hits
        if self._closest and len(set(map(conversation, found))) < ENOUGH:
            found += self._candidates.at_line_starts(self._terms, self._most)
        return found

    def _with_all(self, most: int) -> list[Candidate]:
        found: list[Candidate] = []
        if SAID in self._scopes:
            found += self._candidates.in_titles(self._terms, _MOST_OF_TITLES)
        for scope in self._scopes:
            if not (self._candidates.is_cut and self._is_full(found)):
                found += self._candidates.with_all(self._terms, scope, most)
        return found

    def _is_full(self, found: list[Candidate]) -> bool:
        """Are there as many conversations as are shown? What tools gave would not be seen."""
        return len(set(map(conversation, found))) >= max(ENOUGH, self._limit)

    def _is_to_be_relaxed(self, found: list[Found]) -> bool:
        if not self._terms.clauses or not self._closest:
            return False
        if len(self._terms.clauses) == 1 and any(one.why == VERBATIM for one in found):
            return False
        if self._candidates.is_cut and is_short(self._terms):
            return False  # what was not read has all words, too
        return _conversations(one for one in found if one.tier < LAST_TIER) < ENOUGH

    def _but_for_numbers(self, exact: list[Found], relevance: Relevance) -> list[Found]:
        terms = self._terms.without_numbers()
        if terms is None or exact:
            return []
        scopes = (self._candidates.with_all(terms, scope, self._most) for scope in self._scopes)
        candidates = [candidate for found in scopes for candidate in found]
        return rank_relaxed(candidates, exact, relevance, is_nearly=True)

    def _relaxed(self, question: Relaxed, exact: list[Found], relevance: Relevance) -> list[Found]:
        found: list[Found] = []
        match, trigrams = question.match(), question.match_trigrams()
        for scope in self._scopes:
            if _conversations([*exact, *found]) >= ENOUGH and found:
                break
            most = max(self._most, _MOST_RELAXED) if scope == SAID else self._most
            candidates: list[Candidate] = []
            if match:
                candidates += self._candidates.with_any(self._terms, match, scope, most)
            if trigrams:
                candidates += self._candidates.with_any_trigram(self._terms, trigrams, scope, most)
            found += rank_relaxed(candidates, exact, relevance)
        return found


def _conversations(found: Iterable[Found]) -> int:
    return len({conversation(one.candidate) for one in found})


def _relaxation(
    question: Relaxed | None, groups: list[Cluster], marker: Marker, candidates: Candidates
) -> Relaxation | None:
    """Say how a query was relaxed; None if it was not, or nothing was found by it."""
    every = [one for cluster in groups for one in cluster.found]
    if question is None or all(one.why != RELAXED for one in every):
        return None
    has_exact = any(one.why != RELAXED for one in every)
    known = marker.present | question.corrected.keys()
    missing = tuple(
        word.name
        for word in question.words
        if not has_exact and word.name not in known and not candidates.has_any(word.forms)
    )
    return Relaxation(
        has_exact,
        tuple(word.name for word in question.words),
        missing,
        question.corrected,
    )


def _notes(terms: Terms, count: int) -> tuple[str, ...]:
    """Say what of the query was not searched for, and why nothing was found."""
    notes = [terms.note] if terms.note else []
    without = [term.text for term in terms.without]
    if not terms.clauses:
        if without or terms.fields:
            notes.append("The query has no word to look for, only what to leave out or to limit.")
        else:
            notes.append("The query has no letter and no digit; nothing else can be found.")
    elif not count:
        if without:
            notes.append(
                f'Left out: what holds {", ".join(without)}. Quote "-{without[0]}" to find it.'
            )
        elif all(clause.is_stop_word for clause in terms.clauses):
            notes.append(
                "The query has only very common words. Add one that says what it is about."
            )
        elif terms.letters:
            notes.append(
                "One or two Chinese, Japanese or Korean characters are found only as they are."
            )
    return tuple(notes)
