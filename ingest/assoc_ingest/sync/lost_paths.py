"""Finds files and roots on disk whose paths were lost with a damaged page.

Such a file keeps its rows and its archive under a placeholder path (`lost`). A new file with the
same bytes is that file: it takes over the row and is read again, so that the tables end up as if
nothing had been lost. A root is found by one of its files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ..files import lost
from ..files.contents import most_bytes, reading
from ..files.packed import opened
from ..files.steps import Work
from ..files.stored_names import original_parts
from ..files.walk import Root
from ..source import LOG, KnownFile
from ..store.known_files import known_file
from ..store.transaction import transaction
from ..upkeep.archive_gaps import has_its_bytes
from .plan import Plan

_TRIED = 100  # files of a lost root that are looked for


def find_lost_files(connection: sqlite3.Connection, plan: Plan) -> set[int]:
    """Let files of a plan take over the rows of lost ones that have the same bytes.

    Also finds files that came back and of which a part was lost. Returns the ids of the files whose
    path is known again. Raises sqlite3.Error.
    """
    found_again: dict[int, int] = {}
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
            found_again[found.id] = work.source_id
        # This marker never matches, so the whole file is read in place of what was kept.
        plan.work[place] = replace(work, known=found._replace(gone_at=None, head_hash=b""))
    if found_again:
        with transaction(connection):
            connection.executemany(
                "update files set source_id = ? where id = ?",
                ((source_id, id_) for id_, source_id in found_again.items()),
            )
    return set(found_again)


def _fitting(work: Work, unnamed: list[KnownFile]) -> list[KnownFile]:
    """Return the lost files that a new one can be, judging by its path and size."""
    claim, size = work.claim, most_bytes(work)
    is_log = bool(unnamed) and work.root.source.shape(claim) == LOG
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
        with reading(work) as (descriptor, _):
            fits = (file for file in candidates if has_its_bytes(connection, file, descriptor))
            return next(fits, None)
    except OSError:
        return None  # reading it will fail, too


def find_lost_roots(
    connection: sqlite3.Connection, roots: Iterable[Root], missing: list[str]
) -> None:
    """Give lost roots the one of the new roots that has their files; take them out of `missing`."""
    for root in roots:
        for source_id, placeholder in lost.unnamed_roots(connection, root.source.name):
            if _lies_in(connection, source_id, root.path):
                with transaction(connection):
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
