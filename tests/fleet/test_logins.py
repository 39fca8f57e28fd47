"""A login does on the server what it is for, and nothing else; nobody pushes for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from tests.support.fleet import MadeLocal, MadeMemory, frame, pushed, row, seen
from tests.support.nodes import given

from assoc_ingest.errors import BusyError, FleetError
from assoc_ingest.fleet import administration, devices, server
from assoc_ingest.fleet.push import push
from assoc_ingest.fleet.server import Server

pytestmark = pytest.mark.citus


def test_a_device_pushes_and_sees_nothing(login: Callable[..., Any], database: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    device = login("device")
    pushed(device)
    assert seen(database) == ["said here"]
    for table in ("messages", "frames", "origins", "origin_states", "files", "sessions"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            device.execute(f"select * from assoc.{table}")
    for change in ("delete from assoc.messages", "update assoc.origin_states set version = 0"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            device.execute(change)


def test_a_device_cannot_push_for_another(login: Callable[..., Any], database: Any) -> None:
    one, other = login("one"), login("other")
    memory = pushed(one)
    known = Server(one).hello(memory.uuid)
    assert known is not None
    assert Server(other).hello(memory.uuid) is None
    now = (known.origin_id, known.version, known.nonce)
    refused: list[Callable[[], Any]] = [
        lambda: Server(other).files(*now, [{"file_key": b"x" * 16}]),
        lambda: Server(other).push(*now, b"[]", [], {}, {}),
        lambda: Server(other).forget(*now, [b"a".ljust(16, b".")]),
        lambda: Server(other).files_of(known.origin_id),
        lambda: Server(other).frames(known.origin_id, [b"a".ljust(16, b".")]),
        lambda: Server(other).keyed(known.origin_id, "sessions"),
        lambda: Server(other).adopt(known.origin_id, memory.db_uuid, memory.uuid),
        lambda: list(Server(other).beginnings(known.origin_id)),
    ]
    for call in refused:
        with pytest.raises(FleetError, match="another login"):
            call()
    with pytest.raises(FleetError, match="under another login"):
        push(Server(other), MadeLocal(), memory)
    assert seen(database) == ["said here"]


def test_inner_functions_are_closed(login: Callable[..., Any]) -> None:
    psycopg = pytest.importorskip("psycopg")
    device = login("device")
    for call in (
        "assoc.raised_version(1, gen_random_uuid())",
        "assoc.stored_bytes(1)",
        "assoc.locked_origin(1)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            device.execute(f"select {call}")


def test_a_reader_reads_what_its_team_pushed(login: Callable[..., Any]) -> None:
    pushed(login("a", team="red"), "of red")
    pushed(login("b", team="blue"), "of blue")
    pushed(login("c"), "of nobody")
    assert seen(login("reader", pushes=False, reads=True)) == ["of nobody"]
    red = login("red", pushes=False, reads=True, team="red")
    assert seen(red) == ["of nobody", "of red"]
    psycopg = pytest.importorskip("psycopg")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        red.execute("delete from assoc.messages")


_LEAK = """
    create function pg_temp.leak(value text) returns boolean language plpgsql cost 0.0000001
    as $$ begin raise notice '%', value; return true; end $$
