"""A directory that may be a home, as sources see it: its names, and the bytes of a few lists.

It is not yet known whose home it is, so what any source withholds is opened for none of them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from ..paths import identity
from ..source import Source, parts_of
from . import scanning
from .scanning import DIRECTORY, Walk
from .stored_names import original_parts, stored_name
from .tail import open_regular

_MAX_LIST = 16 * 1024 * 1024  # bytes of a program's own list that are read


class Listing:
    """The relative paths of entries in the directories that a source wants, breadth first."""

    def __init__(self, path: Path, source: Source, sources: Collection[Source], seen: Walk) -> None:
        self._path = path
        self._source = source
        self._sources = sources
        self._seen = seen

    def __iter__(self) -> Iterator[str]:
        pending: list[tuple[tuple[str, ...], str]] = [((), str(self._path))]
        for parts, directory in pending:
            for entry in scanning.entries(directory, self._seen):
                names = (*parts, stored_name(entry.name))
                yield "/".join(names)
                if self._source.descends(names) and scanning.kind(entry, self._seen) == DIRECTORY:
                    pending.append((names, entry.path))

    def content(self, path: str) -> bytes:
        """Return the bytes of a file, nothing if it cannot be read or must not be opened."""
        location = str(self._path.joinpath(*original_parts(path)))
        if self._is_private(path) or self._is_link_to_private(location):
            return b""
        try:
            descriptor = open_regular(location)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_MAX_LIST)

    def _is_private(self, path: str) -> bool:
        parts = parts_of(path)
        return any(source.withholds(parts) for source in self._sources)

    def _is_link_to_private(self, location: str) -> bool:
        """Is it another name of a file that must not be opened?"""
        try:
            if os.lstat(location).st_nlink <= 1:
                return False
        except OSError:
            return False  # opening it will fail, too
        return identity(location) in (
            identity(entry.path)
            for entry in scanning.entries(str(self._path), Walk())
            if self._is_private(stored_name(entry.name))
        )
