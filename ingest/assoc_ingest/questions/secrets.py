"""`secrets`: where the archived bytes of files have credentials.

Each credential has a fingerprint and a masked form. Its value never leaves this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .question import Field, FilterFields, Reader, Size, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.filters import Filters

_LARGEST = 10_000_000  # bytes of a baseline


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a credential."""

    rule: str
    kind: str
    masked: str
    fingerprint: str
    ref: Annotated[str | None, "What `show` opens; null if the file is of no conversation."]
    line: int | None
    timestamp: str | None
    session_key: str | None
    project: str | None
    source: str
    path: str
    root: str
    byte_offset: int
    byte_length: int
    forget: Annotated[str, "The command that removes it."]

    @property
    def name(self) -> str:
        return self.ref or (f"line {self.line}" if self.line is not None else "?")


@dataclass
class Credentials:
    """The places of credentials."""

    total: Annotated[int, "Places of all credentials."]
    items: Annotated[list[Place], "Places, in the order of the files."]
    _credentials: list[list[Place]]
    """The places of each credential, by its first one."""
    _limit: int

    @property
    def fingerprints(self) -> set[str]:
        return {places[0].fingerprint for places in self._credentials}


@question(
    "Credentials",
    items="credentials",
    about="",
    parts="places",
    terminal=Size(20), json=Size(20),
)  # fmt: skip
def secrets(
    reader: Reader,
    *,
    filters: Annotated[
        Filters, FilterFields(("project", "repository", "session", "source", "since", "until"))
    ],
    baseline: Annotated[
        Path | None,
        Field(
            "Ignore the credentials whose fingerprints are in this file.", "FILE", needs_disk=True
        ),
    ] = None,
) -> Credentials:
    """Find credentials in the database, without printing them.

    Finds keys and tokens of known providers, private keys, and values that look random and have a
    name such as PASSWORD. `forget --secret FINGERPRINT` removes one. Exits with 1 if it finds a
    credential that is not in the baseline.

    \b
    Examples:
      assoc-ingest secrets
      assoc-ingest secrets --project shop --since 7d --json
      assoc-ingest secrets --write-baseline known.txt
      assoc-ingest secrets --baseline known.txt
    """  # fmt: skip
    known = read_baseline(baseline) if baseline is not None else frozenset()
    places = [place for place in _places(reader, filters) if place.fingerprint not in known]
    credentials: dict[str, list[Place]] = {}
    for place in places:
        credentials.setdefault(place.fingerprint, []).append(place)
    items = [*reader.page(places)]
    return Credentials(len(places), items, [*credentials.values()], reader.limit)


def read_baseline(path: Path) -> frozenset[str]:
    """Return the fingerprints in a file. Raises UsageError if it is no baseline."""
    from ..errors import UsageError
    from ..secrets.forget import LENGTH

    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(
            f"The baseline {path} cannot be read: {reason}. To write one: --write-baseline FILE"
        ) from error
    lines = [line.partition("#")[0].strip() for line in text.split("\n")]
    for number, line in enumerate(lines, start=1):
        if line and not (len(line) == LENGTH and set(line) <= set("0123456789abcdef")):
            raise UsageError(
                f"Line {number} of {path} is not a fingerprint. To write a baseline: "
                "--write-baseline FILE"
            )
    return frozenset(filter(None, lines))


def _places(reader: Reader, filters: Filters) -> Iterator[Place]:
    """Yield where credentials are, in the order of the files.

    Raises UsageError or NotFoundError for a filter that names nothing.
    """
    from .. import sql
    from ..ask.refs import Names
    from ..files import archive
    from ..secrets.find import find_in
    from ..secrets.forget import fingerprint, masked

    given = filters.parameters(reader.db)
    since, until = given["since"], given["until"]
    wanted = {name: given[name] for name in ("project", "session", "source", "since")}
    files = sql.ask(reader.db, "pages/secret_files", **wanted).fetchall()
    done, size = 0, sum(row["offset"] for row in files)
    names = Names(reader.db)
    for row in files:
        pieces = archive.sound_pieces(reader.db, row["id"])
        for secret in find_in(pieces, is_log=_is_log(row["source"], row["path"])):
            at = _time(reader.db, row, secret.start)
            if (since and (at or "") < str(since)) or (until and (at or "") >= str(until)):
                continue
            line = names.line(row["id"], secret.start)
            name = fingerprint(secret.text)
            yield Place(
                secret.rule, secret.kind, masked(secret), name, names.at(row["id"], line), line,
                at, row["session_key"], row["project"], row["source"], row["path"], row["root"],
                secret.start, secret.end - secret.start, f"assoc-ingest forget --secret {name}",
            )  # fmt: skip
        done += row["offset"]
        reader.progress(done, size)


def _is_log(source: str, path: str) -> bool:
    """Is a file read line by line? Assumed of unknown files."""
    from ..source import LOG, claim_at
    from ..sources import SOURCES

    claim = claim_at(SOURCES[source], path) if source in SOURCES else None
    return claim is None or SOURCES[source].shape(claim) == LOG


def _time(connection: sqlite3.Connection, file: sqlite3.Row, offset: int) -> str | None:
    from .. import sql

    row = sql.ask(connection, "pages/secret_time", file=file["id"], offset=offset).fetchone()
    at: str | None = row["timestamp"] or file["mtime"]
    return at


def rules() -> Iterator[str]:
    """Yield what is looked for, in lines."""
    from ..secrets.rules import NAMES, REVISED, RULES

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
