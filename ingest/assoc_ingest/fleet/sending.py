"""Lets the server have what is in scope, or says what that would be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ..errors import AssocIngestError, BusyError, UsageError
from ..store import changes
from ..store.database import open_reader, writing
from ..store.transaction import snapshot, transaction
from . import projection
from .connect import connect, shown
from .local import Local
from .machine import database_uuid
from .masks import Masks
from .preview import Preview, preview
from .projection import Cursor
from .push import push
from .report import Limits, Report
from .same_files import came_back, give_keys
from .server import Server
from .state import State
from .turns import one_at_a_time, state_of


def push_all(
    database: Path,
    *,
    is_full: bool = False,
    masks: Masks | None = None,
    limits: Limits | None = None,
    tell: Callable[[Report], None] | None = None,
) -> Report:
    """Let the server have what is in scope."""
    masks, waiting = masks or Masks(), frozenset[int]()
    with one_at_a_time(database):
        if state_of(database).cursor is None:
            _note_changes(database)
        while True:
            with (
                _sending(database, masks) as (state, local),
                connect(state.destination) as connection,
            ):
                server, since = Server(connection), None if is_full else _seen(state, local)
                # A database that was made anew has to be adopted.
                state.db_uuid = database_uuid(local.connection)
                local = replace(local, left_out=waiting)
                found = came_back(local, server, state, since)
                if not found:
                    report = push(
                        *(server, local, state, state.save),
                        is_full=is_full,
                        limits=limits,
                        tell=tell,
                    )
                    report.waiting = len(waiting)
                    return report
            try:
                with writing(database) as writer:
                    give_keys(writer, state.uuid, found)
            except BusyError:  # a watch; all else can be pushed
                waiting |= {rename.id for rename in found}


def _note_changes(database: Path) -> None:
    """Let the database note what changes from now on, if it does not."""
    with closing(open_reader(database)) as reader:
        if projection.cursor(reader) is not None:
            return
    # A watch that writes all the time begins by itself, with its next transaction.
    # Whoever may only read, or has no room, compares everything each time.
    with (
        suppress(AssocIngestError, sqlite3.Error),
        writing(database) as writer,
        transaction(writer),
    ):
        changes.begin_anew(writer)


def _seen(state: State, local: Local) -> Cursor | None:
    """Return what of the database was pushed, if what changed since then is known."""
    is_known = state.cursor is not None and local.is_known(state.cursor)
    return state.cursor if is_known else None


def previewed(database: Path, masks: Masks) -> Preview:
    """Return what a push would look at; nothing is sent."""
    with _sending(database, masks) as (state, local):
        since = _seen(state, local)
        return preview(local, since and since.change, shown(state.destination), state.label)


@contextmanager
def _sending(database: Path, masks: Masks) -> Iterator[tuple[State, Local]]:
    """Yield what is remembered, and a snapshot of what may leave."""
    with closing(open_reader(database)) as reader:
        state = state_of(database)
        if not state.all_projects and not state.allowed:
            raise UsageError(
                "Nothing may leave this machine yet: run `assoc-ingest remote allow PROJECT`, or "
                "`remote allow --all-projects`."
            )
        state.cover(masks)
        with snapshot(reader):
            yield state, Local(reader, state.scope(reader), masks)
