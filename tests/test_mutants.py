"""Tests see what a change breaks: bugs are planted, and a diff leads to the tests of its area."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests import changed, mutants
from tests.mutants import ROOT, Mutant, files_with, package_of, sources

from assoc_ingest import git

LISTED = mutants.listed()
PLACES = {mutant: files_with(mutant.old, texts) for texts in [sources(ROOT)] for mutant in LISTED}
needs_git = pytest.mark.skipif(not git.is_installed(), reason="git is not installed")


# -- the list -------------------------------------------------------------------------------------


def test_every_bug_can_be_planted_in_one_place() -> None:
    assert {str(mutant): files for mutant, files in PLACES.items() if len(files) != 1} == {}
    for mutant, (file,) in PLACES.items():
        assert mutant.new != mutant.old
        text = file.read_text("utf-8").replace(mutant.old, mutant.new)
        if file.suffix == ".py":
            ast.parse(text)


def test_every_test_that_should_notice_a_bug_is_there() -> None:
    for mutant in LISTED:
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert (ROOT / file).is_file(), mutant
            assert f"def {name}" in (ROOT / file).read_text("utf-8"), mutant


def test_every_package_has_three_bugs() -> None:
    counts = Counter(package_of(file, ROOT) for files in PLACES.values() for file in files)
    packages = {package_of(file, ROOT) for file in (ROOT / changed.PACKAGE).rglob("*.py")}
    packages.remove("testing")  # what finds the bugs of sources
    assert {package: counts[package] for package in packages if counts[package] < 3} == {}


# -- the runner -----------------------------------------------------------------------------------

_TESTS = """
import pytest
from assoc_ingest.lists import first, last, most
def test_first(): assert first([1, 2]) == 1
@pytest.mark.slow
def test_last(): assert last([1, 2]) == 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with three functions, of which one has no test."""
    for name, text in {
        "ingest/assoc_ingest/__init__.py": "",
        "ingest/assoc_ingest/lists.py": "def first(x): return x[0]\n"
        "def last(x): return x[-1]\ndef most(x): return max(x)\n",
        "tests/test_lists.py": _TESTS,
        "tests/test_broken.py": "def test_none(): assert not 'never right'\n",
        "pytest.ini": "[pytest]\nmarkers =\n  slow: not by default\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.slow
@needs_git
def test_a_bug_is_noticed_by_default_by_slow_tests_or_not_at_all(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take long to load
    before = (project / "ingest/assoc_ingest/lists.py").read_bytes()

    def planted(old: str, new: str, test: str = "tests/test_lists.py") -> Mutant:
        return Mutant("a test", old, new, (test,))

    verdicts = mutants.all_tried(
        [
            planted("return x[0]", "return x[1]"),
            planted("return x[-1]", "return x[0]"),
            planted("return max(x)", "return min(x)"),
            planted("return max(x)", "return sum(x)", "tests/test_broken.py"),
            planted("return", "return None or"),
        ],
        1,
        project,
    )
    assert [(one.package, one.part, one.test.partition("::")[2]) for one in verdicts] == [
        ("root", "default", "test_first"),
        ("root", "slow", "test_last"),
        ("root", "", ""),
        ("root", "", "test_none"),
        ("?", "", ""),
    ]
    said = mutants.report(verdicts).splitlines()
    assert said[1].split() == ["?", "1", "0", "0"]
    assert said[2].split() == ["root", "4", "1", "2"]
    assert [line.rpartition("| ")[2] for line in said[-3:]] == [
        "NOT NOTICED",
        "fails without a bug, too: tests/test_broken.py::test_none",
        "applies 3 times",
    ]
    assert (project / "ingest/assoc_ingest/lists.py").read_bytes() == before


# -- what a diff can break ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_diff_leads_to_the_tests_that_notice_bugs_in_it() -> None:
    """Where it is not said that everything runs."""
    missed = {}
    for mutant, files in PLACES.items():
        choice = changed.chosen(file.relative_to(ROOT).as_posix() for file in files)
        noticing = {test.partition("::")[0] for test in mutant.tests[:1]}
        if not choice.reason and noticing - choice.usual:
            missed[str(mutant)] = noticing
    assert missed == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("tests/test_when.py", {"tests/test_when.py"}),
        ("tests/support/served.py", {"tests/test_serve.py", "tests/test_web_guard.py"}),
        ("queries/reports/usage_by_session.sql", {"tests/test_usage.py"}),
        ("queries/pages/project.sql", {"tests/test_web_pages.py"}),
        ("metadata.yml", {"tests/test_metadata.py"}),
        ("docs/search.md", {"tests/test_docs.py"}),
        ("tests/sources/pi/branches/home/x.jsonl", {"tests/test_golden.py", "tests/test_pi.py"}),
        ("ingest/assoc_ingest/web/static/assoc.css", set()),
    ],
)
def test_what_is_no_module_leads_to_tests_too(file: str, tests: set[str]) -> None:
    choice = changed.chosen([file])
    assert choice.reason or tests <= choice.usual, sorted(choice.usual)


@pytest.mark.slow
def test_a_change_that_reaches_few_tests_runs_few() -> None:
    for file in ("mcp/setup.py", "web/usage.py", "fleet/pull.py", "commands/fleet.py"):
        assert len(changed.chosen([changed.PACKAGE + file]).usual) < 40, file


@pytest.mark.slow
def test_everything_runs_where_nothing_tells_what_may_break() -> None:
    for file in ("tests/conftest.py", "pyproject.toml", "schema/0001_initial.sql"):
        assert changed.chosen(["tests/test_when.py", file]).reason, file
    assert not changed.chosen(["tests/test_when.py"]).reason


@needs_git
def test_a_diff_has_commits_of_the_branch_and_what_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed, "ROOT", tmp_path)

    def run(*arguments: str) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def write(name: str, text: str = "") -> None:
        (tmp_path / name).write_text(text)
        run("add", name)

    run("init", "-q", "-b", "main")
    write("old")
    write("same")
    run("commit", "-q", "-m", "first")
    run("checkout", "-q", "-b", "branch")
    write("committed")
    run("commit", "-q", "-m", "second")
    write("staged")
    (tmp_path / "old").write_text("changed")
    (tmp_path / "new").write_text("")
    assert sorted(changed.differing("main")) == ["committed", "new", "old", "staged"]
    assert sorted(changed.differing("HEAD")) == ["new", "old", "staged"]
