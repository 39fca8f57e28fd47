"""Parses files again from their archive in worker processes, with the result of `files.replay`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace

from ..files.archive import Frame, unpacked
from ..files.replay import Replayed, replay
from ..source import Claim
from ..sources import SOURCES
from . import parcels, pool
from .reading import JOB_BYTES, LARGEST, SECONDS, LineLengths

_FILE_BYTES = 4 * 1024


GIVEN_UP = [b"given up"]
"""Stands for the pieces of a file whose parser did not come to an end."""


@dataclass(frozen=True, slots=True)
class Archived:
    """A file to be parsed again; without frames, it is left to the writer."""

    id: int
    source: str
    claim: Claim | None
    frames: tuple[Frame, ...]

    @property
    def size(self) -> int:
        """The number of its archived bytes."""
        return sum(frame.end - frame.start for frame in self.frames)


def worth_sending(size: int) -> bool:
    """May a worker parse a file of so many bytes? It holds in memory what it makes of it."""
    return size <= LARGEST


def replayed(
    files: Iterable[Archived], count: int, seconds: float = SECONDS
) -> Generator[list[bytes] | None, None, None]:
    """Yield for each file what `stretches` needs, None if the writer has to parse it itself.

    `count` processes parse them, which end with the iterator.
    """
    with pool.Workers[ReplayJob](count) as workers:
        for job, result in workers.results(_jobs(files, seconds)):
            for number in range(len(job.files)):
                yield (result[number] or None) if result is not None else None


def stretches(pieces: list[bytes]) -> Iterator[Replayed]:
    """Yield the stretches of a file from its pieces."""
    for piece in pieces:
        yield from parcels.unpacked(piece)


def _jobs(files: Iterable[Archived], seconds: float) -> Iterator[ReplayJob]:
    gathered: list[Archived] = []
    size = 0
    for file in files:
        if gathered and size + _FILE_BYTES + file.size > JOB_BYTES:
            yield ReplayJob(tuple(gathered), seconds)
            gathered, size = [], 0
        gathered.append(file)
        size += _FILE_BYTES + file.size
    if gathered:
        yield ReplayJob(tuple(gathered), seconds)


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """Files to be parsed again by a worker."""

    files: tuple[Archived, ...]
    seconds: float
    is_for_writer: bool = False

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(_FILE_BYTES + file.size for file in self.files)

    def items(self) -> Iterator[Iterator[bytes]]:
        """Yield for each file its stretches, packed."""
        return map(_replay, self.files)

    def around(self, number: int) -> tuple[ReplayJob, ReplayJob]:
        """Return the files before one of them, and those after it."""
        before, after = self.files[:number], self.files[number + 1 :]
        return replace(self, files=before), replace(self, files=after)

    def give_up(self, number: int) -> bytes:
        """Return what says so instead of stretches."""
        return GIVEN_UP[0]


def _replay(file: Archived) -> Iterator[bytes]:
    if file.claim is None or not file.frames:
        return
    lengths = LineLengths()
    if any(lengths.is_too_much(unpacked(frame, file.id)) for frame in file.frames):
        return
    pieces = (unpacked(frame, file.id) for frame in file.frames)
    for stretch in replay(SOURCES[file.source], file.claim, pieces):
        yield parcels.packed([stretch])
