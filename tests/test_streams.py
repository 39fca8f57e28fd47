"""Output never shortens work: what a command does, it does, whoever reads what it prints.

Standard streams may be closed, full or no longer read. That is no bug of the program, nothing is
written where they were, and no command ends before its work is done.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.child import Child
from tests.support.reading import index
from tests.support.writing import OTHER, PROJECT, SESSION, THIRD, TRANSCRIPT, in_memory, user, write
from tests.test_every_command import COMMANDS, LISTS, QUERIES
from tests.test_forget import PASTE, forgotten, private_home, traces
from tests.test_watch import append, texts, wait_until

from assoc_ingest import __main__ as program
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, dump

FULL = "/dev/full"
pytestmark = pytest.mark.skipif(not Path(FULL).exists(), reason="needs a device that is full")

CLOSED, UNREAD = "closed", "a pipe that nobody reads"
Streams = Mapping[int, str]
"""What some of the descriptors 0 to 2 lead to."""

SURROUNDINGS: dict[str, Streams] = {
    "nobody reads": {1: UNREAD, 2: UNREAD},
    "all full": {1: FULL, 2: FULL},
    "words full": {2: FULL},
    "words closed": {2: CLOSED},
    "all closed": {0: CLOSED, 1: CLOSED, 2: CLOSED},
}


def lead(streams: Streams) -> None:
    """Let the standard streams of this process, which is a child, lead there."""
    for number in range(3):
        target = streams.get(number, os.devnull)
        if target == CLOSED:
            os.close(number)
        elif target == UNREAD:
            reading, writing = os.pipe()
            os.dup2(writing, number)
            os.close(reading)
            os.close(writing)
        elif Path(target).is_absolute():
            os.dup2(os.open(target, os.O_RDWR | os.O_CREAT), number)
    sys.stdin = sys.__stdin__ = _opened(0, "r", streams)
    sys.stdout = sys.__stdout__ = _opened(1, "w", streams)
    sys.stderr = sys.__stderr__ = _opened(2, "w", streams)


def _opened(number: int, mode: str, streams: Streams) -> object:
    """Return the stream as Python opens it: line by line, as if much had been printed before."""
    if streams.get(number) == CLOSED:
        return None
    return open(number, mode, buffering=1, closefd=False)


def run(arguments: list[str], streams: Streams, environment: Mapping[str, str]) -> int:
    """Run the program in a child with these streams; return its exit code."""

    def led() -> int:
        os.environ.update(environment)
        lead(streams)
        return program.main(arguments)

    code = Child(led).result()
    assert isinstance(code, int), code
    return code


# -- commands that change something --------------------------------------------------------------


class Outcome(NamedTuple):
    """What a command printed, and what it left behind."""

    code: int
    is_printed: bool
    left: tuple[object, ...]
    """The tables, where traces of the secret are, and the files that were written."""


class Situation:
    """A home, a database of it, and a place for what commands write beside it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.home = private_home(place / "home")
        self.before = place / "before.db"
        write(self.home, f"{PROJECT}/gone.jsonl", user("soon gone", "g1"))
        sync(self.before, [self.home])
        (self.home / PROJECT / "gone.jsonl").unlink()
        sync(self.before, [])
        self.after_forgetting = Path(shutil.copy(self.before, place / "forgotten.db"))
        forgotten(self.after_forgetting)
        append(self.home / PROJECT / f"{OTHER}.jsonl", "new")
        write(self.home, f"{PROJECT}/{THIRD}.jsonl", b"not to be understood")
        self._number = 0

    def code(self, line: str, streams: Streams | None = None) -> int:
        """Run a command on a copy of the database; without streams, all is printed."""
        code, _ = self._run(line, streams)
        return code

    def outcome(self, line: str, streams: Streams | None = None) -> Outcome:
        code, place = self._run(line, streams)
        database, printed = place / "assoc.db", place / "printed"
        check(database)
        written = {
            str(path.relative_to(place)): path.read_bytes().replace(str(place).encode(), b"")
            for directory in ("out", "config")
            for path in (place / directory).rglob("*")
            if path.is_file()
        }
        is_printed = printed.exists() and printed.stat().st_size > 0
        return Outcome(code, is_printed, (dump(database), traces(database), written))

    def _run(self, line: str, streams: Streams | None) -> tuple[int, Path]:
        self._number += 1
        place = self._place / str(self._number)
        place.mkdir()
        first = self.after_forgetting if "--remember" in line else self.before
        database = Path(shutil.copy(first, place / "assoc.db"))
        out, config = place / "out", place / "config"
        arguments = line.replace("OUT", str(out)).replace("HOME", str(self.home)).split()
        environment = {"XDG_CONFIG_HOME": str(config), "PATH": "", "ASSOC_INGEST_DB": str(database)}
        printed = {1: str(place / "printed")}
        return run(arguments, printed if streams is None else streams, environment), place


