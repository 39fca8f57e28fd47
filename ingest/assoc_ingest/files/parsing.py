"""Parses the lines of a file stretch by stretch, and passes the context from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..fast_json import orjson
from ..records import Issue, Record
from ..source import FOREIGN, MAX_CONTEXT, Claim, Context, Line, Source
from .tail import MAX_LINE, pieces

# ------------------------------------------------------------------------------------------------
# Whether a log is what its name says: its lines are checked by its source.
#
# Names can be ambiguous, and content can be something else. The source reads only as many lines
# as it needs, usually one. The file on disk and its archived bytes are checked in the same way.


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


CONTEXT_TOO_LARGE = "what later lines need of earlier ones is too large to be kept"
"""Reason of the issue of a file whose context was dropped."""


RAN_AWAY = "reading it took too long and was given up"
"""Reason of the issue of a file whose parser did not come to an end."""


class Parser:
    """Parses the lines of one log in order, wherever they are cut into stretches."""

    def __init__(self, source: Source, claim: Claim, context: str | None = None) -> None:
        self._source = source
        self.claim = claim
        self.context = context
        """The context after the last stretch, as it is stored: JSON, None if it is empty."""

    def parse(self, lines: Sequence[Line]) -> list[Record]:
        if not lines:
            return []
        records, context = self._source.read(self.claim, lines, _unpacked(self.context))
        if not context:
            self.context = None
            return records
        text = orjson.dumps(context)
        if len(text) > MAX_CONTEXT:  # later rows may lack what earlier lines said
            records.append(Issue(CONTEXT_TOO_LARGE, 0, None, lines[-1].start, len(lines[-1].data)))
            self.context = None
        else:
            self.context = text.decode()
        return records


def _unpacked(context: str | None) -> Context:
    """Return a stored context, an empty one if none is stored."""
    found: Context = orjson.loads(context) if context is not None else {}
    return found
