"""What every test has: a home directory of its own, and nothing of the user's.

`pytest --golden` rewrites the `expected.json` of the golden cases; read the difference.
`HYPOTHESIS_PROFILE=thorough` runs the property tests with many more examples.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from tests.shell import Shell
from tests.writing import in_memory

from assoc_ingest.store.database import writing

_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
_CI = settings(deadline=None, max_examples=60, stateful_step_count=20, suppress_health_check=_QUIET)
settings.register_profile("ci", _CI)
settings.register_profile("thorough", _CI, max_examples=1000, stateful_step_count=40)
settings.register_profile(  # finds soon, and does not spend minutes on the smallest example
    "quick", _CI, max_examples=600, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite the expected.json of all cases")


@pytest.fixture(autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the program's defaults into an empty directory."""
    home = tmp_path_factory.mktemp("user")
    for name in ("HOME", "USERPROFILE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("CLAUDE_CONFIG_DIR", "ASSOC_INGEST_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC0")  # some programs write local times without saying so
    if hasattr(time, "tzset"):
        time.tzset()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty, migrated database: copying it is ten times faster than migrating a new one."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    with writing(path):
        pass
    return path


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
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """The program on a database that is not there yet."""
    database = tmp_path / "assoc.db"
    monkeypatch.setenv("ASSOC_INGEST_DB", str(database))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return Shell(database, capsys)
