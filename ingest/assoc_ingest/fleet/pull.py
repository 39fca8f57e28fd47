"""`pull`: downloads the files of other machines from the server into a local database.

It downloads the archive: the frames of files, as they were pushed. Rows are derived from them by
the code of `rebuild`, so everything works as with files of this machine. The roots of pulled
sources are `fleet/<label>/<root>`, which no directory of this machine is called: a sync never looks
there, and pulled files are never pushed and do not count as gone because they are not on this disk.

The key of a pulled file is made from its `file_key` and its machine (`pulled_key`), because copies
of a machine may have files with the same keys. A file is downloaded if the digest of its frames
differs. A file that its machine deleted on the server is removed, unless only a part of an origin
was asked for. A file that the server merely does not show stays: it may be another or a restored
server, or the login may see less than before.

Files that this machine pushed itself or that were forgotten here are never downloaded: a pull would
bring back what `forget` and `prune` removed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from ..ask.projects import find_projects
from ..errors import NotFoundError
from ..files import archive
from ..files.archive import Frame, first_bytes
from ..files.exclusions import load_secrets
from ..files.tail import Prefix
from ..files.walk import NO_TIME, stored_time
from ..paths import PULLED, pulled_root
from ..source import Checkpoint
from ..sources import SOURCES
from ..store import database
from ..store.batch import Batch
from ..store.database import Clock
from ..store.replay import agents_may_change, derive_in
from ..terminal import Progress
from . import state
from .projection import COUNTS_START, EVERYTHING, ChangedFile, Cursor, Local, Masks
from .push import introduced
from .server import MOST_OF_A_FRAME, Beginning, Server
from .state import State

# ------------------------------------------------------------------------------------------------
# The download of one file: its checked frames, and where they end.

LONGEST_NAME = 40_000
"""Letters of a path, a key or a time of a file; no system has longer paths."""


class Content(NamedTuple):
    """The bytes of a file on the server."""

    file: Any
    frames: list[Frame]
    mark: Checkpoint
    size: int
    """Bytes in all frames."""

    @property
    def end(self) -> int:
        """The byte after the last one."""
        return self.frames[-1].end

    @property
    def lacks_bytes(self) -> bool:
        """Is anything missing, between frames or at the end?"""
        return self.size < int(self.file["offset"])


def content_of(file: Any, rows: list[Any]) -> Content | None:
    """Return the content of a file; None if it has a frame or a name that no machine sends.

    A frame ends before the next one begins, or earlier if bytes were lost. So all frames together
    are not larger than the file, and compressed not much larger.
    """
    if any(isinstance(text, str) and len(text) > LONGEST_NAME for text in file):
        return None
    prefix, frames = Prefix(), list[Frame]()
    starts = [*(row["start"] for row in rows), file["offset"]]
    for row, (start, end) in zip(rows, pairwise(starts), strict=True):
        data = archive.whole(bytes(row["data"]), min(end - start, MOST_OF_A_FRAME))
        if data is None or len(row["data"]) > _packed_at_most(len(data)):
            return None
        prefix = prefix.extended(data)
        frame = Frame(start, start + len(data), bytes(row["data"]), data.count(b"\n"))
        frames.append(frame)
    return Content(file, frames, prefix.checkpoint(), prefix.offset)


def _packed_at_most(size: int) -> int:
    """Return an upper limit for the compressed size."""
    return size + size // 128 + 512


def pulled_key(uuid: str, file_key: bytes) -> bytes:
    """Return the key of a pulled file of the machine with this uuid."""
    return sha256(UUID(uuid).bytes + file_key).digest()[:16]


def nanoseconds(time: str | None) -> int:
    """Return the time of a file for its row, from which plans and documents take it."""
    try:
        seconds = datetime.fromisoformat((time or "").replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return NO_TIME
    return stored_time(round(seconds * 1_000) * 1_000_000)


# ------------------------------------------------------------------------------------------------
# Which files of this database the server has under other keys.
#
# A file keeps its key as long as the database has the file. A file that comes back after `prune`,
# or that a new or restored database reads again, gets another key. The server still has it under
# the old key, and would store its content twice.


_COMPARED = 1024
"""Bytes at the beginning that must be equal if a user says that the files are the same."""

_COMPARED_UNASKED = 1 << 20
"""At most as many if nobody says so: a wrong match would replace the server's file."""

_ENOUGH = 128 * 1024
"""At least as many, unless the file is shorter: first frames are rarely smaller (`archive`)."""


class Rename(NamedTuple):
    """A file of this database, and the key under which the server knows it."""

    id: int
    key: bytes
    """Its key on the server."""
    was: bytes


