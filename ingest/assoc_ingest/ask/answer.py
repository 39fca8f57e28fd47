"""The JSON object with which `search`, `show`, `list` and `query` answer a program.

    {"schema": 1, "items": [...], "total": 214, "next": "eyJ...", "relaxed": null, "fresh": {...}}

It is made for readers that pay for each character. `limit` bounds the items and `max_chars` the
whole object; what did not fit is behind the cursor `next`. An item that does not fit alone has its
longest texts cut, and names them in `cut`. `fresh` says as of when, and how much could not be read.

Positions in cursors count from the start: rows that arrive in between shift them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from .. import sql
from ..errors import UsageError
from ..terminal import safe_json

SCHEMA = 1
"""Version of the contract; it grows when a field is renamed, removed or changes its meaning."""

LEAST_CHARS = 1_000
"""The smallest budget of an answer: what surrounds its items takes a third of it."""

_FINGERPRINT = 8  # digits
_FURTHEST = 10**18
_ELLIPSIS = "…"
_SEPARATOR = ",\n "

Item = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of an answer is wanted."""

    cursor: str | None = None
    fields: str | None = None
    """Names of fields, separated by commas."""
    max_chars: int | None = None
    """Characters of the whole object; None for no bound."""


class Cursors:
    """Makes and reads the cursors of one question, for programs and for agents.

    A cursor is where an answer goes on, as numbers, and a fingerprint of the database and of what
    was asked, so that it continues nothing else.
    """

    def __init__(self, *asked: object) -> None:
        """Everything that chooses the items and their order has to be given."""
        text = json.dumps(asked, default=str)
        self._fingerprint = hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT]

    def made(self, *place: int) -> str:
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
            raise UsageError("--cursor: not a cursor; give the `next` of an answer.")
        if fingerprint != self._fingerprint:
            raise UsageError(
                "--cursor belongs to another question or database. "
                "Repeat what printed it, or leave out --cursor."
            )
        return tuple(min(int(number[:19]), _FURTHEST) for number in numbers)


class Answer:
    """What was asked, and from where on it is answered.

    `question` is all that chooses the items and their order: a cursor of another one is refused.
    """

    def __init__(
        self, connection: sqlite3.Connection | None, question: Sequence[object], wanted: Wanted
    ) -> None:
        """Without a connection, what is answered comes with the program.

        Raises UsageError if the cursor is not one of this question and database."""
        self._connection = connection
        self._wanted = wanted
        database = connection.execute("pragma database_list").fetchone()[2] if connection else None
        self._cursors = Cursors(database, *question)
        (self.start,) = self._cursors.place(wanted.cursor or None, [0])

    def pieces(
        self,
        items: Iterable[Item],
        *,
        total: int | None,
        limit: int | None = None,
        has_more: bool = False,
        relaxed: Item | None = None,
        before: Mapping[str, object] | None = None,
    ) -> Iterator[str]:
        """Yield the object in pieces, with at most `limit` of the items, which begin at `start`.

        With `has_more`, what follows all of them is behind the cursor, too.

        `total` counts all items of the question, None if nobody knows. `before` are fields of this
        command that stand before the items. Raises UsageError for a field that no item has.
        """
        head = "".join(f"{json.dumps(key)}: {safe_json(value)}, " for key, value in
                       {"schema": SCHEMA, **(before or {})}.items())  # fmt: skip
        fresh = self._fresh()
        room = self._room(len(head) + len(self._tail(10**12, total, relaxed, fresh)) + 12)
        rest = iter(items)
        first = [self._item(item, room) for item in islice(rest, 1)]  # it raises before any output
        yield f'{{{head}"items": ['
        number = self.start
        for shown, text in enumerate(chain(first, (self._item(item, None) for item in rest))):
            if shown == limit or (room is not None and shown and len(text) + 3 > room):
                yield self._tail(self.start + shown, total, relaxed, fresh)
                return
            yield (_SEPARATOR if shown else "\n ") + text
            room = None if room is None else room - len(text) - len(_SEPARATOR)
            number += 1
        yield self._tail(number if has_more else None, total, relaxed, fresh)

    def _fresh(self) -> Item | None:
        if self._connection is None:
            return None
        row = sql.ask(self._connection, "pages/fresh").fetchone()
        return {**dict(row), "is_complete": bool(row["is_complete"])}

    def _tail(self, position: int | None, total: int | None, relaxed: object, fresh: object) -> str:
        last = {
            "total": total,
            "next": None if position is None else self._cursors.made(position),
            "relaxed": relaxed,
            "fresh": fresh,
        }
        return "],\n" + safe_json(last)[1:] + "\n"

    def _room(self, taken: int) -> int | None:
        most = self._wanted.max_chars
        return None if most is None else most - taken

    def _item(self, item: Item, room: int | None) -> str:
        """Return an item with the fields that are wanted, cut to `room` if it is longer."""
        text = safe_json(chosen := self._chosen(item))
        if room is None or len(text) <= room:
            return text
        return _cut(chosen, room)

    def _chosen(self, item: Item) -> Item:
        if not self._wanted.fields:
            return item
        names = [name.strip() for name in self._wanted.fields.split(",") if name.strip()]
        for name in names:
            if name not in item:
                raise UsageError(f"--fields: no field {name!r}. There are: {', '.join(item)}.")
        return {name: item[name] for name in names}


def _cut(item: Item, room: int) -> str:
    """Return an item as JSON of at most `room` characters, its longest texts cut, and named so."""
    cut: list[str] = []
    fields = dict(item)
    while len(text := safe_json({**fields, "cut": cut} if cut else fields)) > room:
        name = max(fields, key=lambda field: len(_as_text(fields[field])))
        value = _as_text(fields[name])
        if len(value) <= len(_ELLIPSIS):
            break
        # A character may take several in JSON: what is left is measured again.
        excess = len(text) - room + len(name) + len('"cut": ["", ') + len(_ELLIPSIS)
        kept = max(0, min(len(value) - excess, len(value) * room // len(text)))
        fields[name] = value[:kept] + _ELLIPSIS
        cut += [name] * (name not in cut)
    else:
        return text
    raise UsageError(
        f"--max-chars: an item has {len(text):,} characters without its texts. "
        "Choose fields with --fields, or allow more."
    )


def _as_text(value: object) -> str:
    """Return a value as it can be cut: nested ones as their JSON, numbers not at all."""
    if isinstance(value, str):
        return value
    return safe_json(value) if isinstance(value, (list, dict)) else ""
