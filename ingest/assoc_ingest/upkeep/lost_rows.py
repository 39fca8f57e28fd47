"""Finds rows of a damaged database that SQLite cannot reach, and what indexes say about lost rows.

Where rows of a table could not be read, there is a hole: a range of ids. Rows in a hole may be on
an undamaged page that nothing points to; they are recognised by their values, which fit the columns
of one table only. If the page of a row is lost, the indexes of its table still have the indexed
columns: the path of a file, the directory of a root.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..failures import is_damage
from ..sources import SOURCES
from .page_reader import Lost, Pages, Row

FARTHEST = 2**62
"""After every id."""

_TYPES = {"INTEGER": (int,), "TEXT": (str,), "BLOB": (bytes,), "REAL": (int, float)}
_MANY = ("messages", "tool_calls", "usage", "responses")
"""Tables with more rows than all others together, all derived from archived bytes."""

_UNKNOWN = Lost()

_PARTS = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_PART = re.compile(r"coalesce\((\w+), (''|x''|-1)\)|(\w+)")
_FOR_NULL = {"''": "", "x''": b"", "-1": -1}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one of our tables."""

    name: str
    type: str
    is_needed: bool

    def takes(self, value: object) -> bool:
        """Can this column have this value?"""
        return not self.is_needed if value is None else isinstance(value, _TYPES[self.type])


@dataclass(slots=True)
class Table:
    """A table of a damaged database: its columns, the id first, and its holes."""

    name: str
    columns: list[Column]
    holes: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of ids: after the first and up to the second, rows could not be read."""
    is_disordered: bool = False
    """Ids were not ascending, so some of them are wrong."""

    def has_hole_at(self, id_: int) -> bool:
        """Is this id in a hole?"""
        place = bisect_left(self.holes, (id_,)) - 1  # the last that begins before it
        return place >= 0 and id_ <= self.holes[place][1]

    def fits(self, values: list[Any]) -> bool:
        """Can these, as far as they are readable, be the values of a row of the table?"""
        if not values or values[0] is not None or len(values) > len(self.columns):
            return False
        is_cut = isinstance(values[-1], Lost)
        if not is_cut and any(column.is_needed for column in self.columns[len(values) :]):
            return False  # rows have no value for a column that was added later
        return len(values) - is_cut > 1 and all(
            isinstance(value, Lost) or column.takes(value)
            for value, column in zip(values[1:], self.columns[1:], strict=False)
        )


@dataclass(slots=True)
class Told:
    """What indexes say about the rows in the holes of a table."""

    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The values of some columns, by id."""
    is_complete: bool = False
    """They say something about every row in a hole."""


def columns(connection: sqlite3.Connection, table: str) -> list[Column]:
    """Return the columns of a table in the order in which they are stored; none if it is lost."""
    try:
        rows = connection.execute(
            'select name, type, "notnull" from pragma_table_info(?)', (table,)
        ).fetchall()
    except UnicodeDecodeError:  # SQLite's message quotes the damaged text
        return []
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return []
    return [Column(name, type_, bool(is_needed)) for name, type_, is_needed in rows]


def found(pages: Pages, tables: list[Table], told: dict[str, Told]) -> Iterator[tuple[Table, Row]]:
    """Yield rows that belong in holes of these tables, from pages that SQLite cannot reach.

    They may lack values at the end. A row that fits two tables cannot be assigned; such tables are
    all derived from archived bytes.
    """
    owners = _owners(pages)
    for leaf in pages.leaves():
        owner = owners.get(leaf.number)
        candidates = [table for table in tables if owner in (None, table.name)]
        for cell in leaf.cells() if candidates else ():
            near = [table for table in candidates if table.has_hole_at(cell.id)]
            row = leaf.row(cell) if near else None
            of = [
                table
                for table in near
                if row and table.fits(row.values) and _agrees(table, row, told[table.name])
            ]
            if row and len(best := _best(of, row)) == 1:
                yield best[0], row


def _best(tables: list[Table], row: Row) -> list[Table]:
    """Return those of the tables that a row most likely belongs to; it fits all of them."""
    roots = [table for table in tables if table.name == "sources" and row.values[1] in SOURCES]
    return roots or [t for t in tables if len(t.columns) == len(row.values)] or tables


def _owners(pages: Pages) -> dict[int, str | None]:
    """Return the table of each page that a root leads to, None if several roots do."""
    owners: dict[int, str | None] = dict.fromkeys(pages.leaves_of(1), "sqlite_schema")
    for name, table, root, _ in pages.schema():
        for number in pages.leaves_of(root) if name == table and root else ():
            owners[number] = None if number in owners else name
    return owners


def _agrees(table: Table, row: Row, told: Told) -> bool:
    """Does the row agree with the indexes, as far as they have it?"""
    here = dict(zip((column.name for column in table.columns), row.values, strict=False))
    return all(
        isinstance(here.get(name, _UNKNOWN), Lost) or here[name] == value
        for name, value in told.rows.get(row.id, {}).items()
    )


def is_healed(sound: sqlite3.Connection, table: Table, told: Told) -> bool:
    """Are all rows in the holes of a table back? Removes from `told` those that are."""
    for id_ in list(told.rows):
        if sound.execute(f"select 1 from {table.name} where id = ?", (id_,)).fetchone():
            del told.rows[id_]
    return told.is_complete and not told.rows


def told_by_indexes(sound: sqlite3.Connection, pages: Pages, table: Table) -> Told:
    """Return what the indexes of a table still say about the rows in its holes.

    `sound` is an undamaged database with the same tables; it is asked for the columns of indexes
    that have no SQL statement.
    """
    told = Told()
    if table.name in _MANY:
        return told
    by_name = {column.name: column for column in table.columns}
    for name, of, root, sql in pages.schema():
        if of != table.name or name == of or not root:
            continue
        names = _indexed(sound, name, sql)
        told.is_complete |= pages.reaches_all(root) and " where " not in (sql or "")
        for *values, id_ in pages.entries(root):
            if not isinstance(id_, int) or not table.has_hole_at(id_) or len(values) != len(names):
                continue
            row = told.rows.setdefault(id_, {})
            for (column, default), value in zip(names, values, strict=True):
                if value != default and column in by_name and by_name[column].takes(value):
                    row[column] = value
    return told


def _indexed(
    connection: sqlite3.Connection, index: str, sql: str | None
) -> list[tuple[str, object]]:
    """Return the columns of an index, each with the value that replaces null, if there is one.

    A unique index is over `coalesce(column, '')` if the column can be null.
    """
    if sql is None:
        rows = connection.execute("select name from pragma_index_info(?)", (index,))
        return [(name, Lost) for (name,) in rows]
    parts = _PARTS.search(sql)
    return [
        (column or plain, _FOR_NULL.get(stand_in, Lost))
        for column, stand_in, plain in _PART.findall(parts[1] if parts else "")
    ]
