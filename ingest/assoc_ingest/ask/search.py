"""From a query to its answer, from top to bottom: relax, rank, read the hits, group, count.

`search` is the entry; `find` is the algorithm.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import chain, islice

from .. import sql
from ..errors import UsageError
from . import matches, refs
from . import query as query_parser
from .candidates import Candidate, Candidates, Vocabulary, vocabulary
from .conversation import resume_line
from .filters import Filters, Nothing, nothing
from .hits import Hit
from .matches import Places, Span, fold
from .query import SAID, TITLE, TOOLS, TRIGRAM, Clause, Term, Terms, any_of
from .refs import short_agent_key, short_key

# ------------------------------------------------------------------------------------------------
# What a query asks for when not all of its words need to be there.
#
# A word then stands for itself with any ending. A word that no message has stands for those that
# may be meant by it. Stop words count for nothing. Phrases are still required, and what was
# excluded is never found.


_MOST_CORRECTED = 3  # words of a query; each may cost reading many words
_MOST_TAKEN_APART = 5


@dataclass(frozen=True, slots=True)
class Word:
    """What a query asks for in one place, and all terms that count as it."""

    name: str
    forms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A query whose hits may lack some of its words."""

    terms: Terms
    words: tuple[Word, ...]
    corrected: dict[str, tuple[str, ...]]
    """The words that no message has, with those that are taken for them."""

    def match(self) -> str | None:
        """Return what to ask the word index for, None if nothing."""
        needed = [
            any_of(clause.alternatives)
            for clause in self.terms.content
            if clause.is_phrase and not clause.alternatives[0].has_cjk
        ]
        forms = [form for word in self.words for form in word.forms if not form.has_cjk]
        if not forms:
            return None
        match = any_of(forms)
        if needed:
            together = " AND ".join(needed)
            match = f"(({together}) OR (({together}) AND {match}))"
        return self.terms.but(match)

    def match_trigrams(self) -> str | None:
        """Return what to ask the index of trigrams for, None if nothing."""
        if any(clause.is_phrase for clause in self.terms.content):
            return None
        return any_of(map(Term, found)) if (found := self.trigrams()) else None

    def trigrams(self) -> list[str]:
        """Return every three letters that follow each other in Chinese, Japanese or Korean."""
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
    """Return the query with its words as they are likely to be meant.

    `correcting` looks for other words in place of those that no message has.
    """
    corrected: dict[str, tuple[str, ...]] = {}
    words = []
    left = _MOST_TAKEN_APART
    for clause, word in zip(terms.content, words_of(terms.content), strict=True):
        forms = word.forms
        tokens = _plain_tokens(clause)
        if len(tokens) > 1 and left and not candidates.finds(word.forms[0].expression()):
            left -= 1
            forms += tuple(form for token in tokens for form in query_parser.forms(token))
        elif len(tokens) == 1 and correcting and len(corrected) < _MOST_CORRECTED:
            is_known = any(vocabulary.knows(form) for form in forms)
            if not is_known and (meant := vocabulary.meant_by(tokens[0])):
                corrected[word.name] = meant
                forms += tuple(map(Term, meant))
        words.append(Word(word.name, forms))
    return Relaxed(terms, tuple(words), corrected)


def _plain_tokens(clause: Clause) -> list[str]:
    """Return the tokens of a clause that is one plain word, nothing of any other."""
    term, *others = clause.alternatives
    if clause.is_phrase or others or term.is_prefix or term.has_cjk:
        return []
    return query_parser.TOKEN.findall(term.text)


def _forms(term: Term) -> tuple[Term, ...]:
    if term.is_prefix or term.has_cjk or len(tokens := query_parser.TOKEN.findall(term.text)) != 1:
        return (term,)
    return query_parser.forms(tokens[0])  # without the colon of `error:`


# ------------------------------------------------------------------------------------------------
# Puts what was found in order: tiers first, then scores, then one group for each conversation.
#
# A *tier* says how well a row fits: 0 it holds the query just as it was typed, 1 it holds all
# words of a short query, 2 all words but the numbers, 3 all others. Within a tier the *score*
# decides: the rank of the full-text index, of which what tools were given and gave has a fifth.
# Ranks of the smaller stores mean something else, for these are small; their score is how rare
# those words of the query are that they hold.
#
# A conversation stands where its best tier and its best score in that tier put it. The first ones
# gain by what they are about: words of the query in their title, and in their first two prompts.


VERBATIM, ALL_WORDS, RELAXED = "verbatim", "all_words", "relaxed"
"""Why a row is a hit."""

