"""Opening the database: for the one writer, and for any number of readers.

The database is private (mode 0600, in a directory of mode 0700). Its `application_id` is checked
first: a database of another program is left alone, and so is one of a newer version. Migrations run
inside one `BEGIN IMMEDIATE`, so all of them are applied, or none. One process writes, guarded by a
lock (`location`); readers need no lock.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from .. import sql
from ..errors import (
    BusyError,
    DamagedError,
    DatabaseError,
    DatabaseIOError,
    Failure,
    OutdatedError,
    kind_of,
)
from ..fields import from_milliseconds, milliseconds, now
from ..lock import file_lock
from ..paths import for_database
from . import changes

# ------------------------------------------------------------------------------------------------
# The time of a sync, which does not go back when the system clock does.
#
# A machine with an empty battery starts in 1970, and a clock may say 2099 for a minute. What a
# sync records at that moment stays, and `prune --before` decides by the time since which a file
# is gone. So:
#
# - no recorded time is earlier than the newest one in the database: while the system clock is
#   behind, time stands still;
# - if a recorded time is more than a year ahead, and no file was modified after now, the clock was
#   wrong when it was recorded. That time is ignored, or all later syncs would have to repeat it.
#
# A clock that is slightly ahead cannot be told from a correct one. So `prune` does not remove
# what has been gone for 90 days by such a clock alone (`gone_since`).


_STEP = timedelta(minutes=1)  # a clock may be corrected by this much without a warning
_FAR = timedelta(days=366)
_DAY = timedelta(days=1)
_LAST_RUNS = 100
_BEFORE_ALL, _AFTER_ALL = "", "9999"


class Clock:
    """The system clock, corrected by the times in the database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.behind: str | None = None
        """The newest time in the database, if the system clock is behind it."""
        self.ahead: str | None = None
        """The newest time in the database, if a wrong clock recorded it."""
        self._reached = present = now()
        newest = _newest(connection)
        if newest > later(present, _FAR) and not _is_witnessed(connection, later(present, _DAY)):
            self.ahead = newest
        elif newest > present:
            self._reached = newest
            self.behind = newest if newest > later(present, _STEP) else None

    def now(self) -> str:
        """Return the time to record: never empty, and never earlier than a recorded one."""
        self._reached = max(self._reached, now())
        return self._reached


