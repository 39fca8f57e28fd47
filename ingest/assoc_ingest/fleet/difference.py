"""Which stretches of a file must be sent so that the server has the frames that are here.

Both sides have a list of frames, known by two digests each: of the bytes, and of the rows that
begin in the stretch. A stretch reaches to where the next frame begins; that of the last one has no
end, because rows about what follows the archived bytes travel with it. A stretch is sent if a
digest differs, or if the server has a frame in it that begins elsewhere. What lies between the
stretches that are looked at stays as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Stretch(NamedTuple):
    """What has to be replaced on the server; `end` None: all that follows."""

    start: int
    end: int | None
    frame: Any
    """What it becomes: a frame of the projection."""
    has_bytes: bool
    """The server has the bytes of the frame; only its rows differ."""


def stretches(frames: Iterable[Any], there: dict[int, tuple[bytes, bytes]]) -> Iterator[Stretch]:
    """Yield what has to be replaced: `there` has the digests of the server's frames by start."""
    starts = sorted(there)
    for frame in frames:
        digest, rows_digest = there.get(frame.start, (b"", b""))
        is_same = digest == frame.digest and rows_digest == frame.rows_digest
        if not is_same or _lie_between(starts, frame.start, frame.end):
            yield Stretch(frame.start, frame.end, frame, digest == frame.digest)


def _lie_between(starts: list[int], start: int, end: int | None) -> bool:
    place = bisect_right(starts, start)
    return place < len(starts) and (end is None or starts[place] < end)
