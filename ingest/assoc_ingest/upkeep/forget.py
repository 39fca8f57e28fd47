"""Forgets a conversation, a file or a credential for good.

1. What belongs to a conversation is found: its own files, its lines in files that it shares with
   others, and copies. A credential, of which only the fingerprint is given, is found in the
   archive: it is stored nowhere else.
2. One transaction removes it, with `secure_delete` on, so that freed pages are overwritten. It
   inserts rows into `forgotten` or `forgotten_secrets`, which keep every sync from reading the data
   again; removes the conversation's own files; replaces its lines, or the credential, by spaces in
   the archive of other files, and derives the rows of these files again; and removes or blanks it
   in rows that do not follow from archived bytes.
3. The database is rewritten (`compact`): until then, its words remain in the full-text indexes, in
   free pages and in the log. After a kill, `is_pending` is still set, and `compact` finishes.

The agent's own files are never changed, and a credential stays valid.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_bytes

from ..ask.projects import find_projects
from ..ask.refs import find_session
from ..derive.references import FOLDED
from ..errors import ArchiveError, DatabaseError, NotFoundError, UsageError
from ..files import archive, walk
from ..files.archive import Compressor, Frame
from ..files.changes import claim_of
from ..files.exclusions import (
    LEFT_OUT,
    REASONS,
    Content,
    Exclusion,
    Originals,
    content_of,
    first_of,
    is_of,
    is_unique_key,
    issues_at,
    key_in_root,
    log_without,
    owners,
    project_place,
    stretches_without,
)
from ..files.tail import Parser, Prefix, Stretch, cut
from ..files.walk import stored_root
from ..paths import real_path
from ..records import Issue, Record
from ..secrets.find import find_in
from ..secrets.forget import (
    KEY_BLOCK,
    LENGTH,
    ForgottenSecrets,
    fingerprint,
    forgotten_secret,
    masked,
)
from ..secrets.rules import Secret
from ..source import LOG, UNREAD, Checkpoint, Claim, Source, claim_at, parts_of
from ..sources import SOURCES
from ..sql import id_list
from ..store.batch import Batch
from ..store.database import Clock, open_reader, writing
from ..store.replay import ArchivedFile, agents_may_change, derive_in, files_of
from ..store.rows import CONDITIONS, COUNTS
from ..terminal import to_copy
from .compact import check_room, rewrite
from .recover import kept_beside


@dataclass(frozen=True, slots=True)
class Target:
    """A session's key or a file's name, a project, or the fingerprint of a credential."""

    name: str | None = None
    project: str | None = None
    root: str | None = None
    """The directory, absolute or relative, of one of several roots that have it."""
    secret: str | None = None


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
    kept_notes: list[str]
    """Notes on it, which stay: they are the user's own."""
    quoting_notes: list[str]
    """Notes that repeat a sentence of it, and are removed, too."""
    is_pending: bool = False
    """Traces may remain in the database file, because it could not be rewritten."""


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


def forget(
    database: Path,
    target: Target,
    *,
    with_copies: bool = False,
    dry_run: bool,
    announce: Callable[[Forgetting | SecretForgetting], None],
) -> None:
    """Forget what `target` names; with `with_copies`, also the conversations that repeat it.

    Calls `announce` with what was forgotten, or with `dry_run` would be, after the database is
    closed, so that slow output blocks no one. Raises NotFoundError or UsageError if the target is
    missing or ambiguous, DatabaseError if a credential is in archived bytes that are damaged,
    DatabaseIOError if the disk has no room to rewrite the database (then nothing is changed), and
    BusyError if another process writes or, after `announce`, if a reader keeps old pages: then
    `compact` has to be run.
    """
    # `open_reader` raises if there is no database; `writing` would create one.
    with closing(open_reader(database)) as reader:
        matter = _Credential(reader, target) if target.secret else _Conversations(reader, target)
        forgetting = matter.look(reader, with_copies) if dry_run else None
    try:
        if not dry_run:
            with writing(database) as connection:
                check_room(database)
                about = matter.look(connection, with_copies)
                connection.execute("pragma secure_delete = on").fetchall()
                now = Clock(connection).now()
                with Batch(connection, now) as batch, agents_may_change(batch):
                    matter.remove(batch)
                # From here on it has happened, and is reported even if the rewrite fails.
                forgetting = replace(about, is_pending=True)
                rewrite(connection, database)
                forgetting = about
    finally:
        if forgetting is not None:
            announce(forgetting)


def _blank_in_archive(
    batch: Batch, file_id: int, frames: Iterable[Frame], issues: Iterable[Record]
) -> None:
    """Replace the archive of a file by one with spaces in some places; issues say where."""
    archive.clear(batch.connection, file_id)
    archive.append(batch.connection, file_id, frames)
    batch.connection.executemany(
        "insert into issues (file_id, reason, quarantined, sample, byte_offset, byte_length)"
        " values (?, ?, ?, ?, ?, ?)",
        ((file_id, *issue) for issue in issues),
    )


