"""Removes the data of files that an agent deleted, at the user's request: `prune --gone`.

A sync never removes data because a file is gone. This removes the rows and the archive of files
that are gone, and the tasks, messages and list entries that vanished from existing documents. What
is left is what a sync of the remaining files into a new database would give.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from ..ask.times import ago, since
from ..fields import milliseconds
from ..sql import id_list
from ..store.batch import Batch
from ..store.database import Clock, later, open_reader, writing
from ..store.replay import agents_may_change
from ..store.rows import CONDITIONS

# ------------------------------------------------------------------------------------------------
# When files went missing, and whether that time is plausible: for `prune --gone --before`.
#
# What is removed cannot be recovered, so a clock that was wrong during one sync must not decide:
#
# - A time before the file was seen, read or written, or before the first sync, is not plausible.
#   Such files are kept and listed (`Kept`).
# - An age is counted from sync to sync. The time between two syncs counts for at most half of it,
#   so that one wrong clock, or one long pause, does not make anything old enough. A user who knows
#   better can give a date.


_SURE = """coalesce(
    gone_at > '2'
    and gone_at >= (select min(first_synced_at) from sources)
    and gone_at >= first_seen_at
    and gone_at >= last_synced_at
    and (mtime is null or julianday(gone_at) >= julianday(mtime) - 1), 0)"""
"""Is `gone_at` of a row of `files` plausible? A network disk may have a clock of its own."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What may be removed: files that went missing before `before`."""

    before: str
    asked: str
    """The requested limit, by the clock alone; `before` is never later."""
    since: str
    """The time of the first sync: no file can have been seen to go before."""


EVER = Limit("9999", "9999", "")
"""Everything that is gone, at any time."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that is kept although its date says that it has been gone for long enough."""

    path: str
    session_key: str | None
    gone_at: str
    is_date_possible: bool
    """Its date is plausible, but too few syncs show that the time has passed."""


def limit_of(connection: sqlite3.Connection, text: str | None) -> Limit:
    """Return the limit for `90d`, a date, or nothing. Raises UsageError."""
    if text is None:
        return EVER
    (first,) = connection.execute("select min(first_synced_at) from sources").fetchone()
    span = ago(text)
    if span is None:
        date = since(text)
        return Limit(date, date, first or "")
    present = Clock(connection).now()
    asked = later(present, -span)
    return Limit(min(asked, _shown(connection, present, span)), asked, first or "")


