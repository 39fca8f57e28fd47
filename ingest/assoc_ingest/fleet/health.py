"""What an administrator has to look after on the server: schema, indexes, vacuum, connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import FleetError
from ..terminal import many, size
from .connect import readable
from .nodes import Node, is_distributed, workers
from .server import INDEX, applied_migrations, missing_migrations

if TYPE_CHECKING:
    from psycopg import Connection

    AnyConnection = Connection[Any]


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    is_ok: bool | None
    """None: this login cannot see it."""
    found: str
    advice: str | None = None
    """What to do if it is not ok."""


_OLDEST_TESTED, _NEWEST_TESTED = 14, 18
_MOST_PENDING = 8 * 1024 * 1024
"""Bytes of the pending list; inserts empty it at 4 MB."""
_DEAD_ROWS, _DEAD_SHARE = 10_000, 0.2
"""Autovacuum begins at a share of 0.2."""
_OLDEST_AGE = 1_000_000_000
"""Transactions; PostgreSQL stops at 2 billion."""
_LONGEST = 3600
"""Seconds that a transaction may be open: VACUUM cannot remove what it might see."""
_CONNECTIONS_SHARE = 0.8
_QUOTA_SHARE = 0.9


@readable
def health(connection: AnyConnection) -> list[Check]:
    """Return all checks, in an order to read; the first that is not ok comes first to mend.

    Of each worker, if there are any, one line, and then what is wrong there.
    """
    here = Node(connection)
    found = [
        *_version(here),
        *_schema(connection),
        *_space(connection),
        *_text_index(connection),
        *_each(here),
    ]
    version, answer = here.value(_VERSION), True
    for node in workers(connection):
        name = f"{node.host}:{node.port}"
        try:
            found += _node(node, name, version)
            found += [
                check._replace(name=f"{check.name} on {name}")
                for check in _each(node)
                if check.is_ok is False
            ]
        except FleetError as error:
            answer = False
            advice = "Start it: what its machines pushed cannot be read or written until then."
            shown = f"{many(node.shards, 'shard')}; {error}"
            found.append(Check(f"node {name}", False, shown, advice))
    if answer:  # what is stored is counted on all workers
        found += _quotas(connection)
    return found


def _each(node: Node) -> Iterator[Check]:
    """Check what every node has for itself."""
    checks: tuple[Callable[[Node], Iterator[Check]], ...] = (
        *(_pending, _indexes, _settings),
        *(_dead_rows, _age, _transactions, _held_back, _connections),
    )
    return (found for check in checks for found in check(node))


_VERSION = """
    select concat_ws(', ', 'PostgreSQL ' || current_setting('server_version'), (
        select 'Citus ' || extversion from pg_extension where extname = 'citus'
    ))
"""


def _node(node: Node, name: str, version: str) -> Iterator[Check]:
    """Show what a worker has, and check that it has the version of the coordinator."""
    there = node.value(_VERSION)
    bytes_ = size(node.value("select pg_database_size(current_database())"))
    advice = f"Let all nodes have the same version as the coordinator: {version}."
    shown = f"{there}; {many(node.shards, 'shard')}, {bytes_}"
    yield Check(f"node {name}", there == version, shown, advice)


def _value(connection: AnyConnection, query: str, *values: object) -> Any:
    row = connection.execute(query.encode(), values or None).fetchone()
    return row[0] if row else None


def _version(node: Node) -> Iterator[Check]:
    version = int(node.value("select current_setting('server_version_num')")) // 10_000
    is_tested = _OLDEST_TESTED <= version <= _NEWEST_TESTED
    advice = f"Use PostgreSQL {_OLDEST_TESTED} to {_NEWEST_TESTED}: others are not tested."
    yield Check("version", is_tested, node.value(_VERSION), advice)


def _schema(connection: AnyConnection) -> Iterator[Check]:
    applied = applied_migrations(connection)
    if not applied:
        raise FleetError("The server has not been set up: run `assoc-ingest remote init`.")
    missing = missing_migrations(applied)
    found = f"{missing[0]} is missing" if missing else "that of this program"
    advice = "Run `assoc-ingest remote migrate`, or update assoc-ingest here if it is older."
    yield Check("schema", not missing, found, advice)


_TABLES = """
    select c.relname::text, pg_total_relation_size(c.oid)
    from pg_class c
    where c.relnamespace = to_regnamespace('assoc') and c.relkind = 'r'
    order by 2 desc, 1
    limit 3