def came_back(local: Local, server: Server, state: State, since: Cursor | None) -> list[Rename]:
    """Return the files that a push would send as new ones although the server has them.

    It looks at files in scope that were read from their beginning after `since`, or at all. A file
    that is shorter than the server's is another one, so that nothing on the server gets lost. So is
    one whose key another file of this database has, or one that was forgotten here.
    """
    connection = local.connection
    new = {file.id for file in local.files(since and since.change) if file.start <= 0}
    if not new:
        return []
    known = introduced(server, state)
    rows = connection.execute(
        "select f.file_key, s.kind, s.root, f.path from json_each(?) j"
        " cross join files f on f.id = j.value cross join sources s on s.id = f.source_id",
        (json.dumps(sorted(new)),),
    )
    there = server.same_places(known.origin_id, rows.fetchall())
    return [
        rename
        for rename in same_files(connection, there, local.masks)
        if rename.id in new and not _has(connection, "files", rename.key)
    ]


def _has(connection: sqlite3.Connection, table: str, key: bytes) -> bool:
    row = connection.execute(f"select 1 from {table} where file_key = ?", (key,)).fetchone()
    return row is not None


def give_keys(connection: sqlite3.Connection, uuid: str, found: list[Rename]) -> None:
    """Give files the keys that the server has for them, and remove their pulled copies."""
    pulled = [pulled_key(uuid, rename.key) for rename in found]
    ids = [
        id_
        for key in pulled
        for (id_,) in connection.execute("select id from files where file_key = ?", (key,))
    ]
    with Batch(connection, Clock(connection).now()) as batch, agents_may_change(batch):
        if ids:
            batch.remove(ids)
        # In a database that was restored from a copy, another file may have the key.
        connection.executemany(
            "update files set file_key = randomblob(16) where file_key = :key and id <> :id",
            [rename._asdict() for rename in found],
        )
        connection.executemany(
            "update files set file_key = :key where id = :id and file_key = :was",
            [rename._asdict() for rename in found],
        )


class _Here(NamedTuple):
    """A file of this database, and its first frame."""

    id: int
    file_key: bytes
    size: int
    data: bytes | None


def same_files(
    connection: sqlite3.Connection, beginnings: Iterable[Beginning], masks: Masks
) -> list[Rename]:
    """Return the files of this database that the server has, each at most once.

    Forgotten files are left out: the server has to delete them.
    """
    found: list[Rename] = []
    for place, group in groupby(beginnings, lambda there: (there.kind, there.root, there.path)):
        rows = connection.execute(
            "select f.id, f.file_key, f.size from files f join sources s on s.id = f.source_id"
            " where s.kind = ? and s.root = ? and f.path = ? order by f.generation desc",
            place,
        )
        here = [
            _Here(id_, key, size, _beginning(connection, id_, key, masks))
            for id_, key, size in rows.fetchall()
        ]
        if here:
            found += _pairs(here, list(group))
    return [rename for rename in found if not _has(connection, "forgotten_files", rename.key)]


def _beginning(
    connection: sqlite3.Connection, file_id: int, file_key: bytes, masks: Masks
) -> bytes | None:
    file = ChangedFile(file_id, file_key, COUNTS_START)
    content = Local(connection, EVERYTHING, masks).content(file)
    return next((frame.data for frame in content.frames if frame.start == 0), None)


def _pairs(here: list[_Here], there: list[Beginning]) -> Iterator[Rename]:
    """Match the generations of a path: first by key, then the newest first."""
    keys = {known.file_key for known in there}
    kept = {file.file_key for file in here} & keys
    others = [known for known in there if known.file_key not in kept]
    for file in here:
        if file.file_key in kept:
            yield Rename(file.id, file.file_key, file.file_key)
            continue
        same = next((known for known in others if _is_same(file, known)), None)
        if same is not None:
            others.remove(same)
            yield Rename(file.id, same.file_key, file.file_key)


def _is_same(file: _Here, known: Beginning) -> bool:
    if file.data is None or known.data is None:
        return file.data is known.data
    compared = _COMPARED if known.size is None else _COMPARED_UNASKED
    ours, theirs = (first_bytes(data, compared) for data in (file.data, known.data))
    length = min(len(ours), len(theirs))
    if known.size is not None and (
        known.size > file.size
        or length < (min(len(theirs), _ENOUGH) if known.is_whole else _ENOUGH)
    ):
        return False
    return length > 0 and ours[:length] == theirs[:length]


# ------------------------------------------------------------------------------------------------
# The queries of a pull: files, deleted files, and the frames of a file.


