"""Masks possible credentials in everything that leaves this machine: export, MCP, push.

In a text, each is replaced by its kind (`[redacted: GitHub token]`); in the bytes of a file, each
of its letters by a star, so that offsets and lines stay. JSON stays JSON in both. Nothing of a
value is kept, not even its end. Patterns cannot do better: a password in a sentence looks like any
other word.

The rules are our own. detect-secrets knows most of these tokens, but it is made to tell a person
about lines of code: it has no rule for `sk-ant-` and `sk-proj-`, of a GitHub token it returns the
prefix alone, its entropy rules take ordinary words for secrets, and a line of a transcript takes it
milliseconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from .find import find_all

_STARS = bytes(code if code in b"\r\n" else ord("*") for code in range(256))
_quote = re.compile(r'(?<!\\)(?:\\\\)*"')
_letters_of_key = re.compile("[A-Za-z0-9+/=]{16,}")


def redact(text: str) -> tuple[str, Counter[str]]:
    """Return a text with its credentials masked, and how many of which kind there were."""
    pieces, position, counts = [], 0, Counter[str]()
    for secret in find_all(text, is_log=False):
        counts[secret.kind] += 1
        label = f"[redacted: {secret.kind}]"
        for start, end in _within_quotes(text, secret.start, secret.end):
            pieces += [text[position:start], label]
            position, label = end, ""
    return ("".join([*pieces, text[position:]]) if pieces else text), counts


def redact_bytes(data: bytes, *, is_log: bool) -> tuple[bytes, Counter[str]]:
    """Return the bytes of a file with stars in place of its credentials, and how many there were.

    In a log, no credential goes beyond the end of its line.
    """
    covered, counts = bytearray(data), Counter[str]()
    for secret in find_all(data, is_log=is_log):
        counts[secret.kind] += 1
        within = data[secret.start : secret.end].decode("latin-1")
        for low, high in _within_quotes(within, 0, len(within)):
            start, end = secret.start + low, secret.start + high
            covered[start:end] = data[start:end].translate(_STARS)
    return bytes(covered), counts


def _within_quotes(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a stretch that are masked: not quotes, nor the text between them.

    Only a private key may continue in another string, as its lines do in JSON and source code.
    """
    quotes = [match.end() - 1 for match in _quote.finditer(text, start, end)]
    for number, (low, high) in enumerate(
        zip([start, *(place + 1 for place in quotes)], [*quotes, end], strict=True)
    ):
        if number % 2 == 0:
            yield low, high
        else:  # between two texts; unless the first quote begins one
            for match in _letters_of_key.finditer(text, low, high):
                if not match[0].isdigit():  # or it is a number of JSON
                    yield match.span()
