"""Deletes data of machines on the server, for its administrator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from ..errors import FleetError, NotFoundError
from ..terminal import Progress
from .connect import readable
from .nodes import Node, run_on_shards, workers
from .projection import KEYED, PLACED
from .server import change

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.errors import Diagnostic


# ------------------------------------------------------------------------------------------------
# Deletes files in batches, each a transaction of its own, so that nobody waits long for a lock.


_FILES_AT_ONCE = 200
_BYTES_AT_ONCE = 32_000_000

_OF_FILES = (*(table.name for table in PLACED), "frames", "files")


class Deleted(NamedTuple):
    """What was deleted, or would be."""

    files: int = 0
    bytes: int = 0
    """Of these files, as they are on their machine."""


class _File(NamedTuple):
    file_no: int
    file_key: bytes
    size: int


def _batches(files: list[_File]) -> Iterator[list[_File]]:
    batch, size = list[_File](), 0
    for file in files:
        batch.append(file)
        size += file.size
        if size >= _BYTES_AT_ONCE or len(batch) == _FILES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _files(connection: Connection[Any], origin_id: int) -> list[_File]:
    rows = connection.execute(
        'select file_no, file_key, coalesce("offset", 0) from assoc.files'
        " where origin_id = %s order by file_no",
        (origin_id,),
    )
    return [_File(*row) for row in rows.fetchall()]


def _delete(connection: Connection[Any], origin_id: int, files: list[_File]) -> None:
    """Delete files with their rows, and let machines that pulled them know."""
    connection.execute(
        "insert into assoc.deleted_files (origin_id, file_key) select %s, unnest(%b::bytea[])"
        " on conflict do nothing",
        (origin_id, [file.file_key for file in files]),
    )
    numbers = [file.file_no for file in files]
    for name in _OF_FILES:
        connection.execute(
            f"delete from assoc.{name} where origin_id = %s and file_no = any (%s)".encode(),
            (origin_id, numbers),
        )


def _sum(files: list[_File]) -> Deleted:
    return Deleted(len(files), sum(file.size for file in files))


# ------------------------------------------------------------------------------------------------
# Removes a machine: a lost or sold one, or one that was pushed by mistake.
#
# Its row of `origins` stays without a login, so that machines that pulled its files learn that they
# were deleted, and so that it cannot push again as the same. The first step takes the login, and
# the last one frees the label: an interrupted removal is found by its label, and continues.


class Origin(NamedTuple):
    """A machine on the server."""

    origin_id: int
    label: str
    login: str
    """'': a removal of it was interrupted."""
    size: Deleted


@readable
def origin_named(connection: Connection[Any], name: str) -> Origin:
    """Return the machine with this label or uuid. Raises NotFoundError if there is none."""
    rows = connection.execute(
        "select origin_id, label, role_name::text, uuid::text from assoc.origins"
        " where role_name <> '' or label <> 'removed-' || uuid order by label"
    ).fetchall()
    for origin_id, label, login, uuid in rows:
        if name in (label, uuid):
            return Origin(origin_id, label, login, _sum(_files(connection, origin_id)))
    known = ", ".join(label for _, label, _, _ in rows) or "none"
    raise NotFoundError(f"The server has no machine {name!r}; it has: {known}.")


@readable
def remove_origin(connection: Connection[Any], origin: Origin) -> Deleted:
    """Delete everything that a machine pushed, and free its label."""
    origin_id = origin.origin_id
    with change(connection):
        connection.execute(
            "update assoc.origins set role_name = '' where origin_id = %s", (origin_id,)
        )
        connection.execute(
            "update assoc.origin_states set version = version + 1, nonce = %s where origin_id = %s",
            (uuid4(), origin_id),
        )
    files = _files(connection, origin_id)
    for batch in _batches(files):
        with change(connection):
            _delete(connection, origin_id, batch)
    for name in (*_OF_FILES, *(table.name for table in KEYED)):
        with change(connection):
            connection.execute(
                f"delete from assoc.{name} where origin_id = %s".encode(), (origin_id,)
            )
    with change(connection):
        connection.execute("delete from assoc.labels where label = %s", (origin.label,))
        connection.execute("delete from assoc.stored where origin_id = %s", (origin_id,))
        connection.execute(
            "update assoc.origins set label = 'removed-' || uuid where origin_id = %s", (origin_id,)
        )
    return _sum(files)


@readable
def remove_bytes(connection: Connection[Any], origin: Origin) -> Deleted:
    """Delete the bytes of a machine's files; its rows stay.

    The digests stay, too, so that the machine does not send the bytes again.
    """
    files = _files(connection, origin.origin_id)
    for batch in _batches(files):
        connection.execute(
            "update assoc.frames set data = null"
            " where origin_id = %s and file_no = any (%s) and data is not null",
            (origin.origin_id, [file.file_no for file in batch]),
        )
    return _sum(files)


# ------------------------------------------------------------------------------------------------
# Deletes what is old, by the times of each machine's own lines; machines do not push it again.
#
# The limit is stored, so that a machine leaves out the same files as the server deletes: those
# whose last line is older, or without times in lines, whose session is, or whose last change is
# (`projection.Scope`). A machine of which something was deleted compares everything once, because
# its version is another one, and so do all after a limit that lets older files back. A conversation
# goes with its last file. A file that grows later is not old any more, and is pushed as a whole.


_IS_OLD = "coalesce({0} between '2000' and %(limit)s, false)"
_ENDED = "coalesce(s.ended_at, s.started_at)"
_OLD_FILES = f"""
    from assoc.files f
    left join assoc.sessions s
        on s.origin_id = f.origin_id and s.source_no = f.source_no
        and s.session_key = f.session_key
    where f.origin_id = %(origin)s
      and {_IS_OLD.format(f"coalesce(f.recorded_at, {_ENDED}, f.mtime)")}