# ------------------------------------------------------------------------------------------------
# Conversations and files.


REFERENCES = {
    "prompts": "session_key",
    "hook_events": "session_key",
    "links": "session_key",
    "session_entries": "session_key",
    "documents": "session_key",
    "todos": "session_key",
    "tasks": "list_key",
    "task_links": "list_key",
    "task_changes": "list_key",
}
"""Tables whose rows name a conversation in a column of their own, and that column."""

Key = tuple[str | None, str]
"""The root of a conversation (None: any root), and its session key."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A row of `files`, with its root and its claim."""

    id: int
    path: str
    kind: str
    session_key: str | None
    root: str
    source: str
    source_id: int
    claim: Claim
    offset: int
    content: Content | None

    @property
    def reader(self) -> Source:
        return SOURCES[self.source]

    @property
    def is_log(self) -> bool:
        return self.reader.shape(self.claim) == LOG

    @property
    def is_unread(self) -> bool:
        """Is it never opened, so that only its existence is known?"""
        return self.reader.shape(self.claim) == UNREAD


@dataclass(slots=True)
class Belongings:
    """What belongs to one or several conversations in the database."""

    keys: set[Key]
    own: dict[int, StoredFile] = field(default_factory=dict)
    exclusions: set[Exclusion] = field(default_factory=set)
    """Its files that a sync has to ignore although no uuid in their path says whose they are."""
    shared: list[StoredFile] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    """Documents that belong to no single conversation: their issues may quote this one."""
    projects: dict[tuple[int, str], Exclusion] = field(default_factory=dict)
    """What keeps a project from coming back as an empty directory, by the root's id and its key."""


def stored_files(
    connection: sqlite3.Connection, ids: Iterable[int] | None = None
) -> Iterator[StoredFile]:
    """Yield the files that a source claims or whose path is lost; with `ids`, only those."""
    rows = connection.execute(
        "select f.id, f.path, f.kind, f.session_key, x.root, x.kind, x.id,"
        " f.agent_key, f.offset, f.head_hash, f.tail_hash, f.prefix_crc"
        " from files f join sources x on x.id = f.source_id"
        f" where {'1' if ids is None else f'f.id in ({id_list(ids)})'}"
        " order by x.root, f.path, f.generation"
    )
    for file_id, path, kind, key, root, name, source_id, agent, *mark in rows.fetchall():
        source = SOURCES.get(name)
        claim = claim_at(source, path) if source else None
        claim = source.as_kind(claim, kind) if source and claim is not None else None
        if source is not None and walk.is_unnamed(path):
            claim = Claim(name, kind, session_key=key, agent_key=agent)
        if claim is not None:
            content = content_of(Checkpoint(*mark)) if mark[0] else None
            yield StoredFile(
                file_id, path, kind, key, root, name, source_id, claim, mark[0], content
            )


class _Conversations:
    """The conversations and files that a target names, with what belongs to them."""

    def __init__(self, connection: sqlite3.Connection, target: Target) -> None:
        """Raises NotFoundError if nothing matches, and UsageError if several things do."""
        self._target = target
        find(connection, target)

    def look(self, connection: sqlite3.Connection, with_copies: bool) -> Forgetting:
        """Find everything, now that no one else writes, and return what it is."""
        row_factory, connection.row_factory = connection.row_factory, sqlite3.Row
        try:
            keys, files = find(connection, self._target)
            projects = _projects(connection, self._target)
        finally:
            connection.row_factory = row_factory
        belongings = find_belongings(connection, keys, files)
        others = copies(connection, belongings.keys, belongings.own)
        while with_copies and others:
            more = {
                (None if is_unique_key(copy.session_key) else copy.root, copy.session_key)
                for copy in others
            }
            belongings = find_belongings(connection, belongings.keys | more, files)
            others = copies(connection, belongings.keys, belongings.own)
        belongings.projects = projects
        self._belongings = belongings
        return _described(connection, belongings, others)

    def remove(self, batch: Batch) -> None:
        """Remove it, in the transaction of the batch."""
        connection, belongings = batch.connection, self._belongings
        _note(connection, belongings, batch.now)
        batch.note_directories(dict.fromkeys(belongings.projects))
        for root, key in belongings.keys:
            connection.execute(
                "delete from tasks where list_key = ?1 and source_id in"
                " (select id from sources where coalesce(?2, root) = root)",
                (key, root),
            )
        for file in belongings.shared:
            keys = _keys_in(belongings.keys, file.root)
            if file.is_log:
                _blank_lines(batch, file, keys)
            else:
                _drop_entries(batch, file, keys)
        connection.execute(
            "update issues set sample = null where quarantined = 1"
            f" and file_id in ({id_list(belongings.documents)})"
        )
        connection.execute(
            f"delete from notes where id in ({id_list(_quoting(connection, belongings))})"
        )
        batch.remove(belongings.own, everywhere=True)


