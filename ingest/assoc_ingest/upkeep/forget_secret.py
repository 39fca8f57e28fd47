"""Forgets a credential: exactly that text, wherever it stands in what was read.

1. The credential with the given fingerprint is found in the archive: it is stored nowhere else.
2. One transaction inserts a row into `forgotten_secrets`, which keeps every sync from storing it
   again; replaces it by spaces in the archive, and derives the rows of those files again; and
   blanks it in the rows that no archived bytes make: entries that went, earlier states of tasks.
3. The database is rewritten (`compact`), as after every forgetting.

The agent's own files are never changed. The credential is as valid as before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_bytes

from ..errors import ArchiveError, DatabaseError, NotFoundError, UsageError
from ..files import archive
from ..files.archive import Compressor, Frame
from ..files.changes import claim_of
from ..files.exclusions import issues_at, stretches_without
from ..files.tail import cut
from ..records import Record
from ..secrets.find import find_in
from ..secrets.forget import (
    KEY_BLOCK,
    LENGTH,
    ForgottenSecret,
    ForgottenSecrets,
    fingerprint,
    forgotten_secret,
    masked,
)
from ..secrets.rules import Secret
from ..source import LOG, KnownFile, Source
from ..sources import SOURCES
from ..store import rows as upserts
from ..store.batch import Batch, known_file
from ..store.database import Clock, open_reader, writing
from ..store.replay import derive_in
from .compact import check_room, rewrite
from .recover import kept_beside

_PROBED = 24  # letters by which rows are found: a line of a private key is not shorter


@dataclass(frozen=True, slots=True)
class SecretForgetting:
    """A credential that is forgotten, or would be."""

    fingerprint: str
    kind: str
    masked: str
    places: int
    """Number of its places in the archive."""
    files: list[str]
    """Paths of the files that contain it."""
    within_words: int
    """Places where its letters are a part of a longer word; they stay."""
    put_aside: list[str]
    """Damaged databases next to this one, which may still contain it."""
    is_pending: bool = False
    """Traces may remain in the database file, because it could not be rewritten."""


def forget_secret(
    database: Path,
    name: str,
    *,
    dry_run: bool,
    announce: Callable[[SecretForgetting], None],
) -> None:
    """Forget the credential whose fingerprint is, or begins with, `name`.

    Calls `announce` as `forget` does, with what was forgotten, or with `dry_run` would be. Raises
    NotFoundError if no credential has this fingerprint, UsageError if several have, DatabaseError
    if archived bytes are damaged, and what `forget` raises if the database cannot be rewritten.
    """
    reader = open_reader(database)
    try:
        secret = named(reader, name)
        row = forgotten_secret(secret, _salt(reader))
        about = _described(reader, secret, row) if dry_run else None
    finally:
        reader.close()
    try:
        if not dry_run:
            with writing(database) as connection:
                check_room(database)
                done = _described(connection, secret, row)
                _remove(connection, secret, row)
                about = replace(done, is_pending=True)  # it has happened, even if this fails
                rewrite(connection, database)
                about = done
    finally:
        if about is not None:
            announce(about)


def _salt(connection: sqlite3.Connection) -> bytes:
    """Return the salt of the database; of a new one if nothing is forgotten yet."""
    row = connection.execute("select salt from forgotten_secrets limit 1").fetchone()
    return bytes(row[0]) if row is not None else token_bytes(16)


def _described(
    connection: sqlite3.Connection, secret: Secret, row: ForgottenSecret
) -> SecretForgetting:
    found = list(files_with(connection, secret, row))
    return SecretForgetting(
        fingerprint(secret.text),
        secret.kind,
        masked(secret),
        sum(len(one.issues) for one in found),
        [f"{one.file.root}/{one.file.known.path}" for one in found if one.issues],
        sum(one.within_words for one in found),
        kept_beside(connection),
    )


# -- the transaction -----------------------------------------------------------------------------


def _remove(connection: sqlite3.Connection, secret: Secret, row: ForgottenSecret) -> None:
    connection.execute("pragma secure_delete = on").fetchall()
    with Batch(connection, Clock(connection).now()) as batch:
        start, count = row.core or (None, None)
        connection.execute(
            "insert into forgotten_secrets (fingerprint, rule, length, core_start, core_length,"
            " salt, hash, forgotten_at, is_pending) values (?, ?, ?, ?, ?, ?, ?, ?, 1)"
            " on conflict do update set is_pending = 1",
            (
                fingerprint(secret.text), row.rule, row.length, start, count, row.salt, row.hash,
                batch.now,
            ),
        )  # fmt: skip
        probe = secret.text[:_PROBED] if row.rule == KEY_BLOCK else secret.text
        changed = []
        for found in files_with(connection, secret, row):
            if found.issues:
                _replace_archive(
                    connection, file_without(connection, found.file, secret, row, packs=True)
                )
                _drop_entries(batch, found.file.known, probe)
                changed.append(found.file.known.id)
        derive_in(batch, changed)
        _blank_rows(batch, ForgottenSecrets.of([row]), probe)


def _replace_archive(connection: sqlite3.Connection, found: BlankedFile) -> None:
    file_id = found.file.known.id
    archive.clear(connection, file_id)
    archive.append(connection, file_id, found.frames)
    connection.executemany(
        "insert into issues (file_id, reason, quarantined, sample, byte_offset, byte_length)"
        " values (?, ?, ?, ?, ?, ?)",
        ((file_id, *issue) for issue in found.issues),
    )


def _drop_entries(batch: Batch, file: KnownFile, probe: str) -> None:
    """Delete the entries of a list that have it, so that they are not kept as ones that went."""
    for table, condition in upserts.CONDITIONS.items():
        columns = " or ".join(f'instr("{name}", :probe)' for name in _texts(batch, table))
        rows = batch.connection.execute(
            f"select rowid from {table} where file_id = :file and {condition}"
            f" and gone_at is :gone and ({columns})",
            {"file": file.id, "probe": probe, "gone": file.gone_at},
        ).fetchall()
        if rows:
            batch.touch(file.id)
            batch.connection.executemany(f"delete from {table} where rowid = ?", rows)


def _blank_rows(batch: Batch, secrets: ForgottenSecrets, probe: str) -> None:
    """Blank a credential in all rows: some follow from bytes that were never archived."""
    tables = batch.connection.execute(
        "select name from pragma_table_list where schema = 'main' and type = 'table'"
        " and name not like 'sqlite\\_%' escape '\\'"
    ).fetchall()
    for (table,) in tables:
        has_file = "file_id" in _columns(batch, table)
        for column in _texts(batch, table):
            rows = batch.connection.execute(
                f'select rowid, "{column}" from "{table}" where instr("{column}", ?)', (probe,)
            ).fetchall()
            for rowid, value in rows:
                data, spans = secrets.without(value.encode(), is_log=False)
                if spans:
                    if has_file:
                        _touch(batch, table, rowid)
                    _write(batch, table, column, rowid, data.decode())


def _touch(batch: Batch, table: str, rowid: int) -> None:
    """Note that what follows from the file of a row has to be derived again."""
    (file_id,) = batch.connection.execute(
        f'select file_id from "{table}" where rowid = ?', (rowid,)
    ).fetchone()
    if file_id is not None:
        batch.touch(file_id)


def _write(batch: Batch, table: str, column: str, rowid: int, value: str) -> None:
    try:
        batch.connection.execute(
            f'update "{table}" set "{column}" = ? where rowid = ?', (value, rowid)
        )
    except sqlite3.IntegrityError:  # there is an entry already that says the same without it
        batch.connection.execute(f'delete from "{table}" where rowid = ?', (rowid,))


def _texts(batch: Batch, table: str) -> list[str]:
    rows = batch.connection.execute(
        "select name from pragma_table_xinfo(?) where lower(type) = 'text' and hidden = 0", (table,)
    )
    return [name for (name,) in rows]


def _columns(batch: Batch, table: str) -> set[str]:
    rows = batch.connection.execute("select name from pragma_table_info(?)", (table,))
    return {name for (name,) in rows}


# -- finding it in the archive; nothing is written -----------------------------------------------

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
    """Yield the files that contain a credential, without their replaced bytes."""
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
