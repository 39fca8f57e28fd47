"""Entries of stores: conversations that are rows of a database, or many small files together.

The walk finds the files of a store. A store lists its entries, each with a fingerprint, so that
only those are read that have changed; and it yields the lines of an entry (see `entry`). What is
the same is the same to the byte, so an entry is compared and archived like a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from ..entry import Member, entry_path, is_entry_key
from ..fast_json import orjson
from ..source import KnownFile
from ..sources.jsonl import whole_value
from .packed import opened
from .stored_names import stored_number
from .tail import pieces
from .walk import Found, Root

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

    def found(self, known: KnownFile | None) -> Found:
        """Return the entry as if it were a file that the walk has found.

        Its fingerprint takes the place of the inode. Its real size follows when it is read.
        """
        size = known.size if known is not None else self.size
        time = self.changed_ns
        return Found((self.path,), self.location, size, time, time, self.fingerprint, 0)


@dataclass(slots=True)
class Store:
    """The files of one store that a walk has found."""

    root: Root
    name: str
    database: Found | None = None
    files: list[Found] = field(default_factory=list)

    @property
    def location(self) -> str:
        """The path of the database or the directory."""
        return self.root.location((self.name,))

    @property
    def found(self) -> Found | None:
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
        """Yield the entries that consist of files."""
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


def _stat(found: Found) -> tuple[int, ...]:
    return found.size, found.mtime_ns, found.ctime_ns, found.inode, found.device


def fingerprint_of(facts: Iterable[object]) -> int:
    """Return a number for what was listed of an entry: the same as long as that is the same."""
    digest = blake2b(digest_size=8)
    for fact in facts:
        digest.update(repr(fact).encode("utf-8", "surrogatepass"))
    return stored_number(int.from_bytes(digest.digest()))


@contextmanager
def _open_files(members: Sequence[tuple[Member, Found]]) -> Iterator[Lines]:
    """Open an entry that consists of files: each is a line."""

    def lines() -> Iterator[bytes]:
        for member, found in members:
            data = _without(member.withheld, _content(found))
            yield line_of(member.table, member.id, {}, data)

    yield lines


def _content(found: Found) -> bytes:
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
