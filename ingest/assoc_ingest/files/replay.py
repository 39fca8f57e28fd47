"""A file read again from its archive, as a sync read it from the disk: the same records.

Only bytes up to the offset are archived, so every line of them is whole, and so is a last one
without a line feed. The bytes come in frames; they are cut at line ends again here, about
`tail.CHUNK` at a time, so that a file of any size costs the memory of one stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..records import Issue, Record
from ..source import LOG, Claim, KnownFile, Line, Source
from . import lost, tail
from .changes import LONG_LINE
from .judge import as_known, first_records
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
    claim = source.claim(tuple(known.path.split("/")))
    return as_known(claim, known) if claim is not None else None


def replay(source: Source, claim: Claim, pieces: Iterable[bytes]) -> Iterator[Replayed]:
    """Parse the bytes of a file, given piece by piece, in stretches."""
    if source.shape(claim) != LOG:
        data = b"".join(pieces)
        yield Replayed(0, len(data), source.parse(claim, [Line(0, data)]), 1)
        return
    stretches = _stretches(_gathered(pieces), lambda tail: source.complete_prefix(claim, tail))
    parser = Parser(source, claim)
    for start, end, lines, long_line in stretches:
        records = parser.parse(lines)
        records.extend(first_records(claim, start))
        if long_line:
            records.append(Issue(LONG_LINE, 1, None, start, long_line))
        count = sum(1 for line in lines if line.data.strip(b" \t\r")) + (long_line > 0)
        yield Replayed(start, end, records, count, parser.context)


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces to chunks; cut large ones, so that only a first line can be too long."""
    chunk: list[bytes] = []
    size = 0
    for piece in (
        whole[low : low + tail.CHUNK]
        for whole in pieces
        for low in range(0, len(whole), tail.CHUNK)
    ):
        chunk.append(piece)
        size += len(piece)
        if size >= tail.CHUNK:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)


def _stretches(
    chunks: Iterable[bytes], complete_prefix: Callable[[bytes], int]
) -> Iterator[tuple[int, int, list[Line], int]]:
    """Yield (start, end, lines, length of a line too long to be decoded).

    Of a line that is too long no byte is kept while its end is looked for.
    """
    start, buffer, passed = 0, b"", 0
    for chunk in chunks:
        buffer += chunk
        while not passed and (taken := tail.whole_objects(buffer, complete_prefix)):
            yield start, start + taken, tail.lines_of(start, buffer[:taken]), 0
            start, buffer = start + taken, buffer[taken:]
        if passed or tail.begins_too_long(buffer):
            end = buffer.find(b"\n")
            if end < 0:
                passed, buffer = passed + len(buffer), b""
                continue
            length = passed + end
            yield start, start + length + 1, [], length
            start, buffer, passed = start + length + 1, buffer[end + 1 :], 0
        taken = buffer.rfind(b"\n") + 1
        if taken:
            yield start, start + taken, tail.lines_of(start, buffer[:taken]), 0
            start, buffer = start + taken, buffer[taken:]
    if buffer:
        yield start, start + len(buffer), tail.lines_of(start, buffer), 0
