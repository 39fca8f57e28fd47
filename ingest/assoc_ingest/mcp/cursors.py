"""Cursors: where an answer goes on, as numbers, and a fingerprint of what was asked.

A cursor continues nothing but its own question on its own database. What it holds are places, not
counts, where there are places: what is added meanwhile moves nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence

from ..errors import UsageError

_MOST = 10**18


class Cursors:
    """Makes and reads the cursors of one question."""

    def __init__(self, *asked: object) -> None:
        """Everything that chooses the items and their order has to be given."""
        text = json.dumps(asked, default=str)
        self._fingerprint = hashlib.sha256(text.encode()).hexdigest()[:8]

    def made(self, *place: int) -> str:
        """Return the cursor of a place."""
        data = ".".join([*map(str, place), self._fingerprint]).encode()
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    def place(self, cursor: object, start: Sequence[int]) -> tuple[int, ...]:
        """Return the place of a cursor, `start` if none is given.

        Raises UsageError if it is not one, or is one of another question.
        """
        if cursor is None:
            return tuple(start)
        text = str(cursor)
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        except (binascii.Error, ValueError):
            data = ""
        *numbers, fingerprint = data.split(".")
        is_one = all(number.isascii() and number.isdecimal() for number in numbers)
        if len(numbers) != len(start) or not is_one:
            raise UsageError("This is not a cursor. Give what an answer has as `next`.")
        if fingerprint != self._fingerprint:
            raise UsageError(
                "The cursor belongs to another question or database. "
                "Repeat the call that gave it, with this cursor."
            )
        return tuple(min(int(number[:19]), _MOST) for number in numbers)
