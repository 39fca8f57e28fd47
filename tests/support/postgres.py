"""A PostgreSQL server for tests: that of ASSOC_TEST_PG, else one made for this run of pytest.

ASSOC_TEST_PG is a connection string of a superuser whose password, if any, is in PGPASSFILE.
Without it, `initdb` makes a server in a temporary directory that listens on a Unix socket only.
PostgreSQL refuses to run as root, so root starts it as the user `postgres`. Where neither is
possible, tests skip; with ASSOC_NEEDS_PG=1, as in CI, they fail.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.support.writing import in_memory

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "40",
    "fsync": "off",  # a server that dies loses nothing that the system has; only power failures do
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "jit": "off",  # compiling a query takes longer than it does on a few rows
    "log_min_messages": "fatal",
}
LOCALE = "template template0 encoding 'UTF8' locale 'C'"
_PATIENCE = 60
"""Seconds until a server that does not answer counts as failed."""


class Postgres:
    """A server that tests may stop and start; `conninfo` connects to it as a superuser."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo

    def dsn(self, database: str, user: str | None = None) -> str:
        """Return the connection string of a database of this server."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(self.conninfo, dbname=database, **({"user": user} if user else {}))


class OwnPostgres(Postgres):
    """A server of this run: it can be killed, and its files can be copied."""

    def __init__(self, programs: Path, place: Path, **settings: str) -> None:
        super().__init__(f"host={place} port=5432 user=postgres dbname=postgres connect_timeout=10")
        self.servers = [self]
        self.data = place / "data"
        self._place = place
        self._programs = programs
        self._settings = {**SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb",
            "-E",
            "UTF8",
            "--locale=C",
            "-A",
            "trust",
            "-U",
            "postgres",
            "-N",
            "-D",
            self.data,
        )
        self.start()

    def start(self) -> None:
        """Start the server unless it runs, and wait until it answers."""
        import psycopg

        if self._process is not None:
            return

        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        command = self._command("postgres", "-D", self.data, "-k", self._place, *options)
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=self._place)
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.conninfo).close()
            except psycopg.OperationalError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.02)
            else:
                return

    def stop(self, *, crash: bool = False) -> None:
        """Stop the server: in order, or at once, as in mode `immediate`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
            self._process.wait(_PATIENCE)
            self._process = None

    def new_database(self, name: str) -> str:
        """Make a database, and return its connection string."""
        import psycopg

        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(f"create database {name} {LOCALE}")
        return self.dsn(name)

    def save(self) -> None:
        """Copy its files, as a backup; it must be stopped."""
        shutil.copytree(self.data, self._place / "backup", symlinks=True)

    def restore(self) -> None:
        """Replace its files by the copy; it must be stopped."""
        status = self._place.stat()
        shutil.rmtree(self.data)
        (self._place / "backup").rename(self.data)
        for path in [self.data, *self.data.rglob("*")]:
            os.chown(path, status.st_uid, status.st_gid)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = self._command(program, *arguments)
        subprocess.run(command, check=True, cwd=self._place, stdout=subprocess.DEVNULL)

    def _command(self, program: str, *arguments: str | Path) -> list[str]:
        as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        return [
            *(as_postgres if os.geteuid() == 0 else []),
            str(self._programs / program),
            *map(str, arguments),
        ]


@contextmanager
def server() -> Iterator[Postgres]:
    """Yield a server, or skip the test."""
    pytest.importorskip("psycopg", exc_type=ImportError) if not _is_needed() else None
    if given := os.environ.get("ASSOC_TEST_PG"):
        yield Postgres(given)
        return
    with own_server() as made:
        yield made


@contextmanager
def own_server(**settings: str) -> Iterator[OwnPostgres]:
    """Yield a server that was made for this, or skip the test."""
    found = programs()
    if found is None:
        if _is_needed():
            pytest.fail("ASSOC_NEEDS_PG is set, and there is no PostgreSQL: install postgresql")
        pytest.skip("no PostgreSQL here: install Debian's postgresql, or set ASSOC_TEST_PG")
    # A directory of its own: that of pytest is closed to the user postgres, and its path can be
    # longer than that of a socket may be.
    place = Path(tempfile.mkdtemp(prefix="assoc-pg-", dir=in_memory(1000)))
    made = None
    try:
        if os.geteuid() == 0:
            import pwd

            user = pwd.getpwnam("postgres")
            os.chown(place, user.pw_uid, user.pw_gid)
        made = OwnPostgres(found, place, **settings)
        yield made
    finally:
        if made is not None:
            with suppress(ProcessLookupError):
                made.stop(crash=True)
        shutil.rmtree(place, ignore_errors=True)


def _is_needed() -> bool:
    return os.environ.get("ASSOC_NEEDS_PG", "") not in ("", "0")


def programs() -> Path | None:
    """Return the directory of initdb, the newest one: Debian does not put it into PATH."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    places = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    versions = {int(place.parts[-3]): place.parent for place in places if place.parts[-3].isdigit()}
    return versions[max(versions)] if versions else None
