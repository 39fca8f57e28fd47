"""Reads the pages of a damaged database directly from the file.

SQLite finds a row from the root of its table, page by page: where a page on the way is damaged,
everything after it is out of its reach, even if it is undamaged. Here every page is looked at,
whatever leads to it, and so are the entries of an index, which repeat columns of rows that are
gone (https://www.sqlite.org/fileformat2.html).

Nothing in a page is believed before it is checked: a number may lead anywhere, and a page may hold
anything. What makes no sense is left out; nothing here raises on what a file holds.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_INDEX_NODE, _TABLE_NODE, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_HEADER = 100  # bytes of the file before its first page
_LISTED = 5  # columns of the list of tables and indexes
_INTEGERS = (0, 1, 2, 3, 4, 6, 8)  # bytes of an integer, by its serial type

_NONSENSE = (IndexError, ValueError, struct.error)
"""What decoding raises on bytes that SQLite did not write."""


class Lost:
    """Stands for a value of which nothing, or only the beginning, can be read."""

    def __init__(self, beginning: bytes = b"") -> None:
        self.beginning = beginning


class Cell(NamedTuple):
    """Where a row is on its page: its id, where its values begin, and how long they are."""

    id: int
    place: int
    length: int


class Row(NamedTuple):
    """A row as its page holds it: its id, and the values that are stored with it."""

    id: int
    values: list[Any]
    """Of the id itself None is stored; behind the first value that is lost there is none."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one file. None of them may be in a log: see `opened`."""

    data: mmap.mmap
    size: int
    """Bytes of a page."""
    usable: int
    """Bytes of a page that SQLite uses."""

    @property
    def count(self) -> int:
        """How many there are; the last may be cut off."""
        return -(-len(self.data) // self.size)

    def page(self, number: int) -> bytes:
        """Return a page; they are numbered from 1. Raises IndexError if there is no such page."""
        if not 1 <= number <= self.count:
            raise IndexError(number)
        return self.data[(number - 1) * self.size : number * self.size]

    def leaves(self) -> Iterator[Leaf]:
        """Yield every page with rows of a table that is in use, but for the first of all."""
        free = self._free()
        for number in range(2, self.count + 1):
            if self.data[(number - 1) * self.size] == _TABLE_LEAF and number not in free:
                yield Leaf(self, number, self.page(number))

    def schema(self) -> list[tuple[str, str, int, str | None]]:
        """Return what is still listed: name, name of its table, root page, and statement."""
        listed = []
        for number in self.leaves_of(1):
            try:
                leaf = Leaf(self, number, self.page(number))
            except IndexError:
                continue
            for row in filter(None, map(leaf.row, leaf.cells())):
                if len(row.values) == _LISTED and isinstance(row.values[3], int):
                    _, name, table, root, statement = row.values
                    listed.append((str(name), str(table), root, statement))
        return [item for item in listed if not isinstance(item[3], Lost)]

    def leaves_of(self, root: int) -> set[int]:
        """Return the numbers of the pages with rows to which the root of a table leads."""
        found = {root}
        pending = [root]
        while pending:
            try:
                number = pending.pop()
                page, start = self.page(number), _start(number)
                if page[start] == _TABLE_NODE:
                    led = {
                        child
                        for place in (start + 8, *_places(page, start, 12))
                        for child in struct.unpack_from(">I", page, place)
                    }
                    pending += led - found
                    found |= led
            except _NONSENSE:
                continue
        return found

    def _free(self) -> set[int]:
        """Return the pages that are in no use: they hold rows that were deleted."""
        found: set[int] = set()
        (trunk,) = struct.unpack_from(">I", self.page(1), 32)
        while trunk and trunk not in found:
            found.add(trunk)
            try:
                page = self.page(trunk)
                trunk, count = struct.unpack_from(">II", page)
                found.update(struct.unpack_from(f">{min(count, self.size)}I", page, 8))
            except _NONSENSE:
                break
        return found

    def entries(self, root: int) -> Iterator[list[Any]]:
        """Yield the entries of an index that can be reached; the last value is the row's id."""
        for page, places in self._nodes(root):
            for place in places:
                try:
                    length, at = _varint(page, place if page[0] == _INDEX_LEAF else place + 4)
                    yield _record(self.payload(page, at, length, _most_of_index(self.usable)))
                except _NONSENSE:
                    continue

    def reaches_all(self, root: int) -> bool:
        """Can every page of an index be reached from its root?"""
        return all(page for page, _ in self._nodes(root))

    def _nodes(self, root: int) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Yield the pages of an index, each with where its cells begin; empty if it is none."""
        pending, seen = [root], set()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            try:
                page = self.page(number)
                if page[0] == _INDEX_NODE:
                    places = _places(page, 0, 12)
                    for place in (8, *places):
                        pending += struct.unpack_from(">I", page, place)
                elif page[0] == _INDEX_LEAF:
                    places = _places(page, 0, 8)
                else:
                    raise ValueError("no page of an index")
            except _NONSENSE:
                yield b"", ()
            else:
                yield page, places

    def payload(self, page: bytes, start: int, length: int, most: int) -> tuple[bytes, int]:
        """Return what can be read of a payload, and how long it should be."""
        least = (self.usable - 12) * 32 // 255 - 23
        here = length
        if length > most:
            here = least + (length - least) % (self.usable - 4)
            here = here if here <= most else least
        data = page[start : start + here]
        if start + here > self.usable or len(data) < here:
            raise ValueError("a payload that does not end on its page")
        if length == here:
            return data, length
        (further,) = struct.unpack_from(">I", page, start + here)
        return data + self._overflow(further, length - here), length

    def _overflow(self, number: int, length: int) -> bytes:
        """Return what can be read of the rest of a payload, which is on a chain of pages.

        A page that does not lead to the next one is itself no page of the chain: it was written
        over.
        """
        parts: list[bytes] = []
        each = self.usable - 4
        for left in range(-(-length // each), 0, -1):
            try:
                page = self.page(number)
                (number,) = struct.unpack_from(">I", page)
            except _NONSENSE:
                break
            if (number == 0) != (left == 1) or number > self.count or not any(page):
                break
            parts.append(page[4 : 4 + each])
        return b"".join(parts)[:length]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page with rows of some table: it does not say of which."""

    pages: Pages
    number: int
    data: bytes

    def cells(self) -> Iterator[Cell]:
        """Yield where its rows begin, with their ids."""
        try:
            if self.data[_start(self.number)] != _TABLE_LEAF:
                return
            places = _places(self.data, _start(self.number), 8)
        except _NONSENSE:
            return
        for place in places:
            with suppress(*_NONSENSE):
                length, place = _varint(self.data, place)
                id_, place = _varint(self.data, place)
                yield Cell(id_, place, length)

    def row(self, cell: Cell) -> Row | None:
        """Return a row, None if what is there makes no sense."""
        pages = self.pages
        try:
            payload = pages.payload(self.data, cell.place, cell.length, pages.usable - 35)
            return Row(cell.id, _record(payload))
        except _NONSENSE:
            return None


@contextmanager
def opened(path: Path) -> Iterator[Pages]:
    """Yield the pages of a database whose log is empty. Raises ValueError if it has no header."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        (size,) = struct.unpack_from(">H", data, 16)
        size = 65536 if size == 1 else size
        if size < 512 or size & (size - 1):
            raise ValueError("no size of a page")
        yield Pages(data, size, size - data[20])


def _most_of_index(usable: int) -> int:
    """Return the bytes of an entry of an index that stay on its page."""
    return (usable - 12) * 64 // 255 - 23


def _start(number: int) -> int:
    """Return where a page begins: the first one behind the header of the file."""
    return _HEADER if number == 1 else 0


def _places(page: bytes, start: int, header: int) -> tuple[int, ...]:
    """Return where the cells of a page begin, whose own header is so long."""
    (count,) = struct.unpack_from(">H", page, start + 3)
    return struct.unpack_from(f">{count}H", page, start + header)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place, and the place behind it."""
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9


def _record(payload: tuple[bytes, int]) -> list[Any]:
    """Decode the values of a row, up to the first that is not all there."""
    data, whole = payload
    end, at = _varint(data, 0)
    place, values = end, []
    while at < end:
        kind, at = _varint(data, at)
        length = _INTEGERS[kind] if kind < 7 else 8 if kind == 7 else max(0, kind - 12) // 2
        if at > end or kind < 0 or kind in (10, 11) or place + length > whole:
            raise ValueError("no record")
        raw = data[place : place + length]
        if len(raw) < length:
            values.append(Lost(raw))
            break
        values.append(_value(kind, raw))
        place += length
    return values


def _value(kind: int, raw: bytes) -> Any:
    if kind == 0:
        return None
    if kind < 7:
        return int.from_bytes(raw, signed=True)
    if kind == 7:
        return struct.unpack(">d", raw)[0]
    if kind < 10:
        return kind - 8
    if kind % 2 == 0:
        return raw
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Lost()
