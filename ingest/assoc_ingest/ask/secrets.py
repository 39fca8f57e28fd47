"""Where credentials stand in what was read: the archived bytes of every file are looked at.

A report names each by its fingerprint and shows a masked form. What it is leaves this module in no
other way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields

from .. import sql
from ..files import archive
from ..files.fingerprints import LENGTH, fingerprint, masked
from ..files.secret_scan import find_in
from ..source import LOG, claim_at
from ..sources import SOURCES
from .filters import Filters
from .refs import Names

FINGERPRINT_LENGTH = LENGTH
FORGET = "assoc-ingest forget --secret"

Advance = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """A place where a credential stands."""

    rule: str
    kind: str
    masked: str
    fingerprint: str
    ref: str | None
    """What `show` opens: KEY:LINE; None for a file that belongs to no conversation."""
    line: int | None
    timestamp: str | None
    session_key: str | None
    project: str | None
    source: str
    path: str
    root: str
    byte_offset: int
    byte_length: int
    forget: str
    """The command that removes it."""

    def as_json(self) -> dict[str, object]:
        """Return it as an item of an answer."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def secret_places(
    connection: sqlite3.Connection,
    filters: Filters,
    accepted: Collection[str] = (),
    advance: Advance = lambda done, total: None,
) -> Iterator[SecretPlace]:
    """Yield where credentials stand, in the order of the files, without accepted fingerprints.

    Of the filters, project, session, source, since and until count. `advance` is called with the
    bytes done and to do. Raises UsageError or NotFoundError for a filter that names nothing.
    """
    given = filters.parameters(connection)
    until = given.pop("until")
    wanted = {name: given[name] for name in ("project", "session", "source", "since")}
    files = sql.ask(connection, "pages/secret_files", **wanted).fetchall()
    done, total = 0, sum(row["offset"] for row in files)
    names = Names(connection)
    for row in files:
        pieces = archive.sound_pieces(connection, row["id"])
        for secret in find_in(pieces, is_log=is_log(row["source"], row["path"])):
            name = fingerprint(secret.text)
            at = _time(connection, row, secret.start)
            if name in accepted or not _is_between(at, wanted["since"], until):
                continue
            line = names.line(row["id"], secret.start)
            yield SecretPlace(
                secret.rule, secret.kind, masked(secret), name, names.at(row["id"], line), line,
                at, row["session_key"], row["project"], row["source"], row["path"], row["root"],
                secret.start, secret.end - secret.start, f"{FORGET} {name}",
            )  # fmt: skip
        done += row["offset"]
        advance(done, total)


def is_log(source: str, path: str) -> bool:
    """Is a file read line by line? So is one of which nobody knows, then."""
    claim = claim_at(SOURCES[source], path) if source in SOURCES else None
    return claim is None or SOURCES[source].shape(claim) == LOG


def _time(connection: sqlite3.Connection, file: sqlite3.Row, offset: int) -> str | None:
    row = sql.ask(connection, "pages/secret_time", file=file["id"], offset=offset).fetchone()
    at: str | None = row["timestamp"] or file["mtime"]
    return at


def _is_between(at: str | None, since: object, until: object) -> bool:
    return (since is None or (at or "") >= str(since)) and (
        until is None or (at or "") < str(until)
    )
