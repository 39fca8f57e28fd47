"""Forgets a conversation or a file for good.

1. The files and rows that belong to it are found (`ownership`).
2. One transaction removes them, with `secure_delete` on, so that freed pages are overwritten. It
   inserts rows into `forgotten`, which keep every sync from reading the data again; removes the
   conversation's own files; replaces its lines in the archive of shared logs by spaces, and derives
   the rows of those logs again; removes its entries of shared documents, and their archived bytes.
3. The database is rewritten (`compact`): until then, its words remain in the full-text indexes, in
   free pages and in the log. After a kill, `is_pending` is still set, and `compact` finishes.

The agent's own files are never changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..files import archive
from ..files.archive import Compressor
from ..files.changes import LONG_LINE
from ..files.classify import first_records
from ..files.exclusions import (
    LEFT_OUT,
    Exclusion,
    is_unique_key,
    issues_outside_archive,
    log_without,
)
from ..files.parsing import Parser
from ..files.tail import Prefix
from ..records import Issue
from ..sources import SOURCES
from ..sql import id_list
from ..store.batch import Batch
from ..store.clock import Clock
from ..store.database import open_reader, writing
from ..store.inserts import COUNTS
from ..store.known_files import known_file
from .compact import check_room, rewrite
from .damaged_copies import kept_beside
from .forget_target import Target, find
from .ownership import (
    REFERENCES,
    Belongings,
    Copy,
    Key,
    StoredFile,
    belongings,
    copies,
    session_ids,
)
from .shared_logs import stretches


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that is forgotten."""

    session_key: str
    title: str | None
    root: str
    messages: int


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What is forgotten, or would be."""

    conversations: list[Conversation]
    files: list[str]
    """Paths of the files that are removed as a whole."""
    bytes: int
    messages: int
    shared: list[str]
    """Paths of files in which lines or entries are left out."""
    copies: list[Copy]
    """Other conversations that hold copies; they stay."""
    unnamed_prompts: int
    """Prompts in the history with the same text that name no conversation; they stay."""
    put_aside: list[str]
    """Damaged databases next to this one, which may still contain the data."""
    is_pending: bool = False
    """Traces may remain in the database file, because it could not be rewritten."""


def forget(
    database: Path,
    target: Target,
    *,
    with_copies: bool,
    dry_run: bool,
    announce: Callable[[Forgetting], None],
) -> None:
    """Forget what `target` names; with `with_copies`, also the conversations that repeat it.

    Calls `announce` with what was forgotten, or with `dry_run` would be, after the database is
    closed, so that slow output blocks no one. Raises NotFoundError or UsageError if the target is
    missing or ambiguous, DatabaseIOError if the disk has no room to rewrite the database (then
    nothing is changed), and BusyError if another process writes or, after `announce`, if a reader
    keeps old pages: then `compact` has to be run.
    """
    reader = open_reader(database)  # raises if there is no database; `writing` would create one
    try:
        keys, files = find(reader, target)
        forgetting = _look(reader, keys, files, with_copies)[1] if dry_run else None
    finally:
        reader.close()
    try:
        if not dry_run:
            with writing(database) as connection:
                check_room(database)
                found, about = _settled(connection, target, with_copies)
                _remove(connection, found)
                # From here on it has happened, and is reported even if the rewrite fails.
                forgetting = replace(about, is_pending=True)
                rewrite(connection, database)
                forgetting = about
    finally:
        if forgetting is not None:
            announce(forgetting)


def _settled(
    connection: sqlite3.Connection, target: Target, with_copies: bool
) -> tuple[Belongings, Forgetting]:
    """Find the target again, now that no one else writes."""
    connection.row_factory = sqlite3.Row
    try:
        keys, files = find(connection, target)
    finally:
        connection.row_factory = None
    return _look(connection, keys, files, with_copies)


def _look(
    connection: sqlite3.Connection, keys: set[Key], files: list[StoredFile], with_copies: bool
) -> tuple[Belongings, Forgetting]:
    found = belongings(connection, keys, files)
    others = copies(connection, found.keys, found.own)
    while with_copies and others:
        more = {
            (None if is_unique_key(copy.session_key) else copy.root, copy.session_key)
            for copy in others
        }
        found = belongings(connection, found.keys | more, files)
        others = copies(connection, found.keys, found.own)
    return found, _described(connection, found, others)


def _described(connection: sqlite3.Connection, found: Belongings, others: list[Copy]) -> Forgetting:
    own = id_list(found.own)
    sessions = session_ids(connection, found.keys)
    rows = connection.execute(
        "select s.session_key, s.title, x.root,"
        " (select count(*) from messages m where m.session_id = s.id)"
        " from sessions s join sources x on x.id = s.source_id"
        f" where s.id in ({id_list(sessions)}) order by s.ended_at, s.session_key"
    ).fetchall()
    (size, messages, unnamed) = connection.execute(
        f"select (select coalesce(sum(size), 0) from files where id in ({own})),"
        f" (select count(*) from messages where file_id in ({own})),"
        " (select count(*) from prompts where session_key is null and text in ("
        f"  select text from messages where file_id in ({own}) and kind = 'prompt'))"
    ).fetchone()
    paths = [f"{file.root}/{file.path}" for file in found.own.values()]
    shared = [f"{file.root}/{file.path}" for file in found.shared]
    conversations = [Conversation(*row) for row in rows]
    return Forgetting(
        conversations, paths, size, messages, shared, others, unnamed, kept_beside(connection)
    )


# -- the transaction -----------------------------------------------------------------------------


def _remove(connection: sqlite3.Connection, found: Belongings) -> None:
    connection.execute("pragma secure_delete = on").fetchall()
    with Batch(connection, Clock(connection).now()) as batch:
        _note(connection, found, batch.now)
        for root, key in found.keys:
            connection.execute(
                "delete from tasks where list_key = ?1 and source_id in"
                " (select id from sources where coalesce(?2, root) = root)",
                (key, root),
            )
        for file in found.shared:
            mine = frozenset(key for root, key in found.keys if root in (None, file.root))
            if file.is_log:
                _blank_lines(connection, batch, file, mine)
            else:
                _drop_entries(connection, batch, file, mine)
        connection.execute(
            "update issues set sample = null where quarantined = 1"
            f" and file_id in ({id_list(found.documents)})"
        )
        batch.remove(found.own, everywhere=True)


def _note(connection: sqlite3.Connection, found: Belongings, moment: str) -> None:
    """Insert the rows of `forgotten`, as pending until the database file has no traces left."""
    exclusions = {Exclusion(key, None, root) for root, key in found.keys} | found.exclusions
    connection.executemany(
        "insert into forgotten (session_key, path, root, content_length, content_hash,"
        " forgotten_at, is_pending) values (?, ?, ?, ?, ?, ?, 1)"
        " on conflict do update set is_pending = 1",
        (
            (*exclusion[:3], *(exclusion.content or (None, None)), moment)
            for exclusion in sorted(exclusions, key=str)
        ),
    )


def _blank_lines(
    connection: sqlite3.Connection, batch: Batch, file: StoredFile, keys: frozenset[str]
) -> None:
    """Re-parse a log from its archive, without the lines that name the conversation."""
    known = known_file(connection, file.id)
    if known is None:
        return
    source, claim = SOURCES[file.source], file.claim
    frames = archive.stored_frames(connection, file.id)
    blanked_before = issues_outside_archive(connection, file.id, is_log=True)
    opened = batch.open_archived(file.source_id, claim, known)
    archive.clear(connection, file.id)
    batch.add(opened, blanked_before, [], None, 0)
    compressor, parser = Compressor(), Parser(source, claim)
    for stretch in stretches(frames, file.id, source, claim):
        data, records = log_without(keys, parser, stretch)
        records.extend(first_records(claim, stretch.start))
        if stretch.long_line:
            records.append(Issue(LONG_LINE, 1, None, stretch.first_line, stretch.long_line))
        batch.add(opened, records, compressor.frames(stretch.start, data), None, len(data))
        opened.context = parser.context


def _drop_entries(
    connection: sqlite3.Connection, batch: Batch, file: StoredFile, keys: frozenset[str]
) -> None:
    """Remove a document's rows that name the conversation, and its archived bytes.

    Its checkpoint becomes that of a document of which only the hash is stored, as in a sync.
    """
    batch.touch(file.id)
    for table, column in REFERENCES.items():
        connection.executemany(
            f"delete from {table} where file_id = ? and {column} = ?",
            ((file.id, key) for key in sorted(keys)),
        )
    archive.clear(connection, file.id)
    connection.execute("delete from issues where file_id = ? and reason = ?", (file.id, LEFT_OUT))
    connection.execute("update issues set sample = null where file_id = ?", (file.id,))
    connection.execute(
        "insert into issues (reason, quarantined, file_id, byte_offset, byte_length)"
        " values (?, 0, ?, 0, (select size from files where id = ?))",
        (LEFT_OUT, file.id, file.id),
    )
    connection.execute(
        "update files set offset = 0, head_hash = ? where id = ?",
        (Prefix().checkpoint().head_hash, file.id),
    )
    connection.execute(f"update files set {COUNTS} where id = ?", (file.id,))
