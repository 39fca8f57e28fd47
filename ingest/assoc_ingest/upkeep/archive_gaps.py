"""Gaps in the archive of a file, and whether the missing bytes can be read again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from ..entry import entry_names
from ..files import archive, lost
from ..files.exclusions import is_left_out
from ..files.packed import opened
from ..files.stored_names import original_parts, original_root
from ..files.tail import CHUNK, Prefix, read_at
from ..paths import is_there
from ..records import Issue
from ..source import KnownFile
from ..store.inserts import COUNTS

_HEAD = 1024
_COMPARED = 50  # lines


@dataclass(slots=True)
class LostBytes:
    """Archived bytes of a file that are lost for good."""

    root: str
    path: str
    bytes: int


def examined(
    connection: sqlite3.Connection, known: KnownFile
) -> tuple[list[tuple[int, int]], bool]:
    """Return the gaps in a file's archive, and whether the rest is what was read.

    The latter follows from the checksum, if nothing is missing and nothing was left out. Frames
    whose recorded number of lines is wrong or missing get the right one.
    """
    size, mark = known.checkpoint.offset, known.checkpoint
    (frames,) = connection.execute(
        "select count(*) from archive where file_id = ?", (known.id,)
    ).fetchone()
    prefix, covered, counts = Prefix(), [], []
    recorded = archive.line_counts(connection, known.id)
    for start, data in archive.sound_pieces(connection, known.id):
        covered.append((start, start + len(data)))
        if recorded.get(start) != (count := data.count(b"\n")):
            counts.append((count, known.id, start))
        prefix = prefix.extended(data)
    if counts:
        connection.executemany(
            "update archive set line_count = ? where file_id = ? and start = ?", counts
        )
    is_marked = (
        bool(mark.head_hash) and size > 0
    )  # otherwise it is to be read again, or was never archived
    is_as_read = len(covered) == frames and (
        not is_marked or prefix.checkpoint() == mark or is_left_out(connection, known.id)
    )
    return archive.uncovered(covered, size), is_as_read


def comes_back(connection: sqlite3.Connection, root: str, known: KnownFile) -> bool:
    """Is a file on disk, so that a sync can read it again?

    If it was gone, the file at its path may be another one, which does not count. An entry is as
    long there as its store.
    """
    if (names := entry_names(known.path)) is not None:
        return known.gone_at is None and is_there(original_root(root) / names[0])
    try:
        with opened(str(original_root(root).joinpath(*original_parts(known.path)))) as descriptor:
            return known.gone_at is None or has_its_bytes(connection, known, descriptor)
    except OSError:
        return False


def has_its_bytes(connection: sqlite3.Connection, known: KnownFile, descriptor: int) -> bool:
    """Does a file on disk have the remaining bytes of this one, at the same offsets?

    Raises OSError.
    """
    found = False
    for start, data in archive.sound_pieces(connection, known.id):
        for low in (0, *range(_HEAD, len(data), CHUNK)):  # most files differ early
            part = data[low : _HEAD if low == 0 else low + CHUNK]
            if read_at(descriptor, len(part), start + low) != part:
                return False
        found = True
    return found or _has_its_lines(connection, known, descriptor)


def _has_its_lines(connection: sqlite3.Connection, known: KnownFile, descriptor: int) -> bool:
    """If nothing of the archive is left: are the lines where the rows say they were?"""
    rows = connection.execute(
        "select byte_offset, byte_length, uuid from messages"
        f" where file_id = ? and uuid is not null limit {_COMPARED}",
        (known.id,),
    ).fetchall()
    return bool(rows) and all(
        uuid.encode() in read_at(descriptor, length, offset) for offset, length, uuid in rows
    )


def note_gaps(
    connection: sqlite3.Connection, source_id: int, known: KnownFile, gaps: list[tuple[int, int]]
) -> LostBytes | None:
    """Record which bytes of a file are not in its archive; return what is lost for good.

    A file that is still on disk is not lost: it is marked, and the next sync reads it again.
    """
    issues = [Issue(lost.BYTES_LOST, 0, None, start, end - start) for start, end in gaps]
    note_losses(connection, known.id, issues)
    (root,) = connection.execute("select root from sources where id = ?", (source_id,)).fetchone()
    if comes_back(connection, root, known):
        read_again_later(connection, known.id)
        return None
    count = sum(issue.byte_length for issue in issues) or known.checkpoint.offset
    return LostBytes(root, known.path, count) if count else None


def read_again_later(connection: sqlite3.Connection, file_id: int) -> None:
    """Make the next sync read the whole file again, if it still exists."""
    connection.execute(
        "update files set mtime_ns = 0, head_hash = iif(head_hash is null, null, x'') where id = ?",
        (file_id,),
    )


def note_losses(connection: sqlite3.Connection, file_id: int, issues: Iterable[Issue]) -> None:
    """Record what is lost of a file, in place of its earlier issues with the same reasons."""
    new = list(issues)
    connection.executemany(
        "delete from issues where file_id = ? and reason = ?",
        {(file_id, issue.reason) for issue in new},
    )
    connection.executemany(
        "insert into issues (file_id, reason, quarantined, sample, byte_offset, byte_length)"
        " values (?, ?, ?, ?, ?, ?)",
        ((file_id, *issue) for issue in new),
    )
    connection.execute(f"update files set {COUNTS} where id = ?", (file_id,))
