"""The actions behind the commands `remote` and `push`, for machines and administrators."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from string import ascii_letters, digits
from tempfile import TemporaryDirectory
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID, uuid4

from .. import sql
from ..errors import (
    AssocIngestError,
    BusyError,
    FleetError,
    NotFoundError,
    NothingAllowedError,
    QuotaError,
    UsageError,
)
from ..files.exclusions import OUTSIDE_ARCHIVE
from ..source import LOG
from ..store import changes, database
from ..store.database import open_reader, snapshot, transaction, writing
from ..store.replay import files_of, plan_of
from ..terminal import Progress
from ..terminal import size as shown_size
from . import projection
from .connect import DESTINATION, SENTENCES, bounded, connect, parameters, readable, shown
from .projection import (
    BY_NAME,
    EVERYTHING,
    FILES,
    OWN,
    PLACED,
    ChangedFile,
    Cursor,
    FileContent,
    KeyedSet,
    Local,
    Masks,
    Scope,
    Table,
    of_paths,
)
from .pull import Pull, Wanted, came_back, files_there, give_keys, same_files
from .push import Limits, Preview, Report, Retained, introduced, preview, push, push_again
from .search import Central
from .server import (
    INDEX,
    FileThere,
    Known,
    KnownFile,
    Origin,
    Server,
    applied_migrations,
    as_json_bytes,
    has_text_index,
    key_text,
    migrate,
    missing_migrations,
)
from .state import PATIENCE, State, load, place_of, push_lock, state_of

if TYPE_CHECKING:
    from psycopg import Connection


# ------------------------------------------------------------------------------------------------
# Derives the rows of a machine on the server again, for a machine that no longer pushes.
#
# 1. Announce it to the server, which then applies the calls of this run until the machine pushes.
# 2. Download the frames of the machine into a temporary database, and derive their rows.
# 3. Push all rows of each file that could be derived as a whole. Its bytes are not sent.
#
# Rows that bytes cannot yield stay: those of files without bytes or with damaged ones, of lists
# with entries that disappeared, and of partly forgotten files. No keyed row is deleted. Keyed rows
# that such files name stay unchanged; the others keep the values that only the machine could see.


_OF_FILES = {
    *("line_count", "issue_count", "recorded_at", "session_key", "agent_session_key", "agent_key"),
    *("project_source_no", "project_key"),
}
"""The attributes of a file that are derived from its bytes."""

_OF_PROJECTS = {"session_count", "last_activity_at"}
"""Columns of a known project that are derived; the machine may know the others from its disk."""

_NOT_DERIVED = {"sources", "prices", "notes"}
"""Keyed tables that are not derived from files."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """The result of a reindex."""

    label: str
    files: int
    """Files whose rows were derived."""
    kept: int
    """Files whose rows stayed."""


def reindex(destination: str, name: str, progress: Progress | None = None) -> Reindexed:
    """Derive the rows of the origin with this label or uuid again.

    Raises NotFoundError if the server shows no such origin, FleetError if
    the login may not do it, or if the machine pushes meanwhile.
    """
    with connect(destination) as connection, TemporaryDirectory(prefix="assoc-ingest-") as place:
        server = _Rewriting(connection)
        origin_id, label = _chosen_files(connection, name)
        nonce = str(uuid4())
        known = Known(origin_id, server.reindex(origin_id, nonce), nonce, "", label)
        path = Path(place) / "origin.db"
        with closing(cast(sqlite3.Connection, Central(destination))) as there:
            _fetch(path, there, known, progress)
            files = server.files_of(origin_id)
            with closing(database.open_reader(path)) as reader, snapshot(reader):
                keys = _derived(reader, there, origin_id)
                others = [file for file in files if file.file_key not in keys]
                local = Local(reader, EVERYTHING)
                push_again(server, _Rederived(local, there, origin_id, keys, others), known)
    return Reindexed(label, len(keys), len(others))


@readable
def _chosen_files(connection: Connection[Any], name: str) -> tuple[int, str]:
    """Return the id and the label of an origin that the login may write for."""
    origins = connection.execute(
        "select origin_id, uuid::text, label from assoc.origins where role_name <> ''"
        " order by label, origin_id"
    ).fetchall()
    fitting = [(id_, label) for id_, uuid, label in origins if name in (uuid, label)]
    known = ", ".join(f"{label} ({uuid})" for _, uuid, label in origins) or "none"
    if not fitting:
        raise NotFoundError(f"The server has no machine {name!r}; it has: {known}.")
    origin_id, label = fitting[0]
    row = connection.execute("select assoc.may_reindex_v1(%s)", (origin_id,)).fetchone()
    if row is None or not row[0]:
        raise FleetError(
            f"{label} belongs to another login: use that one, the owner of the schema, or one with "
            "the role assoc_admin."
        )
    return origin_id, label


class _Download(Pull):
    """A pull that keeps the keys of files and the roots of sources as their machine has them."""

    def key_of(self, file: Any) -> bytes:
        return bytes(file["file_key"])

    def source_of(self, file: Any, now: str) -> int:
        return self.insert_source(file, file["root"], now, file["source_no"])


def _fetch(path: Path, there: sqlite3.Connection, known: Known, progress: Progress | None) -> None:
    """Create a database with the files of an origin."""
    files = [f for f in files_there(there, known.label) if f["origin_id"] == known.origin_id]
    with database.writing(path) as connection:
        _Download(connection, there, None, progress).everything(files, Wanted(known.label))


_GONE = " union ".join(
    f"""
    select f.file_key
    from assoc.{table.name} r
    join assoc.files f using (origin_id, file_no)
    where f.origin_id = cast(:origin as int4) and r.gone_at <> coalesce(f.gone_at, '')
    """
    for table in PLACED
    if "gone_at" in table.names
)
"""Files with entries that disappeared: their present content does not contain them."""

_ISSUES = """
    select f.file_key, r.reason, r.quarantined
    from assoc.issues r
    join assoc.files f using (origin_id, file_no)
    where f.origin_id = cast(:origin as int4)
