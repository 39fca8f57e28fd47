"""From a query to its answer: ask the indexes, relax, rank, group, count, read the hits.

`find` is the search. What it returns is in order and without texts; `Ranking.read` reads those
that are shown.

1. The query is parsed (`query`). The filters in it (`kind:plan`) join those that are given, and
   limit every question that follows.
2. *Exact.* Everything that holds all words: what people and agents said, the smaller stores, titles
   that were given to conversations; then tool input and output, and calls in which a word begins a
   line inside JSON. Each of these questions has a limit (`candidates`).
3. Each row gets its tier: rows that hold the query as it was typed come first, rows with all words
   of a short query second.
4. *Relaxed.* If those are of few conversations, a second round asks for rows with any of the words:
   without stop words and endings, and with words that do not exist corrected. It includes tools
   only if what was said is still of few conversations. If a single word was found as it was typed,
   there is no second round. Rows with everything but the numbers of the query come first, wherever
   they are: an error message is in the output of a tool.
5. Rows are grouped by conversation. Conversations that are about the query gain.
6. Only the hits that are shown are read, because their texts may be long.

Words of three letters and more in Chinese, Japanese and Korean are relaxed to their trigrams.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from .. import sql
from ..fields import bindable
from . import matches, refs
from . import query as query_parser
from .candidates import Candidate, Candidates, Vocabulary, vocabulary
from .filters import MESSAGE_KINDS, Filters, Nothing, nothing
from .hits import OTHERS, Hit, preference
from .matches import Places, Span, fold
from .query import SAID, TITLE, TOOLS, TRIGRAM, Clause, Term, Terms, any_of
from .refs import short_agent_key, short_key

# ------------------------------------------------------------------------------------------------
# Relaxes a query, so that a hit may lack some of its words.
#
# A word then matches with any ending. A word that no message has is replaced by those that may be
# meant. Stop words are ignored. Phrases are still required, and exclusions still hold.


_MOST_CORRECTED = 3  # words of a query; each may cost reading many words
_MOST_TAKEN_APART = 5


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query, and all terms that count as it."""

    name: str
    forms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A query whose hits may lack some of its words."""

    terms: Terms
    words: tuple[Word, ...]
    corrected: dict[str, tuple[str, ...]]
    """The words that no message has, with those that replace them."""

    @property
    def forms(self) -> list[Term]:
        """What the word index can be asked for."""
        return [form for word in self.words for form in word.forms if not form.has_cjk]

    def match(self) -> str | None:
        """Return the expression for the word index, None if there is none."""
        needed = [
            any_of(clause.alternatives)
            for clause in self.terms.content
            if clause.is_phrase and not clause.alternatives[0].has_cjk
        ]
        if not self.forms:
            return None
        match = any_of(self.forms)
        if needed:
            together = " AND ".join(needed)
            match = f"(({together}) OR (({together}) AND {match}))"
        return self.terms.but(match)

    def match_trigrams(self) -> str | None:
        """Return the expression for the index of trigrams, None if there is none."""
        if any(clause.is_phrase for clause in self.terms.content):
            return None
        return any_of(map(Term, trigrams)) if (trigrams := self.trigrams()) else None

    def trigrams(self) -> list[str]:
        """Return all trigrams of the Chinese, Japanese and Korean parts of the query."""
        return [
            text[start : start + TRIGRAM]
            for text in self.terms.substrings
            for start in range(len(text) - TRIGRAM + 1)
        ]


def words_of(clauses: Iterable[Clause]) -> tuple[Word, ...]:
    return tuple(
        Word(clause.name, tuple(form for term in clause.alternatives for form in _forms(term)))
        if not clause.is_phrase
        else Word(clause.name, clause.alternatives)
        for clause in clauses
    )


def relaxed(
    terms: Terms, vocabulary: Vocabulary, candidates: Candidates, *, correcting: bool
) -> Relaxed:
    """Return the relaxed query; with `correcting`, words that no message has are replaced."""
    corrected: dict[str, tuple[str, ...]] = {}
    words = []
    splits = _MOST_TAKEN_APART
    for clause, word in zip(terms.content, words_of(terms.content), strict=True):
        forms = word.forms
        tokens = _plain_tokens(clause)
        if len(tokens) > 1 and splits and not candidates.finds(word.forms[0].expression()):
            splits -= 1
            forms += tuple(form for token in tokens for form in query_parser.forms(token))
        elif len(tokens) == 1 and correcting and len(corrected) < _MOST_CORRECTED:
            is_known = any(vocabulary.knows(form) for form in forms)
            reading = is_short(terms)
            if not is_known and (meant := vocabulary.meant_by(tokens[0], reading=reading)):
                corrected[word.name] = meant
                forms += tuple(map(Term, meant))
        words.append(Word(word.name, forms))
    return Relaxed(terms, tuple(words), corrected)


def _plain_tokens(clause: Clause) -> list[str]:
    """Return the tokens of a clause that is one plain word, [] for any other clause."""
    term, *others = clause.alternatives
    if clause.is_phrase or others or term.is_prefix or term.has_cjk:
        return []
    return query_parser.TOKEN.findall(term.text)


def _forms(term: Term) -> tuple[Term, ...]:
    if term.is_prefix or term.has_cjk or len(tokens := query_parser.TOKEN.findall(term.text)) != 1:
        return (term,)
    return query_parser.forms(tokens[0])  # without the colon of `error:`


# ------------------------------------------------------------------------------------------------
# Ranks candidates: tiers first, then scores, then one group for each conversation.
#
# A note of the user with all words comes before everything else.
#
# A *tier* says how well a row fits: 0 it holds the query as it was typed, 1 it holds all words of a
# short query, 2 all words but the numbers, 3 all others. Within a tier the *score* decides: the
# rank of the full-text index, of which tool input and output get a fifth. Ranks of the smaller
# stores mean something else, because these are small; their score is how rare the words are that
# they hold.
#
# A conversation is ranked by its best tier and its best score in that tier. The first ones gain by
# what they are about: words of the query in their title, and in their first two prompts.


VERBATIM, ALL_WORDS, RELAXED = "verbatim", "all_words", "relaxed"
"""Why a row is a hit."""

NEARLY_TIER, LAST_TIER = 2, 3
_TOOLS_COUNT = 0.2
_ABOUT = 40  # conversations whose title and first prompts are read
_PROMPTS_COUNT = 0.5
_NEARLY_BEST = 0.6
_SHORT = 3  # content words of a query whose words should all be there
_SPECIAL = frozenset("_./:-\\@")
_TITLES = OTHERS + 1  # a title is shown anyway


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its rank."""

    candidate: Candidate
    why: str
    tier: int
    score: float

    @property
    def is_noted(self) -> bool:
        """Has a note of the user all words? It ranks above what was said."""
        return self.why != RELAXED and self.candidate.is_note

    @property
    def is_thought(self) -> bool:
        """Has thinking all words? It never ranks above text with the same words."""
        return self.why != RELAXED and self.candidate.row["kind"] == "thinking"