"""


def _space(connection: AnyConnection) -> Iterator[Check]:
    total = size(_value(connection, "select pg_database_size(current_database())"))
    if is_distributed(connection):  # the line of each worker has its size
        yield Check("size", True, f"{total} on the coordinator")
        return
    tables = connection.execute(_TABLES.encode()).fetchall()
    largest = ", ".join(f"{name} {size(bytes_)}" for name, bytes_ in tables)
    yield Check("size", True, f"{total} in all; {largest} (with indexes)")


def _text_index(connection: AnyConnection) -> Iterator[Check]:
    is_valid = _value(
        connection,
        "select indisvalid and indisready from pg_index where indexrelid = to_regclass(%s)",
        f"assoc.{INDEX}",
    )
    found = {None: "missing", False: "invalid: making it was interrupted", True: "complete"}
    yield Check("text index", bool(is_valid), found[is_valid], "Make it: assoc-ingest remote index")


def _pending(node: Node) -> Iterator[Check]:
    """Check the pending lists of the text index, which each search reads as a whole."""
    if not node.value(f"select count(*) from ({_TEXT_INDEXES}) i"):
        return
    function = node.value(
        "select p.oid::regproc::text from pg_proc p"
        " join pg_extension e on e.extname = 'pgstattuple'"
        " where p.proname = 'pgstatginindex' and p.pronamespace = e.extnamespace"
        " and has_function_privilege(p.oid, 'execute')"
    )
    advice = "Empty it: select gin_clean_pending_list('assoc.messages_words')"
    if function is None:
        advice = "A superuser can show it: create extension pgstattuple; grant pg_stat_scan_tables"
        yield Check("pending list", None, "not visible", advice)
        return
    pages = node.value(f"select sum(({function}(i.oid)).pending_pages) from ({_TEXT_INDEXES}) i")
    pending = int(pages) * node.value("select current_setting('block_size')::int")
    yield Check("pending list", pending <= _MOST_PENDING, size(pending), advice)


_TEXT_INDEXES = f"""
    select c.oid from pg_class c
    where c.relnamespace = to_regnamespace('assoc') and c.relkind = 'i'
      and c.relname ~ '^{INDEX}(_[0-9]+)?$'
