"""Finds what belongs to a conversation: its own files, files that it shares with other
conversations, and conversations that contain copies of it.

Its own are the files that have its key in their claim, their path or their lines, the plan that is
named after it, the pasted texts that only its prompts use, and the team that it leads with that
team's tasks. Shared are logs and lists with lines of several conversations.

A copy of one of its own files belongs to it, too, if the path of the copy does not say whose it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..derive.inbox import FOLDED
from ..files import archive, lost
from ..files.exclusions import Content, Exclusion, content_of, is_of, owners
from ..source import LOG, UNREAD, Checkpoint, Claim, claim_at, parts_of
from ..sources import SOURCES
from ..sql import id_list
from .moved_copies import Originals, first_of, key_in_root
from .shared_logs import names_in_log

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
    def is_log(self) -> bool:
        """Is it read line by line?"""
        return SOURCES[self.source].shape(self.claim) == LOG

    @property
    def is_unread(self) -> bool:
        """Is it never opened, so that only its existence is known?"""
        return SOURCES[self.source].shape(self.claim) == UNREAD


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
        if source is not None and lost.is_unnamed(path):
            claim = Claim(name, kind, session_key=key, agent_key=agent)
        if claim is not None:
            content = content_of(Checkpoint(*mark)) if mark[0] else None
            yield StoredFile(
                file_id, path, kind, key, root, name, source_id, claim, mark[0], content
            )


def session_ids(connection: sqlite3.Connection, keys: Iterable[Key]) -> list[int]:
    """Return the ids of the sessions with these keys."""
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


def belongings(
    connection: sqlite3.Connection, keys: set[Key], named: Iterable[StoredFile] = ()
) -> Belongings:
    """Find what belongs to the conversations with these keys, including copies. The files in
    `named` and their copies are added.

    A copy can show that a conversation is in another root, too, which is then among the keys.
    """
    files, named = list(stored_files(connection)), list(named)
    found = Belongings(keys)
    while True:
        found = _belongings(connection, files, found.keys, named)
        copied = _take_copies(connection, found, files)
        if copied <= found.keys:
            break
        found.keys = found.keys | copied
    _share(connection, found, files)
    return found


def _belongings(
    connection: sqlite3.Connection,
    files: list[StoredFile],
    keys: set[Key],
    named: Iterable[StoredFile],
) -> Belongings:
    """Find the conversations' own files."""
    found = Belongings(keys)
    for file in files:
        mine, parts = _keys_in(keys, file.root), parts_of(file.path)
        if is_of(file.claim, parts, mine):
            if owners(file.claim, parts):
                found.own[file.id] = file
            else:
                _take(found, file, file.claim.session_key)
        elif file.session_key in mine and file.claim.session_key is None:
            _take(found, file, file.session_key)  # only its lines say whose it is
    _take_named(connection, found, {file.id: file for file in files}, keys)
    for file in named:
        _take(found, file, None)
    return found


def _take_copies(
    connection: sqlite3.Connection, found: Belongings, files: list[StoredFile]
) -> set[Key]:
    """Add the copies of its files; return the keys of the conversations of these copies."""
    originals = Originals(found.exclusions)
    keys: set[Key] = set()
    for file in files:
        if file.id in found.own:
            continue
        fitting = originals.fitting(file.claim, file.path, file.offset, is_log=file.is_log)
        original = fitting.get(file.content) if file.content else None
        if fitting and original is None:
            original = first_of(fitting, archive.read(connection, file.id))
        if original is not None:
            _take(found, file, original.session_key)
            if key := key_in_root(original, file.claim):
                keys.add((file.root, key))
    return keys


def _share(connection: sqlite3.Connection, found: Belongings, files: list[StoredFile]) -> None:
    """Find the files that it shares with other conversations."""
    of_rows = naming(connection, found.keys)
    for file in files:
        if file.id in found.own or file.claim.session_key is not None:
            continue
        keys = _keys_in(found.keys, file.root)
        if file.id in of_rows or (
            (file.is_log or lost.is_unnamed(file.path))
            and names_in_log(connection, file.id, SOURCES[file.source], file.claim, keys)
        ):
            if lost.is_unnamed(file.path):  # it is not known which part of it to keep
                found.own[file.id] = file
                continue
            found.shared.append(file)
        if not file.is_log:
            found.documents.append(file.id)


def _take_named(
    connection: sqlite3.Connection, found: Belongings, files: dict[int, StoredFile], keys: set[Key]
) -> None:
    """Add the plan, the pasted texts and the team."""
    for file_id, key, is_of_team in _named(connection, keys):
        if file_id in files:
            file = files[file_id]
            parts = parts_of(file.path)
            _take(found, file, key)
            if is_of_team and parts[0] in ("teams", "tasks") and len(parts) > 2:
                found.exclusions.add(Exclusion(key, "/".join(parts[:2]), file.root))


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


def _take(found: Belongings, file: StoredFile, key: str | None) -> None:
    found.own[file.id] = file
    found.exclusions.add(Exclusion(key, file.path, file.root, file.content))


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
    found: set[int] = set()
    for table, column in REFERENCES.items():
        for root, key in keys:
            rows = connection.execute(
                f"select distinct t.file_id from {table} t join files f on f.id = t.file_id"
                " join sources x on x.id = f.source_id"
                f" where t.{column} = ?1 and coalesce(?2, x.root) = x.root",
                (key, root),
            )
            found.update(file_id for (file_id,) in rows)
    return found


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
