"""Deletes data of machines on the server, for its administrator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from ..errors import FleetError, NotFoundError
from ..terminal import Progress
from .connect import readable
from .projection import KEYED, PLACED

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


def _files(connection: Connection[Any], origin_id: int, condition: bytes = b"true") -> list[_File]:
    rows = connection.execute(
        b'select file_no, file_key, coalesce("offset", 0) from assoc.files'
        b" where origin_id = %s and " + condition + b" order by file_no",
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
    connection.execute(
        "update assoc.origins set role_name = '', version = version + 1, nonce = %s"
        " where origin_id = %s",
        (uuid4(), origin_id),
    )
    files = _files(connection, origin_id)
    for batch in _batches(files):
        with connection.transaction():
            _delete(connection, origin_id, batch)
    for table in KEYED:
        connection.execute(
            f"delete from assoc.{table.name} where origin_id = %s".encode(), (origin_id,)
        )
    with connection.transaction():
        connection.execute("delete from assoc.labels where label = %s", (origin.label,))
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
    select c.oid::regclass::text, pg_total_relation_size(c.oid), exists (
        select from pg_attribute a where a.attrelid = c.oid and a.attname = 'origin_id'
    )
    from pg_class c
    where c.relnamespace = to_regnamespace('assoc') and c.relkind = 'r'
    order by 2, 1
"""

_COLUMNS = """
    select string_agg(quote_ident(attname), ', '), string_agg(
        case
            when attname = 'origin_id' then '(select min(origin_id) from assoc.origins)'
            when atttypid = 'timestamptz'::regtype then 'now()'
            when atttypid = 'uuid'::regtype then 'gen_random_uuid()'
            when atttypid in ('int4'::regtype, 'int8'::regtype, 'float8'::regtype) then '0'
            else ''''''
        end, ', '
    )
    from pg_attribute
    where attrelid = %s::regclass and attnum > 0 and not attisdropped and attnotnull
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
    tables = connection.execute(_ERASED.encode()).fetchall()
    done, total = Erased(), sum(size for _, size, _ in tables)
    done.before = total
    looked = 0
    connection.execute("select set_config('lock_timeout', %s, false)", (f"{_PATIENCE}s",))
    for name, size, has_data in [*tables, ("pg_catalog.pg_statistic", 0, False)]:
        try:
            if has_data:
                _replace_statistics(connection, name)
            _rewrite(connection, name, done)
        except errors.LockNotAvailable:
            done.locked.append(name)
        looked += size
        if progress is not None:
            progress(looked, total)
    done.after = sum(size for _, size, _ in connection.execute(_ERASED.encode()).fetchall())
    return done


def _rewrite(connection: Connection[Any], name: str, done: Erased) -> None:
    def note(notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            done.refused.append(name)
        count = re.match(r"\d{1,18}\b", notice.message_detail or "")
        if count and int(count[0]):
            done.visible[name] = int(count[0])

    connection.add_notice_handler(note)
    try:
        connection.execute(f"vacuum (full, verbose) {name}".encode())
    finally:
        connection.remove_notice_handler(note)
    done.tables += 1


def _replace_statistics(connection: Connection[Any], name: str) -> None:
    """Let the statistics of a table have samples of its present rows alone."""
    with connection.transaction():
        row = None
        if not _has_rows(connection, name) and _has_rows(connection, "assoc.origins"):
            columns, values = connection.execute(_COLUMNS.encode(), (name,)).fetchone() or ("", "")
            insert = f"insert into {name} ({columns}) values ({values}) returning ctid::text"
            row = connection.execute(insert.encode()).fetchone()
        connection.execute(f"analyze {name}".encode())
        if row is not None:
            connection.execute(f"delete from {name} where ctid = %s::tid".encode(), row)


def _has_rows(connection: Connection[Any], name: str) -> bool:
    return connection.execute(f"select from {name} limit 1".encode()).fetchone() is not None
