"""Parses a file again from its archive, with the same result as a sync that reads it from disk.

Only bytes up to the offset are archived, so every line is complete, even a last one without a line
feed. The archived frames are cut into stretches of whole lines, about `tail.CHUNK` each, so that a
file of any size takes the memory of one stretch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..records import Issue, Record
from ..source import LOG, Claim, KnownFile, Line, Source, claim_at
from . import stored_names, tail
from .changes import LONG_LINE
from .parsing import Parser, first_records


@dataclass(frozen=True, slots=True)
class Replayed:
    """A stretch of whole lines: its borders in the file, its records, its number of lines."""

    start: int
    end: int
    records: list[Record]
    line_count: int
    """Lines that are not blank."""
    context: str | None = None
    """The context for the lines after it, as it is stored; see `source.Context`."""


def claim_of(source: Source, known: KnownFile) -> Claim | None:
    """Return the claim of a known file, None if the source no longer reads such files.

    If the path is lost, the claim is made from the row.
    """
    if stored_names.is_unnamed(known.path):
        return stored_names.claim_of_unnamed(source.name, known)
    claim = claim_at(source, known.path)
    return source.as_kind(claim, known.kind) if claim is not None else None


def replay(source: Source, claim: Claim, pieces: Iterable[bytes]) -> Iterator[Replayed]:
    """Parse the bytes of a file, which come in pieces, and yield its stretches."""
    if source.shape(claim) != LOG:
        data = b"".join(pieces)
        yield Replayed(0, len(data), source.parse(claim, [Line(0, data)]), 1)
        return
    parser = Parser(source, claim)
    for stretch in tail.cut(pieces, 0, lambda rest: source.complete_prefix(claim, rest)):
        if stretch.is_cut:
            continue
        start = stretch.first_line
        records = parser.parse(stretch.lines)
        records.extend(first_records(claim, start))
        if stretch.long_line:
            records.append(Issue(LONG_LINE, 1, None, start, stretch.long_line))
        lines = sum(1 for line in stretch.lines if line.data.strip(b" \t\r"))
        lines += stretch.long_line > 0
        yield Replayed(start, stretch.end, records, lines, parser.context)
