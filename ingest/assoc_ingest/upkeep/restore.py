"""Writes original files from the archive into a directory, bit for bit; which ones."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from ..ask.refs import find_session
from ..errors import ArchiveError, NotFoundError, UsageError
from ..fields import bindable
from ..files import archive
from ..files.changes import claim_of
from ..files.exclusions import is_left_out
from ..files.private import known_roots, outside_roots, write_new
from ..files.stores import is_packed, unpacked_name
from ..files.tail import open_regular
from ..files.walk import original_parts
from ..paths import is_directory, is_there, real_path
from ..source import DATABASE, LOG, PRIVATE, UNREAD, KnownFile
from ..sources import SOURCES
from ..store.known_files import known_file
from .forget import own_files

# ------------------------------------------------------------------------------------------------
# Finds the files to restore: all, those of a session, or one.
#
# A name is tried in this order, so that a complete key or path is never taken for the beginning
# of another one: a path as in `files.path`, a file name, the complete key of a session, a file
# name without its extension, the beginning of a session's key.


_LISTED = 100


@dataclass(frozen=True, slots=True)
class Selected:
    """A file to be restored, and the root that it was read from."""

    known: KnownFile
    kind: str
    root: str
    source_id: int
    has_unread: bool
    """Something in it could not be parsed. The archive of a document has an earlier version."""
    is_left_out: bool = False
    """Something in it is forgotten and therefore not in the archive."""


def select_all(connection: sqlite3.Connection, generation: int | None = None) -> list[Selected]:
    """Return all files, each path in its newest generation or the given one."""
    ids = [id_ for (id_,) in connection.execute("select id from files")]
    return _selected(connection, ids, generation)


def select(
    connection: sqlite3.Connection, name: str, generation: int | None = None
) -> list[Selected]:
    """Return the files of the session, or the file, that `name` matches.

    Raises NotFoundError if nothing matches or no file has the generation, and UsageError, with all
    matches, if the name is ambiguous.
    """
    ids = _ids(connection, name)
    if selected := _selected(connection, ids, generation):
        return selected
    raise NotFoundError(f"No file of {name!r} has a generation {generation}.")


def _ids(connection: sqlite3.Connection, name: str) -> list[int]:
    wanted = bindable(name)
    by_path: dict[str, list[int]] = {}
    for id_, path in connection.execute("select id, path from files"):
        by_path.setdefault(path, []).append(id_)
    if wanted in by_path:
        return by_path[wanted]
    called = [path for path in by_path if PurePosixPath(path).name == wanted]
    if called:
        return by_path[_only(name, called)]
    is_key = connection.execute("select 1 from sessions where session_key = ?", (wanted,))
    if is_key.fetchone() is None:
        stemmed = [path for path in by_path if PurePosixPath(path).stem == wanted]
        if stemmed:
            return by_path[_only(name, stemmed)]
    try:
        key = find_session(connection, name)
    except NotFoundError:
        raise NotFoundError(
            f"No session or file matches {name!r}."
            " To see them: assoc-ingest list sessions, assoc-ingest list files"
        ) from None
    return [file.id for file in own_files(connection, {(None, key)}) if not file.is_unread]


def _only(name: str, paths: list[str]) -> str:
    if len(paths) == 1:
        return paths[0]
    lines = [f"{len(paths)} files are named {name!r}; give the path of one:"]
    lines += [f"  {path}" for path in sorted(paths)[:_LISTED]]
    if len(paths) > _LISTED:
        lines.append(f"  and {len(paths) - _LISTED} more")
    raise UsageError("\n".join(lines))


def _selected(
    connection: sqlite3.Connection, ids: Iterable[int], generation: int | None
) -> list[Selected]:
    newest: dict[tuple[int, str], Selected] = {}
    for file_id in ids:
        known = known_file(connection, file_id)
        source_id, kind, root, has_unread = connection.execute(
            "select s.id, s.kind, s.root, exists ("
            " select 1 from issues i where i.file_id = f.id and i.quarantined = 1)"
            " from files f join sources s on s.id = f.source_id where f.id = ?",
            (file_id,),
        ).fetchone()
        if known is None or generation not in (None, known.generation):
            continue
        place = (source_id, known.path)
        before = newest.get(place)
        if before is None or before.known.generation < known.generation:
            left_out = is_left_out(connection, file_id)
            newest[place] = Selected(known, kind, root, source_id, bool(has_unread), left_out)
    return [newest[place] for place in sorted(newest)]


# ------------------------------------------------------------------------------------------------
# Writes original files from the archive into a directory, bit for bit.
#
# Existing files are never overwritten, and links are never followed: a file is written under a
# temporary name and then hard-linked to its own, which fails if that name is taken. If a symbolic
# link is in the way, only that file is refused. Paths from the database are not trusted: one that
# would lead out of the directory, or into a directory of an agent, is refused. Files are created
# with mode 0600, directories with 0700, and a file gets its original modification time.


WRITTEN = "written"
IDENTICAL = "identical"
REFUSED = "refused"
NOT_ARCHIVED = "not archived"

_no_name_on_windows = re.compile(
    r'.*[\x00-\x1f<>:"/\\|?*].*|.*[. ]'
    r"|(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\xb9\xb2\xb3]) *(?:\..*)?",
    re.IGNORECASE | re.DOTALL,
).fullmatch
_OF_THE_DISK = (
    errno.ENOSPC,
    errno.EIO,
    errno.EROFS,
    errno.EDQUOT,
)  # all later files would fail, too


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of restoring one file."""

    path: str
    """The path below `root`, as in `files.path`."""
    root: str
    target: str | None
    status: str
    """written (in a dry run: would be), identical, refused or not archived"""
    note: str | None
    bytes: int
    bytes_lost: int = 0
    """The number of bytes that the archive lacks: they are replaced by spaces."""


