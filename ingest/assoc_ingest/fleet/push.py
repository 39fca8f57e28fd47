"""Makes the server's record of this machine equal to the local database.

1. Ask the server which version of this machine it has. If that is what this machine left, only what
   changed since then is looked at; if not, everything is, and what is equal is not sent.
2. Delete on the server what was forgotten here, before anything else.
3. Send the attributes of files, then the stretches of each file whose digests differ.
4. Send the keyed rows, and delete those that nothing names any more.

A call that finds another version than it expects applies nothing: another call was in between, or
this one is late. Everything is compared again then. All calls of a push carry its nonce, which is
saved before the first: after a lost answer or a kill, the nonce that the server has says whether
the last call was made here, or by a copy of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from time import monotonic
from typing import Any
from uuid import uuid4

from ..errors import FleetError
from .difference import stretches
from .gathered import Gathered, row_of
from .kept import Kept
from .projection import Cursor
from .report import Limits, Report
from .server import Answer, Known, Row, Server, as_json_bytes
from .sides import Local, Memory, Nobody
from .tables import FILES, KEYED, PLACED, Table

_FILES_AT_ONCE = 200
_ATTEMPTS = 5

_tables = {table.name: table for table in (*PLACED, *KEYED)}


class _Again(Exception):  # noqa: N818 -- no error: it says what to do
    """Another call was in between: compare again."""


def push(
    server: Server,
    local: Local,
    memory: Memory,
    save: Callable[[], None],
    *,
    is_full: bool = False,
    limits: Limits | None = None,
    tell: Callable[[Report], None] | None = None,
) -> Report:
    """Push what differs; return what was done.

    `save` writes what is remembered to the disk, and returns when it is there. `is_full`: compare
    all, whatever is remembered.
    """
    for attempt in range(_ATTEMPTS):
        report = Report()
        known = introduced(server, memory, save)
        if attempt == 0 and memory.nonces != [known.nonce]:
            known = _fenced(server, memory, known, save)
        since = None if is_full or not _is_in_step(known, memory) else memory.cursor
        if since is not None and not local.is_known(since):
            since = None
        report.is_full = since is None
        run = _Push(server, local, memory, known, save, since, limits or Limits(), report, tell)
        try:
            run.everything()
        except _Again:
            is_full = True
            continue
        return report
    raise FleetError(
        "Another push of this machine is running all the time; stop it, or wait for it."
    )


def push_again(
    server: Server,
    local: Local,
    known: Known,
    tell: Callable[[Report], None] | None = None,
) -> Report:
    """Push for another machine, with the nonce of `known`. Raises FleetError if it pushes, too."""
    report = Report(is_full=True)
    run = _Push(server, local, Nobody(), known, lambda: None, None, Limits(), report, tell)
    try:
        run.everything(known.nonce)
    except _Again:
        raise FleetError(
            "The machine itself pushed meanwhile: what it sent stays. Run this again if need be."
        ) from None
    return report


def introduced(server: Server, memory: Memory, save: Callable[[], None]) -> Known:
    """Return what the server knows of this machine, after telling it who this is if need be."""
    known = server.hello(memory.uuid)
    if known is None:
        server.register(memory.uuid, memory.label, memory.db_uuid, _new_nonce(memory, save))
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
            "Somebody else pushed as this machine: its database and its identity were copied. On "
            "the copy, run: assoc-ingest remote new-origin --label NAME. If this machine was "
            "restored from a backup, run: assoc-ingest remote adopt"
        )
    return known


def _fenced(server: Server, memory: Memory, known: Known, save: Callable[[], None]) -> Known:
    """Return what the server knows once no call of an earlier push can apply any more.

    A push that was killed may have a call under way. If this push found that nothing differs, the
    version would stay, and that call would apply behind it.
    """
    nonce = _new_nonce(memory, save)
    return known._replace(version=server.fence(known.origin_id, nonce), nonce=nonce)


def _is_ours(known: Known, memory: Memory) -> bool:
    """Return whether the last call of a machine was made here; later ones are administrators'."""
    return not {known.nonce, *known.reindexed_after}.isdisjoint(memory.nonces)


def _is_in_step(known: Known, memory: Memory) -> bool:
    """Return whether the server has what the last finished push left."""
    return (
        memory.cursor is not None
        and known.version == memory.version
        and memory.nonces == [known.nonce]
    )


def _new_nonce(memory: Memory, save: Callable[[], None]) -> str:
    nonce = str(uuid4())
    memory.nonces.append(nonce)
    save()
    return nonce