CHANGING = (
    "sync --json", "sync HOME --strict", "prune --gone", "compact --json", "rebuild --json",
    f"forget {SESSION} --json", f"forget {PASTE}", f"forget --remember {SESSION}",
    "restore --all --to OUT", "service install --kind systemd",
)  # fmt: skip

SAME = ("compact", "rebuild")
"""Commands that leave the tables as they were."""


@pytest.fixture(scope="module")
def situation() -> Iterator[Situation]:
    with tempfile.TemporaryDirectory(prefix="assoc-ingest-", dir=in_memory()) as directory:
        yield Situation(Path(directory))


@pytest.mark.slow
@pytest.mark.parametrize("line", CHANGING)
def test_all_is_done_whoever_reads_what_is_printed(line: str, situation: Situation) -> None:
    expected = situation.outcome(line)
    assert expected.code == (1 if "--strict" in line else 0)
    assert expected.left != situation.outcome("status").left or line.startswith(SAME), "no work"
    for name, streams in SURROUNDINGS.items():
        outcome = situation.outcome(line, streams)
        is_lost = streams.get(1) == FULL and expected.is_printed
        assert outcome.code == (expected.code or (5 if is_lost else 0)), name
        assert outcome.left == expected.left, name


# -- every command -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        *(pytest.param(line, marks=pytest.mark.slow) for line in COMMANDS[: -len(LISTS + QUERIES)]),
        LISTS[0],
        pytest.param(QUERIES[0], marks=pytest.mark.slow),
    ],
)
def test_no_stream_makes_a_command_fail(line: str, situation: Situation) -> None:
    """It ends with the code that it has otherwise, or says that its output is lost."""
    usual = situation.code(line)
    assert usual in (0, 1)
    for name in ("all full", "nobody reads", "all closed"):
        code = situation.code(line, SURROUNDINGS[name])
        assert code in ((usual, 5) if name == "all full" else (usual,)), name


def test_what_a_disk_did_not_take_is_told_in_one_sentence(situation: Situation) -> None:
    words = situation.home.parent / "words"
    assert run(["--help"], {1: FULL, 2: str(words)}, {}) == 5
    assert words.read_text().count("\n") == 1
    assert words.read_text().startswith("Error: Some output was lost")
    assert "Everything else was completed." in words.read_text()


# -- as a process --------------------------------------------------------------------------------


def start(
    database: Path, line: str, redirected: str = "", stdout: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start the program by way of a shell, which can close what Python would open."""
    path = str(Path(program.__file__).parents[1])
    command = f'exec "$0" -m assoc_ingest {line} {redirected}'
    return subprocess.Popen(
        ["/bin/sh", "-c", command, sys.executable],
        env={**os.environ, "ASSOC_INGEST_DB": str(database), "PYTHONPATH": path},
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("redirected", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_nothing_is_printed_into_the_database(
    redirected: str, situation: Situation, tmp_path: Path
) -> None:
    """The files that are opened first get the numbers of closed streams."""
    database = Path(shutil.copy(situation.before, tmp_path / "assoc.db"))
    process = start(database, f"forget {SESSION} --json", redirected)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in out + err
    for path in tmp_path.iterdir():
        assert b"untouched" not in path.read_bytes(), path.name
        assert b'"conversations"' not in path.read_bytes(), path.name
    check(database)
    assert traces(database) == []


@pytest.mark.slow
def test_a_watch_goes_on_when_nobody_reads_its_log(tmp_path: Path, place: Path) -> None:
    home, database = place / "home", tmp_path / "assoc.db"
    write(home, TRANSCRIPT, user("here", "u1"))
    process = start(database, f"watch {home} --rescan 0.2 --log-json")
    assert process.stdout
    assert process.stderr
    try:
        assert process.stdout.readline()
        process.stdout.close()
        process.stderr.close()
        for text in ("first", "second", "third"):
            append(home / TRANSCRIPT, text)
            wait_until(lambda text=text: text in texts(database))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_pipe_that_does_not_wait_gets_all_of_it(tmp_path: Path) -> None:
    """Another program may have made a pipe or a terminal that it shares non-blocking."""
    fcntl = pytest.importorskip("fcntl")
    database = tmp_path / "assoc.db"
    with index(database) as rows:
        _, file = rows.session(SESSION, None, title="Long")
        for _ in range(200):
            rows.message(file, "text", "line\n" * 100)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    size = fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ)
    process = start(database, f"show {SESSION}", stdout=writing)
    os.close(writing)
    wait_until(lambda: _waiting(reading) > size - 4096)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
    assert data.count(b"line\n") == 20000


def _waiting(reading: int) -> int:
    """Return how many bytes wait in a pipe."""
    import fcntl
    import termios

    answer = fcntl.ioctl(reading, termios.FIONREAD, b"\0\0\0\0")
    return int.from_bytes(answer, sys.byteorder)
