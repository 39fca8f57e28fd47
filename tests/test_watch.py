"""A watch keeps the database up to date, whatever the system tells of changes, or does not tell.

The first half is logic, with a watcher that tells what a test says. The second half is the real
program on the real operating system: one test for each way in which its notices are known to fail.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest
from tests.faults.amounts import times
from tests.faults.changing import Home
from tests.support.child import NOBODY, Child
from tests.support.writing import OTHER, PROJECT, SESSION, THIRD, TRANSCRIPT, jsonl, user, write

from assoc_ingest.errors import BusyError, DatabaseError
from assoc_ingest.stopping import stopped_by_signals
from assoc_ingest.sync import run as syncing
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.prices import installed, library_prices
from assoc_ingest.sync.run import sync
from assoc_ingest.sync.watch import (
    RESCAN,
    SystemWatcher,
    Wakeups,
    WatchError,
    WatchOptions,
    until_rescan,
    watch,
)
from assoc_ingest.testing.dump import assert_same, check, connect, dump
from assoc_ingest.testing.promises import read_in_pieces

Fresh = Callable[[], Path]
linux = pytest.mark.skipif(sys.platform != "linux", reason="about inotify")
posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")

NEVER = 1000.0
"""Seconds to a rescan that no test lives to see: only a notice can have woken the watch."""
PATIENCE = 20.0
"""Seconds after which a test gives up waiting."""


@pytest.fixture
def home(place: Path) -> Path:
    write(place / "home", TRANSCRIPT, user("here", "u1"))
    return place / "home"


def append(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(jsonl(user(text, text)))


def texts(database: Path) -> list[str]:
    return [row[0] for row in _query(database, "select text from messages order by id")]


def gone(database: Path) -> list[str]:
    return [row[0] for row in _query(database, "select path from files where gone_at is not null")]


def runs(database: Path) -> int:
    return int(_query(database, "select count(*) from sync_runs")[0][0])


def _query(database: Path, sql: str) -> list[Any]:
    connection = connect(database)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


# -- what is done with what is told --------------------------------------------------------------


class _Ticks(Event):
    """The event that stops a watch. A wait of a tick, when nothing is listened to, is a step."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script
        self.pauses: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0.0)
        if timeout and timeout > 0.5:
            self._script.wait(timeout)
            return self.is_set()
        return super().wait(timeout)


class Script:
    """A watcher that tells what a test says: each step acts, and returns the paths to tell."""

    def __init__(self, *steps: Callable[[], Collection[Path] | None]) -> None:
        self.steps = list(steps)
        self.opened: list[set[str]] = []
        self.told: list[Report | str] = []
        self.stop = _Ticks(self)

    def open(self, directories: Collection[str], stop: Event) -> Script:
        self.opened.append(set(directories))
        return self

    def wait(self, seconds: float) -> set[str]:
        if not self.steps:
            self.stop.set()
            return set()
        return {str(path) for path in self.steps.pop(0)() or ()}

    def close(self) -> None: ...

    def run(self, database: Path, *paths: Path, rescan: float | None = NEVER) -> list[str]:
        """Watch until the steps are done; return the sentences that were told."""
        options = WatchOptions(rescan=rescan)
        watch(database, paths, options, self.stop, self.told.append, opened=self.open)
        return [news for news in self.told if isinstance(news, str)]