@dataclass
class _Push:
    """One attempt, with what is gathered for the next call."""

    server: Server
    local: Local
    memory: Memory
    known: Known
    save: Callable[[], None]
    since: Cursor | None
    limits: Limits
    report: Report
    tell: Callable[[Report], None] | None
    version: int = 0
    _nonce: str = ""
    _gathered: Gathered = field(default_factory=Gathered)
    _local_keys: set[bytes] = field(default_factory=set)

    @property
    def _change(self) -> int | None:
        return None if self.since is None else self.since.change

    def everything(self, nonce: str = "") -> None:
        """Push in the order of the module's description; without a nonce, with one of its own."""
        self.version, self._nonce = self.known.version, nonce
        cursor = self.local.cursor()
        if self.since is not None and self.since == cursor:
            self.report.version = self.version
            return
        self._forget(self.local.gone_file_keys(self._change))
        files = iter(self.local.files(self._change))
        while some := list(islice(files, _FILES_AT_ONCE)):
            self._push_files(some)
        self._push_keyed()
        self._flush()
        self._finish(cursor)

    def _finish(self, cursor: Any) -> None:
        # Nothing was written if nothing differed: the nonce is then the one of before.
        self.memory.cursor = cursor
        self.memory.version = self.report.version = self.version
        self.memory.nonces[:] = [self.known.nonce]
        self.save()

    def _forget(self, keys: Iterable[bytes]) -> None:
        keys = iter(keys)
        while some := list(islice(keys, 10_000)):
            before = self.version
            self._take(self.server.forget(*self._next(), some))
            self.report.deleted += len(some) if self.version > before else 0

    # -- files ---------------------------------------------------------------------------------

    def _push_files(self, some: list[Any]) -> None:
        contents = [self.local.content(file) for file in some]
        attributes = [row_of(FILES, content.attributes) for content in contents]
        answer, numbers = self.server.files(*self._next(), attributes)
        self._take(answer)
        frames = self.server.frames(self.known.origin_id, numbers)
        for number, content in zip(numbers, contents, strict=True):
            self._local_keys.add(content.file_key)
            self.report.files += 1
            for stretch in stretches(content.frames, frames[number]):
                self._gathered.add_stretch(number, stretch)
                self.report.frames += 1
                self._flush_if_full()

    # -- keyed rows ----------------------------------------------------------------------------

    def _push_keyed(self) -> None:
        for found in self.local.keyed(self._change):
            table = _tables[found.table]
            there: dict[tuple[str, ...], bytes] = {}
            if found.is_whole:
                there = self.server.keyed(self.known.origin_id, found.table)
            for values in found.rows:
                row = row_of(table, values)
                row["digest"] = sha256(as_json_bytes(values)).digest()
                if there.pop(_key(table, row), None) != row["digest"]:
                    self._gathered.add_row(found.table, row)
                    self._flush_if_full()
            if there:
                self._delete_keyed(table, there)

    def _delete_keyed(self, table: Table, keys: Iterable[tuple[str, ...]]) -> None:
        kept = self._kept()
        for key in keys:
            row = dict(zip(table.key, key, strict=True))
            if not kept.names(table.name, row):
                self._gathered.delete(table.name, row)
                self.report.deleted += 1

    def _kept(self) -> Kept:
        """Return the files that the server has beyond this push: it is the long memory."""
        if self.since is not None:
            self._local_keys = {file.file_key for file in self.local.files(None)}
        files = self.server.files_of(self.known.origin_id)
        return Kept([file for file in files if file.file_key not in self._local_keys])

    # -- calls ---------------------------------------------------------------------------------

    def _flush_if_full(self) -> None:
        found = self._gathered
        if found.size >= self.limits.size or found.count >= self.limits.rows:
            self._flush()

    def _flush(self) -> None:
        """Send what was gathered as one call."""
        sent, self._gathered = self._gathered, Gathered()
        if sent.is_empty():
            return
        started = monotonic()
        answer = self.server.push(
            *self._next(), sent.ranges, sent.frames, sent.rows_as_json(), sent.gone
        )
        self._take(answer)
        self.limits.after(monotonic() - started)
        self.report.rows += sum(map(len, sent.rows.values()))
        self.report.size += sent.size
        if self.tell is not None:
            self.tell(self.report)

    def _next(self) -> tuple[int, int, str]:
        """Return what every call that writes begins with."""
        if not self._nonce:
            self._nonce = _new_nonce(self.memory, self.save)
        return self.known.origin_id, self.version, self._nonce

    def _take(self, answer: Answer) -> None:
        """Go on from an answer, or begin again if the call came too late."""
        self.report.calls += 1
        if not answer.applied:
            raise _Again
        self.version = answer.version
        self.known = self.known._replace(version=answer.version, nonce=answer.nonce)


def _key(table: Table, row: Row) -> tuple[str, ...]:
    """Return a key as the server tells it: each value as text."""
    values = (row[name] for name in table.key)
    return tuple(rf"\x{v.hex()}" if isinstance(v, bytes) else str(v) for v in values)
