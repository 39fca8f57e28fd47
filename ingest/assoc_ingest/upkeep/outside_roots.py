"""Nothing is written below a directory of an agent, whatever a user asks for."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from ..errors import UsageError
from ..files.stored_names import original_root
from ..files.walk import default_roots
from ..paths import identity, is_directory, real_path


def known_roots(connection: sqlite3.Connection) -> list[Path]:
    """Return the directories of agents: those that were ever synced, and the defaults."""
    roots = [original_root(root) for (root,) in connection.execute("select root from sources")]
    defaults = default_roots(os.environ, ())
    return roots + [real_path(path) for path in defaults if is_directory(path)]


def outside_roots(directory: Path, roots: Iterable[Path], option: str) -> Path:
    """Return the directory without links.

    Raises UsageError if it is, or is inside, one of the roots; `option` is how to give another.
    """
    place = real_path(directory)
    above = {identity(path) for path in (place, *place.parents)}
    for root in roots:
        # By identity too: the same directory can have two names where case does not count.
        known = identity(root)
        if place.is_relative_to(root) or (known is not None and known in above):
            raise UsageError(
                f"{directory} is inside {root}, a directory of an agent, where assoc-ingest never"
                f" writes. Give another directory: {option}"
            )
    return place
