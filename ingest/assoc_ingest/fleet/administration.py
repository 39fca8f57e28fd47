"""What the administrator of a server does beside migrations: logins, and the text index."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from .. import sql
from ..errors import UsageError
from .connect import telling

if TYPE_CHECKING:
    from psycopg import Connection

_PASSWORD_BYTES = 24

_CONNECTIONS = 8
_LIMITS = {
    "statement_timeout": "15min",
    "lock_timeout": "60s",
    "idle_in_transaction_session_timeout": "15min",
    "temp_file_limit": "4GB",
}
"""What a login may take of the server: of a device or a reader, not of the owner."""

INDEX = "messages_words"
"""The name of the text index."""


def check_name(name: str) -> None:
    """Raise UsageError for a name that the password file could not hold."""
    if not name or ":" in name or "\\" in name:
        raise UsageError("The name of a login may contain neither : nor a backslash.")


@telling
def add_login(
    connection: Connection[Any],
    name: str,
    *,
    pushes: bool,
    reads: bool,
    team: str | None = None,
    no_team: bool = False,
) -> str:
    """Make a login for a machine or a person, or change the rights of one; return its new password.

    Without a team, a login keeps the one it has, unless `no_team` takes it away. The server gets a
    hash of the password only, so that no log of it has the password.
    """
    from psycopg.sql import SQL, Identifier, Literal

    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    user = Identifier(name)
    hashed = connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    ).decode()
    with connection.transaction():
        exists = connection.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone()
        verb = SQL("alter" if exists else "create")
        connection.execute(SQL("{} role {} login password {}").format(verb, user, Literal(hashed)))
        _limit(connection, user)
        for role, is_given in (("assoc_device", pushes), ("assoc_reader", reads)):
            if is_given:
                connection.execute(SQL("grant {} to {}").format(Identifier(role), user))
            elif _is_member(connection, name, role):
                connection.execute(SQL("revoke {} from {}").format(Identifier(role), user))
        _set_team(connection, name, team, reads=reads, keeps=team is None and not no_team)
    return password


def _limit(connection: Connection[Any], user: Any) -> None:
    """Let one login not take all connections or the whole disk, nor hold others up for long.

    A login can change its own timeouts for a session, so they stop accidents; not the number of its
    connections, and the space of its temporary files only if the owner may set that: a superuser.
    """
    from psycopg import errors
    from psycopg.sql import SQL, Literal

    connection.execute(SQL("alter role {} connection limit {}").format(user, Literal(_CONNECTIONS)))
    for name, value in _LIMITS.items():
        setting = SQL("alter role {} set {} = {}").format(user, SQL(name), Literal(value))
        try:
            with connection.transaction():
                connection.execute(setting)
        except errors.InsufficientPrivilege:
            if name != "temp_file_limit":
                raise


def _is_member(connection: Connection[Any], name: str, role: str) -> bool:
    found = connection.execute(
        "select from pg_auth_members m"
        " join pg_roles u on u.oid = m.member join pg_roles r on r.oid = m.roleid"
        " where u.rolname = %s and r.rolname = %s",
        (name, role),
    )
    return found.fetchone() is not None


def _set_team(
    connection: Connection[Any], name: str, team: str | None, *, reads: bool, keeps: bool
) -> None:
    """Let a login push for a team, and read what this team pushes and no other."""
    row = connection.execute(
        "insert into assoc.logins as l (role_name, team) values (%s, %s)"
        " on conflict (role_name) do update"
        " set team = case when %s then l.team else excluded.team end returning team",
        (name, team, keeps),
    ).fetchone()
    team = row[0] if row else team
    connection.execute("update assoc.origins set team = %s where role_name = %s", (team, name))
    connection.execute("delete from assoc.team_readers where role_name = %s", (name,))
    if reads and team is not None:
        connection.execute("insert into assoc.team_readers values (%s, %s)", (team, name))


def password_line(connection: Connection[Any], name: str, password: str) -> str:
    """Return the line that the password file of the machine needs."""
    info = connection.info
    host = info.host if not info.host.startswith("/") else "localhost"
    return f"{host}:{info.port}:{info.dbname}:{name}:{password}"


@telling
def has_text_index(connection: Connection[Any]) -> bool:
    """Return whether the text index is there and complete."""
    row = connection.execute(
        "select indisvalid from pg_index where indexrelid = to_regclass(%s)", (f"assoc.{INDEX}",)
    ).fetchone()
    return bool(row and row[0])


@telling
def make_text_index(connection: Connection[Any]) -> None:
    """Make the text index, while pushes go on. One that an interrupted attempt left is replaced."""
    drop_text_index(connection)
    connection.execute(_script("make"))
    # Or `analyze`, that of the server as well, would look for the words of 30,000 texts each time.
    connection.execute(f"alter index assoc.{INDEX} alter column 1 set statistics 0")
    connection.execute("analyze assoc.messages")


@telling
def drop_text_index(connection: Connection[Any]) -> None:
    """Remove the text index: pushes are several times as fast without it."""
    connection.execute(_script("drop"))


def _script(name: str) -> bytes:
    return sql.data("schema", "fleet", "index", f"{name}.sql").read_text("utf-8").encode()
