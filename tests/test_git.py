"""`sync --git` asks git about projects on this disk, and nothing in them can start a program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from assoc_ingest import git

pytestmark = pytest.mark.skipif(not git.is_installed(), reason="git is not installed")


def run(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", directory, *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run(tmp_path, "init", "-b", "trunk")
    (tmp_path / "a.txt").write_text("one\n")
    run(tmp_path, "add", ".")
    run(tmp_path, "commit", "-m", "first")
    return tmp_path


def test_a_clean_repository_has_a_branch(repository: Path) -> None:
    assert git.look_at(str(repository)) == git.GitFacts("trunk", is_dirty=False)


def test_a_changed_and_a_new_file_make_it_dirty(repository: Path) -> None:
    (repository / "new.txt").write_text("two\n")
    assert git.look_at(str(repository)) == git.GitFacts("trunk", is_dirty=True)


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    run(repository, "checkout", "--detach")
    assert git.look_at(str(repository)) == git.GitFacts(None, is_dirty=False)


def test_a_directory_without_repository_says_nothing(tmp_path: Path) -> None:
    assert git.look_at(str(tmp_path)) is None


def test_a_hostile_configuration_starts_nothing(repository: Path, tmp_path: Path) -> None:
    witness = tmp_path / "started"
    run(repository, "config", "core.fsmonitor", f"touch {witness}")
    assert git.look_at(str(repository)) is not None
    assert not witness.exists()
