"""The Source protocol and the types it exchanges with the rest: claims, lines, checkpoints,
entries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

from .records import Record

# ------------------------------------------------------------------------------------------------
# Conversations that are not files of their own: how a source describes where they are.
#
# A conversation can be rows of a program's own SQLite database, or many small files. Either way
# it is an *entry* of a store, the database or the directory: a document that is always read as a
# whole, and that consists of lines, one for each row or file, in reading order:
#
#     {"table":"part","id":"prt_1","message_id":"msg_1","data":{"type":"text","text":"hello"}}
#
# The path of an entry is `<store>#<key>`; that of a subagent is `<store>#<key of the
# conversation># <key>`. There is no such file on disk; `restore` writes the lines.


_MARK = "#"
_DEEPEST = 100  # subagents below each other; a circle of parents would have no end
_is_key = re.compile(r"[A-Za-z0-9_.:@+-]{1,200}").fullmatch


class Table(NamedTuple):
    """The rows of a table that belong to an entry, or to a row of another table."""

    name: str
    columns: tuple[str, ...]
    """The columns that are read, and no others. One that a version lacks is left out."""
    where: str
    """An SQL condition with `:key`, the key of the entry, and `:above`, the id of the row that
    these rows follow."""
    order: str = "id"
    id: str = "id"
    json: str | None = None
    """A column that has JSON: it becomes `data`, byte for byte."""
    rows: tuple[Table, ...] = ()
    """Tables whose rows follow each row of this one."""
    is_optional: bool = False
    """Versions of the program without this table are read, too."""


EntryLine = tuple[str, object, Mapping[str, object], bytes | None]
"""A line of an entry: its table, its id, other columns, and JSON that becomes `data`."""


LEFT_OUT = b"left out: the row has a value of more than 64 MiB"
"""The `data` of a row that is too long to be read."""


class Database(NamedTuple):
    """How the entries of a database are found and read. Only these statements run on it."""

    listing: str
    """Selects of each entry its key, the key of the one above it if it is a subagent's, when it
    changed (in milliseconds, null if unknown), and whatever else shows that it has changed."""
    counts: tuple[str, ...]
    """Select of each entry its key, a number of rows, and more that shows that it has changed."""
    tables: tuple[Table, ...]
    unread: tuple[str, ...] = ()
    """Tables that this version cannot read: an issue says so if they have rows."""
    lines: Callable[[Iterable[EntryLine]], Iterable[EntryLine]] | None = None
    """Makes lines of those of an entry's rows, a function of a module: without fields that are not
    read, in another order, or one for each item of a list. Never raises on data."""


class Member(NamedTuple):
    """A file that is a row of an entry: its table and id, and its path as names."""

    table: str
    id: str
    parts: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    """Fields of its object that are never read."""


def a_line_each(contents: Iterable[tuple[Member, bytes]]) -> Iterator[EntryLine]:
    """Yield the lines of an entry of which each file is one."""
    for member, data in contents:
        yield member.table, member.id, {}, data


class Gathered(NamedTuple):
    """An entry that consists of files, in reading order; `above` is as in `Database.listing`."""

    key: str
    above: str | None
    members: list[Member]
    lines: Callable[[Iterable[tuple[Member, bytes]]], Iterable[EntryLine]] = a_line_each
    """Makes lines of the contents of the files, a function of a module: of lists, one for each
    item, or of two files that tell the same, one conversation. Never raises on data."""


def is_entry_key(key: object) -> bool:
    """Can this be the key of an entry, and so a part of its path?"""
    return isinstance(key, str) and _is_key(key) is not None


def entry_path(store: str, key: str, above: Mapping[str, str | None]) -> str:
    """Return the path of an entry; `above` has the key above each entry, as far as it has one."""
    top = key
    for _ in range(_DEEPEST):
        parent = above.get(top)
        if parent is None or parent == key or not is_entry_key(parent):
            break
        top = parent
    return _MARK.join([store, key] if top == key else [store, top, key])


def entry_names(name: str) -> tuple[str, str, str | None] | None:
    """Return store, conversation and subagent of an entry's path; None if it is not one."""
    store, *keys = name.split(_MARK)
    if not keys or len(keys) > 2 or not all(map(is_entry_key, keys)):
        return None
    return store, keys[0], keys[1] if len(keys) == 2 else None


