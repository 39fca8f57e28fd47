"""A clock that is wrong for a while costs nothing: no time goes back, nothing is pruned by it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    dumps,
    user,
    write,
    write_bytes,
)

from assoc_ingest.fields import utc
from assoc_ingest.sync.run import sync
from assoc_ingest.sync.watch import WatchError, WatchOptions, watch
from assoc_ingest.testing.dump import connect, rows
from assoc_ingest.upkeep.prune import prune_gone
from assoc_ingest.upkeep.rebuild import rebuild

TODAY = datetime(2026, 3, 1, 10, tzinfo=UTC)
WRONG = [datetime(1970, 1, 1, tzinfo=UTC), datetime(2021, 5, 5, tzinfo=UTC)]
AHEAD = [datetime(2027, 6, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)]
BEYOND = datetime(2150, 1, 1, tzinfo=UTC)

TASK = "tasks/garden/1.json"
INBOX = "teams/garden/inboxes/ada.json"


@contextmanager
def clock(moment: datetime) -> Iterator[None]:
    """Let the machine's clock say a time."""
    with patch("assoc_ingest.fields.time", SimpleNamespace(time_ns=lambda: _nanoseconds(moment))):
        yield


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000) * 1_000_000


def day(number: float) -> datetime:
    return TODAY + timedelta(days=number)


def written(home: Path, moment: datetime) -> None:
    """Let all files have been written at a time."""
    for path in home.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(_nanoseconds(moment),) * 2)


@pytest.fixture
def home(place: Path) -> Path:
    home = place / "home"
    write(home, TRANSCRIPT, user("Rake the beds"))
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "u2", sessionId=OTHER))
    write_bytes(home, TASK, dumps({"id": "1", "subject": "dig", "status": "pending"}))
    write_bytes(home, INBOX, dumps([message("vanishes"), message("stays")]))
    written(home, day(-200))
    return home


def message(text: str) -> dict[str, str]:
    return {"from": "bo", "text": text, "timestamp": "2026-01-20T10:00:00.000Z"}


def lose(home: Path) -> None:
    """Delete what may be pruned later."""
    (home / TRANSCRIPT).unlink()
    (home / TASK).unlink()
    write_bytes(home, INBOX, dumps([message("stays")]))
    written(home, day(-199))


def synced_daily(database: Path, home: Path, *days: float) -> None:
    for number in days:
        with clock(day(number)):
            sync(database, [home])


def times(database: Path) -> dict[str, list[str]]:
    """Return all times of syncs that are stored, by table and column."""
    connection = connect(database)
    columns = connection.execute(
        "select m.name, p.name from sqlite_master m, pragma_table_info(m.name) p"
        " where m.type = 'table' and p.name in ('first_synced_at', 'last_synced_at', 'gone_at',"
        " 'first_seen_at', 'seen_at', 'finished_at', 'forgotten_at')"
        " or (m.name = 'sync_runs' and p.name = 'started_at')"
    ).fetchall()
    found = {
        f"{table}.{column}": [
            value
            for (value,) in connection.execute(
                f"select {column} from {table} where {column} is not null order by rowid"
            )
        ]
        for table, column in columns
    }
    connection.close()
    return found


def gone(database: Path) -> dict[str, str]:
    query = (
        "select path, gone_at from files where gone_at is not null"
        " union select 'task', gone_at from tasks where gone_at is not null"
        " union select 'message', gone_at from inbox_items where gone_at is not null"
    )
    return dict(rows(database, query))


# -- what is recorded ----------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [*WRONG, *AHEAD, BEYOND], ids=lambda moment: str(moment.year))
def test_no_time_is_empty_or_before_one_that_was_recorded(
    moment: datetime, home: Path, fresh: Callable[[], Path]
) -> None:
    database = fresh()
    synced_daily(database, home, 0)
    before = max(max(values, default="") for values in times(database).values())
    write_bytes(home, TASK, dumps({"id": "1", "subject": "dig", "status": "completed"}))
    with clock(moment):
        sync(database, [home])
    lose(home)
    with clock(moment):
        report = sync(database, [home])
        rebuild(database)
    assert (report.clock_behind == before) == (moment in WRONG)
    assert set(gone(database)) == {TRANSCRIPT, TASK, "task", "message"}
    assert min(gone(database).values()) >= before
    stored = times(database)
    assert len(stored["task_changes.seen_at"]) == 1
    assert stored["task_changes.seen_at"][0] >= before
    assert all(utc(value) == value for values in stored.values() for value in values)
    for column in ("sync_runs.started_at", "sync_runs.finished_at"):
        assert stored[column] == sorted(stored[column])
    runs = zip(stored["sync_runs.started_at"], stored["sync_runs.finished_at"], strict=True)
    assert all(started <= finished for started, finished in runs)