@dataclass(slots=True)
class Cluster:
    """The hits of one conversation, best first; or one thing that belongs to none."""

    ranked: list[Ranked]
    score: float = 0.0

    @property
    def best(self) -> Ranked:
        return self.ranked[0]

    @property
    def session_key(self) -> str | None:
        """The conversation, if it is one."""
        key: str | None = self.best.candidate.row["session_key"]
        return key

    @property
    def hits(self) -> list[Ranked]:
        """The hits that count: if any has all words, only those that have them."""
        if self.best.why == RELAXED:
            return self.ranked
        return [one for one in self.ranked if one.why != RELAXED]

    @property
    def newest(self) -> str:
        """When the newest of its hits was said."""
        return max(one.candidate.row["timestamp"] or "" for one in self.hits)


class Relevance:
    """How much of a query a short text holds: the sum of how rare its words are."""

    def __init__(self, words: Iterable[Word], rarity: Callable[[Word], float]) -> None:
        self._words = [([fold(form.text) for form in word.forms], rarity(word)) for word in words]

    def of(self, text: str | None) -> float:
        """Return the relevance of a text, 0 if it holds no word of the query."""
        folded = fold(text or "")
        return sum(weight for forms, weight in self._words if any(form in folded for form in forms))


def conversation(candidate: Candidate) -> object:
    """Return the identity of a conversation; a hit without one is its own."""
    return candidate.row["session_key"] or candidate.place


def count_conversations(ranked: Iterable[Ranked]) -> int:
    return len({conversation(one.candidate) for one in ranked})


def is_special(literal: str) -> bool:
    """Is this a text to find just as it is: several words, an identifier, a path, a flag?"""
    inner = literal[1:] if literal[:1] == literal[:1].upper() else literal
    has_capitals = inner != inner.lower() and inner != inner.upper()
    return " " in literal or has_capitals or not _SPECIAL.isdisjoint(literal) or literal[:1] == "#"


def is_short(terms: Terms) -> bool:
    """Is the query so short that each of its words counts?"""
    return len(terms.clauses) == len(terms.content) <= _SHORT


def rank_exact(candidates: Iterable[Candidate], terms: Terms, relevance: Relevance) -> list[Ranked]:
    """Rank candidates that hold all words."""
    short, is_one = is_short(terms), len(terms.clauses) == 1
    ranked = []
    for number, candidate in enumerate(candidates):
        why = VERBATIM if candidate.row["verbatim"] else ALL_WORDS
        tier = LAST_TIER
        if why == VERBATIM or candidate.is_note:
            tier = 0
        elif short and (is_one or candidate.scope != TOOLS):
            tier = 1
        ranked.append(Ranked(candidate, why, tier, _score(candidate, number, relevance)))
    return ranked


def rank_relaxed(
    candidates: Iterable[Candidate],
    exact: Iterable[Ranked],
    relevance: Relevance,
    *,
    is_nearly: bool = False,
) -> list[Ranked]:
    """Rank candidates that are not ranked already.

    What holds nearly all words (`is_nearly`) comes before what holds some.
    """
    places = {one.candidate.place for one in exact}
    new = {c.place: (number, c) for number, c in enumerate(candidates) if c.place not in places}
    tier = NEARLY_TIER if is_nearly else LAST_TIER
    return [Ranked(c, RELAXED, tier, _score(c, number, relevance)) for number, c in new.values()]


def clusters(
    connection: sqlite3.Connection, ranked: Iterable[Ranked], relevance: Relevance
) -> list[Cluster]:
    """Group by conversation, best first."""
    by_place: dict[tuple[str, int], Ranked] = {}
    for one in ranked:
        by_place.setdefault(one.candidate.place, one)
    by_conversation: dict[object, list[Ranked]] = {}
    for one in by_place.values():
        by_conversation.setdefault(conversation(one.candidate), []).append(one)
    # Among equals, the newest comes first.
    newest = sorted(map(_cluster, by_conversation.values()), key=_time, reverse=True)
    ordered = sorted(newest, key=_order)
    first = ordered[:_ABOUT]
    keys = json.dumps([cluster.session_key for cluster in first if cluster.session_key])
    about = {
        row["session_key"]: row for row in sql.ask(connection, "pages/first_prompts", keys=keys)
    }
    for cluster in first:
        if row := about.get(cluster.session_key):
            cluster.score += relevance.of(row["title"])
            cluster.score += _PROMPTS_COUNT * relevance.of(row["prompts"])
    return sorted(first, key=_order) + ordered[_ABOUT:]


