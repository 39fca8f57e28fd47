"""What a query asks for when not all of its words need to be there.

A word then stands for itself with any ending. A word that no message has stands for those that may
be meant by it. Stop words count for nothing. Phrases are still required, and what was excluded is
never found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import stems
from . import terms as known
from .candidates import Candidates
from .terms import TRIGRAM, Clause, Term, Terms, any_of
from .vocabulary import Vocabulary

_MOST_CORRECTED = 3  # words of a query; each may cost reading many words
_MOST_TAKEN_APART = 5


@dataclass(frozen=True, slots=True)
class Word:
    """What a query asks for in one place, and all terms that count as it."""

    name: str
    forms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A query of which a hit need not hold everything."""

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
    """Return the words of a query, each with its endings."""
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
            forms += tuple(form for token in tokens for form in stems.forms(token))
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
    return known.TOKEN.findall(term.text)


def _forms(term: Term) -> tuple[Term, ...]:
    if term.is_prefix or term.has_cjk or len(tokens := known.TOKEN.findall(term.text)) != 1:
        return (term,)
    return stems.forms(tokens[0])  # without the colon of `error:`
