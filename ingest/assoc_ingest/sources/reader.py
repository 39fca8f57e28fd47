"""Shared by sources that read JSON objects: those of a log, or the one of a document.

A `Reader` yields the objects of lines one by one, counts their types, and records what is wrong
with them: a stretch that is not an object is quarantined, and a field of the wrong type becomes
None with an issue. For conversations, `ChatReader` gathers more.

The store can merge everything that is gathered with that of the next stretch of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from ..fields import (
    MAX_NAME,
    Zone,
    integer,
    is_without_zone,
    json_bytes,
    mapping,
    orjson,
    sample,
    utc,
)
from ..records import Issue, LineExtra, LineType, Record
from ..source import LEADING, LEFT_OUT, Claim, Line

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


def object_in(value: object) -> JSONObject:
    """Return an object that a field has as text, or as it is; {} for anything else."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    if isinstance(data, bytes):
        data = (whole_value(data) or (None, None))[0]
    return mapping(data)


def with_only(fields: Iterable[str], data: bytes | None) -> bytes | None:
    """Return the JSON object of a row of a database with these fields alone, `null` for other data.

    It may be in hexadecimal digits.
    """
    if data is None or data == LEFT_OUT:
        return data
    found = whole_value(data) or whole_value(_from_hex(data))
    value = found[0] if found is not None else None
    if not isinstance(value, dict):
        return b"null"
    return json_bytes({field: value[field] for field in fields if field in value})


def _from_hex(data: bytes) -> bytes:
    """Return the bytes that hexadecimal digits stand for, nothing for other text."""
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return b""


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


# ------------------------------------------------------------------------------------------------
# Ids of sessions.


UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
"""A regular expression for the id of a session of most programs."""

_uuid = re.compile(UUID)


def folded(session: str) -> str:
    """Return a session's key in comparable form: a uuid in lower case, others unchanged."""
    return session.lower() if _uuid.fullmatch(session) else session


# ------------------------------------------------------------------------------------------------
# Shared by sources with documents that are plain text.


def document_text(line: Line) -> tuple[str, list[Record]]:
    """Return the text of a document that is not JSON, its line type, and issues for losses."""
    data = line.data.removeprefix(b"\xef\xbb\xbf")
    records: list[Record] = [LineType("", "", 1)]
    text = data.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        reason = "invalid UTF-8 was replaced"
        records.append(Issue(reason, 0, sample(line.data), line.start, len(line.data)))
    return text.replace("\x00", "\u2400"), records


def nothing_in(line: Line, reason: str) -> list[Record]:
    """Return the issue of a document that is empty, or useless for a reason."""
    reason = reason if line.data.strip() else "empty"
    return [Issue(reason, 1, sample(line.data), line.start, len(line.data))]


# ------------------------------------------------------------------------------------------------
# Gathers records and issues from the objects of a stretch.


_MOST_ISSUES = 50  # per object: each wrong field is an issue with a sample


def _never(value: JSONObject) -> bool:
    return False


