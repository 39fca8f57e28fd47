"""Machines that push to a server, and what it answers."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from tests.support.cases import DEMO
from tests.support.fleet import MadeMemory

from assoc_ingest import sql
from assoc_ingest.cli import cli
from assoc_ingest.fleet.projection import EVERYTHING, Local, Masks
from assoc_ingest.fleet.push import push
from assoc_ingest.fleet.search import Central
from assoc_ingest.fleet.server import Server
from assoc_ingest.fleet.state import State, place_of
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

QUERIES = {q.path: q for q in sql.named_queries().values() if q.stem not in sql.OF_ONE_MACHINE}
IDS = {"id", "project_id", "repository_key", "session_id"}
"""Columns that are not the same on another database."""

_TIES = {"lists/inbox", "pages/usage", "reports/retention_by_session", "reports/usage_duplicates"}
"""Queries that put equal rows in the order of their ids."""


@dataclass
class Machine:
    """A database, and what its machine remembers of its pushes."""

    database: Path
    connection: Any
    memory: MadeMemory
    masks: Masks

    def push(self, *homes: Path) -> None:
        """Read homes, and push everything."""
        self._remember()
        sync(self.database, list(homes))
        self._push()

    def _remember(self) -> None:
        """Let the database note what changes: it does so for whom it has the state of."""
        memory, place = self.memory, place_of(self.database)
        if not place.exists():
            State(place, memory.uuid, memory.label, memory.db_uuid, "").save()

    def forget(self, session: str) -> None:
        """Forget a session, and push that."""
        arguments = ["forget", session, "--yes", "--db", str(self.database)]
        run = CliRunner().invoke(cli, arguments)
        assert run.exit_code == 0, run.output
        self._push()

    def push_all(self) -> None:
        """Compare everything with the server, and push what differs."""
        self._push(is_full=True)

    def _push(self, *, is_full: bool = False) -> None:
        with closing(open_reader(self.database)) as reader:
            local = Local(reader, EVERYTHING, self.masks)
            server = Server(self.connection)
            push(server, local, self.memory, is_full=is_full)


class Fleet:
    """A server, and machines that push to it."""

    def __init__(self, place: Path, destination: str, connection: Any) -> None:
        self.place = place
        self.destination = destination
        self._connection = connection

    def push(self, name: str, *homes: Path) -> sqlite3.Connection:
        """Read homes on a machine and push everything; return its database."""
        self.machine(name).push(*homes)
        return open_reader(self.place / f"{name}.db")

    def machine(self, name: str, masks: Masks = Masks(is_on=False)) -> Machine:  # noqa: B008
        """A machine that pushes more than once."""
        memory = MadeMemory(label=name)
        return Machine(self.place / f"{name}.db", self._connection, memory, masks)

    def central(self) -> Central:
        """The server, as a database to read."""
        return Central(self.destination)


def demo(place: Path) -> list[Path]:
    """Copy the homes of the demonstration to a place."""
    homes = Path(shutil.copytree(DEMO, place))
    return [home for home in sorted(homes.iterdir()) if home.is_dir()]


def rows_of(connection: Any, query: sql.Query, given: dict[str, object]) -> list[tuple[Any, ...]]:
    """Return what a query finds, without ids; costs are rounded."""
    cursor = connection.execute(query.sql, dict.fromkeys(query.parameters) | given)
    kept = [n for n, column in enumerate(cursor.description) if column[0] not in IDS]
    rows = [tuple(_rounded(row[n]) for n in kept) for row in cursor.fetchall()]
    return sorted(rows, key=repr) if query.path in _TIES else rows


def _rounded(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value