"""


def _derived(reader: sqlite3.Connection, there: sqlite3.Connection, origin_id: int) -> set[bytes]:
    """Return the keys of the files whose rows can all be derived from their bytes."""
    asked = {"origin": origin_id}
    others = {bytes(key) for (key,) in there.execute(_GONE, asked)}
    broken = set()
    for key, reason, is_quarantined in there.execute(_ISSUES, asked):
        if reason in OUTSIDE_ARCHIVE:
            others.add(bytes(key))
        elif is_quarantined:  # of a document, its last version that was whole is archived
            broken.add(bytes(key))
    found = dict(reader.execute("select id, file_key from files").fetchall())
    derived = set()
    for file in files_of(reader):
        plan = plan_of(reader, file)
        key = found[file.known.id]
        if plan.is_whole and plan.claim is not None and key not in others:
            is_log = file.source.shape(plan.claim) == LOG
            if is_log or key not in broken:
                derived.add(key)
    return derived


class _Rewriting(Server):
    """A server whose digests of rows do not count, because all rows are to be written."""

    def frames(self, origin_id: int, keys: Sequence[bytes]) -> dict[bytes, FileThere]:
        """Return the frames of files, without the digests of their rows."""
        there = super().frames(origin_id, keys)
        return {
            key: FileThere(no, {start: (digest, b"") for start, (digest, _) in frames.items()})
            for key, (no, frames) in there.items()
        }


@dataclass(frozen=True, slots=True)
class _Rederived:
    """The derived rows; what cannot be derived has the values of the server."""

    local: Local
    there: sqlite3.Connection
    origin_id: int
    keys: set[bytes]
    """Keys of the files that were derived."""
    others: list[KnownFile]

    def cursor(self) -> Cursor | None:
        return self.local.cursor()

    def is_known(self, seen: Cursor) -> bool:
        """Compare everything."""
        return False

    def gone_file_keys(self, since: int | None) -> list[bytes]:
        """Delete nothing."""
        return []

    def files(self, since: int | None) -> Iterator[ChangedFile]:
        """Yield the files whose rows were derived."""
        return (file for file in self.local.files(since) if file.file_key in self.keys)

    def content(self, file: ChangedFile) -> FileContent:
        """Return a file with its derived attributes, and the other ones from the server."""
        content = self.local.content(file)
        columns = _columns(FILES)
        row = self.there.execute(
            f"select {columns} from assoc.files where origin_id = cast(:origin as int4)"
            " and file_key = decode(:key, 'hex')",
            {"origin": self.origin_id, "key": file.file_key.hex()},
        ).fetchone()
        seen = set(FILES.names) - _OF_FILES
        return content._replace(attributes=_merged(FILES, content.attributes, tuple(row), seen))

    def keyed(self, since: int | None) -> Iterator[KeyedSet]:
        """Yield the keyed rows that differ from those of the server."""
        for found in self.local.keyed(since):
            if found.table not in _NOT_DERIVED:
                rows = list(self._changed(BY_NAME[found.table], found.rows))
                yield KeyedSet(found.table, rows, is_whole=False)

    def _changed(self, table: Table, rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        count, stays = len(table.key), self._stays(table)
        before = {
            tuple(row[:count]): (tuple(row[:-1]), row[-1])
            for row in self.there.execute(
                f"select {_columns(table)}, digest from assoc.{table.name}"
                " where origin_id = cast(:origin as int4)",
                {"origin": self.origin_id},
            )
        }
        for row in rows:
            old, digest = before.get(row[:count], (None, None))
            if old is not None and stays(row):
                continue
            merged = row if old is None else _merged(table, row, old, _seen_there(table, old))
            if merged != old or sha256(as_json_bytes(merged)).digest() != digest:
                yield merged

    def _stays(self, table: Table) -> Callable[[tuple[Any, ...]], bool]:
        """Return a test: may a row belong to files that were not derived?"""
        if table.name == "projects":  # a list of projects names them all, and belongs to none
            sources = {file.source_no for file in self.others}
            return lambda row: row[0] in sources
        retained = Retained(self.others)
        return lambda row: retained.names(
            table.name, dict(zip(table.key, map(key_text, row), strict=False))
        )


def _seen_there(table: Table, old: tuple[Any, ...]) -> set[str]:
    """Return the columns of a keyed row whose values only its machine could know."""
    if table.name != "projects":
        return {"gone_at"}
    known = {name for name, value in zip(table.names, old, strict=True) if value is not None}
    return known - _OF_PROJECTS | {"gone_at"}


def _columns(table: Table) -> str:
    return ", ".join(f'"{name}"' for name in table.names)


def _merged(
    table: Table, new: tuple[Any, ...], old: tuple[Any, ...], seen: set[str]
) -> tuple[Any, ...]:
    """Return the new values of a row, but the old ones of the columns in `seen`."""
    values = zip(table.names, new, old, strict=True)
    return tuple(before if name in seen else value for name, value, before in values)


# ------------------------------------------------------------------------------------------------
# The text index, which only the owner of the schema can make.


@readable
def make_text_index(connection: Connection[Any]) -> None:
    """Create the text index while pushes go on; replace one that an interrupted attempt left."""
    drop_text_index(connection)
    connection.execute(_script("make"))
    # Otherwise each `analyze`, also an automatic one, would split 30,000 texts into words.
    connection.execute(f"alter index assoc.{INDEX} alter column 1 set statistics 0")
    connection.execute("analyze assoc.messages")


@readable
def drop_text_index(connection: Connection[Any]) -> None:
    """Remove the text index: pushes are several times as fast without it."""
    connection.execute(_script("drop"))


def _script(name: str) -> bytes:
    return sql.data("schema", "fleet", "index", f"{name}.sql").read_text("utf-8").encode()


# ------------------------------------------------------------------------------------------------
# The actions of this machine on its server.
#
# One push of a machine runs at a time, guarded by `<db>.push.lock`. The database is only read, so a
# push never blocks a sync. Only `adopt`, `new_origin`, and a push that finds files which the server
# has under other keys (`pull.same_files`) write to it.


class Comparison(NamedTuple):
    """A comparison of this machine with the server."""

    known: Known | None
    """None: this machine never pushed."""
    missing: list[str]
    """Migrations that the server lacks."""
    is_current: bool
    """Does the server have everything in scope?"""
    there: int
    """Files of this machine on the server."""
    gone: int
    """Those that the database no longer has."""
    outside: int
    """Those that the database has, but that may no longer leave it."""
    kept_since: str
    """The server keeps nothing older; '': it keeps everything."""
    too_old: int
    """Files that may leave it, but are older."""
    clock: float
    """Seconds that the clock of this machine is ahead of that of the server."""
    is_indexed: bool
    """Is there a text index? Without it, a search reads everything."""


def destination_of(database: Path, given: str | None) -> str:
    """Return the given server, or else the one of this machine."""
    return given or os.environ.get(DESTINATION) or state_of(database).destination


def database_uuid(reader: sqlite3.Connection) -> str:
    return str(UUID(projection.database_key(reader)))


def set_up(
    database: Path, destination: str, label: str | None, *, distributed: bool = False
) -> tuple[State, list[str]]:
    """Set up the server if necessary, and make it the server of this machine.

    `distributed`: distribute the tables over the nodes of Citus. Return the state of the machine,
    and the migrations that were applied.
    """
    parameters(destination)  # raises before anything is saved
    if label is not None and label != _plain(label):
        raise UsageError(SENTENCES["origins_label_plain"])
    with closing(open_reader(database)) as reader:
        key = database_uuid(reader)
    with push_lock(database, PATIENCE):
        state = load(database)
        with connect(destination) as connection:
            is_new = not applied_migrations(connection)
            applied = migrate(connection, distributed=distributed) if is_new or distributed else []
            if state is not None and label is not None:
                _demand_label(Server(connection).hello(state.uuid), label)
        if state is None:
            name = label or _plain(platform.node()) or "machine"
            state = State(place_of(database), str(uuid4()), name, key, destination)
        elif state.destination != destination:
            # It may be the same server under another name, so the identity of this machine stays.
            state.destination, state.cursor = destination, None
        state.db_uuid = key
        state.label = label or state.label
        state.save()
    return state, applied


def _plain(label: str) -> str:
    """Return a label in the letters that are allowed: it becomes part of a path."""
    plain = ascii_letters + digits + "._-"
    return "".join(letter if letter in plain else "-" for letter in label).lstrip("._-")[:63]


def _demand_label(known: Known | None, label: str) -> None:
    if known is not None and known.label != label:
        raise UsageError(
            f"The server knows this machine as {known.label}, and does not change that: leave out "
            "--label."
        )


def standing(database: Path) -> Comparison:
    """Compare this machine with the server."""
    state = state_of(database)
    with closing(open_reader(database)) as reader, connect(state.destination) as connection:
        server = Server(connection)
        known = server.hello(state.uuid)
        missing = missing_migrations(applied_migrations(connection))
        kept_since = "" if missing else server.kept_since()
        clock = time() - server.clock()
        is_indexed = has_text_index(connection)
        there = (
            {file.file_key for file in server.files_of(known.origin_id)} if known else set[bytes]()
        )
        scope = state.scope(reader)
        in_scope = _keys(reader, scope)
        too_old = len(in_scope - _keys(reader, replace(scope, kept_since=kept_since)))
        here = _keys(reader, EVERYTHING)
        is_current = (
            known is not None
            and (known.version, [known.nonce]) == (state.version, state.nonces)
            and state.cursor is not None
            and state.cursor == projection.cursor(reader)
        )
    return Comparison(
        known=known,
        missing=missing,
        is_current=is_current,
        there=len(there),
        gone=len(there - here),
        outside=len(there & here - in_scope),
        kept_since=kept_since,
        too_old=too_old,
        clock=clock,
        is_indexed=is_indexed,
    )


def new_origin(database: Path, label: str) -> State:
    """Give this machine a new identity on the server, called `label`.

    The data of the original stays there. The database and its files get new keys, because the
    present ones belong to the original. Raises UsageError if the label does, too.
    """
    with push_lock(database):
        state = load(database) or state_of(database)
        if label == state.label:
            raise UsageError(
                f"The original is called {label!r}: give this machine another name with --label."
            )
        with writing(database) as writer, transaction(writer):
            writer.execute("update identity set database_key = randomblob(16)")
            writer.execute(f"update files set file_key = randomblob(16) where source_id in ({OWN})")
        with closing(open_reader(database)) as reader:
            state.db_uuid = database_uuid(reader)
        state.uuid, state.label = str(uuid4()), label
        state.version, state.nonces, state.cursor = 0, [], None
        state.save()
    return state


def withdraw(database: Path, project: str) -> int:
    """Delete a project on the server and stop pushing it; return the number of files."""
    with push_lock(database):
        state = state_of(database)
        if state.all_projects:
            raise UsageError(
                "Everything may leave this machine, so the next push would send it again: run "
                "`assoc-ingest remote disallow --all-projects` first, or use "
                "`assoc-ingest forget`, which deletes here, too."
            )
        paths = {project, os.path.abspath(project)}  # noqa: PTH100 -- keeps links, as agents do
        with closing(open_reader(database)) as reader:
            is_known = _has_project(reader, paths) or not paths.isdisjoint(state.allowed)
            keys = _keys(reader, of_paths(reader, paths))
            state.allowed = [allowed for allowed in state.allowed if allowed not in paths]
            state.cursor = None
            state.save()
            still = _keys(reader, state.scope(reader))

        def chosen(there: Server, origin_id: int) -> list[bytes]:
            return [
                file.file_key
                for file in there.files_of(origin_id)
                if file.file_key not in still
                and (file.file_key in keys or file.project_path in paths)
            ]

        count = _delete(database, state, chosen)
    if not count and not is_known:
        raise NotFoundError(f"No project has the path {project}: give its directory.")
    return count


def prune(database: Path) -> int:
    """Delete files on the server that the database no longer has; return their number."""
    with push_lock(database):
        state = state_of(database)
        with closing(open_reader(database)) as reader:
            _demand_pushed(reader, state)
            here = _keys(reader, EVERYTHING)
        return _delete(
            database,
            state,
            lambda server, origin_id: [
                file.file_key for file in server.files_of(origin_id) if file.file_key not in here
            ],
        )


def _delete(database: Path, state: State, chosen: Callable[[Server, int], list[bytes]]) -> int:
    """Delete files on the server, then the keyed rows that only they name."""
    with closing(open_reader(database)) as reader, connect(state.destination) as connection:
        state.db_uuid = database_uuid(reader)  # a new database must be adopted first
        server = Server(connection)
        if server.hello(state.uuid) is None:
            return 0
        known = introduced(server, state)
        keys = chosen(server, known.origin_id)
        if not keys:
            return 0
        state.nonces.append(str(uuid4()))
        state.save()
        answer = server.forget(known.origin_id, known.version, state.nonces[-1], keys)
        if not answer.applied:
            raise BusyError("Another push was faster; try again.")
        with snapshot(reader):
            scope = _kept(state.scope(reader), server)
            local = Local(reader, scope, Masks(is_on=state.masks is not None))
            push(server, local, state, is_full=True)
    return len(keys)


def _demand_pushed(reader: sqlite3.Connection, state: State) -> None:
    """Raise UsageError unless the database continues what was pushed last.

    Nobody has removed what a database restored from a backup lacks.
    """
    if state.cursor is None or not Local(reader, EVERYTHING).is_known(state.cursor):
        raise UsageError(
            "Run `assoc-ingest sync` and `assoc-ingest push` first: this database is not the one "
            "that was pushed last, or what may leave was changed since. If it was restored from a "
            "backup, the server may have the only copy of what is not in it."
        )


def _keys(reader: sqlite3.Connection, scope: Scope) -> set[bytes]:
    return {file.file_key for file in Local(reader, scope).files(None)}


def _has_project(reader: sqlite3.Connection, paths: set[str]) -> bool:
    return any(
        reader.execute("select 1 from projects where path = ?", (path,)).fetchone()
        for path in paths
    )


# ------------------------------------------------------------------------------------------------
# Continues the pushes of a lost database of this machine.
#
# A new database gives its files new keys. Files with the same path and the same beginning get the
# keys that the server knows; the next push then sends only differences. All other data on the
# server stays. If such files were pulled meanwhile, the copies are removed.


def adopt(database: Path, name: str | None = None) -> tuple[Origin, int]:
    """Take over an origin of this login: the one of this machine, or the one with a label or uuid.

    Return it, and the number of files that were recognised.
    """
    with push_lock(database):
        state = state_of(database)
        with connect(state.destination) as connection:
            return _adopted(database, name, state, Server(connection))


def _adopted(database: Path, name: str | None, state: State, server: Server) -> tuple[Origin, int]:
    origin = _chosen(server.mine(), name or state.uuid, state.label if name is None else "")
    with writing(database) as writer:
        masks = Masks(is_on=state.masks is not None)
        found = same_files(writer, server.beginnings(origin.origin_id), masks)
        give_keys(writer, origin.uuid, found)
        state.db_uuid = database_uuid(writer)
    state.uuid, state.label, state.cursor = origin.uuid, origin.label, None
    state.nonces = [str(uuid4())]
    state.save()
    state.version = server.adopt(origin.origin_id, state.db_uuid, state.nonces[0])
    state.save()
    return origin, len(found)


def _chosen(origins: list[Origin], name: str, or_label: str) -> Origin:
    for wanted in filter(None, (name, or_label)):
        fitting = [origin for origin in origins if wanted in (origin.uuid, origin.label)]
        if len(fitting) == 1:
            return fitting[0]
    if not origins:
        raise NotFoundError("This login never pushed to the server: there is nothing to adopt.")
    known = ", ".join(f"{origin.label} ({origin.uuid})" for origin in origins)
    raise UsageError(f"Say which machine this is: remote adopt LABEL or UUID, of {known}.")


# ------------------------------------------------------------------------------------------------
# Pushes everything in scope, or previews it.


def push_all(
    database: Path,
    *,
    is_full: bool = False,
    masks: Masks | None = None,
    limits: Limits | None = None,
    tell: Callable[[Report], None] | None = None,
) -> Report:
    """Push everything in scope, within the memory limit for answers of the server."""
    masks, waiting = masks or Masks(), frozenset[int]()
    with push_lock(database), bounded():
        if state_of(database).cursor is None:
            _note_changes(database)
        while True:
            with (
                _sending(database, masks) as (state, local),
                connect(state.destination) as connection,
            ):
                server, since = Server(connection), None if is_full else _seen(state, local)
                # A new database must be adopted.
                state.db_uuid = database_uuid(local.connection)
                local = replace(local, scope=_kept(local.scope, server), left_out=waiting)
                if since is None:
                    _demand_room(local, server, state)
                found = came_back(local, server, state, since)
                if not found:
                    report = push(server, local, state, is_full=is_full, limits=limits, tell=tell)
                    report.waiting = len(waiting)
                    return report
            try:
                with writing(database) as writer:
                    give_keys(writer, state.uuid, found)
            except BusyError:  # a watch; all else can be pushed
                waiting |= {rename.id for rename in found}


def _demand_room(local: Local, server: Server, state: State) -> None:
    """Raise QuotaError before anything is sent that cannot fit as a whole."""
    room = server.room(state.uuid)
    if room is None:
        return
    (size,) = local.connection.execute(
        "select coalesce(sum(length(a.data)), 0) from archive a join files f on f.id = a.file_id"
        f" where {local.scope.of_file('f')}"
    ).fetchone()
    if size > room:
        raise QuotaError(
            f"What may leave this machine takes more than {shown_size(size)}, and the server allows"
            f" it {shown_size(max(room, 0))}. Nothing was sent: allow fewer projects "
            "(`remote disallow`), or ask the owner of the server for more."
        )


def _kept(scope: Scope, server: Server) -> Scope:
    """Return the scope without what is too old for the server."""
    return replace(scope, kept_since=server.kept_since())


def _note_changes(database: Path) -> None:
    """Make the database record its changes from now on, if it does not yet."""
    with closing(open_reader(database)) as reader:
        if projection.cursor(reader) is not None:
            return
    # If a watch holds the lock, its next transaction starts the record. If the database is
    # read-only or the disk is full, each push compares everything.
    with (
        suppress(AssocIngestError, sqlite3.Error),
        writing(database) as writer,
        transaction(writer),
    ):
        changes.begin_anew(writer)


def _seen(state: State, local: Local) -> Cursor | None:
    """Return the pushed state of the database, if all changes since then are recorded."""
    is_known = state.cursor is not None and local.is_known(state.cursor)
    return state.cursor if is_known else None


def previewed(database: Path, masks: Masks) -> Preview:
    """Return what a push would compare; nothing is sent."""
    with _sending(database, masks) as (state, local):
        since = _seen(state, local)
        return preview(local, since and since.change, shown(state.destination), state.label)


@contextmanager
def _sending(database: Path, masks: Masks) -> Iterator[tuple[State, Local]]:
    """Yield the state of this machine, and a snapshot of what may leave it."""
    with closing(open_reader(database)) as reader:
        state = state_of(database)
        if not state.all_projects and not state.allowed:
            raise NothingAllowedError(
                "Nothing may leave this machine yet: run `assoc-ingest remote allow PROJECT`, or "
                "`remote allow --all-projects`."
            )
        state.cover(masks)
        with snapshot(reader):
            yield state, Local(reader, state.scope(reader), masks)
