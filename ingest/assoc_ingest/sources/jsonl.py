"""JSON in bytes: a line that should be one object but sometimes is not, and where items of a list
lie.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from ..fast_json import orjson
from ..source import LEADING, Line

# ------------------------------------------------------------------------------------------------
# Finds where the items of a list are in the bytes of a JSON object.
#
# A document that is rewritten as a whole has many messages on what is read as one line, and so
# can a line of a log. Each item gets a place of its own, so that its rows can be told apart and
# opened.


_item_decoder = json.JSONDecoder()
_blanks_before = re.compile(r"[ \t\r\n]*+")
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
    found = _blanks_before.match(text, position)
    return found.end() if found else position


def _value_of(text: str, position: int, key: str) -> int | None:
    """Return where the value of a key of the object at a position begins."""
    found = None
    position = _skip(text, position + 1) if text[position] == "{" else len(text)
    while text[position] == '"':
        name, position = _item_decoder.raw_decode(text, position)
        start = position = _skip(text, _skip(text, position) + 1)  # a colon is between the two
        _, position = _item_decoder.raw_decode(text, position)
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
        _, end = _item_decoder.raw_decode(text, position)
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


# ------------------------------------------------------------------------------------------------
# Splits a line that should be one JSON object, but sometimes is not.
#
# `pieces` turns the bytes of a line into decoded objects and quarantined stretches that cover the
# line without gaps or overlaps (white space aside), and never raises. These cases occur in
# practice:
#
# - one object: 99.99 % of all lines, decoded by orjson;
# - lone surrogates (`"\ud83d"`) and invalid UTF-8: decoded with U+FFFD in place, marked as lossy;
# - `\u0000` in strings: becomes U+2400, because SQLite's functions end a text at NUL;
# - NULs or a byte order mark before an object: part of the object's piece;
# - two objects on a line (`}{`): both, each with its own offset;
# - an object and then garbage: the object, and the garbage as a line of its own;
# - a truncated object and then a whole one: the whole one; the stub is quarantined;
# - numbers, arrays, NaN, infinities, nesting beyond the decoders' depth: quarantined.
#
# The first rule of this module: an object followed by more bytes gives the same result as the
# object and the rest on two lines. So it does not matter whether a sync saw the object alone,
# before the rest was written, or both at once.


JSONObject = dict[str, object]

_BLANK = b" \t\r\n"
_MAX_TRIES = 20  # starts of an object tried after a stub; more would be quadratic on garbage
_NUL_ESCAPE = b"\\u0000"
_blanks = re.compile(rb"[ \t\r\n]*+")
_leading = re.compile(rb"[ \t\r\n\x00\xef\xbb\xbf]*+")
_lone_surrogate = re.compile("[\ud800-\udfff]")


class Piece(NamedTuple):
    """A stretch of a line: an object, an object with loss, or a quarantined stretch (no object)."""

    start: int
    length: int
    object: JSONObject | None
    reason: str | None


def pieces(line: Line, is_known: Callable[[JSONObject], bool]) -> Iterator[Piece]:
    """Yield the pieces of `line` in order.

    `is_known` says whether an object that was found after a stub has a shape of this format: the
    end of a truncated line can be valid JSON by accident.
    """
    start, data = line
    stripped = data.lstrip(_BLANK)
    start, data = start + len(data) - len(stripped), stripped.rstrip(_BLANK)
    whole = _whole_object(data)
    if whole is not None:
        yield Piece(start, len(data), *whole)
        return
    while data:
        cursor = _Cursor(data)
        while (begin := cursor.skip_blanks()) < len(data) and (found := cursor.next_object()):
            yield Piece(start + begin, cursor.position - begin, *found)
        start, data = start + begin, data[begin:]
        if data:
            piece = _no_prefix(start, data, is_known)
            yield piece
            start, data = start + piece.length, data[piece.length :]


def complete_prefix(tail: bytes) -> int:
    """Return how many bytes at the start of an unterminated tail are whole objects.

    The text of a JSON object is never the beginning of a longer one, so these bytes can be read
    although their line is not complete.
    """
    try:
        if orjson.loads(tail).__class__ is dict:
            return len(tail.rstrip(_BLANK))
        return 0
    except orjson.JSONDecodeError:
        pass
    cursor = _Cursor(tail)
    while cursor.next_object() is not None:
        pass
    return cursor.position


def whole_value(data: bytes) -> tuple[object, str | None] | None:
    """Return (value, loss) of a document of any JSON type, None if it is not JSON.

    It is decoded as leniently as the object of a line.
    """
    found = _whole_object(b'{"":' + data.lstrip(LEADING) + b"}")
    if found is None or list(found[0]) != [""]:
        return None
    return found[0][""], found[1]


def exact_object(data: bytes) -> JSONObject:
    """Decode an object again with all digits of its integers, repaired as in `pieces`."""
    found = _lenient(data.lstrip(LEADING))
    return found[0] if found else {}


class _Cursor:
    """Reads consecutive objects in `data`, decoding each byte once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        # Unlike U+FFFD, which replaces one to three bytes, this can be converted back to bytes.
        self._text = data.decode("utf-8", "surrogateescape")
        self._letter = 0
        self.position = 0
        """The end of the last object, in bytes."""

    def skip_blanks(self) -> int:
        """Skip white space; return the position after it."""
        found = _blanks.match(self._data, self.position)
        end = found.end() if found else self.position
        self._letter += end - self.position
        self.position = end
        return end

    def next_object(self) -> tuple[JSONObject, str | None] | None:
        """Return the next object and what it lost. If there is none, return None and stay."""
        start = self.position
        found = _leading.match(self._data, start)
        brace = found.end() if found else start
        if self._data[brace : brace + 1] != b"{":
            return None
        letter = self._letter + len(self._data[start:brace].decode("utf-8", "surrogateescape"))
        try:
            _, end = _decoder.raw_decode(self._text, letter)
        except (ValueError, RecursionError):
            return None
        stop = brace + len(self._text[letter:end].encode("utf-8", "surrogateescape"))
        # Decoded again, alone: the two decoders differ in how they read integers beyond 64 bits.
        whole = _whole_object(self._data[start:stop])
        if whole is not None:
            self.position, self._letter = stop, end
        return whole


