"""What it takes to push a database to a PostgreSQL server, which is made for it and deleted.

    python -m benchmarks.fleet --size 60MB --profile real

Everything is pushed to a database without and to one with the text index, and compared with a bare
COPY of the same rows and bytes, which checks and compares nothing. Then one line is appended to a
transcript many times, and pushed each time; the text index is made, and searched. For searches of a
large record, `--copies N` lets the server have the machine N times more, as if others had pushed:

    python -m benchmarks.fleet --size 60MB --profile real --copies 60     # a million messages

With `--at`, one server is compared with several nodes, in a database of each that has all machines
and the text index. An empty one is filled, over the nodes if it is that of a coordinator of Citus,
and keeps what it got; a machine that is pushed beside them is removed again:

    python -m benchmarks.fleet --size 290MB --profile real --copies 19 --at 'host=... dbname=...'
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.postgres import OwnPostgres, own_server

from assoc_ingest.ask.filters import Filters
from assoc_ingest.fleet import administration, deletion
from assoc_ingest.fleet import server as server_schema
from assoc_ingest.fleet.connect import connect
from assoc_ingest.fleet.projection import EVERYTHING, PLACED, Local, Masks
from assoc_ingest.fleet.push import Report, push
from assoc_ingest.fleet.search import Central, search
from assoc_ingest.fleet.server import Server
from assoc_ingest.fleet.state import State, place_of
from assoc_ingest.store.changes import begin_anew
from assoc_ingest.store.database import open_reader, snapshot, transaction, writing
from assoc_ingest.sync.run import sync
from benchmarks.asking import SEARCHES
from benchmarks.cost import scratch
from benchmarks.generate import PROFILES, parse_size
from benchmarks.homes import Homes, size_of, transcripts

_APPENDS = 40
_TIMES = 5

_OF_A_COPY = (
    (r"origin_id", "{name} + {n}"),
    (r"label", "{name} || {n}"),
    (r".*file_key", "sha256({name} || int4send({n}))"),
    (
        r".*(session|agent|response|forked|linked|message)_key|.*request_id|.*tool_use_id"
        r"|api_message_id|.*uuid",
        "{n} || {name}",
    ),
)
"""How columns of a copy differ, by their names: two machines share no session and no message."""
_OF_A_COPY_OF = {
    "origins": {"uuid": "gen_random_uuid()"},
    "origin_states": {"db_uuid": "db_uuid"},
    "sources": {"label": "label"},
    "subagents": {"parent_key": "{n} || parent_key"},
    # The newest ones are of all machines.
    "messages": {
        "timestamp": "overlay(timestamp placing lpad(({n} % 60)::text, 2, '0') from 18 for 2)"
    },
}
"""Columns that are exceptions."""


class Bench:
    """A home, its database, and a server."""

    def __init__(self, place: Path, home: Path, server: OwnPostgres) -> None:
        self.home = place / "home"
        shutil.copytree(home, self.home)
        self.database = place / "a.db"
        self.server = server
        sync(self.database, [self.home])
        place_of(self.database).touch()  # else nothing notes what changes
        with writing(self.database) as writer, transaction(writer):
            begin_anew(writer)

    @contextmanager
    def fresh(self, *, with_index: bool = False) -> Iterator[Any]:
        """Yield a connection to a new database that is set up."""
        name = f"bench_{uuid4().hex}"
        with connect(self.server.conninfo) as connection:
            connection.execute(
                f"create database {name} template template0 encoding 'UTF8' locale 'C'"
            )
        with connect(self.server.dsn(name)) as connection:
            server_schema.migrate(connection)
            if with_index:
                administration.make_text_index(connection)
            yield connection

    @contextmanager
    def local(self, *, is_masked: bool = False) -> Iterator[Local]:
        """Yield what is to be pushed: everything."""
        with closing(open_reader(self.database)) as reader, snapshot(reader):
            yield Local(reader, EVERYTHING, Masks(is_on=is_masked))

    def push(self, connection: Any, state: State, *, is_masked: bool = False) -> Report:
        """Push once."""
        with self.local(is_masked=is_masked) as local:
            return push(Server(connection), local, state)

    def state(self, label: str = "bench") -> State:
        """What a new machine remembers."""
        return State(self.database.with_name("a.push"), str(uuid4()), label, str(uuid4()), "")

    def projected(self, *, is_masked: bool) -> None:
        """Make all rows that a push sends, and drop them."""
        with self.local(is_masked=is_masked) as local:
            for file in local.files(None):
                for _ in local.content(file).frames:
                    pass

    def copied(self, connection: Any) -> float:
        """Copy the same rows and bytes; return the seconds without making them."""
        rows: dict[str, list[Any]] = {table.name: [] for table in PLACED}
        frames = []
        with self.local() as local:
            for number, file in enumerate(local.files(None)):
                for frame in local.content(file).frames:
                    frames.append((1, number, frame.start, *frame[2:4], frame.rows_digest))
                    for name, found in frame.rows.items():
                        rows[name] += [(1, number, *row) for row in found]
        started = time.perf_counter()
        with connection.transaction():
            for name, table_rows in (("frames", frames), *rows.items()):
                with connection.cursor().copy(f"copy assoc.{name} from stdin") as copy:
                    for row in table_rows:
                        copy.write_row(row)
        return time.perf_counter() - started


def seconds(function: Callable[[], Any]) -> float:
    """Return how long a function takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def multiply(connection: Any, copies: int) -> None:
    """Let the server have its only machine so many times more."""
    tables = connection.execute(
        "select c.relname, array_agg(a.attname::text) from pg_class c"
        " join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
        " where c.relnamespace = 'assoc'::regnamespace and c.relkind = 'r' group by 1"
        " having 'origin_id' = any (array_agg(a.attname)) order by c.relname <> 'origins'"
    ).fetchall()
    for table, columns in tables:
        names = ", ".join(f'"{name}"' for name in columns)
        values = ", ".join(
            _of_copy(table, name).format(n="n", name=f'"{name}"') for name in columns
        )
        connection.execute(
            f"insert into assoc.{table} ({names})"
            f" select {values} from assoc.{table}, generate_series(1, {copies}) n"
        )
        connection.execute(f"analyze assoc.{table}")
    connection.execute(
        "select setval(pg_get_serial_sequence('assoc.origins', 'origin_id'), max(origin_id))"
        " from assoc.origins"
    )