NEARLY_TIER, LAST_TIER = 2, 3
_TOOLS_COUNT = 0.2
_ABOUT = 40  # conversations that are looked at closer
_PROMPTS_COUNT = 0.5
_NEARLY_BEST = 0.6
_SHORT = 3  # content words of a query whose words should all be there
_SPECIAL = frozenset("_./:-\\@")
_PREFERRED = {
    **dict.fromkeys(("prompt", "command", "text", "queued_prompt", "bash_input"), 0),
    **dict.fromkeys(("agent_prompt", "agent_message"), 1),
    "compact_summary": 2,
    "thinking": 3,
}
_OTHERS, _TITLES = 4, 5  # a title is shown anyway


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its place among all."""

    candidate: Candidate
    why: str
    tier: int
    score: float

    @property
    def preference(self) -> int:
        """Among equals, what people and agents said comes first."""
        return preference(self.candidate)

    @property
    def is_thought(self) -> bool:
        """Has thinking all words? It never ranks above text with the same words."""
        return self.why != RELAXED and self.candidate.row["kind"] == "thinking"


@dataclass(slots=True)
class Cluster:
    """What was found in one conversation, best first; or one thing that belongs to none."""

    found: list[Ranked]
    score: float

    @property
    def tier(self) -> int:
        return self.found[0].tier

    @property
    def session_key(self) -> str | None:
        """The conversation, if it is one."""
        key: str | None = self.found[0].candidate.row["session_key"]
        return key

    @property
    def count(self) -> int:
        """How many hits there are; with all words, those that have them."""
        is_relaxed = self.found[0].why == RELAXED
        return sum(found.why != RELAXED or is_relaxed for found in self.found)


class Relevance:
    """How much of a query a short text holds: the sum of how rare its words are."""

    def __init__(self, words: Iterable[Word], rarity: Callable[[Word], float]) -> None:
        self._words = [([fold(form.text) for form in word.forms], rarity(word)) for word in words]

    def of(self, text: str | None) -> float:
        """Return the relevance of a text, 0 if it holds no word of the query."""
        folded = fold(text or "")
        return sum(weight for forms, weight in self._words if any(form in folded for form in forms))


def preference(candidate: Candidate) -> int:
    """Return the place of a row among equals: what people and agents said comes first."""
    if candidate.scope == TITLE:
        return _TITLES
    if candidate.is_message:
        return preference_of_kind(candidate.row["kind"])
    return _OTHERS if candidate.scope == TOOLS else 0


def preference_of_kind(kind: str) -> int:
    """Return the place of messages of this kind among equals."""
    return _PREFERRED.get(kind, _OTHERS)


def conversation(candidate: Candidate) -> object:
    """Return the identity of a conversation; a hit without one is its own."""
    return candidate.row["session_key"] or candidate.place


def is_special(literal: str) -> bool:
    """Is this a text to find just as it is: several words, an identifier, a path, a flag?"""
    inner = literal[1:] if literal[:1] == literal[:1].upper() else literal
    has_capitals = inner != inner.lower() and inner != inner.upper()
    return " " in literal or has_capitals or not _SPECIAL.isdisjoint(literal) or literal[:1] == "#"


def is_short(terms: Terms) -> bool:
    """Is the query so short that each of its words counts?"""
    return len(terms.clauses) == len(terms.content) <= _SHORT


def rank_exact(candidates: Iterable[Candidate], terms: Terms, relevance: Relevance) -> list[Ranked]:
    """Return the candidates that hold all words, with their places."""
    is_known = is_special(terms.literal)
    short, is_one = is_short(terms), len(terms.clauses) == 1
    ranked = []
    for number, candidate in enumerate(candidates):
        why = VERBATIM if is_known and candidate.row["verbatim"] else ALL_WORDS
        tier = LAST_TIER
        if why == VERBATIM:
            tier = 0
        elif short and (is_one or candidate.scope != TOOLS):
            tier = 1
        ranked.append(Ranked(candidate, why, tier, _score(candidate, number, relevance)))
    return ranked


def rank_relaxed(
    candidates: Iterable[Candidate],
    known: Iterable[Ranked],
    relevance: Relevance,
    *,
    is_nearly: bool = False,
) -> list[Ranked]:
    """Return the candidates that are not known already, with their places.

    What holds nearly all words (`is_nearly`) stands before what holds some.
    """
    places = {found.candidate.place for found in known}
    new = {c.place: (n, c) for n, c in enumerate(candidates) if c.place not in places}
    tier = NEARLY_TIER if is_nearly else LAST_TIER
    return [Ranked(c, RELAXED, tier, _score(c, number, relevance)) for number, c in new.values()]


def clusters(
    connection: sqlite3.Connection, found: Iterable[Ranked], relevance: Relevance
) -> list[Cluster]:
    """Return what was found by conversation, best first."""
    by_key: dict[object, list[Ranked]] = {}
    known: dict[tuple[str, int], Ranked] = {}
    for one in found:
        known.setdefault(one.candidate.place, one)
    for one in known.values():
        by_key.setdefault(conversation(one.candidate), []).append(one)
    newest = sorted(map(_cluster, by_key.values()), key=_time, reverse=True)
    grouped = sorted(newest, key=_order)
    first = grouped[:_ABOUT]
    told = _told(connection, first)
    for cluster in first:
        cluster.score += _about(cluster, relevance, told)
    return sorted(first, key=_order) + grouped[_ABOUT:]


def in_one_list(groups: Sequence[Cluster]) -> list[Ranked]:
    """Return everything that was found, best first.

    In each tier the best of each conversation stands before the others, so that the first hits
    come from as many conversations as possible.
    """
    firsts = [cluster.found[0] for cluster in groups]
    others = chain.from_iterable(cluster.found[1:] for cluster in groups)
    rest = sorted(others, key=lambda found: (-found.score, found.candidate.row["id"]))
    return sorted([*firsts, *rest], key=lambda found: (found.tier, found.is_thought))


def _score(candidate: Candidate, number: int, relevance: Relevance) -> float:
    """Return the score; what has no rank is in order already."""
    rank = candidate.row["rank"]
    if candidate.row["text"] is not None:
        score = relevance.of(candidate.row["text"])
    else:
        score = -rank if rank is not None else 1 / (number + 1)
    return float(score) * (_TOOLS_COUNT if candidate.scope == TOOLS else 1)


def _cluster(found: list[Ranked]) -> Cluster:
    tier = min(one.tier for one in found)
    best = max(one.score for one in found if one.tier == tier)

    def order(one: Ranked) -> tuple[int, bool, bool, int, float, int]:
        is_far = one.score < _NEARLY_BEST * best
        preference = 0 if is_far else one.preference
        return (
            one.tier, one.is_thought, is_far, preference, -one.score, one.candidate.row["id"],
        )  # fmt: skip

    return Cluster(sorted(found, key=order), best)


def _order(cluster: Cluster) -> tuple[int, bool, float]:
    return cluster.tier, cluster.found[0].is_thought, -cluster.score


def _time(cluster: Cluster) -> str:
    """Return when its best hit was said: among equals, the newest comes first."""
    return cluster.found[0].candidate.row["timestamp"] or ""


def _told(
    connection: sqlite3.Connection, groups: Iterable[Cluster]
) -> dict[str, tuple[str | None, str | None]]:
    """Return the given title and the first prompts of conversations by their keys."""
    keys = json.dumps([cluster.session_key for cluster in groups if cluster.session_key])
    rows = sql.ask(connection, "pages/first_prompts", keys=keys)
    return {row["session_key"]: (row["title"], row["prompts"]) for row in rows}


def _about(
    cluster: Cluster, relevance: Relevance, told: dict[str, tuple[str | None, str | None]]
) -> float:
    title, prompts = told.get(cluster.session_key or "", (None, None))
    return relevance.of(title) + _PROMPTS_COUNT * relevance.of(prompts)


# ------------------------------------------------------------------------------------------------
# A search for an FTS5 expression, which the user wrote: ranked by the indexes alone.
#
# What people and agents said stands before what tools gave. Ranks of two indexes cannot be
# compared, so the first hit of a smaller store stands after the fourth message, its second after
# the eighth, and so on.


_MESSAGES_PER_STORE_HIT = 4
_SYNTAX_ERRORS = (
    "fts5:", "no such column", "unterminated string", "unknown special query", "malformed MATCH",
)  # fmt: skip


def raw_rows(candidates: Candidates, expression: str, limit: int, *, tools: bool) -> list[Ranked]:
    """Return what an expression finds, best first; raise UsageError if it is none."""
    listed: list[Ranked] = []
    for scope in (TOOLS,) if tools else (SAID, TOOLS):
        messages = _messages(candidates, expression, scope, limit)
        stores = [
            iter(_store(candidates, what, expression, scope, limit))
            for what in candidates.stores(scope)
        ]
        mixed = _mixed(iter(messages), stores)
        listed += [Ranked(candidate, ALL_WORDS, 0, 0.0) for candidate in mixed]
    return listed


def in_stores(candidates: Candidates, expression: str, limit: int) -> list[Candidate]:
    return [
        candidate
        for scope in (SAID, TOOLS)
        for what in candidates.stores(scope)
        for candidate in _store(candidates, what, expression, scope, limit)
    ]


def raw_clusters(listed: Iterable[Ranked]) -> list[Cluster]:
    """Return what was found by conversation, in the order of their first hits."""
    by_key: dict[object, Cluster] = {}
    for one in listed:
        by_key.setdefault(conversation(one.candidate), Cluster([], 0.0)).found.append(one)
    return list(by_key.values())


def _messages(candidates: Candidates, expression: str, scope: str, limit: int) -> list[Candidate]:
    try:
        return candidates.raw(expression, scope, limit)
    except sqlite3.OperationalError as error:
        if not _is_syntax(error):
            raise
        raise UsageError(
            f"--raw: not a valid FTS5 expression ({_detail(error)}). "
            "Quote words with punctuation in double quotes, or leave out --raw."
        ) from error


def _store(
    candidates: Candidates, what: str, expression: str, scope: str, limit: int
) -> list[Candidate]:
    try:
        return candidates.in_store(what, expression, scope, limit)
    except sqlite3.OperationalError as error:
        # The expression was good for messages: it names a column that this store lacks.
        if not _is_syntax(error):
            raise
        return []


def _mixed(messages: Iterator[Candidate], stores: list[Iterator[Candidate]]) -> Iterator[Candidate]:
    """Yield four messages, one hit of each store, four messages, and so on."""
    while True:
        some = [*islice(messages, _MESSAGES_PER_STORE_HIT)]
        some += [hit for store in stores for hit in islice(store, 1)]
        if not some:
            return
        yield from some


def _detail(error: sqlite3.OperationalError) -> str:
    detail = str(error).removeprefix("fts5: ")
    return detail.replace('near ")"', "at its end")  # the bracket is that of the scope


def _is_syntax(error: sqlite3.OperationalError) -> bool:
    return str(error).startswith(_SYNTAX_ERRORS)


# ------------------------------------------------------------------------------------------------
# All hits of a search, counted: how many there are, and how many a narrower search would have.
#
# A search lists its best hits. Here are all of them, without their texts, in *parts*: hits of one
# conversation that agree in everything that a search can be limited to. What a value of a facet
# counts is what remains of these parts where others are left out, so the two can never differ.
#
# What holds all words is asked for in full (`Hits.of`). What lacks a word, or has it only where a
# line begins inside JSON, are the closest candidates of the search, and these are all there is of
# them (`Hits.add`).


MOST = 30_000
"""Messages that are counted; of more, the newest."""

FACETS = ("kind", "project", "source", "model", "role", "branch", "month")
"""What a search can be narrowed to, by a value that is offered."""

_MOST_OF_STORE = 2_000
_MOST_COUNTED_TITLES = 2_000
_WITH_OWN_KIND = ("inbox", "document")
"""Stores that can be filtered by their name and by their own kinds."""

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FacetHits:
    """Hits of one conversation that agree in everything that a search can be limited to."""

    owner: object
    """The conversation; what belongs to none, and with `apart` every hit, is one of its own."""
    session_key: str | None
    own_kind: str | None
    """A kind that the filter takes, too, besides the one that the facet has of them."""
    values: Mapping[str, str]
    """Their value of each facet that they have one of. A project is its id."""
    hits: int
    newest: str
    places: tuple[Place, ...]
    """The newest and the oldest."""
    preference: int

    def fits(self, wanted: Mapping[str, frozenset[str]]) -> bool:
        """Have they one of the wanted values of each facet, and of `session`?"""
        return all(not values.isdisjoint(self._all(name)) for name, values in wanted.items())

    def _all(self, name: str) -> Iterable[str]:
        found = self.session_key if name == "session" else self.values.get(name)
        return (found or "", self.own_kind or "") if name == "kind" else (found or "",)


@dataclass(slots=True)
class Hits:
    """All hits of a search."""

    parts: list[FacetHits]
    rows: dict[Place, Candidate]
    """Those that are no messages, and those that were added."""
    is_cut: bool = False
    """Are there more than were counted?"""
    _apart: bool = False

    @classmethod
    def of(
        cls, candidates: Candidates, terms: Terms, raw: str | None = None, *, apart: bool = False
    ) -> Hits:
        """Return whatever holds all words, or fits the expression `raw`.

        With `apart`, each hit is a part.
        """
        candidates.shown = _MOST_OF_STORE
        others: list[Candidate] = []
        counted: list[sqlite3.Row] = []
        if raw is not None:
            counted = candidates.counted_raw(raw, MOST, apart=apart)
            others = in_stores(candidates, raw, _MOST_OF_STORE)
        elif terms.clauses:
            counted = candidates.counted(terms, MOST, apart=apart)
            others = candidates.with_all_but_messages(terms, _MOST_COUNTED_TITLES)
        hits = cls([_part(row) for row in counted], {}, candidates.is_cut, apart)
        hits.add(candidates.connection, others)
        return hits

    def add(self, connection: sqlite3.Connection, found: Iterable[Candidate]) -> None:
        new = {one.place: one for one in found if one.place not in self.rows}
        self.rows |= new
        self.parts += parts_of(connection, new.values(), apart=self._apart).values()


def parts_of(
    connection: sqlite3.Connection, found: Iterable[Candidate], *, apart: bool = False
) -> dict[Place, FacetHits]:
    known = {one.place: one for one in found}
    ids = [id_ for what, id_ in known if what == "message"]
    rows = sql.ask(connection, "pages/hit_facts", ids=json.dumps(ids)) if ids else ()
    facts = {("message", row["id"]): row for row in rows}
    return {place: _part_of(one, facts.get(place), apart=apart) for place, one in known.items()}


def owner_of(candidate: Candidate, apart: bool) -> object:
    """Return the identity of the conversation of a row; with `apart`, the row itself."""
    return candidate.place if apart else conversation(candidate)


def counts(parts: Iterable[FacetHits]) -> dict[str, Counter[str]]:
    """Return how many owners each value of a facet has: as many as a search for it finds."""
    owners: dict[str, dict[str, set[object]]] = {name: {} for name in FACETS}
    others: dict[str, set[object]] = {}
    for part in parts:
        for name, value in part.values.items():
            owners[name].setdefault(value, set()).add(part.owner)
        if part.own_kind:
            others.setdefault(part.own_kind, set()).add(part.owner)
    for value, found in owners["kind"].items():  # a kind of messages may be one of an inbox, too
        found |= others.get(value, set())
    return {
        name: Counter({value: len(found) for value, found in values.items()})
        for name, values in owners.items()
        if values
    }


def _part(row: sqlite3.Row) -> FacetHits:
    last = "message", row["last_id"]
    project = row["project_id"]
    values = {
        "kind": row["kind"],
        "project": None if project is None else str(project),
        "source": row["source"],
        "model": row["model"],
        "role": row["role"],
        "branch": row["branch"],
        "month": row["month"],
    }
    return FacetHits(
        owner=row["session_key"] if row["apart"] is None else last,
        session_key=row["session_key"],
        own_kind=None,
        values={name: value for name, value in values.items() if value},
        hits=row["hits"],
        newest=row["newest"] or "",
        places=(last,) if row["hits"] == 1 else (last, ("message", row["first_id"])),
        preference=preference_of_kind(row["kind"]),
    )


def _part_of(candidate: Candidate, facts: sqlite3.Row | None, *, apart: bool) -> FacetHits:
    """Return a row as a part; `facts` are what is only known of messages."""
    row = candidate.row
    project = row["project_id"]
    values = {
        "kind": row["kind"] if candidate.is_message else row["what"],
        "project": None if project is None else str(project),
        "source": row["source"],
        "model": facts["model"] if facts else None,
        "role": facts["role"] if facts else None,
        "branch": facts["branch"] if facts else None,
        "month": _month(row["timestamp"]),
    }
    return FacetHits(
        owner=owner_of(candidate, apart),
        session_key=row["session_key"],
        own_kind=row["kind"] if row["what"] in _WITH_OWN_KIND else None,
        values={name: value for name, value in values.items() if value},
        hits=1,
        newest=row["timestamp"] or "",
        places=(candidate.place,),
        preference=preference(candidate),
    )


def _month(time: str | None) -> str | None:
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m}" if time else None


# ------------------------------------------------------------------------------------------------
# Hits: what a search found in one place, with all that a reader or a program needs of it.


class Marker:
    """Shows the piece of a text that holds most of what was searched for."""

    def __init__(
        self,
        terms: Terms,
        relaxed: Relaxed | None = None,
        clean: Callable[[str], str] | None = None,
    ) -> None:
        """`clean` is called with each text before a piece of it is chosen, which may begin within
        what has to be masked."""
        self._terms = terms
        self._clean = clean
        self._all = Places(terms.words)
        self._parts = terms.parts()
        forms = [form for word in relaxed.words for form in word.forms] if relaxed else []
        self._any = Places(form for form in forms if not form.has_cjk)
        self._any_parts = relaxed.trigrams() if relaxed else []
        self._words = [
            (word.name, [matches.fold(form.text) for form in word.forms])
            for word in (relaxed.words if relaxed else ())
        ]
        self.present: set[str] = set()
        """Names of the words that the texts held so far."""

    def snippet(self, found: Ranked, text: str) -> str:
        """Return the piece of the text of a hit, its matches marked."""
        text = self._clean(text) if self._clean is not None else text
        if found.candidate.scope == TITLE:
            return matches.around(text, self._spans(found, text), len(text))
        return matches.around(text, self._spans(found, text))

    def look(self, text: str) -> None:
        """Note which words of the query a text holds: none of those is missing."""
        folded = matches.fold(text)
        self.present.update(
            name for name, forms in self._words if any(form in folded for form in forms)
        )

    def _spans(self, found: Ranked, text: str) -> Sequence[Span]:
        if found.why == RELAXED:
            self.look(text)
            spans = self._any.some(text)
            return spans + matches.substrings_in(text, self._any_parts)
        if found.why == VERBATIM and (spans := matches.substrings_in(text, [self._terms.literal])):
            return spans
        if self._terms.has_cjk and (
            found.candidate.scope == TITLE or not found.candidate.is_message
        ):
            return matches.substrings_in(text, self._terms.texts())
        return self._all.some(text) + matches.substrings_in(text, self._parts)


def read_hits(
    connection: sqlite3.Connection,
    found: Iterable[Ranked],
    marker: Marker,
    *,
    with_resume: bool = True,
) -> dict[tuple[str, int], Hit]:
    """Read what is shown of these; `with_resume` needs the sources, which take long to import."""
    listed = {one.candidate.place: one for one in found}
    places = [
        [*place, one.candidate.row["session_key"], one.candidate.row["source"]]
        for place, one in listed.items()
    ]
    keys: dict[str, str] = {}
    hits = {}
    for details in sql.ask(connection, "pages/hits", places=json.dumps(places)):
        one = listed[details["what"], details["id"]]
        hit = _hit(connection, one, details, marker, keys)
        hits[one.candidate.place] = _with_resume(hit, details) if with_resume else hit
    return hits


def with_lines(connection: sqlite3.Connection, hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits with the numbers of their lines, which are counted in the archive."""
    known = list(hits)
    places: dict[tuple[str, int], tuple[int, int]] = {}
    for hit in known:
        if hit.what == "message":
            row = sql.ask(connection, "pages/message_text", id=hit.id).fetchone()
        else:
            row = sql.ask(connection, "pages/entry", what=hit.what, id=hit.id).fetchone()
            if row is not None and row["channel"] != "transcript":
                continue  # a file of its own
        if row is not None:
            places[hit.what, hit.id] = (row["file_id"], row["byte_offset"])
    names = refs.Names(connection)  # knows the lines of one file at a time
    lines = {place: names.line(*place) for place in sorted({*places.values()})}
    counted = [
        replace(hit, line=lines[place])
        if (place := places.get((hit.what, hit.id))) is not None
        else hit
        for hit in known
    ]
    found = refs.of_hits(connection, counted)
    return [replace(hit, ref=ref) for hit, ref in zip(counted, found, strict=True)]


