"""Where credentials stand in what was read: the archived bytes of every file are looked at.

A report names each by its fingerprint and shows a masked form. What it is leaves this module in no
other way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields

from .. import sql, terminal
from ..files import archive
from ..secrets.find import find_in
from ..secrets.forget import LENGTH, fingerprint, masked
from ..secrets.rules import NAMES, REVISED, RULES
from ..source import LOG, claim_at
from ..sources import SOURCES
from .filters import Filters
from .refs import Names

FINGERPRINT_LENGTH = LENGTH
FORGET = "assoc-ingest forget --secret"
_PLACES = 5  # of one credential that are named

Advance = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """A place of a credential."""

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
    """Is a file read line by line? Assumed of unknown files."""
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


# -- for people ----------------------------------------------------------------------------------


def report(places: Iterable[SecretPlace], limit: int) -> Iterator[str]:
    """Yield the lines of a report on at most `limit` credentials; 0 is all."""
    by_name: dict[str, list[SecretPlace]] = {}
    for place in places:
        by_name.setdefault(place.fingerprint, []).append(place)
    for number, (name, found) in enumerate(by_name.items(), start=1):
        if limit and number > limit:
            yield f"... and {len(by_name) - limit:,} more. To see all: --limit 0\n"
            return
        first = found[0]
        yield f"{first.kind}  {first.masked}  {name}\n"
        for place in found[:_PLACES]:
            yield f"  {_place(place)}\n"
        if len(found) > _PLACES:
            yield f"  ... and {terminal.many(len(found) - _PLACES, 'more place')}\n"
        yield f"  To forget it: {first.forget}\n\n"


def _place(place: SecretPlace) -> str:
    name = place.ref or (f"line {place.line}" if place.line is not None else "?")
    return f"{name}  {place.path}, byte {place.byte_offset}"


def rules() -> Iterator[str]:
    yield f"Rules of {REVISED}\n\n"
    for rule in RULES:
        least, most = rule.lengths
        count = str(least) if least == most else f"{least} to {most}"
        for prefix in rule.prefixes:
            yield f"{rule.kind}: {prefix} and {count} of {rule.letters}\n"
        yield f"  {rule.source}\n"
    yield "\nJWT: eyJ..., a head with `alg`, and a signature (RFC 7519)\n"
    yield "private key: a block from -----BEGIN ... PRIVATE KEY----- to its end (RFC 7468)\n"
    yield "authorization: the value after `Authorization:` or `Bearer`, if it looks random\n"
    yield "address: the password in scheme://user:password@host, if it looks random\n"
    yield "named: a value that looks random, after a name that ends in one of these:\n"
    yield f"  {', '.join(NAMES)}\n"