def test_a_clock_that_goes_back_during_a_run_does_not_move_its_end_before_its_beginning(
    home: Path, fresh: Callable[[], Path]
) -> None:
    database, ticks = fresh(), iter(range(1000))
    past = SimpleNamespace(time_ns=lambda: _nanoseconds(TODAY) - next(ticks) * 3_600_000_000_000)
    with patch("assoc_ingest.fields.time", past):
        sync(database, [home])
    assert next(ticks) > 2
    (started,) = times(database)["sync_runs.started_at"]
    assert times(database)["sync_runs.finished_at"] == [started]


def test_one_sync_that_was_far_ahead_does_not_stop_the_time_of_those_that_follow(
    home: Path, fresh: Callable[[], Path]
) -> None:
    """Nothing that was ever written bears its time out."""
    database = fresh()
    synced_daily(database, home, 0)
    with clock(AHEAD[-1]):
        sync(database, [home])
    lose(home)
    synced_daily(database, home, 2)
    assert {moment[:10] for moment in gone(database).values()} == {"2026-03-03"}
    assert times(database)["sync_runs.started_at"][-1].startswith("2026-03-03")


@pytest.mark.parametrize("is_written_then", [False, True])
def test_a_clock_that_is_far_behind_is_told_from_one_that_was_ahead(
    is_written_then: bool, home: Path, fresh: Callable[[], Path]
) -> None:
    """By what was written meanwhile: the same times, once with a file of the later year."""
    database = fresh()
    with clock(day(-700)):
        written(home, day(-701))
        sync(database, [home])
    if is_written_then:
        written(home, day(-1))
    synced_daily(database, home, 0)
    lose(home)
    written(home, day(-1 if is_written_then else -701))
    with clock(day(-699)):
        assert (sync(database, [home]).clock_behind is not None) == is_written_then
    year = "2026" if is_written_then else "2024"
    assert {moment[:4] for moment in gone(database).values()} == {year}


def test_it_is_told_by_a_sync_and_by_status(home: Path, shell: Shell) -> None:
    with clock(TODAY):
        assert shell("sync", str(home)) == 0
        assert "clock" not in shell.err
        assert shell("status") == 0
        assert "clock" not in shell.out
    with clock(WRONG[1]):
        assert shell("sync") == 0
        assert shell.err.startswith(
            "The system clock is behind the time of the last sync (2026-03-01 10:00 UTC)."
        )
        assert shell("status") == 0
        assert "The system clock is behind the time of the last sync" in shell.out
        told = shell.json("status", "--json")
    assert isinstance(told, dict)
    assert told["clock_behind"] == "2026-03-01T10:00:00.000Z"
    with clock(AHEAD[-1]):
        assert shell("sync") == 0
    with clock(day(1)):
        assert shell("status") == 0
    assert "A sync was recorded at 2099-01-01 00:00 UTC: the clock was ahead." in shell.out


def test_it_is_told_from_a_minute_on(home: Path, fresh: Callable[[], Path]) -> None:
    database = fresh()
    synced_daily(database, home, 0)
    for seconds, is_told in [(60, False), (61, True), (3600, True)]:
        with clock(TODAY - timedelta(seconds=seconds)):
            assert (sync(database, [home]).clock_behind is not None) == is_told, seconds


def test_a_watch_tells_it_once(home: Path, fresh: Callable[[], Path]) -> None:
    database, told = fresh(), []
    synced_daily(database, home, 0)
    moment = TODAY

    class Ticks(Event):
        count = 0

        def wait(self, timeout: float | None = None) -> bool:
            nonlocal moment
            moment = WRONG[1]
            self.count += 1
            if self.count > 20:
                self.set()
            return self.is_set()

    def deaf(*_: object) -> Any:
        raise WatchError("nothing is told")

    with patch("assoc_ingest.store.database.now", lambda: utc(moment.isoformat())):
        watch(database, [home], WatchOptions(rescan=0), Ticks(), told.append, opened=deaf)
    notices = [news for news in told if isinstance(news, str)]
    assert len([news for news in notices if "system clock is behind" in news]) == 1, told


