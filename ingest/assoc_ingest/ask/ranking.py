"""Puts what was found in order: tiers first, then scores, then one group for each conversation.

A *tier* says how well a row fits: 0 it holds the query just as it was typed, 1 it holds all words
of a short query, 2 all words but the numbers, 3 all others. Within a tier the *score* decides: the
rank of the full-text index, of which what tools were given and gave has a fifth. Ranks of the
smaller stores mean something else, for these are small; their score is how rare those words of the
query are that they hold.

A conversation stands where its best tier and its best score in that tier put it. The first ones
gain by what they are about: words of the query in their title, and in their first two prompts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from .. import sql
from .candidates import Candidate
from .expressions import TITLE, TOOLS
from .matches import fold
from .relaxing import Word
from .terms import Terms

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
class Found:
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
        """Has thinking all words? It never stands before what was said and has them as well."""
        return self.why != RELAXED and self.candidate.row["kind"] == "thinking"


@dataclass(slots=True)
class Cluster:
    """What was found in one conversation, best first; or one thing that belongs to none."""

    found: list[Found]
    score: float

    @property
    def tier(self) -> int:
        """The best tier of what was found."""
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
    """Return what tells a conversation from others; what belongs to none is one of its own."""
    return candidate.row["session_key"] or candidate.place


def is_special(literal: str) -> bool:
    """Is this a text to find just as it is: several words, an identifier, a path, a flag?"""
    inner = literal[1:] if literal[:1] == literal[:1].upper() else literal
    has_capitals = inner != inner.lower() and inner != inner.upper()
    return " " in literal or has_capitals or not _SPECIAL.isdisjoint(literal) or literal[:1] == "#"


def is_short(terms: Terms) -> bool:
    """Is the query so short that each of its words counts?"""
    return len(terms.clauses) == len(terms.content) <= _SHORT


def rank_exact(candidates: Iterable[Candidate], terms: Terms, relevance: Relevance) -> list[Found]:
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
        ranked.append(Found(candidate, why, tier, _score(candidate, number, relevance)))
    return ranked


def rank_relaxed(
    candidates: Iterable[Candidate],
    known: Iterable[Found],
    relevance: Relevance,
    *,
    is_nearly: bool = False,
) -> list[Found]:
    """Return the candidates that are not known already, with their places.

    What holds nearly all words (`is_nearly`) stands before what holds some.
    """
    places = {found.candidate.place for found in known}
    new = {c.place: (n, c) for n, c in enumerate(candidates) if c.place not in places}
    tier = NEARLY_TIER if is_nearly else LAST_TIER
    return [Found(c, RELAXED, tier, _score(c, number, relevance)) for number, c in new.values()]


def clusters(
    connection: sqlite3.Connection, found: Iterable[Found], relevance: Relevance
) -> list[Cluster]:
    """Return what was found by conversation, best first."""
    by_key: dict[object, list[Found]] = {}
    known: dict[tuple[str, int], Found] = {}
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


def in_one_list(groups: Sequence[Cluster]) -> list[Found]:
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


def _cluster(found: list[Found]) -> Cluster:
    tier = min(one.tier for one in found)
    best = max(one.score for one in found if one.tier == tier)

    def order(one: Found) -> tuple[int, bool, bool, int, float, int]:
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
