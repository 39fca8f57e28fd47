"""Where the pages of a conversation begin: after a place in one of its files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from .. import sql
from ..ask.conversation import Only, Place
from .urls import BlockPlace

PAGE = 200
"""Messages on a page, results inside their calls counted."""

_CONTEXT = 6  # messages before the one that a search hit opens on


class Begin(NamedTuple):
    """Where a page begins: after a place in the file with this number."""

    file: int
    after: Place | None


FIRST = Begin(0, None)
_PAGE_END = Place(2**62, 0)


class Paging:
    """The pages of the main conversation, or of one subagent, in files in order."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        files: Sequence[int],
        subagent: int | None,
        only: Only | None = None,
    ) -> None:
        """Remember which messages are paged; `only` those of some kinds, where not all are."""
        self._connection = connection
        self._files = files
        self._subagent = subagent
        self._kinds = json.dumps(only.kinds) if only else None

    def last(self) -> Begin:
        return self._back(Begin(len(self._files) - 1, _PAGE_END), PAGE) if self._files else FIRST

    def end(self) -> BlockPlace | None:
        """Return the place of the last message of any kind in the last file."""
        if not self._files:
            return None
        file = self._files[-1]
        row = sql.ask(
            self._connection, "pages/message_before", file=file, subagent=self._subagent, limit=1
        ).fetchone()
        return BlockPlace(file, row["byte_offset"], row["block"]) if row else None

    def behind(self, place: BlockPlace) -> Begin:
        """Return where the page after a place begins; the first page if no file has the place."""
        if place.file not in self._files:
            return FIRST
        return Begin(self._files.index(place.file), Place(place.offset, place.block))

    def around(self, place: BlockPlace) -> Begin:
        """Return where a page begins that shows a place with some messages before it."""
        begin = self.behind(place)
        return begin if begin == FIRST else self._back(begin, _CONTEXT)

    def before(self, begin: Begin) -> BlockPlace | None:
        """Return the place after which the page before this one begins; None: it is the first."""
        if begin == FIRST:
            return None
        file, after = begin
        if after is None:
            file, after = file - 1, _PAGE_END
        # The place after which a page begins is on the page before it.
        place = Place(after.byte_offset, after.block + 1)
        before = self._back(Begin(file, place), PAGE)
        if before.after is None and before.file:
            before = self._back(Begin(before.file - 1, _PAGE_END), 0)
        return before.after and BlockPlace(self._files[before.file], *before.after)

    def _back(self, begin: Begin, count: int) -> Begin:
        """Return where `count` messages before the beginning of a page is, in the same file."""
        after = begin.after
        places = sql.ask(
            self._connection,
            "pages/message_before",
            file=self._files[begin.file],
            subagent=self._subagent,
            before_offset=after.byte_offset if after else 0,
            before_block=after.block if after else 0,
            kinds=self._kinds,
            limit=count + 1,
        ).fetchall()
        if len(places) <= count:
            return Begin(begin.file, None)
        place = Place(places[-1]["byte_offset"], places[-1]["block"])
        return Begin(begin.file, place)
