"""The files of a database as a rebuild takes them, and the stretches of lines in their archive.

Worker processes parse the archive ahead of the rebuild if there is enough of it for that to pay.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from ..errors import ArchiveError
from ..files import archive, lost
from ..files.agent_files import AgentFiles
from ..files.classify import lines_of
from ..files.replay import Replayed, replay
from ..source import FOREIGN_DOCUMENT, LOG, PRIVATE, UNREAD, Claim, KnownFile, Source, claim_at
from ..sources import SOURCES
from ..store.known_files import known_file
from ..workers import replaying


class File(NamedTuple):
    """A file of the database, and the source that reads it."""

    source: Source
    source_id: int
    known: KnownFile


def files_of(connection: sqlite3.Connection, which: str = "true") -> Iterator[File]:
    """Yield the files of the sources that this version knows, in the order of their ids."""
    rows = connection.execute(
        "select f.id, f.source_id, s.kind from files f join sources s on s.id = f.source_id"
        f" where {which} order by f.id"
    ).fetchall()
    for file_id, source_id, kind in rows:
        known = known_file(connection, file_id)
        if known is not None and kind in SOURCES:
            yield File(SOURCES[kind], source_id, known)


def parsed(
    connection: sqlite3.Connection,
    files: Iterable[File],
    agents: AgentFiles,
    count: int,
    claims: Mapping[int, Claim | None] | None = None,
) -> Generator[tuple[File, list[bytes] | None], None, None]:
    """Yield the files with what workers made of their archive, None if they made nothing.

    `claims` are those of the files, if they are known; None for one that no worker should parse.
    """
    if count == 1:
        yield from ((file, None) for file in files)
        return
    waiting: deque[File] = deque()

    def sent() -> Iterator[replaying.Archived]:
        for file in files:
            waiting.append(file)
            claim = _claim_to_parse(connection, file) if claims is None else claims[file.known.id]
            yield _to_parse(connection, file, claim, agents)

    with closing(replaying.replayed(sent(), count)) as results:
        for pieces in results:
            yield waiting.popleft(), pieces


def _claim_to_parse(connection: sqlite3.Connection, file: File) -> Claim | None:
    """Return the claim of a file that a worker may parse, None of one that it may not."""
    source, _, known = file
    if lost.is_unnamed(known.path):
        return None
    claim = claim_of(connection, source, known)
    return claim if claim is not None and is_archived(source, claim, known) else None


def _to_parse(
    connection: sqlite3.Connection, file: File, claim: Claim | None, agents: AgentFiles
) -> replaying.Archived:
    """Return what a worker needs to parse a file; nothing for one that it should not parse."""
    source, source_id, known = file
    frames = []
    if claim is not None and replaying.worth_sending(known.checkpoint.offset):
        claim = agents.with_files(source, source_id, claim)
        frames = archive.stored_frames(connection, known.id)
    return replaying.Archived(known.id, source.name, claim, tuple(frames))


def stretches_of(
    connection: sqlite3.Connection,
    source: Source,
    claim: Claim,
    known: KnownFile,
    pieces: list[bytes] | None,
) -> Iterable[Replayed]:
    """Yield the stretches that a worker has made of a file, or make them here."""
    if pieces is not None:
        return replaying.stretches(pieces)
    archived = archive.read_whole(connection, known.id, known.checkpoint.offset)
    return replay(source, claim, archived)


def claim_of(
    connection: sqlite3.Connection, source: Source, known: KnownFile, *, is_sound: bool = False
) -> Claim | None:
    """Return the claim of a file, from its path and, if that is not enough, its first lines.

    If its archive `is_sound`, no more of it is unpacked than is needed.
    """
    if lost.is_unnamed(known.path):
        claim = lost.claim_of_unnamed(source.name, known)
        return claim and lost.with_places(connection, claim, known.id)
    claim = claim_at(source, known.path)
    if claim is None or source.shape(claim) != LOG:
        return claim
    if known.kind == FOREIGN_DOCUMENT:  # it is not archived
        return source.as_kind(claim, known.kind)
    read = archive.read_beginning if is_sound else archive.read
    try:
        return source.classify(claim, lines_of(read(connection, known.id)))
    except ArchiveError:
        return source.as_kind(claim, known.kind)


def is_archived(source: Source, claim: Claim, known: KnownFile) -> bool:
    """Can the rows of the file be derived from the archive alone?"""
    shape = source.shape(claim)
    if shape == LOG:
        return True
    return shape not in (PRIVATE, UNREAD) and known.checkpoint.offset > 0