def _shown(connection: sqlite3.Connection, present: str, span: timedelta) -> str:
    """Return the time since which, according to the syncs, the span has passed; '' if none."""
    wanted = span // timedelta(milliseconds=1)
    passed, newer = 0, milliseconds(present)
    for moment in _moments(connection):
        older = milliseconds(moment)
        passed += min(max(newer - older, 0), wanted // 2)
        if passed >= wanted:
            return later(moment, timedelta(milliseconds=passed - wanted))
        newer = older
    return "" if wanted else present


def _moments(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the times at which runs ended and began, the newest run first."""
    for run in connection.execute("select finished_at, started_at from sync_runs order by id desc"):
        yield from filter(None, run)


def gone_files(connection: sqlite3.Connection, limit: Limit) -> list[int]:
    """Return the ids of the files that have surely been gone since before the limit, by path."""
    where = "gone_at is not null" if limit is EVER else f"gone_at < :before and {_SURE}"
    rows = connection.execute(
        f"select id from files where {where} order by path, generation", {"before": limit.before}
    )
    return [file_id for (file_id,) in rows]


def kept_files(connection: sqlite3.Connection, limit: Limit) -> list[Kept]:
    """Return the files that may not have been gone for long enough, although their date says so."""
    if limit is EVER:
        return []
    rows = connection.execute(
        f"select path, session_key, gone_at, {_SURE} from files"
        f" where gone_at < :asked and not (gone_at < :before and {_SURE})"
        " order by path, generation",
        {"asked": limit.asked, "before": limit.before},
    )
    return [Kept(path, key, gone_at, bool(is_sure)) for path, key, gone_at, is_sure in rows]


_GONE = "(gone_at >= :since and gone_at < :before)"


@dataclass(frozen=True, slots=True)
class LostSession:
    """A conversation that loses files."""

    session_key: str
    title: str | None
    files: int
    messages: int
    bytes: int
    is_whole: bool
    """It loses all of its files."""
    gone_at: str
    """When the last of these files went missing."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What is removed: sessions by key, and sums over all files, with or without a session."""

    sessions: list[LostSession]
    files: int
    messages: int
    bytes: int
    tasks: int
    inbox_items: int
    entries: int
    """Other entries of lists: conversations, members, todos and the like."""
    before: str | None
    """The limit: only data that went missing before this time is removed."""
    kept: list[Kept]
    """Files that are kept because it is not certain when they went missing."""
    kept_entries: int
    """The number of list entries that are kept for the same reason."""

    @property
    def is_nothing(self) -> bool:
        """Is there nothing to remove?"""
        return not (self.files or self.tasks or self.inbox_items or self.entries)


def prune_gone(database: Path, before: str | None, *, dry_run: bool) -> Removal:
    """Remove files and rows that are gone; with `before` (`90d` or a date), only those gone by
    then.

    With `dry_run` nothing is changed, and no lock is taken. Returns what was removed, or would be.
    Raises UsageError for an invalid time, DatabaseError if there is no assoc-ingest database,
    BusyError if another process writes, and sqlite3.Error; then nothing is removed.
    """
    reader = open_reader(database)  # raises if there is no database; `writing` would create one
    try:
        limit = limit_of(reader, before)
        if dry_run:
            return describe(reader, gone_files(reader, limit), limit)
    finally:
        reader.close()
    with writing(database) as connection:
        limit = limit_of(connection, before)
        ids = gone_files(connection, limit)
        removal = describe(connection, ids, limit)
        if not removal.is_nothing:
            _remove(connection, ids, limit)
        return removal


def describe(connection: sqlite3.Connection, file_ids: Iterable[int], limit: Limit) -> Removal:
    """Return what is removed with these files, and what else was gone before the limit."""
    ids = id_list(file_ids)
    rows = connection.execute(
        "select coalesce(s.session_key, f.session_key), max(s.title), count(*),"
        " sum((select count(*) from messages m where m.file_id = f.id)), sum(f.size),"
        " not exists (select 1 from files o where o.session_id = f.session_id"
        f"  and o.id not in ({ids})), max(f.gone_at)"
        f" from files f left join sessions s on s.id = f.session_id where f.id in ({ids})"
        " group by f.session_id, f.session_key order by max(s.ended_at), 1"
    ).fetchall()
    sessions = [
        LostSession(key, title, files, messages, size, bool(is_whole), gone_at)
        for key, title, files, messages, size, is_whole, gone_at in rows
        if key is not None
    ]

    def count(table: str, where: str) -> int:
        row = connection.execute(f"select count(*) from {table} where {where}", asdict(limit))
        return int(row.fetchone()[0])

    counts = {
        table: count(table, f"{_GONE} or (file_id in ({ids}) and {is_entry})")
        for table, is_entry in CONDITIONS.items()
    }
    return Removal(
        sessions,
        files=sum(row[2] for row in rows),
        messages=sum(row[3] for row in rows),
        bytes=sum(row[4] for row in rows),
        tasks=counts.pop("tasks"),
        inbox_items=counts.pop("inbox_items"),
        entries=sum(counts.values()),
        before=None if limit is EVER else limit.before,
        kept=kept_files(connection, limit),
        kept_entries=sum(count(table, f"gone_at < :asked and not {_GONE}") for table in CONDITIONS),
    )


def _remove(connection: sqlite3.Connection, file_ids: list[int], limit: Limit) -> None:
    with Batch(connection, Clock(connection).now()) as batch, agents_may_change(batch):
        batch.remove_entries(limit.since, limit.before)
        batch.remove(file_ids)