def in_one_list(groups: Sequence[Cluster]) -> list[Ranked]:
    """Return all hits, best first.

    In each tier the best of each conversation comes before the others, so that the first hits come
    from as many conversations as possible.
    """
    others = chain.from_iterable(cluster.ranked[1:] for cluster in groups)
    rest = sorted(others, key=lambda one: (-one.score, one.candidate.row["id"]))
    firsts = [cluster.best for cluster in groups]
    return sorted([*firsts, *rest], key=lambda one: (one.tier, not one.is_noted, one.is_thought))


def _score(candidate: Candidate, number: int, relevance: Relevance) -> float:
    """Return the score; what has no rank is in order already."""
    rank = candidate.row["rank"]
    if candidate.row["text"] is not None:
        score = relevance.of(candidate.row["text"])
    else:
        score = -rank if rank is not None else 1 / (number + 1)
    return float(score) * (_TOOLS_COUNT if candidate.scope == TOOLS else 1)


def _cluster(ranked: list[Ranked]) -> Cluster:
    tier = min(one.tier for one in ranked)
    best = max(one.score for one in ranked if one.tier == tier)

    def order(one: Ranked) -> tuple[int, bool, bool, bool, int, float, int]:
        is_far = one.score < _NEARLY_BEST * best
        preferred = 0 if is_far else _preference(one.candidate)
        last = preferred, -one.score, one.candidate.row["id"]
        return one.tier, not one.is_noted, one.is_thought, is_far, *last

    return Cluster(sorted(ranked, key=order), best)


def _preference(candidate: Candidate) -> int:
    """Return the rank of a row among equals."""
    if candidate.scope == TITLE:
        return _TITLES
    if candidate.is_message:
        return preference(candidate.row["kind"])
    return OTHERS if candidate.scope == TOOLS else 0


def _order(cluster: Cluster) -> tuple[int, bool, bool, float]:
    best = cluster.best
    return best.tier, not best.is_noted, best.is_thought, -cluster.score


def _time(cluster: Cluster) -> str:
    return cluster.best.candidate.row["timestamp"] or ""


# ------------------------------------------------------------------------------------------------
# Evidence: may what was found be an answer at all?
#
# It is the share of the query that the best of the first conversations holds in one message. Words
# weigh by their rarity, but its root, or one rare word would decide alone; a word that no message
# has weighs twice, because a question about it has most likely no answer here. The threshold was
# chosen with the questions of `benchmarks/questions`, those without an answer included.


STRONG, WEAK, NONE = "strong", "weak", "none"

_STRONG_FROM = 0.34
_LOOKED_AT = 5  # conversations
_NOWHERE_COUNTS = 2
_CORRECTED_COUNTS = 0.5


class Evidence:
    """How much of a query a text holds, from 0 to 1."""

    def __init__(
        self,
        terms: Terms,
        relaxed: Relaxed | None,
        vocabulary: Vocabulary,
        candidates: Candidates,
    ) -> None:
        corrected = relaxed.corrected if relaxed else {}
        self._words = [
            (
                Places(form for form in word.forms if not form.has_cjk),
                [fold(form.text) for form in word.forms if form.has_cjk],
                Places(map(Term, corrected.get(word.name, ()))),
                _weight(word, vocabulary, candidates),
            )
            for word in words_of(terms.content)
        ]

    def of(self, text: str) -> float:
        whole = sum(weight for *_, weight in self._words)
        return sum(self._held(text)) / whole if whole else 1.0

    def _held(self, text: str) -> Iterator[float]:
        folded = fold(text)
        for places, letters, corrected, weight in self._words:
            if places.some(text) or any(one in folded for one in letters):
                yield weight
            elif corrected.some(text):
                yield _CORRECTED_COUNTS * weight


def _weight(word: Word, vocabulary: Vocabulary, candidates: Candidates) -> float:
    rarity = min(vocabulary.rarity([form]) for form in word.forms)
    # What the one who asks has just typed is in the vocabulary, but in no message that is searched.
    is_nowhere = rarity >= vocabulary.rarest or (
        bool(candidates.left_out) and not candidates.has_any(word.forms)
    )
    return math.sqrt(rarity) * (_NOWHERE_COUNTS if is_nowhere else 1)


# ------------------------------------------------------------------------------------------------
# Facets: what a search can be narrowed by. Each value is counted in the hits that were found, and
# narrowing leaves out the others of them, so that a count is always what it leads to.


FACETS = ("kind", "repository", "project", "source", "model", "role", "branch", "month")
"""What a search can be narrowed by, with values that are offered."""

_WITH_OWN_KIND = ("inbox", "document")
"""Stores that can be filtered by their name and by their own kinds."""