"""


class Old(NamedTuple):
    """What a machine has that is older than a limit."""

    label: str
    origin_id: int
    deleted: Deleted


@readable
def kept_since(connection: Connection[Any]) -> str | None:
    """Return the limit that is in force."""
    row = connection.execute("select max(kept_since) from assoc.retention").fetchone()
    return row and row[0]


@readable
def limit_before(connection: Connection[Any], span: timedelta) -> str:
    """Return the time that was this long ago, by the clock of the server."""
    row = connection.execute(
        "select to_char(now() at time zone 'UTC' - %s, 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')",
        (span,),
    ).fetchone()
    return str(row[0]) if row else ""


@readable
def older(connection: Connection[Any], limit: str) -> list[Old]:
    """Return what each machine has that is older, without machines that have nothing."""
    origins = connection.execute(
        "select label, origin_id from assoc.origins where role_name <> '' order by label"
    ).fetchall()
    found = [
        Old(label, origin_id, _sum(_old_files(connection, origin_id, limit)))
        for label, origin_id in origins
    ]
    return [old for old in found if old.deleted.files]


@readable
def keep_since(connection: Connection[Any], limit: str | None) -> None:
    """Set the limit, or with None remove it, so that machines push older files again."""
    with change(connection):
        before = kept_since(connection)
        connection.execute("delete from assoc.retention")
        if limit is not None:
            connection.execute("insert into assoc.retention values (%s)", (limit,))
        if limit is None or (before is not None and limit < before):
            connection.execute("update assoc.origin_states set version = version + 1")


@readable
def delete_older(connection: Connection[Any], limit: str) -> tuple[Deleted, list[str]]:
    """Delete what every machine has that is older than the limit that is in force.

    Return what was deleted, and the machines that were locked, of which something may be left.
    """
    from psycopg.errors import LockNotAvailable

    total, locked = Deleted(), []
    rows = connection.execute(
        "select origin_id, label from assoc.origins where role_name <> '' order by label"
    )
    for origin_id, label in rows.fetchall():
        try:
            for deleted in _deletions(connection, origin_id, limit):
                total = Deleted(*map(sum, zip(total, deleted, strict=True)))
        except LockNotAvailable:
            locked.append(label)
    return total, locked


def _deletions(connection: Connection[Any], origin_id: int, limit: str) -> Iterator[Deleted]:
    """Delete what a machine has that is older, in batches; yield each."""
    for batch in _batches(_old_files(connection, origin_id, limit)):
        with _changing(connection, origin_id):
            numbers = {file.file_no for file in batch}
            still_old = _old_files(connection, origin_id, limit)
            batch = [file for file in still_old if file.file_no in numbers]
            if batch:
                _delete(connection, origin_id, batch)
        yield _sum(batch)
    has_old = f"select exists (select {_OLD_SESSIONS})".encode()
    if connection.execute(has_old, {"origin": origin_id, "limit": limit}).fetchone() == (True,):
        with _changing(connection, origin_id):
            _delete_sessions(connection, origin_id, limit)


def _old_files(connection: Connection[Any], origin_id: int, limit: str) -> list[_File]:
    rows = connection.execute(
        f'select f.file_no, f.file_key, coalesce(f."offset", 0) {_OLD_FILES} order by 1'.encode(),
        {"origin": origin_id, "limit": limit},
    )
    return [_File(*row) for row in rows.fetchall()]


@contextmanager
def _changing(connection: Connection[Any], origin_id: int) -> Iterator[None]:
    """Change an origin in a transaction that no push comes between; its machine will compare."""
    with change(connection):
        connection.execute(
            "update assoc.origin_states set version = version + 1 where origin_id = %s",
            (origin_id,),
        )
        yield


_OLD_SESSIONS = f"""
    from assoc.sessions s
    where s.origin_id = %(origin)s and {_IS_OLD.format(_ENDED)}
      and not exists (
        select from assoc.files f
        where f.origin_id = %(origin)s and f.source_no = s.source_no
          and f.session_key = s.session_key
      )