def _described(
    connection: sqlite3.Connection, belongings: Belongings, others: list[Copy]
) -> Forgetting:
    own = id_list(belongings.own)
    sessions = session_ids(connection, belongings.keys)
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
    paths = [f"{file.root}/{file.path}" for file in belongings.own.values()]
    shared = [f"{file.root}/{file.path}" for file in belongings.shared]
    conversations = [Conversation(*row) for row in rows]
    quoting = _quoting(connection, belongings)
    kept = _notes_on(connection, belongings) - quoting
    return Forgetting(
        conversations, paths, size, messages, shared, others, unnamed, kept_beside(connection),
        [f"note:{number}" for number in sorted(kept)],
        [f"note:{number}" for number in sorted(quoting)],
    )  # fmt: skip


_SENTENCE = 20
"""Letters of a sentence that hardly stands in a conversation and in a note by chance."""

_ends = re.compile(r"[\n.!?;:\"`“”„«»]+")


def _notes_on(connection: sqlite3.Connection, belongings: Belongings) -> set[int]:
    rows = connection.execute("select id, session_key from notes where session_key is not null")
    keys = {key for _, key in belongings.keys}
    return {id_ for id_, key in rows if key in keys}


def _quoting(connection: sqlite3.Connection, belongings: Belongings) -> set[int]:
    """Return the notes that repeat a sentence of what is forgotten, whatever they are about."""
    rows = connection.execute(
        "select id, coalesce(text, '') || char(10) || coalesce(title, '') from notes"
    )
    sentences: dict[str, set[int]] = {}
    for id_, text in rows:
        for sentence in map(str.strip, _ends.split(text)):
            if len(sentence) >= _SENTENCE:
                sentences.setdefault(sentence, set()).add(id_)
    if not sentences:
        return set()
    own = id_list(belongings.own)
    texts = connection.execute(
        f"select coalesce(text, tool_text) from messages where file_id in ({own})"
        f" union all select words from searchable where file_id in ({own}) and what <> 'note'"
    )
    found: set[int] = set()
    for (text,) in texts:
        for sentence in [sentence for sentence in sentences if sentence in (text or "")]:
            found |= sentences.pop(sentence)
    return found


def _note(connection: sqlite3.Connection, belongings: Belongings, moment: str) -> None:
    """Insert the rows of `forgotten`, as pending until the database file has no traces left."""
    exclusions = {
        Exclusion(key, None, root) for root, key in belongings.keys
    } | belongings.exclusions
    exclusions.update(belongings.projects.values())
    connection.executemany(
        "insert into forgotten (session_key, path, root, content_length, content_hash,"
        " forgotten_at, is_pending) values (?, ?, ?, ?, ?, ?, 1)"
        " on conflict do update set is_pending = 1",
        (
            (*exclusion[:3], *(exclusion.content or (None, None)), moment)
            for exclusion in sorted(exclusions, key=str)
        ),
    )


def _blank_lines(batch: Batch, file: StoredFile, keys: frozenset[str]) -> None:
    """Blank the lines of a log that name the conversation."""
    frames: list[Frame] = []
    issues: list[Record] = []
    compressor, parser = Compressor(), Parser(file.reader, file.claim)
    for stretch in _stretches(batch.connection, file):
        data, records = log_without(keys, parser, stretch)
        frames += compressor.frames(stretch.start, data)
        issues += (r for r in records if isinstance(r, Issue) and r.reason == LEFT_OUT)
    _blank_in_archive(batch, file.id, frames, issues)
    derive_in(batch, [file.id])


def _drop_entries(batch: Batch, file: StoredFile, keys: frozenset[str]) -> None:
    """Remove a document's rows that name the conversation, and its archived bytes.

    Its checkpoint becomes that of a document of which only the hash is stored, as in a sync.
    """
    connection = batch.connection
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


# -- what a target names ---------------------------------------------------------------------------

_LISTED = 20


def find(connection: sqlite3.Connection, target: Target) -> tuple[set[Key], list[StoredFile]]:
    """Return the keys of the conversations to forget, and other files to forget.

    `connection` returns rows by name. A transcript means its conversation. Raises
    NotFoundError if nothing matches, and UsageError, with all matches, if several do.
    """
    root = stored_root(real_path(target.root)) if target.root else None
    if target.project is not None:
        return _in_project(connection, target.project, root)
    name = target.name or ""
    try:
        key = find_session(connection, name)
    except NotFoundError:
        key = name.strip().lower()
        if is_unique_key(key) and naming(connection, {(None, key)}):
            return {(None, key)}, []  # its transcript was deleted before the first sync
        return _file(connection, name, root)
    return {_key(connection, key, root)}, []


def _key(connection: sqlite3.Connection, key: str, root: str | None) -> Key:
    """Return the key with the root of the conversation; a uuid is the same in all roots."""
    if is_unique_key(key):
        return None, key
    rows = connection.execute(
        "select x.root from sessions s join sources x on x.id = s.source_id"
        " where s.session_key = ?1 and coalesce(?2, x.root) = x.root order by x.root",
        (key, root),
    ).fetchall()
    roots = [str(row[0]) for row in rows]
    if len(roots) != 1:
        places = "".join(f"\n  {to_copy('--root', place)}" for place in roots)
        raise UsageError(f"{len(roots)} roots have a session {key!r}; choose one:{places}")
    return roots[0], key


