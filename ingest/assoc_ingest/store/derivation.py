"""Whether the rows come from an older version of the parsers, so that `rebuild` is due."""

from __future__ import annotations

import sqlite3

from . import database


def is_rebuild_due(connection: sqlite3.Connection) -> bool:
    """Were the rows derived by an older version of the parsers?"""
    (derived_by,) = connection.execute("pragma user_version").fetchone()
    return bool(derived_by < database.DERIVATION)
