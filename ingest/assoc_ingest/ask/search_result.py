"""What a search found: by conversation, as one list, and how the query was relaxed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from .filters import Nothing
from .hits import Hit


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
        """The hit for which it stands where it does."""
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

    def shown(self) -> list[Hit]:
        """Return the hits of the groups; where there are none, those of the list."""
        return [hit for group in self.groups for hit in group.hits] or list(self.hits)

    def with_hits(self, hits: Iterable[Hit]) -> SearchResult:
        """Return the answer with some of its hits in place of those for the same rows."""
        known = {(hit.what, hit.id): hit for hit in hits}

        def newer(old: Iterable[Hit]) -> tuple[Hit, ...]:
            return tuple(known.get((hit.what, hit.id), hit) for hit in old)

        groups = tuple(replace(group, hits=newer(group.hits)) for group in self.groups)
        return replace(self, groups=groups, hits=newer(self.hits))
