"""Reads the pages of a damaged database directly from the file.

SQLite finds a row from the root of its table, page by page: if a page on the way is damaged, it
cannot reach what is after it, even if that is undamaged. Here every page is read, whatever points
to it, and so are the entries of indexes, which repeat columns of lost rows
(https://www.sqlite.org/fileformat2.html).

Nothing in a page is trusted before it is checked: a page number can be any number, and a page can
contain anything. What makes no sense is left out; no content of a file raises an error here.
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
_LISTED = 5  # columns of the schema table
_INTEGERS = (0, 1, 2, 3, 4, 6, 8)  # bytes of an integer, by its serial type

_NONSENSE = (IndexError, ValueError, struct.error)
"""Exceptions of decoding bytes that SQLite did not write."""


class Lost:
    """A value that cannot be read, or only its beginning."""

    def __init__(self, beginning: bytes = b"") -> None:
        self.beginning = beginning


class Cell(NamedTuple):
    """The position of a row on its page: its id, the start and the length of its values."""

    id: int
    place: int
    length: int


class Row(NamedTuple):
    """A row as it is stored: its id, and the values stored with it."""

    id: int
    values: list[Any]
    """None is stored for the id itself; there are no values after the first lost one."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one file. The write-ahead log must be empty: see `opened`."""

    data: mmap.mmap
    size: int
    """Size of a page in bytes."""
    usable: int
    """Bytes of each page that SQLite uses."""

    @property
    def count(self) -> int:
        """The number of pages; the last one may be truncated."""
        return -(-len(self.data) // self.size)

    def page(self, number: int) -> bytes:
        """Return the page with this number, from 1. Raises IndexError if there is none."""
        if not 1 <= number <= self.count:
            raise IndexError(number)
        return self.data[(number - 1) * self.size : number * self.size]

    def leaves(self) -> Iterator[Leaf]:
        """Yield every page with rows of a table that is in use, except the first page."""
        free = self._free()
        for number in range(2, self.count + 1):
            if self.data[(number - 1) * self.size] == _TABLE_LEAF and number not in free:
                yield Leaf(self, number, self.page(number))

    def schema(self) -> list[tuple[str, str, int, str | None]]:
        """Return what the schema table still has: name, name of the table, root page, SQL."""
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
        """Return the numbers of the pages with rows that the root of a table leads to."""
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
        """Return the free pages: they contain rows that were deleted."""
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
        """Yield the reachable entries of an index; the last value is the id of the row."""
        for page, places in self._nodes(root):
            for place in places:
                try:
                    length, at = _varint(page, place if page[0] == _INDEX_LEAF else place + 4)
                    yield _record(self.payload(page, at, length, _most_of_index(self.usable)))
                except _NONSENSE:
                    continue

    def reaches_all(self, root: int) -> bool:
        """Can all pages of an index be reached from its root?"""
        return all(page for page, _ in self._nodes(root))

    def _nodes(self, root: int) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Yield the pages of an index, each with the offsets of its cells; b"" if it is not one."""
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
        """Return the readable part of a payload, and its full length."""
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
        """Return the readable rest of a payload, which is on a chain of pages.

        A page that does not lead to a next one was overwritten, so it does not belong to the chain.
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
    """A page with rows of a table; it does not say of which one."""

    pages: Pages
    number: int
    data: bytes

    def cells(self) -> Iterator[Cell]:
        """Yield the positions of its rows, with their ids."""
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
        """Return a row, None if its bytes make no sense."""
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
    """Return the number of bytes of an index entry that are stored on its page."""
    return (usable - 12) * 64 // 255 - 23


def _start(number: int) -> int:
    """Return the offset of the content of a page: on the first page, after the file header."""
    return _HEADER if number == 1 else 0


def _places(page: bytes, start: int, header: int) -> tuple[int, ...]:
    """Return the offsets of the cells of a page; `header` is the length of the page's header."""
    (count,) = struct.unpack_from(">H", page, start + 3)
    return struct.unpack_from(f">{count}H", page, start + header)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset after it."""
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9


def _record(payload: tuple[bytes, int]) -> list[Any]:
    """Decode the values of a row, up to the first incomplete one."""
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