def _file(
    connection: sqlite3.Connection, name: str, root: str | None
) -> tuple[set[Key], list[StoredFile]]:
    matches = [
        file
        for file in stored_files(connection)
        if root in (None, file.root) and name and name in _names(file)
    ]
    if not matches:
        raise NotFoundError(
            f"No session or file matches {name!r}. To see them: assoc-ingest list sessions, "
            "assoc-ingest list files"
        )
    if len({(file.root, file.path) for file in matches}) > 1:
        places = "".join(f"\n  {file.root}/{file.path}" for file in matches[:_LISTED])
        raise UsageError(f"{len(matches)} files are named {name!r}; give the path of one:{places}")
    file = matches[0]
    if file.kind == "transcript" and file.session_key is not None:
        return {_key(connection, file.session_key, root or file.root)}, []
    return set(), matches


def _names(file: StoredFile) -> tuple[str, ...]:
    last = file.path.split("/")[-1]
    return file.path, f"{file.root}/{file.path}", last, last.rpartition(".")[0]


def _projects(connection: sqlite3.Connection, target: Target) -> dict[tuple[int, str], Exclusion]:
    """Return the projects that are forgotten of agents that keep each in a directory of its own."""
    if target.project is None:
        return {}
    root = stored_root(real_path(target.root)) if target.root else None
    ids = id_list(find_projects(connection, target.project, exactly=True))
    rows = connection.execute(
        "select p.source_id, p.key, x.kind from projects p join sources x on x.id = p.source_id"
        f" where p.id in ({ids}) and coalesce(?1, x.root) = x.root",
        (root,),
    )
    return {
        (source_id, key): Exclusion(None, project_place(above, key), root)
        for source_id, key, kind in rows
        if (source := SOURCES.get(kind)) and (above := source.directory_of_projects)
    }


def _in_project(
    connection: sqlite3.Connection, project: str, root: str | None
) -> tuple[set[Key], list[StoredFile]]:
    """Return all conversations of matching projects, and the files that only they have."""
    ids = set(find_projects(connection, project, exactly=True))
    rows = connection.execute(
        "select s.session_key, x.root, s.project_id from sessions s"
        " join sources x on x.id = s.source_id"
    ).fetchall()
    keys = {
        _key(connection, row["session_key"], row["root"])
        for row in rows
        if row["project_id"] in ids and root in (None, row["root"])
    }
    rows = connection.execute(
        "select id, project_id from files where project_id is not null"
        " union select file_id, project_id from documents where project_id is not null"
    ).fetchall()
    inside = {row["id"] for row in rows if row["project_id"] in ids}
    files = [
        file
        for file in stored_files(connection)
        if file.id in inside and file.session_key is None and root in (None, file.root)
    ]
    return keys, files


# -- what belongs to a conversation ----------------------------------------------------------------
#
# Its own are the files that have its key in their claim, their path or their lines, the plan that
# is named after it, the pasted texts that only its prompts use, and the team that it leads with
# that team's tasks. Shared are logs and lists with lines of several conversations.
#
# A copy of one of its own files belongs to it, too, if the path of the copy does not say whose it
# is.


def session_ids(connection: sqlite3.Connection, keys: Iterable[Key]) -> list[int]:
    ids: list[int] = []
    for root, key in keys:
        rows = connection.execute(
            "select s.id from sessions s join sources x on x.id = s.source_id"
            " where s.session_key = ?1 and coalesce(?2, x.root) = x.root order by s.id",
            (key, root),
        )
        ids.extend(session for (session,) in rows)
    return ids


def own_files(connection: sqlite3.Connection, keys: set[Key]) -> list[StoredFile]:
    """Return the conversations' own files, without copies, by root and path."""
    ids = {file_id for file_id, *_ in _named(connection, keys)}
    for _, key in keys:  # claims take time, so only of files that can match
        rows = connection.execute(
            "select id from files where session_key = ?1 or instr(lower(path), lower(?1))", (key,)
        )
        ids.update(file_id for (file_id,) in rows)
    files = list(stored_files(connection, ids))
    own = _belongings(connection, files, keys, ()).own
    return [file for file in files if file.id in own]


def find_belongings(
    connection: sqlite3.Connection, keys: set[Key], named: Iterable[StoredFile] = ()
) -> Belongings:
    """Find what belongs to the conversations with these keys, including copies. The files in
    `named` and their copies are added.

    A copy can show that a conversation is in another root, too, which is then among the keys.
    """
    files, named = list(stored_files(connection)), list(named)
    belongings = Belongings(keys)
    while True:
        belongings = _belongings(connection, files, belongings.keys, named)
        copied = _take_copies(connection, belongings, files)
        if copied <= belongings.keys:
            break
        belongings.keys = belongings.keys | copied
    _share(connection, belongings, files)
    return belongings


