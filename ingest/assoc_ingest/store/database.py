"""Opening the database: for the one writer, and for any number of readers.

The database is private (mode 0600, in a directory of mode 0700). Its `application_id` is checked
first: a database of another program is left alone, and so is one of a newer version. Migrations run
inside one `BEGIN IMMEDIATE`, so all of them are applied, or none. One process writes, guarded by a
lock (`location`); readers need no lock.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from .. import sql
from ..errors import DamagedError, DatabaseError, DatabaseIOError
from ..failures import Failure, kind_of
from . import changes
from .bulk import USUAL
from .location import locked, log_stays_with, resolved, unfinished
from .transaction import transaction

APPLICATION_ID = 0x41534F43  # "ASOC"

DERIVATION = 11
"""The version of the parsers. Raise it when a parser learns something that the rows of files read
earlier should have, too: the next sync derives all tables again (`rebuild`)."""

LOG_LIMIT = 64 * 1024 * 1024
"""Bytes to which the write-ahead log is truncated when SQLite starts it over."""

_PAGE_SIZE = 16384  # 6 to 15 % faster than 4096; fixed with the first table
_FTS_SETTINGS = {
    "hashsize": 64 * 1024 * 1024,  # bytes of index rows gathered in memory before they are written
    "automerge": 16,  # segments merged into one; with 4, the default, most data is written twice
    "crisismerge": 64,  # segments at which all are merged at once: not reached during a merge
}
_BUSY_TIMEOUT = 10_000  # milliseconds
_SAFE = (
    f"busy_timeout = {_BUSY_TIMEOUT}",
    "synchronous = normal",
    "foreign_keys = on",
    "recursive_triggers = on",
    "cell_size_check = on",
    "mmap_size = 0",
)
"""Settings of every connection that may write."""

JOURNALED = ("journal_mode = wal", f"journal_size_limit = {LOG_LIMIT}")
"""Settings of a connection that writes beside readers."""

_CLOSING_TIMEOUT = 200  # milliseconds; a command that is done does not wait for readers


def open_reader(path: Path) -> sqlite3.Connection:
    """Open the database read-only, rows by name.

    Raises DatabaseError if there is none, if it belongs to another program, or if it needs a newer
    version, and DatabaseIOError if this user has no permission to read it.
    """
    path = resolved(path)
    if not path.exists():
        if unfinished(path).is_dir():
            raise DatabaseError(
                f"The first sync into {path} has not finished. Wait, or run it again."
            )
        raise DatabaseError(f"No index at {path} - run: assoc-ingest sync")
    try:
        return _open_current(path, "mode=ro", ())
    except sqlite3.OperationalError as error:
        _check_rights(path, error)
        if kind_of(error) is not Failure.IO:
            raise
        # A full disk has no room for -shm, through which processes share the log. In exclusive mode
        # SQLite keeps it in memory; if another process has the database open, that is busy.
        return _open_current(path, "mode=rw", ("locking_mode = exclusive", "query_only = on"))


def _check_rights(path: Path, error: sqlite3.OperationalError) -> None:
    """Raise DatabaseIOError if a database cannot be opened for lack of permissions."""
    if kind_of(error) is not Failure.DENIED:
        return
    if not os.access(path, os.R_OK):
        raise DatabaseIOError(
            f"You have no permission to read {path}. Give another file: --db FILE"
        )
    if not os.access(path.parent, os.W_OK):
        raise DatabaseIOError(
            f"{path} cannot be read here: SQLite needs to create files next to it, but you "
            f"have no permission to write to {path.parent}. Copy it, together with "
            f"{path.name}-wal if that exists, and give the copy: --db FILE"
        )


def _open_current(path: Path, mode: str, settings: Sequence[str]) -> sqlite3.Connection:
    """Open a database that has the schema of this program, rows by name."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        for setting in (f"busy_timeout = {_BUSY_TIMEOUT}", *settings):
            connection.execute(f"pragma {setting}").fetchall()
        if _pending(connection, path):
            if _found(connection) is None:
                raise DatabaseError(
                    f"{path} is empty: the first sync into it was stopped. Run: assoc-ingest sync"
                )
            raise DatabaseError(
                f"{path} was created by an older version. To update it, run: assoc-ingest sync"
            )
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def checking(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that may write, without the writer's lock, to check full-text indexes.

    The checks are insert statements, though they insert nothing. WAL checkpoints are left to the
    writer: some versions of SQLite do not survive two at once. Raises as `open_reader` does, and
    DatabaseIOError if this user may only read.
    """
    open_reader(path).close()
    path = resolved(path)
    if not os.access(path, os.W_OK):
        raise DatabaseIOError(
            f"You have no permission to write to {path}, which SQLite needs to check full-text "
            "indexes. Run this as the owner of the file, or give a copy: --db FILE"
        )
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None
    )
    try:
        for setting in (*_SAFE, "wal_autocheckpoint = 0"):
            connection.execute(f"pragma {setting}").fetchall()
        yield connection
    finally:
        connection.close()


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the writer's lock and yield a connection to the migrated database.

    Creates the database if there is none. Raises BusyError if another process writes, and
    DatabaseError if the file belongs to another program or a newer version; it is then unchanged.
    """
    with kept_private(path) as real:
        connection = open_writer(real)
        with log_stays_with(real):
            try:
                yield connection
            finally:
                _close_writer(connection)


@contextmanager
def kept_private(path: Path) -> Iterator[Path]:
    """Hold the writer's lock and yield the resolved path; files created meanwhile are private.

    Raises as `writing` does.
    """
    path = resolved(path)
    _check_before_creating(path)
    with _private_umask():
        with suppress(FileExistsError):
            path.parent.mkdir(mode=0o700, parents=True)
        with locked(path):
            yield path


def _check_before_creating(path: Path) -> None:
    """Refuse a file of another program before a lock or anything else is created next to it."""
    if path.is_dir():
        raise DatabaseError(f"{path} is a directory. Give a database file: --db FILE")
    if path.exists() and path.stat().st_size:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            _pending(connection, path)
        except sqlite3.OperationalError as error:
            _check_rights(path, error)
            raise
        finally:
            connection.close()


@contextmanager
def _private_umask() -> Iterator[None]:
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def open_writer(path: Path, journal: Sequence[str] = JOURNALED) -> sqlite3.Connection:
    """Open a database for the holder of the writer's lock; create and migrate it if necessary."""
    # SQLite would create it with a mode that depends on the umask, and -wal and -shm likewise.
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    elif not path.stat().st_size:
        path.chmod(0o600)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for setting in (
            *_SAFE,
            f"page_size = {_PAGE_SIZE}",
            *journal,
            *USUAL,
            "temp_store = memory",
        ):
            connection.execute(f"pragma {setting}").fetchall()
        if _pending(connection, path):
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _close_writer(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # a reader may use the log; then the next writer empties it
        connection.execute(f"pragma busy_timeout = {_CLOSING_TIMEOUT}").fetchall()
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    connection.close()


def _pending(connection: sqlite3.Connection, path: Path) -> bool:
    """Does the database lack a migration?

    Raises DatabaseError if it belongs to another program or a newer version.
    """
    try:
        found = _found(connection)
    except sqlite3.OperationalError:
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _unreadable(path, _why(error)) from error
    if found is None:
        return True
    if found.application_id != APPLICATION_ID or found.migrations is None:
        raise DatabaseError(f"{path} is not an assoc-ingest database. Give another: --db FILE")
    known = set(sql.migration_names())
    # This version would add rows that mean something else to a newer one.
    if found.migrations - known or found.derived_by > DERIVATION:
        raise _newer(path)
    return bool(known - found.migrations)


class _Found(NamedTuple):
    """What a database says about itself."""

    application_id: int
    derived_by: int
    migrations: set[str] | None
    """Names of the migrations that were applied, None if there is no record of them."""


def _found(connection: sqlite3.Connection) -> _Found | None:
    """Return what a database says about itself, None if it is empty.

    Raises sqlite3.DatabaseError and UnicodeDecodeError if it is damaged.
    """
    (application_id,) = connection.execute("pragma application_id").fetchone()
    (derived_by,) = connection.execute("pragma user_version").fetchone()
    # As bytes: the names in a damaged schema table may not be text.
    names = connection.execute("select cast(name as blob) from sqlite_master")
    tables = {name for (name,) in names}
    if not tables and application_id == 0:
        return None
    if sql.RECORD_OF_MIGRATIONS.encode() not in tables:
        return _Found(application_id, derived_by, None)
    return _Found(application_id, derived_by, sql.applied_migrations(connection))


def _why(error: sqlite3.DatabaseError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):  # SQLite's message quotes the damaged text
        return "its table list cannot be read"
    return str(error)


def _newer(path: Path) -> DatabaseError:
    return DatabaseError(
        f"{path} was created by a newer version of assoc-ingest. Update this one: "
        "pip install --upgrade assoc-ingest"
    )


def _unreadable(path: Path, error: str) -> DatabaseError:
    """Return the error for a file that SQLite cannot use; its header says whose file it is."""
    with path.open("rb") as file:
        header = file.read(72)
    if not header.startswith(b"SQLite format 3\0") or _number(header[68:]) != APPLICATION_ID:
        return DatabaseError(
            f"{path} is not an assoc-ingest database ({error}). Give another: --db FILE"
        )
    if _number(header[60:64]) > DERIVATION:
        return _newer(path)
    return DamagedError(f"{path} is damaged ({error}) - run: assoc-ingest rebuild")


def _number(field: bytes) -> int:
    return int.from_bytes(field, signed=True)


def _migrate(connection: sqlite3.Connection) -> None:
    """Apply all pending migrations in one transaction, or none."""
    with transaction(connection, is_noted=False):
        if connection.execute("pragma application_id").fetchone() == (0,):
            connection.execute(f"pragma user_version = {DERIVATION}")  # there are no rows yet
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        sql.migrate(connection)
        changes.renew(connection)
        connection.executemany(
            "insert into messages_fts (messages_fts, rank) values (?, ?)", _FTS_SETTINGS.items()
        )
