"""Machines of a server and their logins, for its administrator."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import BusyError, FleetError, NotFoundError, UsageError
from .connect import SENTENCES, readable
from .passwords import url
from .server import change, migrate

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Identifier


# ------------------------------------------------------------------------------------------------
# The list of machines. An owner or administrator sees all, another login its own and those that it
# may read.


class Device(NamedTuple):
    """A machine, or a login that has never pushed."""

    label: str | None
    """None: the login has never pushed."""
    login: str | None
    """None: the machine is being removed."""
    can_login: bool
    team: str | None
    uuid: str | None
    pushed_at: datetime | None
    """When a push last changed something, by the clock of the server."""
    since_push: float | None
    """Seconds since then."""
    synced_at: datetime | None
    """The last sync that the machine has told of, by its own clock."""
    lag: float | None
    """Seconds since then, by the clock of the server; negative: that of the machine is ahead."""
    errors: int
    files: int
    bytes: int
    """Bytes of these files, as they are on the machine."""
    stored_bytes: int
    """Bytes of them on the server, compressed, without rows and indexes."""
    quota_used: float | None
    """The share of its limit, or of that of its login, that is used; None: it has no limit."""


@readable
def devices(connection: Connection[Any]) -> list[Device]:
    """Return the machines that the login may see, by label."""
    rows = connection.execute("""
        select label, nullif(role_name, ''), can_login, team, uuid::text,
            pushed_at, extract(epoch from now() - pushed_at)::float8,
            synced_at, extract(epoch from now() - synced_at)::float8,
            errors, files, bytes, stored_bytes, quota_used
        from assoc.devices_v1()
        order by label collate "C" nulls last, role_name collate "C"
    """).fetchall()
    return [Device(*row) for row in rows]


# ------------------------------------------------------------------------------------------------
# Logins of machines and persons.


_PASSWORD_BYTES = 24

_CONNECTIONS = 8
_LIMITS = {
    "statement_timeout": "15min",
    "lock_timeout": "60s",
    "idle_in_transaction_session_timeout": "15min",
    "temp_file_limit": "4GB",
}
"""The limits of logins for devices and readers; the owner has none."""

_ATTEMPTS = 50
"""How often connections of a login are looked for that end late: 5 seconds."""

_MIGRATIONS = 5
"""How often a migration is tried that others hold up."""


def check_name(name: str) -> None:
    """Raise UsageError for a name that the password file or the server could not hold."""
    if not name or not name.isprintable() or ":" in name or "\\" in name:
        raise UsageError(
            "The name of a login may contain neither : nor a backslash nor control characters."
        )
    if len(name.encode()) >= _LONGEST_ROLE:
        raise UsageError(f"The name of a login has at most {_LONGEST_ROLE - 1} bytes.")


_LONGEST_ROLE = 64
"""PostgreSQL cuts a longer name, and the cut one may be that of another login."""


@readable
def add_login(
    connection: Connection[Any],
    name: str,
    *,
    pushes: bool,
    reads: bool,
    team: str | None = None,
    no_team: bool = False,
) -> str:
    """Create a login for a machine or a person, or change its rights; return its new password.

    Without a team, a login keeps the one it has, unless `no_team` is set. Only a hash of the
    password is sent, so that the server cannot log the password.
    """
    from psycopg.sql import SQL, Identifier, Literal

    check_name(name)
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    user = Identifier(name)
    hashed = connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    ).decode()
    with connection.transaction():
        _refuse_powerful(connection, name)
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


def _refuse_powerful(connection: Connection[Any], name: str) -> None:
    """Raise UsageError for a role that is no login of a machine."""
    row = connection.execute(
        "select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls"
        " or rolname ~ '^(pg_|assoc_(device|reader|admin)$)' or rolname = current_user"
        " or exists (select from pg_database where datdba = pg_roles.oid)"
        " from pg_roles where rolname = %s",
        (name,),
    ).fetchone()
    if row is not None and row[0]:
        raise UsageError(f"{name} is a role of an administrator: give the login of a machine.")


def _limit(connection: Connection[Any], user: Identifier) -> None:
    """Keep one login from taking all connections or the whole disk, or blocking others for long.

    A login can change its own timeouts for a session, so these only prevent accidents. It cannot
    change its number of connections. Only a superuser can limit the space of temporary files.
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
    """Let a login push for a team, and read only what this team pushes."""
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


@readable
def invite(
    connection: Connection[Any], label: str, login: str, *, reads: bool, team: str | None
) -> tuple[str, str]:
    """Create a login for a machine with this label, and reserve the label for it.

    Return its destination, and its new password.
    """
    if not _label.fullmatch(label):
        raise UsageError(SENTENCES["origins_label_plain"])
    with connection.transaction():
        connection.execute(
            "insert into assoc.labels (label, role_name) values (%s, %s) on conflict do nothing",
            (label, login),
        )
        row = connection.execute(
            "select role_name::text from assoc.labels where label = %s", (label,)
        ).fetchone()
        if row is None or row[0] != login:
            raise UsageError(
                f"The label {label} belongs to the login {row and row[0]}: invite that one with "
                "--login, choose another label, or first run `remote remove-origin`."
            )
        password = add_login(connection, login, pushes=True, reads=reads, team=team)
    info = connection.info
    return url(login, info.host, info.port, info.dbname), password


