"""A PostgreSQL server for all tests of a worker, and a database for each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.support.postgres import Postgres, server

_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, which must be left running."""
    with server() as found:
        yield found


@pytest.fixture
def empty_database(postgres: Postgres) -> Iterator[str]:
    """The connection string of an empty database, as superuser."""
    import psycopg

    name = f"assoc_test_{next(_numbers)}"
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name} with (force)")
        connection.execute(f"create database {name} template template0 encoding 'UTF8' locale 'C'")
    yield postgres.dsn(name)
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name} with (force)")


@pytest.fixture
def database(empty_database: str) -> Iterator[Any]:
    """A connection to a database that is set up, as superuser."""
    psycopg = pytest.importorskip("psycopg")
    from assoc_ingest.fleet import server as server_schema

    with psycopg.connect(empty_database, autocommit=True) as connection:
        server_schema.migrate(connection)
        yield connection
