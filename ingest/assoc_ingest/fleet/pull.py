"""`pull`: brings the files of other machines into a local database, from the server.

What comes is the archive: the frames of files, as they were pushed. Rows are derived from them here
by the code of `rebuild`, so everything works that works with files of this machine. The roots of
what was pulled are `fleet/<label>/<root>`: no directory of this machine is called so, a sync never
looks there, and nothing of it is pushed or counts as gone because it is not on this disk.

A file is known here by a key made of its `file_key` and its machine (`pulled_key`): copies of a
machine may have files with the same keys. It is fetched if the digest of its frames differs. What
its machine deleted on the server is removed, unless only a part of an origin was asked for. What
the server merely does not show stays: it may be another server, or a restored one, or show less
than before.

What this machine pushed itself is never fetched, and neither is what was forgotten here: a pull
would bring back what `forget` and `prune` removed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..ask.project_names import find_projects
from ..errors import NotFoundError
from ..files import archive
from ..pulled_roots import PULLED, pulled_root
from ..sources import SOURCES
from ..store import database
from ..store.batch import Batch
from ..store.clock import Clock
from ..store.report import Progress
from ..upkeep.rebuild import derive_in
from . import state
from .connect import unbounded
from .fetched import Content, content_of, nanoseconds, pulled_key
from .pull_queries import DATA, DELETED, files_there

_BATCH_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is pulled: everything that the server shows, or a part of it."""

    origin: str | None = None
    """Only of the machine with this label."""
    project: str | None = None
    since: str | None = None
    """Only files that changed at this time or later."""

    @property
    def is_part(self) -> bool:
        """Is only a part of an origin wanted?"""
        return self.project is not None or self.since is not None


@dataclass(slots=True)
class Pulled:
    """What a pull did."""

    files: int = 0
    """Files that were fetched."""
    unchanged: int = 0
    own: int = 0
    """Files that this machine has pushed itself."""
    forgotten: int = 0
    """Files that were forgotten here."""
    without_bytes: int = 0
    """Files of which the server has rows only."""
    damaged: int = 0
    """Files of which the server has fewer bytes than are here, or damaged ones: left as it was."""
    removed: int = 0
    """Files that their machine deleted on the server."""
    hidden: int = 0
    """Files that were pulled before, and that the server does not show now: left as they are."""
    bytes: int = 0
    """Bytes of the files that were fetched."""


def pull(
    path: Path,
    server: sqlite3.Connection,
    wanted: Wanted,
    finish: Callable[[sqlite3.Connection], None],
    progress: Progress | None = None,
) -> Pulled:
    """Bring what is wanted into the database at `path`; make it if there is none.

    `finish` refreshes, on the writer's connection, what a sync refreshes besides files.
    Raises NotFoundError if the server shows no such machine or project, FleetError if it fails,
    BusyError if another process writes, sqlite3.Error if the disk fails. What was committed before
    stays, and the next pull goes on from there.
    """
    projects = find_projects(server, wanted.project) if wanted.project else None
    files = files_there(server, wanted.origin, wanted.since, projects)
    if not files and wanted.origin is not None:
        _check_origin(server, wanted.origin)
    remembered = state.load(path)
    own = remembered.uuid if remembered is not None else None
    with database.writing(path) as connection:
        done = Pull(connection, server, own, progress).everything(files, wanted)
        finish(connection)
        return done


def _check_origin(server: sqlite3.Connection, label: str) -> None:
    labels = [row[0] for row in server.execute("select label from assoc.origins order by label")]
    if label not in labels:
        known = ", ".join(labels) or "none"
        raise NotFoundError(f"The server has no machine {label!r}; it has: {known}.")


