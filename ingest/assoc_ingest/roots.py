"""Which roots there are: those that the user names, or the defaults and all ever named."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .discover import ASSOCIATE, Root, default_roots, recognised
from .errors import NotFoundError, UsageError
from .outcome import Report
from .sources import SOURCES
from .storable import original_root, stored_root


def find_roots(
    connection: sqlite3.Connection | None,
    given: list[Root],
    only: str | None,
    report: Report,
) -> list[Root]:
    """Return the roots to read: those given, else the defaults and the remembered ones.

    Raises NotFoundError, which says where was looked, if there is none.
    """
    roots = {}
    for root in given:
        if root.path.is_dir():
            roots[root.source.name, root.path] = root
        else:  # it was there when the user named it
            report.missing_roots.append(root.name)
    if not given:
        looked = default_roots(os.environ, _project_paths(connection))
        for root in _shaped(looked, only):
            roots.setdefault((root.source.name, root.path), root)
        for kind, path in _remembered(connection, only):
            if not path.is_dir():
                report.missing_roots.append(stored_root(path))
            elif kind in SOURCES:
                roots.setdefault((kind, path), Root(SOURCES[kind], path))
        if not roots and not report.missing_roots:
            places = ", ".join(str(path) for path in looked if path.name != ASSOCIATE)
            raise NotFoundError(
                f"No home of a coding agent found (looked at {places}). "
                "Name one: assoc-ingest sync PATH"
            )
    report.roots = [root.name for root in roots.values()]
    return list(roots.values())


def root_paths(connection: sqlite3.Connection, given: list[Root], only: str | None) -> list[Path]:
    """Return the paths at which `find_roots` looks, whether or not anything is there."""
    if given:
        return [root.path for root in given]
    remembered = [path for _, path in _remembered(connection, only)]
    return [*default_roots(os.environ, _project_paths(connection)), *remembered]


def _project_paths(connection: sqlite3.Connection | None) -> list[str]:
    """Return the directories of known projects that are on this disk."""
    if connection is None:
        return []
    rows = connection.execute("select path from projects where on_disk = 1 order by path")
    return [path for (path,) in rows]


def _shaped(paths: list[Path], only: str | None) -> Iterator[Root]:
    for path in paths:
        if path.is_dir():
            with suppress(UsageError):  # it is there but holds nothing of ours
                yield from recognised(path, SOURCES, only)


def _remembered(
    connection: sqlite3.Connection | None, only: str | None
) -> Iterator[tuple[str, Path]]:
    if connection is None:
        return
    for kind, root in connection.execute("select kind, root from sources order by id"):
        if only in (None, kind):
            yield kind, original_root(root)
