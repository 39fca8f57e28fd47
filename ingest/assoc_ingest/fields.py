"""Converts what agents write to what the columns need: texts, numbers, JSON and times.

Agents, gateways and their forks write values of any type into any field. These functions return the
value if it is of the expected type, and None otherwise; they never raise.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Any

from .stopping import signals_held_back

# While it is initialized, orjson imports modules of the standard library and crashes the process
# if one of them cannot be imported (https://github.com/ijl/orjson/issues/310). A Ctrl-C at that
# moment is such a failure, so it waits. All modules import orjson from here.
with signals_held_back():
    import orjson

__all__ = ["orjson"]

MAX_TEXT = 256 * 1024
"""Characters of a text that a column keeps; the archive has the rest."""

MAX_NAME = 1000
"""Characters of a name or an id that every row of a line repeats. With longer ones, the rows of a
line with many blocks would be many times as large as the line."""

TOOL_KINDS = frozenset(
    ["tool_use", "tool_result", "command_output", "bash_output", "hook", "attachment", "meta"]
)
"""Kinds of messages that come from tools or the program, not from people or agents."""

_MAX_SAMPLE = 4096
_LONG_VALUE = 4096  # characters that are kept of a value, in an extra or in JSON that is too large
_NUMBERS = frozenset([bool, int, float])  # these say something, even if they are zero
# Types of lines that have secrets or ids of accounts, and what the keys of such ids contain.
_PRIVATE = (
    *(b"bridge-session", b"session-owner", b"hybrid-organization", b"artifact-autoreact-ledger"),
    *(b"memory-mode", b"ccountUuid", b"ccountId", b"ccount_uuid", b"ccount_id"),
    *(b"rganizationUuid", b"rganizationId", b"rganization_uuid", b"rganization_id"),
)
_MAX_LEAF = 16 * 1024  # characters of a string in a value of unknown shape that are text
_NO_TEXT = (
    *("Id", "ID", "_id", "Ids", "uuid", "Uuid", "UUID", "hash", "Hash", "signature", "Signature"),
    *("token", "Token"),
)  # how keys end whose values are not text
_MAX_DEPTH = 64
_MAX_INTEGER = 2**63 - 1
_MAX_DIGITS = 18
_MAX_COUNT = 2**53  # a larger number is not a token count, and JSON readers would round it

_CJK = (
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u3130-\u318f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)

INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
)
"""Invisible letters that can be inside a word: soft hyphens, joiners, zero-width spaces, direction
marks, byte order marks. `schema/` has the same list."""

INVISIBLE_RUN = re.compile(f"[{INVISIBLE}]+")
_unbindable = re.compile("[\x00\ud800-\udfff]")

_formatting = re.compile(b"\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xa4\xa6-\xa9])").search
_OTHER_INVISIBLE = "\u00ad\u034f\u061c\u180e\ufeff"

_radical = re.compile(b"\xe2[\xba-\xbf]").search
# All bytes except those that letters of these scripts begin with in UTF-8; E2 is checked apart.
_OTHER_BYTES = bytes(set(range(256)) - {0xE1, *range(0xE3, 0xEE), 0xEF, 0xF0})

# Where programs put readable text, the most likely key first.
_TEXT_KEYS = ("content", "text", "message", "prompt", "stdout", "stderr", "summary", "plan")


def odd_letters(text: str) -> tuple[int, int]:
    """Say whether a text has Chinese, Japanese or Korean letters, and invisible ones: 1 or 0."""
    if text.isascii():
        return 0, 0
    data = text.encode("utf-8", "replace")
    return _has_cjk(text, data), _has_invisible(text, data)


def has_cjk(text: str) -> int:
    """Return 1 if the text contains Chinese, Japanese or Korean letters."""
    return odd_letters(text)[0]


def _has_cjk(text: str, data: bytes) -> int:
    # Most text that is not ASCII has only arrows, quotes and boxes. Looking for the bytes that
    # letters of these scripts begin with is much faster than the expression that decides.
    if not data.translate(None, _OTHER_BYTES) and _radical(data) is None:
        return 0
    return 0 if _cjk().search(text) is None else 1


@cache
def _cjk() -> re.Pattern[str]:
    """Compile the expression when it is needed first: a set of so many letters takes 2 ms."""
    return re.compile(_CJK)


def has_invisible(text: str) -> int:
    """Return 1 if the text contains invisible letters."""
    return odd_letters(text)[1]


def _has_invisible(text: str, data: bytes) -> int:
    # Faster than one expression for all letters: most begin with the same byte in UTF-8.
    if _formatting(data) is not None:
        return 1
    return int(any(letter in text for letter in _OTHER_INVISIBLE))


def string(value: object) -> str | None:
    """Return the value if it is a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def integer(value: object) -> int | None:
    """Return the value if it is an integer that SQLite can store, else None."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_INTEGER:
        return value
    return None


def number(key: str) -> int | None:
    """Return a key as a number, to sort by; None if it is not a number."""
    is_number = key.isascii() and key.isdigit() and len(key) <= _MAX_DIGITS
    return int(key) if is_number else None


def is_count(value: object) -> bool:
    """Is the value a plausible number of tokens: an integer from 0 to 2^53?"""
    return value.__class__ is int and 0 <= value <= _MAX_COUNT


def mapping(value: object) -> dict[str, object]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def without(value: object, keys: Collection[str]) -> dict[str, object]:
    """Return a JSON object without these keys, an empty one in place of any other value."""
    return {key: item for key, item in mapping(value).items() if key not in keys}


def json_text(value: object, exact: Callable[[], object] | None = None) -> str:
    """Return compact JSON, with integers beyond 64 bits as text and at most 64 levels.

    `exact` decodes the value again with all digits of its integers. It is called only if an integer
    is too large for orjson, which makes it a float.
    """
    if not _is_plain(value):
        value = _tamed(exact() if exact else value, 0)
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_bytes(value: object) -> bytes:
    """Return compact JSON; what orjson cannot write, deep or with long integers, as `json_text`."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json_text(value).encode("utf-8", "replace")


