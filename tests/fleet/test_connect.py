"""Passwords stand where nobody else sees them, the server is verified, an error is one sentence."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres import Postgres

from assoc_ingest.errors import FleetError, UsageError
from assoc_ingest.fleet import server
from assoc_ingest.fleet.connect import PASSWORD_FILE, connect, parameters, shown
from assoc_ingest.fleet.push import push
from assoc_ingest.fleet.server import Server

conninfo = pytest.importorskip("psycopg.conninfo")


def given(destination: str) -> dict[str, Any]:
    """What a connection is opened with."""
    found: dict[str, Any] = conninfo.conninfo_to_dict(parameters(destination))
    return found


@pytest.mark.parametrize(
    "destination",
    ["postgresql://me:secret@host/fleet", "host=h password=secret", "postgresql://h/f?password=s"],
)
def test_a_password_in_an_argument_is_refused(destination: str) -> None:
    with pytest.raises(UsageError, match=r"~/\.pgpass") as error:
        parameters(destination)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["sslpassword", "oauth_client_secret"])
def test_no_other_secret_stands_in_a_destination(name: str) -> None:
    with pytest.raises(UsageError) as error:
        parameters(f"host=h {name}=swordfish")
    assert "swordfish" not in str(error.value)


def test_a_password_comes_from_a_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("s p'a\\ce\n")
    monkeypatch.setenv(PASSWORD_FILE, str(file))
    assert given("postgresql://me@host/fleet")["password"] == "s p'a\\ce"
    monkeypatch.setenv(PASSWORD_FILE, str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="cannot be read"):
        parameters("postgresql://me@host/fleet")


@pytest.mark.parametrize(
    ("destination", "is_verified"),
    [
        ("postgresql://db.example.org/fleet", True),
        ("host=10.0.0.7 dbname=fleet", True),
        ("host=localhost,db.example.org", True),
        ("host=localhost hostaddr=10.0.0.7", True),
        ("service=fleet", True),
        ("service=fleet host=localhost", True),
        ("host=/run/postgresql", False),
        ("host=localhost dbname=fleet", False),
        ("postgresql://[::1]/fleet", False),
        ("host=127.0.0.5", False),
        ("dbname=fleet", False),
    ],
)
def test_the_certificate_is_verified_except_on_this_machine(
    destination: str, is_verified: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGSSLMODE", "disable")
    assert (given(destination).get("sslmode") == "verify-full") is is_verified


def test_an_address_in_the_environment_counts_instead_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGHOSTADDR", "10.0.0.7")
    assert given("postgresql://me@localhost/fleet")["sslmode"] == "verify-full"
    assert "sslmode" not in given("host=db.example.org hostaddr=127.0.0.1")


def test_a_weaker_check_is_refused() -> None:
    for mode in ("disable", "prefer", "require", "verify-ca"):
        with pytest.raises(UsageError, match="sslrootcert"):
            parameters(f"host=db.example.org sslmode={mode}")


def test_a_certificate_of_ones_own_may_be_named() -> None:
    destination = "host=db.example.org sslmode=verify-full sslrootcert=/etc/own.crt"
    assert given(destination)["sslrootcert"] == "/etc/own.crt"
    assert given("host=db.example.org")["sslrootcert"] == "system"


def test_what_is_shown_has_no_password() -> None:
    assert shown("postgresql://me:secret@host:1/fleet") == "user=me host=host port=1 dbname=fleet"
    assert shown("=") == "this"


def test_nonsense_is_no_destination() -> None:
    with pytest.raises(UsageError, match="postgresql://"):
        parameters("=")


def test_a_server_that_is_not_there_is_told_in_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(FleetError, match="cannot be reached") as error:
            connect(f"host=127.0.0.1 port={port}")
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_wrong_database_login_or_schema_is_told(postgres: Postgres, empty_database: str) -> None:
    with pytest.raises(FleetError, match="no such database"):
        connect(postgres.dsn("nowhere"))
    with pytest.raises(FleetError, match="refused this login"):
        connect(postgres.dsn("postgres", "nobody_at_all"))
    with connect(empty_database) as connection, pytest.raises(FleetError, match="remote init"):
        Server(connection).hello("0b8c6a5e-2f1c-4b53-b7ab-0d40f5e9c001")


def test_an_older_server_asks_for_a_migration(database: Any) -> None:
    database.execute("drop function assoc.hello_v2")
    with pytest.raises(FleetError, match="remote migrate"):
        Server(database).hello("0b8c6a5e-2f1c-4b53-b7ab-0d40f5e9c001")


def test_a_newer_server_is_not_migrated(database: Any) -> None:
    database.execute("insert into assoc.schema_version values ('9999_later')")
    with pytest.raises(FleetError, match="update assoc-ingest"):
        server.migrate(database)


def test_each_machine_has_a_plain_label_of_its_own(database: Any) -> None:
    from tests.support.fleet import MadeLocal, MadeMemory

    push(Server(database), MadeLocal(), MadeMemory(label="anna"))
    with pytest.raises(FleetError, match=r"another machine with this label.*--label"):
        push(Server(database), MadeLocal(), MadeMemory(label="anna"))
    for label in ("a/b", "", "..", "a b", "anna\n"):
        with pytest.raises(FleetError, match=r"letters, digits.*--label"):
            push(Server(database), MadeLocal(), MadeMemory(label=label))


def test_a_read_only_server_is_told(database: Any) -> None:
    from tests.support.fleet import MadeLocal, MadeMemory

    database.execute("set default_transaction_read_only = on")
    with pytest.raises(FleetError, match="read-only"):
        push(Server(database), MadeLocal(), MadeMemory())


def test_a_migration_runs_once(empty_database: str) -> None:
    with connect(empty_database) as connection:
        assert server.migrate(connection) == server.migration_names()
        assert server.migrate(connection) == []
        assert server.applied_migrations(connection) == server.migration_names()


def test_a_database_of_another_encoding_is_refused(postgres: Postgres) -> None:
    with connect(postgres.conninfo) as connection:
        connection.execute("drop database if exists assoc_latin")
        connection.execute(
            "create database assoc_latin template template0 encoding 'LATIN1' locale 'C'"
        )
    with connect(postgres.dsn("assoc_latin")) as other, pytest.raises(UsageError, match="UTF8"):
        server.migrate(other)
    with connect(postgres.conninfo) as connection:
        connection.execute("drop database assoc_latin")
