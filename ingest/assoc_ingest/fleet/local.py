"""What a push asks the local database: one snapshot, one scope, one set of masks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from . import projection
from .masks import Masks
from .projection import Cursor, File, FileContent, KeyedSet
from .scope import Scope


@dataclass(frozen=True, slots=True)
class Local:
    """The local database as a push sees it. The caller holds a snapshot on the connection."""

    connection: sqlite3.Connection
    scope: Scope
    masks: Masks
    left_out: frozenset[int] = frozenset()
    """Files that a later push has to look at, because this one may not."""

    def cursor(self) -> Cursor | None:
        """Return the state of the database, None if it does not note what changes."""
        return None if self.left_out else projection.cursor(self.connection)

    def is_known(self, seen: Cursor) -> bool:
        """Is everything noted that changed since then?"""
        return projection.is_known(self.connection, seen)

    def files(self, since: int | None) -> Iterator[File]:
        """Yield the files in scope that changed after `since`; all of them if it is None."""
        found = projection.files(self.connection, self.scope, since)
        return (file for file in found if file.id not in self.left_out)

    def content(self, file: File) -> FileContent:
        """Return a file from its first change on."""
        return projection.content(self.connection, file, self.scope, self.masks)

    def keyed(self, since: int | None) -> Iterator[KeyedSet]:
        """Yield the keyed tables of which anything changed after `since`."""
        return projection.keyed(self.connection, self.scope, since, self.masks)

    def gone_file_keys(self, since: int | None) -> list[bytes]:
        """Return the keys of files that were forgotten after `since`."""
        return projection.gone_file_keys(self.connection, since)
