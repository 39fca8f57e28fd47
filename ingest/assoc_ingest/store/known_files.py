"""What earlier syncs knew about files: to compare them, and to find them by path."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..fields import orjson
from ..source import DATABASE, KnownFile

if TYPE_CHECKING:
    from ..files.walk import ListedDirectory, Stat

_KNOWN = (
    "select id, path, kind, generation, size, mtime_ns, ctime_ns, inode, device, gone_at,"
    " session_key, agent_key, offset, head_hash, tail_hash, prefix_crc, context from files"
)

_NEWEST = (
    "not exists (select 1 from files newer where newer.source_id = files.source_id"
    " and newer.path = files.path and newer.generation > files.generation)"
)

_NEVER = -1
"""The size in the stat of what has to be looked at in any case: no file has it."""


class KnownFiles(NamedTuple):
    """The files below some places of a root, for a plan: their stats, and the rows of a few.

    Without a connection or a source, there are none.
    """

    connection: sqlite3.Connection | None
    source_id: int | None
    places: Collection[ListedDirectory]

    def stats(self) -> set[Stat]:
        """Return the stats of all that was there, as SQLite hands them over: no object for each.

        A database has to be looked at in any case, since its log may have changed, and so has a
        file that was not read to its end, or that is an entry of a store.
        """
        found: set[Stat] = set()
        for where, values in self._limits():
            found.update(
                self._rows(
                    "select path, iif(kind = :database or mtime_ns = 0 or instr(path, '#'),"
                    " :never, size), mtime_ns, ctime_ns, inode from files"
                    f" where {where} and gone_at is null and {_NEWEST}",
                    {**values, "database": DATABASE, "never": _NEVER},
                )
            )
        return found

    def all(self) -> dict[str, KnownFile]:
        return self._by_path("", {})

    def at(self, paths: Iterable[str]) -> dict[str, KnownFile]:
        """Return what is known about these paths: in a first sync very many, and nothing."""
        wanted = list(paths)
        if not wanted or not self._is_any():
            return {}
        return self._by_path(
            " and path in (select value from json_each(:paths))",
            {"paths": orjson.dumps(wanted).decode()},
        )

    def gone_entries(self) -> dict[str, KnownFile]:
        return self._by_path(" and gone_at is not null and instr(path, '#')", {})

    def _is_any(self) -> bool:
        query = "select 1 from files where source_id = :source limit 1"
        return any(True for _ in self._rows(query, {"source": self.source_id}))

    def _by_path(self, where: str, values: dict[str, Any]) -> dict[str, KnownFile]:
        """Return the newest generation of each path."""
        return {
            row[1]: KnownFile._make(row)
            for limit, limits in self._limits()
            for row in self._rows(
                f"{_KNOWN} where {limit}{where} order by path, generation", {**limits, **values}
            )
        }

    def _limits(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for place in self.places:
            yield _limit(self.source_id, place)

    def _rows(self, statement: str, values: dict[str, Any]) -> Iterable[Any]:
        if self.connection is None or self.source_id is None:
            return ()
        cursor = self.connection.cursor()
        cursor.row_factory = None  # a row of any other form is no member of a set of tuples
        return cursor.execute(statement, values)


def known_file(connection: sqlite3.Connection, file_id: int) -> KnownFile | None:
    """Return one file, None if it has no row any more."""
    row = connection.execute(f"{_KNOWN} where id = ?", (file_id,)).fetchone()
    return KnownFile(*row) if row is not None else None


def _limit(source_id: int | None, place: ListedDirectory) -> tuple[str, dict[str, Any]]:
    """Return the condition for the files of a source in a place, with its values."""
    start = "".join(f"{part}/" for part in place.parts)
    where = "source_id = :source"
    if start:
        where += " and path > :start and path < :end"  # '0' follows '/' in ASCII
    if not place.is_deep:
        where += " and instr(substr(path, length(:start) + 1), '/') = 0"
    return where, {"source": source_id, "start": start, "end": f"{start[:-1]}0"}