_label = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def password_line(connection: Connection[Any], name: str, password: str) -> str:
    """Return the line for the password file of the machine."""
    info = connection.info
    host = info.host if not info.host.startswith("/") else "localhost"
    return f"{host}:{info.port}:{info.dbname}:{name}:{password}"


# ------------------------------------------------------------------------------------------------
# How much a machine, or all machines of a login, may store.


class Quota(NamedTuple):
    """The limit of a login or of a machine, and what is stored of it."""

    login: str
    label: str | None
    """The machine; None: the limit is for all machines of the login together."""
    most: int | None
    """None: as much as fits."""
    stored: int
    """Bytes of all rows, without indexes."""


_BYTES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_size = re.compile(r"(\d{1,12}(?:\.\d{1,3})?) ?([kmgt]?b)?", re.ASCII | re.IGNORECASE)


def bytes_of(text: str) -> int:
    """Return the bytes of a size such as `2GB`. Raises UsageError for anything else."""
    match = _size.fullmatch(text.strip())
    unit = (match[2] or "").lower() if match else ""
    if match is None or unit not in ("b", *_BYTES):
        raise UsageError(f"{text!r} is no size: give 500MB or 2GB.")
    return int(float(match[1]) * _BYTES.get(unit, 1))


@readable
def quotas(
    connection: Connection[Any], name: str | None = None, *, of_machine: bool = False
) -> list[Quota]:
    """Return the limit of a login, or of the machine with this label, or all limits.

    This counts what is stored.
    """
    rows = connection.execute(
        """
        select q.login, q.label, q.most_bytes, coalesce((
            select sum(assoc.stored_bytes(o.origin_id)) from assoc.origins o
            where o.role_name = q.login and o.label = coalesce(q.label, o.label)
        ), 0)::bigint
        from (
            select role_name::text as login, null as label, most_bytes from assoc.logins
            union all
            select role_name::text, label, most_bytes from assoc.origins where role_name <> ''
        ) q
        where case
            when %(name)s::text is null then q.most_bytes is not null
            when %(of_machine)s then q.label = %(name)s
            else q.login = %(name)s and q.label is null
        end
        order by q.login, q.label nulls first
        """,
        {"name": name, "of_machine": of_machine},
    )
    return [Quota(*row) for row in rows.fetchall()]


@readable
def set_quota(
    connection: Connection[Any], name: str, most: int | None, *, of_machine: bool = False
) -> None:
    """Let the machines of a login, or one machine, store at most so many bytes.

    None: as many as fit.
    """
    table, column = ("origins", "label") if of_machine else ("logins", "role_name::text")
    changed = connection.execute(
        f"update assoc.{table} set most_bytes = %s where {column} = %s".encode(), (most, name)
    )
    if not changed.rowcount:
        what = "machine with the label" if of_machine else "login"
        whose = "" if of_machine else " of a machine"
        raise NotFoundError(
            f"The server has no {what} {name!r}{whose}. To see them: assoc-ingest remote devices"
        )
    rows = connection.execute(
        "select o.origin_id, coalesce(o.most_bytes, l.most_bytes) is not null"
        " from assoc.origins o left join assoc.logins l on l.role_name = o.role_name"
        f" where o.{column} = %s".encode(),
        (name,),
    )
    for origin_id, has_limit in rows.fetchall():
        _count_stored(connection, origin_id, has_limit=has_limit)


def _count_stored(connection: Connection[Any], origin_id: int, *, has_limit: bool) -> None:
    """Count what a machine stores if it has a limit; no push of it goes on meanwhile."""
    with change(connection):
        connection.execute(
            "select from assoc.origin_states where origin_id = %s for update", (origin_id,)
        )
        connection.execute("delete from assoc.stored where origin_id = %s", (origin_id,))
        if has_limit:
            (stored,) = connection.execute(
                "select assoc.stored_bytes(%s)", (origin_id,)
            ).fetchone() or (0,)
            connection.execute(
                "insert into assoc.stored (origin_id, bytes) values (%s, %s)", (origin_id, stored)
            )


# ------------------------------------------------------------------------------------------------
# Ends the connections of a login, and removes it.


class Removed(NamedTuple):
    """The result of removing a login."""

    connections: int
    """Open connections that were ended."""
    is_dropped: bool
    """False: the role stays, without the right to log in, because objects belong to it."""
    labels: list[str]
    """The machines that pushed with it; their data stays."""


