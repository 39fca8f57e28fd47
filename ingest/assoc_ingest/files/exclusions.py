"""What a sync leaves out: what the user forgot, and what subagents have in files of their own."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

from ..records import Issue, Record, Team, Transcript
from ..secrets.forget import ForgottenSecret, ForgottenSecrets, Span, blanked
from ..source import (
    FOREIGN,
    LOG,
    OF_THEIR_PLACE,
    UNREAD,
    Checkpoint,
    Claim,
    Line,
    Source,
    claim_at,
    parts_of,
)
from ..sources import SOURCES
from .stores import Work, most_bytes, reading
from .tail import RAN_AWAY, Parser, Prefix, Stretch, lines_of, pieces
from .walk import PATH_FROM_LINES, PATH_LOST, UNOPENED

# ------------------------------------------------------------------------------------------------
# What a sync leaves out because the user has forgotten it.
#
# A row of `forgotten` names a conversation, a file or a directory; with a slash at its end, the
# directory of a project, which is left out while it is empty. A file whose path assigns it
# to a forgotten conversation is never opened. Files that several conversations share (the prompt
# history, hook events, lists of sessions) are read, but:
#
# - a line of a log that names a forgotten conversation is replaced by as many spaces, also in the
#   archive, so that all offsets stay; an issue says where. It is the whole line, since an object
#   that is glued to another one may be torn, and does not say what it is about;
# - of a document, the records that name the conversation are left out, and its bytes are not
#   archived: as for a private document, only their hash is stored.
#
# Copies at other paths are left out, too, if their path does not say whose they are: see
# `sync/copies`. A fork that repeats lines of a forgotten conversation is another conversation,
# and is read.
#
# A credential that the user has forgotten is left out of every file, before its bytes are parsed
# or archived: rows, index and archive never have it, offsets stay, and JSON stays JSON. An issue
# says where.


LEFT_OUT = "left out: it names a forgotten conversation"
"""Reason of the issue where something was left out."""

CREDENTIAL_LEFT_OUT = "left out: a forgotten credential"
"""Reason of the issue where a credential was left out."""

REASONS = (LEFT_OUT, CREDENTIAL_LEFT_OUT)
"""Reasons of all issues where something that is forgotten was left out."""

OUTSIDE_ARCHIVE = (*REASONS, PATH_LOST, PATH_FROM_LINES, RAN_AWAY, *UNOPENED)
"""Reasons of all issues that do not follow from the archive of a file."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_LENGTH = 36
_NAMING = ("session_key", "list_key", "lead_session_key")


def is_unique_key(session_key: str) -> bool:
    """Is it a uuid? Other keys identify a conversation only within their root."""
    return _UUID.fullmatch(session_key) is not None


class Content(NamedTuple):
    """What identifies a file at any path: a length, and a fingerprint of that many bytes."""

    length: int
    fingerprint: bytes


def content_of(checkpoint: Checkpoint) -> Content | None:
    """Return what identifies the bytes before a checkpoint; None if there are none."""
    if not checkpoint.offset:
        return None
    marker = checkpoint.head_hash + checkpoint.tail_hash + checkpoint.prefix_crc.to_bytes(4)
    return Content(checkpoint.offset, blake2b(marker, digest_size=16).digest())


