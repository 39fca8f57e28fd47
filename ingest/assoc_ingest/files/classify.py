"""Whether a log is what its name says: its lines are checked by its source.

Names can be ambiguous, and content can be something else. The source reads only as many lines as it
needs, usually one. The file on disk and its archived bytes are checked in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..records import Issue, Record
from ..source import FOREIGN, Claim
from .tail import MAX_LINE, pieces

NOT_A_TRANSCRIPT = "not a transcript: no line names a session"
"""Reason of the issue of a file that lies where transcripts lie, but is none."""

_FIRST_PIECE = 1024  # bytes; usually the first line decides


def lines_in(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the lines of a file, which is read only as far as they are used. Raises OSError."""
    return lines_of(pieces(descriptor, 0, size, first=_FIRST_PIECE))


def lines_of(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of bytes that come in parts; of one that is too long, its beginning."""
    held: list[bytes] = []
    length = 0
    for part in parts:
        *whole, rest = part.split(b"\n")
        for line in whole:
            yield b"".join([*held, line]) if held else line
            held, length = [], 0
        if length < MAX_LINE:
            held.append(rest)
            length += len(rest)
    if held:
        yield b"".join(held)


def first_records(claim: Claim, start: int) -> list[Record]:
    """Return the records about a file as a whole, which belong to its first stretch."""
    if start == 0 and claim.kind == FOREIGN:
        return [Issue(NOT_A_TRANSCRIPT, 0, None, 0, 0)]
    return []
