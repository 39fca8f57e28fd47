"""Covers credentials in what leaves this machine, by the rules of `secrets`.

In bytes, each letter becomes a star, so that offsets stay and JSON stays JSON (`redact_bytes`). The
rows of a line with a credential become what a parser makes of the covered line: the line is parsed
twice, and what differs between the two is put into the rows. What follows from several lines, as a
title does, or from bytes that are not archived, may be cut anywhere: there, what only begins like a
credential is covered, too, as in an export.

Patterns miss things: a password in a sentence looks like any other word.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArchiveError
from ..files import archive
from ..files.replay import claim_of
from ..secrets.find import LONGEST
from ..secrets.mask import redact, redact_bytes
from ..secrets.rules import REVISED
from ..source import LOG, Claim, Line, Source
from ..sources import SOURCES
from ..store.known_files import known_file
from .tables import PLACED, TEXT, Table

VERSION = REVISED
"""The version of the rules: when it changes, everything has to be compared."""

Row = tuple[Any, ...]

_OF_SEVERAL_LINES = {"prompts", "links", "plans", "todos", "inbox_items"}
"""Tables whose rows may have text of other lines, or of other files."""

_TABLES = {table.name: table for table in PLACED}


@dataclass(slots=True)
class Masks:
    """Covers credentials, unless it is off, and counts them by kind."""

    is_on: bool = True
    counts: Counter[str] = field(default_factory=Counter)

    def of_file(self, connection: sqlite3.Connection, file_id: int) -> FileMasks | None:
        """Return what covers the credentials of a file, None if nothing is covered."""
        if not self.is_on:
            return None
        known = known_file(connection, file_id)
        (kind,) = connection.execute(
            "select x.kind from files f join sources x on x.id = f.source_id where f.id = ?",
            (file_id,),
        ).fetchone()
        source = SOURCES.get(kind)
        claim = claim_of(source, known) if source is not None and known is not None else None
        return FileMasks(connection, self, file_id, source, claim)

    def rows(self, table: Table, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows with the credentials in their values covered."""
        if not self.is_on:
            yield from rows
            return
        places = _texts(table)
        for row in rows:
            texts = "\n".join([row[place] for place in places if row[place]])
            yield row if not texts or not redact(texts)[1] else self._covered(row, places)

    def _covered(self, row: Row, places: Sequence[int]) -> Row:
        values = list(row)
        for place in places:
            if values[place]:
                values[place], found = redact(values[place])
                self.counts.update(found)
        return tuple(values)

    def text(self, text: str) -> str:
        """Return a text of a line with its credentials covered, each letter by a star."""
        data, found = redact_bytes(text.encode(), is_log=False)
        return data.decode() if found else text


def _texts(table: Table) -> list[int]:
    """Return the places of the columns that may have a credential: keys join rows, and stay."""
    return [
        place
        for place, column in enumerate(table.columns)
        if column.type == TEXT and not column.is_cut
    ]


@dataclass(frozen=True, slots=True)
class FileMasks:
    """Covers the credentials of one file, frame by frame."""

    connection: sqlite3.Connection
    masks: Masks
    file_id: int
    source: Source | None
    claim: Claim | None

    def applied(
        self, frame: archive.Frame, rows: dict[str, list[Row]], *, is_last: bool
    ) -> tuple[bytes | None, dict[str, list[Row]]]:
        """Return the data of a frame and its rows, covered; None: its bytes are not there."""
        try:
            original = archive.unpacked(frame, self.file_id)
            before, after = self._around(frame, original, is_last=is_last)
        except ArchiveError:  # damaged, or never archived: only the rows can be sent
            return None, self._by_value(rows)
        is_log = self._is_log()
        covered, found = redact_bytes(before + original + after, is_log=is_log)
        covered = covered[len(before) : len(covered) - len(after)]
        self.masks.counts.update(found)
        changed = _changed_lines(original, covered) if is_log else [(0, len(original))]
        lines = list(changed) if covered != original else []
        if after or before:  # a row has text of a frame behind the one that it begins in
            rows = self._by_value(rows)
        rows = self._rewritten(frame.start, original, covered, lines, rows)
        if covered == original:
            return frame.data, rows
        return archive.Compressor().compressed(covered), rows

    def _around(
        self, frame: archive.Frame, original: bytes, *, is_last: bool
    ) -> tuple[bytes, bytes]:
        """Return the bytes around a frame, if what it begins or ends with is beyond its borders."""
        is_log = self._is_log()
        before = after = b""
        if not is_last and not (is_log and original.endswith(b"\n")):
            after = self._read(frame.end, frame.end + LONGEST)
        if frame.start and not (is_log and self._read(frame.start - 1, frame.start) == b"\n"):
            before = self._read(max(0, frame.start - LONGEST), frame.start)
        return before, after

    def _read(self, start: int, end: int) -> bytes:
        return b"".join(archive.read(self.connection, self.file_id, start, end))

    def _is_log(self) -> bool:
        return (
            self.source is not None
            and self.claim is not None
            and self.source.shape(self.claim) == LOG
        )

    def _by_value(self, rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
        return {name: list(self.masks.rows(_TABLES[name], found)) for name, found in rows.items()}

    def _rewritten(
        self,
        start: int,
        original: bytes,
        covered: bytes,
        lines: list[tuple[int, int]],
        rows: dict[str, list[Row]],
    ) -> dict[str, list[Row]]:
        """Return the rows with those of these lines covered."""
        values = {
            start + low: self._differences(start + low, original[low:high], covered[low:high])
            for low, high in lines
        }
        found: dict[str, list[Row]] = {}
        for name, kept in rows.items():
            places = _texts(_TABLES[name])
            found[name] = [
                self._of_line(row, places, values.get(row[0], {}))
                if row[0] in values or name in _OF_SEVERAL_LINES
                else row
                for row in kept
            ]
        return found

    def _differences(self, offset: int, original: bytes, covered: bytes) -> dict[str, str]:
        """Return what becomes of the values of a line when it is covered."""
        if self.source is None or self.claim is None:
            return {}
        before, after = (
            self.source.parse(self.claim, [Line(offset, data)]) for data in (original, covered)
        )
        changed: dict[str, str] = {}
        if len(before) == len(after):
            for old, new in zip(before, after, strict=True):
                for one, other in zip(old, new, strict=False):
                    if isinstance(one, str) and isinstance(other, str) and one != other:
                        changed[one] = other
        return changed

    def _of_line(self, row: Row, places: Sequence[int], values: dict[str, str]) -> Row:
        cells = list(row)
        for place in places:
            if cells[place]:
                known = values.get(cells[place])
                cells[place] = self.masks.text(cells[place]) if known is None else known
        return tuple(cells)


def _changed_lines(original: bytes, covered: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each line that was covered, without its line break."""
    position = 0
    while position < len(original):
        end = original.find(b"\n", position)
        end = len(original) if end < 0 else end
        if original[position:end] != covered[position:end]:
            yield position, end
        position = end + 1
