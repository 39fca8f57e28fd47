"""What is missing of a file's archive, and whether anything brings it back."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from . import archive, lost
from .forgotten import is_left_out
from .model import Issue, KnownFile
from .tail import Prefix


@dataclass(slots=True)
class LostBytes:
    """Archived bytes of a file that nothing brings back."""

    root: str
    path: str
    bytes: int


def examined(
    connection: sqlite3.Connection, known: KnownFile
) -> tuple[list[tuple[int, int]], bool]:
    """Return what is missing of a file's archive, and whether the rest is what was read.

    That is known by the checksum of all of it, where nothing is missing and none is left out.
    """
    size, mark = known.checkpoint.offset, known.checkpoint
    (frames,) = connection.execute(
        "select count(*) from archive where file_id = ?", (known.id,)
    ).fetchone()
    prefix, gaps, position = Prefix(), [], 0
    for start, data in archive.sound_pieces(connection, known.id):
        frames -= 1
        if start > position:
            gaps.append((position, start))
        position = start + len(data)
        prefix = prefix.extended(data)
    if position < size:
        gaps.append((position, size))
    is_marked = bool(mark.head_hash) and size > 0  # else it is read again, or was never archived
    is_as_read = not frames and (
        not is_marked or prefix.checkpoint() == mark or is_left_out(connection, known.id)
    )
    return gaps, is_as_read


def note_gaps(
    connection: sqlite3.Connection, source_id: int, known: KnownFile, gaps: list[tuple[int, int]]
) -> LostBytes | None:
    """Note which bytes of a file are not in its archive; return what is lost of it for good.

    What is on the disk is none of that: the next sync reads it again.
    """
    issues = [Issue(lost.BYTES_LOST, 0, None, start, end - start) for start, end in gaps]
    lost.note(connection, known.id, issues)
    (root,) = connection.execute("select root from sources where id = ?", (source_id,)).fetchone()
    if known.gone_at is None and lost.is_on_disk(root, known.path):
        return None
    count = sum(issue.byte_length for issue in issues) or known.checkpoint.offset
    return LostBytes(root, known.path, count)
