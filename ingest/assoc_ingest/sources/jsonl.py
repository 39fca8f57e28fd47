"""The pieces of a line that should be one JSON object, and often enough is not.

`pieces` turns the bytes of a line into decoded objects and quarantined stretches that tile the
line without gap or overlap (white space aside), and never raises. What really occurs, and what
happens to it:

- one object: 99.99 % of all lines, decoded by orjson;
- lone surrogates (`"\\ud83d"`) and invalid UTF-8: decoded with U+FFFD in place, marked as lossy;
- `\\u0000` in strings: becomes U+2400, because SQLite's functions end a text at NUL;
- a NUL run or a byte order mark before an object: part of the object's piece;
- two objects on a line (`}{`): both, each with its own offset;
- an object and then garbage: the object, and the garbage as a line of its own;
- a cut object and then a whole one: the whole one, the stub is quarantined;
- numbers, arrays, NaN, infinities, nesting beyond the decoders' depth: quarantined.

The first rule of this module is that an object followed by more bytes gives what the object and
the rest would have given as two lines. So it does not matter whether a reader saw the object
alone, before the rest was written, or both at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from ..fast_json import orjson
from ..source import LEADING, Line

JSONObject = dict[str, object]

_BLANK = b" \t\r\n"
_MAX_TRIES = 20  # starts of an object tried behind a stub; more would be quadratic on garbage
_NUL_ESCAPE = b"\\u0000"
_blanks = re.compile(rb"[ \t\r\n]*+")
_leading = re.compile(rb"[ \t\r\n\x00\xef\xbb\xbf]*+")
_lone_surrogate = re.compile("[\ud800-\udfff]")


class Piece(NamedTuple):
    """A stretch of a line: an object, a quarantined stretch (no object), or an object with loss."""

    start: int
    length: int
    object: JSONObject | None
    reason: str | None


def pieces(line: Line, is_known: Callable[[JSONObject], bool]) -> Iterator[Piece]:
    """Yield the pieces of `line` in order.

    `is_known` tells whether an object found behind a stub has a shape of this format: the end
    of a cut line can parse as an object by accident.
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
    although their line is still open.
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

    Decoded as leniently as the object of a line.
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
    """Reads the objects that stand one behind the other in `data`, decoding each byte once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        # Other than U+FFFD, which stands for one to three bytes, this leads back to the bytes.
        self._text = data.decode("utf-8", "surrogateescape")
        self._letter = 0
        self.position = 0
        """Behind the last object, in bytes."""

    def skip_blanks(self) -> int:
        """Pass over white space; return the position behind it."""
        found = _blanks.match(self._data, self.position)
        end = found.end() if found else self.position
        self._letter += end - self.position
        self.position = end
        return end

    def next_object(self) -> tuple[JSONObject, str | None] | None:
        """Return the object that follows, and what it lost; None, and stay, where none does."""
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
        # Decoded again, alone: the decoders differ in what they make of integers beyond 64 bit.
        whole = _whole_object(self._data[start:stop])
        if whole is not None:
            self.position, self._letter = stop, end
        return whole


def _no_prefix(start: int, data: bytes, is_known: Callable[[JSONObject], bool]) -> Piece:
    """Return the piece at the start of `data`, which is not blank and begins with no object."""
    whole = _whole_object(data)  # one that only orjson can decode: it is nested deeply
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
    """Decode what orjson refuses but the standard library reads: surrogates, invalid UTF-8."""
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
    """Return the objects that `data` consists of, or nothing if it is anything else."""
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
    """Return a copy of a decoded value with every string, keys too, changed.

    Walks with a stack of its own: a thousand levels would exhaust Python's.
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