def bounded_json(value: dict[str, object], exact: Callable[[], object] | None = None) -> str:
    """Return an object as JSON text that fits a column; if it is too large, values are cut."""
    text = json_text(value, exact)
    if len(text) <= MAX_TEXT:
        return text
    short: dict[str, object] = {}
    room = MAX_TEXT
    for key, item in value.items():
        inner = json_text(item)
        short[key] = item if len(inner) <= _LONG_VALUE else f"{inner[:_LONG_VALUE]} ..."
        room -= len(key) + min(len(inner), _LONG_VALUE)
        if room < 0:
            break
    return json_text(short)


def left_over(
    value: dict[str, object],
    taken: Collection[str] = (),
    exact: Callable[[], dict[str, object]] | None = None,
) -> str | None:
    """Return an object without the keys that are taken, as JSON text; None if nothing is left.

    Null and empty values are left out, and so are signatures and the bytes of images. Long texts
    are cut.
    """
    left = _left(value, taken)
    if not left:
        return None
    return bounded_json(left, None if exact is None else lambda: _left(exact(), taken))


def _left(value: dict[str, object], taken: Collection[str]) -> dict[str, object]:
    return {
        key: _trimmed(item, 0)
        for key, item in value.items()
        if key not in taken and (item or item.__class__ in _NUMBERS)
    }


def _trimmed(value: object, depth: int) -> object:
    if isinstance(value, str) and len(value) > _LONG_VALUE:
        return f"{value[:_LONG_VALUE]} ..."
    if depth >= _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_trimmed(item, depth + 1) for item in value]
    if isinstance(value, dict):
        is_media = "media_type" in value
        return {
            key: _trimmed(item, depth + 1)
            for key, item in value.items()
            if key != "signature" and not (is_media and key == "data")
        }
    return value


def sample(data: bytes) -> str | None:
    """Return the first 4 KB of a piece for its issue, None if it may contain what is private."""
    if any(mark in data for mark in _PRIVATE):
        return None
    return data[:_MAX_SAMPLE].decode("utf-8", "replace").replace("\x00", "\u2400")


def obvious_text(value: object) -> str:
    """Return the readable text in an object of unknown type, or ''.

    Only the usual keys are searched, three levels deep: ids, paths and flags are not text.
    """
    return "\n".join(_texts(value, 3))


def leaves(value: object) -> Iterator[str]:
    """Yield the strings in a value of unknown shape, in its order, each up to a length.

    Types, ids, hashes, signatures and the bytes of media are not text.
    """
    pending = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, str):
            if item.strip():
                yield item[:_MAX_LEAF]
        elif depth >= _MAX_DEPTH:
            continue
        elif isinstance(item, list):
            pending.extend((child, depth + 1) for child in reversed(item))
        elif isinstance(item, dict):
            is_media = "media_type" in item
            pending.extend(
                (child, depth + 1)
                for key, child in reversed(item.items())
                if key not in ("type", "id")
                and not key.endswith(_NO_TEXT)
                and not (is_media and key == "data")
            )


def placeholder(block: dict[str, object]) -> str:
    """Return the description of an image or a document: its media type, size and title."""
    source = mapping(block.get("source"))
    media_type = string(source.get("media_type")) or string(source.get("type")) or "unknown type"
    size = _base64_size(source.get("data"))
    parts = [str(block.get("type") or "image"), media_type, *([size] if size else [])]
    title = string(block.get("title"))
    return f"[{' '.join(parts)}{f': {title}' if title else ''}]"


def _base64_size(data: object) -> str | None:
    if not isinstance(data, str):
        return None
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"{size:,} bytes"


def _texts(value: object, depth: int) -> Iterable[str]:
    if isinstance(value, str):
        if value:
            yield value
    elif depth and isinstance(value, list):
        for item in value:
            yield from _texts(item, depth - 1)
    elif depth and isinstance(value, dict):
        for key in _TEXT_KEYS:
            yield from _texts(value.get(key), depth - 1)
        yield from _texts(value.get("file"), depth - 1) if depth > 1 else ()


