"""What every test has: a home directory of its own, and nothing of the user's.

`pytest` leaves out what is marked `slow`; `pytest --all` runs everything, as does naming a file.
`pytest --golden` rewrites the `expected.json` of the golden cases; read the difference.
`HYPOTHESIS_PROFILE=thorough` runs the property tests with many more examples.
"""

from __future__ import annotations

import ast
import gc
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from hypothesis import HealthCheck, settings
from tests.support.served import closed_at_end
from tests.support.shell import Shell
from tests.support.writing import in_memory

from assoc_ingest import sql
from assoc_ingest.files.walk import variables_of_roots
from assoc_ingest.store import changes, database
from assoc_ingest.store.database import writing
from assoc_ingest.sync import prices
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import Ask, check, connect
from assoc_ingest.workers import FAILED, _Worker, _WorkerDiedError

sys.dont_write_bytecode = False  # else each process compiles all modules and tests anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if _memory := in_memory(4000):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _memory)

gc.disable()  # until all modules are there, see pytest_collection_finish

prices.library_prices = cache(lambda model, of=prices.library_prices: list(of(model)))
"""Looking for a model among all others takes longer than reading a small home."""

_ROOT = Path(__file__).parents[1]
_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
_ALL = settings(
    deadline=None, max_examples=40, stateful_step_count=20, suppress_health_check=_QUIET
)
settings.register_profile("few", _ALL, max_examples=12)  # of a run without `--all`
settings.register_profile("all", _ALL)
settings.register_profile("thorough", _ALL, max_examples=1000, stateful_step_count=40)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite the expected.json of all cases")
    parser.addoption("--all", action="store_true", help="run the tests that are marked slow, too")


def pytest_configure(config: pytest.Config) -> None:
    is_all = _is_all(config)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "all" if is_all else "few"))


def _is_all(config: pytest.Config) -> bool:
    """Say whether slow tests are run: with `--all`, and where marks, files or tests are named."""
    is_asked = config.getoption("--all") or config.getoption("-m")
    return bool(is_asked) or any(".py" in name for name in config.args)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _is_all(config):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def pytest_collection_finish() -> None:
    """Modules and tests stay: no collector of garbage has to look at them again and again."""
    gc.freeze()
    gc.enable()


_MIGRATING = {"test_building", "test_migrations", "test_schema", "test_store"}
"""Files that ask how a database is made; with them tests/faults."""

