"""Addresses: of pages and of the rows that a number counts, and permanent ones of messages."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from .. import sql
from ..ask import refs
from ..ask.refs import KeyMatch, Lines
from . import serve

if TYPE_CHECKING:
    from datasette.app import Datasette


# ------------------------------------------------------------------------------------------------
# Addresses of pages, and of the rows that a number counts: of a table, or of a report.
#
# A link with such an address has the number in `data-count`, and in `data-sum` the columns of the
# report that add up to it; without these, it is the number of rows.


PREFIX = "ask-"
"""What the names of our reports and lists begin with in Datasette."""

EVER = "2000-01-01"
"""Before all times: a report that begins here leaves out only rows without a time."""


class Paths:
    """The addresses of the pages, tables and reports of one database: `paths` in every template.

    Those of tables and reports are '' for a server, which has no such pages.
    """

    def __init__(self, datasette: Datasette, database: str) -> None:
        self._urls = datasette.urls
        self._database = database
        self.is_remote = serve.remote() is not None

    @property
    def nothing_yet(self) -> Markup:
        """What to say where there are no conversations at all."""
        if self.is_remote:
            return Markup(
                "This login sees no conversations on the server: nothing has been pushed yet, or "
                "only for teams that it does not read. The server's owner can change that with "
                "<code>assoc-ingest remote add-device</code>."
            )
        return Markup(
            "This database contains no conversations yet. "
            "To fill it, run <code>assoc-ingest sync</code>."
        )

    def page(self, name: str) -> str:
        """Return the address of a page of ours, such as that of a question."""
        return f"{self._urls.database(self._database)}/-/{name}"

    def session(self, key: str) -> str:
        """Return the address of a conversation, or of a subagent."""
        from datasette.utils import tilde_encode

        return self.page(f"session/{tilde_encode(key)}")

    def project(self, project: object) -> str:
        return self.page(f"project/{project}")

    def team(self, team: object) -> str:
        return self.page(f"team/{team}")

    def list(self, **asked: object) -> str:
        """Return the address of the list of conversations with these filters."""
        return with_query(self.page("sessions"), asked)

    def question(self, name: str, **asked: object) -> str:
        return with_query(self.page(name), asked)

    def blame(self, what: str) -> str:
        return f"{self.page('blame')}?what={quote(what)}" if not self.is_remote else ""

    def usage(self, key: str) -> str:
        return self.report("usage-by-session", session=key)

    def table(self, name: str) -> str:
        return str(self._urls.table(self._database, name)) if not self.is_remote else ""

    def row(self, table: str, row: object) -> str:
        return f"{self.table(table)}/{row}" if not self.is_remote else ""

    def rows(self, table: str, **asked: object) -> str:
        """Return the address of a table or a view with these filters."""
        return with_query(self.table(table), asked) if not self.is_remote else ""

    def report(self, name: str, **asked: object) -> str:
        """Return the address of a report with these parameters."""
        if self.is_remote:
            return ""
        return with_query(str(self._urls.query(self._database, PREFIX + name)), asked)


def of_reference(path: Callable[[str], str], ref: str) -> str:
    """Return the address of the page that shows what a reference names.

    It is KEY, KEY:12, KEY/2:12, or, of a line whose number is not known, KEY:B3456.
    """
    head, _, line = ref.rpartition(":")
    if not (head and line.removeprefix("B").isdecimal()):
        return path(ref)
    key, _, file = head.rpartition("/")
    return (
        f"{path(key)}?at={file}:{line}" if key and file.isdecimal() else f"{path(head)}?at={line}"
    )


def with_query(path: str, asked: Mapping[str, object]) -> str:
    """Return an address with parameters; those without a value are left out."""
    parameters = {name: str(value) for name, value in asked.items() if value not in (None, "")}
    return f"{path}?{urlencode(parameters)}" if parameters else path


# ------------------------------------------------------------------------------------------------
# Permanent addresses of messages: by file and line, as in references, never by the id of a row.
#
# `?at=12` is line 12 of the file of the conversation or the subagent in the path, `?at=12.1` the
# second block of that line, `?at=2:12` a line of the second file, as in the reference `KEY/2:12`.
# `?at=B3456` is the block at a byte of the file: for several objects on one line, or if the archive
# has lost its lines. The anchor is that of an exported page: `#L12`, `#f2-L12.1`, `#AGENT-L3`.


class BlockPlace(NamedTuple):
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
        """Return the address of the page that shows the block."""
        return f"{self.path}?at={self.place}#{self.anchor}"

    @property
    def behind(self) -> str:
        """Return the address of the page that begins after the block."""
        return f"{self.path}?after={self.place}"


class MessagePlaces(NamedTuple):
    """The places of a message and of its original."""

    place: BlockPlace
    original: BlockPlace | None
    original_session: str | None
    original_title: str | None
    is_message: bool
    """Is its line counted as a message?"""


def rows(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, MessagePlaces]:
    places = {}
    for row in sql.ask(connection, "pages/message_places", ids=json.dumps(list(ids))):
        original = None
        if row["original_file_id"] is not None:
            original = BlockPlace(
                row["original_file_id"], row["original_offset"], row["original_block"]
            )
        places[row["id"]] = MessagePlaces(
            BlockPlace(row["file_id"], row["byte_offset"], row["block"]),
            original, row["original_session"], row["original_title"],
            bool(row["is_message"]),
        )  # fmt: skip
    return places


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
        links: dict[BlockPlace, Link] = {}
        for file, group in groupby(sorted(set(places)), key=lambda place: place.file):
            key = self._owner(file)
            if key is not None:
                number = self._numbers[key].get(file, 1)
                links.update((place, self._link(key, number, place)) for place in group)
        return links

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
        """Return the address that counts what follows a block, '' if there is none."""
        key = self._owner(place.file)
        return f"{self._path(key.text)}/news?after={self.name(place)}" if key is not None else ""

    def name(self, place: BlockPlace) -> str:
        """Return the value of `at=` for a block whose line is not counted."""
        key = self._owner(place.file)
        number = self._numbers[key].get(place.file, 1) if key is not None else 1
        block = f".{place.block}" if place.block else ""
        return f"{number}:B{place.offset}{block}".removeprefix("1:")

    def _owner(self, file: int) -> KeyMatch | None:
        """Return the conversation of a file, and remember the numbers of its files."""
        if file not in self._owners:
            key = self._owners[file] = refs.owner_of(self._connection, file)
            if key is not None and key not in self._numbers:  # it may have a thousand files
                self._numbers[key] = refs.numbers_of(self._connection, key)
        return self._owners[file]

    def of_row(self, row: int, key: KeyMatch) -> Link | None:
        """Return the address of the message in a row, None if the conversation has no such row."""
        row_place = sql.ask(self._connection, "pages/message_place", id=row).fetchone()
        if row_place is None or row_place["session_key"] != key.session_key:
            return None
        place = BlockPlace(row_place["file_id"], row_place["byte_offset"], row_place["block"])
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
