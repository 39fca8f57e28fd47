"""Continues on the server what another database of this machine pushed.

A database that was made anew names its files anew. Files that are where they were, and begin as
they began, get the names by which the server knows them; the next push then sends what differs.
Whatever else the server has stays as it is. If these files were pulled meanwhile, the copies go.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from ..errors import NotFoundError, UsageError
from ..store.database import writing
from .connect import connect
from .machine import database_uuid
from .masks import Masks
from .same_files import give_keys, same_files
from .server import Origin, Server
from .state import State
from .turns import one_at_a_time, state_of


def adopt(database: Path, name: str | None = None) -> tuple[Origin, int]:
    """Take over an origin of this login: that of this machine, or the one of this label or uuid.

    Return it, and the number of files that were found again.
    """
    with one_at_a_time(database):
        state = state_of(database)
        with connect(state.destination) as connection:
            return _adopted(database, name, state, Server(connection))


def _adopted(database: Path, name: str | None, state: State, server: Server) -> tuple[Origin, int]:
    origin = _chosen(server.mine(), name or state.uuid, state.label if name is None else "")
    with writing(database) as writer:
        masks = Masks(is_on=state.masks is not None)
        found = same_files(writer, server.beginnings(origin.origin_id), masks)
        give_keys(writer, origin.uuid, found)
        state.db_uuid = database_uuid(writer)
    state.uuid, state.label, state.cursor = origin.uuid, origin.label, None
    state.nonces = [str(uuid4())]
    state.save()
    state.version = server.adopt(origin.origin_id, state.db_uuid, state.nonces[0])
    state.save()
    return origin, len(found)


def _chosen(origins: list[Origin], name: str, or_label: str) -> Origin:
    for wanted in filter(None, (name, or_label)):
        fitting = [origin for origin in origins if wanted in (origin.uuid, origin.label)]
        if len(fitting) == 1:
            return fitting[0]
    if not origins:
        raise NotFoundError("This login never pushed to the server: there is nothing to adopt.")
    known = ", ".join(f"{origin.label} ({origin.uuid})" for origin in origins)
    raise UsageError(f"Say which machine this is: remote adopt LABEL or UUID, of {known}.")