def _hit(
    connection: sqlite3.Connection,
    found: Ranked,
    details: sqlite3.Row,
    marker: Marker,
    keys: dict[str, str],
) -> Hit:
    row = found.candidate.row
    session_key, agent_key = row["session_key"], details["agent_key"]
    if agent_key and agent_key not in keys:
        keys[agent_key] = short_agent_key(connection, agent_key)
    elif session_key and session_key not in keys:
        keys[session_key] = short_key(connection, session_key)
    key = keys.get(agent_key or session_key or "")
    text = details["text"]
    if row["what"] not in ("message", "session"):
        entry = sql.ask(connection, "pages/entry", what=row["what"], id=row["id"]).fetchone()
        text = entry["words"] if entry is not None else ""  # a sync may just have replaced it
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
        snippet=marker.snippet(found, text or ""),
        why=found.why,
        file=row["file"],
        line=None,
        byte=row["byte_offset"],
        resume=None,
        session_key=session_key,
        id=row["id"],
        what=row["what"],
        scope=found.candidate.scope,
        source=row["source"],
        subagent=row["subagent"],
        tool=row["tool"],
    )


def _with_resume(hit: Hit, details: sqlite3.Row) -> Hit:
    session = {"kind": details["session_kind"], "source": hit.source, "cwd": hit.cwd,
               "project_path": details["project_path"], "session_key": hit.session_key}  # fmt: skip
    return replace(hit, resume=resume_line(session, is_there=bool(details["has_transcript"])))