class Reader:
    """Reads the objects of one stretch of a file, and gathers their records."""

    def __init__(self, claim: Claim, zone: Zone | None = None) -> None:
        self.claim = claim
        self.records: list[Record] = []
        self.start = 0
        self.length = 0
        self.data = b""
        self.line_type = ("", "")
        """The type and the subtype of the current object."""
        self.is_local = False
        """Was a time without a zone read as local time?"""
        self._zone = zone
        self._types: dict[tuple[str, str], int] = {}
        self._firsts: dict[tuple[str, str], int] = {}
        self._is_refused = False
        self._noted: dict[int, set[str]] = {}

    # -- objects ---------------------------------------------------------------------------------

    def objects(
        self,
        lines: Iterable[Line],
        is_known: Callable[[JSONObject], bool] = _never,
        type_key: str = "type",
    ) -> Iterator[JSONObject]:
        """Yield each object, then count it under its type unless it was refused.

        `is_known` says whether an object after a truncated one is a line of this format.
        """
        for line in lines:
            yield from self._read(line, pieces(line, is_known), type_key)

    def _read(
        self, line: Line, found: Iterable[Piece], type_key: str = "type"
    ) -> Iterator[JSONObject]:
        for piece in found:
            self.start, self.length = piece.start, piece.length
            begin = piece.start - line.start
            self.data = line.data[begin : begin + piece.length]
            if piece.reason is not None:
                self._issue(piece.reason, int(piece.object is None))
            if piece.object is None:
                continue
            self._is_refused = False
            key = self.line_type = self.type_of(piece.object, type_key)
            yield piece.object
            if not self._is_refused:
                self._firsts.setdefault(key, piece.start)
                self._types[key] = self._types.get(key, 0) + 1

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """Return the type and the subtype under which an object is counted."""
        kind = value.get(type_key)
        return (kind if isinstance(kind, str) else "", "")

    def document(self, lines: Iterable[Line]) -> Iterator[JSONObject]:
        """Yield the object of a document; an empty or truncated document is quarantined.

        So is a document with more than one object: it is not known which part counts.
        """
        (line,) = lines
        if not line.data.strip():
            self.records.append(Issue("empty", 1, None, 0, len(line.data)))
            return
        found = list(pieces(line, _never))
        if any(piece.object is not None for piece in found) and len(found) > 1:
            self.start, self.data, self.length = line.start, line.data, len(line.data)
            self._issue("not JSON: unexpected content after document", 1)
            return
        yield from self._read(line, found)

    def array(
        self, lines: Iterable[Line], *, is_empty_allowed: bool = False
    ) -> Iterator[tuple[int, JSONObject]]:
        """Yield the objects of a document that is a list, each with its position in it.

        Any other document is quarantined, and so is an empty file, unless it means an empty list.
        """
        (line,) = lines
        self.start, self.data, self.length = line.start, line.data, len(line.data)
        if is_empty_allowed and not line.data.strip():
            return
        found = whole_value(line.data)
        if found is None or not isinstance(found[0], list):
            self._issue("not JSON" if found is None else "JSON, but no list", 1)
            return
        if found[1] is not None:
            self._issue(found[1], 0)
        self._types["", ""] = 1
        for place, item in enumerate(found[0]):
            self._expect(isinstance(item, dict), "item", item)
            if isinstance(item, dict):
                yield place, item

    def refuse(self, reason: str) -> None:
        """Quarantine the current object: it is not a line of this format."""
        self._is_refused = True
        self._issue(reason, 1)

    def note(self, reason: str) -> None:
        """Add an issue: the current object lacks something."""
        self._issue(reason, 0)

    def keep(
        self,
        extra: str | None,
        *,
        kind: str = "",
        moment: str | None = None,
        is_silent: bool = False,
    ) -> None:
        """Keep the fields of the current object that did not become rows, as JSON text.

        An object that `is_silent` has no other row, so it is kept even without such fields.
        """
        if extra is not None or is_silent:
            self.records.append(LineExtra(kind, moment, extra or "{}", self.start, self.length))

    def finish(self) -> list[Record]:
        """Return everything that was gathered."""
        firsts = self._firsts
        self.records.extend(
            LineType(*key, count, firsts.get(key)) for key, count in self._types.items()
        )
        return self.records

    # -- fields ----------------------------------------------------------------------------------

    def text(self, value: JSONObject, key: str) -> str | None:
        """Return a text, None if there is none or it is empty."""
        found = value.get(key)
        if isinstance(found, str):
            return found or None
        self._expect(found is None, key, found)
        return None

    def name(self, value: JSONObject, key: str) -> str | None:
        """Return a text that every row of the line repeats, None if it is too long for that."""
        found = self.text(value, key)
        if found is None or len(found) <= MAX_NAME:
            return found
        self._expect(is_right=False, key=key, value=found)
        return None

    def whole(self, value: JSONObject, key: str) -> int | None:
        found = value.get(key)
        number = integer(int(found) if isinstance(found, float) and found % 1 == 0 else found)
        self._expect(found is None or number is not None, key, found)
        return number

    def number(self, value: JSONObject, key: str) -> float | None:
        found = value.get(key)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        self._expect(found is None or is_number, key, found)
        return float(found) if is_number else None  # type: ignore[arg-type]

    def flag(self, value: JSONObject, key: str) -> int | None:
        """Return a boolean as 0 or 1."""
        found = value.get(key)
        self._expect(found is None or isinstance(found, bool), key, found)
        return int(found) if isinstance(found, bool) else None

    def time(self, value: JSONObject, key: str) -> str | None:
        """Return a time; without a zone, it is read as a time of the reader's zone."""
        found = value.get(key)
        if found is None or found == "":
            return None
        moment = utc(found) if self._zone is None else utc(found, self._zone)
        self._expect(moment is not None, key, found)
        if self._zone is not None and moment is not None and is_without_zone(found):
            self.is_local = True
        return moment

    def mapping(self, value: JSONObject, key: str) -> JSONObject:
        """Return an object, an empty one if there is none."""
        found = value.get(key)
        if isinstance(found, dict):
            return found
        self._expect(found is None, key, found)
        return {}

    def items(self, value: JSONObject, key: str) -> list[JSONObject]:
        """Return the objects of a list, without other values."""
        found = value.get(key)
        self._expect(found is None or isinstance(found, list), key, found)
        items = found if isinstance(found, list) else []
        for item in items:
            self._expect(isinstance(item, dict), f"{key}[]", item)
        return [item for item in items if isinstance(item, dict)]

    def scalars(self, value: JSONObject, key: str) -> list[str]:
        """Return the texts of a list, with numbers as texts."""
        found = value.get(key)
        self._expect(found is None or isinstance(found, list), key, found)
        texts = []
        for item in found if isinstance(found, list) else []:
            is_scalar = isinstance(item, str | int) and not isinstance(item, bool)
            self._expect(is_scalar, f"{key}[]", item)
            if is_scalar:
                texts.append(str(item))
        return texts

    def exact(self, key: str, value: object) -> object:
        """Decode a field of the current line again, with integers of any size."""
        return exact_object(self.data).get(key, value)

    def _expect(self, is_right: bool, key: str, value: object) -> None:
        if not is_right:
            self._issue(f"{key}: unusable {type(value).__name__}", 0)

    def _issue(self, reason: str, quarantined: int) -> None:
        if quarantined == 0:
            noted = self._noted.setdefault(self.start, set())
            if reason in noted or len(noted) >= _MOST_ISSUES:
                return  # a thousand items with the same fault are not a thousand issues
            noted.add(reason)
        self.records.append(Issue(reason, quarantined, sample(self.data), self.start, self.length))
