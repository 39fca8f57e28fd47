"""What a sync did, for the command line and for `sync_runs`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..files.steps import Work
    from .row_buffer import Written

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes in total."""


@dataclass(slots=True)
class Report:
    """What a sync did. The first eight fields are the columns of `sync_runs`."""

    started_at: str
    id: int | None = None
    finished_at: str | None = None
    files_read: int = 0
    bytes_read: int = 0
    rows: int = 0
    issues: int = 0
    error: str | None = None
    is_running: bool = False
    """The row `id` exists and has no end."""
    is_continued: bool = False
    """The row `id` has the counts of passes before; those of this one are added."""
    unfinished: int | None = None
    """The id of the file of which only the beginning was read so far: it counts once."""
    clock_behind: str | None = None
    """The newest time in the database, if the system clock is behind it."""
    files_seen: int = 0
    files_gone: int = 0
    files_rebuilt: int = 0
    quarantined: int = 0
    symlinks: int = 0
    seconds: float = 0.0
    roots: list[str] = field(default_factory=list)
    missing_roots: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    refused: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """Files that may not be opened, with their stat and the reason. Whoever syncs again and again
    keeps it: a file is tried again when its stat changes."""

    def may_be_read(self, work: Work) -> bool:
        """May a file be tried? If not, it is reported as before."""
        stat, reason = self.refused.get(work.found.location, (None, ""))
        if stat != work.found[2:]:
            return True
        self.unreadable.append((work.found.location, reason))
        return False

    def add(self, written: Written) -> None:
        """Add the counts of a committed batch."""
        self.rows += written.rows
        self.issues += written.issues
        self.quarantined += written.quarantined
