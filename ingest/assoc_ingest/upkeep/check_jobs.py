"""Checks files in worker processes: nothing is written, so each reads the database itself."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ..files.parsing import RAN_AWAY
from ..store.database import open_reader
from ..workers import pool
from ..workers.reading import JOB_BYTES, SECONDS
from ..workers.replaying import worth_sending
from . import check_database
from .check_archived import Checked, FileCheck, Listed
from .check_rows import scratch
from .findings import Finding

_ENDLESS = "Its rows are kept. If this happens again, report it with the version of its agent."
_opened = ExitStack()  # in a worker: what stays open as long as it lives


@contextmanager
def begun(
    database: Path,
    files: Sequence[Listed],
    count: int,
    advance: Callable[[int], None],
    seconds: float = SECONDS,
) -> Iterator[Callable[[], Sequence[Checked | None]]]:
    """Begin to check files in `count` processes; yield what waits for them to be done.

    The result for a file is None if it is left to this process. `advance` is called, in a thread,
    with the bytes of each file that a worker has checked.
    """
    if count == 1:
        yield lambda: [None] * len(files)
        return
    with ThreadPoolExecutor(1, "checks") as thread, pool.Workers[CheckJob](count) as workers:
        found = _found(workers, _jobs(database, files, seconds), advance)
        yield thread.submit(list, found).result


def _found(
    workers: pool.Workers[CheckJob], jobs: Iterable[CheckJob], advance: Callable[[int], None]
) -> Iterator[Checked | None]:
    for job, result in workers.results(jobs):
        for number, file in enumerate(job.files):
            pieces = result[number] if result is not None else []
            if pieces:
                advance(file.size)
            yield _unpacked(pieces[0]) if pieces else None


def _jobs(database: Path, files: Iterable[Listed], seconds: float) -> Iterator[CheckJob]:
    gathered: list[Listed] = []
    size = 0
    for file in files:
        if gathered and size + file.size > JOB_BYTES:
            yield CheckJob(str(database), tuple(gathered), seconds)
            gathered, size = [], 0
        gathered.append(file)
        size += file.size
    if gathered:
        yield CheckJob(str(database), tuple(gathered), seconds)


@dataclass(frozen=True, slots=True)
class CheckJob:
    """Files to be checked by a worker."""

    database: str
    files: tuple[Listed, ...]
    seconds: float
    is_for_writer: bool = False

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(1 + file.size for file in self.files)

    def items(self) -> Iterator[Iterator[bytes]]:
        """Yield for each file what was found, packed; nothing if it would take too much memory."""
        return (_checked_here(_check_of(self.database), file) for file in self.files)

    def around(self, number: int) -> tuple[CheckJob, CheckJob]:
        """Return the files before one of them, and those after it."""
        before, after = self.files[:number], self.files[number + 1 :]
        return replace(self, files=before), replace(self, files=after)

    def give_up(self, number: int) -> bytes:
        """Return the finding for a file whose parser does not come to an end."""
        file = self.files[number]
        problem = f"Its rows were not compared: {RAN_AWAY}."
        return _packed(Checked([Finding("rows", problem, _ENDLESS, file.root, file.path)]))


@cache
def _check_of(database: str) -> FileCheck:
    """Return what checks files in this process, for as long as it lives."""
    connection = open_reader(Path(database))
    connection.row_factory = None
    schema = _opened.enter_context(check_database.fresh_schema())
    return FileCheck(connection, _opened.enter_context(scratch(schema)))


def _checked_here(check: FileCheck, file: Listed) -> Iterator[bytes]:
    if worth_sending(file.size) and not check.has_long_line(file):
        yield _packed(check.checked(file))


def _packed(found: Checked) -> bytes:
    fields = [tuple(getattr(one, name) for name in Finding.__slots__) for one in found.findings]
    return marshal.dumps((fields, *found[1:]))


def _unpacked(data: bytes) -> Checked:
    fields, *counts = marshal.loads(data)  # noqa: S302 - from a worker of ours
    return Checked([Finding(*each) for each in fields], *counts)
