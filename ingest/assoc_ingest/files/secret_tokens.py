"""Finds credentials by the prefix that all of their kind have, at the speed of `bytes.find`.

Runs of letters that a token may have are found in the shape of the text. Only where a run begins,
or goes on behind a dot or a dash, are its letters compared with the prefixes.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator

from . import secret_context as context
from .randomness import is_random
from .secret_rules import BY_PREFIX, Rule, Secret

_RUN = b"a" * 20  # an AWS access key has 20 letters, all others more
_IN_TOKEN = bytes(
    ord("a") if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_.-~") else ord(" ")
    for code in range(256)
)
token = re.compile(
    "|".join(
        f"({re.escape(prefix)}{rule.letters}{{{rule.least},}}+"
        + (f"|{re.escape(prefix)}{rule.letters}{{4,}}+(?=…?\\Z))" if rule.is_cut else ")")
        for prefix, rule in sorted(BY_PREFIX.items(), key=lambda item: -len(item[0]))
    )
).match
"""What begins with a prefix; `rule_of` tells which."""
_RULES = [rule for _, rule in sorted(BY_PREFIX.items(), key=lambda item: -len(item[0]))]
_STARTS: dict[str, tuple[str, ...]] = {"eyJ": ()}
for _prefix in sorted(BY_PREFIX, key=len, reverse=True):
    _STARTS[_prefix[:3]] = (*_STARTS.get(_prefix[:3], ()), _prefix)
_inner = re.compile(  # grouped by the first letter, which halves the time
    "[_.~-](?:"
    + "|".join(
        f"{re.escape(letter)}(?:"
        + "|".join(
            re.escape(start[1:]) for start in _STARTS if start[0] == letter and start != "eyJ"
        )
        + ")"
        for letter in sorted({prefix[0] for prefix in BY_PREFIX})
    )
    + ")"
)
_WITH_SLASHES = tuple(prefix.encode() for prefix in BY_PREFIX if "/" in prefix)
_base64 = re.compile(r"[A-Za-z0-9+/]*+").fullmatch


def rule_of(match: re.Match[str]) -> Rule:
    """Return the rule of what `token` has found."""
    return _RULES[(match.lastindex or 1) - 1]


def tokens(text: str, seen: bytes) -> Iterator[Secret]:
    """Yield the credentials with a prefix in a text, and in the same as bytes, in any order."""
    shape = seen.translate(_IN_TOKEN)
    start = shape.find(_RUN)
    while start >= 0:
        end = shape.find(b" ", start + len(_RUN))
        if end < 0:
            end = len(shape)
        low = start
        if text[low - 1 : low] == "\\" and text[low] in "nrtbf":
            low += 1  # behind an escaped line break
        if text[low : low + 3] in _STARTS or _inner.search(text, low, end) is not None:
            yield from _in_run(text, low, end)
        start = shape.find(_RUN, end)
    for prefix in _WITH_SLASHES:
        start = seen.find(prefix)
        while start >= 0:
            match = _begun(text, start)
            yield from () if match is None else _issued(text, match)
            start = seen.find(prefix, start + len(prefix) if match is None else match.end())


def _in_run(text: str, start: int, end: int) -> Iterator[Secret]:
    if text.startswith("eyJ", start):
        yield from _web_token(text, start)
    while start < end:
        match = _begun(text, start)
        if match is not None:
            yield from _issued(text, match)
            start = match.end()
        inner = _inner.search(text, start, end)
        start = inner.start() + 1 if inner is not None else end


def _begun(text: str, start: int) -> re.Match[str] | None:
    """Return what begins at a place with a prefix, and goes on with its letters."""
    if any(text.startswith(prefix, start) for prefix in _STARTS.get(text[start : start + 3], ())):
        return token(text, start)
    return None


def _issued(text: str, match: re.Match[str]) -> Iterator[Secret]:
    rule = rule_of(match)
    prefix = next(prefix for prefix in rule.prefixes if match[0].startswith(prefix))
    start, end = match.start(), match.start() + len(match[0].rstrip("."))
    rest = text[start + len(prefix) : end]
    least, most = rule.lengths
    if not least <= len(rest) <= most or not is_random(rest):
        return
    behind = text[end : end + 1]
    if _is_letter(behind) or behind in ("_", "-"):
        return  # a longer word, which only begins like it
    before = text[start - 1 : start]
    if before in ("+", "/") and _is_in_base64(text, start):
        return
    if rule.is_word and _is_letter(before) and text[start - 2 : start - 1] != "\\":
        return
    yield Secret(rule.name, rule.kind, start, end, text[start:end], prefix)


def _is_letter(text: str) -> bool:
    return text.isascii() and text.isalnum()  # in Latin-1, half of a dash is a letter


def _is_in_base64(text: str, start: int) -> bool:
    """Do so many letters of base64 stand before it that it is in the middle of an image?"""
    return _base64(text[max(0, start - 60) : start]) is not None and start >= 60


def _web_token(text: str, start: int) -> Iterator[Secret]:
    match = context.jwt.match(text, start)
    if match is None:
        return
    parts = match[0].rstrip(".").split(".")
    if not (len(parts) in (3, 5) and len(parts[-1]) >= 16):
        return
    head, body = _decoded(parts[0]), _decoded(parts[1])
    if b'"alg"' not in head or b'"1234567890"' in body:  # that is the example of everybody
        return
    end = start + len(match[0].rstrip("."))
    yield Secret("jwt", "JWT", start, end, text[start:end], "eyJ")


def _decoded(part: str) -> bytes:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        return b""
