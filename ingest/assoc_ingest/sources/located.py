"""Finds where the items of a list are in the bytes of a JSON object.

A document that is rewritten as a whole has many messages on what is read as one line, and so can a
line of a log. Each item gets a place of its own, so that its rows can be told apart and opened.
"""

from __future__ import annotations

import json
import re

from ..source import LEADING

_decoder = json.JSONDecoder()
_blanks = re.compile(r"[ \t\r\n]*+")
_BETWEEN = ",]}"


def items_at(data: bytes, *keys: str) -> list[tuple[int, int]]:
    """Return (offset, length) of each item of the list under these keys, one inside of the other.

    Of an object that has a key twice, the last one counts, as for decoders. Returns nothing if
    there is no such list, or if Python's decoder cannot read it.
    """
    body = data.lstrip(LEADING)
    # Unlike U+FFFD, which replaces one to three bytes, this can be converted back to bytes.
    text = body.decode("utf-8", "surrogateescape")
    position = 0
    try:
        for key in keys:
            found = _value_of(text, position, key)
            if found is None:
                return []
            position = found
        ranges = _items(text, position)
    except (ValueError, RecursionError, IndexError):
        return []
    return _in_bytes(text, ranges, len(data) - len(body))


def _skip(text: str, position: int) -> int:
    found = _blanks.match(text, position)
    return found.end() if found else position


def _value_of(text: str, position: int, key: str) -> int | None:
    """Return where the value of a key of the object at a position begins."""
    found = None
    position = _skip(text, position + 1) if text[position] == "{" else len(text)
    while text[position] == '"':
        name, position = _decoder.raw_decode(text, position)
        start = position = _skip(text, _skip(text, position) + 1)  # a colon is between the two
        _, position = _decoder.raw_decode(text, position)
        if name == key:
            found = start
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return found


def _items(text: str, position: int) -> list[tuple[int, int]]:
    """Return where each item of the list at a position begins and ends, in letters."""
    ranges = []
    position = _skip(text, position + 1) if text[position] == "[" else len(text)
    while text[position] not in _BETWEEN:
        _, end = _decoder.raw_decode(text, position)
        ranges.append((position, end))
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return ranges


def _in_bytes(text: str, ranges: list[tuple[int, int]], offset: int) -> list[tuple[int, int]]:
    found, before = [], 0
    for start, end in ranges:
        offset += _size(text[before:start])
        size = _size(text[start:end])
        found.append((offset, size))
        offset, before = offset + size, end
    return found


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
