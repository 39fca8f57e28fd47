"""A coordinator of Citus with its workers for tests: that of ASSOC_TEST_CITUS.

ASSOC_TEST_CITUS is the connection string of a superuser to a database of a coordinator that knows
its workers; the same user must reach each of them at its host and port. The tests make a database
of their own on all nodes, and drop it. ASSOC_TEST_CITUS_WORKER is the data directory of a worker on
this machine, which tests may kill and start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NAME = "assoc_test_nodes"
_SHARDS = 4
"""With more, it takes long to empty the tables for the next test."""
_PATIENCE = 60
"""Seconds until a worker that does not end counts as failed."""


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
    _each(
        [first, *others], f"create database {_NAME} template template0 encoding 'UTF8' locale 'C'"
    )
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


class Worker:
    """A worker that tests kill and start."""

    def __init__(self, place: Path) -> None:
        self._place = place
        pid, _, _, port, *_ = (place / "postmaster.pid").read_text().splitlines()
        self._pid, self.port = int(pid), int(port)
        self._programs = Path(f"/proc/{pid}/exe").resolve().parent

    def kill(self) -> None:
        """End it at once, as a crash does."""
        os.kill(self._pid, signal.SIGQUIT)
        end = time.monotonic() + _PATIENCE
        while Path(f"/proc/{self._pid}").exists():
            assert time.monotonic() < end, "the worker does not end"
            time.sleep(0.02)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        owner = self._place.stat().st_uid
        as_owner = ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups"]
        subprocess.run(
            [
                *(as_owner if os.geteuid() == 0 else []),
                *(str(self._programs / "pg_ctl"), "-w", "-D", str(self._place)),
                *("-l", os.devnull, "start"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self._pid = int((self._place / "postmaster.pid").read_text().splitlines()[0])


def worker() -> Worker:
    """Return the worker that may be killed, or skip the test."""
    place = os.environ.get("ASSOC_TEST_CITUS_WORKER")
    if not place:
        pytest.skip("no worker may be killed: set ASSOC_TEST_CITUS_WORKER to its data directory")
    return Worker(Path(place))
