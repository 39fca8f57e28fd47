"""What belongs to a conversation, wherever it lies: the files that are its own, the files that it
shares with others, and the conversations that hold copies of it.

Its own are the files that carry its key in their claim, their path or their lines, the plan that
is named after it, the pasted texts that only its prompts use, and the team that it leads with that
team's tasks. Shared are logs and lists with lines of many conversations.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import archive, lost
from .forgotten import is_of, is_unique_key
from .mail import FOLDED
from .model import LOG, Claim
from .reading import FOREIGN, foreign
from .sources import SOURCES
from .touched import id_list

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
"""Tables whose rows name a conversation by a key of their own, and the column."""

Key = tuple[str | None, str]
"""The root in which a conversation is meant (None: in every one), and its session key."""
Place = tuple[str, str, str | None]
"""A root, a path below it, and the session key that it belongs to, if it does."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A row of `files`, with its root and what its path claims."""

    id: int
    path: str
    kind: str
    session_key: str | None
    root: str
    source: str
    source_id: int
    claim: Claim

    @property
    def is_log(self) -> bool:
        """Is it read line by line?"""
        return SOURCES[self.source].shape(self.claim) == LOG


@dataclass(slots=True)
class Belongings:
    """What a conversation, or several, has in the database."""

    own: dict[int, StoredFile] = field(default_factory=dict)
    places: set[Place] = field(default_factory=set)
    """Files and directories that nothing in their path tells to be its own."""
    shared: list[StoredFile] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    """Documents of which nobody can tell what they are about while they cannot be read."""


def stored_files(connection: sqlite3.Connection) -> Iterator[StoredFile]:
    """Yield all files that a source still claims, or whose path is lost, by root and path."""
    rows = connection.execute(
        "select f.id, f.path, f.kind, f.session_key, x.root, x.kind, x.id, f.agent_key"
        " from files f join sources x on x.id = f.source_id order by x.root, f.path, f.generation"
    )
    for file_id, path, kind, key, root, name, source_id, agent in rows.fetchall():
        source = SOURCES.get(name)
        claim = source.claim(tuple(path.split("/"))) if source else None
        if claim is not None and kind == FOREIGN:
            claim = foreign(claim)
        if source is not None and lost.is_unnamed(path):
            claim = Claim(name, kind, session_key=key, agent_key=agent)
        if claim is not None:
            yield StoredFile(file_id, path, kind, key, root, name, source_id, claim)


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


def belongings(connection: sqlite3.Connection, keys: set[Key]) -> Belongings:
    """Find what belongs to the conversations with these keys."""
    found = Belongings()
    files = list(stored_files(connection))
    for file in files:
        mine = _keys_in(keys, file.root)
        if is_of(file.claim, file.path.split("/"), mine):
            found.own[file.id] = file
        elif file.session_key in mine and file.claim.session_key is None:
            _take(found, file, file.path, file.session_key)  # only its lines tell
    _take_named(connection, found, {file.id: file for file in files}, keys)
    named = naming(connection, keys)
    for file in files:
        if file.id in found.own or file.claim.session_key is not None:
            continue
        if file.id in named or _is_log_that_names(connection, file, keys):
            if lost.is_unnamed(file.path):  # nobody can tell which part of it to leave
                found.own[file.id] = file
                continue
            found.shared.append(file)
        if not file.is_log:
            found.documents.append(file.id)
    return found


def _take_named(
    connection: sqlite3.Connection, found: Belongings, files: dict[int, StoredFile], keys: set[Key]
) -> None:
    """Take in what has a name of its own: the plan, pasted texts, the team and its tasks."""
    sessions = id_list(session_ids(connection, keys))
    plans = connection.execute(
        "select p.file_id, s.session_key from plans p join sessions s on s.id = p.session_id"
        f" where s.id in ({sessions}) order by p.file_id"
    ).fetchall()
    for file_id, key in [*plans, *_own_pastes(connection, keys)]:
        if file_id in files:
            _take(found, files[file_id], files[file_id].path, key)
    for file_id, key in _of_teams(connection, sessions):
        if file_id in files:
            parts = files[file_id].path.split("/")
            is_directory = parts[0] in ("teams", "tasks") and len(parts) > 2
            path = "/".join(parts[:2]) if is_directory else files[file_id].path
            _take(found, files[file_id], path, key)


def _take(found: Belongings, file: StoredFile, path: str, key: str) -> None:
    found.own[file.id] = file
    found.places.add((file.root, path, key))


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
        f" on {folded} = l.key where k.file_id is not null"
    ).fetchall()


def naming(connection: sqlite3.Connection, keys: Iterable[Key]) -> set[int]:
    """Return the files with rows that name one of the conversations."""
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


def _is_log_that_names(
    connection: sqlite3.Connection, file: StoredFile, keys: Iterable[Key]
) -> bool:
    """Does a uuid stand anywhere in a log: in a torn line, or in a text of another conversation?"""
    can_name = file.is_log or lost.is_unnamed(file.path)
    if not can_name or file.claim.session_key is not None or file.claim.agent_key is not None:
        return False
    wanted = [key.encode() for key in _keys_in(keys, file.root) if is_unique_key(key)]
    before = b""
    for data in archive.read(connection, file.id):
        joined = before[-64:] + data.lower()  # a key may lie across two frames of one line
        if any(key in joined for key in wanted):
            return True
        before = joined
    return False


@dataclass(frozen=True, slots=True)
class Copy:
    """A conversation that repeats another, or stands for it in another program."""

    session_key: str
    title: str | None
    root: str
    why: str
    """lines (it repeats some), program (it is the same in another program), or title."""


def copies(connection: sqlite3.Connection, keys: set[Key], own: Iterable[int]) -> list[Copy]:
    """Find the conversations, other than these, that hold copies of what they say."""
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
