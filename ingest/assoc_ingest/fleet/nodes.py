"""The workers of a server whose tables are distributed with Citus; another server has none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import FleetError

if TYPE_CHECKING:
    from psycopg import Connection


def is_distributed(connection: Connection[Any]) -> bool:
    """Are the tables on the nodes of Citus?"""
    row = connection.execute("select to_regclass('pg_catalog.pg_dist_partition')").fetchone()
    if row is None or row[0] is None:
        return False
    row = connection.execute(
        "select exists (select from pg_catalog.pg_dist_partition"
        " where logicalrelid = to_regclass('assoc.files'))"
    ).fetchone()
    return bool(row and row[0])


class Node(NamedTuple):
    """The server that a connection leads to, or one of its workers."""

    connection: Connection[Any]
    host: str | None = None
    """None: the server itself."""
    port: int = 0
    shards: int = 0
    """Parts of tables that are there."""

    def run(self, statement: str) -> str:
        """Run one statement; return the first value, as text. Raises FleetError with its error."""
        if self.host is None:
            cursor = self.connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return str(row[0]) if row else ""
        row = self.connection.execute(
            "select success, result from pg_catalog.master_run_on_worker("
            "array[%s::text], array[%s::int], array[%s::text], false)",
            (self.host, self.port, statement),
        ).fetchone()
        if row is None or not row[0]:
            message = row[1].partition("\n")[0] if row and row[1] else "no answer"
            raise FleetError(f"The node {self.host}:{self.port} refused this. ({message})")
        return str(row[1])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, the columns of which have different names."""
        if self.host is None:
            return self.connection.execute(query.encode()).fetchall()
        found = self.run(f"select coalesce(json_agg(to_json(q)), '[]') from ({query}) q")
        return [tuple(row.values()) for row in json.loads(found)]

    def value(self, query: str) -> Any:
        """Return the value of a query with one column and at most one row."""
        rows = self.rows(query)
        return rows[0][0] if rows else None


def workers(connection: Connection[Any]) -> list[Node]:
    """Return the workers of a server; it has none if its tables are not distributed."""
    if not is_distributed(connection):
        return []
    rows = connection.execute("""
        select n.nodename, n.nodeport, (
            select count(*) from pg_catalog.pg_dist_placement p
            join pg_catalog.pg_dist_shard s using (shardid)
            join pg_catalog.pg_class c on c.oid = s.logicalrelid
            where p.groupid = n.groupid and c.relnamespace = 'assoc'::regnamespace
        )
        from pg_catalog.pg_dist_node n
        where n.groupid <> 0 and n.noderole = 'primary'
        order by n.groupid
    """).fetchall()
    return [Node(connection, *row) for row in rows]


def run_on_shards(connection: Connection[Any], table: str, statement: str) -> list[str]:
    """Run a statement on each part of a distributed table, which it names as %1$s."""
    rows = connection.execute(
        "select nodename, nodeport, success, result"
        " from pg_catalog.run_command_on_placements(%s::regclass, %s)",
        (table, statement),
    ).fetchall()
    for host, port, succeeded, result in rows:
        if not succeeded:
            message = str(result).partition("\n")[0]
            raise FleetError(f"The node {host}:{port} refused this. ({message})")
    return [result for *_, result in rows]
