"""What workers do: read files, parse them again from the archive, and pack the results for the
writer.
"""

from __future__ import annotations

import io
import marshal
import pickle
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from ..files import changes
from ..files.archive import Compressor, Frame, unpacked
from ..files.changes import Closed, FilePart, Opened, Replayed, Step, Unreadable, replay
from ..files.stores import Work, content_size, is_packed, opened
from ..files.tail import CHUNK, RAN_AWAY, Prefix, pieces
from ..records import Issue, Record
from ..source import Claim
from ..sources import SOURCES
from . import Workers

# ------------------------------------------------------------------------------------------------
# Packs steps and stretches for the way from a worker to the writer.
#
# Almost everything in them is records, and the rest mostly plain values, too. So they are packed
# with `marshal`, which takes a fifth of the time of `pickle`; the records of a stretch all of one
# type together. What the writer has sent does not travel back.


_KINDS: tuple[Any, ...] = get_args(Record)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
WITHOUT_REFERENCES = 2
"""The version of `marshal` to use: later ones look for repeated objects, which takes long."""

_PART, _OPENED, _CLOSED, _REPLAYED, _OTHER = range(5)

_Packed = list[tuple[int, list[tuple[object, ...]]]]


def packed(results: Iterable[Step | Replayed], work: Work | None = None) -> bytes:
    """Return what was read of a file, without the `work` that led to it.

    Raises ValueError if a record has something else than plain values.
    """
    return marshal.dumps([_plain(result, work) for result in results], WITHOUT_REFERENCES)


def unpacked_parcel(data: bytes, work: Work | None = None) -> list[Any]:
    return [
        _MADE[values[0]](work, *values[1:])
        for values in marshal.loads(data)  # noqa: S302 - from a worker of ours
    ]


def _plain(result: Step | Replayed, work: Work | None) -> tuple[object, ...]:
    """Return a result as plain values, the first of which says what it is."""
    if isinstance(result, FilePart):
        return (
            _PART,
            _by_kind(result.records),
            [tuple(frame) for frame in result.frames()],
            _plain_prefix(result.prefix),
            result.size,
            result.is_open,
            result.context,
        )
    if isinstance(result, Replayed):
        records = _by_kind(result.records)
        return _REPLAYED, records, result.start, result.end, result.line_count, result.context
    if isinstance(result, Closed):
        return (_CLOSED,)
    if isinstance(result, Opened) and _is_as_sent(result, work):
        prefix = _plain_prefix(result.prefix)
        return _OPENED, result.known is not None, prefix, result.generation, result.is_rewritten
    data = io.BytesIO()
    _Pickler(data, work).dump(result)
    return _OTHER, data.getvalue()


def _is_as_sent(opened: Opened, work: Work | None) -> bool:
    return (
        work is not None
        and opened.work is work
        and opened.claim is work.claim
        and (opened.known is None or opened.known is work.known)
    )


def _plain_prefix(prefix: Prefix | None) -> tuple[object, ...] | None:
    return None if prefix is None else tuple(prefix)


def _by_kind(records: Iterable[Record]) -> _Packed:
    by_kind: dict[int, list[tuple[object, ...]]] = {}
    for record in records:
        by_kind.setdefault(_NUMBERS[record.__class__], []).append(tuple(record))
    return list(by_kind.items())


# -- and back ------------------------------------------------------------------------------------


def _prefix(values: Iterable[Any] | None) -> Prefix | None:
    return None if values is None else Prefix(*values)


def _records(by_kind: _Packed) -> list[Record]:
    read: list[Record] = []
    for number, rows in by_kind:
        read.extend(map(_KINDS[number]._make, rows))
    return read


def _part(_: object, records: _Packed, frames: list[Any], prefix: Any, *rest: Any) -> FilePart:
    made = [Frame(*frame) for frame in frames]
    return FilePart(_records(records), partial(list, made), _prefix(prefix), *rest)


def _opened(work: Work, is_known: bool, prefix: Any, *rest: Any) -> Opened:
    return Opened(work, work.claim, work.known if is_known else None, _prefix(prefix), *rest)


def _replayed(
    _: object, records: _Packed, start: int, end: int, line_count: int, context: str | None
) -> Replayed:
    return Replayed(start, end, _records(records), line_count, context)


def _other(work: Work | None, data: bytes) -> object:
    return _Unpickler(io.BytesIO(data), work).load()


_MADE: dict[int, Any] = {
    _PART: _part,
    _OPENED: _opened,
    _CLOSED: lambda _: Closed(),
    _REPLAYED: _replayed,
    _OTHER: _other,
}


class _Pickler(pickle.Pickler):
    def __init__(self, data: io.BytesIO, work: Work | None) -> None:
        super().__init__(data, pickle.HIGHEST_PROTOCOL)
        self._known = {id(part): place for place, part in enumerate(_parts(work))}

    def persistent_id(self, value: object) -> int | None:
        return None if value is None else self._known.get(id(value))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, work: Work | None) -> None:
        super().__init__(data)
        self._known = _parts(work)

    def persistent_load(self, place: int) -> object:
        return self._known[place]


def _parts(work: Work | None) -> tuple[object, ...]:
    """Return what does not travel back."""
    if work is None:
        return ()
    return work, work.claim, work.known, work.found, work.root, work.entry


# ------------------------------------------------------------------------------------------------
# Reads files in worker processes: the same steps, in the same order, as `files.changes.read`.


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
    with Workers[ReadJob](count) as workers:
        for job, result in workers.results(_jobs(work, thorough, seconds)):
            if result is None:
                yield from changes.read(job.work, thorough=thorough)
                continue
            for pieces, item in zip(result, job.work, strict=True):
                if not pieces:
                    yield from changes.read([item], thorough=thorough)
                for piece in pieces:
                    yield from unpacked_parcel(piece, item)


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
        return packed(_given_up(self.work[number]), self.work[number])


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
        if isinstance(step, FilePart) and step.size > _LARGE:
            yield packed(steps, item)
            steps = []
    yield packed(steps, item)


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
        FilePart([Issue(RAN_AWAY, 0, None, 0, 0)], list, None, 0),
        Closed(),
        told,
    ]


# ------------------------------------------------------------------------------------------------
# Parses files again from their archive in worker processes, with the result of `files.replay`.


GIVEN_UP = [b"given up"]
"""In place of the pieces of a file whose parser did not finish."""


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
    with Workers[ReplayJob](count) as workers:
        for job, result in workers.results(_replay_jobs(files, seconds)):
            for number in range(len(job.files)):
                yield (result[number] or None) if result is not None else None


def stretches(pieces: list[bytes]) -> Iterator[Replayed]:
    for piece in pieces:
        yield from unpacked_parcel(piece)


def _replay_jobs(files: Iterable[Archived], seconds: float) -> Iterator[ReplayJob]:
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
        yield packed([stretch])
