"""What several nodes (Citus) need that one server does not; other modules are run on both."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from tests.support.fleet import MadeLocal, MadeMemory, expected, frame, on_server, row, says
from tests.support.nodes import Nodes, OwnNodes, given

from assoc_ingest.errors import FleetError
from assoc_ingest.fleet import server
from assoc_ingest.fleet.connect import connect
from assoc_ingest.fleet.health import health
from assoc_ingest.fleet.push import Limits, push
from assoc_ingest.fleet.server import Server

pytestmark = pytest.mark.citus


@pytest.fixture
def database(coordinator: Nodes) -> Iterator[Any]:
    """A connection to several nodes, without rows."""
    coordinator.empty()
    with closing(connect(coordinator.conninfo)) as connection:
        yield connection


def _local(texts: int) -> MadeLocal:
    local = MadeLocal()
    for name in ("a", "b"):
        rows = [frame(at, b"bytes", messages=[says(at, f"{name} {at}")]) for at in range(texts)]
        local.put(name, rows)
    local.keep("sessions", row("sessions", source_no=1, session_key="s", title="About it"))
    return local


def test_all_tables_lie_on_the_nodes(database: Any) -> None:
    """Those of machines by machine, the others as copies: a push writes on one node."""
    rows = database.execute(
        "select c.relname, t.citus_table_type, t.distribution_column"
        " from pg_class c left join citus_tables t on t.table_name = c.oid"
        " where c.relnamespace = 'assoc'::regnamespace and c.relkind = 'r'"
    ).fetchall()
    kinds = {name: (kind, column) for name, kind, column in rows}
    for name in ("schema_version", "statements"):  # the coordinator alone reads them
        assert kinds.pop(name) == (None, None)
    copies = {name for name, kind in kinds.items() if kind == ("reference", "<none>")}
    assert {"origins", "logins", "labels", "team_readers"} <= copies
    others = {kind for name, kind in kinds.items() if name not in copies}
    assert others == {("distributed", "origin_id")}


def test_a_server_can_be_distributed_later_and_migrated_then(database: Any) -> None:
    assert server.migrate(database) == []
    assert server.migrate(database, distributed=True) == []
    database.execute("drop schema assoc_read, assoc_rows, assoc cascade")
    server.migrate(database)
    memory, local = MadeMemory(), _local(3)
    push(Server(database), local, memory)
    assert server.migrate(database, distributed=True)
    assert on_server(database, memory.uuid) == expected(local)
    (shards,), (workers,) = (
        database.execute(query).fetchone()
        for query in (
            "select distinct shard_count from citus_tables where citus_table_type = 'distributed'",
            "select count(*) from citus_get_active_worker_nodes()",
        )
    )
    assert shards == 2 * workers
    local.forget("a")
    push(Server(database), local, memory)
    assert on_server(database, memory.uuid) == expected(local)
    database.execute("delete from assoc.schema_version where name like 'code-%'")
    (name,) = server.migrate(database)
    assert name.startswith("code-")
    server.check(database)


def test_what_a_reader_may_not_see_reaches_none_of_its_functions(
    database: Any, login: Callable[..., Any]
) -> None:
    """On a node, the user of a session is another one than on the coordinator."""
    readers = {
        team: login("reader", pushes=False, reads=True, team=team) for team in ("red", "blue")
    }
    for team in readers:
        local = MadeLocal()
        local.put("a", [frame(0, b"bytes", messages=[says(0, f"of {team}")])])
        push(Server(login("device", team=team)), local, MadeMemory())
    for team, reader in readers.items():
        told: list[str | None] = []
        reader.add_notice_handler(lambda notice, told=told: told.append(notice.message_primary))
        reader.execute(_LEAK)
        told.clear()
        reader.execute("select * from assoc_read.messages where pg_temp.leak(text)")
        assert set(told) == {f"of {team}"}
        for schema in ("assoc", "assoc_read"):
            rows = reader.execute(f"select text from {schema}.messages").fetchall()
            assert rows == [(f"of {team}",)], schema
        assert reader.execute("select assoc.visible_origins()").fetchone()[0]
        assert reader.execute("select count(*) from assoc_read.sync_runs").fetchone() == (1,)
        rows = reader.execute("select label from assoc.devices_v1() where files > 0").fetchall()
        assert len(rows) == 1
        with pytest.raises(Exception, match="permission denied"):
            reader.execute("select * from assoc_rows.messages()")


_LEAK = """
    create function pg_temp.leak(text) returns boolean language plpgsql cost 0.0001
    as $$ begin raise notice '%', $1; return true; end $$
