"""The result of `verify`: problems, each with the command that repairs it, warnings, and counts."""

from __future__ import annotations

from dataclasses import dataclass, field

REBUILD = "assoc-ingest rebuild"
"""The command that derives all tables from the archive, and all indexes from the tables."""
SYNC = "assoc-ingest sync"
SYNC_FULL = "assoc-ingest sync --full"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or a warning: where it is, and what repairs it."""

    check: str
    """The check that found it: pages, schema, index, references, archive, rows, counts, ..."""
    problem: str
    remedy: str
    """The command that repairs it, or a sentence if there is none."""
    root: str | None = None
    path: str | None = None
    """The path of the file, relative to `root`, as in `files.path`."""
    byte_offset: int | None = None
    """Where in that file the problem begins."""


@dataclass(slots=True)
class Verdict:
    """Everything that was found; its fields, after `ok`, are those of the JSON output."""

    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Was no problem found? Warnings do not count."""
        return not self.findings