def _of_copy(table: str, column: str) -> str:
    exceptions = _OF_A_COPY_OF.get(table, {})
    usual = (value for pattern, value in _OF_A_COPY if re.fullmatch(pattern, column))
    return exceptions.get(column) or next(usual, "{name}")


def measure(bench: Bench, copies: int = 0) -> Iterator[tuple[str, str]]:
    """Yield what was measured and how much it was."""
    source = size_of(bench.home)
    made = seconds(lambda: bench.projected(is_masked=False))
    covered = seconds(lambda: bench.projected(is_masked=True))
    with bench.fresh() as connection:
        bare = bench.copied(connection)
    with bench.fresh() as connection:
        state = bench.state()
        started = time.perf_counter()
        report = bench.push(connection, state)
        whole = time.perf_counter() - started
        (stored,) = connection.execute(
            "select sum(pg_total_relation_size(oid)) from pg_class"
            " where relnamespace = 'assoc'::regnamespace and relkind = 'r'"
        ).fetchone()
        idle = min(seconds(lambda: bench.push(connection, state)) for _ in range(5))
        appends = sorted(_appends(bench, connection, state))
        multiply(connection, copies)
        making = seconds(lambda: administration.make_text_index(connection))
        (messages,) = connection.execute("select count(*) from assoc.messages").fetchone()
        (indexed_size,) = connection.execute(
            f"select pg_relation_size('assoc.{server_schema.INDEX}')"
        ).fetchone()
        searches = _searches(bench.server.dsn(connection.info.dbname))
    with bench.fresh() as connection:
        masked = seconds(lambda: bench.push(connection, bench.state(), is_masked=True))
    with bench.fresh(with_index=True) as connection:
        indexed = seconds(lambda: bench.push(connection, bench.state()))
    sent = max(whole - made, 1e-9)
    yield "rows, MB sent", f"{report.rows:,}, {report.size / 1e6:.0f}"
    yield "rows made, s", f"{made:.1f}"
    yield "rows made and credentials covered, s", f"{covered:.1f}"
    yield "bare COPY, s (rows/s)", f"{bare:.1f} ({report.rows / bare:,.0f})"
    yield "push, s (rows/s)", f"{whole:.1f} ({report.rows / whole:,.0f})"
    yield "push without making rows, s (rows/s)", f"{sent:.1f} ({report.rows / sent:,.0f})"
    yield "of bare COPY", f"{bare / sent:.2f}"
    yield "push, credentials covered, s", f"{masked:.1f}"
    yield "push with text index, s (rows/s)", f"{indexed:.1f} ({report.rows / indexed:,.0f})"
    yield "text index made, s (messages/s)", f"{making:.1f} ({messages / making:,.0f})"
    index_share = indexed_size / source / (copies + 1)
    yield "stored, of the source", f"{stored / source:.2f}, index {index_share:.2f}"
    yield "push of nothing, ms", f"{idle * 1e3:.1f}"
    yield (
        "push of a line, ms: middle, p95",
        (f"{appends[len(appends) // 2] * 1e3:.1f}, {appends[int(len(appends) * 0.95)] * 1e3:.1f}"),
    )

    for name, took in searches.items():
        yield f"search of {messages:,}, ms: {name}", f"{took * 1e3:.1f}"


