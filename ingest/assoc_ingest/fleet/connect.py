"""Which server a command asks, and how it connects: passwords, TLS, errors, memory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from ipaddress import ip_address
from pathlib import Path
from string import digits
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..errors import FleetError, QuotaError, UsageError
from ..fields import fail_within_limits
from ..store.database import resolved

if TYPE_CHECKING:
    from psycopg import Connection

    AnyConnection = Connection[Any]


# ------------------------------------------------------------------------------------------------
# The server for commands that only read: the one in the environment variable, for machines that
# never push, or else the one to which the database is pushed (`state`).


DESTINATION = "ASSOC_INGEST_REMOTE"


def destination_of(database: Path) -> str:
    """Return the destination. Raises UsageError if none is known."""
    if given := os.environ.get(DESTINATION):
        return given
    database = resolved(database)
    try:
        state = json.loads(database.with_name(f"{database.name}.push").read_bytes())
    except (FileNotFoundError, ValueError):
        state = None
    if not isinstance(state, dict) or not isinstance(state.get("destination"), str):
        raise UsageError(
            "No server is known: run `assoc-ingest remote init`, or name the server in the "
            f"environment variable {DESTINATION}."
        )
    return str(state["destination"])


# ------------------------------------------------------------------------------------------------
# Connects to the server.
#
# A destination is a connection string of libpq: `postgresql://user@host/database`,
# `host=... dbname=...` or `service=...`. A password in it is refused, because others can see
# arguments and shell histories. Passwords come from a password file of PostgreSQL (PGPASSFILE,
# ~/.pgpass), a service file, or the file named by ASSOC_FLEET_PASSWORD_FILE. The certificate of the
# server is verified, except through a Unix socket or a loopback address.


PASSWORD_FILE = "ASSOC_FLEET_PASSWORD_FILE"  # noqa: S105 -- a name

MOST_MEMORY = 240_000_000
"""Bytes that answers of a server may take in memory: a server can send anything."""

_TIMEOUT = 10
"""Seconds until a server that does not answer a connection counts as unreachable."""

_SECRETS = ("sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
"""Parameters besides the password that a destination must not contain, as it is stored."""

_INSTALL = "The fleet needs a library: install assoc-ingest with its extra, assoc-ingest[fleet]."

_LONGEST_MESSAGE = 500
"""Letters of an error of the server that are shown."""

TOO_MUCH = (
    f"The answer of the server takes more than {MOST_MEMORY // 1_000_000} MB, the limit of this "
    "command; ask for less, or check that this is the right server."
)
SENTENCES = {
    # Sentences for errors of the server, by constraint, SQLSTATE or class of SQLSTATE.
    "origins_label_key": "The server has another machine with this label: choose another one with "
    "`remote init DESTINATION --label NAME`, or, if it is this machine with a database that was "
    "lost, go on with `remote adopt`.",
    "origins_of_login": "This login pushes as many machines as it may: use one of them, with "
    "`remote adopt`, or ask the owner of the server for a login of its own.",
    "quota_of_login": "This machine may not store more on the server. What was stored before "
    "stays; delete there (`remote withdraw`, `remote prune`), or ask the owner of the server for "
    "more.",
    "origin_removed": "An administrator removed this machine from the server. To push from it as a "
    "new one: assoc-ingest remote new-origin --label NAME",
    "origins_label_plain": "A label has at most 63 letters, digits, dots, dashes and underscores, "
    "begins with a letter or digit, and is no uuid: choose one with `remote init DESTINATION "
    "--label NAME`.",
    "3D000": "There is no such database on the server; create it, or correct the destination.",
    "3F000": "This database is not set up for a fleet: run `assoc-ingest remote init` on it.",
    "42P01": "This database is not set up for a fleet: run `assoc-ingest remote init` on it.",
    "42883": "The server has an older schema: its administrator must run `remote migrate`.",
    "42501": "This login may not do that on the server: ask its administrator for `add-device`, or "
    "for what only an owner may, name the owner's login with --to.",
    "23505": "This machine is known to the server under another login: use that one, or run "
    "`assoc-ingest remote new-origin`.",
    "25006": "The server accepts no changes (read-only); push again when it does.",
    "28": "The server refused this login; check user, password file and pg_hba.conf.",
    "53100": "The disk of the server is full; push again when there is space.",
    "53": "The server is out of resources; push again later.",
    "54": "The server refused a value that is too long for it.",
    "57014": "The server stopped this because it took too long; ask for less.",
    "57": "The server stopped in the middle of it; try again.",
    "08": "The connection to the server broke; try again.",
    "55P03": "Another connection holds a lock that this needs; try again later.",
    "2BP01": "A view or function of your own uses one of assoc-ingest: drop it, run this again, "
    "and then create it anew.",
    "40": "The server undid the change because of another one; try again.",
}

_P = ParamSpec("_P")
_T = TypeVar("_T")


def connect(destination: str) -> AnyConnection:
    """Return a connection in autocommit mode: each call of a function is a transaction."""
    psycopg = library()
    with readable_errors():
        connection: AnyConnection = psycopg.connect(
            parameters(destination), autocommit=True, prepare_threshold=None
        )
    return connection


def library() -> Any:
    """Return the module psycopg, or say how to install it."""
    try:
        import psycopg
    except ImportError as error:
        raise UsageError(_INSTALL) from error
    return psycopg


def parameters(destination: str) -> str:
    """Return the connection string for a destination, with the rules of this module applied."""
    psycopg = library()
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given: dict[str, Any] = dict(conninfo_to_dict(destination))
    except psycopg.ProgrammingError as error:
        raise UsageError(
            f"{shown(destination)} is no destination: give postgresql://user@host/database."
        ) from error
    if given.get("password") is not None:
        raise UsageError(
            "A password does not belong into a destination: put it into the password file of "
            f"PostgreSQL (~/.pgpass), or into a file that {PASSWORD_FILE} names."
        )
    if secret := next((name for name in _SECRETS if given.get(name) is not None), None):
        raise UsageError(
            f"{secret} does not belong into a destination: put it into a service file of "
            "PostgreSQL (~/.pg_service.conf), and give service=NAME."
        )
    if not is_local(given):
        _demand_tls(given)
    if file := os.environ.get(PASSWORD_FILE):
        given["password"] = _password(Path(file))
    chosen: dict[str, Any] = {
        "connect_timeout": _TIMEOUT,
        "application_name": "assoc-ingest",
    } | given
    return make_conninfo(**chosen)


def is_local(given: dict[str, Any]) -> bool:
    """Return whether every host is a Unix socket or a loopback address.

    An address that the destination, its service or the environment gives is used instead of a host.
    """
    hosts = given.get("hostaddr")
    if not hosts:
        if "service" in given or "PGSERVICE" in os.environ:
            return False
        environment = os.environ.get
        hosts = environment("PGHOSTADDR") or given.get("host") or environment("PGHOST")
    return not hosts or all(map(_is_local_host, str(hosts).split(",")))


def shown(destination: str) -> str:
    """Return a destination for people: host, port, database and user, and nothing else."""
    psycopg = library()
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(destination)
    except psycopg.ProgrammingError:
        return "this"
    names = ("service", "user", "host", "port", "dbname")
    return " ".join(f"{name}={given[name]}" for name in names if given.get(name)) or "(defaults)"


@contextmanager
def bounded(answers: int = 1) -> Iterator[None]:
    """Limit what this process may take for so many answers at once, where Linux can.

    What a server states and sends is read by libpq before anybody can look at it, and what follows
    from it may be a thousand times as large: a line of braces becomes a million objects. Raises
    FleetError at the limit.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    fail_within_limits()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    limit = pages * resource.getpagesize() + answers * MOST_MEMORY
    if all(other == resource.RLIM_INFINITY or limit < other for other in (soft, hard)):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    except MemoryError as error:
        raise FleetError(TOO_MUCH) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn errors of the server into one sentence that says what to do."""
    psycopg = library()
    try:
        yield
    except psycopg.Error as error:
        if "memory" in str(error) and _state_of(error) is None:  # here, not there
            raise MemoryError from error
        is_full = _constraint_of(error) == "quota_of_login"
        raise (QuotaError if is_full else FleetError)(sentence(error)) from error


def readable(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return the function with errors of the server turned into one sentence each."""

    @wraps(function)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _T:
        with readable_errors():
            return function(*arguments, **named)

    return call