class Facets:
    """The values by which hits can be narrowed. A project is its id."""

    def __init__(self, connection: sqlite3.Connection, groups: Iterable[Cluster]) -> None:
        from .repositories import repositories

        self._groups = groups = list(groups)
        candidates = [one.candidate for cluster in groups for one in cluster.ranked]
        ids = [candidate.place[1] for candidate in candidates if candidate.is_message]
        rows = sql.ask(connection, "pages/hit_facts", ids=json.dumps(ids)) if ids else ()
        facts = {("message", row["id"]): row for row in rows}
        of_project = repositories(connection)
        self._values = {
            one.place: _values(one, facts.get(one.place), of_project) for one in candidates
        }

    def fits(self, one: Ranked, wanted: Mapping[str, frozenset[str]]) -> bool:
        """Has a hit one of the wanted values of each facet, and of `session`?"""
        values = self._values[one.candidate.place]
        return all(not texts.isdisjoint(values[name]) for name, texts in wanted.items())

    def counts(self, groups: Iterable[Cluster]) -> dict[str, Counter[str]]:
        """Return in how many conversations each value of each facet occurs."""
        counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
        for cluster in groups:
            hits = [self._values[one.candidate.place] for one in cluster.hits]
            for name, counter in counts.items():
                counter.update(frozenset().union(*(values[name] for values in hits)))
        return counts

    def count(self, wanted: Mapping[str, frozenset[str]]) -> int:
        """Return how many conversations have hits with these values."""
        return sum(any(self.fits(one, wanted) for one in group.hits) for group in self._groups)


def _values(
    candidate: Candidate, facts: sqlite3.Row | None, of_project: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    """Return the values of each facet that a row has.

    `facts` is what only messages have, `of_project` the repository of each project.
    """
    row = candidate.row
    what, project, time = row["what"], row["project_id"], row["timestamp"]
    kinds = {row["kind"] if candidate.is_message else what}
    if what in _WITH_OWN_KIND and row["kind"] in MESSAGE_KINDS:
        kinds.add(row["kind"])
    values = {
        "repository": of_project.get(str(project)),
        "project": None if project is None else str(project),
        "source": row["source"],
        "model": facts and facts["model"],
        "role": facts and facts["role"],
        "branch": facts and facts["branch"],
        "month": time and _month(time),
        "session": row["session_key"],
    }
    return {
        "kind": frozenset(kinds),
        **{name: frozenset((value,) if value else ()) for name, value in values.items()},
    }


def _month(time: str) -> str:
    """Return the month of a stored time in the local calendar."""
    is_near_its_end = time[8:10] in ("01", "28", "29", "30", "31")  # local time is slow
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m}" if is_near_its_end else time[:7]


# ------------------------------------------------------------------------------------------------
# Reads hits: the piece of the text that matches, and all that a reader or a program needs.


class Marker:
    """Chooses the piece of a text that holds most of the words of a query."""

    def __init__(
        self,
        terms: Terms,
        relaxed: Relaxed | None = None,
        clean: Callable[[str], str] | None = None,
    ) -> None:
        """`clean` masks a text before a piece is chosen, which can begin inside a credential."""
        self._terms = terms
        self._clean = clean
        self._all = Places(terms.words)
        self._parts = terms.parts()
        self._any = Places(relaxed.forms if relaxed else ())
        self._any_parts = relaxed.trigrams() if relaxed else []
        self._words = [
            (word.name, [matches.fold(form.text) for form in word.forms])
            for word in (relaxed.words if relaxed else ())
        ]
        self.present: set[str] = set()
        """Names of the words that the texts held so far."""
        self._others: tuple[Marker, ...] = ()

    def with_those_of(self, others: Iterable[Marker]) -> Marker:
        """Return a marker that marks the words of other queries, too."""
        marker = copy(self)
        marker._others = tuple(others)
        return marker

    def snippet(self, ranked: Ranked, text: str) -> str:
        """Return the piece of the text of a hit, its matches marked."""
        text = self._clean(text) if self._clean is not None else text
        if ranked.candidate.scope == TITLE:
            return matches.around(text, self._spans(ranked, text), len(text))
        return matches.around(text, self._spans(ranked, text))

    def look(self, text: str) -> None:
        """Note which words of the query a text holds: those are not missing."""
        folded = matches.fold(text)
        self.present.update(
            name for name, forms in self._words if any(form in folded for form in forms)
        )

    def _spans(self, ranked: Ranked, text: str) -> Sequence[Span]:
        spans = [*self._own_spans(ranked, text)]
        for other in self._others:
            spans += other._own_spans(ranked, text)
        return spans

    def _own_spans(self, ranked: Ranked, text: str) -> Sequence[Span]:
        if ranked.why == RELAXED:
            self.look(text)
            spans = self._any.some(text)
            return spans + matches.substrings_in(text, self._any_parts)
        if ranked.why == VERBATIM and (spans := matches.substrings_in(text, [self._terms.literal])):
            return spans
        if self._terms.has_cjk and (
            ranked.candidate.scope == TITLE or not ranked.candidate.is_message
        ):
            return matches.substrings_in(text, self._terms.texts())
        return self._all.some(text) + matches.substrings_in(text, self._parts)


def read_hits(
    connection: sqlite3.Connection,
    ranked: Iterable[Ranked],
    marker: Marker,
    *,
    with_resume: bool = True,
) -> dict[tuple[str, int], Hit]:
    """Read the hits that are shown; `with_resume` needs the sources, which take long to import."""
    by_place = {one.candidate.place: one for one in ranked}
    places = [
        [*place, one.candidate.row["session_key"], one.candidate.row["source"]]
        for place, one in by_place.items()
    ]
    if with_resume:
        from .conversation import resume_line
    keys: dict[str, str] = {}
    hits = {}
    for details in sql.ask(connection, "pages/hits", places=json.dumps(places)):
        place = details["what"], details["id"]
        hit = _hit(connection, by_place[place], details, marker, keys)
        if with_resume:
            session = {
                "kind": details["session_kind"],
                "source": hit.source,
                "cwd": hit.cwd,
                "project_path": details["project_path"],
                "session_key": hit.session_key,
            }
            resume = resume_line(session, is_there=bool(details["has_transcript"]))
            hit = replace(hit, resume=resume)
        hits[place] = hit
    return hits