"""


def test_a_device_that_belongs_to_nobody_else_writes_nothing_of_others(
    login: Callable[..., Any],
) -> None:
    mine, other = MadeMemory(), login("other")
    device = login("device")
    push(Server(device), _local(2), mine)
    known = Server(device).hello(mine.uuid)
    assert known is not None
    assert Server(other).hello(mine.uuid) is None
    assert Server(other).mine() == []
    for call in (
        *("fence_v1(%s, gen_random_uuid())", "files_of_v1(%s)", "keyed_v1(%s, 'sessions')"),
        *("beginnings_v1(%s)", "frames_v1(%s, '{1}')", "reindex_v1(%s, gen_random_uuid())"),
    ):
        with pytest.raises(Exception, match="another login"):
            other.execute(f"select * from assoc.{call}", (known.origin_id,))
    assert Server(device).hello(mine.uuid) == known


@pytest.fixture
def own_nodes(own: Any) -> OwnNodes:
    """Nodes that may be stopped."""
    if not given():
        pytest.skip("no coordinator here: set ASSOC_TEST_CITUS")
    assert isinstance(own, OwnNodes)
    return own


def test_a_worker_that_dies_in_the_middle_of_a_push_loses_and_doubles_nothing(
    own_nodes: OwnNodes, own_database: str
) -> None:
    killed, random = own_nodes.servers[1], Random(7)
    with connect(own_database) as connection:
        local, memory = _local(60), _machine_on(connection, str(killed.data.parent))
    broken = 0
    for attempt in range(4):
        local.put("a", [frame(at, b"bytes", messages=[says(at, f"{attempt} {at}")])
                        for at in range(60)])  # fmt: skip
        timer = threading.Timer(random.uniform(0.05, 0.6), killed.stop, kwargs={"crash": True})
        timer.start()
        with connect(own_database) as connection:
            try:
                push(Server(connection), local, memory, limits=Limits(rows=3))
            except FleetError:
                broken += 1
            timer.join()
            killed.start()
            _again(connection, local, memory)
            assert on_server(connection, memory.uuid) == expected(local)
    assert broken, "the worker died in the middle of no push"


def _machine_on(connection: Any, host: str) -> MadeMemory:
    """Return a machine whose rows lie on a node."""
    while True:
        memory = MadeMemory()
        push(Server(connection), MadeLocal(), memory)
        known = Server(connection).hello(memory.uuid)
        assert known is not None
        (found,) = connection.execute(
            "select s.nodename from citus_shards s where s.shardid ="
            " get_shard_id_for_distribution_column('assoc.files', %s)",
            (known.origin_id,),
        ).fetchone()
        if found == host:
            return memory


def test_health_tells_what_is_wrong_with_a_worker(own_nodes: OwnNodes, own_database: str) -> None:
    stopped, other = own_nodes.servers[1:]
    with connect(own_database) as connection, connect(other.dsn(connection.info.dbname)) as there:
        before = {check.name: check for check in health(connection)}
        for node in (stopped, other):
            line = before[f"node {node.data.parent}:5432"]
            assert line.is_ok
            assert re.fullmatch(r"PostgreSQL \d.*, Citus \d.*; \d+ shards, .*B", line.found)
        on_other = f"on {other.data.parent}:5432"
        there.execute("set citus.override_table_visibility = off")  # else shards are hidden
        there.execute(
            "update pg_index set indisvalid = false where indexrelid = (select indexrelid"
            " from pg_index join pg_class c on c.oid = indexrelid"
            " where relname ~ '^messages_session_[0-9]+$' limit 1)"
        )
        stopped.stop(crash=True)
        try:
            after = {check.name: check for check in health(connection)}
        finally:
            stopped.start()
        down = after[f"node {stopped.data.parent}:5432"]
        assert not down.is_ok
        assert "shards; The node" in down.found
        assert "Start it" in str(down.advice)
        assert "messages_session_" in after[f"other indexes {on_other}"].found
        assert f"other indexes {on_other}" not in before


def _again(database: Any, local: MadeLocal, memory: MadeMemory) -> None:
    """Push until the coordinator has noticed that the worker answers again."""
    for _ in range(50):
        try:
            push(Server(database), local, memory)
        except FleetError:
            time.sleep(0.1)
        else:
            return
    push(Server(database), local, memory)