"""


def test_what_a_reader_may_not_see_reaches_none_of_its_functions(
    login: Callable[..., Any], database: Any
) -> None:
    """A view checks who may see a row before anything else looks at it."""
    if given():
        pytest.skip("with several nodes, functions check that: see test_nodes")
    pushed(login("a"), "of nobody")
    pushed(login("b", team="blue"), "of blue")
    reader = login("reader", pushes=False, reads=True)
    told: list[str] = []
    reader.add_notice_handler(lambda notice: told.append(notice.message_primary))
    reader.execute(_LEAK)
    reader.execute("select * from assoc_read.messages where pg_temp.leak(text)")
    assert told == ["of nobody"]
    blue = "select * from assoc_read.messages where text = 'of blue' and text::integer = 1"
    assert reader.execute(blue).fetchall() == []
    views = database.execute(
        "select relname, reloptions from pg_class"
        " where relkind = 'v' and relnamespace = 'assoc_read'::regnamespace"
    ).fetchall()
    assert views
    assert {name for name, options in views if options != ["security_barrier=true"]} == set()


def test_searches_of_another_team_do_not_count_for_costs(login: Callable[..., Any]) -> None:
    """A response that two teams have costs each reader what that reader sees of it."""
    for team in ("red", "blue"):
        local, memory = MadeLocal(), MadeMemory()
        rows = {"responses": [row("responses", response_key="r", model="m", **_COUNTS)]}
        if team == "blue":
            call = row("tool_calls", response_key="r", search_count=5, tool_use_id="t")
            rows["tool_calls"] = [call]
        local.put("a", [frame(0, b"", **rows)])
        local.keep("prices", row("prices", model="m", input=0, output=0, web_search=1_000_000))
        push(Server(login(team, team=team)), local, memory)
    costs = "select cost_microusd from assoc_read.response_costs"
    for team, cost in (("red", 0), ("blue", 5000)):
        reader = login("reader", pushes=False, reads=True, team=team)
        assert reader.execute(costs).fetchall() == [(cost,)]


_COUNTS = dict.fromkeys(
    ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens",
     "cache_write_1h_tokens", "web_searches"], 0
)  # fmt: skip


def test_a_reader_cannot_push(login: Callable[..., Any]) -> None:
    with pytest.raises(FleetError, match="may not do that"):
        pushed(login("reader", pushes=False, reads=True))


def test_a_new_password_replaces_the_old_one(login: Callable[..., Any], database: Any) -> None:
    name = login("device").info.user
    before, after = (
        database.execute("select rolpassword from pg_authid where rolname = %s", (name,)).fetchone()
        for _ in range(2)
        if devices.add_login(database, name, pushes=True, reads=False, team=None)
    )
    assert before != after
    assert before[0].startswith("SCRAM-SHA-256$")


def test_a_new_password_keeps_the_team_and_what_it_hides(
    login: Callable[..., Any], database: Any
) -> None:
    device = login("device", reads=True, team="red")
    name = device.info.user
    pushed(device, "of red")
    everybody = login("everybody", pushes=False, reads=True)
    devices.add_login(database, name, pushes=True, reads=True)
    assert seen(everybody) == []
    assert seen(device) == ["of red"]
    devices.add_login(database, name, pushes=True, reads=True, no_team=True)
    assert seen(everybody) == ["of red"]


def test_another_team_or_fewer_rights_replace_the_old_ones(
    login: Callable[..., Any], database: Any
) -> None:
    psycopg = pytest.importorskip("psycopg")
    pushed(login("a", team="red"), "of red")
    pushed(login("b", team="blue"), "of blue")
    both = login("both", reads=True, team="red")
    name = both.info.user
    devices.add_login(database, name, pushes=False, reads=True, team="blue")
    assert seen(both) == ["of blue"]
    with pytest.raises(FleetError, match="may not do that"):
        pushed(both)
    devices.add_login(database, name, pushes=True, reads=False)
    pushed(both, "said here")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        seen(both)


def test_the_text_index_can_be_made_and_removed(login: Callable[..., Any], database: Any) -> None:
    pushed(login("device"))
    assert not administration.has_text_index(database)
    for _ in range(2):
        administration.make_text_index(database)
        assert administration.has_text_index(database)
        (target,) = database.execute(
            "select attstattarget from pg_attribute"
            f" where attrelid = 'assoc.{server.INDEX}'::regclass and attnum = 1"
        ).fetchone()
        assert target == 0  # else `analyze` looks for the words of 30,000 texts
    administration.drop_text_index(database)
    assert not administration.has_text_index(database)


def test_a_login_has_limits(login: Callable[..., Any]) -> None:
    for reads in (False, True):
        device = login("device", pushes=not reads, reads=reads)
        for name in ("statement_timeout", "lock_timeout", "temp_file_limit"):
            assert device.execute(f"show {name}").fetchone()[0] not in ("0", "-1")
        limit = device.execute(
            "select rolconnlimit from pg_roles where rolname = session_user"
        ).fetchone()
        assert 0 < limit[0] < 20


def test_a_login_has_as_many_machines_as_its_owner_allows(
    login: Callable[..., Any], database: Any
) -> None:
    device = login("device")
    for _ in range(5):
        pushed(device)
    with pytest.raises(FleetError, match=r"as many machines as it may.*remote adopt"):
        pushed(device)
    pushed(login("other"))
    database.execute(
        "update assoc.logins set most_origins = 6 where role_name = %s", (device.info.user,)
    )
    pushed(device)
    assert len(Server(device).mine()) == 6


def test_a_label_stays_that_of_the_login_which_used_it(
    login: Callable[..., Any], database: Any
) -> None:
    one, other = login("one"), login("other")
    label = pushed(one).label
    database.execute("update assoc.origins set label = 'renamed' where label = %s", (label,))
    with pytest.raises(FleetError, match=r"choose another one .*another login has used"):
        Server(other).register(str(uuid4()), label, str(uuid4()), str(uuid4()))
    Server(one).register(str(uuid4()), label, str(uuid4()), str(uuid4()))


@pytest.mark.slow
def test_a_migration_that_a_device_holds_up_says_who_it_is(
    login: Callable[..., Any], database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE", 1)
    device = login("device")
    device.execute("select pg_advisory_lock(%s)", (server._LOCK,))
    with pytest.raises(BusyError, match=f"The login {device.info.user} .*pg_terminate_backend"):
        server.migrate(database)
    device.execute("select pg_advisory_unlock_all()")
    assert server.migrate(database) == []
