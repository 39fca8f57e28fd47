"""Which server a command asks that only reads.

That of the environment variable, for who never pushes; else the one to which the database is
pushed, as `state` has written it down.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..errors import UsageError
from ..store.location import resolved

DESTINATION = "ASSOC_INGEST_REMOTE"


def destination_of(database: Path) -> str:
    """Return the destination, raise UsageError if none is known."""
    if given := os.environ.get(DESTINATION):
        return given
    database = resolved(database)
    try:
        state = json.loads(database.with_name(f"{database.name}.push").read_bytes())
    except (FileNotFoundError, ValueError):
        state = None
    if not isinstance(state, dict) or not isinstance(state.get("destination"), str):
        raise UsageError(
            "No server is known: run `assoc-ingest remote init`, or name the server in the "
            f"environment variable {DESTINATION}."
        )
    return str(state["destination"])
