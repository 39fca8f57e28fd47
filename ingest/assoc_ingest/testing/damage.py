"""Lines of cases, damaged at random but not beyond recognition.

A line is decoded, parts of it are exchanged for odd values or for parts of other lines, and its
bytes are then cut, glued, garbled or left alone. So most of what comes out still has the shape
that its format knows, and one thing about it is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ..files.stores import Store, line_of, list_entries
from ..files.walk import Root, Walk, recognised, walk
from ..records import Record
from ..source import DATABASE, DOCUMENT, LOG, UNREAD, Claim, Source, entry_path, parts_of
from ..sources import SOURCES

_texts = st.sampled_from(
    ["", "x", "\ud83d", "nul \0 in it", "\u4e2d\u6587\u5b57", "../../etc/passwd", "\x1b[31m",
     "2026-01-20T10:00:00Z", "99999-01-01T00:00:00Z", "<task-id>a</task-id>", "a" * 300_000]
)  # fmt: skip
_numbers = st.sampled_from(
    [0, 1, -1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**15, 1e15, 1e300, -0.0, 1.5]
)
_scalars = st.one_of(st.none(), st.booleans(), _numbers, _texts)
odd_values: st.SearchStrategy[object] = st.one_of(
    _scalars,
    st.sampled_from([[], {}, [[]], [None], {"": None}, {"type": []}, {"text": {}}, ["", 1, {}]]),
    st.lists(_scalars, max_size=3),
    st.dictionaries(st.sampled_from(["type", "id", "text", "content", "a\0b", ""]), _scalars),
)
"""Any type, in any field."""

_scraps = st.sampled_from(
    [b"", b"\x00" * 70, b"\xff", b"\xef\xbb\xbf", b"{", b"}", b'"', b"\\", b"\\ud83d", b"NaN",
     b"17", b"[1]", b"\r", b" ", b'{"type":"user"}', b'{"type":"user","message":{"content":"x']
)  # fmt: skip


class Fixture(NamedTuple):
    """A file of a golden case, or an entry of files: its root, whose it is, and its lines."""

    root: Path
    source: Source
    claim: Claim
    path: str
    is_log: bool
    lines: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"<{self.path} in {self.root}>"


def fixtures_in(home: Path, name: str) -> Iterator[Fixture]:
    """Yield the files of a home, or the entries of files or of databases, that a source reads."""
    if any(home.glob("*.db.sql")):
        return  # its lines are those of other cases
    if any(home.rglob("*.db.sql")) or any(home.rglob("*.vscdb.sql")):
        yield from _rows(home)
        return
    for root in _roots(home):
        paths = sorted(root.path.rglob("*"))
        yield from _entries(root, [path for path in paths if path.is_file()])
        for path in paths:
            parts = path.relative_to(root.path).parts
            claim = root.source.claim(parts) if path.is_file() else None
            if root.source.name != name or claim is None or path.suffix == ".zst":
                continue
            if (shape := root.source.shape(claim)) == UNREAD:
                continue
            data = path.read_bytes()
            lines = data.split(b"\n") if shape == LOG else [data]
            kept = tuple(line for line in lines if line)
            if kept:
                yield Fixture(root.path, root.source, claim, "/".join(parts), shape == LOG, kept)


@cache
def _roots(home: Path) -> tuple[Root, ...]:
    return tuple(recognised(home, SOURCES))


def _entries(root: Root, files: Sequence[Path]) -> Iterator[Fixture]:
    """Yield the entries that small files are together."""
    place = {path.relative_to(root.path).parts: path for path in files}
    for entry in root.source.gather(place, lambda parts: place[parts].read_bytes()):
        part = root.source.claim(entry.members[0].parts)
        store = (part.within if part is not None else None) or ""
        path = entry_path(store, entry.key, {entry.key: entry.above})
        contents = [(member, place[member.parts].read_bytes()) for member in entry.members]
        lines = [line_of(*line).strip() for line in entry.lines(contents)]
        if (claim := root.source.claim((path,))) is not None:
            yield Fixture(root.path, root.source, claim, path, True, tuple(lines))


def _rows(home: Path) -> Iterator[Fixture]:
    """Yield the entries of the databases of a home, and its documents."""
    from .promises import copied

    with TemporaryDirectory() as place:
        (root,) = recognised(copied(home.parent, Path(place) / "home"), SOURCES)
        source = root.source
        for found in walk(root, Walk()):
            claim = source.claim(found.parts)
            if claim is not None and source.shape(claim) == DOCUMENT:
                data = Path(found.location).read_bytes()
                yield Fixture(home, source, claim, found.path, False, (data,))
            if claim is None or claim.kind != DATABASE:
                continue
            for entry in list_entries(Store(root, found.path, found), found)[0] or ():
                with entry.open() as lines:
                    kept = tuple(filter(None, b"".join(lines()).split(b"\n")))
                if (claim := source.claim(parts_of(entry.path))) is not None:
                    yield Fixture(home, source, claim, entry.path, True, kept)


@st.composite
def damaged(draw: st.DrawFn, lines: tuple[bytes, ...]) -> bytes:
    """One of these lines, with up to three parts exchanged, and its bytes perhaps damaged."""
    data = draw(st.sampled_from(lines))
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if value is not None:
        for _ in range(draw(st.integers(0, 3))):
            value = _with_a_change(draw, value, lines)
        data = json.dumps(value, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(data)))
        end = min(len(data), place + draw(st.sampled_from([0, 0, 1, 20, 10**6])))
        data = data[:place] + draw(_scraps) + data[end:]
    return data


def _with_a_change(draw: st.DrawFn, value: Any, lines: tuple[bytes, ...]) -> Any:
    """Return the value with one part of it replaced, removed or renamed."""
    path = draw(st.sampled_from(_paths(value)))
    if not path:
        return deepcopy(draw(odd_values)) if draw(st.integers(0, 9)) == 0 else value
    *above, last = path
    parent = value
    for step in above:
        parent = parent[step]
    what = draw(st.sampled_from(["odd", "odd", "odd", "removed", "renamed", "of another line"]))
    if what == "removed":
        del parent[last]
    elif what == "renamed" and isinstance(parent, dict):
        parent[draw(_texts)] = parent.pop(last)
    elif what == "of another line":
        parent[last] = _part(draw, draw(st.sampled_from(lines)))
    else:
        parent[last] = deepcopy(draw(odd_values))  # it may be changed next, the sample not
    return value


def _part(draw: st.DrawFn, line: bytes) -> object:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    for step in draw(st.sampled_from(_paths(value))):
        value = value[step]
    return value


def _paths(value: object) -> list[tuple[Any, ...]]:
    """Return the ways to all parts of a value, itself first."""
    found: list[tuple[Any, ...]] = [()]
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for step, part in items:
        found += [(step, *rest) for rest in _paths(part)]
    return found


def ways_into(line: bytes) -> list[tuple[Any, ...]]:
    """Return the ways to all parts of a line, none if it is not JSON."""
    try:
        return _paths(json.loads(line))
    except (ValueError, RecursionError):
        return []


def with_part(line: bytes, path: tuple[Any, ...], part: object) -> bytes:
    """Return a line of which one part is another."""
    value = top = [json.loads(line)]
    for step in (0, *path[:-1]) if path else ():
        value = value[step]
    value[path[-1] if path else 0] = part
    return json.dumps(top[0]).encode()


def assert_storable(record: Record) -> None:
    """Fail if a field is nothing that SQLite takes and gives back as it is."""
    for field in record:
        assert isinstance(field, str | int | float | bytes | tuple | None), record
        if isinstance(field, str):
            field.encode()
            assert "\0" not in field, record
        elif isinstance(field, int):
            assert -(2**63) <= field < 2**63, record