FILES = """
    select
        f.origin_id, f.file_no, f.file_key, f.path, f.generation, f.kind, f.size,
        f."offset", f.mtime, f.gone_at, f.stated_session_key, f.stated_agent_key, f.team_key,
        f.stated_project_key, f.workflow, o.label, o.uuid, r.kind as source, r.root,
        r.label as source_label, r.is_agent, r.lists_sessions, r.retention_days,
        r.cleanup_period_days, f.source_no,
        (
            select sha256(string_agg(int8send(d.start) || d.digest, ''::bytea order by d.start))
            from assoc.frames d
            where d.origin_id = f.origin_id and d.file_no = f.file_no and d.data is not null
        ) as digest
    from assoc.files f
    join assoc.origins o using (origin_id)
    join assoc.sources r using (origin_id, source_no)
    left join assoc.sessions s using (origin_id, source_no, session_key)
    where (:origin is null or o.label = :origin)
      and (:since is null or f.mtime >= :since)
      and (
        cast(:projects as bigint[]) is null
        or assoc_read.id(
            f.origin_id,
            coalesce(s.project_source_no, f.project_source_no),
            coalesce(s.project_key, f.project_key)
        ) = any (cast(:projects as bigint[]))
      )
    order by o.label, r.root, f.path, f.generation
"""
DELETED = """
    select o.uuid, d.file_key
    from assoc.deleted_files d
    join assoc.origins o using (origin_id)
    where (:origin is null or o.label = :origin)
      and not exists (
        select 1 from assoc.files f where f.origin_id = d.origin_id and f.file_key = d.file_key
      )
"""
DATA = """
    select start, data
    from assoc.frames
    where origin_id = cast(:origin as int4) and file_no = cast(:file as int4) and data is not null
    order by start
"""


def files_there(
    server: sqlite3.Connection,
    origin: str | None,
    since: str | None = None,
    projects: object = None,
) -> list[Any]:
    """Return the files that the server shows: of a label, since a time, of projects (ids)."""
    asked = {"origin": origin, "since": since, "projects": projects}
    return server.execute(FILES, asked).fetchall()


_BATCH_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to pull: everything that the server shows, or a part of it."""

    origin: str | None = None
    """Only of the machine with this label."""
    project: str | None = None
    since: str | None = None
    """Only files that changed at this time or later."""

    @property
    def is_part(self) -> bool:
        """Is it only a part of an origin?"""
        return self.project is not None or self.since is not None


@dataclass(slots=True)
class Pulled:
    """The result of a pull."""

    files: int = 0
    """Files that were downloaded."""
    unchanged: int = 0
    own: int = 0
    """Files that this machine pushed itself."""
    forgotten: int = 0
    """Files that were forgotten here."""
    without_bytes: int = 0
    """Files of which the server has only rows."""
    damaged: int = 0
    """Files with damaged or fewer bytes on the server: the local ones stay."""
    removed: int = 0
    """Files that their machine deleted on the server."""
    hidden: int = 0
    """Files that were pulled before and that the server no longer shows: they stay."""
    notes: int = 0
    """Notes of other machines that are here now."""
    bytes: int = 0
    """Bytes of the downloaded files."""
    left_out: list[str] = field(default_factory=list)
    """Labels of machines whose data takes more memory than allowed."""


def pull(
    path: Path,
    server: sqlite3.Connection,
    wanted: Wanted,
    finish: Callable[[sqlite3.Connection], None],
    progress: Progress | None = None,
) -> Pulled:
    """Pull into the database at `path`; create it if there is none.

    `finish` refreshes, on the writer's connection, what a sync refreshes besides files. Raises
    NotFoundError if the server shows no such machine or project, FleetError if it fails, BusyError
    if another process writes, sqlite3.Error if the disk fails. Committed files stay, and the next
    pull continues from there.
    """
    projects = find_projects(server, wanted.project) if wanted.project else None
    files = files_there(server, wanted.origin, wanted.since, projects)
    if not files and wanted.origin is not None:
        _check_origin(server, wanted.origin)
    remembered = state.load(path)
    own = remembered.uuid if remembered is not None else None
    with database.writing(path) as connection:
        done = Pull(connection, server, own, progress).everything(files, wanted)
        done.notes = pull_notes(connection, server, own, wanted)
        finish(connection)
        return done


# ------------------------------------------------------------------------------------------------
# Notes: only their machine writes them, so those that are here become those that are there.


NOTES = """
    select
        o.label, nullif(n.session_key, '') as session_key, nullif(n.line_key, '') as line_key,
        nullif(n.path, '') as path, n.text, n.verdict, n.title, n.is_starred, n.noted_at
    from assoc.notes n
    join assoc.origins o using (origin_id)
    where (:origin is null or o.label = :origin)
      and cast(o.uuid as text) is distinct from cast(:own as text)
    order by o.label, n.noted_at, n.session_key, n.line_key, n.path
