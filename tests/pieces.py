"""Reading and committing in tiny pieces, so that small files meet every border of large ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def read_in_pieces(chunk: int, batch: int) -> Iterator[None]:
    """Read `chunk` bytes at a time and commit after about `batch` of them."""
    with (
        patch("assoc_ingest.tail.CHUNK", chunk),
        patch("assoc_ingest.store.BATCH_BYTES", batch),
        patch("assoc_ingest.store._FLUSH_BYTES", chunk * 2),
    ):
        yield
