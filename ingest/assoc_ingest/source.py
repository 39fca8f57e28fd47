"""The Source protocol and the types it exchanges with the rest: claims, lines, checkpoints.

No I/O, no SQL, no clock here. Positions are bytes from the start of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from .records import Record

FileKind = str
"""What a file is, in the words of its source: transcript, agent, agent_meta, ..."""

LOG = "log"
"""A file that grows line by line."""
DOCUMENT = "document"
"""A file that is rewritten whole: one line."""
UNKNOWN_CONTENT = "unknown content"
"""A document that may be binary; a binary one is parsed as no line at all, and not archived."""
PRIVATE = "private"
"""A document that holds a secret beside what we want of it: parsed, never archived or sampled."""
UNREAD = "unread"
"""A file that is never opened: that it is there is all we want to know."""


def parts_of(path: str) -> tuple[str, ...]:
    """Return the names in a stored path, as `Source.claim` takes them."""
    return tuple(path.split("/"))


def claim_at(source: Source, path: str) -> Claim | None:
    """Return what a source says of the file at a stored path, None if it is not of this source."""
    return source.claim(parts_of(path))


class Line(NamedTuple):
    """The bytes of one line, without its line break, and the offset of the first of them."""

    start: int
    data: bytes


Context = Mapping[str, Any]
"""What the lines of a log said that a later line needs: small, and whatever JSON can hold."""

MAX_CONTEXT = 64 * 1024
"""Bytes that a context may have as JSON: it is written with each checkpoint of its file."""

LEADING = b" \t\r\n\x00\xef\xbb\xbf"
"""Bytes that may stand before the object of a line: white space, a byte order mark, and the NULs
that a crash leaves."""

FOREIGN = "foreign"
"""Kind of a log in a transcript's place that another program left: counted, not believed."""

FOREIGN_DOCUMENT = "foreign_document"
"""Kind of a file in the place of a log that holds no lines: it is one issue."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the path alone says about a file that a source reads."""

    source: str
    kind: FileKind
    session_key: str | None = None
    agent_key: str | None = None
    project_key: str | None = None
    project_directory: str | None = None
    workflow: str | None = None
    team_key: str | None = None
    named_agent: str | None = None
    """Key of the application's agent with whom the conversation is held, see `Agent`."""
    parts: tuple[str, ...] = ()
    """The path itself, relative to the root, for a source whose records repeat parts of it."""
    elsewhere: frozenset[str] = frozenset()
    """Agents that have files of their own: lines that repeat theirs are not read again."""
    is_doubtful: bool = False
    """The name alone is not enough to claim it: `Source.classify` looks at its lines."""

    def as_foreign(self, kind: str = FOREIGN) -> Claim:
        """Return the claim of a file whose lines show that its name proves nothing."""
        return replace(self, kind=kind, session_key=None, agent_key=None)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a file was read, and the marker of what was read."""

    offset: int
    head_hash: bytes
    tail_hash: bytes
    prefix_crc: int


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A row of `files`: what the last sync knew of a path."""

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
    checkpoint: Checkpoint
    context: str | None = None
    """What its lines before the checkpoint leave to those behind it, as JSON; see `Context`."""


class Listing(Protocol):
    """A directory that may be a root: the relative paths in it, and the bytes of a few files."""

    def __iter__(self) -> Iterator[str]:
        """Yield relative paths (`a`, `a/b`), the shallow ones first, as the disk is read."""
        ...

    def content(self, path: str) -> bytes:
        """Return what a file at such a path holds, nothing if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What the lines of a conversation say of where its file lies."""

    session: str | None = None
    """The session that they name."""
    agent: str | None = None
    """The subagent that wrote them, if one did."""
    directory: str | None = None
    """The working directory in which it began."""


class Source(Protocol):
    """One on-disk format. Pure: no I/O, SQL, clock, logging or globals.

    `parts` are the names that lead to a file or a directory from the root, as they are stored:
    no two files have the same, and what is made of them can be stored, too.

    What stands here with a value or a body is what most sources need: they leave it as it is.
    """

    name: str
    """How commands, filters and the column `sources.kind` name it."""
    label: str
    """How people call the system."""
    is_agent: bool = False
    """Its files are the transcripts of the agent itself; else those of a program around it, which
    may repeat them. The column `sources.is_agent`."""
    lists_sessions: bool = False
    """A list of its own says which conversations there are, and how they are called. The column
    `sources.lists_sessions`."""
    retention_days: int | None = None
    """Days after which the system deletes its own files, unless its settings say otherwise; None:
    it deletes nothing. The column `sources.retention_days`."""
    reads_local_times: bool = False
    """Times are read in the zone of this machine, which may have travelled."""
    directory_in_project: str | None = None
    """Name of the home that the system keeps in each project's directory."""
    directory_in_home: str | None = None
    """Name of the home that the system keeps in the home of another one."""

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Return where the system keeps its home if nobody says otherwise.

        `home` is the user's; None if there is none. A path may begin with `~`.
        """
        return []

    def resume_command(self, session_key: str) -> list[str] | None:
        """Return the command that goes on with a session, run where it was held; None: nobody can.

        It is shown to people, and never run.
        """
        return None

    def whereabouts(self, lines: Iterable[bytes]) -> Whereabouts:
        """Return what the lines of a file whose path is lost say of it; nothing, if not ours."""
        return Whereabouts()

    def path_of(self, told: Whereabouts, project_key: str | None) -> str | None:
        """Return where a conversation lies below the root, None where that cannot be told."""
        return None

    def recognises(self, listing: Listing) -> bool:
        """Is a directory with these entries a root of this source?

        The listing reads the disk as it goes: stop at the first entry that decides.
        """
        ...

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Must this file or directory stay closed, because it holds secrets and nothing to read?

        In a home of this source it is then opened for no other source either. While it is not
        known whose home a directory is, what any source withholds stays closed.
        """
        return False

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Can a file of this source be below the directory `parts` (relative to the root)?"""
        ...

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """Return what the file `parts` (relative to the root) is, None if not of this source."""
        ...

    def shape(self, claim: Claim) -> str:
        """Return how the file is to be read: LOG, DOCUMENT, or another of the shapes above."""
        ...

    def classify(self, claim: Claim, lines: Iterable[bytes]) -> Claim:
        """Return the claim of a log, changed if its lines show that the path is misleading.

        `lines` are read as they are used. If they do not change the claim, no later line may:
        a log that continues is not classified again.
        """
        return claim

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
        """Turn lines into records, with the context that the lines before them left.

        Returns the context for the lines that follow. It is empty at the start of a file, and is
        kept beside the checkpoint; it has no more than `MAX_CONTEXT` bytes.
        """
        return self.parse(claim, lines), context


def facts_of(source: Source) -> dict[str, str | int | None]:
    """Return what a row of the table `sources` states of its system, by column."""
    return {
        "label": source.label,
        "is_agent": int(source.is_agent),
        "lists_sessions": int(source.lists_sessions),
        "retention_days": source.retention_days,
    }
