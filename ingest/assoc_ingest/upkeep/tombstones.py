"""Lists what is forgotten, and undoes forgetting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import NotFoundError
from ..files.exclusions import REASONS
from ..store.database import open_reader, writing
from ..store.transaction import transaction


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A row of `forgotten`."""

    session_key: str | None
    path: str | None
    root: str | None
    forgotten_at: str
    is_pending: int
    secret: str | None = None
    """The fingerprint of a credential."""


def tombstones(database: Path) -> list[Tombstone]:
    """Return what is forgotten, oldest first. Raises DatabaseError."""
    reader = open_reader(database)
    try:
        rows = reader.execute(
            "select session_key, path, root, forgotten_at, is_pending, null as secret"
            " from forgotten union all select null, null, null, forgotten_at, is_pending,"
            " fingerprint from forgotten_secrets order by forgotten_at"
        )
        return [Tombstone(*row) for row in rows]
    finally:
        reader.close()


def remember(database: Path, name: str) -> list[Tombstone]:
    """Let the next sync read something again: a conversation, by the beginning of its key, a path,
    or a credential, by the beginning of its fingerprint.

    What the agent has deleted in the meantime stays lost. Returns what is no longer forgotten.
    Raises NotFoundError if nothing that is forgotten matches, BusyError if another process writes.
    """
    wanted = name.strip().lower()
    back = [
        stone
        for stone in tombstones(database)
        if (wanted and (stone.session_key or stone.secret or "").lower().startswith(wanted))
        or name in (stone.path, f"{stone.root}/{stone.path}")
    ]
    if not back:
        raise NotFoundError(
            f"No forgotten session, file or credential matches {name!r}. To see them: "
            "assoc-ingest forget --list"
        )
    with writing(database) as connection, transaction(connection):
        connection.executemany(
            "delete from forgotten where session_key is ? and path is ? and root is ?",
            ((stone.session_key, stone.path, stone.root) for stone in back),
        )
        connection.executemany(
            "delete from forgotten_secrets where fingerprint = ?",
            ((stone.secret,) for stone in back if stone.secret is not None),
        )
        connection.execute(  # this marker never matches, so the whole file is read again
            "update files set head_hash = null, mtime_ns = 0 where id in"
            " (select file_id from issues where reason in (?, ?))",
            REASONS,
        )
    return back
