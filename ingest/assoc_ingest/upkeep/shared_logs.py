"""Logs with lines of several conversations, as the archive has them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

from ..files import archive
from ..files.archive import Frame
from ..files.exclusions import LEFT_OUT, is_unique_key, log_without
from ..files.parsing import Parser
from ..files.tail import Stretch, cut
from ..records import Issue
from ..source import Claim, Source

_KEY_BYTES = 64  # at least those of a key


def stretches(
    frames: Iterable[Frame], file_id: int, source: Source, claim: Claim
) -> Iterator[Stretch]:
    """Yield the lines of a log. After a lost frame, lines keep their offsets.

    Raises ArchiveError for a damaged frame.
    """
    for run in archive.runs(frames):
        pieces = (archive.unpacked(frame, file_id) for frame in run)
        yield from cut(pieces, run[0].start, lambda rest: source.complete_prefix(claim, rest))


def names_in_log(
    connection: sqlite3.Connection,
    file_id: int,
    source: Source,
    claim: Claim,
    keys: Collection[str],
) -> bool:
    """Does a log contain one of the uuids, even in a torn line or in somebody else's text?

    In an agent's file, only the lines count that `log_without` would leave out.
    """
    if not _has(connection, file_id, [key.encode() for key in keys if is_unique_key(key)]):
        return False
    if claim.agent_key is None:
        return True
    parser, frames = Parser(source, claim), archive.stored_frames(connection, file_id)
    return any(
        isinstance(record, Issue) and record.reason == LEFT_OUT
        for stretch in stretches(frames, file_id, source, claim)
        for record in log_without(keys, parser, stretch)[1]
    )


def _has(connection: sqlite3.Connection, file_id: int, wanted: list[bytes]) -> bool:
    before = b""
    for data in archive.read(connection, file_id):
        joined = before[-_KEY_BYTES:] + data.lower()  # a key may be split between two frames
        if any(key in joined for key in wanted):
            return True
        before = joined
    return False
