"""The documents tell the truth: the program printed what they show, and nothing is left out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.comments import tables
from docs.pictures import FOLDER, PICTURES

from assoc_ingest import sql
from assoc_ingest.cli import commands

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
FOLDERS = "ingest|schema|queries|tests|docs|benchmarks"
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_the_printed_pages_are_current() -> None:
    """If not: make docs."""
    command = [sys.executable, "-m", "cogapp", "--check", "--diff", "-I", ".", "@docs/pages.txt"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_help_of_every_command_is_on_its_page() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert [name for name in commands() if f"[`{name}`](#{name})" not in page] == []
    assert [name for name in commands() if f"$ assoc-ingest {name} --help" not in page] == []


def test_every_page_is_linked_from_the_readme() -> None:
    pages = [path.name for path in ROOT.glob("docs/*.md")]
    assert [name for name in pages if f"](docs/{name})" not in README] == []


def test_the_readme_is_short() -> None:
    """What is longer is a page of its own, by task."""
    assert README.count("\n") <= 160


def test_every_picture_is_taken_by_a_script_and_shown_somewhere() -> None:
    """If not: make pictures."""
    text = "".join(path.read_text("utf-8") for path in DOCUMENTS)
    shown = set(re.findall(r"images/([\w-]+)\.png", text))
    assert shown == PICTURES.keys() == {path.stem for path in FOLDER.iterdir()}


def test_every_query_is_described() -> None:
    page = (ROOT / "docs" / "queries.md").read_text("utf-8")
    queries = [query for folder in sql.FOLDERS for query in sql.queries(folder).values()]
    links = {query.path: f"\n| [{query.stem}](../queries/{query.file}) |" for query in queries}
    assert [path for path, link in links.items() if link not in page] == []
    headings = re.findall("^## (.*)", page, re.M)
    assert headings[: len(sql.GROUPS)] == list(sql.GROUPS.values())


def test_every_table_is_described() -> None:
    page = (ROOT / "docs" / "schema.md").read_text("utf-8")
    assert [name for name in tables() if f"\n## {name}\n" not in page] == []


def test_every_command_that_a_document_shows_exists() -> None:
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        shown = re.findall(r"^(?:\$ )?(?:\S*/)?assoc-ingest ([a-z]+)", text, re.M)
        shown += re.findall(r"`assoc-ingest ([a-z]+)", text)
        assert set(shown) <= set(commands()), path.name


def test_every_target_of_make_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for path in DOCUMENTS:
        named = re.findall(r"`make ([a-z-]+)`", path.read_text("utf-8"))
        assert set(named) <= targets, path.name


def test_every_link_between_documents_leads_somewhere() -> None:
    for path in DOCUMENTS:
        text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_file_and_module_that_a_document_names_is_there() -> None:
    for name in ("README", "ARCHITECTURE", "CONTRIBUTING"):
        text = (ROOT / f"{name}.md").read_text("utf-8")
        paths = set(re.findall(rf"`((?:{FOLDERS})/[\w/.-]*)`", text))
        assert [path for path in paths if not (ROOT / path).exists()] == [], name
        modules = set(re.findall(r"`(\w+)\.py`", text))
        known = {
            path.stem
            for folder in ("ingest", "docs", "tests", "benchmarks")
            for path in (ROOT / folder).rglob("*.py")
        }
        assert modules <= known, name


def test_every_test_that_a_page_names_exists() -> None:
    for path in DOCUMENTS:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", path.read_text("utf-8"))
        assert named or path.name != "promises.md"
        for file, test in named:
            there = (ROOT / file).read_text("utf-8") if (ROOT / file).exists() else None
            assert there is not None, f"{path.name}: {file}"
            assert not test or f"def {test}(" in there, f"{path.name}: {file}::{test}"


def test_every_fault_test_shows_a_promise() -> None:
    page = (ROOT / "docs" / "promises.md").read_text("utf-8")
    for path in ROOT.glob("tests/faults/test_*.py"):
        assert f"`tests/faults/{path.name}::" in page, path.name


def test_the_checks_run_the_tests_of_the_readme_and_then_all_others() -> None:
    checks = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "pytest -n auto\n" in README
    assert 'pytest" -n auto ||' in checks
    assert 'pytest" -n auto --all -m "slow or hypothesis" --ignore tests/test_wheel.py ||' in checks
    assert 'pytest" -q tests/test_wheel.py' in checks  # once, with the wheel that it makes
