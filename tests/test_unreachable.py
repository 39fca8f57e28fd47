"""A directory that nobody can look at is told in one sentence and ends nothing: no other is left
unread, and nothing in it is marked as gone.

It may be one that may not be entered, a disk that does not answer, or a place that the environment
names and that cannot be.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.support.child import NOBODY, as_nobody
from tests.support.writing import OTHER, PROJECT, THIRD, TRANSCRIPT, user, write

from assoc_ingest.__main__ import main
from assoc_ingest.files import walk
from assoc_ingest.files.walk import default_roots
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.watch import WatchOptions, watch
from assoc_ingest.testing.dump import rows

Fresh = Callable[[], Path]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="rights are those of POSIX systems")

COMMANDS = (
    "sync", "sync --full", "sync --git", "sync --dry-run", "verify", "status", "list projects",
    "list files", "restore --all --to TO", "prune --gone",
)  # fmt: skip


@pytest.fixture(autouse=True)
def user_home(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory that another user may enter."""
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    monkeypatch.setenv("HOME", str(place / "user"))
    (place / "user").mkdir()
    monkeypatch.chdir(place)
    return place / "user"


@contextmanager
def shut(place: Path, *directories: Path, mode: int = 0) -> Iterator[None]:
    """Let nobody enter these directories; all else in the place is everybody's."""
    for path in (place, *place.rglob("*")):
        path.chmod(0o777)
    for directory in directories:
        directory.chmod(mode)
    try:
        yield
    finally:
        for directory in directories:
            directory.chmod(0o700)


