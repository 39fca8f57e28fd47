"""Finds a credential in the archive by its fingerprint, and what the files are without it.

Nothing is written here. Files are looked at in the stretches in which a sync reads them, so that
forgetting leaves what a sync would.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import ArchiveError, DatabaseError, NotFoundError, UsageError
from ..files import archive
from ..files.archive import Compressor, Frame
from ..files.fingerprints import LENGTH, fingerprint
from ..files.replay import claim_of
from ..files.secret_exclusions import (
    ForgottenSecret,
    ForgottenSecrets,
    issues_at,
    stretches_without,
)
from ..files.secret_rules import Secret
from ..files.secret_scan import find_in
from ..files.tail import cut
from ..records import Record
from ..source import LOG, KnownFile, Source
from ..sources import SOURCES
from ..store.known_files import known_file

_LEAST = 6  # letters of a fingerprint that are enough to name it


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with archived bytes."""

    known: KnownFile
    source: Source
    root: str
    is_log: bool


@dataclass(frozen=True, slots=True)
class BlankedFile:
    """What a file is without a credential: its frames and its issues."""

    file: StoredFile
    frames: list[Frame]
    issues: list[Record]
    within_words: int


def named(connection: sqlite3.Connection, name: str) -> Secret:
    """Return the credential with a fingerprint; scanning stops where the name is a whole one."""
    name = name.strip().lower()
    if not _LEAST <= len(name) <= LENGTH or not set(name) <= set("0123456789abcdef"):
        raise UsageError(
            f"A fingerprint has {LENGTH} hexadecimal digits. To see them: assoc-ingest secrets"
        )
    found: dict[str, Secret] = {}
    for file in _stored(connection):
        pieces = archive.sound_pieces(connection, file.known.id)
        for secret in find_in(pieces, is_log=file.is_log):
            key = fingerprint(secret.text)
            if key == name:
                return secret
            if key.startswith(name):
                found[key] = secret
    if len(found) > 1:
        raise UsageError(f"{len(found)} fingerprints begin with {name}: {', '.join(found)}")
    if not found:
        raise NotFoundError(
            f"No credential has the fingerprint {name}; it may be forgotten already. "
            "To see them: assoc-ingest secrets, assoc-ingest forget --list"
        )
    return found.popitem()[1]


def _stored(connection: sqlite3.Connection) -> Iterator[StoredFile]:
    rows = connection.execute(
        "select f.id, s.kind, s.root from files f join sources s on s.id = f.source_id"
        " where f.offset > 0 order by f.id"
    ).fetchall()
    for file_id, kind, root in rows:
        known = known_file(connection, file_id)
        source = SOURCES.get(kind)
        if known is None or source is None:
            continue
        claim = claim_of(source, known)
        is_log = claim is None or source.shape(claim) == LOG
        yield StoredFile(known, source, root, is_log)


def files_with(
    connection: sqlite3.Connection, secret: Secret, row: ForgottenSecret
) -> Iterator[BlankedFile]:
    """Yield the files in which a credential stands, without the bytes that replace theirs."""
    for file in _stored(connection):
        found = file_without(connection, file, secret, row, packs=False)
        if found.issues or found.within_words:
            yield found


def file_without(
    connection: sqlite3.Connection,
    file: StoredFile,
    secret: Secret,
    row: ForgottenSecret,
    *,
    packs: bool,
) -> BlankedFile:
    """Return what a file is without a credential; its frames only with `packs`.

    Raises DatabaseError if its archive cannot be read.
    """
    secrets, text = ForgottenSecrets.of([row]), secret.text.encode("latin-1")
    frames: list[Frame] = []
    issues: list[Record] = []
    within, compressor = 0, Compressor()
    try:
        for run in archive.runs(archive.stored_frames(connection, file.known.id)):
            pieces = (archive.unpacked(frame, file.known.id) for frame in run)
            for start, data, left_out in _parts(secrets, file, run[0].start, pieces):
                within += data.count(text)
                issues += left_out
                frames += compressor.frames(start, data) if packs else []
    except ArchiveError as error:
        raise DatabaseError(
            f"{file.root}/{file.known.path}: its archived bytes are damaged. Nothing was "
            "forgotten. First run: assoc-ingest rebuild"
        ) from error
    return BlankedFile(file, frames, issues, within)


def _parts(
    secrets: ForgottenSecrets, file: StoredFile, start: int, pieces: Iterable[bytes]
) -> Iterator[tuple[int, bytes, list[Record]]]:
    """Yield what a sync would read together: its offset, its bytes without them, and the issues."""
    claim = claim_of(file.source, file.known)
    if not file.is_log:
        data, spans = secrets.without(b"".join(pieces), is_log=False)
        yield start, data, issues_at(start, spans)
        return
    complete = (lambda rest: file.source.complete_prefix(claim, rest)) if claim else len
    for stretch, _, issues in stretches_without(secrets, cut(pieces, start, complete)):
        yield stretch.start, stretch.data, issues