"""
"""Old conversations without a file."""


def _delete_sessions(connection: Connection[Any], origin_id: int, limit: str) -> None:
    """Delete old conversations without a file, with their subagents and tasks."""
    of_origin = {"origin": origin_id, "limit": limit}
    sessions = connection.execute(
        f"delete {_OLD_SESSIONS} returning s.source_no, s.session_key".encode(), of_origin
    ).fetchall()
    if not sessions:
        return
    sources, keys = map(list, zip(*sessions, strict=True))
    for table, source in (("subagents", "source_no"), ("tasks", "session_source_no")):
        connection.execute(
            f"delete from assoc.{table} r using unnest(%(sources)s::int[], %(keys)s::text[])"
            f" as gone (source_no, session_key) where r.origin_id = %(origin)s"
            f" and r.{source} = gone.source_no and r.session_key = gone.session_key".encode(),
            {**of_origin, "sources": sources, "keys": keys},
        )


# ------------------------------------------------------------------------------------------------
# Rewrites the tables, so that nothing deleted is left in their pages, indexes or statistics.
#
# PostgreSQL only marks a deleted row as free space, and samples of values are in `pg_statistic`.
# VACUUM FULL writes a new file for each table and index and deletes the old ones. It keeps deleted
# rows that an open transaction may still see, and says how many. ANALYZE replaces the samples of a
# table, but not if it is empty; so an empty one gets a row for a moment.


_PATIENCE = 10
"""Seconds that a rewrite waits for a lock; whoever asks for the table meanwhile waits behind it."""


@dataclass
class Erased:
    """The result of a rewrite."""

    tables: int = 0
    before: int = 0
    """Bytes of all tables and indexes before, and after it."""
    after: int = 0
    locked: list[str] = field(default_factory=list)
    """Tables that were not rewritten, because another connection used them."""
    visible: dict[str, int] = field(default_factory=dict)
    """The number of deleted rows that an open transaction may still see, by table."""
    refused: list[str] = field(default_factory=list)
    """Tables that this login may not rewrite."""

    @property
    def is_whole(self) -> bool:
        """Is everything that was deleted gone from the tables?"""
        return not (self.locked or self.visible or self.refused)


_ERASED = """
    select c.oid::regclass::text, {size}, exists (
        select from pg_attribute a where a.attrelid = c.oid and a.attname = 'origin_id'
    )
    from pg_class c
    where c.relnamespace = to_regnamespace('assoc') and c.relkind = 'r'
    order by 2, 1
"""

_SIZE = "pg_total_relation_size(c.oid)"
_DISTRIBUTED_SIZE = f"""
    case when exists (select from pg_dist_partition p where p.logicalrelid = c.oid)
    then citus_total_relation_size(c.oid) else {_SIZE} end
"""

_COLUMNS = """
    select string_agg(quote_ident(attname), ', '), string_agg(
        case
            when attname = 'origin_id'
            then coalesce((select min(origin_id) from assoc.origins), 0)::text
            when atttypid = 'timestamptz'::regtype then 'now()'
            when atttypid = 'uuid'::regtype then 'gen_random_uuid()'
            when atttypid in ('int4'::regtype, 'int8'::regtype, 'float8'::regtype) then '0'
            else ''''''
        end, ', '
    ), exists (select from assoc.origins)
    from pg_attribute
    where attrelid = %s::regclass and attnum > 0 and not attisdropped
      and attnotnull and not atthasdef
