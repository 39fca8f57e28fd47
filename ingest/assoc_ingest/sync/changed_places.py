"""Maps changed paths to the places that a sync has to visit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..files.stored_names import stored_name
from ..files.walk import Place, Root
from .plan import Places


def places_of(changed: Iterable[str], roots: Iterable[Root]) -> Places:
    """Return the places below the roots that a sync has to visit for these absolute paths.

    For a file, that is its directory; for a directory, the directory and everything below it, since
    the system does not report what was in it when it appeared. A path that no source would walk to
    is ignored.
    """
    changed = list(changed)
    found: dict[Root, set[Place]] = {}
    for root in roots:
        above = str(root.path)
        for path in changed:
            if path == above or path.startswith(above + os.sep):
                parts = tuple(map(stored_name, Path(path).relative_to(root.path).parts))
                if places := _places(root, parts, path):
                    found.setdefault(root, set()).update(places)
    return found


def _places(root: Root, parts: tuple[str, ...], path: str) -> set[Place]:
    source = root.source
    if not all(source.descends(parts[:length]) for length in range(1, len(parts))):
        return set()
    is_directory = is_file = True  # a path that is gone may have been either
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        is_directory, is_file = stat.S_ISDIR(mode), stat.S_ISREG(mode)
    places = set()
    if is_directory and (not parts or source.descends(parts)):
        places.add(Place(parts))
    if is_file and parts and source.claim(parts) is not None:
        places.add(Place(parts[:-1], is_deep=False))
    return places
