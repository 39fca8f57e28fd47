"""What the next call will carry, as JSON already, so that its size is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .difference import Stretch
from .server import Range, Row, SentFrame, as_json_bytes
from .tables import KEYED, PLACED, Table

_tables = {table.name: table for table in (*PLACED, *KEYED)}


@dataclass
class Gathered:
    """Stretches of files and keyed rows. `size` is in bytes of frames and JSON."""

    ranges: list[Range] = field(default_factory=list)
    frames: list[SentFrame] = field(default_factory=list)
    rows: dict[str, list[bytes]] = field(default_factory=dict)
    gone: dict[str, list[Row]] = field(default_factory=dict)
    count: int = 0
    size: int = 0

    def add_stretch(self, file_no: int, stretch: Stretch) -> None:
        """Add a stretch of a file, with the frame that it becomes."""
        frame = stretch.frame
        self.ranges.append(Range(file_no, stretch.start, stretch.end))
        for name, rows in frame.rows.items():
            for values in rows:
                self.add_row(name, row_of(_tables[name], values, file_no=file_no))
        data = None if stretch.has_bytes else frame.data
        self.size += len(data or b"")
        self.frames.append(
            SentFrame(
                *(file_no, frame.start, stretch.has_bytes, data),
                *(frame.digest, frame.rows_digest),
            )
        )

    def add_row(self, table: str, row: Row) -> None:
        """Add a row that the server has to have."""
        data = as_json_bytes(row)
        self.rows.setdefault(table, []).append(data)
        self.count += 1
        self.size += len(data)

    def delete(self, table: str, key: Row) -> None:
        """Add the key of a row that the server has to delete."""
        self.gone.setdefault(table, []).append(key)
        self.count += 1

    def is_empty(self) -> bool:
        """Return whether a call would do nothing."""
        return not (self.ranges or self.rows or self.gone)

    def rows_as_json(self) -> dict[str, bytes]:
        """Return the rows of each table as a JSON array."""
        return {name: b"[%s]" % b",".join(some) for name, some in self.rows.items()}


def row_of(table: Table, values: Iterable[object], **more: object) -> Row:
    """Return a row by column; what is null is left out, as it is null on the server then."""
    named = zip(table.names, values, strict=True)
    return more | {name: value for name, value in named if value is not None}