def _belongings(
    connection: sqlite3.Connection,
    files: list[StoredFile],
    keys: set[Key],
    named: Iterable[StoredFile],
) -> Belongings:
    """Find the conversations' own files."""
    belongings = Belongings(keys)
    for file in files:
        mine, parts = _keys_in(keys, file.root), parts_of(file.path)
        if is_of(file.claim, parts, mine):
            if owners(file.claim, parts):
                belongings.own[file.id] = file
            else:
                _take(belongings, file, file.claim.session_key)
        elif file.session_key in mine and file.claim.session_key is None:
            _take(belongings, file, file.session_key)  # only its lines say whose it is
    _take_named(connection, belongings, {file.id: file for file in files}, keys)
    for file in named:
        _take(belongings, file, None)
    return belongings


def _take_copies(
    connection: sqlite3.Connection, belongings: Belongings, files: list[StoredFile]
) -> set[Key]:
    """Add the copies of its files; return the keys of the conversations of these copies."""
    originals = Originals(belongings.exclusions)
    keys: set[Key] = set()
    for file in files:
        if file.id in belongings.own:
            continue
        fitting = originals.fitting(file.claim, file.path, file.offset, is_log=file.is_log)
        original = fitting.get(file.content) if file.content else None
        if fitting and original is None:
            original = first_of(fitting, archive.read(connection, file.id))
        if original is not None:
            _take(belongings, file, original.session_key)
            if key := key_in_root(original, file.claim):
                keys.add((file.root, key))
    return keys


def _share(connection: sqlite3.Connection, belongings: Belongings, files: list[StoredFile]) -> None:
    """Find the files that it shares with other conversations."""
    of_rows = naming(connection, belongings.keys)
    for file in files:
        if file.id in belongings.own or file.claim.session_key is not None:
            continue
        keys = _keys_in(belongings.keys, file.root)
        if file.id in of_rows or (
            (file.is_log or walk.is_unnamed(file.path)) and _names_in_log(connection, file, keys)
        ):
            if walk.is_unnamed(file.path):  # it is not known which part of it to keep
                belongings.own[file.id] = file
                continue
            belongings.shared.append(file)
        if keys and not file.is_log:
            belongings.documents.append(file.id)


def _take_named(
    connection: sqlite3.Connection,
    belongings: Belongings,
    files: dict[int, StoredFile],
    keys: set[Key],
) -> None:
    """Add the plan, the pasted texts and the team."""
    for file_id, key, is_of_team in _named(connection, keys):
        if file_id in files:
            file = files[file_id]
            parts = parts_of(file.path)
            _take(belongings, file, key)
            if is_of_team and parts[0] in ("teams", "tasks") and len(parts) > 2:
                belongings.exclusions.add(Exclusion(key, "/".join(parts[:2]), file.root))


def _named(connection: sqlite3.Connection, keys: set[Key]) -> Iterator[tuple[int, str, bool]]:
    """Yield the files of the plan, of pasted texts, and of the team with its tasks: the id, the
    session key, and whether it belongs to a team."""
    sessions = id_list(session_ids(connection, keys))
    plans = connection.execute(
        "select p.file_id, s.session_key from plans p join sessions s on s.id = p.session_id"
        f" where s.id in ({sessions}) and p.channel = 'file' order by p.file_id"
    ).fetchall()
    yield from ((*row, False) for row in (*plans, *_own_pastes(connection, keys)))
    yield from ((*row, True) for row in _of_teams(connection, sessions))


def _take(belongings: Belongings, file: StoredFile, key: str | None) -> None:
    belongings.own[file.id] = file
    belongings.exclusions.add(Exclusion(key, file.path, file.root, file.content))


def _keys_in(keys: Iterable[Key], root: str) -> frozenset[str]:
    return frozenset(key for place, key in keys if place in (None, root))


def _own_pastes(connection: sqlite3.Connection, keys: Iterable[Key]) -> list[tuple[int, str]]:
    """Return the files of pasted texts that no other conversation's prompt refers to."""
    rows = connection.execute(
        "select p.file_id, i.session_key, x.root"
        " from prompts i join json_each(i.paste_hashes) h join pastes p on p.hash = h.value"
        " join files f on f.id = i.file_id join sources x on x.id = f.source_id"
        " where i.paste_hashes is not null and h.type = 'text' order by p.file_id, i.id"
    ).fetchall()
    wanted = set(keys)
    users: dict[int, set[str | None]] = {}
    for file_id, key, root in rows:
        is_mine = (None, key) in wanted or (root, key) in wanted
        users.setdefault(file_id, set()).add(key if is_mine else None)
    return [(file_id, min(k for k in u if k)) for file_id, u in users.items() if None not in u]