# ------------------------------------------------------------------------------------------------
# The Source protocol and the types it exchanges with the rest: claims, lines, checkpoints.
#
# No I/O, no SQL, no clock here. Positions are bytes from the start of the file.


CONTRACT = 1
"""The version of what a source of a package must be: it grows when such a source has to change."""

FileKind = str
"""What a file is, as its source calls it: a kind with a meaning for all sources, or any other."""

FILE_KINDS = {
    "transcript": "a conversation: the session that it names has its times, counts and titles",
    "agent": "the transcript of a subagent",
    "side_agent": "the transcript of a subagent that its program started for itself",
    "history": "prompts of several sessions, which may repeat those of transcripts",
    "paste": "a text that a prompt of a history refers to by its hash",
    "session_index": "a list of sessions that states the path of their project",
    "chat_list": "a list of conversations and projects; what it no longer has is gone",
    "chat_list_backup": "the copy of a chat_list, which counts while that is broken or missing",
    "task": "a task of the list that its path names; either of two tasks may state a dependency",
    "task_snapshot": "an earlier state of tasks, otherwise as task",
    "todos": "the todo list of the agent that its path names",
    "inbox": "messages to the agent that its path names",
    "team": "the configuration of the team that its path names",
    "config": "a list of the named agents with which conversations are",
    "settings": "settings, of which those about retention count",
}
"""The kinds that mean something to the store and the derived facts. Any other kind only tells files
apart."""

OF_THEIR_PLACE = ("task", "task_snapshot", "inbox", "todos", "team")
"""Kinds of documents whose path says whose entries they have: the same content at another path is
another document."""

LOG = "log"
"""A file that grows line by line."""
DOCUMENT = "document"
"""A file that is always rewritten as a whole: it is read as one line."""
UNKNOWN_CONTENT = "unknown content"
"""A document that may be binary; then it is parsed as no lines, and not archived."""
PRIVATE = "private"
"""A document that also contains a secret: it is parsed, but never archived or quoted."""
UNREAD = "unread"
"""A file that is never opened: only its existence matters."""
DATABASE = "database"
"""A SQLite database whose rows are read as entries (see `entry`), and the kind of such a file."""


class Line(NamedTuple):
    """The bytes of one line, without its line break, and the offset of its first byte."""

    start: int
    data: bytes


Context = Mapping[str, Any]
"""What later lines of a log need to know of earlier ones: a small JSON object."""

MAX_CONTEXT = 64 * 1024
"""The maximum size of a context as JSON in bytes: it is stored with each checkpoint."""

LEADING = b" \t\r\n\x00\xef\xbb\xbf"
"""Bytes that can come before the object of a line: white space, a byte order mark, and the NULs
that a crash leaves."""

FOREIGN = "foreign"
"""Kind of a log that lies where transcripts lie, but is none: its lines are only counted."""

FOREIGN_DOCUMENT = "foreign_document"
"""Kind of a document that lies where a log should be: it is stored as one issue."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the path of a file says about it, if a source reads such files."""

    source: str
    kind: FileKind
    session_key: str | None = None
    agent_key: str | None = None
    project_key: str | None = None
    project_directory: str | None = None
    workflow: str | None = None
    team_key: str | None = None
    named_agent: str | None = None
    """Key of the application's agent that the conversation is with, see `Agent`."""
    parts: tuple[str, ...] = ()
    """The path itself, relative to the root, for a source whose records use parts of it."""
    elsewhere: frozenset[str] = frozenset()
    """Agents that have files of their own: lines that repeat theirs are not stored again."""
    within: str | None = None
    """The store that this is an entry of, or a file of (see `entry`): it is not read by itself."""
    is_doubtful: bool = False
    """The path is not enough to claim it: `Source.classify` checks its lines."""

    def as_foreign(self, kind: str = FOREIGN) -> Claim:
        """Return the claim of a file whose lines show that its name is misleading."""
        return replace(self, kind=kind, session_key=None, agent_key=None)


