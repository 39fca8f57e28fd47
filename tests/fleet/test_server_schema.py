"""Every server gets the functions, views, policies and rights of the version that migrates it.

`tests/golden/databases/before-0.1.0/fleet.sql.zst` is the schema of a server before these were in
one file, with the names of its migrations.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import MadeLocal, MadeMemory, frame, push_v1, says
from tests.support.postgres import Postgres, programs

from assoc_ingest.errors import FleetError
from assoc_ingest.fleet import administration, server
from assoc_ingest.fleet.push import push
from assoc_ingest.fleet.server import Server

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_GOLDEN = Path(__file__).parents[1] / "golden"
_OLD = _GOLDEN / "databases" / "before-0.1.0" / "fleet.sql.zst"
_numbers = count()

_OURS = "(to_regnamespace('assoc'), to_regnamespace('assoc_read'), to_regnamespace('assoc_rows'))"
_RIGHTS_OF = """
    (
        select array_agg(format('%s: %s', coalesce(r.rolname, 'public'), a.privilege_type) order by
            r.rolname, a.privilege_type)
        from aclexplode({acl}) a
        left join pg_roles r on r.oid = a.grantee
        where a.grantee <> {owner}
    )
"""


def _with_rights(columns: str, acl: str, owner: str) -> str:
    return f"select {columns}, {_RIGHTS_OF.format(acl=acl, owner=owner)} as rights"


_CATALOG = {
    "function": _with_rights(
        "p.oid::regprocedure::text, pg_get_function_result(p.oid), p.prosrc, p.provolatile::text,"
        " pg_get_function_arguments(p.oid), p.proparallel::text, p.prosecdef, p.proisstrict,"
        " p.proconfig, p.prokind::text, l.lanname, p.proowner::regrole::text,"
        " (g.aggtransfn, g.aggcombinefn, g.aggtranstype::regtype)::text",
        "p.proacl",
        "p.proowner",
    )
    + " from pg_proc p join pg_language l on l.oid = p.prolang"
    " left join pg_aggregate g on g.aggfnoid = p.oid"
    f" where p.pronamespace in {_OURS}",
    "relation": _with_rights(
        "c.oid::regclass::text, c.relkind::text, c.reloptions, c.relrowsecurity,"
        " case when c.relkind = 'v' then pg_get_viewdef(c.oid) end, c.relowner::regrole::text, ("
        "   select array_agg((a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
        "     a.attcollation, a.attstorage)::text order by a.attnum)"
        "   from pg_attribute a where a.attrelid = c.oid and a.attnum > 0"
        " and not a.attisdropped"
        " )",
        "c.relacl",
        "c.relowner",
    )
    + f" from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'v', 'c', 'S')",
    "schema": _with_rights("s.nspname", "s.nspacl", "s.nspowner")
    + f" from pg_namespace s where s.oid in {_OURS}",
    "index": "select indexname, indexdef from pg_indexes where schemaname like 'assoc%'",
    "constraint": "select conname, conrelid::regclass::text, pg_get_constraintdef(oid)"
    f" from pg_constraint where connamespace in {_OURS}",
    "policy": "select tablename, policyname, permissive, roles::text, cmd, qual, with_check"
    " from pg_policies",
}


def _catalog(connection: Any) -> dict[str, list[str]]:
    """Everything of the two schemas; names are told in full."""
    with connection.transaction():
        connection.execute("set local search_path = pg_catalog")
        return {
            kind: sorted(map(str, connection.execute(query).fetchall()))
            for kind, query in _CATALOG.items()
        }


@contextmanager
def _connected(conninfo: str) -> Iterator[Any]:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield connection


@contextmanager
def _role(connection: Any, **options: str) -> Iterator[str]:
    name = f"role_{next(_numbers)}"
    connection.execute(f"create role {name} {options.get('options', '')}")
    try:
        yield name
    finally:
        connection.execute(f"drop owned by {name} cascade; drop role {name}")


def _change_code(monkeypatch: pytest.MonkeyPatch, before: str, after: str) -> None:
    """Let the code be that of another build of this version."""
    text = server._script("code").decode()
    assert before in text
    script = server._script
    changed = text.replace(before, after).encode()
    monkeypatch.setattr(server, "_script", lambda name: changed if name == "code" else script(name))


def test_an_old_server_becomes_what_a_new_one_is(empty_database: str, postgres: Postgres) -> None:
    with _connected(empty_database) as old:
        old.execute(zstd.decompress(_OLD.read_bytes()))
        local, memory = MadeLocal(), MadeMemory()
        local.put("a", [frame(0, b"bytes", messages=[says(0, "said here")])])
        push_v1(old, local, memory)
        with pytest.raises(FleetError, match="remote migrate"):
            server.check(old)
        administration.make_text_index(old)
        *_, name = server.migrate(old)
        assert name.startswith("code-")
        server.check(old)
        assert administration.has_text_index(old)
        administration.drop_text_index(old)
        assert push(Server(old), local, memory, is_full=True).frames == 0
        after = _catalog(old)
    fresh = f"assoc_fresh_{next(_numbers)}"
    with _connected(postgres.conninfo) as connection:
        connection.execute(f"create database {fresh} template template0 encoding 'UTF8'")
    with _connected(postgres.dsn(fresh)) as new:
        assert server.migrate(new) == server.migration_names()
        assert _catalog(new) == after
    with _connected(postgres.conninfo) as connection:
        connection.execute(f"drop database {fresh}")


def test_rights_are_those_that_are_listed(database: Any, request: pytest.FixtureRequest) -> None:
    """Read a difference: each line is something that a login may do, or may not any more."""
    rows = database.execute(f"""
        select coalesce(r.rolname, 'public'), a.privilege_type, o.name
        from (
            select c.oid::regclass::text as name, c.relacl as acl, c.relowner as owner
            from pg_class c where c.relnamespace in {_OURS}
            union all
            select p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)),
                p.proowner
            from pg_proc p where p.pronamespace in {_OURS}
            union all
            select n.nspname || ' (schema)', n.nspacl, n.nspowner
            from pg_namespace n where n.oid in {_OURS}
        ) o
        cross join aclexplode(o.acl) a
        left join pg_roles r on r.oid = a.grantee
        where a.grantee <> o.owner
    """).fetchall()
    listed = "".join(f"{role} {right.lower()} {name}\n" for role, right, name in sorted(rows))
    file = _GOLDEN / "fleet_rights.txt"
    if request.config.getoption("--golden"):
        file.write_text(listed)
    assert listed == file.read_text()


def test_a_view_that_has_other_columns_keeps_its_owner_and_the_grants_of_an_administrator(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        _connected(empty_database) as superuser,
        _role(superuser, options="createrole") as owner,
        _role(superuser) as dashboard,
    ):
        superuser.execute(f"grant create on database {superuser.info.dbname} to {owner}")
        superuser.execute(f"set session authorization {owner}")
        server.migrate(superuser)
        before = _catalog(superuser)
        for grant in (
            f"grant usage on schema assoc_read to {dashboard}",
            f"grant select on assoc_read.agents to {dashboard} with grant option",
            f"grant execute on function assoc_read.sum(boolean) to {dashboard}",
            f"grant execute on function assoc.keyed_tables() to {dashboard}",
        ):
            superuser.execute(grant)
        granted = _catalog(superuser)
        assert granted != before
        superuser.execute("reset session authorization")
        with monkeypatch.context() as patch:
            _change_code(
                patch, "    name, type, description, path,", "    type, description, path,"
            )
            (name,) = server.migrate(superuser)
            columns = superuser.execute("select * from assoc_read.agents").description
            assert "name" not in [column.name for column in columns]
            assert server.applied_migrations(superuser)[-1] == name
        server.migrate(superuser)
        assert _catalog(superuser) == granted
        superuser.execute(f"revoke all on schema assoc, assoc_read from {owner} cascade")


def test_a_view_of_somebody_else_is_not_dropped(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("create view public.mine as select title from assoc_read.sessions")
    before = _catalog(database)
    _change_code(
        monkeypatch, "create view assoc_read.sessions", "\ncreate view assoc_read.sessions"
    )
    with pytest.raises(FleetError, match=r"of your own uses one of assoc-ingest: drop it.*"):
        server.migrate(database)
    assert _catalog(database) == before
    database.execute("drop view public.mine")
    server.migrate(database)
    server.check(database)


@pytest.mark.parametrize(
    ("version", "sentence"), [("99.1", "update assoc-ingest"), ("0.0.9", "remote migrate")]
)
def test_code_of_another_version_is_newer_or_older(
    database: Any, version: str, sentence: str
) -> None:
    database.execute(
        "update assoc.schema_version set name = %s where name like 'code-%%'",
        (f"code-{version}.dev1-12345678",),
    )
    with pytest.raises(FleetError, match=sentence):
        server.check(database)
    if sentence == "remote migrate":
        assert server.migrate(database) == server.migration_names()[-1:]
        assert server.applied_migrations(database) == server.migration_names()
    else:
        with pytest.raises(FleetError, match=sentence):
            server.migrate(database)


@pytest.mark.parametrize(
    "name", ["code-", "code-99", "code-1.2-xyz", f"code-{'9' * 5000}-12345678"]
)
def test_a_name_of_code_that_no_version_writes_counts_as_newer(database: Any, name: str) -> None:
    database.execute("update assoc.schema_version set name = %s where name like 'code-%%'", (name,))
    with pytest.raises(FleetError, match="update assoc-ingest"):
        server.check(database)


def test_a_dump_is_restored_whole(database: Any, postgres: Postgres) -> None:
    found = programs()
    if found is None or not (found / "pg_dump").exists():
        pytest.skip("no pg_dump here")
    administration.make_text_index(database)
    dump = subprocess.run(
        [found / "pg_dump", "-d", postgres.dsn(database.info.dbname)],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    copy = f"assoc_copy_{next(_numbers)}"
    database.execute(f"create database {copy} template template0 encoding 'UTF8'")
    subprocess.run(
        [found / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-o", os.devnull, "-d", postgres.dsn(copy)],
        check=True,
        input=dump,
    )
    with _connected(postgres.dsn(copy)) as restored:
        assert _catalog(restored) == _catalog(database)
        server.check(restored)
    database.execute(f"drop database {copy}")
