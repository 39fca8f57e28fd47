"""Walks the roots and lists their files: what each entry of a directory is, what cannot be read,
and how names and times are stored.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ..errors import AmbiguousHomeError, UnreadableError, UsageError
from ..paths import (
    here,
    home,
    identity,
    is_directory,
    is_real_directory,
    is_there,
    obstacle,
    real_path,
)
from ..source import Claim, KnownFile, Recognition, Source, parts_of
from ..sources import SOURCES
from .tail import open_regular

# ------------------------------------------------------------------------------------------------
# Lists directories: their entries, what each one is, and what cannot be read.


_name = attrgetter("name")

LINK, DIRECTORY, FILE = "link", "directory", "file"


@dataclass(slots=True)
class Walk:
    """What a walk finds besides the files that it yields."""

    symlinks: int = 0
    hard_links: int = 0
    linked: int = 0
    """Files that have several names, here or elsewhere."""
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    """What cannot be read, and why."""
    directories: dict[str, int] | None = None
    """The directories that were listed, with their inodes."""
    empty: list[str] = field(default_factory=list)
    """The directories that were listed and have no entries."""

    def note(self, place: str, error: OSError) -> None:
        """Record what cannot be read, and why."""
        self.unreadable.append((place, error.strerror or str(error)))

    def hides(self, location: str) -> bool:
        """Can this path, or a directory above it, not be read?"""
        return any(
            location == place or location.startswith(f"{place}{os.sep}")
            for place, _ in self.unreadable
        )


def entries(directory: str, seen: Walk) -> list[os.DirEntry[str]]:
    """Return the entries of a directory in byte order; none if it vanished or cannot be read."""
    try:
        if seen.directories is not None:
            seen.directories[directory] = os.stat(directory).st_ino  # noqa: PTH116
        with os.scandir(directory) as found:
            listed = _in_byte_order(list(found))
        if not listed:
            seen.empty.append(directory)
        return listed
    except OSError as error:
        if seen.directories is not None:
            seen.directories.pop(directory, None)
        if not isinstance(error, FileNotFoundError):
            seen.note(directory, error)
        return []


def is_empty(directory: str) -> bool:
    """Is there a directory, and nothing in it? Raises OSError if that cannot be found out."""
    try:
        with os.scandir(directory) as found:
            return next(found, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return False


def _in_byte_order(found: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    found.sort(key=_name)
    if not "".join(map(_name, found)).isascii():  # letters may have another order
        found.sort(key=lambda entry: os.fsencode(entry.name))
    return found


def kind_of_entry(entry: os.DirEntry[str], seen: Walk) -> str | None:
    """Return what an entry is, None for a pipe and the like, or if that cannot be found out."""
    try:
        if entry.is_file(follow_symlinks=False):  # most are
            return FILE
        if entry.is_dir(follow_symlinks=False):
            return DIRECTORY
        return LINK if entry.is_symlink() else None
    except OSError as error:  # only if the directory does not store types
        seen.note(entry.path, error)
        return None


def status_of(entry: os.DirEntry[str], seen: Walk) -> os.stat_result | None:
    """Return the stat of a file, None if it vanished or cannot be examined."""
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        seen.note(entry.path, error)
        return None


def is_second_name(found: os.stat_result, identities: set[tuple[int, int]], seen: Walk) -> bool:
    """Was the file found under another name? Without inodes, no file is taken for another."""
    if found.st_nlink <= 1:
        return False
    seen.linked += 1
    identity = (found.st_dev, found.st_ino)
    if identity in identities:
        seen.hard_links += 1
        return True
    identities.add(identity)
    return False


# ------------------------------------------------------------------------------------------------
# A directory that may be a home, as sources see it: its names, and the bytes of a few lists.
#
# It is not yet known whose home it is, so what any source withholds is opened for none of them.


_MAX_LIST = 16 * 1024 * 1024  # bytes of a program's own list that are read


class Listing:
    """The relative paths of entries in the directories that a source wants, breadth first."""

    def __init__(self, path: Path, source: Source, sources: Collection[Source], seen: Walk) -> None:
        self._path = path
        self._source = source
        self._sources = sources
        self._seen = seen

    def __iter__(self) -> Iterator[str]:
        pending: list[tuple[tuple[str, ...], str]] = [((), str(self._path))]
        for parts, directory in pending:
            for entry in entries(directory, self._seen):
                names = (*parts, stored_name(entry.name))
                yield "/".join(names)
                if self._source.descends(names) and kind_of_entry(entry, self._seen) == DIRECTORY:
                    pending.append((names, entry.path))

    def content(self, path: str) -> bytes:
        """Return the bytes of a file, nothing if it cannot be read or must not be opened."""
        location = str(self._path.joinpath(*original_parts(path)))
        if self._is_private(path) or self._is_link_to_private(location):
            return b""
        try:
            descriptor = open_regular(location)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_MAX_LIST)

    def _is_private(self, path: str) -> bool:
        parts = parts_of(path)
        return any(source.withholds(parts) for source in self._sources)

    def _is_link_to_private(self, location: str) -> bool:
        """Is it another name of a file that must not be opened?"""
        try:
            if os.lstat(location).st_nlink <= 1:
                return False
        except OSError:
            return False  # opening it will fail, too
        return identity(location) in (
            identity(entry.path)
            for entry in entries(str(self._path), Walk())
            if self._is_private(stored_name(entry.name))
        )


# ------------------------------------------------------------------------------------------------
# Walks the roots and lists their files; asks the sources which directories are theirs.
#
# A source says which directories can contain its files, so a hundred thousand cache files in a
# home cost nothing. Symbolic links below a root are not followed: a target that belongs to a
# source is read at its own path. Of several hard links, the first path in byte order counts.


@dataclass(frozen=True, slots=True)
class Root:
    """A directory given to a source. `path` is absolute, symbolic links resolved."""

    source: Source
    path: Path
    beside: tuple[Source, ...] = field(default=(), compare=False)
    """Other sources that recognise the directory as theirs."""

    @property
    def name(self) -> str:
        """The path as `sources.root` has it."""
        return stored_root(self.path)

    def location(self, parts: Iterable[str]) -> str:
        """Return the path of what lies below the root under these stored names."""
        return str(self.path.joinpath(*map(original_name, parts)))

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Must this file or directory stay closed, for any source that has its home here?"""
        if self.source.withholds(parts):
            return True
        return bool(self.beside) and any(source.withholds(parts) for source in self.beside)


