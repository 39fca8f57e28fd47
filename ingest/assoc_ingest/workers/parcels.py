"""Packs steps and stretches for the way from a worker to the writer.

Almost everything in them is records. They are packed with `marshal`, all of one type together,
which takes a fifth of the time of `pickle`. What the writer has sent does not travel back.
"""

from __future__ import annotations

import io
import marshal
import pickle
from collections.abc import Iterable
from functools import partial
from typing import Any, get_args

from ..files.archive import Frame
from ..files.replay import Replayed
from ..files.steps import Part, Step, Work
from ..files.tail import Prefix
from ..records import Record

_KINDS: tuple[Any, ...] = get_args(Record)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
WITHOUT_REFERENCES = 2
"""The version of `marshal` to use: later ones look for repeated objects, which takes long."""


def packed(results: Iterable[Step | Replayed], work: Work | None = None) -> bytes:
    """Return what was read of a file, without the `work` that led to it.

    Raises ValueError if a record has something else than plain values.
    """
    data = io.BytesIO()
    _Packer(data, work).dump(list(results))
    return data.getvalue()


def unpacked(data: bytes, work: Work | None = None) -> list[Any]:
    """Return what `packed` has packed."""
    results: list[Any] = _Unpacker(io.BytesIO(data), work).load()
    return results


class _Packer(pickle.Pickler):
    def __init__(self, data: io.BytesIO, work: Work | None) -> None:
        super().__init__(data, pickle.HIGHEST_PROTOCOL)
        self._known = {id(part): place for place, part in enumerate(_parts(work))}

    def persistent_id(self, value: object) -> int | None:
        return None if value is None else self._known.get(id(value))

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, Replayed):
            borders = (value.start, value.end, value.line_count, value.context)
            return _replayed, (_packed_records(value.records), *borders)
        if not isinstance(value, Part):
            return NotImplemented
        records = _packed_records(value.records)
        place = (value.prefix, value.size, value.is_open, value.context)
        return _part, (records, value.frames(), *place)


class _Unpacker(pickle.Unpickler):
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


def _packed_records(records: Iterable[Record]) -> bytes:
    by_kind: dict[int, list[tuple[object, ...]]] = {}
    for record in records:
        by_kind.setdefault(_NUMBERS[record.__class__], []).append(tuple(record))
    return marshal.dumps(list(by_kind.items()), WITHOUT_REFERENCES)


def _part(
    records: bytes,
    frames: list[Frame],
    prefix: Prefix | None,
    size: int,
    is_open: bool,
    context: str | None,
) -> Part:
    return Part(_records(records), partial(list, frames), prefix, size, is_open, context)


def _replayed(
    records: bytes, start: int, end: int, line_count: int, context: str | None
) -> Replayed:
    return Replayed(start, end, _records(records), line_count, context)


def _records(packed: bytes) -> list[Record]:
    read: list[Record] = []
    for number, rows in marshal.loads(packed):  # noqa: S302 - from a worker of ours
        read.extend(map(_KINDS[number]._make, rows))
    return read
