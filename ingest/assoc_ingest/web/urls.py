"""Addresses: of messages, which last, and of what a number counts."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from .. import sql
from ..ask import refs
from ..ask.refs import KeyMatch, Lines
from ..errors import ArchiveError, NotFoundError
from . import pages
from .pages import PageError

if TYPE_CHECKING:
    from datasette.app import Datasette


# ------------------------------------------------------------------------------------------------
# Addresses of what a number counts: rows of a table, or a report whose rows add up to it.
#
# A link with such an address says the number in `data-count`, and in `data-sum` which columns of
# the report add up to it; without that, it is the number of rows.


EVER = "2000-01-01"
"""Before all times: a report that begins here leaves out only what has no time."""


class Counted:
    """Makes the addresses for one database."""

    def __init__(self, datasette: Datasette, database: str) -> None:
        self._urls = datasette.urls
        self._database = database

    def rows(self, table: str, **asked: object) -> str:
        """Return the address of the rows of a table or a view, of those that the filters leave."""
        return self._address(str(self._urls.table(self._database, table)), asked)

    def report(self, name: str, **asked: object) -> str:
        """Return the address of a report with these parameters."""
        path = str(self._urls.query(self._database, pages.PREFIX + name))
        return self._address(path, asked)

    def _address(self, path: str, asked: dict[str, object]) -> str:
        given = {name: str(value) for name, value in asked.items() if value not in (None, "")}
        return f"{path}?{urlencode(given)}" if given else path


# ------------------------------------------------------------------------------------------------
# Addresses of messages that last: by file and line, as references have them, by no id of a row.
#
# `?at=12` is line 12 of the file of the conversation or the subagent in the path, `?at=12.1` the
# second block of that line, `?at=2:12` a line of the second file, as in the reference `KEY/2:12`.
# `?at=B3456` is the block at a byte of the file: where several objects stand in one line, or the
# archive has lost its lines. The anchor is the one of an exported page: `#L12`, `#f2-L12.1`,
# `#AGENT-L3`.


_place = re.compile(
    r"(?:(?P<file>\d{1,9}):)?(?:B(?P<byte>\d{1,18})|(?P<line>\d{1,15}))(?:\.(?P<block>\d{1,9}))?",
    re.ASCII,
)


class BlockPlace(NamedTuple):
    """Where a block is stored."""

    file: int
    offset: int
    block: int


class Link(NamedTuple):
    """The address of a block: the path of its conversation, and what comes after `at=`."""

    path: str
    place: str
    anchor: str

    @property
    def address(self) -> str:
        """Return what opens the page that has the block."""
        return f"{self.path}?at={self.place}#{self.anchor}"

    @property
    def behind(self) -> str:
        """Return what opens the page that begins behind the block."""
        return f"{self.path}?after={self.place}"


class MessagePlaces(NamedTuple):
    """The places of a message, and of what it is a copy of."""

    place: BlockPlace
    original: BlockPlace | None
    original_session: str | None
    original_title: str | None
    is_message: bool
    """Is it of a line that counts as a message?"""


class AddressedPlace(NamedTuple):
    """A place as an address names it."""

    file: int
    line: int | None
    byte: int
    block: int | None


def asked(text: str | None) -> AddressedPlace | None:
    """Parse what an address says after `at=`; raise PageError if it is no place."""
    if not text:
        return None
    match = _place.fullmatch(text)
    if match is None:
        raise PageError(400, f"{text!r} is not the place of a message. For line 12, use ?at=12")
    line, block = match["line"], match["block"]
    return AddressedPlace(
        file=int(match["file"] or 1),
        line=int(line) if line else None,
        byte=int(match["byte"] or 0),
        block=int(block) if block else None,
    )


def row_id(text: str | None) -> int | None:
    """Return the id of a row that an address has; raise PageError if it is not a number."""
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise PageError(400, f"{text!r} is not a message id.")
    return int(text)


def find(
    connection: sqlite3.Connection, key: KeyMatch, place: AddressedPlace, path: str
) -> refs.Line:
    """Return the line that a place in the files of `key` means, or the nearest with messages.

    Raises PageError, with what to open instead, where the file ends before; `path` is that of the
    page of `key`.
    """
    head = key.text if place.file == 1 else f"{key.text}/{place.file}"
    file = None
    try:
        file = refs.file_of(connection, key, place.file, head)
        if place.line is None:
            return _at_byte(connection, refs.Line(key, file, 0, place.byte, place.byte + 1), head)
        return refs.line_of(connection, key, file, place.line, head)
    except (NotFoundError, ArchiveError) as error:
        links = [("The conversation from its beginning", path)]
        if file is not None and (last := Lines(connection).count(file.id)):
            number = f"{place.file}:{last}" if place.file > 1 else str(last)
            links.append((f"Line {last:,}, the last", f"{path}?at={number}"))
        first, _, hint = str(error).rpartition(". ")  # the hint is one for the command line
        raise PageError(404, f"{first}." if first else hint, links) from error


def _at_byte(connection: sqlite3.Connection, line: refs.Line, head: str) -> refs.Line:
    if not refs.messages_of(connection, line):
        raise NotFoundError(f"No message begins at byte {line.byte_offset:,} of {head}.")
    return line


def rows(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, MessagePlaces]:
    found = {}
    for row in sql.ask(connection, "pages/message_places", ids=json.dumps(list(ids))):
        original = None
        if row["original_file_id"] is not None:
            original = BlockPlace(
                row["original_file_id"], row["original_offset"], row["original_block"]
            )
        found[row["id"]] = MessagePlaces(
            BlockPlace(row["file_id"], row["byte_offset"], row["block"]),
            original, row["original_session"], row["original_title"],
            bool(row["is_message"]),
        )  # fmt: skip
    return found


class Permalinks:
    """Makes the addresses of blocks; `path` gives the address of the page of a key."""

    def __init__(self, connection: sqlite3.Connection, path: Callable[[str], str]) -> None:
        self._connection = connection
        self._path = path
        self._lines = Lines(connection)
        self._numbers: dict[KeyMatch, dict[int, int]] = {}
        self._owners: dict[int, KeyMatch | None] = {}

    def of(self, places: Iterable[BlockPlace]) -> dict[BlockPlace, Link]:
        """Return the address of each place whose file belongs to a conversation.

        They are looked up in the order of the files, so that no frame of the archive is read twice.
        """
        found: dict[BlockPlace, Link] = {}
        for file, group in groupby(sorted(set(places)), key=lambda place: place.file):
            key = self._owner(file)
            if key is not None:
                number = self._numbers[key].get(file, 1)
                found.update((place, self._link(key, number, place)) for place in group)
        return found

    def by_byte(self, place: BlockPlace) -> str:
        """Return an address of a block for which no line is counted; '' if there is none.

        It lasts as long, and costs nothing: links to all parts of a file would read all of it.
        """
        key = self._owner(place.file)
        return f"{self._path(key.text)}?at={self.name(place)}" if key is not None else ""

    def image(self, place: BlockPlace, number: int) -> str:
        """Return the address of an image of a block, '' if there is none."""
        key = self._owner(place.file)
        if key is None:
            return ""
        return f"{self._path(key.text)}/image?at={self.name(place)}&n={number}"

    def news(self, place: BlockPlace) -> str:
        """Return the address that reports what came after a block, '' if there is none."""
        key = self._owner(place.file)
        return f"{self._path(key.text)}/news?after={self.name(place)}" if key is not None else ""

    def name(self, place: BlockPlace) -> str:
        """Return what an address says after `at=` of a block for which no line is counted."""
        key = self._owner(place.file)
        number = self._numbers[key].get(place.file, 1) if key is not None else 1
        block = f".{place.block}" if place.block else ""
        return f"{number}:B{place.offset}{block}".removeprefix("1:")

    def _owner(self, file: int) -> KeyMatch | None:
        """Return the key of a file; the numbers of its files are known from then on."""
        if file not in self._owners:
            key = self._owners[file] = refs.owner_of(self._connection, file)
            if key is not None and key not in self._numbers:  # it may have a thousand files
                self._numbers[key] = refs.numbers_of(self._connection, key)
        return self._owners[file]

    def of_row(self, row: int, key: KeyMatch) -> Link | None:
        """Return the address of the message in a row, None if the conversation has no such row."""
        found = sql.ask(self._connection, "pages/message_place", id=row).fetchone()
        if found is None or found["session_key"] != key.session_key:
            return None
        place = BlockPlace(found["file_id"], found["byte_offset"], found["block"])
        return self.of([place]).get(place)

    def _link(self, key: KeyMatch, file: int, place: BlockPlace) -> Link:
        line = self._lines.number(place.file, place.offset)
        block = f".{place.block}" if place.block else ""
        byte = f"B{place.offset}{block}"
        if line is None:
            name = anchor = byte
        elif self._lines.is_start(place.file, place.offset):
            name, anchor = f"{line}{block}", f"L{line}{block}"
        else:
            name, anchor = byte, f"L{line}.B{place.offset}.{place.block}"
        agent = f"{quote(key.agent_key, safe='')}-" if key.agent_key is not None else ""
        prefix, number = (f"f{file}-", f"{file}:") if file > 1 else ("", "")
        return Link(self._path(key.text), f"{number}{name}", f"{agent}{prefix}{anchor}")