# ------------------------------------------------------------------------------------------------
# What a search found: by conversation, as one list, and how the query was relaxed.


@dataclass(frozen=True, slots=True)
class Group:
    """What was found in one conversation, or one thing that belongs to none."""

    session_key: str | None
    title: str | None
    hits: tuple[Hit, ...]
    """The best of them, best first; at least one."""
    more: int
    """Further hits."""

    @property
    def best(self) -> Hit:
        return self.hits[0]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """How the query was relaxed."""

    has_exact: bool
    """There are hits that hold all words, too."""
    words: tuple[str, ...]
    """The words of the query that count."""
    missing: tuple[str, ...]
    """Words of the query that nothing holds which the filters leave."""
    corrected: dict[str, tuple[str, ...]]
    """Words that no message has, with those that were looked for in their place."""

    @property
    def is_said(self) -> bool:
        """Is it said of hits that they are the closest ones, rather than of corrected words?"""
        return self.has_exact or len(self.words) > 1 or not (self.corrected or self.missing)

    def lines(self) -> list[str]:
        """Return what a reader should know, in a sentence each."""
        said = []
        for word, meant in self.corrected.items():
            others = f" and {len(meant) - 3} more" if len(meant) > 3 else ""
            said.append(f"Showing results for {', '.join(meant[:3])}{others} instead of {word}.")
        if self.missing:
            said.append(f"Not found: {', '.join(self.missing)}.")
        if not self.has_exact and len(self.words) > 1:
            said.append("No message contains all words. Closest matches:")
        elif not self.has_exact and not said:
            said.append(f"No message contains {self.words[0]}. Closest matches:")
        return said


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, by conversation and as one list."""

    groups: tuple[Group, ...]
    hits: tuple[Hit, ...]
    """The best hits, best first, of as many conversations as possible."""
    conversations: int
    """How many were found, with what belongs to none."""
    count: int
    """How many hits were found; by conversation, without those that lack a word where others of it
    have all."""
    is_cut: bool
    """There may be more of both: the work was limited."""
    relaxation: Relaxation | None
    notes: tuple[str, ...]
    """What of the query could not be searched for, or why nothing was found."""
    nothing: Nothing | None = None
    """Without which filters there would be something, and which words are nowhere."""

    def said(self) -> list[str]:
        """Return what a reader should know before the hits, in a sentence each."""
        return [
            *self.notes,
            *(self.relaxation.lines() if self.relaxation else ()),
            *(self.nothing.lines("conversation") if self.nothing else ()),
        ]

    def relaxed(self) -> dict[str, object] | None:
        """Return for programs how the query was relaxed; None if it was not."""
        if self.relaxation is None:
            return None
        facts = asdict(self.relaxation)
        return {name: facts[name] for name in ("missing", "corrected", "has_exact")}


# ------------------------------------------------------------------------------------------------
# From a query to what it finds, in order: exact first, then relaxed.
#
# 1. The query is taken apart (`query_parser`). What it says of itself (`kind:plan`) joins the
#    filters, which limit every question that follows.
# 2. *Exact.* Whatever holds all words: what people and agents said, the smaller stores, titles that
#    were given to conversations; then what tools were given and gave, and calls in which a word
#    begins a line inside JSON. Each of these questions has a limit (`candidates`).
# 3. What was found gets its place (`ranking`): rows that hold the query just as it was typed stand
#    first, rows with all words of a short query second.
# 4. *Relaxed.* If those are of few conversations, a second round asks for rows with any of the
#   words:
#    stop words left out, endings taken off, words that do not exist corrected (`relaxing`). It asks
#    tools only if what was said is still of few conversations. Of one word that was found just as
#   it
#    was typed, nothing else is looked for. What holds everything but the numbers of the query comes
#    first, wherever it stands: an error message is in what a tool gave.
# 5. Everything is grouped by conversation. The conversations that are about it gain.
# 6. Only the hits that are shown are read: their texts may be long (`hits`, `search`).
#
# Words of three letters and more in Chinese, Japanese and Korean are relaxed to their trigrams.


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
    listed: list[Ranked]
    """The same hits as one list."""
    question: Relaxed | None
    """How the query was relaxed, if it was."""
    marker: Marker
    note: str | None = None
    nothing: Nothing | None = None
    """Why nothing was found."""

    def beyond(self) -> list[Ranked]:
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
        listed = raw_rows(candidates, expression, max(limit, _MOST), tools=tools)
        groups = raw_clusters(listed)

        def count(other: Filters) -> int:
            anything = raw_rows(Candidates(connection, other), expression, MOST, tools=tools)
            return len(raw_clusters(anything))

        why = None if groups else nothing(filters, count)
        marker = Marker(terms, clean=clean)
        return Findings(candidates, terms, groups, listed, None, marker, nothing=why)
    terms = query_parser.parse(query)
    note = None
    if terms.without and not terms.fields and '-"' not in query:  # no command has -"a phrase"
        typed = _as_it_stands(connection, query, filters)
        if typed is not None:
            note = f"Nothing is excluded: a message contains -{terms.without[0].text} as it stands."
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
        """Are there enough conversations to fill the page? Then tool output would not be seen."""
        return len(set(map(conversation, found))) >= max(ENOUGH, self._limit)

    def _is_to_be_relaxed(self, found: list[Ranked]) -> bool:
        if not self._terms.clauses or not self._closest:
            return False
        if len(self._terms.clauses) == 1 and any(one.why == VERBATIM for one in found):
            return False
        if self._candidates.is_cut and is_short(self._terms):
            return False  # what was not read has all words, too
        return _conversations(one for one in found if one.tier < LAST_TIER) < ENOUGH

    def _but_for_numbers(self, exact: list[Ranked], relevance: Relevance) -> list[Ranked]:
        terms = self._terms.without_numbers()
        if terms is None or exact:
            return []
        scopes = (self._candidates.with_all(terms, scope, self._most) for scope in self._scopes)
        candidates = [candidate for found in scopes for candidate in found]
        return rank_relaxed(candidates, exact, relevance, is_nearly=True)

    def _relaxed(
        self, question: Relaxed, exact: list[Ranked], relevance: Relevance
    ) -> list[Ranked]:
        found: list[Ranked] = []
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


def _conversations(found: Iterable[Ranked]) -> int:
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


# ------------------------------------------------------------------------------------------------
# The answer to a query: the best conversations with their best hits, and the best hits.


def search(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 10,
    tools: bool = False,
    raw: bool = False,
    shown: int = 3,
    closest: bool = True,
    clean: Callable[[str], str] | None = None,
    with_resume: bool = True,
) -> SearchResult:
    """Return the best `limit` conversations, `shown` hits of each, and the best `limit` hits.

    All else is as in `find`.
    """
    found = find(
        connection, query, filters,
        limit=limit, tools=tools, raw=raw, closest=closest, clean=clean,
    )  # fmt: skip
    answer = _answer(found, limit, shown, with_resume)
    if raw:
        return answer
    for group in answer.groups:
        found.marker.look(group.title or "")
    return replace(answer, relaxation=found.relaxation(), notes=found.notes(answer.count))


def _answer(found: Findings, limit: int, shown: int, with_resume: bool) -> SearchResult:
    first = found.groups[:limit] if shown else []
    read = [one for cluster in first for one in cluster.found[:shown]]
    best = found.listed[:limit]
    hits = read_hits(
        found.candidates.connection, [*read, *best], found.marker, with_resume=with_resume
    )
    return SearchResult(
        tuple(_group(cluster, hits, shown) for cluster in first),
        tuple(hits[one.candidate.place] for one in best if one.candidate.place in hits),
        len(found.groups),
        sum(cluster.count for cluster in found.groups) if shown else len(found.listed),
        found.candidates.is_cut,
        None,
        (),
        found.nothing,
    )


def _group(cluster: Cluster, hits: dict[tuple[str, int], Hit], shown: int) -> Group:
    """Return a group with its best hits; what says the same as another is not shown again."""
    distinct: dict[str, Hit] = {}
    for one in cluster.found[: min(shown, cluster.count)]:
        if hit := hits.get(one.candidate.place):
            distinct.setdefault(hit.snippet, hit)
    best = tuple(distinct.values())
    return Group(cluster.session_key, best[0].title, best, cluster.count - len(best))