"""


def pull_notes(
    connection: sqlite3.Connection, server: sqlite3.Connection, own: str | None, wanted: Wanted
) -> int:
    """Replace the notes of other machines by those on the server; return how many there are.

    A part of an origin has none. Those on a conversation that was forgotten here are left out, and
    so are forgotten credentials.
    """
    if wanted.is_part:
        return 0
    there = server.execute(NOTES, {"origin": wanted.origin, "own": own}).fetchall()
    forgotten = {
        key for (key,) in connection.execute("select session_key from forgotten where path is null")
    }
    secrets = load_secrets(connection)

    def without(text: str | None) -> str | None:
        return text and secrets.without(text.encode(), is_log=False)[0].decode()

    rows = [
        (*row[:4], without(row["text"]), row["verdict"], without(row["title"]), *row[7:9])
        for row in there
        if row["session_key"] not in forgotten
    ]
    of_origins = "origin is not null and coalesce(?, origin) = origin"
    before = connection.execute(
        "select origin, session_key, line_key, path, text, verdict, title, is_starred, noted_at"
        f" from notes where {of_origins}",
        (wanted.origin,),
    ).fetchall()
    if sorted(map(tuple, before), key=repr) != sorted(rows, key=repr):
        with Batch(connection, Clock(connection).now()) as batch:
            connection.execute(f"delete from notes where {of_origins}", (wanted.origin,))
            connection.executemany(
                "insert into notes (origin, session_key, line_key, path, text, verdict,"
                " title, is_starred, noted_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " on conflict do nothing",
                rows,
            )
            for key in {row[1] for row in (*before, *rows)}:
                batch.touch_session(key)
    return len(rows)


def _check_origin(server: sqlite3.Connection, label: str) -> None:
    rows = server.execute("select label from assoc.origins where role_name <> '' order by label")
    labels = [row[0] for row in rows]
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
        self._looked = self._total = 0

    def everything(self, files: list[Any], wanted: Wanted) -> Pulled:
        """Remove files that were deleted on the server, and download those that differ."""
        if not wanted.is_part:
            self._remove_deleted(files, wanted.origin)
        self._total = sum(file["offset"] for file in files)
        for label, of_label in groupby(files, lambda file: str(file["label"])):
            try:
                self._of_machine(of_label)
            except MemoryError:  # the data of the other machines may fit
                if wanted.origin is not None:
                    raise
                self._done.left_out.append(label)
        return self._done

    def _of_machine(self, files: Iterable[Any]) -> None:
        """Download the files of one machine that differ."""
        pending: list[Any] = []
        size = 0
        for file in files:
            self._looked += file["offset"]
            if self._differs(file):
                pending.append(file)
                size += file["offset"]
            if size >= _BATCH_BYTES:
                self._fetch(pending)
                pending, size = [], 0
            if self._progress is not None:
                self._progress(self._looked, self._total)
        self._fetch(pending)

    def _differs(self, file: Any) -> bool:
        """Must a file be downloaded? If not, count it."""
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
        return pulled_key(str(file["uuid"]), bytes(file["file_key"]))

    def _known(self, file: Any) -> int | None:
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
        """Return the generation of a file here: its own, or the next one if that is taken.

        A machine uses a number again when it no longer has the older file, which may still be here;
        two machines may have the same label.
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
            with Batch(self.connection, self._clock.now()) as batch, agents_may_change(batch):
                batch.remove(removed)
        self._done.removed, self._done.hidden = len(removed), len(others) - len(removed)

    def _fetch(self, files: list[Any]) -> None:
        """Archive the frames of files and derive their rows, in one transaction."""
        contents = [content for file in files if (content := self._content(file)) is not None]
        if not contents:
            return
        now = self._clock.now()
        with Batch(self.connection, now) as batch:
            replaced = [known for made in contents if (known := self._known(made.file)) is not None]
            if replaced:
                batch.remove(replaced)
            derive_in(batch, [self._insert(content, now) for content in contents])
        self._done.files += len(contents)
        self._done.bytes += sum(content.size for content in contents)

    def _content(self, file: Any) -> Content | None:
        """Return the content of a file; if the local one must stay, count that and return None.

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
        return int(cursor.lastrowid or 0)

    def source_of(self, file: Any, now: str) -> int:
        return self.insert_source(file, pulled_root(file["label"], file["root"]), now)

    def insert_source(self, file: Any, root: str, now: str, id_: int | None = None) -> int:
        """Insert the source of a file, or update the one with this root; return its id."""
        (source_id,) = self.connection.execute(
            "insert into sources (id, kind, root, first_synced_at, last_synced_at, label, is_agent,"
            " lists_sessions, retention_days, cleanup_period_days)"
            " values (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9)"
            " on conflict (kind, root) do update set last_synced_at = ?4 returning id",
            (
                id_, file["source"], root, now, file["source_label"], file["is_agent"],
                file["lists_sessions"], file["retention_days"], file["cleanup_period_days"],
            ),
        ).fetchone()  # fmt: skip
        return int(source_id)