class Checkpoint(NamedTuple):
    """How far a file was read, and the marker of the bytes that were read."""

    offset: int
    head_hash: bytes
    tail_hash: bytes
    prefix_crc: int


class KnownFile(NamedTuple):
    """A row of `files`: what the last sync knew about a path."""

    id: int
    path: str
    kind: str
    generation: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    gone_at: str | None
    session_key: str | None
    agent_key: str | None
    offset: int
    head_hash: bytes
    tail_hash: bytes
    prefix_crc: int
    context: str | None = None
    """The context at the checkpoint, as JSON; see `Context`."""

    @property
    def checkpoint(self) -> Checkpoint:
        """How far it was read, and the marker."""
        return Checkpoint(self.offset, self.head_hash, self.tail_hash, self.prefix_crc)


class Recognition(IntEnum):
    """How sure a source is that a directory is its home. The surest one reads it."""

    NO = 0
    POSSIBLE = 1
    """Its shape fits, but other programs may write the same."""
    CERTAIN = 2
    """It has a file that only this system writes."""
    GUEST = 3
    """It has files of this system in the home of another one: both are read."""


class Listing(Protocol):
    """A directory that may be a root: the relative paths in it, and the bytes of a few files."""

    def __iter__(self) -> Iterator[str]:
        """Yield relative paths (`a`, `a/b`), the shallow ones first, reading the disk lazily."""
        ...

    def content(self, path: str) -> bytes:
        """Return the bytes of the file at such a path, nothing if it cannot be read."""
        ...


class Whereabouts(NamedTuple):
    """What the lines of a conversation say about the path of its file."""

    session: str | None = None
    """The session that they name."""
    agent: str | None = None
    """The subagent that wrote them, if any."""
    directory: str | None = None
    """The working directory at the start."""