def measure_at(bench: Bench, destination: str, copies: int) -> Iterator[tuple[str, str]]:
    """Yield what was measured in a database of many machines, which is filled if it is empty."""
    connection: Any
    with closing(connect(destination)) as connection:
        if not server_schema.applied_migrations(connection):
            _fill(bench, connection, copies)
        (messages,) = connection.execute("select count(*) from assoc.messages").fetchone()
        yield "messages", f"{messages:,}"
        for name, query in SEARCHES.items():
            first, again = _search_anew(destination, query)
            yield f"search, ms: {name}; again", f"{first * 1e3:.0f}; {again * 1e3:.0f}"
        state = bench.state(f"bench-{uuid4()}")
        started = time.perf_counter()
        report = bench.push(connection, state)
        whole = time.perf_counter() - started
        yield "push with text index, s (rows/s)", f"{whole:.1f} ({report.rows / whole:,.0f})"
        appends = sorted(_appends(bench, connection, state))
        yield "push of a line, ms: middle", f"{appends[len(appends) // 2] * 1e3:.1f}"
        deletion.remove_origin(connection, deletion.origin_named(connection, state.uuid))


def _fill(bench: Bench, connection: Any, copies: int) -> None:
    (nodes,) = connection.execute("select to_regclass('pg_catalog.pg_dist_node')").fetchone()
    server_schema.migrate(connection, distributed=nodes is not None)
    bench.push(connection, bench.state())
    multiply(connection, copies)
    administration.make_text_index(connection)


def _search_anew(destination: str, query: str) -> tuple[float, float]:
    """Return the least seconds of a search on a new connection, and of the same once more."""
    first, again = [], []
    for _ in range(_TIMES):
        central: Any = Central(destination)
        with closing(central):
            ask = partial(search, central, query, Filters(), limit=20)
            first.append(seconds(ask))
            again.append(seconds(ask))
    return min(first), min(again)


def _searches(destination: str) -> dict[str, float]:
    """Return the least seconds that each search took."""
    central: Any = Central(destination)
    found = {}
    with closing(central):
        for tools, (name, query) in product((False, True), SEARCHES.items()):
            ask = partial(search, central, query, Filters(), limit=20, tools=tools)
            found[f"{name}, {'tools' if tools else 'prose'}"] = min(seconds(ask) for _ in range(3))
    return found


def _appends(bench: Bench, connection: Any, state: State) -> Iterator[float]:
    file = max(transcripts(bench.home), key=lambda path: path.stat().st_size)
    line = next(line for line in file.read_bytes().split(b"\n") if b'"type":"user"' in line)
    for _ in range(_APPENDS):
        with file.open("ab") as opened:
            opened.write(line + b"\n")
        sync(bench.database, [bench.home])
        yield seconds(lambda: bench.push(connection, state))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=parse_size, default=parse_size("60MB"))
    parser.add_argument("--profile", choices=PROFILES, default="usual", help="of the home")
    parser.add_argument("--copies", type=int, default=0, help="of the machine, for the searches")
    parser.add_argument("--at", metavar="DESTINATION", help="a database to measure in")
    options = parser.parse_args(arguments)
    home = Homes().of_size(options.size, options.profile)
    with scratch(Homes().build) as place, own_server() as server:
        bench = Bench(place, home, server)
        measured = (
            measure_at(bench, options.at, options.copies)
            if options.at
            else measure(bench, options.copies)
        )
        for what, much in measured:
            print(f"{what:40} {much}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
