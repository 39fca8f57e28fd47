"""This machine and its server together: what the commands `push` and `remote` do.

One push of a machine runs at a time, guarded by `<db>.push.lock`; the database itself is only read,
so a sync is never held up. Only `adopt` and `new_origin` write to it, and a push that finds files
which the server has under other keys (`same_files.py`).
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

from ..errors import BusyError, NotFoundError, UsageError
from ..store.database import open_reader, writing
from ..store.transaction import snapshot, transaction
from . import projection, server_schema
from .administration import has_text_index
from .connect import connect, parameters
from .destination import DESTINATION
from .local import Local
from .masks import Masks
from .push import introduced, push
from .scope import EVERYTHING, OWN, Scope, of_paths
from .server import Known, Server
from .state import State, load, place_of
from .turns import after_others, one_at_a_time, state_of


class Standing(NamedTuple):
    """How this machine and the server stand to each other."""

    known: Known | None
    """None: this machine never pushed."""
    missing: list[str]
    """Migrations that the server lacks."""
    is_current: bool
    """The server has everything that is in scope."""
    there: int
    """Files that the server has of this machine."""
    gone: int
    """Those of them that the database does not have any more."""
    outside: int
    """Those of them that are in the database, but may not leave it now."""
    is_indexed: bool
    """The server has its text index; without it, a search reads everything."""


def destination_of(database: Path, given: str | None) -> str:
    """Return the server that an administrator means: the given one, or that of this machine."""
    return given or os.environ.get(DESTINATION) or state_of(database).destination


def database_uuid(reader: sqlite3.Connection) -> str:
    """Return the name of a database as the server has it."""
    return str(UUID(projection.database_key(reader)))


def set_up(database: Path, destination: str, label: str | None) -> tuple[State, list[str]]:
    """Set up the server if it is not, and note it as that of this machine.

    Return what is remembered, and the migrations that were applied to the server.
    """
    parameters(destination)  # refused before anything is noted
    with closing(open_reader(database)) as reader:
        key = database_uuid(reader)
    with after_others(database):
        state = load(database)
        with connect(destination) as connection:
            is_new = not server_schema.applied(connection)
            applied = server_schema.migrate(connection) if is_new else []
            if state is not None and label is not None:
                _demand_label(Server(connection).hello(state.uuid), label)
        if state is None:
            name = label or platform.node() or "machine"
            state = State(place_of(database), str(uuid4()), name, key, destination)
        elif state.destination != destination:
            # Perhaps the same server by another name: what it knows of this machine stays valid.
            state.destination, state.cursor = destination, None
        state.db_uuid = key
        state.label = label or state.label
        state.save()
    return state, applied


def _demand_label(known: Known | None, label: str) -> None:
    if known is not None and known.label != label:
        raise UsageError(
            f"The server knows this machine as {known.label}, and does not change that: leave out "
            "--label."
        )


def standing(database: Path) -> Standing:
    """Compare what this machine remembers with the server."""
    state = state_of(database)
    with closing(open_reader(database)) as reader, connect(state.destination) as connection:
        server = Server(connection)
        known = server.hello(state.uuid)
        applied = server_schema.applied(connection)
        is_indexed = has_text_index(connection)
        there = (
            {file.file_key for file in server.files_of(known.origin_id)} if known else set[bytes]()
        )
        in_scope = _keys(reader, state.scope(reader))
        here = _keys(reader, EVERYTHING)
        is_current = (
            known is not None
            and (known.version, [known.nonce]) == (state.version, state.nonces)
            and state.cursor is not None
            and state.cursor == projection.cursor(reader)
        )
    return Standing(
        known=known,
        missing=[name for name in server_schema.names() if name not in applied],
        is_current=is_current,
        there=len(there),
        gone=len(there - here),
        outside=len(there & here - in_scope),
        is_indexed=is_indexed,
    )


def new_origin(database: Path, label: str) -> State:
    """Let this machine be another one for the server, called `label`.

    What the old one pushed stays there. The database and its files get new keys: those that they
    have are the ones of the original. Raises UsageError if the label is that of the original.
    """
    with one_at_a_time(database):
        state = load(database) or state_of(database)
        if label == state.label:
            raise UsageError(
                f"The original is called {label!r}: give this machine another name with --label."
            )
        with writing(database) as writer, transaction(writer):
            writer.execute("update identity set database_key = randomblob(16)")
            writer.execute(f"update files set file_key = randomblob(16) where source_id in ({OWN})")
        with closing(open_reader(database)) as reader:
            state.db_uuid = database_uuid(reader)
        state.uuid, state.label = str(uuid4()), label
        state.version, state.nonces, state.cursor = 0, [], None
        state.save()
    return state


def withdraw(database: Path, project: str) -> int:
    """Delete a project on the server, and send it no more; return the number of files."""
    with one_at_a_time(database):
        state = state_of(database)
        if state.all_projects:
            raise UsageError(
                "Everything may leave this machine, so the next push would send it again: run "
                "`assoc-ingest remote disallow --all-projects` first, or use "
                "`assoc-ingest forget`, which deletes here, too."
            )
        paths = {project, os.path.abspath(project)}  # noqa: PTH100 -- keeps links, as agents do
        with closing(open_reader(database)) as reader:
            is_known = _has_project(reader, paths) or not paths.isdisjoint(state.allowed)
            keys = _keys(reader, of_paths(reader, paths))
            state.allowed = [allowed for allowed in state.allowed if allowed not in paths]
            state.cursor = None
            state.save()
            still = _keys(reader, state.scope(reader))

        def chosen(there: Server, origin_id: int) -> list[bytes]:
            return [
                file.file_key
                for file in there.files_of(origin_id)
                if file.file_key not in still
                and (file.file_key in keys or file.project_path in paths)
            ]

        count = _delete(database, state, chosen)
    if not count and not is_known:
        raise NotFoundError(f"No project has the path {project}: give its directory.")
    return count


def prune(database: Path) -> int:
    """Delete on the server what the database does not have any more; return the number of files."""
    with one_at_a_time(database):
        state = state_of(database)
        with closing(open_reader(database)) as reader:
            _demand_pushed(reader, state)
            here = _keys(reader, EVERYTHING)
        return _delete(
            database,
            state,
            lambda server, origin_id: [
                file.file_key for file in server.files_of(origin_id) if file.file_key not in here
            ],
        )


def _delete(database: Path, state: State, chosen: Callable[[Server, int], list[bytes]]) -> int:
    """Delete files on the server, then the keyed rows that only they named."""
    with closing(open_reader(database)) as reader, connect(state.destination) as connection:
        state.db_uuid = database_uuid(reader)  # a database made anew has to be adopted first
        server = Server(connection)
        if server.hello(state.uuid) is None:
            return 0
        known = introduced(server, state, state.save)
        keys = chosen(server, known.origin_id)
        if not keys:
            return 0
        state.nonces.append(str(uuid4()))
        state.save()
        answer = server.forget(known.origin_id, known.version, state.nonces[-1], keys)
        if not answer.applied:
            raise BusyError("Another push was faster; try again.")
        with snapshot(reader):
            local = Local(reader, state.scope(reader), Masks(is_on=state.masks is not None))
            push(server, local, state, state.save, is_full=True)
    return len(keys)


def _demand_pushed(reader: sqlite3.Connection, state: State) -> None:
    """Raise UsageError unless the database continues what was pushed last.

    What is missing in a database that was restored from a backup was not removed by anybody.
    """
    if state.cursor is None or not projection.is_known(reader, state.cursor):
        raise UsageError(
            "Run `assoc-ingest sync` and `assoc-ingest push` first: this database is not the one "
            "that was pushed last, or what may leave was changed since. If it was restored from a "
            "backup, the server may have the only copy of what is not in it."
        )


def _keys(reader: sqlite3.Connection, scope: Scope) -> set[bytes]:
    return {file.file_key for file in projection.files(reader, scope, None)}


def _has_project(reader: sqlite3.Connection, paths: set[str]) -> bool:
    return any(
        reader.execute("select 1 from projects where path = ?", (path,)).fetchone()
        for path in paths
    )
