"""The content of what a sync has to read: of a file, of a packed one, or of an entry of a store.

Whoever compares content uses this, so that it does not matter which of them it is.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from .packed import content_size, is_packed, opened
from .steps import Work


@contextmanager
def reading(work: Work) -> Iterator[tuple[int, int]]:
    """Yield a descriptor to read the content from, and its size in bytes. Raises OSError."""
    if work.entry is None:
        with opened(work.found.location) as descriptor:
            yield descriptor, content_size(descriptor, work.found.location, work.found.size)
        return
    with work.entry.open() as lines, tempfile.TemporaryFile() as file:
        size = sum(map(file.write, lines()))
        file.flush()
        yield file.fileno(), size


def most_bytes(work: Work) -> int:
    """Return how large the content can be, as far as is known before it is read."""
    is_known = work.entry is None and not is_packed(work.found.path)
    return work.found.size if is_known else sys.maxsize