@pytest.mark.slow
def test_only_the_places_that_were_told_are_looked_at(home: Path, fresh: Fresh) -> None:
    other = write(home, f"projects/-srv-other/{OTHER}.jsonl", user("there", "u2"))
    below = write(home, f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl", user("below", "u3"))
    database = fresh()

    def change() -> list[Path]:
        append(home / TRANSCRIPT, "told")
        append(other, "not told")
        append(below, "not told either")
        return [home / TRANSCRIPT]

    Script(change).run(database, home)
    assert sorted(texts(database)) == ["below", "here", "there", "told"]
    check(database)


@pytest.mark.slow
def test_a_path_that_is_nobodys_is_not_looked_at(home: Path, fresh: Fresh) -> None:
    database = fresh()

    def change() -> list[Path]:
        append(home / TRANSCRIPT, "not told")
        (home / "debug").mkdir()
        noise = ["debug", "debug/x.log", f"{PROJECT}/x.tmp", "../elsewhere"]
        return [home / path for path in noise]

    script = Script(change)
    script.run(database, home)
    assert texts(database) == ["here"]


@pytest.mark.parametrize("told", ["old", "new"])
def test_a_file_that_moved_keeps_its_rows_whichever_place_is_told(
    told: str, home: Path, fresh: Fresh
) -> None:
    database = fresh()
    target = home / "projects" / "-srv-moved"
    target.mkdir()

    def move() -> list[Path]:
        before, after = home / TRANSCRIPT, target / f"{SESSION}.jsonl"
        before.rename(after)
        return [before if told == "old" else after]

    Script(move).run(database, home)
    assert not gone(database)
    assert [row["path"] for row in dump(database)["files"]] == [
        f"projects/-srv-moved/{SESSION}.jsonl"
    ]
    check(database, home)


def test_of_hard_links_the_first_counts_wherever_the_told_one_lies(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()

    first = home / "projects" / "-srv-a" / f"{OTHER}.jsonl"
    second = home / "projects" / "-srv-b" / f"{OTHER}.jsonl"

    def link() -> list[Path]:
        write(home, str(first.relative_to(home)), user("twice", "u2"))
        second.parent.mkdir()
        second.hardlink_to(first)
        return [second]

    Script(link).run(database, home)
    assert sorted(texts(database)) == ["here", "twice"]
    paths = {row["path"] for row in dump(database)["files"]}
    assert paths == {TRANSCRIPT, str(first.relative_to(home))}


def test_a_file_that_is_gone_is_marked_at_once(home: Path, fresh: Fresh) -> None:
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("stays", "u2"))
    database = fresh()

    def delete() -> list[Path]:
        (home / TRANSCRIPT).unlink()
        return [home / TRANSCRIPT]

    Script(delete).run(database, home)
    assert gone(database) == [TRANSCRIPT]
    assert sorted(texts(database)) == ["here", "stays"]


def test_new_directories_are_listened_to_and_then_looked_at(home: Path, fresh: Fresh) -> None:
    database = fresh()
    deep = home / PROJECT / SESSION / "subagents"

    def make() -> list[Path]:
        deep.mkdir(parents=True)
        return [deep.parent]

    class Late(Script):
        def open(self, directories: Collection[str], stop: Event) -> Script:
            if str(deep) in directories:  # too early for a notice, too late for the walk
                write(deep, "agent-a1.jsonl", user("early", "u2", agentId="a1"))
            return super().open(directories, stop)

    script = Late(make)
    script.run(database, home)
    if sys.platform == "linux":
        assert {str(deep), str(deep.parent)} == script.opened[1] - script.opened[0]
        assert texts(database) == ["here", "early"]


def test_a_directory_that_changed_itself_is_listened_to_anew() -> None:
    """It may be another one of the same name, and of the same inode too."""
    script = Script(lambda: [Path("/home/projects")])
    wakeups = Wakeups(Event(), NEVER, script.told.append, script.open)
    directories = {"/home": 1, "/home/projects": 2}
    with patch("assoc_ingest.sync.watch._IS_RECURSIVE", False):
        assert wakeups.listen([], directories) == {"/home", "/home/projects"}
        assert wakeups.listen([], directories) == set()
        assert wakeups.wait(0) == {"/home/projects"}
        assert wakeups.listen([], directories) == {"/home/projects"}
    assert len(script.opened) == 2


def test_many_files_are_looked_at_less_often_unless_the_user_says_how_often() -> None:
    assert until_rescan(WatchOptions(), 0.01) == RESCAN
    assert until_rescan(WatchOptions(), 0.2) == 200
    assert until_rescan(WatchOptions(rescan=5), 0.2) == 5


@pytest.mark.parametrize(("share", "is_found"), [(1e9, True), (1e-9, False)])
def test_the_next_rescan_follows_from_what_the_last_one_took(
    share: float, is_found: bool, home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assoc_ingest.sync.watch.RESCAN", 0.0)
    monkeypatch.setattr("assoc_ingest.sync.watch._SHARE", share)
    database = fresh()
    sync(database, [home])  # a pass that reads files says nothing of what looking at them takes
    Script(lambda: append(home / TRANSCRIPT, "not told")).run(database, home, rescan=None)
    assert texts(database) == (["here", "not told"] if is_found else ["here"])


def test_a_rescan_finds_what_nobody_told_and_listening_begins_anew(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()
    script = Script(lambda: append(home / TRANSCRIPT, "not told"))
    script.run(database, home, rescan=0)
    assert texts(database) == ["here", "not told"]
    assert len(script.opened) == 2


def test_looking_at_what_did_not_change_writes_nothing(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    seen = []
    with sqlite3.connect(database) as reader:

        def look() -> list[Path]:
            seen.append(reader.execute("pragma data_version").fetchone())
            return [home / TRANSCRIPT]

        script = Script(*[look] * 5)
        script.run(database, home, rescan=0)
        script = Script(*[look] * 5)
        script.run(database, home)
    reader.close()
    assert len(seen) == 10
    assert len(set(seen[:5])) == len(set(seen[5:])) == 1
    assert runs(database) == 3  # a sync, and the first pass of each watch
    assert len(script.told) == 1


@pytest.mark.parametrize(("seconds", "rows_left"), [(600.0, [3]), (0.0, [1, 1, 1])])
def test_a_pass_that_read_something_is_told_and_counted(
    seconds: float,
    rows_left: list[int],
    home: Path,
    fresh: Fresh,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Passes soon after each other share a row."""
    monkeypatch.setattr("assoc_ingest.sync.watch._RUN", seconds)
    database = fresh()

    def change() -> list[Path]:
        append(home / TRANSCRIPT, "more")
        return [home / TRANSCRIPT]

    script = Script(change, change)
    script.run(database, home)
    assert [(news.files_read, news.rows) for news in script.told if isinstance(news, Report)] == [
        (1, 1)
    ] * 3
    rows = _query(database, "select files_read, rows, error, finished_at is null from sync_runs")
    assert [tuple(row) for row in rows] == [(count, count, None, 0) for count in rows_left]
    synced = _query(database, "select last_synced_at from sources")[0][0]
    assert synced >= _query(database, "select max(started_at) from sync_runs")[0][0]


def test_a_system_that_tells_nothing_is_told_of_once_and_asked_again(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()

    class Deaf(Script):
        attempts = 0

        def open(self, directories: Collection[str], stop: Event) -> Script:
            self.attempts += 1
            if self.attempts == 1:
                append(home / TRANSCRIPT, "found by looking")
            if self.attempts <= 3:
                raise WatchError("no more watches")
            return super().open(directories, stop)

    script = Deaf(lambda: append(home / TRANSCRIPT, "told") or [home / TRANSCRIPT])
    sentences = script.run(database, home, rescan=0.2)
    assert script.attempts >= 4
    assert texts(database) == ["here", "found by looking", "told"]
    assert [text for text in sentences if "no more watches" in text] == [
        "Change notifications are not available (no more watches); changes are found within 0.2 s."
    ]


def test_of_too_many_directories_those_are_listened_to_that_changed_last(place: Path) -> None:
    """Also when another one becomes the last, and when more are allowed again."""
    directories = {}
    for number in range(10):
        file = write(place, f"{number}/file", user("text"))
        os.utime(file, (number, number))
        os.utime(file.parent, (1, 1))
        directories[str(file.parent)] = number
    allowed = 3

    class Limited(Script):
        def open(self, directories: Collection[str], stop: Event) -> Script:
            super().open(directories, stop)
            if len(directories) > allowed:
                raise WatchError("too many", is_limit=True)
            return self

    def listen(*changed: int) -> set[int]:
        for number in changed:
            os.utime(place / str(number) / "file", (99, 99))
        wakeups._retry_at = 0.0
        return {int(Path(path).name) for path in wakeups.listen([], directories)}

    script = Limited()
    wakeups = Wakeups(Event(), 30, script.told.append, script.open)
    with patch("assoc_ingest.sync.watch._IS_RECURSIVE", False):
        assert [listen() for _ in range(4)] == [set(), set(), {9, 8}, set()]
        assert [len(names) for names in script.opened] == [10, 5, 2]
        os.utime(place, (1, 1))
        assert wakeups.listen([], {**directories, str(place): 11}) == set()  # new, and quiet
        assert [len(names) for names in script.opened] == [10, 5, 2, 2]
        wakeups.forget()  # as when a rescan found something
        assert listen(4) == {4, 9}
        allowed, wakeups._more_at = 20, 0.0
        wakeups.forget()
        assert listen() == set(range(10))
    assert set(script.told) == {
        "Only the most recently changed directories are watched (there are more than "
        "fs.inotify.max_user_watches allows); changes in others are found within 30 s."
    }


# -- roots that come and go ----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["renamed", "emptied"])
def test_a_root_that_is_not_there_marks_nothing_as_gone(
    how: str, home: Path, fresh: Fresh, place: Path
) -> None:
    """A disk that is unmounted takes the directory away, or leaves it empty."""
    database, away = fresh(), place / "away"

    def leave() -> None:
        home.rename(away)
        if how == "emptied":
            home.mkdir()

    def come_back() -> None:
        (noted,) = _query(database, "select gone_at is not null from sources")[0]
        assert noted == (how == "renamed")
        assert not gone(database)
        if how == "emptied":
            home.rmdir()
        away.rename(home)
        append(home / TRANSCRIPT, "back")

    script = Script(leave, lambda: None, come_back)
    sentences = script.run(database, home)
    assert texts(database) == ["here", "back"]
    assert not gone(database)
    assert sentences == [f"Root is missing; its rows are kept: {home}"]


def test_homes_that_appear_are_read(fresh: Fresh, place: Path) -> None:
    database = fresh()
    script = Script(
        lambda: write(Path.home() / ".claude", TRANSCRIPT, user("new home", "u1")) and None,
    )
    sentences = script.run(database)
    assert texts(database) == ["new home"]
    assert len(sentences) == 1
    assert "Waiting until one appears" in sentences[0]


def test_a_store_that_appears_in_a_known_project_is_read(home: Path, fresh: Fresh) -> None:
    database, project = fresh(), home.parent / "project"
    project.mkdir()
    write(home, TRANSCRIPT, user("here", "u1", cwd=str(project)))
    cortex = Path(__file__).parent / "demo" / "cortex"
    script = Script(
        lambda: [home],
        lambda: shutil.copytree(cortex, project / ".cortex") and None,
    )
    sync(database, [home])
    script.run(database)
    kinds = {row["kind"] for row in dump(database)["sources"]}
    assert kinds == {"claude", "cortex"}


# -- a database that fails -----------------------------------------------------------------------


def test_a_full_disk_is_told_once_and_the_watch_goes_on(home: Path, fresh: Fresh) -> None:
    database = fresh()
    fills = 2

    def filled(connection: sqlite3.Connection, *arguments: Any, **more: Any) -> Any:
        nonlocal fills
        if texts(database) and fills:
            fills -= 1
            (pages,) = connection.execute("pragma page_count").fetchone()
            connection.execute(f"pragma max_page_count = {pages}")
        return syncing.sync_into(connection, *arguments, **more)

    def change() -> list[Path]:
        append(home / TRANSCRIPT, "big " * 100_000)
        return [home / TRANSCRIPT]

    script = Script(change)
    with patch("assoc_ingest.sync.watch.sync_into", filled):
        sentences = script.run(database, home, rescan=0.1)
    assert fills == 0
    assert len(texts(database)) == 2
    assert [text for text in sentences if "full" in text] == [
        "database or disk is full. Retrying in 0.1 s."
    ]
    check(database, home)


@pytest.mark.slow
@pytest.mark.parametrize("is_held", [True, False])
def test_a_log_that_cannot_be_emptied_slows_the_watch_down(
    is_held: bool, home: Path, fresh: Fresh
) -> None:
    """It grows with each pass for as long as a reader holds an old state."""
    database = fresh()
    sync(database, [home])
    reader = sqlite3.connect(database, isolation_level=None)

    def change() -> list[Path]:
        if is_held and not reader.in_transaction:
            reader.execute("begin")
            reader.execute("select count(*) from files").fetchone()
        append(home / TRANSCRIPT, "big " * 50_000)
        return [home / TRANSCRIPT]

    limit, changes = 20_000_000, 28  # it is emptied at about 17 MB where nobody holds it
    script = Script(*[change] * changes)
    with (
        patch("assoc_ingest.sync.watch.LOG_LIMIT", limit),
        patch("assoc_ingest.sync.watch._LOG_RATE", 1),
        patch("assoc_ingest.sync.watch._REST", 0),
    ):
        script.run(database, home, rescan=0.05)
    reader.close()
    assert len(texts(database)) == 1 + changes
    assert (0.05 in script.stop.pauses) == is_held


def test_a_damaged_database_ends_the_watch(home: Path, fresh: Fresh) -> None:
    database = fresh()

    def damage() -> list[Path]:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        damaged.side_effect = error
        append(home / TRANSCRIPT, "never read")
        return [home / TRANSCRIPT]

    with (
        patch("assoc_ingest.sync.watch.sync_into", wraps=syncing.sync_into) as damaged,
        pytest.raises(sqlite3.DatabaseError, match="malformed"),
    ):
        Script(damage).run(database, home)


def test_a_database_that_is_another_programs_is_left_alone(home: Path, fresh: Fresh) -> None:
    database = fresh()

    def replace() -> None:
        for path in (database, Path(f"{database}-wal"), Path(f"{database}-shm")):
            path.unlink(missing_ok=True)
        with sqlite3.connect(database) as other:
            other.execute("create table theirs (x)")
        other.close()

    # Two steps: on a busy machine the first comes while the watch rests, and not while it waits.
    with pytest.raises(DatabaseError, match="not an assoc-ingest database"):
        Script(replace, lambda: None).run(database, home)


@pytest.mark.slow
@pytest.mark.parametrize("is_read", [False, True], ids=["unread", "read"])
@pytest.mark.parametrize(
    "endings", [("",), ("", "-wal", "-shm"), ("", "-wal", "-shm", ".lock")], ids="+".join
)
def test_a_database_that_is_deleted_is_made_again(
    endings: tuple[str, ...], is_read: bool, home: Path, fresh: Fresh
) -> None:
    """What it held goes with it, and somebody who still reads it disturbs nothing."""
    database = fresh()
    reader: sqlite3.Connection | None = None

    def delete() -> None:
        nonlocal reader
        if is_read:
            reader = connect(database)
            reader.execute("begin")
            assert reader.execute("select text from messages").fetchone()[0] == "here"
        write(home, TRANSCRIPT, user("something else", "u2"))
        for ending in endings:
            Path(f"{database}{ending}").unlink()

    def close() -> list[Path]:
        if reader is not None:
            assert reader.execute("select text from messages").fetchone()[0] == "here"
            reader.close()
        append(home / TRANSCRIPT, "and more")
        return [home / TRANSCRIPT]

    sentences = Script(delete, close).run(database, home)
    assert sentences == ["The database was removed. Creating a new one."]
    assert texts(database) == ["something else", "and more"]
    assert not set(_names(database)) - {database.name, f"{database.name}.lock"}
    check(database, home)


def _names(database: Path) -> list[str]:
    return [path.name for path in database.parent.glob(f"{database.name}*")]


def test_a_database_that_is_replaced_is_gone_on_with(home: Path, fresh: Fresh) -> None:
    """As when a copy is put in its place: the log of the other is not laid over it."""
    database, other = fresh(), fresh()
    sync(other, [home])
    for number in range(9):
        append(home / TRANSCRIPT, f"line {number} " * 9000)
    reader: sqlite3.Connection | None = None

    def replace() -> None:
        nonlocal reader
        reader = connect(database)
        reader.execute("begin")
        assert reader.execute("select count(*) from messages").fetchone()[0] == 10
        other.rename(database)

    def go_on() -> list[Path]:
        append(home / TRANSCRIPT, "and more")
        return [home / TRANSCRIPT]

    sentences = Script(replace, go_on).run(database, home)
    assert reader is not None
    assert reader.execute("select count(*) from messages").fetchone()[0] == 10
    reader.close()
    assert sentences == ["The database was replaced. Continuing with the new one."]
    assert len(texts(database)) == 11
    check(database, home)


@pytest.mark.slow
def test_a_lock_that_somebody_removes_is_taken_again(home: Path, fresh: Fresh) -> None:
    database = fresh()
    lock = Path(f"{database}.lock")

    def remove() -> None:
        lock.unlink()

    def look() -> None:
        assert lock.exists()
        with pytest.raises(BusyError):
            sync(database, [home])

    sentences = Script(remove, look).run(database, home)
    assert sentences == ["The lock file was removed. Creating it again."]
    assert texts(database) == ["here"]


def test_a_watch_that_cannot_begin_says_so(home: Path, fresh: Fresh) -> None:
    database = fresh()

    def begin_another() -> None:
        with pytest.raises(BusyError):
            Script().run(database, home)

    Script(begin_another).run(database, home)


# -- the real program on the real system ---------------------------------------------------------


class Watching:
    """The program, watching."""

    def __init__(
        self, database: Path, *paths: Path, rescan: float = NEVER, shell: str | None = None
    ) -> None:
        self.database = database
        command = [
            *(sys.executable, "-m", "assoc_ingest", "watch", "--log-json", "-d", str(database)),
            *("--rescan", str(rescan), *map(str, paths)),
        ]
        if shell is not None:
            command = ["unshare", "-Ur", "sh", "-c", shell, "sh", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.process.pid

    def wait_for(self, *wanted: str) -> None:
        """Return when all these texts can be found."""
        wait_until(lambda: self.process.poll() is not None or set(wanted) <= set(self._texts()))
        missing = set(wanted) - set(self._texts())
        assert not missing, (sorted(missing)[:5], self.process.poll())

    def wait_for_first_pass(self) -> None:
        wait_until(lambda: self.process.poll() is not None or self._runs() > 0)
        self.wait_until_heard()

    def wait_until_heard(self) -> None:
        """Return when the program listens: it holds watches, and has looked around after that."""
        if sys.platform == "linux":
            wait_until(lambda: self.process.poll() is not None or self.watches() > 0)

    def watches(self) -> int:
        """Return the number of directories that the kernel watches for the program."""
        count = 0
        for path in Path(f"/proc/{self.pid}/fdinfo").iterdir():
            try:
                count += path.read_text().count("inotify wd:")
            except OSError:
                continue
        return count

    def end(self, number: int = signal.SIGTERM) -> tuple[int, list[dict[str, Any]]]:
        """Ask it to end; return its exit code and what it told."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert b"Traceback" not in err, err.decode()
        return self.process.returncode, [json.loads(line) for line in out.split(b"\n") if line]

    def _texts(self) -> list[str]:
        return texts(self.database) if self._runs() else []

    def _runs(self) -> int:
        try:
            return runs(self.database)
        except sqlite3.OperationalError:
            return 0


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@contextmanager
def watching(database: Path, *paths: Path, **more: Any) -> Iterator[Watching]:
    running = Watching(database, *paths, **more)
    try:
        running.wait_for_first_pass()
        yield running
    finally:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGCONT)
            running.process.kill()
        running.process.communicate()


@posix
def test_what_is_appended_can_be_found(home: Path, fresh: Fresh) -> None:
    with watching(fresh(), home) as running:
        for number in range(10):
            append(home / TRANSCRIPT, f"text {number}")
            running.wait_for(f"text {number}")
        code, told = running.end()
    assert code == 0
    assert [news["event"] for news in told] == ["pass"] * len(told)
    assert sum(news["rows"] for news in told) == 11
    check(running.database, home)


@pytest.mark.slow
@posix
def test_directories_made_at_once_with_what_is_in_them_are_read(home: Path, fresh: Fresh) -> None:
    """How subagents appear: the file is written before anybody can listen to its directory."""
    with watching(fresh(), home) as running:
        for number in range(60):
            path = f"projects/-srv-{number}/{SESSION}/subagents/agent-a{number}.jsonl"
            write(home, path, user(f"nested {number}", f"n{number}", agentId=f"a{number}"))
        running.wait_for(*(f"nested {number}" for number in range(60)))


@pytest.mark.slow
@posix
def test_a_directory_that_is_moved_in_is_read(home: Path, fresh: Fresh, place: Path) -> None:
    write(place / "outside", f"{OTHER}.jsonl", user("moved in", "u2"))
    write(place / "outside", f"{OTHER}/subagents/agent-a1.jsonl", user("too", "u3", agentId="a1"))
    with watching(fresh(), home) as running:
        (place / "outside").rename(home / "projects" / "-srv-moved")
        running.wait_for("moved in", "too")
        append(home / "projects" / "-srv-moved" / f"{OTHER}.jsonl", "and heard")
        running.wait_for("and heard")


@pytest.mark.slow
@posix
def test_a_root_that_is_deleted_and_made_again_is_read_again(home: Path, fresh: Fresh) -> None:
    with watching(fresh(), home) as running:
        for round_ in range(3):
            shutil.rmtree(home)
            write(home, f"{PROJECT}/{OTHER}.jsonl", user(f"again {round_}", f"r{round_}"))
            running.wait_for(f"again {round_}")
            append(home / PROJECT / f"{OTHER}.jsonl", f"heard {round_}")
            running.wait_for(f"heard {round_}")
        assert "here" in texts(running.database)


@pytest.mark.slow
@posix
def test_a_root_that_is_renamed_away_and_back_is_heard_again(
    home: Path, fresh: Fresh, place: Path
) -> None:
    with watching(fresh(), home, rescan=0.5) as running:
        home.rename(place / "away")
        told = running.process.stdout.readline() + running.process.stdout.readline()  # type: ignore[union-attr]
        assert b"Root is missing" in told
        (place / "away").rename(home)
        append(home / TRANSCRIPT, "back")
        running.wait_for("back")
        append(home / TRANSCRIPT, "heard")
        running.wait_for("heard")
    assert not gone(running.database)


@pytest.mark.slow
@linux
def test_events_that_the_system_dropped_are_made_good_by_a_rescan(home: Path, fresh: Fresh) -> None:
    """While the program is stopped nobody empties its queue, which holds so many events: of the
    files made after that none is told, and among them is the only one that matters."""
    size = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if size > 100_000:
        pytest.skip("the queue of events is too long to be filled")
    with watching(fresh(), home, rescan=1) as running:
        os.kill(running.pid, signal.SIGSTOP)
        for number in range(size + 1):
            os.mknod(home / PROJECT / f"{number}.tmp")
        append(home / TRANSCRIPT, "not told")
        write(home, f"{PROJECT}/{OTHER}.jsonl", user("not told either", "u3"))
        os.kill(running.pid, signal.SIGCONT)
        running.wait_for("not told", "not told either")
        append(home / TRANSCRIPT, "told again")
        running.wait_for("told again")


@pytest.mark.slow
@linux
def test_a_name_that_is_not_utf8_silences_nothing_for_long(home: Path, fresh: Fresh) -> None:
    with watching(fresh(), home) as running:
        name = os.path.join(os.fsencode(home / PROJECT), b"caf\xe9.jsonl")
        for number in range(3):
            with open(name, "ab") as file:
                file.write(jsonl(user(f"odd {number}", f"o{number}")))
            running.wait_for(f"odd {number}")
        directory = os.path.join(os.fsencode(home / "projects"), b"-srv-\xff")
        os.mkdir(directory)
        append(home / TRANSCRIPT, "even")
        running.wait_for("even")
        code, told = running.end()
    assert code == 0
    assert len([news for news in told if news["event"] == "notice"]) <= 3


@pytest.mark.slow
@linux
def test_a_directory_that_may_not_be_read_stops_no_other(
    home: Path, fresh: Fresh, place: Path
) -> None:
    write(home, f"projects/-srv-closed/{OTHER}.jsonl", user("closed", "u2"))
    database = fresh()
    for path in (place, database, *place.rglob("*")):
        path.chmod(0o777)
    closed = home / "projects" / "-srv-closed"
    closed.chmod(0)
    list(library_prices(installed()))  # that user may not read the environment that we run in
    SystemWatcher([str(home)], Event()).close()

    def run() -> int:
        with stopped_by_signals() as stop:
            watch(database, [home], WatchOptions(rescan=0.5), stop, lambda news: None)
        return stop.exit_code

    child = Child(run, user=NOBODY if os.geteuid() == 0 else None)
    try:
        wait_until(lambda: "here" in texts(database))
        append(home / TRANSCRIPT, "beside it")
        wait_until(lambda: "beside it" in texts(database))
        assert "closed" not in texts(database)
        closed.chmod(0o777)
        wait_until(lambda: "closed" in texts(database))
    finally:
        os.kill(child.pid, signal.SIGTERM)
    assert child.result() == 0


@contextmanager
def limited(name: str, number: int, database: Path, home: Path, rescan: float) -> Iterator[Any]:
    """Watch in a user namespace that has a limit: that of the whole system is not ours to change.

    What the program told comes into the list `told` of what is yielded.
    """
    limit = f"echo {number} > /proc/sys/user/{name}"
    allowed = subprocess.run(["unshare", "-Ur", "sh", "-c", limit], capture_output=True)
    if allowed.returncode:
        pytest.skip("a user namespace is not permitted here")
    running: Any = Watching(database, home, rescan=rescan, shell=f'{limit}; exec "$@"')
    try:
        yield running
        code, told = running.end()
    finally:
        running.process.kill()
        running.process.communicate()
    assert code == 0
    running.told = [news["text"] for news in told if news["event"] == "notice"]


@pytest.mark.slow
@linux
def test_of_too_many_directories_the_one_that_changed_last_is_heard(
    home: Path, fresh: Fresh
) -> None:
    for number in range(40):
        path = write(home, f"projects/-srv-{number}/{SESSION}.jsonl", user(f"old {number}"))
        os.utime(path, (number, number))
        os.utime(path.parent, (number, number))
    os.utime(home, (1, 1))
    os.utime(home / "projects", (1, 1))
    with limited("max_inotify_watches", 12, fresh(), home, NEVER) as running:
        running.wait_for("here")
        wait_until(lambda: running.watches() >= 5)
        append(home / TRANSCRIPT, "heard")
        running.wait_for("heard")
    assert len(running.told) == 1
    assert "there are more than fs.inotify.max_user_watches allows" in running.told[0]


@pytest.mark.slow
@linux
def test_too_many_directories_are_looked_at_in_time(home: Path, fresh: Fresh) -> None:
    with limited("max_inotify_watches", 0, fresh(), home, 0.5) as running:
        running.wait_for("here")
        append(home / TRANSCRIPT, "found in time")
        running.wait_for("found in time")
        append(home / TRANSCRIPT, "and again")
        running.wait_for("and again")
    (told,) = running.told
    assert "too many directories for fs.inotify.max_user_watches" in told


@pytest.mark.slow
@linux
def test_too_many_programs_that_watch_are_told_as_such(home: Path, fresh: Fresh) -> None:
    with limited("max_inotify_instances", 0, fresh(), home, 0.5) as running:
        running.wait_for("here")
        append(home / TRANSCRIPT, "found in time")
        running.wait_for("found in time")
    (told,) = running.told
    assert "too many programs that watch for fs.inotify.max_user_instances" in told


@pytest.mark.slow
@linux
def test_links_lead_out_of_no_root_and_do_not_matter(home: Path, fresh: Fresh, place: Path) -> None:
    for number in range(50):
        write(place / "repository", f"{number}/x", b"x")
        write(home, f"plugins/cache/{number}/x", b"x")
    (home / "projects" / "-srv-link").symlink_to(place / "repository", target_is_directory=True)
    with watching(fresh(), home) as running:
        append(home / TRANSCRIPT, "heard")
        running.wait_for("heard")
        assert running.watches() == 3  # the home, projects, and the one project
        write(place / "repository", f"{OTHER}.jsonl", user("outside", "u2"))
        append(home / TRANSCRIPT, "heard too")
        running.wait_for("heard too")
        assert "outside" not in texts(running.database)


@pytest.mark.slow
@posix
def test_what_is_written_through_another_name_is_found_by_a_rescan(
    home: Path, fresh: Fresh, place: Path
) -> None:
    (place / "other name").hardlink_to(home / TRANSCRIPT)
    with watching(fresh(), home, rescan=0.5) as running:
        append(place / "other name", "no notice")
        running.wait_for("no notice")


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", [".git", "node_modules", ".venv", "backup~"])
def test_no_name_is_overlooked_because_others_overlook_it(
    name: str, home: Path, fresh: Fresh
) -> None:
    write(home, f"projects/{name}/{OTHER}.jsonl", user("there", "u2"))
    oracle = fresh()
    sync(oracle, [home])
    assert sorted(texts(oracle)) == ["here", "there"]
    with watching(fresh(), home) as running:
        append(home / "projects" / name / f"{OTHER}.jsonl", "heard")
        running.wait_for("heard")


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.slow
@posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_the_batch_finished(
    number: int, code: int, place: Path, fresh: Fresh
) -> None:
    home, database = place / "home", fresh()
    for file in range(150):
        path = f"{PROJECT}/{file:08x}-1111-4222-8333-444455556666.jsonl"
        write(home, path, *(user("x" * 200, f"{file}-{line}") for line in range(20)))

    def run() -> int:
        with stopped_by_signals() as stop, read_in_pieces(chunk=3000, batch=4000):
            watch(database, [home], WatchOptions(), stop, lambda news: None)
        return stop.exit_code

    child = Child(run)
    wait_until(lambda: len(texts(database)) > 0)
    os.kill(child.pid, number)
    assert child.result() == code
    assert 0 < len(texts(database)) < 3000
    check(database)
    assert _query(database, "select error, finished_at is null from sync_runs")[0][:] == (None, 0)
    sync(database, [home])
    oracle = fresh()
    sync(oracle, [home])
    assert_same(dump(database), dump(oracle))


@posix
def test_an_idle_watch_ends_at_once(home: Path, fresh: Fresh) -> None:
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        with watching(fresh(), home) as running:
            assert running.end(number)[0] == code


@posix
def test_a_signal_that_python_passes_over_while_it_starts_ends_it(home: Path, fresh: Fresh) -> None:
    """What is raised where an object ends is ignored, and an import has many such places."""
    code = (
        "import signal, sys, weakref\n"
        "from assoc_ingest import __main__ as program, stopping\n"
        "handled = stopping.stopped_by_signals\n"
        "def begin():\n"
        "    thing = set()\n"
        "    ends = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))\n"
        "    del thing\n"
        "    return handled()\n"
        "stopping.stopped_by_signals = begin\n"
        "sys.exit(program.main(sys.argv[1:]))"
    )
    arguments = [sys.executable, "-c", code, "watch", str(home), "-d", str(fresh())]
    run = subprocess.run(arguments, capture_output=True, timeout=PATIENCE)
    assert b"Terminated" in run.stderr
    assert run.returncode == 0


@pytest.mark.slow
@posix
def test_nobody_else_writes_meanwhile(home: Path, fresh: Fresh) -> None:
    with watching(fresh(), home) as running:
        for command in ("sync", "watch"):
            done = subprocess.run(
                [sys.executable, "-m", "assoc_ingest", command, str(home), "-d", running.database],
                capture_output=True,
                text=True,
            )
            assert done.returncode == 3
            assert f"(process {running.pid})" in done.stderr


@pytest.mark.slow
@posix
@pytest.mark.parametrize("seed", range(times(2, 1)))
def test_a_watch_that_is_killed_again_and_again_ends_with_the_same_rows(
    seed: int, place: Path, fresh: Fresh
) -> None:
    home, database, chance = Home(place / "home", seed), fresh(), random.Random(seed)
    SystemWatcher([str(home.root)], Event()).close()  # loads the library for all children

    def run() -> int:
        with stopped_by_signals() as stop, read_in_pieces(chunk=3000, batch=4000):
            watch(database, [home.root], WatchOptions(rescan=0.3), stop, lambda news: None)
        return stop.exit_code

    kills = 0
    for _ in range(15):
        child = Child(run)
        for _ in range(chance.randint(0, 4)):
            child.is_done_within(chance.random() * 0.08)
            home.change()
        assert not child.is_done_within(chance.random() * 0.08)
        child.kill()
        kills += 1
        check(database)
    child = Child(run)
    for _ in range(10):
        child.is_done_within(chance.random() * 0.1)
        home.change()
    oracle = fresh()
    sync(oracle, [home.root])
    expected = dump(oracle)
    try:
        wait_until(lambda: dump(database) == expected)
    finally:
        os.kill(child.pid, signal.SIGTERM)
    assert child.result() == 0
    assert kills == 15
    assert_same(dump(database), expected)
    check(database, home.root)
    assert sync(database, [home.root]).files_read == 0
    assert THIRD not in str(expected)


@pytest.mark.slow
@posix
def test_it_ends_at_once_even_if_a_reader_holds_an_old_state(home: Path, fresh: Fresh) -> None:
    with watching(fresh(), home) as running:
        reader = sqlite3.connect(running.database, isolation_level=None)
        reader.execute("begin")
        reader.execute("select count(*) from files").fetchone()
        append(home / TRANSCRIPT, "unseen by the reader")
        running.wait_for("unseen by the reader")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=6) == 0  # a database in use is waited for longer
        reader.close()
    check(running.database, home)
