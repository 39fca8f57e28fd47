"""What a log is, by its lines: where a name proves too little, or the content is something else.

A source judges the lines, lazily: mostly the first one tells. The same is asked of the file on the
disk and of its archived bytes, so that both are read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..records import Issue, Record
from ..source import FOREIGN, FOREIGN_DOCUMENT, Claim
from .tail import MAX_LINE, read_at

NOT_A_TRANSCRIPT = "not a transcript: no line names a session"
"""Reason of the issue of a file that another program left in a transcript's place."""

_FIRST_CHUNK = 1024  # mostly the first line tells
_LARGEST_CHUNK = 256 * 1024


def lines_in(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the lines of a file, read as far as somebody asks for them. Raises OSError."""
    return lines_of(_chunks(descriptor, size))


def _chunks(descriptor: int, size: int) -> Iterator[bytes]:
    position, chunk = 0, _FIRST_CHUNK
    while position < size:
        data = read_at(descriptor, min(chunk, size - position), position)
        if not data:
            return
        yield data
        position += len(data)
        chunk = min(2 * chunk, _LARGEST_CHUNK)


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of bytes that come in pieces; of one that is too long, its beginning."""
    parts: list[bytes] = []
    length = 0
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield b"".join([*parts, line]) if parts else line
            parts, length = [], 0
        if length < MAX_LINE:
            parts.append(rest)
            length += len(rest)
    if parts:
        yield b"".join(parts)


def as_known(claim: Claim, kind: str) -> Claim:
    """Return the claim of a file as its lines were judged when it was read, to be of this kind."""
    return claim.as_foreign(kind) if kind in (FOREIGN, FOREIGN_DOCUMENT) else claim


def first_records(claim: Claim, start: int) -> list[Record]:
    """Return what is to be said of a file as a whole, with its first stretch."""
    if start == 0 and claim.kind == FOREIGN:
        return [Issue(NOT_A_TRANSCRIPT, 0, None, 0, 0)]
    return []