def _of_teams(connection: sqlite3.Connection, sessions: str) -> list[tuple[int, str]]:
    """Return the files of the teams that these sessions lead, and of those teams' tasks."""
    folded = FOLDED.format("k.list_key")
    return connection.execute(
        "with led as materialized (select t.id, t.key, t.lead_session_key from teams t"
        f" where t.lead_session_id in ({sessions}))"
        " select f.id, l.lead_session_key from led l join files f on f.team_id = l.id"
        " union select k.file_id, l.lead_session_key from led l join tasks k"
        f" on {folded} = l.key where k.file_id is not null and k.channel = 'file'"
    ).fetchall()


def naming(connection: sqlite3.Connection, keys: Iterable[Key]) -> set[int]:
    """Return the ids of files with rows that name one of the conversations."""
    ids: set[int] = set()
    for table, column in REFERENCES.items():
        for root, key in keys:
            rows = connection.execute(
                f"select distinct t.file_id from {table} t join files f on f.id = t.file_id"
                " join sources x on x.id = f.source_id"
                f" where t.{column} = ?1 and coalesce(?2, x.root) = x.root",
                (key, root),
            )
            ids.update(file_id for (file_id,) in rows)
    return ids


@dataclass(frozen=True, slots=True)
class Copy:
    """A conversation that repeats another one, or is linked to it in another program."""

    session_key: str
    title: str | None
    root: str
    why: str
    """lines (it repeats some), program (it is the same one in another program), or title."""


def copies(connection: sqlite3.Connection, keys: set[Key], own: Iterable[int]) -> list[Copy]:
    """Find other conversations that contain copies of these."""
    sessions, files = id_list(session_ids(connection, keys)), id_list(own)
    rows = connection.execute(
        "with other as ("
        " select o.session_id as id, 'lines' as why from messages m"
        "  join messages o on o.uuid = m.uuid and o.file_id <> m.file_id"
        f"  where m.file_id in ({files}) and m.uuid is not null"
        " union select s.id, 'program' from sessions s"
        f"  where s.linked_session_id in ({sessions})"
        " union select s.linked_session_id, 'program' from sessions s"
        f"  where s.id in ({sessions})"
        " union select f.session_id, 'title' from summaries u join files f on f.id = u.file_id"
        f"  where u.session_id in ({sessions}))"
        " select s.session_key, s.title, x.root, min(o.why) from other o"
        " join sessions s on s.id = o.id join sources x on x.id = s.source_id"
        f" where s.id not in ({sessions}) group by s.id order by s.ended_at, s.session_key"
    )
    return [Copy(*row) for row in rows]


# -- lines of several conversations ----------------------------------------------------------------

_KEY_BYTES = 64  # at least those of a key


def _names_in_log(connection: sqlite3.Connection, file: StoredFile, keys: Collection[str]) -> bool:
    """Does a log contain one of the uuids, even in a torn line or in somebody else's text?

    In an agent's file, only the lines count that `log_without` would leave out.
    """
    if not _has(connection, file.id, [key.encode() for key in keys if is_unique_key(key)]):
        return False
    if file.claim.agent_key is None:
        return True
    parser = Parser(file.reader, file.claim)
    return any(
        isinstance(record, Issue) and record.reason == LEFT_OUT and record.quarantined
        for stretch in _stretches(connection, file)
        for record in log_without(keys, parser, stretch)[1]
    )


def _stretches(connection: sqlite3.Connection, file: StoredFile) -> Iterator[Stretch]:
    """Yield the archived lines of a log. After a lost frame, lines keep their offsets.

    Raises ArchiveError for a damaged frame.
    """
    for run in archive.runs(archive.stored_frames(connection, file.id)):
        pieces = (archive.unpacked(frame, file.id) for frame in run)
        yield from cut(
            pieces, run[0].start, lambda rest: file.reader.complete_prefix(file.claim, rest)
        )


def _has(connection: sqlite3.Connection, file_id: int, wanted: list[bytes]) -> bool:
    before = b""
    for data in archive.read(connection, file_id):
        joined = before[-_KEY_BYTES:] + data.lower()  # a key may be split between two frames
        if any(key in joined for key in wanted):
            return True
        before = joined
    return False


# ------------------------------------------------------------------------------------------------
# Credentials: exactly that text, wherever it is in what was read.

_PROBED = 24  # letters by which rows are found: a line of a private key is not shorter
_LEAST = 6  # letters of a fingerprint that are enough to name it