class Pull:
    """One pull into an open database."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        server: sqlite3.Connection,
        own: str | None,
        progress: Progress | None,
    ) -> None:
        self.connection = connection
        self._server = server
        self._own = own
        self._progress = progress
        self._clock = Clock(connection)
        self._done = Pulled()

    def everything(self, files: list[Any], wanted: Wanted) -> Pulled:
        """Remove what was deleted on the server, and fetch what differs."""
        if not wanted.is_part:
            self._remove_deleted(files, wanted.origin)
        total, looked = sum(file["offset"] for file in files), 0
        pending: list[Any] = []
        size = 0
        for file in files:
            looked += file["offset"]
            if self._differs(file):
                pending.append(file)
                size += file["offset"]
            if size >= _BATCH_BYTES:
                self._fetch(pending)
                pending, size = [], 0
            if self._progress is not None:
                self._progress(looked, total)
        self._fetch(pending)
        return self._done

    def _differs(self, file: Any) -> bool:
        """Is a file to be fetched? Count it if not."""
        if file["source"] not in SOURCES:
            return False
        if self._is_own(file):
            self._done.own += 1
            return False
        if self._is_forgotten(file):
            self._done.forgotten += 1
            return False
        if file["digest"] is None:
            self._done.without_bytes += 1
            return False
        known = self._known(file)
        if known is None or self._is_moved(known, file):
            return True
        is_same = self._digest(known) == bytes(file["digest"])
        self._done.unchanged += is_same
        return not is_same

    def _digest(self, file_id: int) -> bytes:
        """Return the digest of a file's frames, as the server calculates it."""
        digest = sha256()
        for start, data in self.connection.execute(
            "select start, data from archive where file_id = ? order by start", (file_id,)
        ):
            digest.update(start.to_bytes(8, "big") + sha256(data).digest())
        return digest.digest()

    def key_of(self, file: Any) -> bytes:
        """Return the key that a file has in this database."""
        return pulled_key(str(file["uuid"]), bytes(file["file_key"]))

    def _known(self, file: Any) -> int | None:
        """Return the id of a file that was pulled before."""
        return self._id_of(self.key_of(file))

    def _id_of(self, key: bytes) -> int | None:
        row = self.connection.execute("select id from files where file_key = ?", (key,)).fetchone()
        return None if row is None else int(row[0])

    def _is_own(self, file: Any) -> bool:
        if str(file["uuid"]) == self._own:
            return True
        return self._id_of(bytes(file["file_key"])) is not None

    def _is_forgotten(self, file: Any) -> bool:
        row = self.connection.execute(
            "select 1 from forgotten_files where file_key in (?, ?)",
            (bytes(file["file_key"]), self.key_of(file)),
        ).fetchone()
        return row is not None

    def _is_moved(self, file_id: int, file: Any) -> bool:
        source_id, path, generation, gone_at = self.connection.execute(
            "select source_id, path, generation, gone_at from files where id = ?", (file_id,)
        ).fetchone()
        if (path, gone_at) != (file["path"], file["gone_at"]):
            return True
        if generation == file["generation"]:
            return False
        return self._generation(source_id, file) == int(file["generation"])

    def _generation(self, source_id: int, file: Any) -> int:
        """Return the generation that a file gets here: its own one, the next one if that is taken.

        A machine gives a number again when it no longer has the older file, which may still be
        here; two machines may be called alike.
        """
        is_taken, last = self.connection.execute(
            "select coalesce(max(generation = ?), 0), max(generation) from files"
            " where source_id = ? and path = ?",
            (file["generation"], source_id, file["path"]),
        ).fetchone()
        return int(last + 1 if is_taken else file["generation"])

    def _frames(self, file: Any) -> list[Any]:
        given = {"origin": file["origin_id"], "file": file["file_no"]}
        return self._server.execute(DATA, given).fetchall()

    # -- writing ---------------------------------------------------------------------------------

    def _remove_deleted(self, files: Iterable[Any], origin: str | None) -> None:
        shown = set(map(self.key_of, files))
        rows = self._server.execute(DELETED, {"origin": origin})
        deleted = set(map(self.key_of, rows))
        roots = PULLED if origin is None else pulled_root(origin, "")
        missing = self.connection.execute(
            "select f.id, f.file_key from files f join sources s on s.id = f.source_id"
            " where substr(s.root, 1, length(?1)) = ?1",
            (roots,),
        )
        others = [(file_id, key in deleted) for file_id, key in missing if key not in shown]
        removed = [file_id for file_id, is_deleted in others if is_deleted]
        if removed:
            with Batch(self.connection, self._clock.now()) as batch:
                batch.remove(removed)
        self._done.removed, self._done.hidden = len(removed), len(others) - len(removed)

    def _fetch(self, files: list[Any]) -> None:
        """Put the frames of files into the archive, and derive their rows, in one transaction."""
        contents = [content for file in files if (content := self._content(file)) is not None]
        if not contents:
            return
        now = self._clock.now()
        with unbounded(), Batch(self.connection, now) as batch:
            replaced = [known for made in contents if (known := self._known(made.file)) is not None]
            if replaced:
                batch.remove(replaced)
            derive_in(batch, [self._insert(content, now) for content in contents])

    def _content(self, file: Any) -> Content | None:
        """Return what the server has of a file; None if what is here has to stay, and count it.

        While a machine pushes, or after its archive was damaged, a file may lack bytes.
        """
        content = content_of(file, self._frames(file))
        known = self._known(file)
        if content is not None and known is not None and content.lacks_bytes:
            (size,) = self.connection.execute(
                """select coalesce(sum("end" - start), 0) from archive where file_id = ?""",
                (known,),
            ).fetchone()
            content = content if content.size >= size else None
        self._done.damaged += content is None
        return content

    def _insert(self, content: Content, now: str) -> int:
        file, mark = content.file, content.mark
        source_id = self.source_of(file, now)
        cursor = self.connection.execute(
            "insert into files (path, kind, size, offset, line_count, issue_count, mtime,"
            " first_seen_at, last_synced_at, gone_at, session_key, agent_key, team_key,"
            " project_key, workflow, generation, inode, device, mtime_ns, ctime_ns, head_hash,"
            " tail_hash, prefix_crc, source_id, file_key)"
            " values (?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, 0, ?, ?, ?, ?, ?)",
            (
                file["path"], file["kind"], content.end, content.end, file["mtime"], now, now,
                file["gone_at"], file["stated_session_key"], file["stated_agent_key"],
                file["team_key"], file["stated_project_key"], file["workflow"],
                self._generation(source_id, file), nanoseconds(file["mtime"]), mark.head_hash,
                mark.tail_hash, mark.prefix_crc, source_id, self.key_of(file),
            ),
        )  # fmt: skip
        archive.append(self.connection, int(cursor.lastrowid or 0), content.frames)
        self._done.files += 1
        self._done.bytes += content.size
        return int(cursor.lastrowid or 0)

    def source_of(self, file: Any, now: str) -> int:
        """Make the source of a file known; return its id."""
        values = (
            file["source"], pulled_root(file["label"], file["root"]), now, file["source_label"],
            file["is_agent"], file["lists_sessions"], file["retention_days"],
            file["cleanup_period_days"],
        )  # fmt: skip
        (source_id,) = self.connection.execute(
            "insert into sources (kind, root, first_synced_at, last_synced_at, label, is_agent,"
            " lists_sessions, retention_days, cleanup_period_days)"
            " values (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8)"
            " on conflict (kind, root) do update set last_synced_at = ?3"
            " returning id",
            values,
        ).fetchone()
        return int(source_id)
