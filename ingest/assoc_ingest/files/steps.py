"""What reading tells the store, step by step.

An `Opened` step says which file the parts that follow belong to; a `Part` is a stretch of whole
lines with the records that its source made of it, and `Closed` is the end. What must not be kept by
halves begins with a `Border`. Files of which nothing is to be stored have one step each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..records import Record
from ..source import Claim, KnownFile
from .archive import Frame
from .tail import Prefix
from .walk import Found, Root


@dataclass(frozen=True, slots=True)
class Work:
    """A file to be read: where it lies, what its path claims, and what was read of it."""

    root: Root
    source_id: int
    found: Found
    claim: Claim
    known: KnownFile | None
    forgotten: frozenset[str] = frozenset()
    """Keys of the conversations of which it may hold nothing, see `exclusions`."""


@dataclass(frozen=True, slots=True)
class Border:
    """A batch ends here. The next may have to be undone: it begins with what is kept whole or not.

    That lasts until a part that is not open, or to the end of its file.
    """


@dataclass(frozen=True, slots=True)
class Opened:
    """The parts that follow belong to this file.

    `prefix` is where its reading continues; None keeps the checkpoint, for a broken document.
    """

    work: Work
    claim: Claim
    known: KnownFile | None
    prefix: Prefix | None
    generation: int
    is_rewritten: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the opened file: its records, its bytes compressed, and the prefix it ends.

    `frames` waits for the thread that compresses.
    No batch may end after an open one: the file is being rewritten, or its line goes on.
    """

    records: list[Record]
    frames: Callable[[], list[Frame]]
    prefix: Prefix | None
    size: int
    is_open: bool = False
    context: str | None = None
    """What its lines leave to those that follow, as it is stored; see `source.Context`."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The opened file was read to its end.

    Only now may its stat be taken for that of a file that was read: a sync that dies between two
    batches of a large file would else leave it half read, and looking unchanged for ever.
    """


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The directory shows the file differently, but its content is as it was read."""

    known: KnownFile
    found: Found
    is_document: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The file could not be read, or not to its end, for this reason."""

    path: str
    reason: str


Step = Border | Opened | Part | Closed | Unchanged | Unreadable
