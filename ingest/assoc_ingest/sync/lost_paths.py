"""Finds files and roots on disk whose paths were lost with a damaged page.

Such a file keeps its rows and its archive under a placeholder path (`lost`). A new file with the
same bytes is that file: it takes over the row and is read again, so that the tables end up as if
nothing had been lost. A root is found by one of its files.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ..files import lost
from ..files.packed import is_packed, opened
from ..files.steps import Work
from ..files.stored_names import original_parts
from ..files.walk import Root
from ..source import LOG, KnownFile
from ..store.batch import known_file
from ..upkeep.archive_gaps import has_its_bytes
from .plan import Plan

_TRIED = 100  # files of a lost root that are looked for


def find_lost_files(connection: sqlite3.Connection, plan: Plan) -> set[int]:
    """Let files of a plan take over the rows of lost ones that have the same bytes.

    Also finds files that came back and of which a part was lost. Returns the ids of the files whose
    path is known again. Raises sqlite3.Error.
    """
    found_again = set()
    unnamed = [
        file
        for file_id in lost.unnamed_files(connection)
        if (file := known_file(connection, file_id)) is not None and file.checkpoint.offset
    ]
    unnamed.sort(
        key=lambda file: -file.checkpoint.offset
    )  # longest first: a fork begins like its original
    for place, work in enumerate(plan.work):
        known = work.known
        if known is None:
            found = _first_that_matches(connection, work, _fitting(work, unnamed))
        elif known.gone_at is not None and known.checkpoint.head_hash == b"":
            found = _first_that_matches(connection, work, [known])  # see `archive_gaps`
        else:
            continue
        if found is None:
            continue
        if known is None:
            unnamed.remove(found)
            found_again.add(found.id)
            connection.execute(
                "update files set source_id = ? where id = ?", (work.source_id, found.id)
            )
        # This marker never matches, so the whole file is read in place of what was kept.
        plan.work[place] = replace(work, known=found._replace(gone_at=None, head_hash=b""))
    return found_again


def _fitting(work: Work, unnamed: list[KnownFile]) -> list[KnownFile]:
    """Return the lost files that a new one can be, judging by its path and size."""
    claim = work.claim
    is_known = work.entry is None and not is_packed(work.found.path)
    size = work.found.size if is_known else sys.maxsize
    is_log = not is_known or (bool(unnamed) and work.root.source.shape(claim) == LOG)
    return [
        file
        for file in unnamed
        if (file.checkpoint.offset <= size if is_log else file.checkpoint.offset == size)
        and (None in (file.session_key, claim.session_key) or file.session_key == claim.session_key)
    ]


def _first_that_matches(
    connection: sqlite3.Connection, work: Work, candidates: list[KnownFile]
) -> KnownFile | None:
    """Return the first candidate whose remaining bytes are in a file at the same offsets."""
    if not candidates:
        return None
    try:
        with _content(work) as descriptor:
            fits = (file for file in candidates if has_its_bytes(connection, file, descriptor))
            return next(fits, None)
    except OSError:
        return None  # reading it will fail, too


@contextmanager
def _content(work: Work) -> Iterator[int]:
    """Open what is read of a file, or of an entry of a store. Raises OSError."""
    if work.entry is None:
        with opened(work.found.location) as descriptor:
            yield descriptor
        return
    with work.entry.open() as lines, tempfile.TemporaryFile(buffering=0) as file:
        for data in lines():
            file.write(data)
        yield file.fileno()


def find_lost_roots(
    connection: sqlite3.Connection, roots: Iterable[Root], missing: list[str]
) -> None:
    """Give lost roots the directory that has their files; remove them from `missing`."""
    known = {(kind, root) for kind, root in connection.execute("select kind, root from sources")}
    for root in roots:
        if (root.source.name, root.name) in known:
            continue
        for source_id, placeholder in lost.unnamed_roots(connection, root.source.name):
            if _lies_in(connection, source_id, root.path):
                connection.execute(
                    "update sources set root = ?, gone_at = null where id = ?",
                    (root.name, source_id),
                )
                missing[:] = [place for place in missing if place != placeholder]
                break


def _lies_in(connection: sqlite3.Connection, source_id: int, directory: Path) -> bool:
    """Is one of the files of a root in this directory?"""
    rows = connection.execute(
        "select id from files where source_id = ? and offset > 0 order by gone_at is not null, id",
        (source_id,),
    ).fetchall()
    known = (known_file(connection, file_id) for (file_id,) in islice(rows, _TRIED))
    for file in known:
        if file is None:
            continue
        with suppress(OSError):  # another one may be readable
            location = directory.joinpath(*original_parts(file.path))
            with opened(str(location)) as descriptor:
                if has_its_bytes(connection, file, descriptor):
                    return True
    return False
