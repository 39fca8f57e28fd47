"""Deletes data of machines on the server, for its administrator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from ..errors import NotFoundError
from .connect import readable
from .projection import KEYED, PLACED

if TYPE_CHECKING:
    from psycopg import Connection


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
