"""A coordinator of Citus with its workers for tests: that of ASSOC_TEST_CITUS.

ASSOC_TEST_CITUS is the connection string of a superuser to a database of a coordinator that knows
its workers; the same user must reach each of them at its host and port. The tests make a database
of their own on all nodes, and drop it. Tests that stop nodes, or look into their files, start nodes
of their own: the programs of PostgreSQL on this machine must have the extension, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.postgres import LOCALE, OwnPostgres, Postgres, own_server

_NAME = "assoc_test_nodes"
_SHARDS = 4
"""With more, it takes long to empty the tables for the next test."""


def given() -> str | None:
    """Return the connection string of the coordinator, if there is one."""
    return os.environ.get("ASSOC_TEST_CITUS")


class Nodes:
    """A database on several nodes."""

    def __init__(self, conninfo: str) -> None:
        self.conninfo = conninfo

    def empty(self) -> None:
        """Delete all rows and what a test changed; set it up again if it changed the schema."""
        import psycopg

        from assoc_ingest.fleet import server

        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            tables = connection.execute(
                "select string_agg(format('assoc.%I', relname), ', ') from pg_class"
                " where relnamespace = to_regnamespace('assoc') and relkind = 'r'"
                " and relname not in ('schema_version', 'statements')"
            ).fetchone()
            if tables and tables[0]:
                connection.execute(f"truncate {tables[0]}")
            connection.execute("drop index if exists assoc.messages_words")
            connection.execute(f"grant temporary on database {_NAME} to public")
            connection.execute(f"set citus.shard_count = {_SHARDS}")
            server.migrate(connection, distributed=True)


@contextmanager
def nodes() -> Iterator[Nodes]:
    """Yield a database on several nodes, or skip the test."""
    first = given()
    if not first:
        pytest.skip("no coordinator here: set ASSOC_TEST_CITUS")
    import psycopg
    from psycopg.conninfo import make_conninfo

    with psycopg.connect(first) as connection:
        own, *workers = connection.execute(
            "select nodename, nodeport from pg_dist_node order by groupid"
        ).fetchall()
    others = [make_conninfo(first, host=host, port=port) for host, port in workers]
    _each([first, *others], f"drop database if exists {_NAME} with (force)")
    _each([first, *others], f"create database {_NAME} {LOCALE}")
    try:
        made = [make_conninfo(node, dbname=_NAME) for node in (first, *others)]
        _each(made, "create extension citus")
        with psycopg.connect(made[0], autocommit=True) as connection:
            connection.execute("select citus_set_coordinator_host(%s, %s)", own)
            for worker in workers:
                connection.execute("select citus_add_node(%s, %s)", worker)
        yield Nodes(made[0])
    finally:
        _each([first, *others], f"drop database if exists {_NAME} with (force)")


def _each(conninfos: list[str], statement: str) -> None:
    import psycopg

    for conninfo in conninfos:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("set citus.enable_ddl_propagation = off")
            connection.execute(statement.encode())


class OwnNodes(Postgres):
    """A coordinator and two workers of this run: they can be killed, and their files copied."""

    def __init__(self, servers: list[OwnPostgres]) -> None:
        super().__init__(servers[0].conninfo)
        self.servers = servers
        self._crashes = 0

    def new_database(self, name: str) -> str:
        """Make a database on all nodes, and return the connection string to the coordinator."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        _each([server.conninfo for server in self.servers], f"create database {name} {LOCALE}")
        conninfos = [server.dsn(name) for server in self.servers]
        _each(conninfos, "create extension citus")
        first, *others = (conninfo_to_dict(conninfo) for conninfo in conninfos)
        with psycopg.connect(conninfos[0], autocommit=True) as connection:
            set_host = "select citus_set_coordinator_host(%s, %s)"
            connection.execute(set_host, (first["host"], int(first["port"])))
            for node in others:
                connection.execute(
                    "select citus_add_node(%s, %s)", (node["host"], int(node["port"]))
                )
        return conninfos[0]

    def start(self) -> None:
        """Start those that are stopped, and wait until they answer."""
        for server in self.servers:
            server.start()

    def stop(self, *, crash: bool = False) -> None:
        """Stop all in order, or one at once: each in turn."""
        stopped = self.servers
        if crash:
            stopped = [self.servers[self._crashes % len(self.servers)]]
            self._crashes += 1
        for server in stopped:
            server.stop(crash=crash)

    def save(self) -> None:
        """Copy their files, as a backup; they must be stopped."""
        for server in self.servers:
            server.save()

    def restore(self) -> None:
        """Replace their files by the copies; they must be stopped."""
        for server in self.servers:
            server.restore()


Own = OwnPostgres | OwnNodes
"""What a test may stop."""


@contextmanager
def own_nodes() -> Iterator[OwnNodes]:
    """Yield nodes that were made for this, or skip the test."""
    with ExitStack() as stack:
        yield OwnNodes([stack.enter_context(own_server(**_SETTINGS)) for _ in range(3)])


_SETTINGS = {
    "shared_preload_libraries": "citus",
    "max_connections": "100",
    "max_prepared_transactions": "100",
    "citus.shard_count": str(_SHARDS),
}
