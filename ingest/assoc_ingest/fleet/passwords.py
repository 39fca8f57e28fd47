"""Stores the password of a login where `connect` finds it, readable by its user alone."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from ..errors import FleetError, UsageError
from ..files.private import write_private
from .connect import PASSWORD_FILE, library, parameters, readable, shown

_PORT = "5432"


def url(user: str, host: str, port: int, database: str) -> str:
    """Return the destination of a login, without its password."""
    login, name = quote(user, safe=""), quote(database, safe="")
    port_part = "" if str(port) == _PORT else f":{port}"
    if host.startswith("/"):
        return f"postgresql://{login}@{port_part}/{name}?host={quote(host, safe='/')}"
    place = f"[{host}]" if ":" in host else host
    return f"postgresql://{login}@{place}{port_part}/{name}"


def new_parameters(destination: str) -> str:
    """Return the connection string, without a password that a file has now.

    Raises UsageError for what is no destination.
    """
    file = os.environ.pop(PASSWORD_FILE, None)
    try:
        return parameters(destination)
    finally:
        if file is not None:
            os.environ[PASSWORD_FILE] = file


@readable
def save_password(destination: str, password: str) -> Path:
    """Check the password with the server, store it, and return the file.

    It is the file that ASSOC_FLEET_PASSWORD_FILE names, else the password file of PostgreSQL, in
    which it replaces the one that this login had. Raises FleetError if the server refuses it.
    """
    if not password or not password.isprintable():
        raise UsageError("A password of one line is needed.")
    with library().connect(new_parameters(destination), password=password) as connection:
        info = connection.info
        fields = (info.get_parameters().get("host", ""), str(info.port), info.dbname, info.user)
    if file := os.environ.get(PASSWORD_FILE):
        path, lines = Path(file), [password]
    else:
        path = _password_file()
        line = ":".join(_escaped(field) for field in (fields[0] or "localhost", *fields[1:]))
        others = [other for other in _lines(path) if not other.startswith(f"{line}:")]
        lines = [f"{line}:{_escaped(password)}", *others]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path.resolve(), (f"{line}\n" for line in lines), overwrite=True)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error}. Name another file in {PASSWORD_FILE}."
        ) from error
    _check_found(destination, path)
    return path


def _check_found(destination: str, path: Path) -> None:
    """Raise FleetError if a connection does not find the password."""
    try:
        library().connect(parameters(destination)).close()
    except library().OperationalError as error:
        raise FleetError(
            f"The password is right, but is not found in {path} for {shown(destination)}: check "
            "PGPASSFILE, PGPASSWORD and the service file."
        ) from error


def _password_file() -> Path:
    if given := os.environ.get("PGPASSFILE"):
        return Path(given)
    if os.name == "nt":
        return Path(os.environ.get("APPDATA", "~")).expanduser() / "postgresql" / "pgpass.conf"
    return Path("~/.pgpass").expanduser()


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text("utf-8").split("\n") if line]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}. Name another file in {PASSWORD_FILE}."
        ) from error


def _escaped(field: str) -> str:
    return field.replace("\\", "\\\\").replace(":", "\\:")