class ListedDirectory(NamedTuple):
    """A directory below a root whose files are listed; if `is_deep`, with all directories below.

    `parts` are the names that lead there, as they are stored.
    """

    parts: tuple[str, ...]
    is_deep: bool = True


WHOLE = (ListedDirectory(()),)
"""All of a root."""


class FoundFile(NamedTuple):
    """A regular file below a root: its path and stat, as SQLite can store them."""

    parts: tuple[str, ...]
    """The names that lead to it from the root, as they are stored."""
    location: str
    """Its path on disk."""
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @property
    def path(self) -> str:
        """The path relative to the root, as `files.path` has it."""
        return "/".join(self.parts)

    def is_as(self, known: KnownFile) -> bool:
        """Is the stat of the file the one that it had when it was last read?"""
        return (
            self.size == known.size
            and self.mtime_ns == known.mtime_ns
            and self.ctime_ns == known.ctime_ns
            and self.inode == known.inode
            and known.gone_at is None
        )


Stat = tuple[str, int, int, int, int]
"""Path, size, times of change of content and status, and inode, as `FoundFile` has them."""


def walk(
    root: Root,
    seen: Walk,
    places: Collection[ListedDirectory] = WHOLE,
    known: set[Stat] | None = None,
) -> Iterator[FoundFile]:
    """Yield every regular file in the directories that the root's source wants, in byte order.

    With `places`, only the files there, place by place; a place that is not a directory, or is
    reached through a link, has none. A file that has a stat in `known` is not yielded, and taken
    out of `known`: of ten thousand files, mostly all are as they were, and looking a tuple up in a
    set is the least that can be done for each.
    """
    known = set() if known is None else known
    identities: set[tuple[int, int]] = set()
    pending: list[tuple[tuple[str, ...], str, bool]] = [
        (place.parts, root.location(place.parts), place.is_deep)
        for place in sorted(apart(places), reverse=True)
        if _is_wanted(root, place)
    ]
    while pending:
        parts, directory, is_deep = pending.pop()
        directories = []
        for entry, names in _permitted(root, parts, directory, identities, seen):
            kind = kind_of_entry(entry, seen)
            if kind == FILE:
                status = status_of(entry, seen)
                if status is None or is_second_name(status, identities, seen):
                    continue
                # As they are: one that SQLite could not store like this is compared by its row.
                size, modified, changed = status.st_size, status.st_mtime_ns, status.st_ctime_ns
                try:
                    known.remove(("/".join(names), size, modified, changed, status.st_ino))
                except KeyError:
                    yield _found(names, entry.path, status)
            elif kind == DIRECTORY:
                if is_deep and root.source.descends(names):
                    directories.append((names, entry.path, True))
            elif kind == LINK:
                seen.symlinks += 1
        pending.extend(reversed(directories))


