"""What `verify` found: problems with the command that mends each, warnings, and counts."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field

from . import display
from .output import write
from .terminal import Paint, safe, safe_json

_LISTED = 50

REBUILD = "assoc-ingest rebuild"
"""Derives every table again from the archive, and every index from its table."""
SYNC = "assoc-ingest sync"
SYNC_FULL = "assoc-ingest sync --full"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or may become so: where, and what mends it."""

    check: str
    """Which check says so: pages, schema, index, references, archive, rows, counts, file, ..."""
    problem: str
    remedy: str
    """A command, or a sentence where no command mends it."""
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


def write_verdict(verdict: Verdict, *, as_json: bool) -> None:
    """Print what was found, as text or as one JSON object."""
    if as_json:
        write([safe_json({"ok": verdict.ok, **asdict(verdict)}) + "\n"])
        return
    paint = Paint.for_stream(sys.stdout)
    for title, colour, listed in (
        ("Problem", "red", verdict.findings),
        ("Warning", "yellow", verdict.warnings),
    ):
        for finding in listed[:_LISTED]:
            write([f"{paint(title, colour)}: {_sentence(finding)}\n", f"  {_mending(finding)}\n"])
        if len(listed) > _LISTED:
            more = display.many(len(listed) - _LISTED, title.lower())
            write([f"and {more} more: assoc-ingest verify --json\n"])
    write([f"{_summary(verdict)}\n"])


def _sentence(finding: Finding) -> str:
    place = ""
    if finding.path is not None:
        place = finding.path if finding.root is None else f"{finding.root}/{finding.path}"
        place += f", byte {finding.byte_offset}" if finding.byte_offset is not None else ""
        place += ": "
    return _one_line(f"{place}{finding.problem}")


def _mending(finding: Finding) -> str:
    is_command = finding.remedy.startswith("assoc-ingest ")
    return _one_line(f"run: {finding.remedy}" if is_command else finding.remedy)


def _one_line(text: str) -> str:
    return safe(text).replace("\n", "\\n")


def _summary(verdict: Verdict) -> str:
    counts = verdict.counts
    checked = ", ".join(
        display.many(counts[name], word)
        for name, word in (("files", "file"), ("messages", "message"))
        if name in counts
    )
    size = f", {display.size(counts['archived_bytes'])}" if "archived_bytes" in counts else ""
    found = display.many(len(verdict.findings), "problem") if verdict.findings else "no problem"
    return f"Checked {checked or 'the pages of the database'}{size}: {found}."