"""


@readable
def erase(connection: Connection[Any], progress: Progress | None = None) -> Erased:
    """Rewrite all tables of the fleet, one after the other; each is locked meanwhile."""
    from psycopg import errors

    row = connection.execute(
        "select pg_has_role(nspowner, 'usage') from pg_namespace where nspname = 'assoc'"
    ).fetchone()
    if row is None or not row[0]:
        raise FleetError("Only the owner of the schema can do this: name its login with --to.")
    nodes = workers(connection)
    listed = _ERASED.format(size=_DISTRIBUTED_SIZE if nodes else _SIZE).encode()
    tables = connection.execute(listed).fetchall()
    done, total = Erased(), sum(size for _, size, _ in tables)
    done.before = total
    looked = 0
    connection.execute("select set_config('lock_timeout', %s, false)", (f"{_PATIENCE}s",))
    for name, size, has_data in [*tables, (_STATISTICS, 0, False)]:
        is_on_nodes = bool(nodes) and name not in _NOT_DISTRIBUTED
        try:
            if has_data:
                _replace_statistics(connection, name, is_on_nodes=is_on_nodes)
            _rewrite(connection, name, done)
        except errors.LockNotAvailable:
            done.locked.append(name)
        else:
            if is_on_nodes:
                run_on_shards(connection, name, "vacuum %1$s")
                dead = run_on_shards(connection, name, _DEAD.format("'%1$s'"))
                _note_visible(done, name, sum(map(int, dead)))
        looked += size
        if progress is not None:
            progress(looked, total)
    for node in nodes:
        _rewrite_statistics(node, done)
    done.after = sum(size for _, size, _ in connection.execute(listed).fetchall())
    return done


_STATISTICS = "pg_catalog.pg_statistic"
_NOT_DISTRIBUTED = (_STATISTICS, "assoc.schema_version")
_DEAD = "select pg_stat_get_dead_tuples({}::regclass)"
"""Deleted rows that the VACUUM before it had to leave: a worker tells nobody how many there are."""
_MAY_REWRITE = """
    select rolsuper or pg_has_role(d.datdba, 'usage')
    from pg_roles, pg_database d
    where rolname = current_user and d.datname = current_database()
"""

_count = re.compile(r"\d{1,18}\b")


def _rewrite_statistics(node: Node, done: Erased) -> None:
    name = f"{_STATISTICS} on {node.host}:{node.port}"
    if not node.value(_MAY_REWRITE):
        done.refused.append(name)
        return
    node.run(f"vacuum (full) {_STATISTICS}")
    node.run(f"vacuum {_STATISTICS}")
    _note_visible(done, name, int(node.run(_DEAD.format(f"'{_STATISTICS}'"))))
    done.tables += 1


def _note_visible(done: Erased, name: str, count: int) -> None:
    if count:
        done.visible[name] = count


def _rewrite(connection: Connection[Any], name: str, done: Erased) -> None:
    def note(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            done.refused.append(name)
        count = _count.match(notice.message_detail or "")
        _note_visible(done, name, int(count[0]) if count else 0)

    connection.add_notice_handler(note)
    try:
        connection.execute(f"vacuum (full, verbose) {name}".encode())
    finally:
        connection.remove_notice_handler(note)
    done.tables += 1


_REPLACE_STATISTICS = """
do $$
declare place tid;
begin
    if not exists (select from %1$s) then
        insert into %1$s ({columns}) select {values} where {has_origin} returning ctid into place;
    end if;
    analyze %1$s;
    delete from %1$s where ctid = place;
end $$
"""


def _replace_statistics(connection: Connection[Any], name: str, *, is_on_nodes: bool) -> None:
    """Let the statistics of a table, or of each part, have samples of its present rows alone."""
    columns, values, has_origin = connection.execute(_COLUMNS.encode(), (name,)).fetchone() or (
        *("", "", False),
    )
    statement = _REPLACE_STATISTICS.format(columns=columns, values=values, has_origin=has_origin)
    if is_on_nodes:
        run_on_shards(connection, name, statement)
    else:
        connection.execute(statement.replace("%1$s", name).encode())