def _permitted(
    root: Root,
    parts: tuple[str, ...],
    directory: str,
    identities: set[tuple[int, int]],
    seen: Walk,
) -> list[tuple[os.DirEntry[str], tuple[str, ...]]]:
    """Return the entries of a directory, with their names, without those that must stay closed.

    A file that must stay closed is not read under another name either.
    """
    permitted = []
    for entry in entries(directory, seen):
        names = (*parts, stored_name(entry.name))
        if not root.withholds(names):
            permitted.append((entry, names))
        elif (status := status_of(entry, Walk())) is not None:
            is_second_name(status, identities, Walk())
    return permitted


def apart(places: Collection[ListedDirectory]) -> set[ListedDirectory]:
    """Return places that do not overlap: those that are within another one are left out."""
    deep = {place.parts for place in places if place.is_deep}
    return {
        place
        for place in places
        if not any(place.parts[:length] in deep for length in range(len(place.parts)))
        and (place.is_deep or place.parts not in deep)
    }


def _is_wanted(root: Root, place: ListedDirectory) -> bool:
    """Would a walk of the whole root visit this place?"""
    for length in range(1, len(place.parts) + 1):
        parts = place.parts[:length]
        if root.withholds(parts) or not root.source.descends(parts):
            return False
        if not is_real_directory(root.location(parts)):
            return False
    return True


def _found(parts: tuple[str, ...], location: str, status: os.stat_result) -> FoundFile:
    return FoundFile(
        parts,
        location,
        status.st_size,
        stored_time(status.st_mtime_ns),
        stored_time(status.st_ctime_ns),
        stored_number(status.st_ino),
        stored_number(status.st_dev),
    )


def default_roots(environment: Mapping[str, str], projects: Iterable[str]) -> list[Path]:
    """Return the default homes of all systems, whether or not they exist.

    Some systems have a home in each project: in the current directory and those of `projects`.
    """
    place = home()
    above = None if place is None else str(place)
    own = [
        _expanded(root)
        for source in SOURCES.values()
        for root in source.default_roots(environment, above)
    ]
    names = [name for source in SOURCES.values() if (name := source.directory_in_project)]
    places = [*filter(None, [here()]), *(Path(project) for project in projects)]
    return list(dict.fromkeys([*own, *(place / name for place in places for name in names)]))


def variables_of_roots(environment: Mapping[str, str]) -> dict[str, str]:
    asked = _Asked(environment)
    for source in SOURCES.values():
        source.default_roots(asked, "~")
    return {name: value for name in sorted(asked.names) if (value := environment.get(name))}


