"""What `verify` found: problems with the command that repairs each, warnings, and counts."""

from __future__ import annotations

from dataclasses import dataclass, field

REBUILD = "assoc-ingest rebuild"
"""Derives every table again from the archive, and every index from its table."""
SYNC = "assoc-ingest sync"
SYNC_FULL = "assoc-ingest sync --full"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or may become so: where, and what repairs it."""

    check: str
    """Which check says so: pages, schema, index, references, archive, rows, counts, file, ..."""
    problem: str
    remedy: str
    """A command, or a sentence where no command repairs it."""
    root: str | None = None
    path: str | None = None
    """The file it is about, relative to `root`, as `files.path` has it."""
    byte_offset: int | None = None
    """Where in that file it begins."""


@dataclass(slots=True)
class Verdict:
    """All that was found; its fields are the JSON object, with `ok` before them."""

    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Was nothing wrong found? Warnings are not wrong."""
        return not self.findings