class _RefusedError(Exception):
    """A file cannot be restored; the text says why."""


def restore(
    connection: sqlite3.Connection,
    selected: Sequence[Selected],
    directory: Path,
    *,
    dry_run: bool = False,
) -> Iterator[Restored]:
    """Write files below `directory`, and yield the result of each, in order.

    With `dry_run` nothing is written. Raises UsageError if the directory is, or is inside, one of
    an agent, or cannot be created.
    """
    roots = known_roots(connection)
    place = _checked(directory, roots)
    if not dry_run:
        _make(place)
    collide = _do_collide(selected)
    for file in selected:
        target = None
        try:
            shape = _shape(file)
            if (missing := _why_not_archived(file, shape)) is not None:
                yield Restored(file.known.path, file.root, None, NOT_ARCHIVED, missing, 0)
                continue
            prefix = (f"{file.kind}-{file.source_id}",) if collide else ()
            *above, name = original_parts(file.known.path)
            parts = _harmless((*prefix, *above, unpacked_name(name)))  # the archive has the content
            target = place.joinpath(*parts)
            if any(target.is_relative_to(root) for root in roots):
                raise _RefusedError("that directory belongs to an agent")
            gaps = archive.gaps(connection, file.known.id, file.known.checkpoint.offset)
            original = partial(_original, connection, file, gaps)
            status = _restore_file(file, original, place, parts, dry_run=dry_run)
            note, size = _incomplete(file, shape, gaps), file.known.checkpoint.offset
            less = sum(end - start for start, end in gaps)
            yield Restored(file.known.path, file.root, str(target), status, note, size, less)
        except (_RefusedError, ArchiveError, OSError) as error:
            if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
                raise
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            shown = str(target) if target is not None else None
            yield Restored(file.known.path, file.root, shown, REFUSED, reason, 0)


# -- the directory -------------------------------------------------------------------------------


def _checked(directory: Path, roots: Iterable[Path]) -> Path:
    """Return the directory, links resolved. Raises UsageError if nothing may be written there."""
    if is_there(directory) and not is_directory(directory):
        raise UsageError(f"{directory} is a file. Give a directory: --to DIR")
    return outside_roots(directory, roots, "--to DIR")


def _make(place: Path) -> None:
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in _OF_THE_DISK:
            raise
        raise UsageError(
            f"Cannot create {place}: {error.strerror}. Give another directory: --to DIR"
        ) from error


def _do_collide(selected: Iterable[Selected]) -> bool:
    """Do two of the files have the same path, below different roots?"""
    paths = [file.known.path for file in selected]
    return len(set(paths)) < len(paths)


