"""A PostgreSQL server for all tests of a worker, and a database for each test.

The tests of a module with the marker `citus` hold for several nodes, too: with ASSOC_TEST_CITUS
(`tests.support.nodes`), they ask those instead of one server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from tests.support.nodes import Nodes, Own, OwnNodes, given, nodes, own_nodes
from tests.support.postgres import Postgres, own_server, server

_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, which must be left running."""
    with server() as found:
        yield found


@contextmanager
def _database(postgres: Postgres, of: str) -> Iterator[str]:
    """Make a database of this template; copying files costs less than logging what is in them."""
    import psycopg

    name = f"assoc_test_{next(_numbers)}"
    locale = "encoding 'UTF8' locale 'C'"
    version_15, copied = 150_000, "strategy file_copy"
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        how = copied if connection.info.server_version >= version_15 else ""
        connection.execute(f"drop database if exists {name} with (force)")
        connection.execute(f"create database {name} template {of} {locale} {how}")
        yield name
        connection.execute(f"drop database if exists {name} with (force)")


@pytest.fixture(scope="session")
def _migrated(postgres: Postgres) -> Iterator[str]:
    """The name of a database that is set up: copying it is much faster than migrating a new one."""
    psycopg = pytest.importorskip("psycopg")
    from assoc_ingest.fleet import server as server_schema

    with _database(postgres, "template0") as name:
        with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
            server_schema.migrate(connection)
        yield name


@pytest.fixture(scope="session")
def coordinator() -> Iterator[Nodes]:
    """A database on several nodes that is set up."""
    with nodes() as made:
        yield made


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest) -> Iterator[Own]:
    """A server of this module, or nodes, that may be stopped."""
    is_distributed = given() and request.node.get_closest_marker("citus")
    with own_nodes() if is_distributed else own_server() as made:
        yield made


@pytest.fixture
def own_database(own: Own) -> str:
    """The connection string, as superuser, of a new database there that is set up."""
    from assoc_ingest.fleet import server
    from assoc_ingest.fleet.connect import connect

    dsn = own.new_database(f"f{uuid4().hex}")
    with connect(dsn) as connection:
        server.migrate(connection, distributed=isinstance(own, OwnNodes))
    return dsn


@pytest.fixture
def empty_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The connection string, as superuser, of a database that is empty, or of the next one."""
    if given() and request.node.get_closest_marker("citus"):
        made = request.getfixturevalue("coordinator")
        made.empty()
        yield made.conninfo
        return
    postgres = request.getfixturevalue("postgres")
    is_set_up = "database" in request.fixturenames
    template = request.getfixturevalue("_migrated") if is_set_up else "template0"
    with _database(postgres, template) as name:
        yield postgres.dsn(name)


@pytest.fixture
def database(empty_database: str) -> Iterator[Any]:
    """A connection to a database that is set up, as superuser."""
    import psycopg

    with psycopg.connect(empty_database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def login(empty_database: str, database: Any) -> Iterator[Callable[..., Any]]:
    """Makes a login and returns a connection of it."""
    psycopg = pytest.importorskip("psycopg")
    from psycopg.sql import SQL, Identifier

    from assoc_ingest.fleet import devices

    made = []
    with ExitStack() as stack:

        def make(name: str, *, pushes: bool = True, reads: bool = False, team: Any = None) -> Any:
            name = f"{name}_{next(_numbers)}"
            made.append(name)
            password = devices.add_login(database, name, pushes=pushes, reads=reads, team=team)
            dsn = psycopg.conninfo.make_conninfo(empty_database, user=name, password=password)
            return stack.enter_context(psycopg.connect(dsn, autocommit=True))

        yield make
    known = database.execute("select rolname::text from pg_roles where rolname = any (%s)", (made,))
    for (name,) in known.fetchall():
        database.execute(SQL("drop owned by {0}; drop role {0}").format(Identifier(name)))
