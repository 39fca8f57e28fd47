"""Searches in a test: find and read at once."""

from __future__ import annotations

import sqlite3
from typing import Any

from assoc_ingest.ask.filters import Filters
from assoc_ingest.ask.search import SearchResult, find


def search(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 10,
    shown: int = 3,
    **given: Any,
) -> SearchResult:
    """Return the best `limit` conversations with `shown` hits each, and the best `limit` hits."""
    return find(connection, query, filters, limit=limit, **given).read(limit, shown)