class _Asked(Mapping[str, str]):
    """An environment that notes the names that it is asked for."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return self._environment[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)


def directories_in_homes(sources: Mapping[str, Source]) -> dict[str, Source]:
    """Return the names of directories in homes that are homes of another source."""
    return {name: source for source in sources.values() if (name := source.directory_in_home)}


def _expanded(name: str) -> Path:
    """Return a directory with `~` expanded; unchanged if there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def recognised(path: Path, sources: Mapping[str, Source], only: str | None = None) -> list[Root]:
    """Return `path` as a root of the source that is surest to recognise it, and of its guests.

    The source of a package has to be surer than all of this program's own. With `only`, as a root
    of this source, if that recognises it at all. Raises UsageError, with what to do, if the path is
    missing, a file, not recognised, or recognised by several sources alike, and UnreadableError if
    it cannot be read.
    """
    if (found := obstacle(path)) is not None:
        raise UnreadableError(path, *found)
    if not is_there(path):
        raise UsageError(
            f"{path} does not exist. Give the home directory of a coding agent{_such_as(sources)}."
        )
    if not is_directory(path):
        raise UsageError(
            f"{path} is a file. Give the home directory it belongs to{_such_as(sources)}."
        )
    top = real_path(path)
    seen = Walk()
    knowing = _knowing(top, sources, seen)
    surest = max((sure for sure in knowing.values() if sure < Recognition.GUEST), default=None)
    hosts = [source for source, sure in knowing.items() if sure == surest]
    hosts = [source for source in hosts if source.package is None] or hosts
    if only is None and len(hosts) > 1:
        raise AmbiguousHomeError(path, [(source.name, source.label) for source in hosts])
    known = [
        Root(source, top, _without(source, knowing))
        for source, sure in knowing.items()
        if (source in hosts or sure is Recognition.GUEST if only is None else source.name == only)
    ]
    for directory, source in directories_in_homes(sources).items():
        if only in (None, source.name):
            inner = top / directory
            known += [Root(one, inner) for one in _knowing(inner, {source.name: source}, seen)]
    if seen.unreadable and not known:
        unread, reason = seen.unreadable[0]
        raise UnreadableError(path, Path(unread), reason)
    if not known:
        kinds = only or ", ".join(sources)
        raise UsageError(
            f"{path} is not the home directory of a known agent ({kinds}). "
            f"Give the directory that contains projects/{_such_as(sources)}."
        )
    return known


def _such_as(sources: Mapping[str, Source]) -> str:
    """Return an example of a home for error messages."""
    places = (root for source in sources.values() for root in source.default_roots({}, "~"))
    example = next(places, None)
    return f", such as {example}" if example else ""


def root_at(source: Source, path: Path, sources: Mapping[str, Source]) -> Root:
    """Return a directory as the root of a source, without checking what is in it."""
    return Root(source, path, _without(source, _knowing(path, sources, Walk())))


def _knowing(place: Path, sources: Mapping[str, Source], seen: Walk) -> dict[Source, Recognition]:
    """Return the sources that recognise a directory as theirs, and how sure they are."""
    every = sources.values()
    degrees = {source: source.recognises(Listing(place, source, every, seen)) for source in every}
    return {source: sure for source, sure in degrees.items() if sure is not Recognition.NO}


def _without(source: Source, sources: Iterable[Source]) -> tuple[Source, ...]:
    return tuple(other for other in sources if other is not source)


# ------------------------------------------------------------------------------------------------
# Converts names, times and numbers of files to what SQLite can store, and back.
#
# A name is bytes on POSIX systems, and text in the database. UTF-8 is kept; any other byte
# becomes `ÿ`. If a name contains such an escape literally, its backslash becomes `\`. So no two
# names are stored alike, and each can be converted back to its bytes.
#
# A time is nanoseconds since 1970. SQLite can store the years 1677 to 2262; file systems have
# others, too. Zero means no time: that of a file that was not read to its end.


NO_TIME = 0
"""The stored time of a file that was not read to its end."""
UNSTATED_TIME = 2
"""The stored time of an entry whose store does not say when it changed."""

_BITS = 64
_LATEST = 2 ** (_BITS - 1) - 1
_EARLIEST = -(2 ** (_BITS - 1))
_EPOCH = 1  # stored for the time 0, as 0 means no time

_ambiguous = re.compile(r"\\(?=x(?:5c|[89a-f][0-9a-f]))")
_escape = re.compile(rb"\\x(5c|[89a-f][0-9a-f])")


def stored_name(name: str) -> str:
    """Return a name or a path as text that SQLite can store."""
    if "\\" in name:
        name = _ambiguous.sub(r"\\x5c", name)
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def original_name(stored: str) -> str:
    """Return the name that became `stored`, as the system knows it."""
    if stored.isascii() and "\\" not in stored:
        return stored
    raw = stored.encode("utf-8", "replace")
    return os.fsdecode(_escape.sub(lambda found: bytes([int(found[1], 16)]), raw))


def original_parts(path: str) -> tuple[str, ...]:
    """Return the components of a stored path, as the system knows them."""
    return tuple(map(original_name, path.split("/")))


def stored_root(path: Path) -> str:
    """Return an absolute path as `sources.root` has it."""
    return str(path) if os.sep == "\\" else stored_name(str(path))  # no escapes on Windows


def original_root(stored: str) -> Path:
    """Return the absolute path that became `stored`."""
    return Path(stored if os.sep == "\\" else original_name(stored))


