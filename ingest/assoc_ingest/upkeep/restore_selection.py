"""Finds the files to restore: all, those of a session, or one.

A name is tried in this order, so that a complete key or path is never taken for the beginning of
another one: a path as in `files.path`, a file name, the complete key of a session, a file name
without its extension, the beginning of a session's key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from ..ask.lookup import find_session
from ..ask.query_parser import bindable
from ..errors import NotFoundError, UsageError
from ..files.exclusions import is_left_out
from ..source import KnownFile
from ..store.known_files import known_file
from .ownership import own_files

_LISTED = 100


@dataclass(frozen=True, slots=True)
class Selected:
    """A file to be restored, and the root that it was read from."""

    known: KnownFile
    kind: str
    root: str
    source_id: int
    has_unread: bool
    """Something in it could not be parsed. The archive of a document has an earlier version."""
    is_left_out: bool = False
    """Something in it is forgotten and therefore not in the archive."""


def select_all(connection: sqlite3.Connection, generation: int | None = None) -> list[Selected]:
    """Return all files, each path in its newest generation or the given one."""
    ids = [id_ for (id_,) in connection.execute("select id from files")]
    return _selected(connection, ids, generation)


def select(
    connection: sqlite3.Connection, name: str, generation: int | None = None
) -> list[Selected]:
    """Return the files of the session, or the file, that `name` matches.

    Raises NotFoundError if nothing matches or no file has the generation, and UsageError, with all
    matches, if the name is ambiguous.
    """
    ids = _ids(connection, name)
    if found := _selected(connection, ids, generation):
        return found
    raise NotFoundError(f"No file of {name!r} has a generation {generation}.")


def _ids(connection: sqlite3.Connection, name: str) -> list[int]:
    wanted = bindable(name)
    by_path: dict[str, list[int]] = {}
    for id_, path in connection.execute("select id, path from files"):
        by_path.setdefault(path, []).append(id_)
    if wanted in by_path:
        return by_path[wanted]
    called = [path for path in by_path if PurePosixPath(path).name == wanted]
    if called:
        return by_path[_only(name, called)]
    is_key = connection.execute("select 1 from sessions where session_key = ?", (wanted,))
    if is_key.fetchone() is None:
        stemmed = [path for path in by_path if PurePosixPath(path).stem == wanted]
        if stemmed:
            return by_path[_only(name, stemmed)]
    try:
        key = find_session(connection, name)
    except NotFoundError:
        raise NotFoundError(
            f"No session or file matches {name!r}."
            " To see them: assoc-ingest list sessions, assoc-ingest list files"
        ) from None
    return [file.id for file in own_files(connection, {(None, key)}) if not file.is_unread]


def _only(name: str, paths: list[str]) -> str:
    if len(paths) == 1:
        return paths[0]
    lines = [f"{len(paths)} files are named {name!r}; give the path of one:"]
    lines += [f"  {path}" for path in sorted(paths)[:_LISTED]]
    if len(paths) > _LISTED:
        lines.append(f"  and {len(paths) - _LISTED} more")
    raise UsageError("\n".join(lines))


def _selected(
    connection: sqlite3.Connection, ids: Iterable[int], generation: int | None
) -> list[Selected]:
    newest: dict[tuple[int, str], Selected] = {}
    for file_id in ids:
        known = known_file(connection, file_id)
        source_id, kind, root, has_unread = connection.execute(
            "select s.id, s.kind, s.root, exists ("
            " select 1 from issues i where i.file_id = f.id and i.quarantined = 1)"
            " from files f join sources s on s.id = f.source_id where f.id = ?",
            (file_id,),
        ).fetchone()
        if known is None or generation not in (None, known.generation):
            continue
        place = (source_id, known.path)
        before = newest.get(place)
        if before is None or before.known.generation < known.generation:
            left_out = is_left_out(connection, file_id)
            newest[place] = Selected(known, kind, root, source_id, bool(has_unread), left_out)
    return [newest[place] for place in sorted(newest)]