def later(moment: str, span: timedelta) -> str:
    """Return the stored form of a time plus `span`, or a text that sorts beyond all times."""
    stored = from_milliseconds(milliseconds(moment) + span // timedelta(milliseconds=1))
    return stored or (_AFTER_ALL if span > timedelta(0) else _BEFORE_ALL)


def said(moment: str) -> str:
    """Return a stored time as messages show it: with the zone, since the clock is in question."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def of_clock_behind(newest: str) -> str:
    return (
        f"The system clock is behind the time of the last sync ({said(newest)}). "
        "Syncs record that time until the clock has caught up."
    )


def _newest(connection: sqlite3.Connection) -> str:
    """Return the newest time of a sync. Older versions may have recorded any time, or none."""
    rows = connection.execute(
        "select max(started_at, coalesce(finished_at, '')) from"
        f" (select * from sync_runs order by id desc limit {_LAST_RUNS})"
        " union all select last_synced_at from sources"
    )
    return max((moment for (moment,) in rows), default="")


def _is_witnessed(connection: sqlite3.Connection, after: str) -> bool:
    """Was any file modified after this time?"""
    row = connection.execute("select 1 from files where mtime > ? limit 1", (after,)).fetchone()
    return row is not None


# ------------------------------------------------------------------------------------------------
# Transactions: begin, commit, and roll back after an error.
#
# Connections that write are in autocommit mode: a statement outside these transactions commits by
# itself. If an error left a transaction open, it would include whatever is written later. What is
# written outside is not noted (`changes`), so no table that `changes` watches is written there.


@contextmanager
def transaction(connection: sqlite3.Connection, *, is_noted: bool = True) -> Iterator[None]:
    """Commit everything that is written within, or nothing after an error.

    Not noted is what changes the schema: the triggers of `changes` know the tables as they were.
    """
    begin(connection, is_noted=is_noted)
    try:
        yield
        commit(connection)
    except BaseException:
        roll_back(connection)
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let many statements read one state of the database; what is written within is rolled back."""
    connection.execute("begin")
    try:
        yield
    finally:
        roll_back(connection)


def begin(connection: sqlite3.Connection, *, is_noted: bool = True) -> None:
    """Begin to write: a deferred transaction that reads first can fail when it comes to write."""
    connection.execute("begin immediate")
    try:
        if is_noted:
            changes.start(connection)
    except BaseException:
        roll_back(connection)
        raise


def commit(connection: sqlite3.Connection) -> None:
    """Make what was written permanent, and note what it changed. Raises sqlite3.Error if that
    fails."""
    changes.settle(connection)
    connection.execute("commit")


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo what was not committed. SQLite may already have done so, as it does on a full disk."""
    if connection.in_transaction:
        connection.execute("rollback")


# ------------------------------------------------------------------------------------------------
# How much a writer's connection keeps in memory and in the log, for few changes and for many.
#
# Each batch of a large sync changes most pages of the indexes of random keys. So a large sync
# keeps more pages in memory, and copies back what is in the log less often: when it is as large
# as it may stay (`database.LOG_LIMIT`).


USUAL = ("cache_size = -32768", "wal_autocheckpoint = 1000")
"""Settings of every writer: KiB of pages in memory, as a negative number, and pages of 16 KiB in
the log from which on they are copied back."""

_IN_BULK = ("cache_size = -65536", "wal_autocheckpoint = 4096")


_PRIVATE = (
    "synchronous = off",
    "locking_mode = exclusive",
    # Some builds of SQLite overwrite what is freed. To empty the index of 4 GB of transcripts, they
    # would keep all of its pages, 790 MB, in memory. What is forgotten is overwritten anyway.
    "secure_delete = off",
)

UNJOURNALED = ("journal_mode = memory", *_PRIVATE)
"""Settings of a database that is not visible yet, and whose batches can be rolled back."""

THROWN_AWAY = ("journal_mode = off", *_PRIVATE)
"""Settings of one that is thrown away after any error, so that nothing has to be undone.

To derive everything that follows from 4 GB of transcripts in one transaction, a journal would keep
460 MB in memory.
"""


@contextmanager
def in_bulk(connection: sqlite3.Connection) -> Iterator[None]:
    """Use a writer's connection for very many changes, outside a transaction."""
    _set(connection, _IN_BULK)
    try:
        yield
    finally:
        _set(connection, USUAL)


def _set(connection: sqlite3.Connection, settings: tuple[str, ...]) -> None:
    for setting in settings:
        connection.execute(f"pragma {setting}").fetchall()


# ------------------------------------------------------------------------------------------------
# Where the database is: one file, one lock, and only its own files next to it.
#
# These files are next to it while they are needed:
#
# - `<db>.lock`, which the writer holds. The kernel releases it when the process dies.
# - `<db>-wal`, `<db>-shm`, `<db>-journal` of SQLite. Without a database, a deleted one left them,
#   and SQLite would apply them to a new one.
# - `<db>-unfinished`, a directory for complete copies of the database. Only the holder of the lock
#   creates it. So whoever takes the lock removes it first: a killed process left it there.
#
# Symbolic links are resolved first, so that the lock is the same for every path that leads to the
# database. A second hard link is refused: SQLite keeps a log for each name, and what is in one
# log is missing from the other.


_UNFINISHED = "-unfinished"
_LOG = ("-wal", "-shm")
_LEFT = (*_LOG, "-journal")


def resolved(path: Path) -> Path:
    """Return a path with links resolved; its target need not exist yet.

    A path without links is returned as given. Raises DatabaseError for links that lead nowhere, and
    DatabaseIOError for a path that cannot be examined.
    """
    real = Path(os.path.realpath(path))
    try:
        is_link = stat.S_ISLNK(real.lstat().st_mode)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            why = error.strerror or str(error)
            raise DatabaseIOError(
                f"{path} cannot be used: {why}. Give another file: --db FILE"
            ) from error
        is_link = False
    if is_link:
        raise DatabaseError(f"{path} is a circular symbolic link. Give another file: --db FILE")
    return path if real == path.absolute() else real


def log_of(path: Path) -> Path:
    """Return the write-ahead log, where SQLite keeps what is not yet in the database file."""
    return Path(f"{path}-wal")


def lock_of(path: Path) -> Path:
    return Path(f"{path}.lock")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the writer's lock; what a killed process or a deleted database left is removed.

    Raises BusyError if another process has the lock, and DatabaseError if the lock is not a regular
    file or the database has a second hard link.
    """
    path = resolved(path)
    lock_path = lock_of(path)
    _check_is_file(lock_path)

    def held() -> str:
        return (
            f"Another process is writing to {path}{_holder(lock_path)}. "
            "Try again when it has ended; a watch reads new files by itself."
        )

    with file_lock(lock_path, held):
        _remove_what_is_left(path)
        _check_has_one_name(path)
        yield


def _check_is_file(lock_path: Path) -> None:
    """Refuse a link, which could lead another writer elsewhere, and a pipe, which would block."""
    try:
        mode = lock_path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise DatabaseError(
            f"{lock_path} should be a lock file, but is not a regular file. "
            "Remove it and try again."
        )


def _holder(lock_path: Path) -> str:
    try:
        pid = lock_path.read_bytes().strip()
    except OSError:
        return ""
    return f" (process {pid.decode()})" if pid.isdigit() else ""


def _remove_what_is_left(path: Path) -> None:
    """Remove copies that a killed process left, and the log of a deleted database.

    Processes that still read the deleted database have its log open and do not need the name.
    SQLite discards a log itself when it opens an empty file, but not the index of the log (`-shm`).
    """
    copies = unfinished(path)
    if os.path.lexists(copies):
        if copies.is_symlink() or not copies.is_dir():
            raise DatabaseError(
                f"{copies} is in the way of temporary copies: move it away and try again."
            )
        from shutil import rmtree  # takes 2 ms

        rmtree(copies)
    if not (path.exists() and path.stat().st_size):
        for ending in _LEFT:
            Path(f"{path}{ending}").unlink(missing_ok=True)


def _check_has_one_name(path: Path) -> None:
    if has_second_name(path):
        raise DatabaseError(
            f"{path} has a second hard link, through which another process could write to it "
            f"unnoticed. Remove one of the links; to find both: find / -xdev -samefile '{path}'"
        )


def has_second_name(path: Path) -> bool:
    """Does the file have several hard links?"""
    return path.exists() and path.stat().st_nlink > 1


# -- temporary copies ----------------------------------------------------------------------------


def unfinished(path: Path) -> Path:
    """Return the directory for copies of a database that are being made."""
    return Path(f"{path}{_UNFINISHED}")


@contextmanager
def temporary_directory(path: Path) -> Iterator[Path]:
    """Yield an empty private directory for copies of a database. The caller holds the lock.

    Raises BusyError if another process has one, which can happen where locks have no effect.
    """
    directory = unfinished(resolved(path))
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        raise BusyError(f"Another process is writing to {path}. Try again later.") from None
    try:
        yield directory
    finally:
        from shutil import rmtree

        with suppress(FileNotFoundError):
            rmtree(directory)


# -- the log -------------------------------------------------------------------------------------


@contextmanager
def log_stays_with(path: Path) -> Iterator[None]:
    """Afterwards, remove the log if the database was deleted or replaced in the meantime.

    A connection to such a file leaves its log when it closes, next to a database that the log does
    not belong to.
    """
    log = [Path(f"{path}{ending}") for ending in _LOG]
    before = [_stat(each) for each in (path, *log)]
    try:
        yield
    finally:
        now = [_stat(each) for each in (path, *log)]
        if not _is_same(before[0], now[0]):
            for each, was, is_ in zip(log, before[1:], now[1:], strict=True):
                if _is_same(was, is_):
                    each.unlink(missing_ok=True)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _is_same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    return one is not None and other is not None and os.path.samestat(one, other)


APPLICATION_ID = 0x41534F43  # "ASOC"

DERIVATION = 15
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
BUSY_TIMEOUT = 10_000  # milliseconds
_SAFE = (
    f"busy_timeout = {BUSY_TIMEOUT}",
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


def no_index(path: Path) -> DatabaseError:
    return DatabaseError(f"No index at {path} - run: {for_database('assoc-ingest sync', path)}")


def open_reader(path: Path, patience: int = BUSY_TIMEOUT) -> sqlite3.Connection:
    """Open the database read-only, rows by name.

    `patience` is how many milliseconds a statement waits for a process that keeps others out.
    Raises DatabaseError if there is none, if it belongs to another program, or if it needs a newer
    version, and DatabaseIOError if this user has no permission to read it.
    """
    path = resolved(path)
    if not path.exists():
        if unfinished(path).is_dir():
            raise DatabaseError(
                f"The first sync into {path} has not finished. Wait, or run it again."
            )
        raise no_index(path)
    try:
        return _open_current(path, "mode=ro", (), patience)
    except sqlite3.OperationalError as error:
        _check_rights(path, error)
        if kind_of(error) is not Failure.IO:
            raise
        # A full disk has no room for -shm, through which processes share the log. In exclusive mode
        # SQLite keeps it in memory; if another process has the database open, that is busy.
        settings = ("locking_mode = exclusive", "query_only = on")
        return _open_current(path, "mode=rw", settings, patience)


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


def _open_current(
    path: Path, mode: str, settings: Sequence[str], patience: int
) -> sqlite3.Connection:
    """Open a database that has the schema of this program, rows by name."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        for setting in (f"busy_timeout = {patience}", *settings):
            connection.execute(f"pragma {setting}").fetchall()
        if _pending(connection, path):
            if _found(connection) is None:
                raise DatabaseError(
                    f"{path} is empty: the first sync into it was stopped. "
                    f"Run: {for_database('assoc-ingest sync', path)}"
                )
            _check_migrations(connection, path)
            raise DatabaseError(
                f"{path} was created by an older version. "
                f"To update it, run: {for_database('assoc-ingest sync', path)}"
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
            if _pending(connection, path) and _found(connection) is not None:
                _check_migrations(connection, path)
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
    newer = {name for name in found.migrations - known if not name.startswith(f"{sql.VIEWS_NAME}-")}
    if newer or found.derived_by > DERIVATION:
        raise _newer(path)
    return bool(known - found.migrations)


def _check_migrations(connection: sqlite3.Connection, path: Path) -> None:
    """Raise OutdatedError if the missing migrations do not lead to the schema of this version."""
    try:
        sql.try_migrations(connection)
    except sqlite3.Error as error:
        raise OutdatedError(
            f"{path} was created by an older version, and cannot be updated in place ({error}). "
            "To make a new database of what it holds, "
            f"run: {for_database('assoc-ingest rebuild', path)}"
        ) from error


class _Header(NamedTuple):
    """What a database says about itself."""

    application_id: int
    derived_by: int
    migrations: set[str] | None
    """Names of the migrations that were applied, None if there is no record of them."""


def _found(connection: sqlite3.Connection) -> _Header | None:
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
        return _Header(application_id, derived_by, None)
    return _Header(application_id, derived_by, sql.applied_migrations(connection))


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
    return DamagedError(
        f"{path} is damaged ({error}) - run: {for_database('assoc-ingest rebuild', path)}"
    )


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


# ------------------------------------------------------------------------------------------------
# Whether the rows come from an older version of the parsers, so that `rebuild` is due.


def is_rebuild_due(connection: sqlite3.Connection) -> bool:
    """Were the rows derived by an older version of the parsers?"""
    (derived_by,) = connection.execute("pragma user_version").fetchone()
    return bool(derived_by < DERIVATION)
