"""A file read again from its archive, as a sync read it from the disk: the same records.

Only bytes up to the offset are archived, so every line of them is whole, and so is a last one
without a line feed. The bytes come in frames; they are cut at line ends again here, about
`tail.CHUNK` at a time, so that a file of any size costs the memory of one stretch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..records import Issue, Record
from ..source import LOG, Claim, KnownFile, Line, Source, claim_at
from . import lost, tail
from .changes import LONG_LINE
from .classify import as_known, first_records
from .parsing import Parser


@dataclass(frozen=True, slots=True)
class Replayed:
    """A stretch of whole lines: its borders in the file, what it means, how many lines it has."""

    start: int
    end: int
    records: list[Record]
    line_count: int
    """Lines that are not blank."""
    context: str | None = None
    """What its lines leave to those that follow, as it is stored; see `source.Context`."""


def claim_of(source: Source, known: KnownFile) -> Claim | None:
    """Return what the source says of a known file's path, None if it no longer reads such.

    Where the path is lost, what the row says in its place.
    """
    if lost.is_unnamed(known.path):
        return lost.claim_of_unnamed(source.name, known)
    claim = claim_at(source, known.path)
    return as_known(claim, known.kind) if claim is not None else None


def replay(source: Source, claim: Claim, pieces: Iterable[bytes]) -> Iterator[Replayed]:
    """Parse the bytes of a file, given piece by piece, in stretches."""
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
