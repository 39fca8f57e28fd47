"""Files and roots whose paths were lost with a damaged page, found again on the disk.

Such a file keeps its rows and its archive under a path that stands in for its own (`lost`). A new
file that has its bytes is that file: it takes over the row, and is read anew, so that the tables
end as if nothing had been lost. A root is found by one of its files.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from . import archive, lost
from .discover import Root
from .model import LOG, KnownFile
from .plan import Plan
from .steps import Work
from .storable import original_parts
from .store import known_file
from .tail import CHUNK, open_regular, read_at

_HEAD = 1024
_TRIED = 100  # files of a root that is lost, until one is found


def adopt_files(connection: sqlite3.Connection, plan: Plan) -> set[int]:
    """Let the new files of a plan that are lost ones under their own path have those ones' rows.

    Returns the ids of the files found again. Raises sqlite3.Error.
    """
    adopted = set()
    unnamed = [
        file
        for file_id in lost.unnamed_files(connection)
        if (file := known_file(connection, file_id)) is not None and file.checkpoint.offset
    ]
    unnamed.sort(key=lambda file: -file.checkpoint.offset)  # a fork begins as its original does
    for place, work in enumerate(plan.work if unnamed else ()):
        if work.known is None and (file := _same(connection, work, unnamed)) is not None:
            unnamed.remove(file)
            adopted.add(file.id)
            connection.execute(
                "update files set source_id = ? where id = ?", (work.source_id, file.id)
            )
            # No marker fits: all of it is read, in place of what was kept.
            mark = replace(file.checkpoint, head_hash=b"")
            plan.work[place] = replace(work, known=replace(file, gone_at=None, checkpoint=mark))
    return adopted


def _same(
    connection: sqlite3.Connection, work: Work, candidates: Iterable[KnownFile]
) -> KnownFile | None:
    """Return the lost file whose archived bytes stand at their places in a new one."""
    is_log = work.root.source.shape(work.claim) == LOG
    size, claim = work.found.size, work.claim
    fitting = [
        file
        for file in candidates
        if (file.checkpoint.offset <= size if is_log else file.checkpoint.offset == size)
        and (None in (file.session_key, claim.session_key) or file.session_key == claim.session_key)
    ]
    try:
        descriptor = open_regular(work.found.location) if fitting else None
    except OSError:
        return None  # reading it will tell
    if descriptor is None:
        return None
    try:
        return next((file for file in fitting if _stands_in(connection, file, descriptor)), None)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _stands_in(connection: sqlite3.Connection, file: KnownFile, descriptor: int) -> bool:
    """Has a file on the disk the archived bytes of this one, those that are left of them?"""
    found = False
    for start, data in archive.sound_pieces(connection, file.id):
        for low in (0, *range(_HEAD, len(data), CHUNK)):
            part = data[low : _HEAD if low == 0 else low + CHUNK]
            if read_at(descriptor, len(part), start + low) != part:
                return False
        found = True
    return found


def adopt_roots(connection: sqlite3.Connection, roots: Iterable[Root], missing: list[str]) -> None:
    """Give roots that are lost the directory in which their files are; take them off `missing`."""
    known = {(kind, root) for kind, root in connection.execute("select kind, root from sources")}
    for root in roots:
        if (root.source.name, root.name) in known:
            continue
        for source_id, stand_in in lost.unnamed_roots(connection, root.source.name):
            if _lies_in(connection, source_id, root.path):
                connection.execute(
                    "update sources set root = ?, gone_at = null where id = ?",
                    (root.name, source_id),
                )
                missing[:] = [place for place in missing if place != stand_in]
                break


def _lies_in(connection: sqlite3.Connection, source_id: int, directory: Path) -> bool:
    """Is one of the files of a root there?"""
    rows = connection.execute(
        "select id from files where source_id = ? and offset > 0 order by gone_at is not null, id",
        (source_id,),
    ).fetchall()
    known = (known_file(connection, file_id) for (file_id,) in islice(rows, _TRIED))
    for file in known:
        if file is None:
            continue
        try:
            descriptor = open_regular(str(directory.joinpath(*original_parts(file.path))))
        except OSError:
            continue
        try:
            if _stands_in(connection, file, descriptor):
                return True
        finally:
            os.close(descriptor)
    return False
