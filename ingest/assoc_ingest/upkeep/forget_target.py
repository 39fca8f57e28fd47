"""Finds what `forget` is asked to forget: a conversation, a file, or everything about a project."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from ..ask.lookup import find_session
from ..ask.project_names import find_projects
from ..errors import NotFoundError, UsageError
from ..files.exclusions import is_unique_key
from ..files.stored_names import stored_root
from ..paths import real_path
from .ownership import Key, StoredFile, naming, stored_files

_LISTED = 20


@dataclass(frozen=True, slots=True)
class Target:
    """A session's key or a file's name, or a project; with a root if there are several."""

    name: str | None = None
    project: str | None = None
    root: str | None = None
    """A directory, absolute or relative."""


def find(connection: sqlite3.Connection, target: Target) -> tuple[set[Key], list[StoredFile]]:
    """Return the keys of the conversations to forget, and other files to forget.

    `connection` returns rows by name. A transcript stands for its conversation. Raises
    NotFoundError if nothing matches, and UsageError, with all matches, if several do.
    """
    root = stored_root(real_path(target.root)) if target.root else None
    if target.project is not None:
        return _in_project(connection, target.project, root)
    name = target.name or ""
    try:
        key = find_session(connection, name)
    except NotFoundError:
        key = name.strip().lower()
        if is_unique_key(key) and naming(connection, {(None, key)}):
            return {(None, key)}, []  # its transcript was deleted before the first sync
        return _file(connection, name, root)
    return {_key(connection, key, root)}, []


def _key(connection: sqlite3.Connection, key: str, root: str | None) -> Key:
    """Return the key with the root of the conversation; a uuid is the same in all roots."""
    if is_unique_key(key):
        return None, key
    rows = connection.execute(
        "select x.root from sessions s join sources x on x.id = s.source_id"
        " where s.session_key = ?1 and coalesce(?2, x.root) = x.root order by x.root",
        (key, root),
    ).fetchall()
    roots = [str(row[0]) for row in rows]
    if len(roots) != 1:
        places = "".join(f"\n  --root {place}" for place in roots)
        raise UsageError(f"{len(roots)} roots have a session {key!r}; choose one:{places}")
    return roots[0], key


def _file(
    connection: sqlite3.Connection, name: str, root: str | None
) -> tuple[set[Key], list[StoredFile]]:
    found = [
        file
        for file in stored_files(connection)
        if root in (None, file.root) and name and name in _names(file)
    ]
    if not found:
        raise NotFoundError(
            f"No session or file matches {name!r}. To see them: assoc-ingest list sessions, "
            "assoc-ingest list files"
        )
    if len({(file.root, file.path) for file in found}) > 1:
        places = "".join(f"\n  {file.root}/{file.path}" for file in found[:_LISTED])
        raise UsageError(f"{len(found)} files are named {name!r}; give the path of one:{places}")
    file = found[0]
    if file.kind == "transcript" and file.session_key is not None:
        return {_key(connection, file.session_key, root or file.root)}, []
    return set(), found


def _names(file: StoredFile) -> tuple[str, ...]:
    last = file.path.split("/")[-1]
    return file.path, f"{file.root}/{file.path}", last, last.rpartition(".")[0]


def _in_project(
    connection: sqlite3.Connection, project: str, root: str | None
) -> tuple[set[Key], list[StoredFile]]:
    """Return all conversations of matching projects, and the files that only they have."""
    ids = set(find_projects(connection, project, exactly=True))
    rows = connection.execute(
        "select s.session_key, x.root, s.project_id from sessions s"
        " join sources x on x.id = s.source_id"
    ).fetchall()
    keys = {
        _key(connection, row["session_key"], row["root"])
        for row in rows
        if row["project_id"] in ids and root in (None, row["root"])
    }
    rows = connection.execute(
        "select id, project_id from files where project_id is not null"
        " union select file_id, project_id from documents where project_id is not null"
    ).fetchall()
    inside = {row["id"] for row in rows if row["project_id"] in ids}
    files = [
        file
        for file in stored_files(connection)
        if file.id in inside and file.session_key is None and root in (None, file.root)
    ]
    return keys, files
