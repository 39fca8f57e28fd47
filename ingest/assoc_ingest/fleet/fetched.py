"""What a pull fetched of one file: its frames, checked, and where they end."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from ..files import archive
from ..files.archive import Frame
from ..files.stored_names import NO_TIME, stored_time
from ..files.tail import Prefix
from ..source import Checkpoint

MOST_OF_A_FRAME = 16 * 1024 * 1024
"""Bytes of a frame: none of an honest machine has more than a quarter of it."""


class Content(NamedTuple):
    """The bytes of a file, as the server has them."""

    file: Any
    frames: list[Frame]
    mark: Checkpoint
    size: int
    """Bytes in all frames."""

    @property
    def end(self) -> int:
        """The byte after the last one."""
        return self.frames[-1].end

    @property
    def lacks_bytes(self) -> bool:
        """Is anything missing, between frames or at the end?"""
        return self.size < int(self.file["offset"])


def content_of(file: Any, rows: list[Any]) -> Content | None:
    """Return what the server has of a file, None if a frame is damaged.

    A frame ends before the next one begins; if bytes are lost, a gap is between them.
    """
    prefix, frames = Prefix(), list[Frame]()
    starts = [*(row["start"] for row in rows), file["offset"]]
    for row, (start, end) in zip(rows, pairwise(starts), strict=True):
        data = archive.whole(bytes(row["data"]), min(end - start, MOST_OF_A_FRAME))
        if data is None:
            return None
        prefix = prefix.extended(data)
        frame = Frame(start, start + len(data), bytes(row["data"]), data.count(b"\n"))
        frames.append(frame)
    return Content(file, frames, prefix.checkpoint(), prefix.offset)


def pulled_key(uuid: str, file_key: bytes) -> bytes:
    """Return the key that a file of the machine with this uuid has where it is pulled."""
    return sha256(UUID(uuid).bytes + file_key).digest()[:16]


def nanoseconds(time: str | None) -> int:
    """Return the time of a file as its row has it: plans and documents have it from there."""
    try:
        seconds = datetime.fromisoformat((time or "").replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return NO_TIME
    return stored_time(round(seconds * 1_000) * 1_000_000)
