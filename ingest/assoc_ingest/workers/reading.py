"""Reads files in worker processes: the same steps, in the same order, as `files.changes.read`."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..files import changes
from ..files.parsing import RAN_AWAY
from ..files.steps import Closed, Opened, Part, Step, Unreadable, Work
from ..files.tail import CHUNK, opened, pieces
from ..records import Issue
from . import parcels, pool

PAYS_FROM = 32 * 1024 * 1024
"""From this many bytes on, workers take less time than they take to start."""

JOB_BYTES = 4 * 1024 * 1024
"""Input of a job, unless it is one file that is larger."""

SECONDS = 600.0
"""What a worker may take for one stretch of a file: 4 MB, which are parsed within a second."""

_FILE_BYTES = 4 * 1024  # added to the size of each file, as for a batch
_LARGEST = 32 * 1024 * 1024  # a worker holds in memory what it makes of a file; the writer does not
_LONG_LINE = CHUNK  # what becomes of a longer line would take too much memory in each worker
_LARGE = 1024 * 1024  # a part of which nothing is kept while the next one is read
_BLOCK = 256 * 1024


def usual_jobs() -> int:
    """Return how many workers are used if the user does not say: one for each core, at most 8."""
    if getattr(sys, "frozen", False) or not sys.executable:
        return 1  # there is no interpreter to run workers with
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(cores, pool.MOST)


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
        if files and size + _size(item) > JOB_BYTES:
            yield ReadJob(tuple(files), thorough, seconds)
            files, size = [], 0
        files.append(item)
        size += _size(item)
    if files:
        yield ReadJob(tuple(files), thorough, seconds)


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

    def items(self) -> Iterator[Iterator[bytes]]:
        """Yield for each file its steps, packed."""
        return (_read(item, self.thorough) for item in self.work)

    def around(self, number: int) -> tuple[ReadJob, ReadJob]:
        """Return the files before one of them, and those after it."""
        before, after = self.work[:number], self.work[number + 1 :]
        return replace(self, work=before), replace(self, work=after)

    def give_up(self, number: int) -> bytes:
        """Return the steps of a file that cannot be parsed in any reasonable time."""
        return parcels.packed(_given_up(self.work[number]), self.work[number])


def _read(item: Work, thorough: bool) -> Iterator[bytes]:
    size = item.found.size
    if item.entry is not None and size > _LARGEST:
        return
    if item.entry is None and size > _LONG_LINE and _is_too_much(item.found.location, size):
        return
    steps: list[Step] = []
    for step in changes.read([item], thorough=thorough):
        steps.append(step)
        if isinstance(step, Part) and step.size > _LARGE:
            yield parcels.packed(steps, item)
            steps = []
    yield parcels.packed(steps, item)


def _is_too_much(path: str, size: int) -> bool:
    """Is a file very large, or does it have a very long line?"""
    if size > _LARGEST:
        return True
    length = 0
    try:
        with opened(path) as descriptor:
            for block in pieces(descriptor, first=_BLOCK):
                first = block.find(b"\n")
                if length + (first if first >= 0 else len(block)) > _LONG_LINE:
                    return True
                length = len(block) - 1 - block.rfind(b"\n") if first >= 0 else length + len(block)
    except OSError:
        pass  # reading it will fail, too, and tell why
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