_GUARDED = {
    "test_changes", "test_compact", "test_damaged_pages", "test_forget", "test_forget_secrets",
    "test_git", "test_moves_and_generations", "test_prune", "test_pull", "test_rebuild",
}  # fmt: skip
"""Files in which every write outside of a transaction is an error; elsewhere it would take time."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Begin with the promises that are broken: a file of tests says first what it guards."""
    broken = {
        report.nodeid.split("::")[0]: None
        for outcome in ("failed", "error")
        for report in terminalreporter.stats.get(outcome, ())
    }
    for file in broken:
        with suppress(SyntaxError, FileNotFoundError):  # a worker that fails is no file
            text = ast.get_docstring(ast.parse((_ROOT / file).read_text("utf-8"))) or ""
            promise = " ".join(text.split(chr(10) * 2)[0].split())
            terminalreporter.write_line(f"BROKEN: {promise} ({file})")
    yield
    if terminalreporter.verbosity < -1:  # pytest itself leaves the counts out
        parts, _ = terminalreporter.build_summary_stats_line()
        terminalreporter.write_line(", ".join(text for text, _ in parts))


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Point the program's defaults into an empty directory."""
    home = tempfile.mkdtemp(prefix="assoc-ingest-", dir=in_memory())
    for name in ("HOME", "USERPROFILE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, home)
    for name in ("ASSOC_INGEST_DB", *variables_of_roots(os.environ)):
        if not name.startswith("XDG_"):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC0")  # some programs write local times without saying so
    if hasattr(time, "tzset"):
        time.tzset()
    yield
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(autouse=True, scope="module")
def _servers_are_closed() -> Iterator[None]:
    with closed_at_end():
        yield


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty, migrated database: copying it is ten times faster than migrating a new one."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    with writing(path):
        pass
    return path


@pytest.fixture(scope="session")
def _blank(
    template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sqlite3.Connection]:
    """The template, in the one journal mode from which any database can be filled."""
    path = shutil.copy(template, tmp_path_factory.mktemp("blank") / "blank.db")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.execute("pragma journal_mode = delete")
        yield connection


@pytest.fixture(autouse=True)
def _migrated_once(
    request: pytest.FixtureRequest, _blank: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fill new databases from one that is migrated: migrating takes longer than most syncs."""

    def fill_with(
        migrate: Callable[[sqlite3.Connection], None], connection: sqlite3.Connection
    ) -> None:
        if connection.execute("select 1 from sqlite_master").fetchone():
            migrate(connection)
        else:
            _blank.backup(connection)

    if request.path.stem not in _MIGRATING and request.path.parent.name != "faults":
        for module, name in ((database, "_migrate"), (sql, "migrate")):
            monkeypatch.setattr(module, name, partial(fill_with, getattr(module, name)))


@pytest.fixture(autouse=True)
def _all_writes_are_noted(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Refuse writes outside of transactions: nobody would note what they change."""
    writes = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
    watched = {*changes.PLACED, *changes.KEYED, "files"}
    open_writer = database.open_writer
    refused: list[str | None] = []

    def open_and_guard(*given: Any) -> sqlite3.Connection:
        connection = open_writer(*given)

        def judge(action: int, table: str | None, *_: str | None) -> int:
            if action in writes and table in watched and not connection.in_transaction:
                refused.append(table)
                return sqlite3.SQLITE_DENY
            return sqlite3.SQLITE_OK

        connection.set_authorizer(judge)
        return connection

    if request.path.stem in _GUARDED:
        monkeypatch.setattr(database, "open_writer", open_and_guard)
    yield
    assert refused == [], "written outside of a transaction"


@pytest.fixture(autouse=True)
def _no_worker_fails(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test in which a worker failed. Nothing else shows it: the writer does its job again.

    Some tests let one fail: `@pytest.mark.workers_fail`.
    """
    failures: list[str] = []
    ended: WeakSet[_Worker] = WeakSet()
    kill, receive = _Worker.kill, _Worker._next

    def note_end(worker: _Worker) -> None:
        ended.add(worker)
        kill(worker)

    def note_failure(worker: _Worker) -> tuple[bytes, bytes]:
        try:
            tag, data = receive(worker)
        except _WorkerDiedError:
            if worker not in ended:
                failures.append("died")
            raise
        if tag == FAILED:
            failures.append(data.decode())
        return tag, data

    monkeypatch.setattr(_Worker, "kill", note_end)
    monkeypatch.setattr(_Worker, "_next", note_failure)
    yield
    if request.node.get_closest_marker("workers_fail") is None:
        assert failures == [], "workers failed"


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory in memory, where there is room: a thousand syncs wait for no disk."""
    with tempfile.TemporaryDirectory(prefix="assoc-ingest-", dir=in_memory()) as directory:
        yield Path(directory)


@pytest.fixture
def fresh(template: Path, place: Path) -> Callable[[], Path]:
    """Makes empty databases."""
    made = 0

    def make() -> Path:
        nonlocal made
        made += 1
        return Path(shutil.copy(template, place / f"fresh-{made}.db"))

    return make


@pytest.fixture
def home(place: Path) -> Path:
    """Where a test writes what it syncs; it is not there yet."""
    return place / "home"


@pytest.fixture
def ask(fresh: Callable[[], Path], home: Path) -> Ask:
    """Syncs the home and returns the rows of a query."""
    database = fresh()

    def run(query: str) -> list[tuple[Any, ...]]:
        sync(database, [home])
        check(database, home)
        with closing(connect(database)) as connection:
            return [tuple(row) for row in connection.execute(query)]

    return run


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """The program on a database that is not there yet."""
    path = tmp_path / "assoc.db"
    monkeypatch.setenv("ASSOC_INGEST_DB", str(path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return Shell(path, capsys)
