"""Whether a text looks as if a machine had drawn it at random, or like words of a person."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from math import log2

_made_up = re.compile(
    r"example|sample|placeholder|redacted|dummy|fake|your|change|planted|xxxx|00000|11111|12345"
    r"|abcde|aaaaa|deadbeef|cafebabe|foobar",
    re.IGNORECASE,
)
_weak = re.compile(
    r"pass|secret|test|admin|user|demo|token|key|default|local|qwert|hunter|letmein|login|root",
    re.IGNORECASE,
)
_value = re.compile(r"[A-Za-z0-9_+/=.~!@#$%^&*:?-]{8,400}").fullmatch
_letters = re.compile(r"[a-z]{4,}+|[A-Z]{4,}+|[A-Z][a-z]{3,}+")
_of_code = re.compile(
    r"[A-Za-z_$][\w$]*+(?:(?:\.|::|->)[A-Za-z_$][\w$]*+)++\??|[A-Za-z_]++[:?].*"
).fullmatch
_uuid = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE).fullmatch
_LOOKED_AT = 400  # letters: more say nothing new


def is_random(text: str) -> bool:
    """Does what follows the prefix of a credential look random?"""
    text = text[:_LOOKED_AT]
    if _made_up.search(text) is not None or not _is_mixed(text):
        return False
    return any(map(str.isdigit, text)) or not _is_wordy(text)


def is_secret_value(text: str) -> bool:
    """Does a value that a name calls a credential look like one?

    Short ones have letters of both cases and digits or signs; long ones are no words.
    """
    if _value(text) is None or _made_up.search(text) is not None:
        return False
    if "://" in text or text[0] in "/.~#@&" or _of_code(text) or _uuid(text):
        return False
    digits = sum(map(str.isdigit, text))
    if not digits or digits == len(text) or not _is_mixed(text) or _is_wordy(text):
        return False
    if len(text) >= 16:
        return digits >= 2 and _turns(text) * 5 >= len(text)
    signs = any(not letter.isalnum() for letter in text)
    cases = any(map(str.islower, text)) + any(map(str.isupper, text))
    return cases + signs >= 2 and _turns(text) >= 3 and _weak.search(text) is None


def _is_mixed(text: str) -> bool:
    """Has it as many different letters as if drawn at random, and are they in no order?"""
    count = len(text)
    if count < 8:
        return False
    entropy = -sum(n / count * log2(n / count) for n in Counter(text).values())
    steps = sum(ord(b) - ord(a) == 1 for a, b in itertools.pairwise(text))
    return entropy >= min(3.0, 0.7 * log2(count)) and steps * 4 <= count


def _turns(text: str) -> int:
    """Return how often the class of letters changes."""
    classes = [
        "d" if c.isdigit() else "l" if c.islower() else "u" if c.isupper() else "s" for c in text
    ]
    return sum(a != b for a, b in itertools.pairwise(classes))


def _is_wordy(text: str) -> bool:
    """Is half of it runs of letters with as many vowels as words have?"""
    words = 0
    for run in _letters.findall(text):
        vowels = sum(letter in "aeiouAEIOU" for letter in run)
        words += len(run) if 0.25 * len(run) <= vowels <= 0.6 * len(run) else 0
    return words * 2 >= len(text)
