"""The steps that reading files produces for the store.

An `Opened` step says which file the following parts belong to; a `FilePart` is a stretch of whole
lines with its records, and `Closed` is the end. A `Border` marks the start of a group that is
stored completely or not at all. A file of which nothing is stored is one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..records import Issue, Record
from ..secrets.forget import ForgottenSecrets
from ..source import Claim, KnownFile

if TYPE_CHECKING:
    from .archive import Frame
    from .entries import Entry
    from .tail import Prefix
    from .walk import FoundFile, Root


@dataclass(frozen=True, slots=True)
class Work:
    """A file to be read: where it lies, what its path claims, and what was read of it."""

    root: Root
    source_id: int
    found: FoundFile
    claim: Claim
    known: KnownFile | None
    forgotten: frozenset[str] = frozenset()
    """Keys of the conversations that are left out of it, see `exclusions`."""
    secrets: ForgottenSecrets = field(default_factory=ForgottenSecrets)
    """Credentials that are left out of it."""
    entry: Entry | None = None
    """How it is read, if it is an entry of a store."""
    listed: Listed | None = None
    """What listing its entries has shown, if it is a database."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What listing the entries of a database has shown."""

    issues: tuple[Issue, ...] = ()
    is_settled: bool = True
    """Until it changes, listing it again would show the same."""


@dataclass(frozen=True, slots=True)
class Border:
    """Ends a batch. What follows is stored completely or not at all, so it may have to be undone.

    It ends with a part that is not open, or with its file.
    """


@dataclass(frozen=True, slots=True)
class Opened:
    """The following parts belong to this file.

    `prefix` is where reading continues; None keeps the checkpoint, for a broken document.
    """

    work: Work
    claim: Claim
    known: KnownFile | None
    prefix: Prefix | None
    generation: int
    is_rewritten: bool


@dataclass(frozen=True, slots=True)
class FilePart:
    """A stretch of the opened file: its records, its compressed bytes, and the prefix at its end.

    `frames` waits for the thread that compresses. No batch may end after a part that is open: the
    file is being rewritten, or a line continues in the next part.
    """

    records: list[Record]
    frames: Callable[[], list[Frame]]
    prefix: Prefix | None
    size: int
    is_open: bool = False
    context: str | None = None
    """The context for the lines after it, as it is stored; see `source.Context`."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The opened file was read to its end.

    Only now may its stat be stored. Otherwise a sync that is killed between two batches of a large
    file would leave it half read, and it would look unchanged from then on.
    """


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The stat of the file changed, but its content did not."""

    known: KnownFile
    found: FoundFile
    is_document: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The file could not be read to its end, for this reason."""

    path: str
    reason: str
    refused: tuple[int, ...] | None = None
    """Its stat, if it may not be opened: trying again before that changes is of no use."""


Step = Border | Opened | FilePart | Closed | Unchanged | Unreadable


def without_unsettled(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield all steps except those of databases with an unreadable entry.

    So the next sync lists such a database again, even if it has not changed.
    """
    failed: set[str] = set()
    is_left_out = False
    for step in steps:
        if isinstance(step, Unreadable):
            failed.add(step.path)
        if isinstance(step, Opened):
            is_left_out = step.work.listed is not None and step.work.found.location in failed
        elif not isinstance(step, FilePart | Closed):
            is_left_out = False
        if not is_left_out:
            yield step
