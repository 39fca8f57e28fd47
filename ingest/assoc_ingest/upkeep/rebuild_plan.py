"""Decides which files a rebuild can derive again as a whole."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ..files import lost
from ..files.exclusions import issues_outside_archive
from ..records import Record
from ..source import LOG, Claim
from .archive_gaps import examined
from .archived_files import File, claim_of, is_archived


class Plan(NamedTuple):
    """What a rebuild can do for a file."""

    claim: Claim | None
    gaps: list[tuple[int, int]]
    """What is missing in its archive."""
    is_as_read: bool
    """The rest is what was read."""
    is_whole: bool
    """All of its rows can be derived from the archive."""
    issues: list[Record]
    """Issues that do not follow from the archive."""
    is_endless: bool = False
    """Its parser does not come to an end."""


def plan_of(connection: sqlite3.Connection, file: File) -> Plan:
    """Look at the archive of a file, before any of its rows are removed."""
    source, _, known = file
    gaps, is_as_read = examined(connection, known)
    claim = claim_of(connection, source, known, is_sound=is_as_read and not gaps)
    is_whole = (
        not gaps
        and is_as_read
        and claim is not None
        and is_archived(source, claim, known)
        and not lost.is_unnamed(known.path)
    )
    issues = []
    if is_whole and claim is not None:
        is_log = source.shape(claim) == LOG
        issues = issues_outside_archive(connection, known.id, is_log=is_log)
    return Plan(claim, gaps, is_as_read, is_whole, issues)
