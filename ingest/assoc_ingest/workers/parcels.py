"""Packs steps and stretches for the way from a worker to the writer.

Almost everything in them is records, and the rest mostly plain values, too. So they are packed with
`marshal`, which takes a fifth of the time of `pickle`; the records of a stretch all of one type
together. What the writer has sent does not travel back.
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
from ..files.steps import Closed, Opened, Part, Step, Work
from ..files.tail import Prefix
from ..records import Record

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


def unpacked(data: bytes, work: Work | None = None) -> list[Any]:
    """Return what `packed` has packed."""
    return [
        _MADE[values[0]](work, *values[1:])
        for values in marshal.loads(data)  # noqa: S302 - from a worker of ours
    ]


def _plain(result: Step | Replayed, work: Work | None) -> tuple[object, ...]:
    """Return a result as plain values, the first of which says what it is."""
    if isinstance(result, Part):
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


def _part(_: object, records: _Packed, frames: list[Any], prefix: Any, *rest: Any) -> Part:
    made = [Frame(*frame) for frame in frames]
    return Part(_records(records), partial(list, made), _prefix(prefix), *rest)


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
