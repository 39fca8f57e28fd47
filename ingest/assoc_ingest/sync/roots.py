"""Finds the roots: those that the user gives, or the defaults and all that were ever given.

A failing root does not affect the others. If a root is missing or cannot be read, that is reported,
and its rows are kept.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import AmbiguousHomeError, NotFoundError, UnreadableError, UsageError
from ..files.stored_names import original_root, stored_root
from ..files.walk import Root, default_roots, directories_in_homes, recognised, root_at
from ..paths import is_directory, obstacle, real_path, why_unknown
from ..pulled_roots import PULLED
from ..sources import SOURCES
from ..store.report import Report

Given = Root | Path
"""What the user gives: a root, or a path that could not be read yet and is tried again."""

_Roots = dict[tuple[str, Path], Root]


def given_roots(paths: Sequence[Path], only: str | None) -> list[Given]:
    """Return the roots at these paths, or the paths that cannot be read yet.

    Raises UsageError for a path that is not a root, and if none of them can be read.
    """
    given: list[Given] = []
    failure: UnreadableError | None = None
    for path in paths:
        try:
            given += recognised(path, SOURCES, only)
        except UnreadableError as error:
            given.append(path)
            failure = error
    if failure is not None and not any(isinstance(item, Root) for item in given):
        raise failure
    return given


def find_roots(
    connection: sqlite3.Connection | None,
    given: Sequence[Given],
    only: str | None,
    report: Report,
) -> list[Root]:
    """Return the roots to read: those given, otherwise the defaults and the remembered ones.

    Raises NotFoundError, which lists the paths that were searched, if there is none.
    """
    roots = _named(given, only, report) if given else _known(connection, only, report)
    report.roots = [root.name for root in roots.values()]
    return list(roots.values())


def root_paths(
    connection: sqlite3.Connection, given: Sequence[Given], only: str | None
) -> list[Path]:
    """Return the paths at which `find_roots` looks, whether or not they exist."""
    if given:
        return [item.path if isinstance(item, Root) else item for item in given]
    remembered = [path for _, path in _remembered(connection, only)]
    return [*default_roots(os.environ, _project_paths(connection)), *remembered]


def _named(given: Sequence[Given], only: str | None, report: Report) -> _Roots:
    roots: _Roots = {}
    for item in given:
        path = item.path if isinstance(item, Root) else item
        if not _is_here(path, report):
            continue
        try:
            found = [item] if isinstance(item, Root) else recognised(path, SOURCES, only)
        except UnreadableError as error:
            _tell(report, path, error.reason)
        except AmbiguousHomeError as error:
            _tell(report, path, error.reason)
        except UsageError:  # it is not a root any more
            report.missing_roots.append(stored_root(path))
        else:
            roots.update(((root.source.name, root.path), root) for root in found)
    return roots


def _known(connection: sqlite3.Connection | None, only: str | None, report: Report) -> _Roots:
    looked = default_roots(os.environ, _project_paths(connection))
    remembered = list(_remembered(connection, only))
    unread: list[tuple[Path, str]] = []
    roots: _Roots = {(root.source.name, root.path): root for root in _shaped(looked, only, unread)}
    for kind, path in remembered:
        if _is_here(path, report) and kind in SOURCES and (kind, path) not in roots:
            roots[kind, path] = root_at(SOURCES[kind], path, SOURCES)
    known = {path for _, path in remembered}
    unread = [(path, why) for path, why in unread if not any(map(path.is_relative_to, known))]
    if not roots and not remembered:
        raise NotFoundError(_nothing_found(looked, unread))
    for path, why in unread:
        _tell(report, path, why)
    return roots


def _nothing_found(looked: list[Path], unread: list[tuple[Path, str]]) -> str:
    inner = directories_in_homes(SOURCES)
    places = ", ".join(str(path) for path in looked if path.name not in inner)
    because = "".join(f" Could not read {path}: {why}." for path, why in dict.fromkeys(unread))
    return (
        f"No home directory of a coding agent found (looked at {places}).{because} "
        "Give one: assoc-ingest sync PATH"
    )


def _is_here(path: Path, report: Report) -> bool:
    """Does the directory of a root exist? If not, or if that is unknown, the report says so."""
    if is_directory(path):
        return True
    why = why_unknown(path)
    if why is None:
        report.missing_roots.append(stored_root(path))
    else:
        _tell(report, path, why)
    return False


def _tell(report: Report, path: Path, why: str) -> None:
    if (str(path), why) not in report.unreadable:
        report.unreadable.append((str(path), why))


def _project_paths(connection: sqlite3.Connection | None) -> list[str]:
    """Return the directories of known projects that are on this disk."""
    if connection is None:
        return []
    rows = connection.execute("select path from projects where on_disk = 1 order by path")
    return [path for (path,) in rows]


def _shaped(paths: list[Path], only: str | None, unread: list[tuple[Path, str]]) -> Iterator[Root]:
    """Yield the roots among these paths; those that cannot be read are added to `unread`."""
    for path in paths:
        if not is_directory(path):
            if (found := obstacle(path)) is not None:
                unread.append(found)
            continue
        try:
            yield from recognised(path, SOURCES, only)
        except UnreadableError as error:
            unread.append((real_path(error.place), error.reason))
        except AmbiguousHomeError as error:
            unread.append((real_path(path), error.reason))
        except UsageError:
            pass  # it exists, but contains nothing to read


def _remembered(
    connection: sqlite3.Connection | None, only: str | None
) -> Iterator[tuple[str, Path]]:
    if connection is None:
        return
    for kind, root in connection.execute("select kind, root from sources order by id"):
        if only in (None, kind) and not root.startswith(PULLED):
            yield kind, original_root(root)