class Source(Protocol):
    """One on-disk format. Pure: no I/O, SQL, clock, logging or globals.

    `parts` are the names that lead to a file or a directory from the root, as they are stored: they
    are unique, and can be used in records.

    Attributes and methods that have a default here are overridden only if a source needs to.
    """

    name: str
    """Its name in commands, filters and the column `sources.kind`."""
    label: str
    """What people call the system."""
    is_agent: bool = False
    """Its files are the transcripts of the agent itself, not those of a program around it, which
    may repeat them. The column `sources.is_agent`."""
    lists_sessions: bool = False
    """It has a list of its conversations and their titles. The column `sources.lists_sessions`."""
    retention_days: int | None = None
    """Days after which the system deletes its own files, unless its settings say otherwise; None if
    it deletes nothing. The column `sources.retention_days`."""
    reads_local_times: bool = False
    """Times are read in the zone of this machine, which may have travelled."""
    directory_of_projects: str | None = None
    """Name of the directory in the home that has one directory for each project, also for those
    without any file."""
    directory_in_project: str | None = None
    """Name of the home that the system keeps in each project's directory."""
    directory_in_home: str | None = None
    """Name of the home that the system keeps in the home of another one."""
    checked: str | None = None
    """The versions of the system with which its reader was checked, in words that end with the
    newest: `1.0.0 to 2.1.330`; None: not known. A version that begins like it is as new."""
    known_lines: frozenset[str]
    """The types of lines that its reader knows, whatever it makes of them: `type`, or where the
    subtype matters, `type/subtype`. Lines of any other type are reported as new."""
    unread_places: tuple[str, ...] | None = None
    """Patterns of names of directories and databases in its home that are known and not read.
    Others that it does not read are reported as new; with None, none are."""
    database: Database | None = None
    """How its databases are read, if it has any and all are alike: files of the kind `DATABASE`."""
    contract: int | None = None
    """The `CONTRACT` that it was written for, if a package brings it."""
    package: str | None = None
    """Name and version of the package that brings it; None: it is one of this program's own."""
    failure: str | None = None
    """What the source of a package failed at, in a sentence, since this was last None."""

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Return the default paths of the system's home.

        `home` is that of the user, None if there is none. A path may begin with `~`.
        """
        return []

    def resume_command(self, session_key: str) -> list[str] | None:
        """Return the command that resumes a session in its directory, None if there is none.

        It is shown to people, and never run.
        """
        return None

    def whereabouts(self, lines: Iterable[bytes]) -> Whereabouts:
        """Return what the lines of a file say about its path, which is lost."""
        return Whereabouts()

    def path_of(self, told: Whereabouts, project_key: str | None) -> str | None:
        """Return the path of a conversation below the root, None if it cannot be derived."""
        return None

    def recognises(self, listing: Listing) -> Recognition:
        """Is a directory with these entries a root of this source?

        The listing reads the disk lazily: stop at the first entry that decides.
        """
        ...

    def knows(self, kind: str, subtype: str) -> bool:
        """Does the reader know this type of line? What has no type is no line of a log."""
        return not kind or kind in self.known_lines or f"{kind}/{subtype}" in self.known_lines

    def knows_place(self, name: str) -> bool:
        """Is it known what this directory or database in the home is?"""
        parts = (name,)
        return (
            any(fnmatchcase(name, pattern) for pattern in self.unread_places or ())
            or self.withholds(parts)
            or self.descends(parts)
            or self.claim(parts) is not None
        )

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Must this file or directory never be opened, because it contains only secrets?

        In a home of this source, it is not opened for other sources either. As long as it is not
        known whose home a directory is, nothing that any source withholds is opened.
        """
        return False

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Can the directory `parts` (relative to the root) contain files of this source?"""
        ...

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """Return the claim on the file `parts` (relative to the root), None if it is not ours."""
        ...

    def shape(self, claim: Claim) -> str:
        """Return how the file has to be read: LOG, DOCUMENT, or another of the shapes above.

        An entry of a store is a LOG that is read as a whole.
        """
        ...

    def layout(self, name: str) -> Database | None:
        """Return how the database of this name is read."""
        return self.database

    def gather(
        self, members: Collection[tuple[str, ...]], content: Callable[[tuple[str, ...]], bytes]
    ) -> list[Gathered]:
        """Return the entries that the files of a directory are together, see `entry`.

        `content` returns the bytes of one of these files.
        """
        return []

    def classify(self, claim: Claim, lines: Iterable[bytes]) -> Claim:
        """Return the claim of a log, changed if its lines show that the path is misleading.

        `lines` are read as they are used. If they do not change the claim, no later line may:
        a log that continues is not classified again.
        """
        return claim

    def project_key(self, directory: str) -> str | None:
        """Return the key of the project that has this directory, None if it is none."""
        return directory

    def as_kind(self, claim: Claim, kind: str) -> Claim:
        """Return a claim that follows from a path as it is for a file of this kind.

        The kind may be one that only the lines of the file say: see `classify`.
        """
        return claim.as_foreign(kind) if kind in (FOREIGN, FOREIGN_DOCUMENT) else claim

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Return how many bytes of an unterminated tail can no longer change."""
        ...

    def parse(self, claim: Claim, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records, in the order of the file. Never raises on data.

        Cutting the lines in two anywhere gives records that the store merges to the same rows.
        A source overrides this, or `read` if its lines build on earlier ones.
        """
        return self.read(claim, lines, {})[0]

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records, with the context of the lines before them.

        Returns the records, and the context for the lines after them. The context is empty at the
        start of a file, and is stored with the checkpoint; it has at most `MAX_CONTEXT` bytes. In a
        log that several conversations share, each line has to name its own: a forgotten line is
        blank, and leaves nothing in the context.
        """
        return self.parse(claim, lines), context


def parts_of(path: str) -> tuple[str, ...]:
    """Return the names in a stored path, as `Source.claim` takes them."""
    return tuple(path.split("/"))


def claim_at(source: Source, path: str) -> Claim | None:
    """Return the claim of a source on the file at a stored path, None if it has none."""
    return source.claim(parts_of(path))


def facts_of(source: Source) -> dict[str, str | int | None]:
    """Return the columns of the table `sources` that describe the system."""
    return {
        "label": source.label,
        "is_agent": int(source.is_agent),
        "lists_sessions": int(source.lists_sessions),
        "retention_days": source.retention_days,
    }