class _Credential:
    """The credential whose fingerprint is, or begins with, that of a target."""

    def __init__(self, connection: sqlite3.Connection, target: Target) -> None:
        """Find it in the archive.

        Raises NotFoundError if no credential has this fingerprint, and UsageError if several have.
        """
        self._secret = named(connection, target.secret or "")
        self._row = forgotten_secret(self._secret, _salt(connection))
        is_block = self._row.rule == KEY_BLOCK
        self._probe = self._secret.text[:_PROBED] if is_block else self._secret.text

    def look(self, connection: sqlite3.Connection, with_copies: bool) -> SecretForgetting:
        """Return where it is. Raises DatabaseError if archived bytes are damaged."""
        paths, places, within_words = [], 0, 0
        for file in files_of(connection, "f.offset > 0"):
            blanked = self._blanked(connection, file, packs=False)
            within_words += blanked.within_words
            if blanked.issues:
                paths.append(_location(connection, file))
                places += len(blanked.issues)
        return SecretForgetting(
            fingerprint(self._secret.text), self._secret.kind, masked(self._secret), places, paths,
            within_words, kept_beside(connection),
        )  # fmt: skip

    def remove(self, batch: Batch) -> None:
        """Remove it, in the transaction of the batch."""
        row = self._row
        start, length = row.core or (None, None)
        batch.connection.execute(
            "insert into forgotten_secrets (fingerprint, rule, length, core_start, core_length,"
            " salt, hash, forgotten_at, is_pending) values (?, ?, ?, ?, ?, ?, ?, ?, 1)"
            " on conflict do update set is_pending = 1",
            (
                fingerprint(self._secret.text), row.rule, row.length, start, length, row.salt,
                row.hash, batch.now,
            ),
        )  # fmt: skip
        changed = []
        for file in files_of(batch.connection, "f.offset > 0"):
            blanked = self._blanked(batch.connection, file, packs=True)
            if blanked.issues:
                _blank_in_archive(batch, file.known.id, blanked.frames, blanked.issues)
                self._drop_entries(batch, file)
                changed.append(file.known.id)
        derive_in(batch, changed)
        self._blank_rows(batch)

    def _drop_entries(self, batch: Batch, file: ArchivedFile) -> None:
        """Delete the entries of a list that have it, or they would be kept as ones that went."""
        for table, condition in CONDITIONS.items():
            columns = " or ".join(f'instr("{name}", :probe)' for name in _texts(batch, table))
            rows = batch.connection.execute(
                f"select rowid from {table} where file_id = :file and {condition}"
                f" and gone_at is :gone and ({columns})",
                {"file": file.known.id, "probe": self._probe, "gone": file.known.gone_at},
            ).fetchall()
            if rows:
                batch.touch(file.known.id)
                batch.connection.executemany(f"delete from {table} where rowid = ?", rows)

    def _blank_rows(self, batch: Batch) -> None:
        """Blank it in all rows: some follow from bytes that were never archived."""
        secrets = ForgottenSecrets.of([self._row])
        tables = batch.connection.execute(
            "select name, exists (select 1 from pragma_table_info(l.name) where name = 'file_id')"
            " from pragma_table_list l where schema = 'main' and type = 'table'"
            " and name not like 'sqlite\\_%' escape '\\'"
        ).fetchall()
        for table, has_file in tables:
            for column in _texts(batch, table):
                rows = batch.connection.execute(
                    f'select rowid, "{column}", {"file_id" if has_file else "null"} from "{table}"'
                    f' where instr("{column}", ?)',
                    (self._probe,),
                ).fetchall()
                for rowid, value, file_id in rows:
                    data, spans = secrets.without(value.encode(), is_log=False)
                    if spans:
                        if file_id is not None:
                            batch.touch(file_id)
                        _write(batch, table, column, rowid, data.decode())

    def _blanked(
        self, connection: sqlite3.Connection, file: ArchivedFile, *, packs: bool
    ) -> _Blanked:
        """Return what a file is without it; its frames only with `packs`."""
        secrets, text = ForgottenSecrets.of([self._row]), self._secret.text.encode("latin-1")
        frames: list[Frame] = []
        issues: list[Record] = []
        within_words, compressor = 0, Compressor()
        try:
            for run in archive.runs(archive.stored_frames(connection, file.known.id)):
                pieces = (archive.unpacked(frame, file.known.id) for frame in run)
                for start, data, left_out in _parts(secrets, file, run[0].start, pieces):
                    within_words += data.count(text)
                    issues += left_out
                    frames += compressor.frames(start, data) if packs else []
        except ArchiveError as error:
            raise DatabaseError(
                f"{_location(connection, file)}: its archived bytes are damaged. Nothing was "
                "forgotten. First run: assoc-ingest rebuild"
            ) from error
        return _Blanked(frames, issues, within_words)


@dataclass(frozen=True, slots=True)
class _Blanked:
    """What a file is without a credential."""

    frames: list[Frame]
    issues: list[Record]
    within_words: int
    """Places where its letters are a part of a longer word; they stay."""


def _salt(connection: sqlite3.Connection) -> bytes:
    """Return the salt of the database; of a new one if nothing is forgotten yet."""
    row = connection.execute("select salt from forgotten_secrets limit 1").fetchone()
    return bytes(row[0]) if row is not None else token_bytes(16)


