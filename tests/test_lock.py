"""One process at a time holds a lock file, however it ends, and whoever removes the file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from assoc_ingest import lock
from assoc_ingest.errors import BusyError
from assoc_ingest.lock import file_lock

HOLDER = """
import sys
from pathlib import Path
from assoc_ingest.lock import file_lock
with file_lock(Path(sys.argv[1]), lambda: "held"):
    print("taken", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process hold the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    with process:
        assert process.stdout.readline() == b"taken\n"
        yield process
        process.stdin.close()


def take(path: Path, patience: float = 0) -> None:
    with file_lock(path, lambda: f"held by {path.read_text()}", patience):
        assert path.read_text() == f"{os.getpid()}\n"


def test_another_process_waits_until_the_first_one_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_text("a number that is much longer than the id of a process\n")
    with holder(path) as process, pytest.raises(BusyError, match=f"^held by {process.pid}\n$"):
        take(path, patience=0.1)
    take(path)


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with holder(tmp_path / "x.lock") as process:
        process.kill()
        process.wait()
        take(tmp_path / "x.lock")


def test_a_lock_whose_file_was_removed_protects_nothing_and_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with holder(path):
        path.unlink()
        take(path)
        with file_lock(path, str), pytest.raises(BusyError):
            take(path)


def test_a_file_that_is_removed_while_the_lock_is_taken_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, switch, removed = tmp_path / "x.lock", lock._switch, []

    def remove_once(descriptor: int, how: int) -> None:
        switch(descriptor, how)
        if not removed:
            removed.append(path.unlink())

    monkeypatch.setattr(lock, "_switch", remove_once)
    take(path)
    assert removed
    assert path.exists()


def on_windows(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, list[tuple[int, int, int]]]:
    """Return the module as Windows imports it, and what it asks of the system."""
    asked: list[tuple[int, int, int]] = []

    def locking(descriptor: int, how: int, count: int) -> None:
        asked.append((os.lseek(descriptor, 0, os.SEEK_CUR), how, count))

    system = SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
    monkeypatch.setitem(sys.modules, "msvcrt", system)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "platform", "win32")
    spec = spec_from_file_location("assoc_ingest.lock", lock.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, asked


def test_windows_locks_the_first_byte_and_releases_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, asked = on_windows(monkeypatch)
    with module.file_lock(tmp_path / "x.lock", str):
        assert asked == [(0, 2, 1)]
    assert asked == [(0, 2, 1), (0, 0, 1)]