def stored_time(nanoseconds: int) -> int:
    """Return a file's time as an integer of SQLite; one out of range becomes the nearest."""
    if 0 < nanoseconds <= _LATEST:
        return nanoseconds
    return min(max(nanoseconds, _EARLIEST), _LATEST) or _EPOCH


def original_time(stored: int) -> int | None:
    """Return the time that became `stored`, None if it is not known."""
    if stored in (NO_TIME, UNSTATED_TIME, _EARLIEST, _LATEST):
        return None
    return 0 if stored == _EPOCH else stored


def stored_number(number: int) -> int:
    """Return an inode or a device number as an integer of SQLite, which is signed.

    Some file systems have inodes of 128 bits, of which neither half is unique: those become a
    digest.
    """
    if 0 <= number <= _LATEST:
        return number
    if number.bit_length() > _BITS:
        data = number.to_bytes(number.bit_length() // 8 + 1)
        number = int.from_bytes(blake2b(data, digest_size=_BITS // 8).digest())
    return number if number <= _LATEST else number - 2**_BITS


# ------------------------------------------------------------------------------------------------
# How losses of a damaged database are stored: as placeholder paths and as issues.
#
# A file whose row is lost, and whose path cannot be derived, is kept under a placeholder path,
# with its kind if its rows show it. No source claims such a path. Issues describe other losses,
# so that lists and the status show them; they do not affect the counts of a file.


UNNAMED = "recovered"
"""Kind of a file whose kind is not known."""

_DIRECTORY = "recovered/"
_FIRST, _LAST = _DIRECTORY, "recovered0"  # '0' follows '/' in ASCII

PATH_LOST = "path is not known: its row was lost with a damaged page of the database"
PATH_FROM_LINES = (
    "path is derived from its lines: its row was lost with a damaged page of the database"
)
BYTES_LOST = "archived bytes are missing or damaged"
PACKED_DAMAGED = "it is packed, and damaged"
PACKED_TOO_LARGE = "it is packed, and unpacks to more than a log can be"
UNOPENED = (PACKED_DAMAGED, PACKED_TOO_LARGE)
"""Reasons why the content of a file is not read again until its stat changes."""

REASONS = (PATH_LOST, PATH_FROM_LINES, BYTES_LOST, *UNOPENED)
"""Reasons of issues that do not follow from the lines of a file."""


def placeholder(file_id: int) -> str:
    return f"{_DIRECTORY}{file_id}"


def root_placeholder(source_id: int) -> str:
    """Return the placeholder of a lost root, a directory that does not exist."""
    return f"/{_DIRECTORY}root-{source_id}"


def is_unnamed(path: str) -> bool:
    return path.startswith(_DIRECTORY)


def unnamed_files(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of the files whose paths are lost. Costs one index search for each root."""
    rows = connection.execute(
        "select f.id from sources s cross join files f on f.source_id = s.id"
        " and f.path > ? and f.path < ? order by f.id",
        (_FIRST, _LAST),
    )
    return [file_id for (file_id,) in rows]


def unnamed_roots(connection: sqlite3.Connection, kind: str) -> list[tuple[int, str]]:
    """Return the roots of a kind whose directories are lost: their ids and placeholders."""
    rows = connection.execute("select id, root from sources where kind = ? order by id", (kind,))
    return [row for row in rows.fetchall() if row[1] == root_placeholder(row[0])]


def claim_of_unnamed(source: str, known: KnownFile) -> Claim | None:
    """Return the claim of a file whose path is lost, from its row; None if that says too little.

    For the lines of a conversation the row is enough; other kinds need the path.
    """
    if known.kind not in ("transcript", "agent", "side_agent"):
        return None
    return Claim(source, known.kind, known.session_key, known.agent_key)


def with_places(connection: sqlite3.Connection, claim: Claim, file_id: int) -> Claim:
    """Return the claim with the project, team and workflow that the row of the file names."""
    project, team, workflow = connection.execute(
        "select project_key, team_key, workflow from files where id = ?", (file_id,)
    ).fetchone()
    return replace(claim, project_key=project, team_key=team, workflow=workflow)


def clear_path_issues(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove the issues about the path of a file that a sync has found, and about opening it."""
    connection.execute(
        "delete from issues where file_id = ? and reason in (?, ?, ?, ?)",
        (file_id, PATH_LOST, PATH_FROM_LINES, *UNOPENED),
    )