def sentence(error: Exception) -> str:
    state = _state_of(error)
    constraint = _constraint_of(error)
    first = str(error).strip().split("\n")[0][:_LONGEST_MESSAGE] or type(error).__name__
    for key in (constraint, state, state and state[:2]):
        if key and (found := SENTENCES.get(key)):
            return f"{found} ({first})"
    if state is None:
        return f"The server cannot be reached; nothing here is lost, try again later. ({first})"
    return f"The server refused this. ({first})"


def _constraint_of(error: Exception) -> str | None:
    name: str | None = getattr(getattr(error, "diag", None), "constraint_name", None)
    return name and name.rstrip(digits).rstrip("_")  # Citus puts the number of a shard behind it


def _state_of(error: Exception) -> str | None:
    return getattr(error, "sqlstate", None) or _state_in(str(error))


def _state_in(message: str) -> str | None:
    """Return the class of an error of connecting, for which libpq gives no SQLSTATE."""
    known = {
        "does not exist": "3D000" if "database" in message else "28000",
        "authentication failed": "28000",
        "no pg_hba.conf entry": "28000",
        "no password supplied": "28000",
        "too many": "53300",
    }
    return next((state for text, state in known.items() if text in message), None)


def _demand_tls(given: dict[str, Any]) -> None:
    if given.setdefault("sslmode", "verify-full") != "verify-full":
        raise UsageError(
            f"sslmode={given['sslmode']} does not verify the server: leave it out, and give "
            "sslrootcert=FILE if the certificate is one of your own."
        )
    has_own = "PGSSLROOTCERT" in os.environ or Path("~/.postgresql/root.crt").expanduser().exists()
    if not has_own:
        given.setdefault("sslrootcert", "system")


def _is_local_host(host: str) -> bool:
    if host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _password(file: Path) -> str:
    try:
        return file.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{PASSWORD_FILE} names {file}, which cannot be read: {error}") from error
