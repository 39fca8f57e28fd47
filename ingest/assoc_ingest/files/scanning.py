"""Lists directories: their entries, what each one is, and what cannot be read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from operator import attrgetter

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
            return _in_byte_order(list(found))
    except OSError as error:
        if seen.directories is not None:
            seen.directories.pop(directory, None)
        if not isinstance(error, FileNotFoundError):
            seen.note(directory, error)
        return []


def _in_byte_order(found: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    found.sort(key=_name)
    if not "".join(map(_name, found)).isascii():  # letters may have another order
        found.sort(key=lambda entry: os.fsencode(entry.name))
    return found


def kind(entry: os.DirEntry[str], seen: Walk) -> str | None:
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


def status(entry: os.DirEntry[str], seen: Walk) -> os.stat_result | None:
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
