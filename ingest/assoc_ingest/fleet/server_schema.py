"""The schema of the server: the files of `schema/fleet/`, applied in the order of their names.

Only `remote init` and `remote migrate` run them. Each file and its entry in `schema_version` commit
together, under a lock, so two administrators at once do it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import sql
from ..errors import BusyError, FleetError, UsageError
from .connect import telling

if TYPE_CHECKING:
    from psycopg import Connection

_OLDEST = 140000
_LOCK = 0x4153534F  # "ASSO"
_PATIENCE = 10
"""Seconds that a migration waits for a lock."""


def names() -> list[str]:
    """Return the names of the server's migrations, in order."""
    entries = (entry.name for entry in sql.data("schema", "fleet").iterdir())
    return sorted(name.removesuffix(".sql") for name in entries if name.endswith(".sql"))


@telling
def applied(connection: Connection[Any]) -> list[str]:
    """Return the names of those that this database has; none: it is not set up."""
    row = connection.execute("select to_regclass('assoc.schema_version')").fetchone()
    if row is None or row[0] is None:
        return []
    rows = connection.execute("select name from assoc.schema_version order by name")
    return [name for (name,) in rows.fetchall()]


@telling
def migrate(connection: Connection[Any]) -> list[str]:
    """Apply what is missing; return the names of what was applied."""
    _check_server(connection)
    done = []
    for name in names():
        with connection.transaction():
            _take_lock(connection)
            known = applied(connection)
            _check_newer(known)
            if name in known:
                continue
            script = sql.data("schema", "fleet", f"{name}.sql").read_text("utf-8")
            connection.execute(script.encode())
            connection.execute("insert into assoc.schema_version (name) values (%s)", (name,))
            done.append(name)
    return done


def _take_lock(connection: Connection[Any]) -> None:
    """Take the lock of migrations, or say who holds it: every login of the server can."""
    connection.execute(f"set local lock_timeout = '{_PATIENCE}s'".encode())
    row = connection.execute("select pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone()
    if row is not None and row[0]:
        return
    holder = connection.execute(
        "select a.usename, a.pid from pg_locks l join pg_stat_activity a using (pid)"
        " where l.locktype = 'advisory' and l.objid = %s and l.granted"
        " and l.pid <> pg_backend_pid()",
        (_LOCK,),
    ).fetchone()
    try:
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
    except Exception as error:
        if getattr(error, "sqlstate", None) != "55P03":
            raise
        name, pid = holder or ("another login", "?")
        raise BusyError(
            f"The login {name} (process {pid}) holds the lock of migrations for more than "
            f"{_PATIENCE} seconds. If that is no other `remote migrate`, end it with: "
            f"select pg_terminate_backend({pid})"
        ) from error


def check(connection: Connection[Any]) -> None:
    """Raise an error that says what to do unless this program and the server fit."""
    known = applied(connection)
    if not known:
        raise FleetError(
            "This database is not set up for a fleet: run `assoc-ingest remote init` on it."
        )
    _check_newer(known)
    if missing := [name for name in names() if name not in known]:
        raise FleetError(
            f"The server lacks {missing[0]}: its administrator must run `assoc-ingest remote "
            "migrate` first."
        )


def _check_newer(known: list[str]) -> None:
    if unknown := [name for name in known if name not in names()]:
        raise FleetError(
            f"The server has a newer schema ({unknown[-1]}): update assoc-ingest on this machine."
        )


def _check_server(connection: Connection[Any]) -> None:
    if connection.info.server_version < _OLDEST:
        raise UsageError("The server is too old: PostgreSQL 14 or newer is needed.")
    row = connection.execute("show server_encoding").fetchone()
    if row is None or row[0] != "UTF8":
        raise UsageError("The database needs the encoding UTF8: create another one with it.")
