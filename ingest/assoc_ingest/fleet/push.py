"""Push: makes the data of this machine on the server equal to the local database."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from .. import terminal
from ..errors import FleetError, NothingAllowedError, QuotaError, UsageError, as_known
from ..store.database import log_of, resolved
from ..terminal import table, table_width
from .projection import (
    BY_NAME,
    COUNTS_START,
    DIGEST_SIZE,
    FILES,
    PLACED,
    Cursor,
    Local,
    Table,
)
from .server import (
    Answer,
    Known,
    KnownFile,
    Row,
    SentStretch,
    Server,
    as_json_bytes,
    key_text,
)

# ------------------------------------------------------------------------------------------------
# What the server retains although the machine no longer has it.
#
# A file that was pruned here, or is no longer in scope, stays on the server, as do the keyed rows
# that it names: only `forget`, `remote prune` and `remote withdraw` delete there.


class Retained:
    """The keyed rows that files on the server name which are no longer here, or not in scope."""

    def __init__(self, files: list[KnownFile]) -> None:
        self._keys = {key_text(file.file_key) for file in files}
        self._sources = {str(file.source_no) for file in files}
        self._sessions = {(str(file.source_no), file.session_key) for file in files}
        self._projects = {(str(f.project_source_no), f.project_key) for f in files} | {
            (str(f.session_project_source_no), f.session_project_key) for f in files
        }
        self._teams = {(str(file.source_no), file.team_key) for file in files}

    def names(self, table: str, key: Row) -> bool:
        source = key.get("source_no")
        tests: dict[str, bool] = {
            "sources": source in self._sources,
            "projects": (source, key.get("key")) in self._projects,
            "agents": bool(self._keys) and source in self._sources,
            "sessions": (source, key.get("session_key")) in self._sessions,
            "subagents": (source, key.get("stated_session_key")) in self._sessions,
            "teams": (source, key.get("key")) in self._teams,
            "team_members": key.get("file_key") in self._keys,
            "tasks": self._has_list(key),
            "task_dependencies": self._has_list(key),
        }
        return tests.get(table, False)

    def _has_list(self, key: Row) -> bool:
        of_list = (key.get("source_no"), key.get("list_key"))
        return of_list in self._sessions or of_list in self._teams


# ------------------------------------------------------------------------------------------------
# The size of calls, and the report of a push.


_LONG_CALL = 1.0  # seconds
_SMALL_CALL = 500_000  # bytes


@dataclass
class Limits:
    """The most that a call may carry: bytes of frames and JSON, and rows."""

    size: int = 8_000_000
    rows: int = 5_000

    def after(self, seconds: float) -> None:
        """Halve the calls if one took too long, because others on the server wait for it."""
        if seconds > _LONG_CALL and self.size > _SMALL_CALL:
            self.size //= 2


@dataclass
class Report:
    """The result of a push."""

    is_full: bool = False
    """Was everything compared, not only what changed?"""
    files: int = 0
    """Files that were compared."""
    frames: int = 0
    rows: int = 0
    size: int = 0
    """Bytes of frames and rows that were sent."""
    deleted: int = 0
    """Keyed rows and files that were deleted."""
    calls: int = 0
    version: int = 0
    waiting: int = 0
    """Files that came back, and whose keys cannot change while another process writes."""


# ------------------------------------------------------------------------------------------------
# Both sides of a push here: the local database, and the state of the machine.


class LocalSide(Protocol):
    """One snapshot of what may leave the local database: `projection.Local`."""

    def cursor(self) -> Cursor | None:
        """Return the state of the database."""

    def is_known(self, seen: Cursor) -> bool:
        """Are all changes since then recorded?"""

    def files(self, since: int | None) -> Iterable[Any]:
        """Yield the files that changed since then; None: all."""

    def content(self, file: Any) -> Any:
        """Return the attributes of a file and its frames from the first change on."""

    def keyed(self, since: int | None) -> Iterable[Any]:
        """Yield the keyed sets that changed since then; None: all of them, whole."""

    def gone_file_keys(self, since: int | None) -> Iterable[bytes]:
        """Yield the keys of files that were forgotten since then; None: all."""


class Memory(Protocol):
    """The state of a machine besides its database: `state.State`."""

    uuid: str
    label: str
    db_uuid: str
    version: int
    nonces: list[str]
    """Nonces that the server may have: of the last complete push, and of those since."""
    cursor: Cursor | None

    def save(self) -> None:
        """Write it to the disk; it is there when this returns."""


@dataclass
class Nobody:
    """The memory of a push for another machine: nothing outlives the push."""

    uuid: str = ""
    label: str = ""
    db_uuid: str = ""
    version: int = 0
    nonces: list[str] = field(default_factory=list)
    cursor: Cursor | None = None

    def save(self) -> None:
        """Nothing is saved."""


# ------------------------------------------------------------------------------------------------
# Which stretches of a file must be sent so that the server has the same frames.
#
# Both sides have a list of frames with two digests each: of the bytes, and of the rows that begin
# in the stretch. A stretch ends where the next frame begins; the last one has no end, because rows
# behind the archived bytes travel with it. A stretch is sent if a digest differs, or if the server
# has a frame that begins inside it. Anything else stays.


class Stretch(NamedTuple):
    """A stretch to replace on the server; `end` None: everything from `start` on."""

    start: int
    end: int | None
    frame: Any
    """Its new content: a frame of the projection."""
    has_bytes: bool
    """Does the server have these bytes? Then only rows differ."""
    rows_start: int
    """The first place at which rows differ."""


def stretches(frames: Iterable[Any], there: dict[int, tuple[bytes, bytes]]) -> Iterator[Stretch]:
    """Yield the stretches to replace; `there` has the digests on the server by start."""
    starts = sorted(there)
    for frame in frames:
        digest, rows_digest = there.get(frame.start, (b"", b""))
        is_same = digest == frame.digest and rows_digest == frame.rows_digest
        if not is_same or _lie_between(starts, frame.start, frame.end):
            rows_start = _first_difference(frame, rows_digest)
            yield Stretch(frame.start, frame.end, frame, digest == frame.digest, rows_start)


def _first_difference(frame: Any, rows_digest: bytes) -> int:
    """Return where the first piece of rows begins that the server has not, or where all end."""
    for number, place in enumerate(frame.row_starts):
        piece = slice(number * DIGEST_SIZE, (number + 1) * DIGEST_SIZE)
        if frame.rows_digest[piece] != rows_digest[piece]:
            return int(place)
    return int(frame.row_starts[-1])


def _lie_between(starts: list[int], start: int, end: int | None) -> bool:
    place = bisect_right(starts, start)
    return place < len(starts) and (end is None or starts[place] < end)


# ------------------------------------------------------------------------------------------------
# The payload of the next call, already as JSON, so that its size is known.


_BITS = {table.name: 1 << number for number, table in enumerate(PLACED)}


@dataclass
class Payload:
    """Files, stretches of them, and keyed rows. `size` is in bytes of frames and JSON."""

    files: list[bytes] = field(default_factory=list)
    stretches: list[SentStretch] = field(default_factory=list)
    rows: dict[str, list[bytes]] = field(default_factory=dict)
    gone: dict[str, list[Row]] = field(default_factory=dict)
    count: int = 0
    size: int = 0

    def add_file(self, attributes: Row) -> None:
        data = as_json_bytes(attributes)
        self.files.append(data)
        self.count += 1
        self.size += len(data)

    def add_stretch(self, file_no: int, stretch: Stretch) -> None:
        frame, place = stretch.frame, stretch.rows_start
        for name, rows in frame.rows.items():
            for values in rows:
                if values[0] >= place:
                    self.add_row(name, row_of(BY_NAME[name], values, file_no=file_no))
        data = None if stretch.has_bytes else frame.data
        self.size += len(data or b"")
        tables = sum(_BITS[name] for name in frame.rows)
        self.stretches.append(
            SentStretch(
                *(file_no, stretch.start, place, stretch.end, tables),
                *(data, frame.digest, frame.rows_digest),
            )
        )

    def add_row(self, table: str, row: Row) -> None:
        data = as_json_bytes(row)
        self.rows.setdefault(table, []).append(data)
        self.count += 1
        self.size += len(data)

    def delete(self, table: str, key: Row) -> None:
        self.gone.setdefault(table, []).append(key)
        self.count += 1

    def is_empty(self) -> bool:
        """Would a call do nothing?"""
        return not (self.files or self.stretches or self.rows or self.gone)

    def files_as_json(self) -> bytes:
        return b"[%s]" % b",".join(self.files)

    def rows_as_json(self) -> dict[str, bytes]:
        return {name: b"[%s]" % b",".join(some) for name, some in self.rows.items()}


def row_of(table: Table, values: Iterable[object], **more: object) -> Row:
    """Return a row by column, without nulls: the server fills in null for a missing column."""
    named = zip(table.names, values, strict=True)
    return more | {name: value for name, value in named if value is not None}


# ------------------------------------------------------------------------------------------------
# The preview of a push, for `push --dry-run` and before a first push.
#
# It counts what would be compared with the server: everything, or what changed since the last push.
# It contains no text of a conversation. Nothing is sent, and the server is not asked.


@dataclass(slots=True)
class ProjectPart:
    """The part of one project."""

    path: str | None
    """None: files without a project, or whose project has no known directory."""
    files: int = 0
    messages: int = 0
    bytes: int = 0
    """Compressed, as they are sent."""


@dataclass(slots=True)
class Preview:
    """What a push would compare with the server, and send where it differs."""

    destination: str
    label: str
    is_everything: bool
    """May all projects leave this machine, and data that several share?"""
    is_full: bool
    """Would everything be compared, not only what changed since the last push?"""
    projects: list[ProjectPart] = field(default_factory=list)
    keyed_rows: int = 0
    """Rows about sessions, tasks and the like."""
    forgotten_files: int = 0
    masks: dict[str, int] | None = None
    """The number of masked credentials by kind; None: masking is off."""

    def as_json(self) -> dict[str, Any]:
        sums = {
            name: sum(getattr(part, name) for part in self.projects)
            for name in ("files", "messages", "bytes")
        }
        return {**asdict(self), **sums}


def preview(local: Local, since: int | None, destination: str, label: str) -> Preview:
    """Return what a push would compare. The caller holds a snapshot."""
    found = Preview(destination, label, local.scope.projects is None, since is None)
    parts: dict[str | None, ProjectPart] = {}
    for file in local.files(since):
        content = local.content(file)
        path = _project_path(local.connection, file.id)
        part = parts.setdefault(path, ProjectPart(path))
        part.files += 1
        for frame in content.frames:
            part.bytes += len(frame.data or b"")
            if frame.start != COUNTS_START:
                part.messages += len(frame.rows.get("messages", ()))
    found.projects = sorted(parts.values(), key=lambda part: (-part.bytes, part.path or ""))
    found.keyed_rows = sum(len(keyed.rows) for keyed in local.keyed(since))
    found.forgotten_files = len(local.gone_file_keys(since))
    if local.masks.is_on:
        found.masks = dict(sorted(local.masks.counts.items()))
    return found


def _project_path(connection: sqlite3.Connection, file_id: int) -> str | None:
    row = connection.execute(
        "select p.path from files f left join sessions s on s.id = f.session_id"
        " left join projects p on p.id = iif(f.session_id is null, f.project_id, s.project_id)"
        " where f.id = ?",
        (file_id,),
    ).fetchone()
    return None if row is None else row[0]


def report(found: Preview) -> Iterator[str]:
    yield f"To {found.destination}, as {found.label}"
    if not found.projects and not found.forgotten_files:
        yield _NOTHING_ALLOWED if found.is_full else "Nothing has changed since the last push."
        return
    rows = [
        [
            part.path or "(no project)",
            f"{part.files:,}",
            f"{part.messages:,}",
            terminal.size(part.bytes),
        ]
        for part in found.projects
    ]
    yield from table(("Project", "Files", "Messages", "Size"), rows, table_width())
    yield f"{terminal.many(found.keyed_rows, 'row')} about sessions, tasks and the like"
    if found.forgotten_files:
        yield f"{terminal.many(found.forgotten_files, 'forgotten file')} would be deleted there"
    if found.masks is None:
        yield "Credentials are NOT masked."
        return
    counts = ", ".join(f"{kind} ({count:,})" for kind, count in found.masks.items()) or "none found"
    yield f"Masked credentials: {counts}. No pattern finds all of them."


_NOTHING_ALLOWED = (
    "Nothing may leave this machine yet. Allow a project: assoc-ingest remote allow DIRECTORY"
)


# ------------------------------------------------------------------------------------------------
# The steps of a push.
#
# 1. Ask the server for its version of this machine. If that is the one of the last push, only later
#    changes are compared; otherwise everything is. Equal data is never sent.
# 2. Delete on the server what was forgotten here, before anything else.
# 3. Send the attributes of files, and the stretches of each file whose digests differ. A new file
#    first gets its number.
# 4. Send the keyed rows, and delete those that no file names any more.
#
# A call that finds an unexpected version applies nothing: another call came first, or this one is
# late. Then everything is compared again. All calls of a push carry its nonce, which is saved
# before the first: after a lost answer or a kill, the nonce on the server tells whether the last
# call came from here or from a copy of this machine.


_FILES_AT_ONCE = 200
_ATTEMPTS = 5


class _Again(Exception):  # noqa: N818 -- not an error: it says what to do
    """Another call came first, or a file is back: compare everything again."""


def push(
    server: Server,
    local: LocalSide,
    memory: Memory,
    *,
    is_full: bool = False,
    limits: Limits | None = None,
    tell: Callable[[Report], None] | None = None,
) -> Report:
    """Push the differences. `is_full`: compare everything, not only what changed."""
    for attempt in range(_ATTEMPTS):
        report = Report()
        known = introduced(server, memory)
        if attempt == 0 and memory.nonces != [known.nonce]:
            known = _fenced(server, memory, known)
        since = None if is_full or not _is_in_step(known, memory) else memory.cursor
        if since is not None and not local.is_known(since):
            since = None
        report.is_full = since is None
        run = _Push(server, local, memory, known, since, limits or Limits(), report, tell)
        try:
            run.everything()
        except _Again:
            is_full = True
            continue
        return report
    raise FleetError("Another push of this machine keeps running. Stop it, or wait for it.")


def push_again(
    server: Server,
    local: LocalSide,
    known: Known,
    tell: Callable[[Report], None] | None = None,
) -> Report:
    """Push for another machine, with the nonce of `known`. Raises FleetError if that one pushes."""
    report = Report(is_full=True)
    run = _Push(server, local, Nobody(), known, None, Limits(), report, tell)
    try:
        run.everything(known.nonce)
    except _Again:
        raise FleetError(
            "The machine itself pushed meanwhile; its data stays. Run this again if necessary."
        ) from None
    return report


def introduced(server: Server, memory: Memory) -> Known:
    """Return what the server knows about this machine; register the machine if it is new."""
    known = server.hello(memory.uuid)
    if known is None:
        server.register(memory.uuid, memory.label, memory.db_uuid, _new_nonce(memory))
        known = server.hello(memory.uuid)
        memory.version, memory.cursor = 0, None
    if known is None:
        raise FleetError("The server does not know this machine after it was introduced.")
    if known.db_uuid != memory.db_uuid:
        raise FleetError(
            "The server has this machine with another local database. If that one is lost, "
            "continue with this one: assoc-ingest remote adopt"
        )
    if known.version >= memory.version and not _is_ours(known, memory):
        raise FleetError(
            "Another machine pushed with this machine's identity: its database was copied. On the "
            "copy, run: assoc-ingest remote new-origin --label NAME. If this machine was restored "
            "from a backup, run: assoc-ingest remote adopt"
        )
    return known


def _fenced(server: Server, memory: Memory, known: Known) -> Known:
    """Raise the version, so that no call of an earlier push can apply any more.

    A killed push may have a call under way. If this push found no difference, the version would
    stay, and that call would apply afterwards.
    """
    nonce = _new_nonce(memory)
    return known._replace(version=server.fence(known.origin_id, nonce), nonce=nonce)


def _is_ours(known: Known, memory: Memory) -> bool:
    """Was the last call of the machine made here? Calls of administrators do not count."""
    return not {known.nonce, *known.reindexed_after}.isdisjoint(memory.nonces)


def _is_in_step(known: Known, memory: Memory) -> bool:
    """Is the server as the last complete push left it?"""
    return (
        memory.cursor is not None
        and known.version == memory.version
        and memory.nonces == [known.nonce]
    )


def _new_nonce(memory: Memory) -> str:
    nonce = str(uuid4())
    memory.nonces.append(nonce)
    memory.save()
    return nonce


@dataclass
class _Push:
    """One attempt, with the payload of the next call."""

    server: Server
    local: LocalSide
    memory: Memory
    known: Known
    since: Cursor | None
    limits: Limits
    report: Report
    tell: Callable[[Report], None] | None
    version: int = 0
    _nonce: str = ""
    _payload: Payload = field(default_factory=Payload)
    _local_keys: set[bytes] = field(default_factory=set)
    _incomplete: set[bytes] = field(default_factory=set)
    """New files on the server whose stretches were not all sent."""
    _gathered: set[bytes] = field(default_factory=set)
    """Those of them whose last stretches are in the payload."""

    @property
    def _change(self) -> int | None:
        return None if self.since is None else self.since.change

    def everything(self, nonce: str = "") -> None:
        """Take the steps above; without a nonce, with a new one."""
        self.version, self._nonce = self.known.version, nonce
        cursor = self.local.cursor()
        if self.since is not None and self.since == cursor:
            self.report.version = self.version
            return
        self._forget(self.local.gone_file_keys(self._change))
        files = iter(self.local.files(self._change))
        try:
            while some := list(islice(files, _FILES_AT_ONCE)):
                self._push_files(some)
            self._push_keyed()
            self._flush()
        except QuotaError:  # nothing of a file that does not fit stays, and deletions take no space
            self._payload = Payload()
            self._forget(sorted(self._incomplete))
            self._push_keyed(only_deletes=True)
            self._flush()
            raise
        self._finish(cursor)

    def _finish(self, cursor: Any) -> None:
        # If nothing differed, nothing was written, and the server has the nonce from before.
        self.memory.cursor = cursor
        self.memory.version = self.report.version = self.version
        self.memory.nonces[:] = [self.known.nonce]
        self.memory.save()

    def _forget(self, keys: Iterable[bytes]) -> None:
        keys = iter(keys)
        while some := list(islice(keys, 10_000)):
            before = self.version
            self._take(self.server.forget(*self._next(), some))
            self.report.deleted += len(some) if self.version > before else 0

    # -- files ---------------------------------------------------------------------------------

    def _push_files(self, some: list[Any]) -> None:
        contents = [self.local.content(file) for file in some]
        there = self.server.frames(self.known.origin_id, [content.file_key for content in contents])
        new = [content for content in contents if content.file_key not in there]
        if not all(content.is_whole for content in new):  # it was too old to be kept, and grew
            raise _Again
        numbers = self._push_new_files(new) if new else {}
        for content in contents:
            self._local_keys.add(content.file_key)
            self.report.files += 1
            if content.file_key in there:
                self._payload.add_file(row_of(FILES, content.attributes))
                number, frames = there[content.file_key]
            else:
                number, frames = numbers[content.file_key], {}
            for stretch in stretches(content.frames, frames):
                self._payload.add_stretch(number, stretch)
                self.report.frames += 1
                self._flush_if_full()
            self._gathered.add(content.file_key)

    def _push_new_files(self, contents: list[Any]) -> dict[bytes, int]:
        attributes = [row_of(FILES, content.attributes) for content in contents]
        answer, numbers = self.server.files(*self._next(), attributes)
        self._take(answer)
        self._incomplete.update(content.file_key for content in contents)
        return {c.file_key: number for c, number in zip(contents, numbers, strict=True)}

    # -- keyed rows ----------------------------------------------------------------------------

    def _push_keyed(self, *, only_deletes: bool = False) -> None:
        for found in self.local.keyed(self._change):
            table = BY_NAME[found.table]
            there: dict[tuple[str, ...], bytes] = {}
            if found.is_whole:
                there = self.server.keyed(self.known.origin_id, found.table)
            for values in found.rows:
                row = row_of(table, values)
                row["digest"] = sha256(as_json_bytes(values)).digest()
                is_same = there.pop(_key(table, row), None) == row["digest"]
                if not (is_same or only_deletes):
                    self._payload.add_row(found.table, row)
                    self._flush_if_full()
            if there:
                self._delete_keyed(table, there)

    def _delete_keyed(self, table: Table, keys: Iterable[tuple[str, ...]]) -> None:
        retained = self._retained()
        for key in keys:
            row = dict(zip(table.key, key, strict=True))
            if not retained.names(table.name, row):
                self._payload.delete(table.name, row)
                self.report.deleted += 1

    def _retained(self) -> Retained:
        """Return what the files name that only the server still has."""
        if self.since is not None:
            self._local_keys = {file.file_key for file in self.local.files(None)}
        files = self.server.files_of(self.known.origin_id)
        return Retained([file for file in files if file.file_key not in self._local_keys])

    # -- calls ---------------------------------------------------------------------------------

    def _flush_if_full(self) -> None:
        found = self._payload
        if found.size >= self.limits.size or found.count >= self.limits.rows:
            self._flush()

    def _flush(self) -> None:
        """Send the payload as one call."""
        payload, self._payload = self._payload, Payload()
        if payload.is_empty():
            return
        started = monotonic()
        answer = self.server.push(
            *(*self._next(), payload.files_as_json(), payload.stretches),
            *(payload.rows_as_json(), payload.gone),
        )
        self._take(answer)
        self._incomplete -= self._gathered
        self._gathered.clear()
        self.limits.after(monotonic() - started)
        self.report.rows += sum(map(len, payload.rows.values()))
        self.report.size += payload.size
        if self.tell is not None:
            self.tell(self.report)

    def _next(self) -> tuple[int, int, str]:
        """Return the first parameters of every call that writes."""
        if not self._nonce:
            self._nonce = _new_nonce(self.memory)
        return self.known.origin_id, self.version, self._nonce

    def _take(self, answer: Answer) -> None:
        """Continue from an answer; raise _Again if the call applied nothing."""
        self.report.calls += 1
        if not answer.applied:
            raise _Again
        self.version = answer.version
        self.known = self.known._replace(version=answer.version, nonce=answer.nonce)


def _key(table: Table, row: Row) -> tuple[str, ...]:
    return tuple(key_text(row[name]) for name in table.key)


# ------------------------------------------------------------------------------------------------
# Pushes after every sync, until stopped.
#
# A change shows in the size or time of the database file or its log. They are checked every two
# seconds, so that many small batches become one push. After an error, the push is repeated after a
# second, then after twice as long each time, up to five minutes: a laptop may be offline for days,
# and a full disk or a busy database is temporary. Until a project is allowed, it waits in the same
# way. If the fleet is not set up, watch ends at once.


_PAUSE = 2.0
"""Seconds between two checks."""
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 300.0

_Seen = tuple[object, ...]


def watch(
    database: Path,
    stop: Event,
    push: Callable[[], Report],
    tell: Callable[[Report], None],
    complain: Callable[[str], None],
    *,
    pause: float = _PAUSE,
    first_retry: float = _FIRST_RETRY,
) -> None:
    """Push, then push again after each change. `complain` prints the sentence of each new error."""
    database = resolved(database)
    pushed: _Seen | None = None
    retry, last_error = first_retry, ""
    while not stop.is_set():
        seen = _seen(database)
        if seen == pushed:
            stop.wait(pause)
            continue
        try:
            report = push()
        except Exception as error:
            known = as_known(error)
            is_allowed = not isinstance(known, NothingAllowedError)
            if known is None or (pushed is None and is_allowed and isinstance(known, UsageError)):
                raise
            if str(known) != last_error:
                complain(f"{known} Trying again.")
            last_error = str(known)
            stop.wait(retry)
            retry = min(2 * retry, _LONGEST_RETRY)
            continue
        if report.calls or last_error or pushed is None:
            tell(report)
        pushed, retry, last_error = seen, first_retry, ""
        stop.wait(pause)


def _seen(database: Path) -> _Seen:
    """Return sizes and times that differ after every commit."""
    found: list[object] = []
    for path in (database, log_of(database)):
        try:
            status = path.stat()
        except OSError:
            found.append(None)
        else:
            found += [status.st_size, status.st_mtime_ns]
    return tuple(found)