"""
"""That of a server, or those of the shards of a worker."""


def _indexes(node: Node) -> Iterator[Check]:
    rows = node.rows(
        "select indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indrelid"
        " where c.relnamespace = to_regnamespace('assoc') and not i.indisvalid"
        f" and indexrelid is distinct from to_regclass('assoc.{INDEX}') order by 1"
    )
    names = ", ".join(name for (name,) in rows)
    yield Check(
        "other indexes", not rows, f"invalid: {names}" if rows else "valid", "REINDEX them."
    )


def _settings(node: Node) -> Iterator[Check]:
    rows = node.rows(
        "select name from pg_settings where setting = 'off'"
        " and name in ('autovacuum', 'track_counts', 'fsync', 'full_page_writes') order by name"
    )
    off = ", ".join(name for (name,) in rows)
    advice = (
        "Turn them on: without autovacuum the database grows, and without fsync it does not "
        "survive a power failure."
    )
    yield Check("settings", not rows, f"off: {off}" if rows else "autovacuum and fsync on", advice)


def _dead_rows(node: Node) -> Iterator[Check]:
    rows = node.rows(
        "select relname::text, n_dead_tup from pg_stat_user_tables where schemaname = 'assoc'"
        f" and n_dead_tup > {_DEAD_ROWS} and n_dead_tup > {_DEAD_SHARE} * (n_live_tup + n_dead_tup)"
        " order by n_dead_tup desc"
    )
    found = ", ".join(f"{name} {count:,}" for name, count in rows) or "few"
    advice = "Autovacuum does not keep up: VACUUM these tables, and see which transaction is open."
    yield Check("dead rows", not rows, found, advice)


def _age(node: Node) -> Iterator[Check]:
    age = node.value(
        "select greatest(age(datfrozenxid), mxid_age(datminmxid)) from pg_database"
        " where datname = current_database()",
    )
    yield Check("age", age < _OLDEST_AGE, many(age, "transaction"), "VACUUM (FREEZE) the database.")


def _transactions(node: Node) -> Iterator[Check]:
    if not node.value("select pg_has_role('pg_read_all_stats', 'member')"):
        advice = "A superuser can show it: grant pg_read_all_stats to this login"
        yield Check("longest transaction", None, "not visible", advice)
        return
    rows = node.rows(
        "select extract(epoch from now() - xact_start)::int as seconds, usename::text, pid"
        " from pg_stat_activity where xact_start is not null and backend_type = 'client backend'"
        " and pid <> pg_backend_pid() order by 1 desc limit 1"
    )
    seconds, name, pid = rows[0] if rows else (0, "", 0)
    found = f"{seconds:,} s, by {name}" if rows else "none is open"
    advice = f"It keeps VACUUM from removing rows. End it: select pg_terminate_backend({pid})"
    yield Check("longest transaction", seconds <= _LONGEST, found, advice)


def _held_back(node: Node) -> Iterator[Check]:
    """Check what holds rows or the write-ahead log although nobody is connected."""
    rows = node.rows(
        "select 'prepared transaction ' || gid as name from pg_prepared_xacts"
        " where database = current_database() and prepared < now() - interval '1 hour'"
        " union all select 'unused replication slot ' || slot_name from pg_replication_slots"
        " where not active order by 1"
    )
    found = ", ".join(name for (name,) in rows) or "nothing"
    advice = "It keeps old rows, or fills the disk with the log: end it if nobody needs it."
    yield Check("held back by", not rows, found, advice)


def _connections(node: Node) -> Iterator[Check]:
    used = node.value("select count(*) from pg_stat_activity where backend_type = 'client backend'")
    most = node.value("select current_setting('max_connections')::int")
    advice = "Put a pooler in front (PgBouncer in transaction mode), or raise max_connections."
    is_ok = used <= _CONNECTIONS_SHARE * most
    yield Check("connections", is_ok, f"{used:,} of {most:,}", advice)


_LARGE_OBJECTS = "lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea)"
_UNCOUNTED = {
    "temporary tables": (
        "has_database_privilege('public', current_database(), 'temporary')",
        "revoke temporary on database {database} from public",
    ),
    "tables in the schema public": (
        "exists (select from pg_namespace where nspname = 'public'"
        " and has_schema_privilege('public', oid, 'create'))",
        "revoke create on schema public from public",
    ),
    "large objects": (
        "has_function_privilege('public', 'pg_catalog.lo_create(oid)', 'execute')",
        f"revoke execute on function {_LARGE_OBJECTS} from public",
    ),
}
"""What PostgreSQL lets everybody store, the condition that it does, and how to end that."""


def _quotas(connection: AnyConnection) -> Iterator[Check]:
    """Check limits that are nearly reached, and what logins could store outside of them."""
    if missing_migrations(applied_migrations(connection)):
        return
    rows = connection.execute(
        "select coalesce(label, role_name), quota_used from assoc.devices_v1()"
        " where quota_used is not null order by quota_used desc, 1"
    ).fetchall()
    if not rows:
        yield Check("quotas", True, "none is set")
        return
    full = [f"{name} {100 * used:.0f} %" for name, used in rows if used > _QUOTA_SHARE]
    found = (
        ", ".join(full) or f"{many(len(rows), 'machine')}, none above {100 * _QUOTA_SHARE:.0f} %"
    )
    advice = (
        "At 100 % their pushes are refused: allow more (`remote quota`), or let old data go "
        "(`remote retention`)."
    )
    yield Check("quotas", not full, found, advice)
    open_ways = {
        what: revoke
        for what, (condition, revoke) in _UNCOUNTED.items()
        if _value(connection, f"select {condition}")
    }
    database = _value(connection, "select quote_ident(current_database())")
    revokes = "; ".join(open_ways.values()).format(database=database)
    advice = (
        "Each login can store these without limit. The owner of the database, for large objects a "
        f"superuser, ends that: {revokes}"
    )
    found = f"not counted: {', '.join(open_ways)}" if open_ways else "count everything"
    yield Check("quota rights", not open_ways, found, advice)