def _is_plain(value: object) -> bool:
    """Can orjson write this value without loss: not deep, and without integers beyond 64 bits?

    orjson reads an integer of 2^64 and more as a float, which would be printed rounded.
    """
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            kind = item.__class__
            if kind is dict:
                below.extend(item.values())
            elif kind is list:
                below.extend(item)
            elif kind is not str and _is_wide(item):
                return False
        if not below:
            return True
        level = below
    return all(item.__class__ is str for item in level)


def _is_wide(item: object) -> bool:
    if item.__class__ is int or item.__class__ is float:
        return abs(item) > _MAX_INTEGER
    return False


def _tamed(value: object, depth: int) -> object:
    if isinstance(value, dict | list) and depth >= _MAX_DEPTH:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {key: _tamed(child, depth + 1) for key, child in value.items()}
    if isinstance(value, list):
        return [_tamed(child, depth + 1) for child in value]
    if _is_wide(value):
        return str(value) if isinstance(value, int) else f"{value:.0f}"
    return value


# ------------------------------------------------------------------------------------------------
# Converts every date format that agents write to one UTC text: `YYYY-MM-DDTHH:MM:SS.mmmZ`.
#
# Agents write ISO 8601 with `Z`, with an offset or without one, with and without fractions, and
# integers in seconds or milliseconds. Any other value, or a time outside the years 2000 to 2100,
# becomes None, never "now": a wrong time is worse than none.


Zone = tzinfo
"""The time zone in which times without a zone are read."""


class _MachineZone(tzinfo):
    """The time zone of this machine, with its past daylight saving rules."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "local"


MACHINE: Zone = _MachineZone()
"""The time zone of this machine."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_START = _EPOCH.replace(tzinfo=None)
_FIRST = 946_684_800_000  # 2000-01-01, in milliseconds
_LAST = 4_102_444_800_000  # 2100-01-01
_MILLISECONDS_FROM = 10**11  # a larger integer counts milliseconds, a smaller one seconds

# 99 % of all timestamps have exactly the stored form. Days after the 28th are parsed, because the
# month decides whether they exist.
_stored_form = re.compile(
    r"20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z",
    re.ASCII,
).fullmatch


def utc(value: object, zone: tzinfo = UTC) -> str | None:
    """Return `value` as UTC text with milliseconds, or None if it is not a time.

    `value` may be ISO text or a number of seconds or milliseconds since 1970. `zone` is used
    for ISO text without a zone.
    """
    if value.__class__ is str:
        if _stored_form(value):
            return value
        return _from_iso(value, zone)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or abs(value) > _LAST:
        return None
    return from_milliseconds(round(value if value >= _MILLISECONDS_FROM else value * 1000))


def is_without_zone(value: object) -> bool:
    """Is `value` ISO text without a time zone?"""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is None
    except ValueError:
        return False


def from_milliseconds(milliseconds: int) -> str | None:
    """Return the UTC text of `milliseconds` since 1970, or None outside 2000 to 2100."""
    if not _FIRST <= milliseconds < _LAST:
        return None
    moment = _START + timedelta(milliseconds=milliseconds)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def now() -> str:
    """Return the current time as UTC text, or the nearest valid one if the clock is wrong."""
    present = max(_FIRST, min(time.time_ns() // 1_000_000, _LAST - 1))
    return from_milliseconds(present) or ""


def milliseconds(text: str) -> int:
    """Return the milliseconds since 1970 of a stored time."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _from_iso(text: str, zone: tzinfo) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        elapsed = moment.astimezone(timezone.utc) - _EPOCH  # noqa: UP017
    except (ValueError, OverflowError, OSError):  # Windows has no local times before 1970
        return None
    return from_milliseconds(elapsed // timedelta(milliseconds=1))


# ------------------------------------------------------------------------------------------------
# What orjson does where memory has a limit.


_LONG = 100_000


def fail_within_limits() -> None:
    """From now on, let `loads` raise MemoryError where it would crash the process.

    orjson does not look whether there was memory for an object, which matters where a process has
    a limit. So long texts are first read by the standard library, with room for what orjson takes.
    """
    loads = orjson.loads
    if loads.__name__ == "careful":
        return

    def careful(data: bytes | str) -> object:
        if len(data) > _LONG:
            room = bytearray(3 * len(data))
            with suppress(ValueError, RecursionError):
                json.loads(data)
            del room
        return loads(data)

    orjson.loads = careful  # type: ignore[assignment]


def storable(text: str) -> str:
    """Return a text that SQLite accepts: an argument of a command can have undecodable bytes."""
    return _unbindable.sub(" ", text)


def bindable(text: str) -> str:
    """Return a text that SQLite accepts, without invisible letters."""
    return INVISIBLE_RUN.sub("", storable(text))