class Exclusion(NamedTuple):
    """A row of `forgotten`: a conversation, or a file or directory that may have belonged to it."""

    session_key: str | None
    path: str | None
    root: str | None
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The rows of `forgotten`; if there are none, nothing is left out."""

    exclusions: tuple[Exclusion, ...] = ()
    keys: frozenset[tuple[str | None, str]] = frozenset()
    """(root, session key); a root of None means all."""
    places: frozenset[tuple[str | None, str]] = frozenset()
    """(root, path)"""

    @classmethod
    def of(cls, exclusions: Iterable[Exclusion]) -> Forgotten:
        """Return these rows, arranged by what they name."""
        exclusions = tuple(exclusions)
        return cls(
            exclusions,
            frozenset(
                (s.root, s.session_key) for s in exclusions if s.path is None and s.session_key
            ),
            frozenset((s.root, s.path) for s in exclusions if s.path is not None),
        )

    def keys_in(self, root: str) -> frozenset[str]:
        return frozenset(key for place, key in self.keys if place in (None, root))

    def has_project(self, root: str, above: str, key: str) -> bool:
        """Was the project forgotten whose directory, below `above`, is empty now?"""
        place = project_place(above, key)
        return (root, place) in self.places or (None, place) in self.places

    def covers(self, root: str, path: str, claim: Claim) -> bool:
        """Must this file not be opened?"""
        if not self.keys and not self.places:
            return False
        above = places_above(path)
        if any((root, name) in self.places or (None, name) in self.places for name in above):
            return True
        return is_of(claim, parts_of(path), self.keys_in(root))


def project_place(above: str, key: str) -> str:
    """Return the path in `forgotten` of a project that does not come back while it has no files.

    It ends with a slash, so it covers no file: a conversation that begins there later is read.
    """
    return f"{above}/{key}/"


def places_above(path: str) -> set[str]:
    parts = parts_of(path)
    return {"/".join(parts[: count + 1]) for count in range(len(parts))}


def load(connection: sqlite3.Connection | None, returned: Iterable[Exclusion] = ()) -> Forgotten:
    """Read what is forgotten, and add `returned`; without a database, that is nothing."""
    if connection is None:
        return Forgotten()
    rows = connection.execute(
        "select session_key, path, root, content_length, content_hash from forgotten"
    )
    stored = (
        Exclusion(key, path, root, None if fingerprint is None else Content(length, fingerprint))
        for key, path, root, length, fingerprint in rows
    )
    return Forgotten.of([*stored, *returned])


def is_left_out(connection: sqlite3.Connection, file_id: int) -> bool:
    """Is something of this file left out, so that its archive is incomplete?"""
    row = connection.execute(
        "select 1 from issues where file_id = ? and reason in (?, ?) limit 1", (file_id, *REASONS)
    ).fetchone()
    return row is not None


def issues_outside_archive(
    connection: sqlite3.Connection, file_id: int, *, is_log: bool
) -> list[Record]:
    """Return the issues of a file that do not follow from its archive.

    Forgotten lines are blank there; of a document that is broken now, the last version that could
    be parsed is archived; and neither the path of a file, nor the time to parse it, nor that it
    could not be unpacked is in its bytes.
    """
    reasons = ", ".join("?" * len(OUTSIDE_ARCHIVE))
    rows = connection.execute(
        "select reason, quarantined, sample, byte_offset, byte_length from issues"
        f" where file_id = ? and (reason in ({reasons}) or (? and quarantined = 1))",
        (file_id, *OUTSIDE_ARCHIVE, not is_log),
    )
    return [Issue(*row) for row in rows]


def is_of(claim: Claim, parts: Iterable[str], keys: Collection[str]) -> bool:
    """Does the path assign the file to one of these conversations?

    By its claim, or by a directory or name that begins with a uuid: todos/<S>-agent-<A>.json.
    """
    if claim.session_key is not None:
        return claim.session_key in keys
    return any(start in keys for start in _uuids(parts))


def owners(claim: Claim, parts: Iterable[str]) -> list[str]:
    """Return the conversations to which a path assigns the file; mostly one or none."""
    if claim.session_key is not None:
        return [claim.session_key] if is_unique_key(claim.session_key) else []
    return _uuids(parts)


def _uuids(parts: Iterable[str]) -> list[str]:
    starts = (part[:_UUID_LENGTH].lower() for part in parts)
    return [start for start in starts if is_unique_key(start)]


def log_without(
    keys: Collection[str], parser: Parser, stretch: Stretch
) -> tuple[bytes, list[Record]]:
    """Return the bytes of a stretch of a log, and its records, without these conversations.

    A line that names one of them is replaced by as many spaces, and an issue says so. The others
    are parsed as if it had always been blank: that is how its archived bytes will be read, and what
    the context of the file continues from. They are parsed once more, all at once, since records of
    several lines are put together: a call and its result are one. A piece of a line too long to be
    decoded is blanked, since it is not known what it names.
    """
    if not stretch.lines:
        blank = re.sub(rb"[^\n]", b" ", stretch.data)
        is_changed = stretch.long_line and blank != stretch.data
        place = (stretch.first_line, stretch.long_line)
        return blank, [Issue(LEFT_OUT, 0, None, *place)] if is_changed else []
    kept: list[Line] = []
    issues: list[Record] = []
    changed = bytearray(stretch.data)
    before = parser.context
    for line in stretch.lines:
        context = parser.context
        if not _is_named(keys, parser, line):
            kept.append(line)
            continue
        parser.context = context
        text = line.data.rstrip(b" \t\r\n")
        low = line.start - stretch.start
        changed[low : low + len(text)] = b" " * len(text)
        issues.append(Issue(LEFT_OUT, 1, None, line.start, len(text)))
    parser.context = before
    return bytes(changed), [*parser.parse(kept), *issues]


def _is_named(keys: Collection[str], parser: Parser, line: Line) -> bool:
    """Parse a line. Does it name one of these conversations?

    A line names a conversation by a uuid anywhere in it, or by a key of a record. A line of an
    agent's file belongs to the conversation that it states, whatever its text mentions.
    """
    if parser.claim.agent_key is not None:
        records = parser.parse([line])
        stated = (r.stated_session_key for r in records if isinstance(r, Transcript))
        return any(key in keys for key in stated)
    lowered = line.data.lower()
    if any(key.encode() in lowered for key in keys if is_unique_key(key)):
        return True
    return any(names(keys, record) for record in parser.parse([line]))


def names(keys: Collection[str], record: Record) -> bool:
    return any(getattr(record, name, None) in keys for name in _NAMING)


def document_without(
    keys: Collection[str], records: Iterable[Record], size: int
) -> list[Record] | None:
    """Return the records of a document without these conversations, None if it names none of them.

    If one of them leads a team, all members of the team are left out. An issue says that records
    are missing.
    """
    read = list(records)
    kept = [record for record in read if not names(keys, record)]
    if len(kept) == len(read):
        return None
    if any(isinstance(record, Team) for record in read) and not any(
        isinstance(record, Team) for record in kept
    ):
        kept = []
    return [*map(without_sample, kept), Issue(LEFT_OUT, 0, None, 0, size)]


def without_sample(record: Record) -> Record:
    """Return an issue without its sample, and any other record unchanged."""
    return record._replace(sample=None) if isinstance(record, Issue) else record


# -- copies at other paths ------------------------------------------------------------------------


class Originals:
    """The forgotten files, to recognise copies of them."""

    def __init__(self, exclusions: Iterable[Exclusion]) -> None:
        self._by_length: dict[int, list[Exclusion]] = {}
        for exclusion in exclusions:
            if exclusion.content is not None:
                self._by_length.setdefault(exclusion.content.length, []).append(exclusion)
        self._lengths = sorted(self._by_length)

    def fitting(
        self, claim: Claim, path: str, size: int, *, is_log: bool, read: int = 0
    ) -> dict[Content, Exclusion]:
        """Return what a file of this size can be a copy of.

        Of a log, the first `read` bytes have already been compared.
        """
        if is_log:
            lengths = [length for length in self._lengths if read < length <= size]
        else:
            lengths = [size] if size in self._by_length else []
        if not lengths:
            return {}
        named = owners(claim, parts_of(path))
        found = [
            exclusion
            for length in lengths
            for exclusion in self._by_length[length]
            if (exclusion.path == path or claim.kind not in OF_THEIR_PLACE)
            and all(owner in (exclusion.path or "").lower() for owner in named)
        ]
        found.sort(
            key=lambda exclusion: exclusion.path == path
        )  # if several are equal, the one at the same path wins
        return {
            exclusion.content: exclusion for exclusion in found if exclusion.content is not None
        }

    def of(self, work: Work) -> Exclusion | None:
        """Return what a file on disk is a copy of, None if it is not one or cannot be read."""
        shape = work.root.source.shape(work.claim)
        if shape == UNREAD:
            return None
        originals = self.fitting(
            work.claim,
            work.found.path,
            most_bytes(work),
            is_log=shape == LOG,
            read=work.known.checkpoint.offset if work.known is not None else 0,
        )
        if not originals:
            return None
        try:
            with reading(work) as (descriptor, _):
                return first_of(originals, pieces(descriptor))
        except OSError:
            return None  # reading it will fail, too


def first_of(originals: dict[Content, Exclusion], parts: Iterable[bytes]) -> Exclusion | None:
    """Return the first of these that the bytes of a file begin with."""
    lengths = sorted({content.length for content in originals}, reverse=True)
    prefix = Prefix()
    for data in parts:
        start = 0
        while lengths and prefix.offset + len(data) - start >= lengths[-1]:
            end = start + lengths.pop() - prefix.offset
            prefix, start = prefix.extended(data[start:end]), end
            content = content_of(prefix.checkpoint())
            if content in originals:
                return originals[content]
        if not lengths:
            return None
        prefix = prefix.extended(data[start:])
    return None


def key_in_root(original: Exclusion, claim: Claim) -> str | None:
    """Return the key of the conversation of a copy, if keys like it are valid in one root only.

    The root of the copy then contains the conversation, so other files and lists there can be about
    it, too.
    """
    key = claim.session_key
    is_same = key is not None and key == original.session_key and not is_unique_key(key)
    return key if is_same else None


# -- credentials ----------------------------------------------------------------------------------


def load_secrets(connection: sqlite3.Connection | None) -> ForgottenSecrets:
    """Read which credentials are forgotten; without a database, none are."""
    if connection is None:
        return ForgottenSecrets()
    rows = connection.execute(
        "select rule, length, core_start, core_length, salt, hash from forgotten_secrets"
    )
    return ForgottenSecrets.of(
        ForgottenSecret(rule, length, None if count is None else (start, count), salt, hash_)
        for rule, length, start, count, salt, hash_ in rows
    )


def issues_at(start: int, spans: Iterable[Span]) -> list[Record]:
    """Return an issue for each credential that was left out of bytes that begin at `start`."""
    return [Issue(CREDENTIAL_LEFT_OUT, 0, None, start + low, high - low) for low, high in spans]


def stretches_without(
    secrets: ForgottenSecrets, stretches: Iterable[Stretch]
) -> Iterator[tuple[Stretch, bytes, list[Record]]]:
    """Yield the stretches of a log without forgotten credentials, as they were, and the issues.

    Of a line too long to be parsed, the end of each piece is looked at again with the next one.
    """
    if not secrets:
        yield from ((stretch, stretch.data, []) for stretch in stretches)
        return
    from ..secrets.find import LONGEST

    held: Stretch | None = None
    for stretch in stretches:
        if held is not None:
            stretch = Stretch(
                held.start, held.data + stretch.data, (), stretch.long_line, stretch.is_cut
            )
            held = None
        spans = secrets.spans(stretch.data, is_log=True)
        if stretch.is_cut:
            cut = max(0, len(stretch.data) - LONGEST)
            cut = min([cut, *(low for low, high in spans if low < cut < high)])
            held = Stretch(stretch.start + cut, stretch.data[cut:], (), 0, is_cut=True)
            spans = [span for span in spans if span[1] <= cut]
            stretch = Stretch(stretch.start, stretch.data[:cut], (), 0, is_cut=True)
            if not cut:
                continue
        yield _stretch_without(stretch, spans), stretch.data, issues_at(stretch.start, spans)
    if held is not None:
        yield held, held.data, []


def _stretch_without(stretch: Stretch, spans: list[Span]) -> Stretch:
    if not spans:
        return stretch
    data = blanked(stretch.data, spans)
    lines = lines_of(stretch.start, data) if stretch.lines else ()
    return Stretch(stretch.start, data, lines, stretch.long_line, stretch.is_cut)


# ------------------------------------------------------------------------------------------------
# Which subagents have files of their own, so that none of their messages is stored twice.
#
# A transcript repeats the messages of its subagents. If a subagent has a file, its messages are
# read from that file only; if it has none, the repetition is the only record. So the rows of a
# transcript depend on which agents have files, and it is re-parsed from its archive when that
# changes:
#
# - a sync knows all the files that it is about to read before it reads the first one. If an agent's
#   file appears later, transcripts that were read without it are re-parsed (`to_read_again`);
# - if an agent's file is removed from the database, the lines that repeat it become the record. A
#   file that is gone or forgotten remains the record, until it is remembered (`repeating`).


class AgentFiles:
    """The subagents with files of their own, source by source."""

    def __init__(
        self, connection: sqlite3.Connection | None, returned: Iterable[Exclusion] = ()
    ) -> None:
        """`returned` are exclusions that are about to be added to those of the database."""
        self._connection = connection
        self._returned = tuple(returned)
        self._joined: dict[tuple[int, frozenset[str]], frozenset[str]] = {}

    def with_files(
        self, source: Source, source_id: int, claim: Claim, found: frozenset[str] = frozenset()
    ) -> Claim:
        """Add to the claim of a transcript the agents that have files; return others unchanged.

        `found` are agents whose files are about to be read for the first time. All claims share one
        set: a home can have thousands of transcripts, and as many agents.
        """
        if claim.agent_key is not None or claim.session_key is None or source.shape(claim) != LOG:
            return claim
        if (source_id, found) not in self._joined:
            self._joined[source_id, found] = self._stored(source_id) | found
        agents = self._joined[source_id, found]
        return replace(claim, elsewhere=agents) if agents else claim

    def _stored(self, source_id: int) -> frozenset[str]:
        if self._connection is None:
            return frozenset()
        rows = self._connection.execute(
            "select distinct agent_key from files where source_id = ? and agent_key is not null",
            (source_id,),
        )
        return frozenset(key for (key,) in rows) | _forgotten(
            self._connection, source_id, self._returned
        )


def agents_with_files(connection: sqlite3.Connection) -> set[tuple[int, str]]:
    """Return the subagents whose record is a file, stored or forgotten: source ids and keys."""
    rows = connection.execute(
        "select distinct source_id, agent_key from files where agent_key is not null"
    )
    stored = set(rows)
    sources = connection.execute("select id from sources").fetchall()
    return stored.union(
        (source_id, key) for (source_id,) in sources for key in _forgotten(connection, source_id)
    )


def _forgotten(
    connection: sqlite3.Connection, source_id: int, returned: Iterable[Exclusion] = ()
) -> frozenset[str]:
    row = connection.execute("select kind, root from sources where id = ?", (source_id,)).fetchone()
    if row is None or row[0] not in SOURCES:
        return frozenset()
    claims = (
        claim_at(SOURCES[row[0]], path)
        for root, path in load(connection, returned).places
        if root in (None, row[1])
    )
    return frozenset(claim.agent_key for claim in claims if claim and claim.agent_key)


def to_read_again(connection: sqlite3.Connection) -> list[int]:
    """Return the files that repeat lines of subagents which now have files of their own."""
    rows = connection.execute(
        "select distinct l.file_id from agent_lines l join files f on f.id = l.file_id"
        " join files o on o.source_id = f.source_id and o.agent_key = l.agent_key"
        " order by l.file_id"
    )
    return [file_id for (file_id,) in rows]


def repeating(connection: sqlite3.Connection, agents: Iterable[tuple[int, str]]) -> list[int]:
    """Return the files that may repeat lines of these subagents: source ids and keys."""
    found: set[int] = set()
    for agent in agents:
        rows = connection.execute(
            "select l.file_id from agent_links l join files f on f.id = l.file_id"
            " where f.source_id = ? and l.agent_key = ?",
            agent,
        )
        found.update(file_id for (file_id,) in rows)
    return sorted(found)


# ------------------------------------------------------------------------------------------------
# Logs that are transcripts only because a list of sessions names them.
#
# If the name of a log is unusual and no line says whose it is, a list of its project decides. The
# list may come later, change, or be pruned: the log is then derived again from its archive.


_IS_NAMED = (
    "exists (select 1 from files l join session_entries e on e.file_id = l.id"
    " where l.kind = 'session_index' and l.source_id = f.source_id"
    " and l.project_key = f.project_key and e.session_key = ?2"
    " and (e.gone_at is null or e.gone_at >= l.gone_at))"
)


def as_listed(connection: sqlite3.Connection, file_id: int, claim: Claim) -> Claim:
    """Return the claim of a stored log without its doubt, if a list of sessions names it."""
    if not claim.is_doubtful or claim.session_key is None:
        return claim
    (is_named,) = connection.execute(
        f"select {_IS_NAMED} from files f where f.id = ?1", (file_id, claim.session_key)
    ).fetchone()
    return replace(claim, is_doubtful=False) if is_named else claim


def doubtful_logs(connection: sqlite3.Connection) -> list[int]:
    """Return the logs that may have become transcripts, or none any more, with a list."""
    rows = connection.execute(
        "select f.id, s.kind, f.path, f.kind from files f join sources s on s.id = f.source_id"
        " where f.kind in (?1, 'transcript') and f.id in (select id from files where kind = ?1"
        "  union all select file_id from transcripts where stated_session_key is null)",
        (FOREIGN,),
    ).fetchall()
    found = []
    for file_id, source, path, kind in rows:
        claim = claim_at(SOURCES[source], path) if source in SOURCES else None
        if claim is not None and claim.is_doubtful:
            is_transcript = kind != FOREIGN
            if as_listed(connection, file_id, claim).is_doubtful == is_transcript:
                found.append(file_id)
    return found