# -- what is pruned ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("moment", WRONG, ids=lambda moment: str(moment.year))
def test_what_vanished_while_the_clock_was_behind_is_not_old(
    moment: datetime, home: Path, fresh: Callable[[], Path]
) -> None:
    database = fresh()
    synced_daily(database, home, -120, -60, -1)
    lose(home)
    with clock(moment):
        sync(database, [home])
    synced_daily(database, home, 0)
    with clock(TODAY):
        assert prune_gone(database, "90d", dry_run=False).is_nothing
        assert prune_gone(database, "1w", dry_run=False).is_nothing
    synced_daily(database, home, *range(1, 100, 9))
    with clock(day(99)):
        removal = prune_gone(database, "90d", dry_run=False)
    assert (removal.files, removal.tasks, removal.inbox_items) == (2, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("moment", AHEAD, ids=lambda moment: str(moment.year))
@pytest.mark.parametrize("is_synced", [False, True])
def test_a_clock_that_is_ahead_makes_nothing_old(
    is_synced: bool, moment: datetime, home: Path, shell: Shell
) -> None:
    """Neither that of the sync nor that of the command."""
    synced_daily(shell.database, home, -60, -20, -1)
    lose(home)
    synced_daily(shell.database, home, 0)
    with clock(moment):
        if is_synced:
            assert shell("sync", str(home)) == 0
        told = shell.json("prune", "--gone", "--before", "90d", "--json")
        assert isinstance(told, dict)
        assert told["files"] == told["tasks"] == told["inbox_items"] == 0
        assert {kept["path"] for kept in told["kept"]} == {TRANSCRIPT, TASK}
        assert told["kept_entries"] == 2
        assert shell("prune", "--gone", "--before", "90d") == 0
    assert (
        f"Kept: {TRANSCRIPT} is gone since 2026-03-01 10:00, not confirmed by any sync."
        in shell.err
    )
    assert "To remove it: --before DATE" in shell.err
    with clock(moment):
        assert shell("prune", "--gone", "--before", "2026-03-02") == 0
    assert "Removed 2 files" in shell.err


@pytest.mark.slow
@pytest.mark.parametrize("stored", ["", "1970-01-01T00:00:00.000Z", "2021-05-05T00:00:00.000Z"])
def test_a_date_that_an_older_version_stored_wrongly_is_kept_and_named(
    stored: str, home: Path, shell: Shell
) -> None:
    synced_daily(shell.database, home, *range(-100, -1, 9))
    lose(home)
    synced_daily(shell.database, home, -1)
    connection = connect(shell.database)
    for table in ("files", "tasks", "inbox_items"):
        connection.execute(f"update {table} set gone_at = ? where gone_at is not null", (stored,))
    connection.close()
    with clock(TODAY):
        assert shell("prune", "--gone", "--before", "60d") == 0
        assert "No data is known to be gone since before 2025-12-31 10:00" in shell.err
        date = f"since {stored[:10]} 00:00" if stored else "without a date"
        assert f"Kept: {TRANSCRIPT} is gone {date}, which cannot be right." in shell.err
        assert "Kept: 2 tasks and messages." in shell.err
        assert "--gone without --before" in shell.err
        assert shell("prune", "--gone") == 0
    assert "Removed 2 files" in shell.err
    assert gone(shell.database) == {}


@pytest.mark.slow
def test_a_date_before_the_last_reading_of_a_file_is_wrong(home: Path, shell: Shell) -> None:
    synced_daily(shell.database, home, *range(-100, -55, 9))
    write(home, TRANSCRIPT, user("Rake the beds"), user("Again", "u3"))
    written(home, day(-200))
    synced_daily(shell.database, home, *range(-55, -1, 9))
    lose(home)
    synced_daily(shell.database, home, -1)
    connection = connect(shell.database)
    connection.execute(
        "update files set gone_at = ? where gone_at is not null", (utc(day(-80).isoformat()),)
    )
    connection.close()
    with clock(TODAY):
        told = shell.json("prune", "--gone", "--before", "60d", "--json")
    assert isinstance(told, dict)
    assert (told["files"], [kept["path"] for kept in told["kept"]]) == (1, [TRANSCRIPT])


@pytest.mark.slow
def test_two_syncs_of_a_clock_that_was_always_behind_make_nothing_old(
    home: Path, fresh: Callable[[], Path]
) -> None:
    """Nothing in the database is of another year, but the files are."""
    database = fresh()
    written(home, day(-1))
    with clock(WRONG[1]):
        sync(database, [home])
    (home / TRANSCRIPT).unlink()
    with clock(WRONG[1] + timedelta(hours=1)):
        sync(database, [home])
    synced_daily(database, home, *range(0, 200, 10))
    with clock(day(191)):
        removal = prune_gone(database, "90d", dry_run=False)
    assert removal.is_nothing
    assert [kept.path for kept in removal.kept] == [TRANSCRIPT]


@pytest.mark.slow
def test_the_dates_it_judges_by_are_shown(home: Path, shell: Shell) -> None:
    synced_daily(shell.database, home, *range(-130, -100, 5))
    lose(home)
    synced_daily(shell.database, home, *range(-100, 1, 5))
    with clock(TODAY):
        assert shell("prune", "--gone", "--before", "90d", "--dry-run") == 0
        assert "Would remove 2 files" in shell.err
        assert "gone since before 2025-12-01 10:00." in shell.err
        assert shell.out.startswith(SESSION)
        assert shell.out.endswith("gone since 2025-11-21 10:00\n")
        assert "Kept" not in shell.err
        assert shell("prune", "--gone", "--before", "101d") == 0
        assert "No data is gone since before 2025-11-20 10:00" in shell.err
        assert shell("prune", "--gone", "--before", "99d") == 0
        assert "Removed 2 files" in shell.err


@pytest.mark.slow
def test_an_age_that_is_older_than_all_time_removes_nothing(home: Path, shell: Shell) -> None:
    synced_daily(shell.database, home, -1)
    lose(home)
    synced_daily(shell.database, home, 0)
    with clock(TODAY):
        for age in ("9999w", "999999w", "999999d"):
            assert shell("prune", "--gone", "--before", age) in (0, 2), shell.err
    assert len(gone(shell.database)) == 4
