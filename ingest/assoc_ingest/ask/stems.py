"""Takes English endings off a word: of a plural, -ed and -ing, and no others.

The index holds words as they are written, and a prefix of a word finds all that begin with it. So
what is left of a word need not be a word: `cach` finds cache, caches, cached and caching.
"""

from __future__ import annotations

from .terms import Term

_LEAST = 4  # letters of a prefix; what begins with fewer is too much
_VOWELS = frozenset("aeiouy")
_ENDINGS = ("ing", "ed", "es", "s")


def forms(word: str) -> tuple[Term, ...]:
    """Return the terms that find a word with any ending; first, what finds the word itself."""
    if not (word.isascii() and word.isalpha()) or len(word) < _LEAST - 1:
        return (Term(word),)
    stem = _stem(word.lower())
    if len(stem) >= _LEAST:
        return (Term(stem, is_prefix=True),)
    return tuple(Term(form) for form in dict.fromkeys((word.lower(), stem, f"{stem}s")))


def _stem(word: str) -> str:
    if len(word) < _LEAST:
        return word
    if word.endswith("ies"):
        return _without_y(word[:-3] + "y")
    ending = next((ending for ending in _ENDINGS if word.endswith(ending)), "")
    stem = word.removesuffix(ending)
    if ending == "es" and not stem.endswith(("s", "x", "z", "ch", "sh")):
        stem += "e"
    if (ending == "s" and stem.endswith(("s", "u", "i"))) or not _is_word(stem):
        return word
    if ending in ("ing", "ed") and _is_doubled(stem):
        stem = stem[:-1]
    return _without_e(_without_y(stem))


def _is_word(stem: str) -> bool:
    return len(stem) >= _LEAST - 1 and not _VOWELS.isdisjoint(stem)


def _is_doubled(stem: str) -> bool:
    """Does it end as in `runn`, of running? `add`, `call` and `see` are words."""
    return len(stem) >= _LEAST and stem[-1] == stem[-2] and stem[-1] not in "lszaeiou"


def _without_e(stem: str) -> str:
    return stem[:-1] if stem.endswith("e") and len(stem) > _LEAST else stem


def _without_y(stem: str) -> str:
    has_plural_in_ies = stem.endswith("y") and stem[-2] not in _VOWELS and len(stem) > _LEAST
    return stem[:-1] if has_plural_in_ies else stem
