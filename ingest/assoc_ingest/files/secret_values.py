"""Finds credentials by what stands around them: the lines of a key block, a name, a header.

A value counts only if it looks random: `password=changeme` is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import secret_context as context
from .randomness import is_random, is_secret_value
from .secret_rules import NAMES, Secret

_LOOKED_AT = 1024  # bytes behind a name: each place costs no more than that
_NAMED_BY = (b"pass", b"pwd", b"secret", b"token", b"credential")
_KEYS = tuple(name[:-3].encode() for name in NAMES if name.endswith("key"))
_OTHER_TOKENS = re.compile(
    r"(?:page|next|prev|continuation|sync|cursor|csrf|xsrf|cancel\w*|design|syntax)[_-]?\Z",
    re.IGNORECASE,
)
"""What stands before `token` where it is no credential."""
_key_line = re.compile(r"[A-Za-z0-9+/=]{16,}+")
_line_break = re.compile(r"\\{1,8}[nrt]")
_LEAST_KEY = 64  # letters of base64: an Ed25519 key has them


def values(text: str, seen: bytes, *, is_log: bool) -> Iterator[Secret]:
    """Yield the credentials without a prefix in a text, and in the same as bytes, in any order.

    In a log, none goes beyond the end of its line.
    """
    yield from _keys(text, seen, is_log=is_log)
    lower = seen.lower()
    yield from _named(text, lower)
    yield from _in_headers(text, lower)
    yield from _in_addresses(text, seen)


def _keys(text: str, seen: bytes, *, is_log: bool) -> Iterator[Secret]:
    place = seen.find(b"-----BEGIN ")
    while place >= 0:
        header = context.key_header.match(text, place)
        if header is not None:
            limit = header.end() + context.LONGEST_KEY
            if is_log and (line_end := text.find("\n", header.end(), limit)) >= 0:
                limit = line_end
            end = text.find(context.KEY_END, header.end(), limit)
            if text.find("-----BEGIN ", header.end(), max(end, 0)) >= 0:
                end = -1  # another one begins before it
            closing = text.find("-----", end + len(context.KEY_END), limit + 80) if end >= 0 else -1
            body = _key_letters(text[header.end() : end]) if end >= 0 else ""
            if closing >= 0 and len(body) >= _LEAST_KEY and is_random(body[:_LEAST_KEY]):
                kind = "private key"
                yield Secret(kind, kind, place, closing + 5, body, header[0])
                place = closing
        place = seen.find(b"-----BEGIN ", place + 1)


def _key_letters(text: str) -> str:
    """Return the letters of a private key, however its lines are broken, numbered or indented."""
    return "".join(_key_line.findall(_line_break.sub("\n", text)))


def _named(text: str, lower: bytes) -> Iterator[Secret]:
    for needle in _NAMED_BY:
        place = lower.find(needle)
        while place >= 0:
            end = place + len(needle)
            if needle != b"token" or lower[end : end + 1] != b"s":  # a count, mostly
                yield from _assigned(text, place)
            place = lower.find(needle, end)
    place = lower.find(b"key")
    while place >= 0:
        before = lower[max(0, place - 11) : place]
        if before.endswith(_KEYS):
            ending = max((len(key) for key in _KEYS if before.endswith(key)), default=0)
            yield from _assigned(text, place - ending)
        place = lower.find(b"key", place + 3)


def _assigned(text: str, place: int) -> Iterator[Secret]:
    """Yield the value that the name at this place is given."""
    match = context.assignment.match(text, place, place + _LOOKED_AT)
    if match is not None:
        group = next(group for group in (4, 6, 7) if match[group] is not None)
        name = match[1]
    else:
        start = text.rfind("--", max(0, place - 42), place)
        match = context.option.match(text, start, place + _LOOKED_AT) if start >= 0 else None
        if match is None or match.start(2) != place:
            return
        group, name = 3, match[2]
    if name.lower() == "token" and _OTHER_TOKENS.search(text, max(0, place - 16), place):
        return
    kind = NAMES[name.lower()]
    yield from _valued("named", kind, text, match.start(group), match.end(group))


def _in_headers(text: str, lower: bytes) -> Iterator[Secret]:
    for needle in (b"authorization", b"bearer "):
        place = lower.find(needle)
        while place >= 0:
            match = context.authorization.match(text, place, place + _LOOKED_AT)
            if match is not None:
                yield from _valued("authorization", "authorization", text, *match.span(2))
            place = lower.find(needle, place + len(needle))


def _in_addresses(text: str, seen: bytes) -> Iterator[Secret]:
    place = seen.find(b"://")
    while place >= 0:
        match = context.userinfo.match(text, place)
        if match is not None and match[3]:
            yield from _valued("address", "password", text, *match.span(2))
        place = seen.find(b"://", place + 3)


def _valued(rule: str, kind: str, text: str, start: int, end: int) -> Iterator[Secret]:
    """Yield what stands between two places, if it looks like a credential."""
    value = text[start:end].rstrip(".")
    if is_secret_value(value) and not context.is_placeholder(value):
        yield Secret(rule, kind, start, start + len(value), value)
