"""From paths that changed to the places that a sync has to look at."""

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
    """Return the places below the roots in which these absolute paths can mean something.

    Of a file that is the directory it is in; of a directory, itself with all below it: what was
    in it when it appeared is not reported by the system. A path that no source would walk to means
    nothing.
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
    is_directory = is_file = True  # what is gone may have been either
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        is_directory, is_file = stat.S_ISDIR(mode), stat.S_ISREG(mode)
    places = set()
    if is_directory and (not parts or source.descends(parts)):
        places.add(Place(parts))
    if is_file and parts and source.claim(parts) is not None:
        places.add(Place(parts[:-1], is_deep=False))
    return places
