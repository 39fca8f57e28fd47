"""Entries of stores: conversations that are rows of a database, or many small files together.

The walk finds the files of a store. A store lists its entries, each with a fingerprint, so that
only those are read that have changed; and it yields the lines of an entry (see `entry`). What is
the same is the same to the byte, so an entry is compared and archived like a file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import IO

from ..fast_json import orjson
from ..source import KnownFile, Member, entry_path, is_entry_key
from ..sources.jsonl import whole_value
from .stored_names import PACKED_DAMAGED, PACKED_TOO_LARGE, stored_number
from .tail import open_regular, pieces
from .walk import FoundFile, Root

# ------------------------------------------------------------------------------------------------
# Files that an agent has compressed: they are read as what is in them.
#
# A name that ends in `.jsonl.zst` is a log as Zstandard packed it. It is unpacked into a file
# without a name, so everything else sees the lines: a log that is packed, or unpacked again, is
# the same log at another path, and its archive has its lines. A packed file without its end is a
# log with a torn one.
#
# One that is damaged, or holds far more than such a file can, raises PackedError. That is found
# out before a byte of it is on a disk: it is unpacked once to look, a piece at a time, and again
# to a file if it is too large to be held.


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SUFFIX = ".zst"
_PACKED = f".jsonl{_SUFFIX}"
_LARGEST = 8 * 1024**3  # bytes that are unpacked; a small file can hold any number of equal ones
_RATIO = 1000  # a log is packed to a tenth, and a repetitive one to a hundredth
_ALWAYS = 64 * 1024 * 1024  # bytes that are unpacked whatever the ratio is
_HELD = 16 * 1024 * 1024  # bytes that are held in memory instead of being unpacked twice
_UNPACKED_PIECE = 1024 * 1024


class PackedError(OSError):
    """What is in a packed file cannot be read, however often it is tried."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_packed(path: str) -> bool:
    """Is the file at a path a packed log, by its name?"""
    return path.endswith(_PACKED)


def unpacked_name(name: str) -> str:
    """Return the name of a file that has what is in a packed one; other names unchanged."""
    return name.removesuffix(_SUFFIX) if is_packed(name) else name


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open the content of a regular file for reading, and close it at the end."""
    descriptor = open_content(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_content(path: str) -> int:
    """Open the content of a regular file for reading and return its descriptor.

    Raises OSError, and PackedError for a packed file that is damaged or holds too much.
    """
    descriptor = open_regular(path)
    if not is_packed(path):
        return descriptor
    try:
        return _unpacked(descriptor)
    finally:
        os.close(descriptor)


def content_size(descriptor: int, path: str, size: int) -> int:
    """Return how many bytes of an open content to read, if its file had this size before."""
    there = os.fstat(descriptor).st_size
    return there if is_packed(path) else min(size, there)


def _unpacked(descriptor: int) -> int:
    """Return the descriptor of a file without a name that has what is in a packed one."""
    held = _looked_through(descriptor)
    with _nameless(is_small=held is not None) as file:
        for data in _contents(descriptor) if held is None else held:
            file.write(data)
        return os.dup(file.fileno())


def _looked_through(descriptor: int) -> list[bytes] | None:
    """Return what is in a packed file, None if it is too large to be held. Raises PackedError."""
    most = min(_LARGEST, max(_ALWAYS, _RATIO * os.fstat(descriptor).st_size))
    held: list[bytes] = []
    size = 0
    for data in _contents(descriptor):
        size += len(data)
        if size > most:
            raise PackedError(PACKED_TOO_LARGE)
        if size <= _HELD:
            held.append(data)
        else:
            held.clear()
    return held if size <= _HELD else None


def _nameless(*, is_small: bool) -> IO[bytes]:
    if is_small and hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("unpacked"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _contents(descriptor: int) -> Iterator[bytes]:
    frame = zstd.ZstdDecompressor()
    for piece in pieces(descriptor):
        data = piece
        try:
            while data or not (frame.eof or frame.needs_input):
                if frame.eof:
                    frame = zstd.ZstdDecompressor()
                yield frame.decompress(data, _UNPACKED_PIECE)
                data = frame.unused_data if frame.eof else b""
        except zstd.ZstdError:
            raise PackedError(PACKED_DAMAGED) from None


Lines = Callable[[], Iterator[bytes]]
"""Yields the bytes of an entry, in pieces; the same again while the entry is open."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a store as it was listed; `open` reads it, and raises OSError if it cannot."""

    path: str
    location: str
    size: int
    """About how many bytes it will have."""
    changed_ns: int
    fingerprint: int
    open: Callable[[], AbstractContextManager[Lines]]

    def found(self, known: KnownFile | None) -> FoundFile:
        """Return the entry as if it were a file that the walk has found.

        Its fingerprint takes the place of the inode. Its real size follows when it is read.
        """
        size = known.size if known is not None else self.size
        time = self.changed_ns
        return FoundFile((self.path,), self.location, size, time, time, self.fingerprint, 0)