def check_removable(connection: Connection[Any], name: str) -> None:
    """Raise NotFoundError if no login of a machine has this name, UsageError for another role."""
    _check_removable(connection, name)


@readable
def _check_removable(connection: Connection[Any], name: str) -> None:
    is_known = connection.execute(
        "select from assoc.logins where role_name::text = %s"
        " union all select from assoc.origins where role_name::text = %s",
        (name, name),
    ).fetchone()
    if not name or is_known is None:
        raise NotFoundError(
            f"The server has no login {name!r} of a machine. To see them: assoc-ingest remote "
            "devices"
        )
    _refuse_powerful(connection, name)


@readable
def remove_login(connection: Connection[Any], name: str) -> Removed:
    """Take away everything that a login may do, end its connections, and drop its role."""
    from psycopg import errors
    from psycopg.sql import SQL, Identifier

    _check_removable(connection, name)
    user, ended, is_dropped = Identifier(name), 0, True
    exists = connection.execute("select from pg_roles where rolname = %s", (name,)).fetchone()
    if exists is not None:
        with connection.transaction():
            connection.execute(SQL("alter role {} nologin password null").format(user))
            for role in ("assoc_device", "assoc_reader", "assoc_admin"):
                if _is_member(connection, name, role):
                    connection.execute(SQL("revoke {} from {}").format(Identifier(role), user))
        ended = end_connections(connection, [name])
        try:
            with connection.transaction():
                connection.execute(SQL("drop role {}").format(user))
        except errors.DependentObjectsStillExist:
            is_dropped = False
    with connection.transaction():
        connection.execute(
            "delete from assoc.labels l where role_name = %s"
            " and not exists (select from assoc.origins o where o.label = l.label)",
            (name,),
        )
        connection.execute("delete from assoc.team_readers where role_name = %s", (name,))
        connection.execute("delete from assoc.logins where role_name = %s", (name,))
    return Removed(ended, is_dropped, labels_of(connection, name))


@readable
def labels_of(connection: Connection[Any], login: str) -> list[str]:
    """Return the labels of the machines that push with a login."""
    rows = connection.execute(
        "select label from assoc.origins where role_name = %s order by label", (login,)
    )
    return [label for (label,) in rows.fetchall()]


@readable
def end_connections(connection: Connection[Any], names: list[str]) -> int:
    """End the connections of these logins to any database; return how many there were.

    Raises BusyError if one does not end.
    """
    ended = set[int]()
    for attempt in range(_ATTEMPTS):
        if attempt:
            connection.execute("select pg_sleep(0.1)")
        open_ones = _end_those_open(connection, names)
        if not open_ones:
            return len(ended)
        ended |= open_ones
    raise BusyError(f"Connections of {', '.join(names)} do not end; try again later.")


@readable
def _end_those_open(connection: Connection[Any], names: list[str]) -> set[int]:
    """Begin to end the connections of these logins; return their processes."""
    rows = connection.execute(
        "select pid, usename::text from pg_stat_activity"
        " where usename::text = any (%s) and pid <> pg_backend_pid()",
        (names,),
    ).fetchall()
    for pid, name in rows:
        _terminate(connection, pid, name)
    return {pid for pid, _ in rows}


def _terminate(connection: Connection[Any], pid: int, name: str) -> None:
    """End a connection. A login that may create roles can do so as a member of the other's role."""
    from psycopg import errors
    from psycopg.sql import SQL, Identifier

    try:
        connection.execute("select pg_terminate_backend(%s::int)", (pid,))
        return
    except errors.InsufficientPrivilege:
        pass
    user = Identifier(name)
    with connection.transaction():
        connection.execute(SQL("grant {} to current_user").format(user))
        try:
            with connection.transaction():
                connection.execute("select pg_terminate_backend(%s::int)", (pid,))
        except errors.InsufficientPrivilege as error:
            raise FleetError(
                f"This login may not end connections of {name}: a superuser can, or can grant it "
                "pg_signal_backend."
            ) from error
        finally:
            connection.execute(SQL("revoke {} from current_user").format(user))


def migrate_by_force(connection: Connection[Any]) -> list[str]:
    """Migrate, and end the connections of machines and readers that hold it up.

    They may connect again before the locks are taken, so this is tried several times.
    """
    for _ in range(_MIGRATIONS):
        try:
            return migrate(connection)
        except BusyError as error:
            held_up = error
            _end_those_open(connection, _logins(connection))
    raise held_up


@readable
def _logins(connection: Connection[Any]) -> list[str]:
    """Return the logins of machines and readers, none of which is that of an administrator."""
    rows = connection.execute(
        "select l.role_name::text from assoc.logins l join pg_roles r on r.rolname = l.role_name"
        " where not (r.rolsuper or r.rolcreaterole) and r.rolname <> current_user"
    )
    return [name for (name,) in rows.fetchall()]
