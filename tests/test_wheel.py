"""The wheel is whole: installed somewhere else, the program finds all that it needs.

The checkout is on pytest's path and would hide a wheel that lacks a file, so these tests run the
installed program, from another directory. It borrows the libraries of the environment in which
the tests run. `ASSOC_INGEST_PROGRAM` names an installed program to test instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SESSION = "0b7c2f4e-1111-4222-8333-444455556666"
LINE = {
    "type": "user",
    "uuid": "9a41",
    "parentUuid": None,
    "isSidechain": False,
    "sessionId": SESSION,
    "cwd": "/srv/demo",
    "version": "2.1.219",
    "timestamp": "2026-07-02T09:14:03.118Z",
    "message": {"role": "user", "content": "rename the marmalade button"},
}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel. No network: the build runs with the hatchling that is installed."""
    out = tmp_path_factory.mktemp("dist")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(ROOT))
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, installed from the wheel into an environment without our checkout."""
    if named := os.environ.get("ASSOC_INGEST_PROGRAM"):
        return Path(named)
    place = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    scripts = place / ("Scripts" if os.name == "nt" else "bin")
    pip("--python", str(scripts / "python"), "install", "--no-deps", "--no-index", str(wheel))
    packages, *_ = place.glob("**/site-packages")
    # Behind our own packages, and without its .pth files: an editable install stays unseen.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts / "assoc-ingest"


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    """Runs the installed program in an empty directory."""

    def run_program(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {key: os.environ[key] for key in os.environ if not key.startswith("PYTHON")}
        return subprocess.run(
            [program, *arguments],
            cwd=tmp_path,
            env={**environment, "ASSOC_INGEST_DB": str(tmp_path / "assoc.db")},
            capture_output=True,
            text=True,
        )

    return run_program


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="README is about POSIX shells")
def test_what_the_readme_says_installs_the_program_and_reads_what_is_there(tmp_path: Path) -> None:
    """As it stands there, but for the libraries, which it borrows."""
    (line,) = re.findall("^python3 .*pip install \\. && .*sync$", README, re.M)
    left_out = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "tests", "benchmarks")
    checkout = shutil.copytree(ROOT, tmp_path / "checkout", ignore=left_out)
    home = tmp_path / "home"
    (home / ".claude/projects/-srv-demo").mkdir(parents=True)
    (home / f".claude/projects/-srv-demo/{SESSION}.jsonl").write_text(json.dumps(LINE) + "\n")
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0",  # which means no
    }  # fmt: skip
    done = subprocess.run(line, shell=True, cwd=checkout, env=environment, capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Read 1 of 1 file" in done.stderr


def test_the_wheel_holds_schema_queries_metadata_and_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("schema", "queries"):
        paths = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.sql")}
        assert paths
        assert {f"assoc_ingest/_data/{path}" for path in paths} <= set(names)
    assert {"assoc_ingest/_data/metadata.yml", "assoc_ingest/_data/prices.json"} <= set(names)
    for folder in ("views", "web/templates", "web/static"):
        beside = {path.name for path in (ROOT / "ingest/assoc_ingest" / folder).iterdir()}
        assert {f"assoc_ingest/{folder}/{name}" for name in beside} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    source = ROOT / "ingest"
    modules = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    assert modules <= set(names)
    others = {name for name in names if "/_data/" not in name and ".dist-info/" not in name}
    assert {name for name in others if name.endswith(".py")} == modules
    assert all(name.startswith("assoc_ingest/") for name in others)


def test_the_installed_program_syncs_and_searches(run: Run, tmp_path: Path) -> None:
    project = tmp_path / "home" / "projects" / "-srv-demo"
    project.mkdir(parents=True)
    (project / f"{SESSION}.jsonl").write_text(json.dumps(LINE) + "\n")

    synced = run("sync", "home", "--json")
    assert synced.returncode == 0, synced.stderr
    assert json.loads(synced.stdout)["rows"] == 1

    found = run("search", "marmalade", "--json")
    assert found.returncode == 0, found.stderr
    (hit,) = json.loads(found.stdout)["items"]
    assert hit["session_key"] == SESSION

    assert run("search", "asparagus").returncode == 1
    for command in (("list", "sessions"), ("query", "tool_use"), ("show", SESSION)):
        ran = run(*command)
        assert ran.returncode == 0, ran.stderr


def test_the_installed_program_finds_its_queries(run: Run) -> None:
    listed = run("query", "--json")
    assert listed.returncode == 0, listed.stderr
    names = {query["name"] for query in json.loads(listed.stdout)["items"]}
    assert names == {path.stem for path in (ROOT / "queries" / "reports").glob("*.sql")}


def test_the_installed_program_knows_its_version(run: Run) -> None:
    version = run("--version").stdout
    assert version.startswith("assoc-ingest ")
    assert version.split()[1][0].isdigit()
