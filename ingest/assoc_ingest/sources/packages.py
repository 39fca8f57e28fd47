"""Sources that installed packages bring, and what keeps a faulty one from ending a sync.

A package names its sources as entry points of the group `assoc_ingest.sources`, and
docs/source-packages.md says what they have to be. None of the sources here can be changed by a
package, and none of their homes taken by it. What a package's source raises, and records that the
store could not take, become issues of the line (`FromPackage`). A source that cannot be loaded is
named by `status` and by each sync.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin

from ..fields import orjson, sample
from ..records import Issue, Message, Record
from ..source import (
    CONTRACT,
    LOG,
    Claim,
    Context,
    Database,
    EntryLine,
    Gathered,
    Line,
    Listing,
    Recognition,
    Source,
    Whereabouts,
)

GROUP = "assoc_ingest.sources"

_LETTERS = frozenset(ascii_lowercase + digits + "-_")
_LARGEST = 2**63  # integers of SQLite have 64 bits
_T = TypeVar("_T")


class Unusable(NamedTuple):
    """A source that could not be loaded."""

    name: str
    package: str
    """Name and version of the package that brings it."""
    reason: str


def from_packages(taken: Collection[str]) -> tuple[list[Source], list[Unusable]]:
    """Load the sources of installed packages; `taken` are names that they cannot have.

    Raises nothing, whatever a package does while it is imported.
    """
    sources: dict[str, Source] = {}
    unusable: list[Unusable] = []
    if not _is_any_installed():
        return [], []
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        try:
            if point.name in taken or point.name in sources:
                raise _RefusedError("another source has this name")
            sources[point.name] = FromPackage(_checked(point.name, point.load()()), package)
        except Exception as error:
            reason = str(error) if isinstance(error, _RefusedError) else _said(error)
            unusable.append(Unusable(point.name, package, reason))
    return list(sources.values()), unusable


def _is_any_installed() -> bool:
    """Does any installed package bring a source?

    `importlib.metadata` alone takes 20 ms to import, a fifth of a sync without news.
    """
    header = f"[{GROUP}]".encode()
    for place in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(place or ".") as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError):
                        if header in Path(entry.path, "entry_points.txt").read_bytes():
                            return True
    return False


class _RefusedError(Exception):
    """A source is not what it should be; the message says why."""


def _checked(name: str, source: Any) -> Source:
    if not (2 <= len(name) <= 40 and name[0].isalpha() and _LETTERS.issuperset(name)):
        raise _RefusedError("its name must have 2 to 40 lower-case letters, digits, - or _")
    contract = getattr(source, "contract", None)
    if contract != CONTRACT:
        raise _RefusedError(
            f"it was written for version {contract} of the contract, and this program has"
            f" version {CONTRACT}; install a version of it for this one"
        )
    if getattr(source, "name", None) != name:
        raise _RefusedError("its attribute `name` is not the name of its entry point")
    if not isinstance(getattr(source, "label", None), str):
        raise _RefusedError("it has no `label`")
    if not isinstance(getattr(source, "known_lines", None), frozenset):
        raise _RefusedError("its `known_lines` are not a frozenset")
    if not isinstance(getattr(source, "checked", None), str | None):
        raise _RefusedError("its `checked` is no text")
    if Source not in type(source).__mro__:
        raise _RefusedError("it is not derived from assoc_ingest.source.Source")
    return cast(Source, source)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_FACTS = (
    *("is_agent", "lists_sessions", "retention_days", "reads_local_times", "unread_places"),
    *("checked", "directory_of_projects", "directory_in_project", "directory_in_home", "database"),
)

_TEXTS = (
    *("source", "kind", "session_key", "agent_key", "project_key", "project_directory"),
    *("workflow", "team_key", "named_agent", "within"),
)
"""What of a claim is stored."""


class FromPackage(Source):
    """The source of a package. Whatever it raises, this does not.

    A line that it cannot parse becomes an issue. If it fails at anything else, the answer is the
    one with which nothing is read, and `failure` says so: nothing of its home counts as gone then.
    """

    def __init__(self, source: Source, package: str) -> None:
        self._source = source
        self.package = package
        self.name = source.name
        self.label = source.label
        self.known_lines = source.known_lines
        for fact in _FACTS:
            setattr(self, fact, getattr(source, fact))

    def _asked(self, ask: Callable[..., _T], default: _T, *arguments: Any) -> _T:
        try:
            return ask(*arguments)
        except Exception as error:
            self.failure = f"the source {self.name} of {self.package} failed: {_said(error)}"
            return default

    # -- homes and files -------------------------------------------------------------------------

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """A whole home directory is the root of no agent."""

        def usable() -> list[str]:
            whole = () if home is None else (Path(home), *Path(home).parents)
            roots = self._source.default_roots(environment, home)
            return [root for root in roots if Path(root).expanduser() not in whole]

        return self._asked(usable, [])

    def resume_command(self, session_key: str) -> list[str] | None:
        return self._asked(self._source.resume_command, None, session_key)

    def whereabouts(self, lines: Iterable[bytes]) -> Whereabouts:
        return self._asked(self._source.whereabouts, Whereabouts(), lines)

    def path_of(self, told: Whereabouts, project_key: str | None) -> str | None:
        return self._asked(self._source.path_of, None, told, project_key)

    def recognises(self, listing: Listing) -> Recognition:
        """It reads only homes of its own: it is no guest in those of others."""

        def sure() -> Recognition:
            return Recognition(min(self._source.recognises(listing), Recognition.CERTAIN))

        return self._asked(sure, Recognition.NO)

    def knows(self, kind: str, subtype: str) -> bool:
        return self._asked(self._source.knows, False, kind, subtype)

    def knows_place(self, name: str) -> bool:
        return self._asked(self._source.knows_place, False, name)

    def withholds(self, parts: tuple[str, ...]) -> bool:
        return self._asked(self._source.withholds, True, parts)

    def descends(self, parts: tuple[str, ...]) -> bool:
        return self._asked(self._source.descends, False, parts)

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """A file whose shape is not known is not claimed."""

        def claimed() -> Claim | None:
            claim = self._source.claim(parts)
            if claim is not None:
                self._source.shape(self._sound(claim))
            return claim

        return self._asked(claimed, None)

    def _sound(self, claim: Claim) -> Claim:
        """Return a claim that the store can take. Raises ValueError for any other."""
        texts = [getattr(claim, fact) for fact in _TEXTS]
        if not all(text is None or (type(text) is str and _is_storable(text)) for text in texts):
            raise ValueError(f"a claim has something else than text: {texts}")
        if claim.source != self.name or not claim.kind:
            raise ValueError(f"a claim is of the source {claim.source}, kind {claim.kind}")
        return claim

    def shape(self, claim: Claim) -> str:
        return self._asked(self._source.shape, LOG, claim)

    def layout(self, name: str) -> Database | None:
        layout = self._asked(self._source.layout, None, name)
        if layout is None or layout.lines is None:
            return layout
        return layout._replace(lines=partial(self._lines, layout.lines))

    def gather(
        self, members: Collection[tuple[str, ...]], content: Callable[[tuple[str, ...]], bytes]
    ) -> list[Gathered]:
        entries: list[Gathered] = self._asked(self._source.gather, [], members, content)
        return [entry._replace(lines=partial(self._lines, entry.lines)) for entry in entries]

    def _lines(
        self,
        lines: Callable[[Iterable[_T]], Iterable[EntryLine]],
        contents: Iterable[_T],
    ) -> list[EntryLine]:
        """Without its lines, an entry cannot be read: what was read of it stays."""
        read = list(contents)  # first: what it fails at is no fault of the package
        made = self._asked(lambda: list(lines(read)), None)
        if made is None:
            raise OSError(self.failure)
        return made

    def classify(self, claim: Claim, lines: Iterable[bytes]) -> Claim:
        return self._asked(lambda: self._sound(self._source.classify(claim, lines)), claim)

    def project_key(self, directory: str) -> str | None:
        return self._asked(self._source.project_key, None, directory)

    def as_kind(self, claim: Claim, kind: str) -> Claim:
        return self._asked(self._source.as_kind, super().as_kind(claim, kind), claim, kind)

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        return self._asked(self._source.complete_prefix, 0, claim, tail)

    # -- lines -----------------------------------------------------------------------------------

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; if that fails, line by line, with an issue for each that fails.

        So what becomes of a line does not depend on those that happen to be read with it.
        """
        given = list(lines)
        try:
            return self._read(claim, given, context)
        except Exception as error:
            reason = f"source {self.name} of {self.package} failed: {type(error).__name__}"
        if len(given) == 1:
            (line,) = given
            return [Issue(reason, 1, sample(line.data), line.start, len(line.data))], context
        records: list[Record] = []
        for line in given:
            of_line, context = self.read(claim, [line], context)
            records += of_line
        return records, context

    def _read(
        self, claim: Claim, lines: list[Line], context: Context
    ) -> tuple[list[Record], Context]:
        records, context = self._source.read(claim, lines, context)
        _check_records(records, lines)
        orjson.dumps(context)
        return records, context