def assert_no_command_fails(
    place: Path, database: Path, directory: Path, capfd: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """Run every command with the directory shut; return what each said on standard error."""
    said = {}
    for command in COMMANDS:
        words = command.replace("TO", str(place / f"rescued-{len(said)}")).split(" ")
        arguments = [*words, "-d", str(database)]
        main(arguments)  # now all that it needs is imported
        shutil.rmtree(place / f"rescued-{len(said)}", ignore_errors=True)
        capfd.readouterr()
        with shut(place, directory):
            code = as_nobody(lambda: main(arguments))  # noqa: B023
        out, err = capfd.readouterr()
        assert code == 0, (command, out, err)
        assert "internal error" not in err
        said[command] = out + err
    return said


# -- what a transcript names -----------------------------------------------------------------------


@pytest.mark.parametrize("where", ["", "app", "app/deeper"])
def test_a_project_that_may_not_be_entered_ends_no_command(
    where: str,
    user_home: Path,
    fresh: Fresh,
    place: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    private, database = place / "private", fresh()
    (private / where).mkdir(parents=True)
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1", cwd=str(private / where)))
    assert main(["sync", "-d", str(database)]) == 0
    assert rows(database, "select on_disk from projects") == [(1,)]
    write(user_home / ".claude", f"{PROJECT}/{OTHER}.jsonl", user("later", "u2"))
    with shut(place, private):
        assert as_nobody(lambda: main(["sync", "-d", str(database)])) == 0
    err = capfd.readouterr().err
    assert err.count(f"Could not read {private}: Permission denied") == 1, "said once"
    assert rows(database, "select count(*) from messages") == [(2,)], "all else was read"
    if where == "app":
        said = assert_no_command_fails(place, database, private, capfd)
        assert "Permission denied" not in said["status"] + said["verify"], "it is no root"


def test_a_watch_goes_on_beside_a_project_that_may_not_be_entered(
    user_home: Path, fresh: Fresh, place: Path
) -> None:
    private, database = place / "private", fresh()
    private.mkdir()
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1", cwd=str(private)))
    assert main(["sync", "-d", str(database)]) == 0
    write(user_home / ".claude", f"{PROJECT}/{OTHER}.jsonl", user("later", "u2"))
    with shut(place, private):
        told = as_nobody(lambda: watched(database))
    assert [told.count(line) for line in told if "private" in line] == [1]
    assert not [line for line in told if "Retrying" in line]
    assert rows(database, "select count(*) from messages where text = 'later'") == [(1,)]


def watched(database: Path, *paths: Path) -> list[str]:
    """Watch for some passes, in which a file grows; return what was told."""
    told: list[str] = []
    stop = Event()
    growing = Path.home() / ".claude" / TRANSCRIPT

    def tell(news: Report | str) -> None:
        if isinstance(news, str):
            told.append(news)
            return
        told.extend(f"Could not read {path}: {why}" for path, why in news.unreadable)
        told.extend(f"Root is missing: {path}" for path in news.missing_roots)
        passes.append(news.files_read)
        if len(passes) == 3:
            stop.set()
            return
        with growing.open("ab") as file:
            file.write(growing.read_bytes().replace(b'"u1"', b'"v%d"' % len(passes)))

    passes: list[int] = []
    watch(database, paths, WatchOptions(rescan=0.1), stop, tell, opened=Deaf)
    return told


class Deaf:
    """A watcher that hears nothing: each pass is one over everything."""

    def __init__(self, directories: object, stop: Event) -> None:
        self._stop = stop

    def wait(self, seconds: float) -> set[str]:
        self._stop.wait(seconds)
        return set()

    def close(self) -> None:
        pass


def test_a_project_whose_disk_does_not_answer_ends_nothing(
    user_home: Path,
    fresh: Fresh,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    remote, database = place / "remote", fresh()
    remote.mkdir()
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1", cwd=str(remote)))
    assert main(["sync", "-d", str(database)]) == 0
    asked = dead(remote, monkeypatch)
    capsys.readouterr()
    assert main(["sync", "-d", str(database)]) == 0
    assert f"Could not read {remote}: Transport endpoint is not connected" in (
        capsys.readouterr().err
    )
    assert asked


def dead(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let a directory be one whose server is gone; return the list of what is asked of it."""
    asked: list[str] = []

    def failing(function: Callable[..., Any]) -> Callable[..., Any]:
        def ask(path: Any = ".", *arguments: Any, **more: Any) -> Any:
            name = os.fsdecode(path) if not isinstance(path, int) else ""
            if name == str(place) or name.startswith(f"{place}/"):
                asked.append(name)
                raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN), name)
            return function(path, *arguments, **more)

        return ask

    for name in ("stat", "lstat", "scandir", "open", "listdir"):
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    return asked


# -- roots -----------------------------------------------------------------------------------------


@pytest.fixture
def three_homes(user_home: Path, place: Path, fresh: Fresh) -> Path:
    """A database that has read three homes: the user's, and two that were named."""
    database = fresh()
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1"))
    write(place / "locked" / "home", f"{PROJECT}/{OTHER}.jsonl", user("there", "u2"))
    write(place / "open", f"{PROJECT}/{THIRD}.jsonl", user("elsewhere", "u3"))
    homes = [str(place / "locked" / "home"), str(place / "open")]
    assert main(["sync", *homes, "-d", str(database)]) == 0
    assert main(["sync", "-d", str(database)]) == 0
    write(place / "open", f"{PROJECT}/{THIRD}.jsonl", user("elsewhere", "u3"), user("new", "u4"))
    return database


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["locked", "locked/home", "locked/home/projects"])
def test_one_root_that_cannot_be_read_stops_no_other_and_loses_nothing(
    closed: str, three_homes: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    database = three_homes
    arguments = ["sync", "-d", str(database)]
    with shut(place, place / closed):
        code = as_nobody(lambda: main(arguments))
    err = capfd.readouterr().err
    named = "locked/home" if closed == "locked" else closed
    assert (code, err.count(f"Could not read {place / named}: Permission denied")) == (0, 1), err
    assert rows(database, "select count(*) from messages") == [(4,)], "the others were read"
    assert rows(database, "select count(gone_at) from files") == [(0,)]
    assert rows(database, "select count(gone_at) from sources") == [(0,)]
    said = assert_no_command_fails(place, database, place / closed, capfd)
    assert "not readable and therefore not compared" in said["verify"]
    assert main(arguments) == 0
    assert rows(database, "select error from sync_runs where error is not null") == []


def test_every_file_of_a_root_that_cannot_be_read_is_restored(
    three_homes: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["restore", "--all", "-d", str(three_homes), "--to", str(place / "rescued")]
    main(["restore", "--all", "-d", str(three_homes), "--to", str(place / "before")])
    with shut(place, place / "locked"):
        assert as_nobody(lambda: main(arguments)) == 0
    assert (place / "rescued" / PROJECT / f"{OTHER}.jsonl").is_file()


@pytest.mark.parametrize("closed", ["locked", "locked/home"])
def test_the_status_says_which_root_cannot_be_read(
    closed: str, three_homes: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["status", "-d", str(three_homes)]
    main([*arguments, "--json"])
    assert json.loads(capfd.readouterr().out)["unreadable"] == []
    with shut(place, place / closed):
        assert as_nobody(lambda: main([*arguments, "--json"])) == 0
        unreadable = json.loads(capfd.readouterr().out)["unreadable"]
        assert as_nobody(lambda: main(arguments)) == 0
    root = str(place / "locked" / "home")
    assert unreadable == [{"root": root, "reason": "Permission denied"}]
    assert f"Could not read {root}: Permission denied" in capfd.readouterr().out


@pytest.mark.parametrize("closed", ["locked", "locked/home"])
@pytest.mark.parametrize("is_named", [False, True], ids=["remembered", "named"])
def test_a_watch_goes_on_beside_a_root_that_cannot_be_read(
    closed: str, is_named: bool, three_homes: Path, place: Path
) -> None:
    paths = [place / "locked" / "home", Path.home() / ".claude"] if is_named else []
    with shut(place, place / closed):
        told = as_nobody(lambda: watched(three_homes, *paths))
    locked = [line for line in told if "locked" in line]
    assert locked == [f"Could not read {place / 'locked' / 'home'}: Permission denied"]
    assert not [line for line in told if "Retrying" in line]
    assert rows(three_homes, "select count(gone_at) from files") == [(0,)]


def test_a_root_that_can_be_read_again_is_read_by_the_watch_that_named_it(
    three_homes: Path, place: Path
) -> None:
    locked = place / "locked" / "home"
    write(locked, f"{PROJECT}/{OTHER}.jsonl", user("there", "u2"), user("and more", "u5"))
    told: list[str] = []
    stop = Event()

    def tell(news: Report | str) -> None:
        told.append(news if isinstance(news, str) else f"read {news.files_read}")
        locked.parent.chmod(0o700)
        if len(told) == 2:
            stop.set()

    def run() -> list[str]:
        paths = [locked, place / "open"]
        watch(three_homes, paths, WatchOptions(rescan=0.1), stop, tell, opened=Deaf)
        return told

    with shut(place, place / "locked"):
        if os.geteuid() == 0:
            shutil.chown(place / "locked", NOBODY)
        assert as_nobody(run) == ["read 1", "read 1"]


def test_a_home_that_is_named_and_cannot_be_read_is_told_in_one_sentence(
    place: Path, fresh: Fresh, capfd: pytest.CaptureFixture[str]
) -> None:
    write(place / "locked" / "home", TRANSCRIPT, user("there", "u2"))
    arguments = ["sync", str(place / "locked" / "home"), "-d", str(fresh())]
    main(arguments)
    for closed in ("locked", "locked/home", "locked/home/projects"):
        capfd.readouterr()
        with shut(place, place / closed):
            code = as_nobody(lambda: main(arguments))
        err = capfd.readouterr().err
        assert (code, err.count("\n")) == (2, 1), err
        assert "cannot be read: Permission denied" in err
        assert "Make it readable" in err


def test_one_of_several_named_homes_that_cannot_be_read_stops_no_other(
    place: Path, fresh: Fresh, capfd: pytest.CaptureFixture[str]
) -> None:
    write(place / "locked", TRANSCRIPT, user("there", "u2"))
    write(place / "open", f"{PROJECT}/{OTHER}.jsonl", user("here", "u1"))
    database = fresh()
    arguments = ["sync", str(place / "locked"), str(place / "open"), "-d", str(database)]
    main([*arguments, "--dry-run"])
    capfd.readouterr()
    with shut(place, place / "locked"):
        assert as_nobody(lambda: main(arguments)) == 0
        assert as_nobody(lambda: main([*arguments, "--strict"])) == 1
    assert f"Could not read {place / 'locked'}: Permission denied" in capfd.readouterr().err
    assert rows(database, "select text from messages") == [("here",)]
    assert main(arguments) == 0
    assert rows(database, "select count(*) from messages") == [(2,)]


def test_the_only_home_that_cannot_be_read_is_told(
    user_home: Path, place: Path, fresh: Fresh, capfd: pytest.CaptureFixture[str]
) -> None:
    write(user_home / ".claude", TRANSCRIPT, user("there", "u2"))
    arguments = ["sync", "-d", str(fresh())]
    main([*arguments, "--dry-run"])
    for closed in ("", ".claude", ".claude/projects"):
        capfd.readouterr()
        with shut(place, user_home / closed):
            code = as_nobody(lambda: main(arguments))
        err = capfd.readouterr().err
        assert (code, err.count("\n")) == (1, 1), err
        assert f"{user_home / closed}: Permission denied" in err


def test_a_file_system_that_tells_no_types_ends_nothing(
    user_home: Path, fresh: Fresh, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A directory that may be listed and not entered: its names are there, and nothing else."""
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1"))
    database = fresh()
    main(["sync", "-d", str(database)])
    with shut(place, user_home / ".claude" / PROJECT, mode=0o444):
        assert as_nobody(lambda: main(["sync", "--full", "-d", str(database)])) == 0
    assert f"{TRANSCRIPT}: Permission denied" in capfd.readouterr().err
    assert rows(database, "select count(gone_at) from files") == [(0,)]
    asked = []

    class Untyped:
        def __init__(self, entry: os.DirEntry[str]) -> None:
            self._entry = entry

        def __getattr__(self, name: str) -> Any:
            return getattr(self._entry, name)

        def is_symlink(self) -> bool:
            return self._ask()

        def is_dir(self, *, follow_symlinks: bool = True) -> bool:
            return self._ask()

        is_file = is_dir

        def _ask(self) -> bool:
            asked.append(self._entry.path)
            raise PermissionError(errno.EACCES, "Permission denied", self._entry.path)

    listed = walk.entries

    def entries(directory: str, seen: walk.Walk) -> list[Any]:
        is_untyped = directory.endswith(PROJECT)
        return [Untyped(e) if is_untyped else e for e in listed(directory, seen)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "entries", entries)
        assert main(["sync", "--full", "-d", str(database)]) == 0
    assert f"{TRANSCRIPT}: Permission denied" in capfd.readouterr().err
    assert asked
    assert rows(database, "select count(gone_at) from files") == [(0,)]


# -- the environment -------------------------------------------------------------------------------

ENVIRONMENTS: dict[str, dict[str, str | None]] = {
    "a-user-that-is-not": {"CLAUDE_CONFIG_DIR": "~nobody-is-called-so"},
    "and-a-home-beside-it": {"CLAUDE_CONFIG_DIR": "~nobody-is-called-so,{}/user/.claude"},
    "empty-parts": {"CLAUDE_CONFIG_DIR": " ,, ,"},
    "relative": {"CLAUDE_CONFIG_DIR": "user/.claude"},
    "a-file": {"CLAUDE_CONFIG_DIR": "{}/user/file"},
    "below-a-file": {"CLAUDE_CONFIG_DIR": "{}/user/file/x"},
    "too-long": {"CLAUDE_CONFIG_DIR": "x" * 5000},
    "a-loop": {"CLAUDE_CONFIG_DIR": "{}/user/loop"},
    "a-loop-and-on": {"CLAUDE_CONFIG_DIR": "{}/user/loop/x"},
    "no-home": {"HOME": None},
    "an-empty-home": {"HOME": ""},
    "a-relative-home": {"HOME": "user"},
    "a-long-home": {"HOME": "/" + "x" * 5000},
    "a-loop-as-home": {"HOME": "{}/user/loop"},
}


@pytest.mark.slow
@pytest.mark.parametrize("variables", ENVIRONMENTS.values(), ids=list(ENVIRONMENTS))
def test_no_environment_ends_a_command(
    variables: dict[str, str | None],
    user_home: Path,
    place: Path,
    fresh: Fresh,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1"))
    (user_home / "file").touch()
    (user_home / "loop").symlink_to(user_home / "loop")
    database = fresh()
    assert main(["sync", "-d", str(database)]) == 0
    for name, value in variables.items():
        if value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, value.replace("{}", str(place)))
    monkeypatch.setattr("pwd.getpwuid", no_such_user)
    for command in (*COMMANDS, "search here"):
        words = command.replace("TO", str(place / "rescued")).split(" ")
        assert main([*words, "-d", str(database)]) == 0, (command, capsys.readouterr().err)


@pytest.mark.parametrize("command", ["sync", "status", "service install"])
def test_without_a_home_directory_it_is_asked_where_things_lie(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("pwd.getpwuid", no_such_user)
    before = set(Path().iterdir())
    assert main(command.split(" ")) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "HOME" in err
    assert set(Path().iterdir()) == before


def enter_what_is_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "removed").mkdir()
    monkeypatch.chdir(place / "removed")
    (place / "removed").rmdir()


def no_such_user(number: int) -> object:
    raise KeyError(f"getpwuid(): uid not found: {number}")


def test_a_current_directory_that_was_removed_ends_no_command(
    user_home: Path,
    place: Path,
    fresh: Fresh,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1"))
    database = fresh()
    assert main(["sync", "-d", str(database)]) == 0
    enter_what_is_removed(place, monkeypatch)
    for command in (*COMMANDS, "search here", "stats", "compact", "service print"):
        words = command.replace("TO", str(place / "rescued")).split(" ")
        assert main([*words, "-d", str(database)]) == 0, (command, capsys.readouterr().err)


REMOVED = (
    "sync -d x.db", "status -d x.db", "search here -d x.db", "sync home", "list sessions --cwd .",
    "list sessions --project .", "restore --all --to here", "forget --project . --dry-run",
    "forget x --root . --dry-run",
)  # fmt: skip


@pytest.mark.parametrize("command", REMOVED)
def test_what_lies_in_a_removed_directory_is_told_in_one_sentence(
    command: str,
    place: Path,
    fresh: Fresh,
    user_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1"))
    monkeypatch.setenv("ASSOC_INGEST_DB", str(fresh()))
    assert main(["sync"]) == 0
    enter_what_is_removed(place, monkeypatch)
    capsys.readouterr()
    code = main(command.split(" "))
    err = capsys.readouterr().err
    assert code in (0, 1, 2, 4, 5), err
    assert "internal error" not in err


@pytest.mark.parametrize("variable", ["{long}", "loop", "loop/x.db", ".", "", " "])
@pytest.mark.parametrize("command", ["sync", "status", "verify", "rebuild", "search here"])
def test_a_database_that_cannot_be_is_told_in_one_sentence(
    variable: str,
    command: str,
    place: Path,
    user_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(user_home / ".claude", TRANSCRIPT, user("here", "u1"))
    (place / "loop").symlink_to(place / "loop")
    monkeypatch.setenv("ASSOC_INGEST_DB", variable.replace("{long}", "x" * 5000))
    code = main(command.split(" "))
    err = capsys.readouterr().err
    assert code in (0, 1, 2, 4, 5), err
    assert "internal error" not in err
    assert "--db FILE" in err or "-d" in err or code == 0 or "run: assoc-ingest sync" in err, err


def test_places_that_cannot_be_are_looked_at_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"CLAUDE_CONFIG_DIR": "a\0b, ~nobody-is-called-so"}
    roots = default_roots(environment, ["/srv/\0", "x" * 9000, "/nowhere"])
    assert [str(root) for root in roots[:2]] == ["a\0b", "~nobody-is-called-so"]
    assert Path("/nowhere/.chorus") in roots
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", no_such_user)
    assert default_roots({}, ["/nowhere"])[-2:] == [
        Path("/nowhere/.chorus"), Path("/nowhere/.cortex"),
    ]  # fmt: skip
