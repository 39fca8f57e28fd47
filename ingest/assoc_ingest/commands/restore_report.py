"""What a restore did: a line for each file, or one JSON object, and the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .. import humanize
from ..ask.output import say, write
from ..terminal import safe, safe_json
from ..upkeep.restore import IDENTICAL, NOT_ARCHIVED, REFUSED, WRITTEN, Restored


def write_report(
    done: Sequence[Restored], directory: Path, *, as_json: bool, dry_run: bool
) -> bool:
    """Print what became of each file.

    Returns whether all of them is there now that was ever archived, and anything at all.
    """
    counts = Counter(file.status for file in done)
    if as_json:
        files = [asdict(file) for file in done]
        write([safe_json({"to": str(directory), "dry_run": dry_run, "files": files}) + "\n"])
    else:
        write(_line(file, dry_run=dry_run) + "\n" for file in done)
    written = sum(file.bytes for file in done if file.status == WRITTEN)
    say(_sum(counts, written, dry_run=dry_run))
    if lost := sum(file.bytes_lost for file in done):
        incomplete = humanize.many(sum(file.bytes_lost > 0 for file in done), "file")
        say(f"{lost:,} bytes of {incomplete} are lost and were replaced by spaces.")
    is_whole = not any(file.bytes_lost for file in done)
    return is_whole and not counts[REFUSED] and counts[WRITTEN] + counts[IDENTICAL] > 0


def _line(file: Restored, *, dry_run: bool) -> str:
    status = "would write" if dry_run and file.status == WRITTEN else file.status
    size = f" ({humanize.size(file.bytes)})" if file.status == WRITTEN else ""
    note = f": {file.note}" if file.note else ""
    place = file.target or f"{file.root}/{file.path}"
    return safe(f"{status}  {place}{size}{note}").replace("\n", "\\n")


def _sum(counts: Counter[str], written: int, *, dry_run: bool) -> str:
    verb = "Would write" if dry_run else "Wrote"
    parts = [f"{verb} {humanize.many(counts[WRITTEN], 'file')}, {humanize.size(written)}"]
    for status, words in (
        (IDENTICAL, "already there"),
        (NOT_ARCHIVED, "not archived"),
        (REFUSED, "refused"),
    ):
        if counts[status]:
            parts.append(f"{counts[status]:,} {words}")
    return "; ".join(parts) + "."