def _no_prefix(start: int, data: bytes, is_known: Callable[[JSONObject], bool]) -> Piece:
    """Return the piece at the start of `data`, which is not blank and no object for the cursor."""
    whole = _whole_object(data)  # a deeply nested object, which only orjson can decode
    if whole is not None:
        return Piece(start, len(data), *whole)
    for position in _object_starts(data):
        suffix = _objects_to_the_end(data[position:])
        if suffix and all(is_known(value) for value in suffix):
            return Piece(start, position, None, "cut off before another object")
    return Piece(start, len(data), None, _why_not(data))


def _whole_object(data: bytes) -> tuple[JSONObject, str | None] | None:
    body = data.lstrip(LEADING)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _lenient(body)
    if value.__class__ is not dict:
        return None
    return (_without_nul(value) if _NUL_ESCAPE in body else value), None


def _lenient(body: bytes) -> tuple[JSONObject, str | None] | None:
    """Decode what orjson refuses and the standard library can read: surrogates, invalid UTF-8."""
    text = body.decode("utf-8", "replace")
    try:
        value, end = _decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or not isinstance(value, dict):
        return None
    return _repaired(value, text, body)


def _repaired(value: JSONObject, text: str, body: bytes) -> tuple[JSONObject, str | None]:
    reason = None
    if "\ufffd" in text and b"\xef\xbf\xbd" not in body:
        reason = "invalid UTF-8 was replaced"
    if _has_lone_surrogate(value):
        value = _mapped(value, _joined_surrogates)
        reason = "lone surrogate was replaced"
    return (_without_nul(value) if "\\u0000" in text else value), reason


def _object_starts(data: bytes) -> Iterator[int]:
    position = 0
    for _ in range(_MAX_TRIES):
        position = data.find(b'{"', position + 1)
        if position < 0:
            return
        yield position


def _objects_to_the_end(data: bytes) -> list[JSONObject]:
    """Return the objects that `data` consists of, nothing if it contains anything else."""
    try:
        value = orjson.loads(data)
        return [value] if isinstance(value, dict) else []
    except orjson.JSONDecodeError:
        pass
    cursor = _Cursor(data)
    objects = []
    while cursor.skip_blanks() < len(data):
        found = cursor.next_object()
        if found is None:
            return []
        objects.append(found[0])
    return objects


def _why_not(data: bytes) -> str:
    if not data.strip(b"\x00" + _BLANK):
        return "only NUL bytes"
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error.msg}"
    return "JSON, but no object"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(digits)
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _has_lone_surrogate(value: object) -> bool:
    found = False

    def look(text: str) -> str:
        nonlocal found
        found = found or _lone_surrogate.search(text) is not None
        return text

    _mapped(value, look)
    return found


def _joined_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _without_nul(value: JSONObject) -> JSONObject:
    return _mapped(value, lambda text: text.replace("\x00", "\u2400"))


def _mapped(value: object, change: Callable[[str], str]) -> JSONObject:
    """Return a copy of a decoded value with all strings changed, including keys.

    It uses its own stack: a thousand levels would exhaust Python's.
    """
    top: list[object] = [value]
    pending: list[tuple[Any, int | str, object]] = [(top, 0, value)]
    while pending:
        container, key, item = pending.pop()
        copy: object = item
        if isinstance(item, str):
            copy = change(item)
        elif isinstance(item, list):
            copy = [None] * len(item)
            pending.extend((copy, index, child) for index, child in enumerate(item))
        elif isinstance(item, dict):
            copy = dict.fromkeys(change(name) for name in item)
            pending.extend((copy, change(name), child) for name, child in item.items())
        container[key] = copy
    return top[0]  # type: ignore[return-value]
