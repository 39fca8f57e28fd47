"""What `verify` found, as text or as one JSON object."""

from __future__ import annotations

import sys
from dataclasses import asdict

from .. import humanize
from ..ask.output import write
from ..terminal import Paint, safe, safe_json
from ..upkeep.findings import Finding, Verdict

_LISTED = 50


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
            more = humanize.many(len(listed) - _LISTED, f"more {title.lower()}")
            write([f"{more} not shown. To see all: assoc-ingest verify --json\n"])
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
        humanize.many(counts[name], word)
        for name, word in (("files", "file"), ("messages", "message"))
        if name in counts
    )
    size = f" ({humanize.size(counts['archived_bytes'])})" if "archived_bytes" in counts else ""
    count = len(verdict.findings)
    found = f"{humanize.many(count, 'problem')} found" if count else "no problems found"
    return f"Checked {checked or 'the database pages'}{size}: {found}."