def with_lines(connection: sqlite3.Connection, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with the numbers of their lines, which are counted in the archive."""
    places = refs.of_hits(connection, hits)
    return [replace(hit, ref=ref, line=line) for hit, (ref, line) in zip(hits, places, strict=True)]


def _hit(
    connection: sqlite3.Connection,
    ranked: Ranked,
    details: sqlite3.Row,
    marker: Marker,
    keys: dict[str, str],
) -> Hit:
    row = ranked.candidate.row
    session_key, agent_key = row["session_key"], details["agent_key"]
    if agent_key and agent_key not in keys:
        keys[agent_key] = short_agent_key(connection, agent_key)
    elif session_key and session_key not in keys:
        keys[session_key] = short_key(connection, session_key)
    key = keys.get(agent_key or session_key or "")
    text = details["text"]
    if row["what"] not in ("message", "session"):
        text = _words(connection, row["what"], row["id"])
    return Hit(
        key=key,
        title=row["session"],
        ref=key,
        project=row["project"],
        branch=details["branch"] or None,
        cwd=details["cwd"],
        model=details["model"],
        kind=row["kind"],
        time=row["timestamp"],
        snippet=marker.snippet(ranked, text or ""),
        why=ranked.why,
        file=row["file"],
        line=None,
        byte=row["byte_offset"] or 0,
        resume=None,
        session_key=session_key,
        id=row["id"],
        what=row["what"],
        scope=ranked.candidate.scope,
        source=row["source"],
        subagent=row["subagent"],
        tool=row["tool"],
    )


def _words(connection: sqlite3.Connection, what: str, id: int) -> str:
    """Return the text of an entry of a smaller store."""
    entry = sql.ask(connection, "pages/entry", what=what, id=id).fetchone()
    return (entry["words"] or "") if entry is not None else ""  # a sync may just have replaced it


# ------------------------------------------------------------------------------------------------
# The answer: conversations, hits in one list, and how the query was relaxed.


@dataclass(frozen=True, slots=True)
class Group:
    """One conversation with its best hits, or one thing that belongs to none."""

    session_key: str | None
    title: str | None
    hits: tuple[Hit, ...]
    """Its best hits, best first; at least one."""
    more: int
    """Further hits."""

    @property
    def best(self) -> Hit:
        return self.hits[0]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """How the query was relaxed."""

    has_exact: bool
    """There are also hits that hold all words."""
    words: tuple[str, ...]
    """The words of the query that count."""
    missing: tuple[str, ...]
    """Words of the query that nothing contains, within the filters."""
    corrected: dict[str, tuple[str, ...]]
    """Words that no message has, with those that replaced them."""

    @property
    def is_said(self) -> bool:
        """Are hits called the closest ones, rather than words corrected?"""
        return self.has_exact or len(self.words) > 1 or not (self.corrected or self.missing)

    def lines(self, *, is_weak: bool = False) -> list[str]:
        """Return what a reader should know, one sentence each."""
        said = []
        for word, meant in self.corrected.items():
            others = f" and {len(meant) - 3} more" if len(meant) > 3 else ""
            said.append(f"Showing results for {', '.join(meant[:3])}{others} instead of {word}.")
        if self.missing:
            said.append(f"Not found: {', '.join(self.missing)}.")
        if is_weak:
            said.append("Weak matches: no conversation contains most of the words.")
        elif not self.has_exact and len(self.words) > 1:
            said.append("No message contains all words. Closest matches:")
        elif not self.has_exact and not said:
            said.append(f"No message contains {self.words[0]}. Closest matches:")
        return said


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer of a search."""

    groups: tuple[Group, ...]
    hits: tuple[Hit, ...]
    """The best hits, best first, of as many conversations as possible."""
    conversations: int
    """How many there are, including things that belong to none."""
    count: int
    """How many hits there are; by conversation, without those that lack a word if others have
    all."""
    is_cut: bool
    """There may be more of both: each question to an index has a limit."""
    relaxation: Relaxation | None
    notes: tuple[str, ...]
    """Parts of the query that were ignored, or why there are no hits."""
    nothing: Nothing | None = None
    """Without which filters there would be hits, and which words occur nowhere."""
    has_lines: bool = False
    """Have the hits the numbers of their lines?"""
    evidence: str = STRONG
    """strong, weak or none: may what was found be an answer?"""
    understood: Mapping[str, str] = field(default_factory=dict)
    """Words of the query that were taken for filters, with these."""

    def said(self) -> list[str]:
        """Return what a reader should know before the hits, one sentence each."""
        return [
            *self.notes,
            *(self.relaxation.lines(is_weak=self.evidence == WEAK) if self.relaxation else ()),
            *(self.nothing.lines("conversation") if self.nothing else ()),
        ]

    def relaxed(self) -> dict[str, object] | None:
        """Return for programs how the query was relaxed; None if it was not."""
        if self.relaxation is None:
            return None
        facts = asdict(self.relaxation)
        return {name: facts[name] for name in ("missing", "corrected", "has_exact")}


# ------------------------------------------------------------------------------------------------
# The search itself.


ENOUGH = 10
"""Conversations with all words; with fewer, others are looked for."""

_MOST = 200  # candidates of one question
_MOST_RELAXED = 400
_MOST_OF_TITLES = 20
_MOST_IN_ALL = 2_000  # candidates of one question if many conversations are asked for
_PER_CONVERSATION = 20
_FLATTENING = 60  # of reciprocal ranks, as is usual: so much do several mentions count


@dataclass(frozen=True, slots=True)
class Ranking:
    """All that a search found, in order, before any text is read."""

    candidates: Candidates
    terms: Terms
    groups: list[Cluster]
    hits: list[Ranked]
    """The same in one list."""
    marker: Marker
    evidence: Evidence
    relaxed: Relaxed | None = None
    """The relaxed query, if it was relaxed."""
    notes: tuple[str, ...] = ()
    nothing: Nothing | None = None
    """Why there are no hits."""
    is_cut: bool = False
    """Are there more hits with all words than were listed?"""
    understood: Mapping[str, str] = field(default_factory=dict)
    """Words of the query that were taken for filters, with these."""
    is_part: bool = False
    """Was it narrowed? A word that is missing here may occur in the rest."""
    of: tuple[Ranking, ...] = ()
    """Those of several phrasings, of which this one is made."""

    def narrowed(self, facets: Facets, wanted: Mapping[str, frozenset[str]]) -> Ranking:
        """Return the hits that have these values."""
        groups = [
            replace(cluster, ranked=ranked)
            for cluster in self.groups
            if (ranked := [one for one in cluster.hits if facets.fits(one, wanted)])
        ]
        hits = [one for one in self.hits if facets.fits(one, wanted)]
        return replace(self, groups=sorted(groups, key=_order), hits=hits, is_part=True)

    def apart(self) -> Ranking:
        """Return the same with each hit as a group of its own."""
        counted = {one.candidate.place for cluster in self.groups for one in cluster.hits}
        hits = [one for one in self.hits if one.candidate.place in counted]
        return replace(self, groups=[Cluster([one]) for one in hits])

    def newest_first(self) -> Ranking:
        return replace(self, groups=sorted(self.groups, key=lambda one: one.newest, reverse=True))

    def read(
        self, limit: int, each: int = 3, start: int = 0, *, with_resume: bool = True
    ) -> SearchResult:
        """Read `limit` conversations with `each` hits, or without `each` the best `limit` hits."""
        groups = self.groups[start : start + limit] if each else []
        shown = [one for cluster in groups for one in cluster.hits[:each]]
        best = self.hits[start : start + limit]
        hits = read_hits(
            self.candidates.connection, [*shown, *best], self.marker, with_resume=with_resume
        )
        read = tuple(_group(cluster, hits, each) for cluster in groups)
        for group in read:
            self.marker.look(group.title or "")
        return SearchResult(
            read,
            tuple(hits[one.candidate.place] for one in best if one.candidate.place in hits),
            len(self.groups),
            sum(len(cluster.hits) for cluster in self.groups) if each else len(self.hits),
            self.candidates.is_cut,
            self._relaxation(is_part=self.is_part or start > 0),
            self.notes,
            self.nothing,
            evidence=self._evidence(),
            understood=self.understood,
        )

    def _evidence(self) -> str:
        """Say how strong the evidence of the first conversations is."""
        if self.of:
            return min((one._evidence() for one in self.of), key=(STRONG, WEAK, NONE).index)
        if not self.groups:
            return NONE
        first = [cluster.best for cluster in self.groups[:_LOOKED_AT]]
        if any(one.why != RELAXED for one in first):
            return STRONG
        texts = self.candidates.texts(one.candidate for one in first)
        titles = [one.candidate.row["session"] or "" for one in first]
        held = (
            self.evidence.of(f"{title}\n{self._text(one, texts)}")
            for one, title in zip(first, titles, strict=True)
        )
        return STRONG if max(held) >= _STRONG_FROM else WEAK

    def _text(self, ranked: Ranked, texts: Mapping[tuple[str, int], str]) -> str:
        candidate = ranked.candidate
        if candidate.is_message or candidate.scope == TITLE:
            return texts.get(candidate.place, "")
        return _words(self.candidates.connection, *candidate.place)

    def _relaxation(self, *, is_part: bool) -> Relaxation | None:
        """Say how the query was relaxed; None if it was not, or no hit came of it."""
        if self.relaxed is None or all(one.why != RELAXED for one in self.hits):
            return None
        has_exact = any(one.why != RELAXED for one in self.hits)
        present = self.marker.present | self.relaxed.corrected.keys()
        missing = tuple(
            word.name
            for word in (self.relaxed.words if not has_exact and not is_part else ())
            if word.name not in present and not self.candidates.has_any(word.forms)
        )
        names = tuple(word.name for word in self.relaxed.words)
        return Relaxation(has_exact, names, missing, self.relaxed.corrected)


def _group(cluster: Cluster, hits: dict[tuple[str, int], Hit], each: int) -> Group:
    """Return a group with its best hits; what says the same as another is not shown again."""
    distinct: dict[str, Hit] = {}
    for one in cluster.hits[:each]:
        if hit := hits.get(one.candidate.place):
            distinct.setdefault(hit.snippet, hit)
    best = tuple(distinct.values())
    return Group(cluster.session_key, best[0].title, best, len(cluster.hits) - len(best))


def fused(rankings: Sequence[Ranking]) -> Ranking:
    """Return what several phrasings of a question found, the most agreed on first.

    A conversation gets the sum of its reciprocal ranks: scores of different queries don't compare.
    """
    first, *others = rankings
    merged: dict[object, Cluster] = {}
    scores: Counter[object] = Counter()
    for ranking in rankings:
        for place, cluster in enumerate(ranking.groups, 1):
            key = conversation(cluster.best.candidate)
            scores[key] += 1 / (_FLATTENING + place)  # type: ignore[assignment]
            into = merged.setdefault(key, Cluster([]))
            known = {one.candidate.place for one in into.ranked}
            into.ranked += [one for one in cluster.hits if one.candidate.place not in known]
    groups = sorted(merged.values(), key=lambda one: -scores[conversation(one.best.candidate)])
    return replace(
        first,
        groups=groups,
        hits=[one.best for one in groups] + [hit for one in groups for hit in one.ranked[1:]],
        marker=first.marker.with_those_of(one.marker for one in others),
        nothing=first.nothing if not groups else None,
        is_cut=any(one.is_cut for one in rankings),
        of=tuple(rankings),
    )


def find(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 10,
    most: int = 0,
    tools: bool = False,
    only_said: bool = False,
    raw: bool = False,
    closest: bool = True,
    newest: bool = False,
    left_out: frozenset[str] = frozenset(),
    clean: Callable[[str], str] | None = None,
) -> Ranking:
    """Return the hits of a query in order, at least `limit` conversations if there are as many.

    With `most`, everything with all words is listed, up to so many rows of each question. `tools`
    limits the search to tool input and output, `only_said` to everything else. Without `closest`,
    the query is not relaxed. If very much matches, `newest` takes the newest matches instead of the
    best. Only the first words of a very long query are used. `raw` takes the query as an FTS5
    expression, whose words rank what it finds, and raises UsageError if it is none, or too long. A
    filter that names nothing raises UsageError or NotFoundError. Sessions with the keys `left_out`
    are not searched. `clean` masks what no snippet may show.
    """
    filters = filters or Filters()
    options: dict[str, Any] = {
        "limit": limit, "most": most, "closest": closest, "newest": newest,
        "left_out": left_out, "clean": clean,
        "scopes": (TOOLS,) if tools else (SAID,) if only_said else (SAID, TOOLS),
    }  # fmt: skip
    if raw or not (told := _told(query, filters)):
        return _find(connection, query, filters, raw=raw, **options)
    as_it_stands = _find(connection, query, filters, **options)
    if as_it_stands.groups and as_it_stands.groups[0].best.tier == 0:
        return as_it_stands
    for words in told:
        query = query.replace(words, " ", 1)
    last = query_parser.asks_for_the_last(query)
    options["newest"] |= last is not None
    limited = _find(connection, " ".join((query, *told.values())), filters, **options)
    if not limited.groups:
        without = (
            f"Nothing fits {filter}, so {words!r} is searched for as words."
            for words, filter in told.items()
        )
        return replace(as_it_stands, notes=(*without, *as_it_stands.notes))
    said = [
        f"{words!r} is taken for {filter}. In quotes it is words." for words, filter in told.items()
    ]
    if last is not None:
        said.append(f"The newest of these comes first, since the question says {last!r}.")
        groups = sorted(limited.groups, key=lambda one: one.newest, reverse=True)
        limited = replace(limited, groups=groups, hits=in_one_list(groups))
    return replace(limited, understood=told, notes=(*said, *limited.notes))


def _told(query: str, filters: Filters) -> dict[str, str]:
    """Return the words of a question that are filters, with these; other filters go before."""
    given = {*filters.given(), *dict(query_parser.parse(query).fields)}
    return {
        words: filter
        for words, filter in query_parser.told(query)
        if given.isdisjoint(filter.partition(":")[0] for filter in filter.split())
    }


def _find(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters,
    *,
    limit: int,
    most: int,
    scopes: tuple[str, ...],
    closest: bool,
    newest: bool,
    left_out: frozenset[str],
    clean: Callable[[str], str] | None,
    raw: bool = False,
) -> Ranking:
    expression = bindable(query) if raw else None
    terms = query_parser.parse(query) if expression is None else query_parser.parse_raw(expression)
    notes: list[str] = []
    if terms.without and not terms.fields and '-"' not in query:  # no command has -"a phrase"
        typed = _as_it_stands(connection, query, filters, left_out)
        if typed is not None:
            word = terms.without[0].text
            notes.append(f"Nothing is excluded: a message contains -{word} as it stands.")
            terms = typed
    filters = filters.limited_by(terms.fields)
    candidates = replace(
        _candidates(connection, filters, terms, max(limit, most), newest), left_out=left_out
    )
    with vocabulary(connection) as words:
        search = _Search(
            terms, candidates, words, limit, most, scopes, closest and not raw, expression
        )
        search.find_exact()
        search.relax()
        groups = search.groups()
        why = search.why_nothing() if search.is_asked and not groups else None
        evidence = Evidence(terms, search.question, words, candidates)
    return Ranking(
        candidates, terms, groups, in_one_list(groups),
        Marker(terms, search.question, clean), evidence, search.question,
        (*notes, *(() if raw else _notes(terms, len(groups)))), why, search.is_cut,
    )  # fmt: skip


def _candidates(
    connection: sqlite3.Connection, filters: Filters, terms: Terms, limit: int, newest: bool = False
) -> Candidates:
    literal = terms.literal if is_special(terms.literal) else None
    return Candidates(connection, filters, literal, limit, newest)


def _as_it_stands(
    connection: sqlite3.Connection, query: str, filters: Filters, left_out: frozenset[str]
) -> Terms | None:
    """Return a query with its `-words` as words if something holds all of it as it was typed.

    That is a command that was copied: `go mod download -modcacherw` excludes nothing.
    """
    terms = query_parser.parse(f"-- {query}")
    candidates = replace(_candidates(connection, filters, terms, 0), left_out=left_out)
    for scope in (SAID, TOOLS):
        found = candidates.with_all(terms, scope, _MOST)
        if any(candidate.row["verbatim"] for candidate in found):
            return terms
    return None


@dataclass
class _Search:
    """One search for words, and what it found."""

    terms: Terms
    candidates: Candidates
    vocabulary: Vocabulary
    limit: int
    most: int
    scopes: tuple[str, ...]
    closest: bool
    expression: str | None = None
    """An FTS5 expression that the user wrote, which finds what has to be ranked."""
    ranked: list[Ranked] = field(default_factory=list)
    question: Relaxed | None = None
    """The relaxed query, if it was relaxed."""
    is_cut: bool = False
    """Are there more rows with all words?"""

    @property
    def is_asked(self) -> bool:
        """Is there anything to search for?"""
        return bool(self.terms.clauses) or self.expression is not None

    def find_exact(self) -> None:
        terms, candidates = self.terms, self.candidates
        sizes = (self.most,) if self.most else (self._most, max(self._most, _MOST_IN_ALL))
        found: list[Candidate] = []
        for most in sizes if self.is_asked else ():
            candidates.is_cut = False
            found = []
            if SAID in self.scopes and self.expression is None:
                found += candidates.in_titles(terms, max(_MOST_OF_TITLES, self.limit, self.most))
            for scope in self.scopes:
                if not (candidates.is_cut and self._is_full(found)):
                    found += self._in_scope(scope, most)
            # Few conversations can have very many hits: then more are asked for.
            if not candidates.is_cut or self._is_full(found):
                break
        self.is_cut = candidates.is_cut
        if self.closest and len({*map(conversation, found)}) < ENOUGH:
            found += candidates.at_line_starts(terms, self._most)
        self.ranked = rank_exact(found, terms, self._relevance())

    def relax(self) -> None:
        """Add what lacks words, if too little has all of them."""
        exact, candidates = self.ranked, self.candidates
        if not self._is_to_be_relaxed(exact):
            return
        question = relaxed(self.terms, self.vocabulary, candidates, correcting=not exact)
        self.question = question
        relevance = self._relevance()
        terms = self.terms.without_numbers()
        nearly: list[Candidate] = []
        if terms is not None and not exact:
            for scope in self.scopes:
                nearly += candidates.with_all(terms, scope, self._most)
        ranked = exact + rank_relaxed(nearly, exact, relevance, is_nearly=True)
        others: list[Ranked] = []
        for scope in self.scopes:
            if others and count_conversations([*ranked, *others]) >= ENOUGH:
                break
            limit = max(self._most, _MOST_RELAXED) if scope == SAID else self._most
            found = candidates.with_any(self.terms, question.match(), question.forms, scope, limit)
            if trigrams := question.match_trigrams():
                found += candidates.with_any_trigram(self.terms, trigrams, scope, limit)
            others += rank_relaxed(found, ranked, relevance)
        self.ranked = ranked + others

    def _in_scope(self, scope: str, most: int) -> list[Candidate]:
        if self.expression is None:
            return self.candidates.with_all(self.terms, scope, most)
        return self.candidates.with_expression(self.expression, scope, most)

    def groups(self) -> list[Cluster]:
        return clusters(self.candidates.connection, self.ranked, self._relevance())

    @property
    def _most(self) -> int:
        """The most rows of a question."""
        return max(_MOST, self.limit, min(self.limit * _PER_CONVERSATION, _MOST_IN_ALL))

    def why_nothing(self) -> Nothing:
        """Say how much there would be without filters: with all words, or else with some."""
        candidates = self.candidates
        why = self._why_nothing(closest=False)
        if not why.in_all and self.closest:
            why = self._why_nothing(closest=True)._replace(is_close=True)
        if self.expression is not None:
            return why
        everything = replace(candidates, filters=Filters())
        words = words_of(self.terms.content)
        nowhere = tuple(word.name for word in words if not everything.has_any(word.forms))
        return why._replace(words=nowhere)

    def _why_nothing(self, *, closest: bool) -> Nothing:
        limit, is_cut = self.limit if closest else _MOST_IN_ALL, False

        def count(filters: Filters) -> int:
            nonlocal is_cut
            others = replace(
                self,
                candidates=replace(self.candidates, filters=filters, limit=limit, is_cut=False),
                limit=limit,
                closest=closest,
                question=None,
            )
            others.find_exact()
            others.relax()
            is_cut |= others.is_cut
            return count_conversations(others.ranked)

        why = nothing(self.candidates.filters, count)
        return why._replace(is_lower_bound=is_cut)

    def _relevance(self) -> Relevance:
        words = self.question.words if self.question else words_of(self.terms.content)
        return Relevance(words, lambda word: self.vocabulary.rarity(word.forms))

    def _is_full(self, found: list[Candidate]) -> bool:
        """Are there enough conversations to fill the page? Then tool output would not be seen."""
        return not self.most and len({*map(conversation, found)}) >= max(ENOUGH, self.limit)

    def _is_to_be_relaxed(self, exact: list[Ranked]) -> bool:
        if not self.terms.clauses or not self.closest:
            return False
        if len(self.terms.clauses) == 1 and any(one.why == VERBATIM for one in exact):
            return False
        if self.candidates.is_cut and is_short(self.terms):
            return False  # what was not read has all words, too
        return count_conversations(one for one in exact if one.tier < LAST_TIER) < ENOUGH


def _notes(terms: Terms, count: int) -> tuple[str, ...]:
    """Say which parts of the query were ignored, and why there are no hits."""
    notes = [terms.note] if terms.note else []
    without = [term.text for term in terms.without]
    if not terms.clauses:
        if without or terms.fields:
            notes.append("The query has no words to search for, only exclusions and filters.")
        else:
            notes.append("The query has no letters or digits, and only these can be found.")
    elif not count:
        if without:
            notes.append(
                f'Excluded: messages with {", ".join(without)}. Quote "-{without[0]}" to find it.'
            )
        elif all(clause.is_stop_word for clause in terms.clauses):
            notes.append("The query has only very common words. Add a more specific one.")
        elif terms.letters:
            notes.append("One or two Chinese, Japanese or Korean characters match only exactly.")
    return tuple(notes)