def _harmless(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the components of a path. Raises _RefusedError if one could lead elsewhere."""
    if not all(is_name(part, is_windows=os.name == "nt") for part in parts):
        raise _RefusedError("its path leads out of the directory")
    return parts


def is_name(part: str, *, is_windows: bool) -> bool:
    """Is this a valid name of a file or directory that stays in its parent directory?

    On Windows a name can also lead to another drive, to a device, or to a part of another file.
    """
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        return False
    return not is_windows or _no_name_on_windows(part) is None


# -- one file ------------------------------------------------------------------------------------


def _shape(file: Selected) -> str | None:
    """Return the shape of the file, None if this version does not read such files."""
    source = SOURCES.get(file.kind)
    claim = claim_of(source, file.known) if source is not None else None
    return source.shape(claim) if source is not None and claim is not None else None


def _why_not_archived(file: Selected, shape: str | None) -> str | None:
    """Return why a file is not in the archive, None if it is."""
    if file.known.kind == DATABASE:
        return "its conversations are archived, each as a file of its own"
    if shape == UNREAD:
        return "files of this kind are never opened"
    if shape == PRIVATE:
        return "files of this kind hold secrets"
    if file.known.checkpoint.offset or not file.known.size:
        return None
    if file.is_left_out:
        return "part of it is forgotten"
    return "no complete line was read" if shape == LOG else "it is binary or was never readable"


def _incomplete(file: Selected, shape: str | None, gaps: Sequence[tuple[int, int]]) -> str | None:
    """Return how the restored file differs from what a sync last saw, None if it does not."""
    if gaps:
        count = sum(end - start for start, end in gaps)
        places = ", ".join(f"{start} to {end}" for start, end in gaps[:3])
        more = ", ..." if len(gaps) > 3 else ""
        return f"with spaces in place of {count} lost bytes (from byte {places}{more})"
    if file.is_left_out:
        return "with spaces in place of forgotten parts"
    if shape != LOG:
        return "the last readable version" if file.has_unread else None
    if is_packed(file.known.path):  # its size does not tell whether there is more
        return "unpacked, up to its last complete line"
    behind = file.known.size - file.known.checkpoint.offset
    return f"without the {behind} bytes after its last complete line" if behind > 0 else None


def _restore_file(
    file: Selected,
    original: Callable[[], Iterator[bytes]],
    place: Path,
    parts: tuple[str, ...],
    *,
    dry_run: bool,
) -> str:
    """Write one file unless it is already there; return the status."""
    parent = _parent(place, parts[:-1], dry_run=dry_run)
    target = place.joinpath(*parts)
    if not real_path(parent).is_relative_to(place):
        raise _RefusedError("its path leads out of the directory")
    if os.path.lexists(target):
        if not _is_identical(file, original(), target):
            raise _RefusedError("something else is there")
        return IDENTICAL
    if dry_run:
        for _ in original():  # so that a damaged archive is reported
            pass
        return WRITTEN
    try:
        write_new(target, original(), file.known.mtime_ns)
    except FileExistsError:
        raise _RefusedError("something else is there") from None
    return WRITTEN


def _parent(place: Path, parts: Iterable[str], *, dry_run: bool) -> Path:
    """Create the directories that lead to a file; a link or a file among them is refused."""
    parent = place
    for part in parts:
        parent = parent / part
        if not dry_run:
            with suppress(FileExistsError):
                parent.mkdir(mode=0o700)
        with suppress(FileNotFoundError):  # in a dry run it is missing
            if not stat.S_ISDIR(parent.lstat().st_mode):
                raise _RefusedError(f"{parent} is not a directory")
    return parent


def _original(
    connection: sqlite3.Connection, file: Selected, gaps: Sequence[tuple[int, int]]
) -> Iterator[bytes]:
    """Yield the bytes of a file. Raises ArchiveError, at the end, if they are not what was read."""
    known = file.known
    if gaps and list(gaps) != [(0, known.checkpoint.offset)]:  # not all of it is lost
        yield from archive.read_around_gaps(connection, known.id, known.checkpoint.offset)
        return
    crc = 0
    for data in archive.read_whole(connection, known.id, known.checkpoint.offset):
        crc = zlib.crc32(data, crc)
        yield data
    is_whole = known.checkpoint.offset == 0 or crc == known.checkpoint.prefix_crc
    if not is_whole and not file.is_left_out:
        raise ArchiveError("The archived bytes do not match the checksum of the file.", 0)


def _is_identical(file: Selected, original: Iterator[bytes], target: Path) -> bool:
    """Is the existing file the one to be restored? It is read only if its size is the same."""
    try:
        descriptor = open_regular(str(target))
    except OSError:  # a link, a directory, a pipe, or unreadable: something else
        return False
    with os.fdopen(descriptor, "rb") as there:
        if os.fstat(descriptor).st_size != file.known.checkpoint.offset:
            return False
        return all(there.read(len(data)) == data for data in original)
