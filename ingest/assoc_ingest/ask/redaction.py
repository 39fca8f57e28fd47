"""Masks credentials in stored text: `[redacted: GitHub token]`.

What providers issue is recognised by its prefix, with the rules that `secrets` reports by; the rest
by what surrounds it: a private key block, an `Authorization` header, the password in an address, an
assignment to a name such as `API_KEY` or `password`. Nothing of the value is kept, not even its
end. A report has to be right; here, what only begins like a credential is masked as well: it may be
cut off, and a mask too many does no harm. This is the best that can be done with patterns, and no
proof: a password in a sentence looks like any other word.

The rules are our own. detect-secrets knows most of these tokens, but it is made to tell a person
about lines of code: it has no rule for `sk-ant-` and `sk-proj-`, of a GitHub token it returns the
prefix alone, its entropy rules take ordinary words for secrets, and a line of a transcript takes it
milliseconds.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from ..files import secret_context as context
from ..files import secret_tokens
from ..files.randomness import is_random
from ..files.secret_context import is_placeholder
from ..files.secret_rules import BY_PREFIX, NAMES
from ..files.secret_scan import find
from ..files.secret_tokens import rule_of

_LONGEST_NAME = 64
_STARS = bytes(code if code in b"\r\n" else ord("*") for code in range(256))

Redacted = tuple[str, Counter[str]]


def redact(text: str) -> Redacted:
    """Return a text with its credentials masked, and how many of which kind there were."""
    found: Counter[str] = Counter()
    if context.key_header.search(text) is not None:
        text = _without_keys(text, found)
    text = _without_tokens(text, found)
    if "eyJ" in text:
        text, count = context.jwt.subn(mask("JWT"), text)
        found["JWT"] += count
    if "://" in text:
        text = context.userinfo.sub(lambda match: _in_address(match, found), text)
    lower = text.lower()
    if "authorization" in lower or "bearer" in lower:
        text = context.authorization.sub(
            lambda match: _value_masked(match, "authorization", found), text
        )
    if any(name in lower for name in NAMES):
        text = context.option.sub(lambda match: _option_masked(match, found), text)
        text = context.assignment.sub(lambda match: _assigned(match, found), text)
    return text, +found


def redact_json(text: str) -> Redacted:
    """Return JSON text with the credentials in its strings masked: it stays JSON.

    The value of a key such as `password` is masked, whatever it looks like. What is no JSON is
    treated as any other text.
    """
    plain, found = redact(text)
    if not found:
        return text, found
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return plain, found
    if not isinstance(value, dict | list):
        return plain, found
    found = Counter()
    masked = json.dumps(_in_value(value, found), ensure_ascii=False, separators=(",", ":"))
    masked, more = redact(masked)  # what a key and its value say only together
    return masked, found + more


def redact_bytes(data: bytes, *, is_log: bool) -> tuple[bytes, Counter[str]]:
    """Return the bytes of a file with stars in place of what `secrets` would report.

    Each star stands for one byte, so that offsets stay, and JSON stays JSON. Lines stay, too.
    """
    covered, found = bytearray(data), Counter[str]()
    for secret in find(data, is_log=is_log):
        covered[secret.start : secret.end] = data[secret.start : secret.end].translate(_STARS)
        found[secret.kind] += 1
    return bytes(covered), found


def mask(kind: str) -> str:
    """Return what stands in place of a credential."""
    return f"[redacted: {kind}]"


def _without_tokens(text: str, found: Counter[str]) -> str:
    """Mask what begins like a token. To look for each beginning is quicker than one expression."""
    places: set[int] = set()
    for prefix in BY_PREFIX:
        start = text.find(prefix)
        while start >= 0:
            if not _is_inside_word(text, start, prefix):
                places.add(start)
            start = text.find(prefix, start + len(prefix))
    pieces, position = [], 0
    for start in sorted(places):
        match = secret_tokens.token(text, start) if start >= position else None
        if match is None:
            continue
        rule = rule_of(match)
        if not rule.is_cut and not is_random(match[0]):  # the name of something
            continue
        found[rule.kind] += 1
        pieces += [text[position:start], mask(rule.kind)]
        position = match.end()
    return "".join([*pieces, text[position:]]) if pieces else text


def _is_inside_word(text: str, start: int, prefix: str) -> bool:
    """Does a short prefix stand in a word? Behind an escaped line break it does not."""
    before = text[max(start - 1, 0) : start]
    if not (BY_PREFIX[prefix].is_word and before.isascii() and before.isalnum()):
        return False
    return text[max(start - 2, 0) : start] not in ("\\n", "\\r", "\\t")


def _in_address(match: re.Match[str], found: Counter[str]) -> str:
    if not match[3] and match[2].isdigit():  # at the end of a text, a port
        return match[0]
    return _value_masked(match, "password", found)


def _value_masked(match: re.Match[str], kind: str, found: Counter[str]) -> str:
    """Return what was found with its second group masked."""
    if is_placeholder(match[2]):
        return match[0]
    found[kind] += 1
    behind = match[3] if match.re.groups > 2 else ""
    return f"{match[1]}{mask(kind)}{behind}"


def _option_masked(match: re.Match[str], found: Counter[str]) -> str:
    if is_placeholder(match[3]) or match[3].startswith("-"):
        return match[0]
    kind = NAMES[match[2].lower()]
    found[kind] += 1
    return f"{match[1]}{mask(kind)}"


def _assigned(match: re.Match[str], found: Counter[str]) -> str:
    name, operator, *alternatives, bare = match.groups()
    quote = alternatives[0] or alternatives[2] or ""
    value = alternatives[1] or alternatives[3] or bare
    if is_placeholder(value) or not (quote or _is_literal(match, value)):
        return match[0]
    kind = NAMES[name.lower()]
    found[kind] += 1
    return f"{name}{operator}{quote}{mask(kind)}"


def _is_literal(match: re.Match[str], value: str) -> bool:
    """Is what is assigned without quotes a value? In source code it is the name of another thing.

    `API_KEY=hunter` of a shell is a value, `password = value` is none, `password=hunter2` is one.
    """
    if "(" in value or "[" in value or value.endswith((".", ")")):
        return False
    text = match.string
    start = match.start()
    while start > 0 and match.start() - start < _LONGEST_NAME and _is_of_name(text[start - 1]):
        start -= 1
    is_of_shell = text[start : match.end(1)].isupper() and match[2].endswith("=")
    return is_of_shell or (len(value) >= 6 and any(map(str.isdigit, value)) and not value.isdigit())


def _is_of_name(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _without_keys(text: str, found: Counter[str]) -> str:
    """Mask private keys from their header to their end; one that is cut off, as far as it goes."""
    pieces, position = [], 0
    for match in context.key_header.finditer(text):
        if match.start() < position:
            continue
        end = text.find(context.KEY_END, match.end(), match.end() + context.LONGEST_KEY)
        if end >= 0:
            closing = text.find(
                "-----", end + len(context.KEY_END), end + len(context.KEY_END) + 60
            )
            stop = closing + 5 if closing >= 0 else end + len(context.KEY_END)
        else:
            lines = context.key_lines.match(text, match.end())
            stop = lines.end() if lines is not None else match.end()
            if stop == match.end() and text[stop : stop + 3].strip("…\n"):
                continue  # only the words are there
        pieces += [text[position : match.start()], mask("private key")]
        found["private key"] += 1
        position = stop
    return "".join([*pieces, text[position:]])


def _in_value(value: object, found: Counter[str], depth: int = 0) -> object:
    if isinstance(value, str):
        text, more = redact(value)
        found.update(more)
        return text
    if depth > 100:  # deeper than any input; as text it is masked all the same
        text, more = redact(json.dumps(value, ensure_ascii=False))
        found.update(more)
        return text
    if isinstance(value, list):
        return [_in_value(item, found, depth + 1) for item in value]
    if isinstance(value, dict):
        return {redact(key)[0]: _of_key(key, item, found, depth + 1) for key, item in value.items()}
    return value


def _of_key(key: str, value: object, found: Counter[str], depth: int) -> object:
    name = key.lower()
    kind = next((kind for end, kind in NAMES.items() if name.endswith(end)), None)
    if kind is None or not isinstance(value, str) or len(value) < 4 or is_placeholder(value):
        return _in_value(value, found, depth)
    masked, more = redact(value)
    found.update(more or {kind: 1})
    return masked if more else mask(kind)
