"""The schema of the server: the files of `schema/fleet/`, applied in the order of their names.

Only `remote init` and `remote migrate` run them. Each file and its entry in `schema_version` commit
together, under a lock, so two administrators at once do it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import sql
from ..errors import FleetError, UsageError
from .connect import telling

if TYPE_CHECKING:
    from psycopg import Connection

_OLDEST = 140000
_LOCK = 0x4153534F  # "ASSO"


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
            connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            known = applied(connection)
            _check_newer(known)
            if name in known:
                continue
            script = sql.data("schema", "fleet", f"{name}.sql").read_text("utf-8")
            connection.execute(script.encode())
            connection.execute("insert into assoc.schema_version (name) values (%s)", (name,))
            done.append(name)
    return done


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
