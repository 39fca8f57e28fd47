"""What a line holds that its rows do not: images, and the whole of a text that was cut.

The bytes come from the archive. Where that has lost them, or the line is of a shape that nobody
foresaw, the rows have to do.
"""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from ..errors import ArchiveError
from ..fields import json_text, placeholder, string
from ..files import archive

_SIGNATURES = {
    # What a browser can show; an SVG is a document of its own, and may hold anything.
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_LONGEST_LINE = 256 * 1024 * 1024
_MOST_IMAGES = 100  # of one message
_MOST_INPUTS = 1_000  # objects of a line that are compared with the input of a call


@dataclass(frozen=True, slots=True)
class Image:
    """An image as its line holds it."""

    placeholder: str
    """What the text of the message says in its place."""
    media_type: str
    data: str
    """The bytes in base64; '' where they are no image that a browser shows."""


class Originals:
    """Reads lines of a conversation from the archive."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._line: tuple[tuple[int, int], object] = ((-1, -1), None)

    def whole(
        self, file_id: int, byte_offset: int, length: int, kind: str, stored: str
    ) -> str | None:
        """Return the text of which `stored` is the beginning, None if it is not found."""
        inputs = 0
        for value in _values(self._value(file_id, byte_offset, length)):
            if isinstance(value, str) and len(value) > len(stored) and value.startswith(stored):
                return value
            if kind == "tool_use" and isinstance(value, dict) and inputs < _MOST_INPUTS:
                inputs += 1
                text = json_text(value)
                if len(text) > len(stored) and text.startswith(stored):
                    return text
        return None

    def images(self, file_id: int, byte_offset: int, length: int, text: str) -> Iterator[Image]:
        """Yield the images of a line for which the text has a placeholder, each once."""
        seen: set[tuple[str, str]] = set()
        for value in _values(self._value(file_id, byte_offset, length)):
            if len(seen) >= _MOST_IMAGES:
                break
            media_type, data = _image_in(value)
            if media_type is None or data is None:
                continue
            source = {"media_type": media_type, "data": data}
            shown = placeholder({"type": "image", "source": source})
            if shown in text and (media_type, data) not in seen:
                seen.add((media_type, data))
                yield Image(shown, media_type, _checked(media_type, data))

    def _value(self, file_id: int, offset: int, length: int) -> object:
        """Return the JSON value of a line; the last one is remembered, it may have many blocks."""
        place = (file_id, offset)
        if self._line[0] != place:
            value = None
            with suppress(ArchiveError, ValueError, RecursionError):
                if length <= _LONGEST_LINE:
                    data = archive.read(self._connection, file_id, offset, offset + length)
                    value = json.loads(b"".join(data))
            self._line = (place, value)
        return self._line[1]


def _values(value: object) -> Iterator[object]:
    """Yield all values inside a value, in order."""
    pending = [value]
    while pending:
        value = pending.pop()
        yield value
        if isinstance(value, dict):
            pending.extend(reversed(value.values()))
        elif isinstance(value, list):
            pending.extend(reversed(value))


def _image_in(value: object) -> tuple[str | None, str | None]:
    """Return the type and the bytes of an image that is an object, or the URL of its data."""
    if isinstance(value, str) and value.startswith("data:image/"):
        media_type, _, data = value[5:].partition(";base64,")
        return media_type[:100], data
    if not isinstance(value, dict):
        return None, None
    return string(value.get("media_type")), string(value.get("data"))


def _checked(media_type: str, data: str) -> str:
    """Return the data if it is an image of this type."""
    try:
        first = base64.b64decode(data[:64], validate=True)
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return data if first.startswith(_SIGNATURES.get(media_type, (b"\0 none",))) else ""
