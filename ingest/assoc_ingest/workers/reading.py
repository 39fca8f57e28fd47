"""Reads files in worker processes: the same steps, in the same order, as `files.changes.read`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..files import changes
from ..files.archive import Compressor
from ..files.packed import content_size, is_packed, opened
from ..files.parsing import RAN_AWAY
from ..files.steps import Closed, Opened, Part, Step, Unreadable, Work
from ..files.tail import CHUNK, pieces
from ..records import Issue
from . import parcels, pool

JOB_BYTES = 4 * 1024 * 1024
"""Input of a job, unless it is one file that is larger."""

SECONDS = 600.0
"""What a worker may take for one stretch of a file: 4 MB, which are parsed within a second."""

_FILE_BYTES = 4 * 1024  # added to the size of each file, as for a batch
LARGEST = 32 * 1024 * 1024
"""Bytes of a file that a worker reads: the writer holds what it makes of the file in memory."""

_LONG_LINE = CHUNK  # what becomes of a longer line would take too much memory in each worker
_LARGE = 1024 * 1024  # a part of which nothing is kept while the next one is read
_BLOCK = 256 * 1024


def read(
    work: Sequence[Work], *, thorough: bool, count: int, seconds: float = SECONDS
) -> Generator[Step, None, None]:
    """Yield the steps for each file, made by `count` processes, which end with the iterator."""
    with pool.Workers[ReadJob](count) as workers:
        for job, result in workers.results(_jobs(work, thorough, seconds)):
            if result is None:
                yield from changes.read(job.work, thorough=thorough)
                continue
            for pieces, item in zip(result, job.work, strict=True):
                if not pieces:
                    yield from changes.read([item], thorough=thorough)
                for piece in pieces:
                    yield from parcels.unpacked(piece, item)


def _jobs(work: Iterable[Work], thorough: bool, seconds: float) -> Iterator[ReadJob]:
    files: list[Work] = []
    size = 0
    for item in work:
        is_other = bool(files) and _is_of_store(item) is not _is_of_store(files[0])
        if is_other or (files and size + _size(item) > JOB_BYTES and not _is_of_store(item)):
            yield ReadJob(tuple(files), thorough, seconds)
            files, size = [], 0
        files.append(item)
        size += _size(item)
    if files:
        yield ReadJob(tuple(files), thorough, seconds)


def _is_of_store(item: Work) -> bool:
    """Is it an entry of a store? The writer reads them: what fails decides about the others."""
    return item.entry is not None or item.listed is not None


def _size(item: Work) -> int:
    return _FILE_BYTES + item.found.size


@dataclass(frozen=True, slots=True)
class ReadJob:
    """Files to be read by a worker.

    No result leaves a file to the writer: it would take too much memory here.
    """

    work: tuple[Work, ...]
    thorough: bool
    seconds: float

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(map(_size, self.work))

    @property
    def is_for_writer(self) -> bool:
        """Must no worker do it?"""
        return any(map(_is_of_store, self.work))

    def items(self) -> Iterator[Iterator[bytes]]:
        """Yield for each file its steps, packed."""
        packer = changes.Packer(Compressor())  # the other cores have work of their own
        return (_read(item, packer, self.thorough) for item in self.work)

    def around(self, number: int) -> tuple[ReadJob, ReadJob]:
        """Return the files before one of them, and those after it."""
        before, after = self.work[:number], self.work[number + 1 :]
        return replace(self, work=before), replace(self, work=after)

    def give_up(self, number: int) -> bytes:
        """Return the steps of a file that cannot be parsed in any reasonable time."""
        return parcels.packed(_given_up(self.work[number]), self.work[number])


def _read(item: Work, packer: changes.Packer, thorough: bool) -> Iterator[bytes]:
    path, size = item.found.location, item.found.size
    if item.entry is not None and size > LARGEST:
        return
    is_large = size > _LONG_LINE or is_packed(path)
    if item.entry is None and is_large and _is_too_much(path, size):
        return
    steps: list[Step] = []
    for step in changes.read_file(item, packer, thorough=thorough):
        steps.append(step)
        if isinstance(step, Part) and step.size > _LARGE:
            yield parcels.packed(steps, item)
            steps = []
    yield parcels.packed(steps, item)


def _is_too_much(path: str, size: int) -> bool:
    """Is a file very large, or does it have a very long line?"""
    if size > LARGEST:
        return True
    lengths = LineLengths()
    try:
        with opened(path) as descriptor:
            if content_size(descriptor, path, size) > LARGEST:
                return True
            return any(map(lengths.is_too_much, pieces(descriptor, first=_BLOCK)))
    except OSError:
        return False  # reading it will fail, too, and tell why


class LineLengths:
    """Tells whether a line that comes in blocks is too long for a worker."""

    def __init__(self) -> None:
        self._length = 0

    def is_too_much(self, block: bytes) -> bool:
        """Is the line that continues in this block too long?"""
        first = block.find(b"\n")
        self._length += first if first >= 0 else len(block)
        if self._length > _LONG_LINE:
            return True
        if first >= 0:
            self._length = len(block) - 1 - block.rfind(b"\n")
        return False


def _given_up(item: Work) -> list[Step]:
    """Return the steps of a file of which only an issue is stored until it changes.

    What is known of a file stays as it is, and the next sync tries again.
    """
    told = Unreadable(item.found.location, RAN_AWAY)
    if item.known is not None:
        return [told]
    return [
        Opened(item, item.claim, None, None, 0, False),
        Part([Issue(RAN_AWAY, 0, None, 0, 0)], list, None, 0),
        Closed(),
        told,
    ]