# -- records that the store can take ---------------------------------------------------------------


class _UnstorableError(Exception):
    """A record has a value that its column cannot have, or the place of another one."""


def _check_records(records: list[Record], lines: list[Line]) -> None:
    """Raise an error if one of the records would end the transaction that stores it."""
    first = lines[0].start if lines else 0
    last = lines[-1].start + len(lines[-1].data) if lines else 0
    places = set()
    for record in records:
        types = _types_of(record.__class__)
        for value, type_ in zip(record, types, strict=True):
            if not isinstance(value, type_) or not _is_storable(value):
                raise _UnstorableError(record)
        if not first <= getattr(record, "byte_offset", first) <= last:
            raise _UnstorableError(record)
        if isinstance(record, Message):
            place = record.byte_offset, record.block
            if place in places or (record.text is None) is (record.tool_text is None):
                raise _UnstorableError(record)
            places.add(place)


def _is_storable(value: object) -> bool:
    if isinstance(value, str):
        return "\0" not in value and bool(value.encode() or True)
    return not isinstance(value, int) or -_LARGEST <= value < _LARGEST


_KINDS = get_args(Record)
_types: dict[type, list[tuple[type, ...]]] = {}


def _types_of(kind: type) -> list[tuple[type, ...]]:
    """Return the types that the fields of a record may have."""
    if kind not in _types:
        if kind not in _KINDS:
            raise _UnstorableError(kind)
        _types[kind] = [_without_arguments(type_) for type_ in kind.__annotations__.values()]
    return _types[kind]


def _without_arguments(type_: Any) -> tuple[type, ...]:
    """Return a type as `isinstance` takes it: `tuple[int, int] | None` as `tuple` and None."""
    parts = [get_origin(part) or part for part in get_args(type_) or [type_]]
    return (*parts, int) if float in parts else tuple(parts)