@dataclass(slots=True)
class Store:
    """The files of one store that a walk has found."""

    root: Root
    name: str
    database: FoundFile | None = None
    files: list[FoundFile] = field(default_factory=list)

    @property
    def location(self) -> str:
        """The path of the database or the directory."""
        return self.root.location((self.name,))

    @property
    def found(self) -> FoundFile | None:
        """The database with its log as one file: a change of either shows in size or times."""
        if self.database is None:
            return None
        both = [self.database, *self.files]
        return self.database._replace(
            size=sum(found.size for found in both),
            mtime_ns=max(found.mtime_ns for found in both),
            ctime_ns=max(found.ctime_ns for found in both),
        )

    def entries(self) -> Iterator[Entry]:
        by_parts = {found.parts: found for found in self.files}
        gathered = [
            entry
            for entry in self.root.source.gather(by_parts, lambda parts: _content(by_parts[parts]))
            if is_entry_key(entry.key)
        ]
        above = {entry.key: entry.above for entry in gathered}
        for entry in gathered:
            members = [(member, by_parts[member.parts]) for member in entry.members]
            yield Entry(
                entry_path(self.name, entry.key, above),
                self.location,
                sum(found.size for _, found in members),
                max((max(found.mtime_ns, found.ctime_ns) for _, found in members), default=1),
                fingerprint_of((found.path, *_stat(found)) for _, found in members),
                partial(_open_files, members),
            )


def _stat(found: FoundFile) -> tuple[int, ...]:
    return found.size, found.mtime_ns, found.ctime_ns, found.inode, found.device


def fingerprint_of(facts: Iterable[object]) -> int:
    """Return a number for what was listed of an entry: the same as long as that is the same."""
    digest = blake2b(digest_size=8)
    for fact in facts:
        digest.update(repr(fact).encode("utf-8", "surrogatepass"))
    return stored_number(int.from_bytes(digest.digest()))


@contextmanager
def _open_files(members: Sequence[tuple[Member, FoundFile]]) -> Iterator[Lines]:
    """Open an entry that consists of files: each is a line."""

    def lines() -> Iterator[bytes]:
        for member, found in members:
            data = _without(member.withheld, _content(found))
            yield line_of(member.table, member.id, {}, data)

    yield lines


def _content(found: FoundFile) -> bytes:
    with opened(found.location) as descriptor:
        return b"".join(pieces(descriptor))


def _without(withheld: Sequence[str], data: bytes) -> bytes:
    """Return a JSON object without these fields."""
    if not any(field.encode() in data for field in withheld):
        return data
    found = whole_value(data)
    if found is None or not isinstance(found[0], dict):
        return data
    return orjson.dumps({key: item for key, item in found[0].items() if key not in withheld})


def line_of(table: str, id_: object, columns: Mapping[str, object], data: bytes | None) -> bytes:
    """Return the line of a row: the same bytes whenever the row is the same.

    `data` is a JSON value that stays as it is, except for white space at the borders of its lines;
    if it is anything else, it becomes a text.
    """
    head = {"table": table, "id": id_, **columns}
    if data is None:
        return orjson.dumps(head) + b"\n"
    if not _is_json(data):
        return orjson.dumps({**head, "data": data.decode("utf-8", "replace")}) + b"\n"
    if b"\n" in data:
        data = b"".join(map(bytes.strip, data.split(b"\n")))
    return orjson.dumps(head)[:-1] + b',"data":' + data.strip() + b"}\n"


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return whole_value(data) is not None
    return True