def named(connection: sqlite3.Connection, name: str) -> Secret:
    """Return the credential with a fingerprint; scanning stops where the name is a whole one."""
    name = name.strip().lower()
    if not _LEAST <= len(name) <= LENGTH or not set(name) <= set("0123456789abcdef"):
        raise UsageError(
            f"A fingerprint has {LENGTH} hexadecimal digits. To see them: assoc-ingest secrets"
        )
    matches: dict[str, Secret] = {}
    for file in files_of(connection, "f.offset > 0"):
        pieces = archive.sound_pieces(connection, file.known.id)
        for secret in find_in(pieces, is_log=_is_log(file)):
            key = fingerprint(secret.text)
            if key == name:
                return secret
            if key.startswith(name):
                matches[key] = secret
    if len(matches) > 1:
        raise UsageError(f"{len(matches)} fingerprints begin with {name}: {', '.join(matches)}")
    if not matches:
        raise NotFoundError(
            f"No credential has the fingerprint {name}; it may be forgotten already. "
            "To see them: assoc-ingest secrets, assoc-ingest forget --list"
        )
    return matches.popitem()[1]


def _parts(
    secrets: ForgottenSecrets, file: ArchivedFile, start: int, pieces: Iterable[bytes]
) -> Iterator[tuple[int, bytes, list[Record]]]:
    """Yield what a sync would read together: its offset, its bytes without them, and the issues."""
    if not _is_log(file):
        data, spans = secrets.without(b"".join(pieces), is_log=False)
        yield start, data, issues_at(start, spans)
        return
    claim = claim_of(file.source, file.known)
    complete = (lambda rest: file.source.complete_prefix(claim, rest)) if claim else len
    for stretch, _, issues in stretches_without(secrets, cut(pieces, start, complete)):
        yield stretch.start, stretch.data, issues


def _is_log(file: ArchivedFile) -> bool:
    """Is a file read line by line? Assumed of those that this version does not read."""
    claim = claim_of(file.source, file.known)
    return claim is None or file.source.shape(claim) == LOG


def _location(connection: sqlite3.Connection, file: ArchivedFile) -> str:
    (root,) = connection.execute(
        "select root from sources where id = ?", (file.source_id,)
    ).fetchone()
    return f"{root}/{file.known.path}"


def _texts(batch: Batch, table: str) -> list[str]:
    rows = batch.connection.execute(
        "select name from pragma_table_xinfo(?) where lower(type) = 'text' and hidden = 0", (table,)
    )
    return [name for (name,) in rows]


def _write(batch: Batch, table: str, column: str, rowid: int, value: str) -> None:
    try:
        batch.connection.execute(
            f'update "{table}" set "{column}" = ? where rowid = ?', (value, rowid)
        )
    except sqlite3.IntegrityError:  # there is an entry already that says the same without it
        batch.connection.execute(f'delete from "{table}" where rowid = ?', (rowid,))


# ------------------------------------------------------------------------------------------------
# Lists what is forgotten, and undoes forgetting.


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A row of `forgotten`."""

    session_key: str | None
    path: str | None
    root: str | None
    forgotten_at: str
    is_pending: int
    secret: str | None = None
    """The fingerprint of a credential."""


def tombstones(database: Path) -> list[Tombstone]:
    """Return what is forgotten, oldest first. Raises DatabaseError."""
    reader = open_reader(database)
    try:
        rows = reader.execute(
            "select session_key, path, root, forgotten_at, is_pending, null as secret"
            " from forgotten union all select null, null, null, forgotten_at, is_pending,"
            " fingerprint from forgotten_secrets order by forgotten_at"
        )
        return [Tombstone(*row) for row in rows]
    finally:
        reader.close()


def remember(database: Path, name: str) -> list[Tombstone]:
    """Let the next sync read something again: a conversation, by the beginning of its key, a path,
    or a credential, by the beginning of its fingerprint.

    What the agent has deleted in the meantime stays lost. Returns what is no longer forgotten.
    Raises NotFoundError if nothing that is forgotten matches, BusyError if another process writes.
    """
    wanted = name.strip().lower()
    back = [
        stone
        for stone in tombstones(database)
        if (wanted and (stone.session_key or stone.secret or "").lower().startswith(wanted))
        or name.rstrip("/") in _spellings(stone)
    ]
    if not back:
        raise NotFoundError(
            f"No forgotten session, file or credential matches {name!r}. To see them: "
            "assoc-ingest forget --list"
        )
    with (
        writing(database) as connection,
        Batch(connection, Clock(connection).now()) as batch,
        agents_may_change(batch),
    ):
        connection.executemany(
            "delete from forgotten where session_key is ? and path is ? and root is ?",
            ((stone.session_key, stone.path, stone.root) for stone in back),
        )
        connection.executemany(
            "delete from forgotten_secrets where fingerprint = ?",
            ((stone.secret,) for stone in back if stone.secret is not None),
        )
        connection.execute(  # this marker never matches, so the whole file is read again
            "update files set head_hash = null, mtime_ns = 0 where id in"
            " (select file_id from issues where reason in (?, ?))",
            REASONS,
        )
    return back


def _spellings(stone: Tombstone) -> tuple[str, ...]:
    path = (stone.path or "").rstrip("/")
    return (path, f"{stone.root}/{path}") if path else ()
