"""Runs the tests that a diff can break: `make changed`, or `make changed BASE=HEAD`.

What can break is what leads to a changed file: a test names what it imports, the fixtures and the
commands it uses and the queries and sources it calls by name; a module names what it imports and
the queries it runs. All of that is read off the code, as it is now.

Of the tests from which any way leads to the diff, those run that `pytest` runs by default. Slow
ones run, too, where no test is nearer to the change. What many ways lead through without using it
is no way: the list of sources leads to no source, the list of commands to no command.
"""

from __future__ import annotations

import argparse
import ast
import gc
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "ingest/assoc_ingest/"
_LISTS = {f"{PACKAGE}cli.py", f"{PACKAGE}sources/__init__.py"}
"""Modules that import everything of a kind, of which their users use little."""

_PROGRAM = {f"{PACKAGE}cli.py", f"{PACKAGE}__main__.py"}
"""What runs commands, of those of which the names stand beside it."""

_EVERYTHING = ("tests/conftest.py", "pyproject.toml", "Makefile", "schema/0", "schema/new/")
"""Where a change may break any test."""

_word = re.compile("[a-z_]+")
_NEAR = 40  # test files of which slow tests run
_NOTHING_RAN = 5  # exit code of pytest


# -- what a file names -----------------------------------------------------------------------------


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text("utf-8"))


@cache
def _nodes(file: str) -> list[ast.AST]:
    return list(ast.walk(_tree(file)))


@cache
def _files() -> set[str]:
    """All modules of the package, the tests and what they use, by their paths."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in (PACKAGE, "tests", "benchmarks", "docs")
        for path in (ROOT / folder).rglob("*.py")
        if not path.is_relative_to(ROOT / "tests" / "sources")
    }


def _file_of(name: str) -> str | None:
    """Return the file of a module, or of the module that a name is in."""
    parts = name.split(".")
    start = "ingest/" if parts[0] == "assoc_ingest" else ""
    while parts:
        for end in (".py", "/__init__.py"):
            if (file := f"{start}{'/'.join(parts)}{end}") in _files():
                return file
        parts.pop()
    return None


def _imports(nodes: Iterable[ast.AST], file: str) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, each with its file."""
    package = file.removeprefix("ingest/").split("/")[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [(alias.asname or alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = [(alias.asname or alias.name, f"{base}.{alias.name}") for alias in node.names]
        else:
            continue
        yield from ((bound, found) for bound, name in names if (found := _file_of(name)))


@cache
def _used_by(file: str, name: str) -> frozenset[str]:
    """Return the files that one function of a module uses, with those of its module it calls."""
    functions = {node.name: node for node in _tree(file).body
                 if isinstance(node, ast.FunctionDef | ast.ClassDef)}  # fmt: skip
    bound = dict(_imports(_tree(file).body, file))
    found: set[str] = set()
    seen, pending = set(), [name]
    while pending:
        name = pending.pop()
        if name in functions and name not in seen:
            seen.add(name)
            nodes = list(ast.walk(functions[name]))
            found.update(used for _, used in _imports(nodes, file))
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            found.update(bound[name] for name in names & bound.keys())
            pending.extend(names)
    return frozenset(found)


@cache
def _commands() -> dict[str, frozenset[str]]:
    """Return the files that each command uses."""
    from assoc_ingest.cli import commands

    found = {}
    for name, place in commands().items():
        module, _, function = place.partition(":")
        file = f"{PACKAGE}commands/{module}.py"
        found[name] = _used_by(file, function) | {file}
    return found


@cache
def _named_by(file: str) -> frozenset[str]:
    """Return what a file leads to in one step: modules and queries."""
    nodes, texts = _nodes(file), _texts(file)
    found = {used for _, used in _imports(nodes, file)} | set(_queries_in(texts))
    if file in _LISTS:
        return frozenset(each for each in found if not _is_listed(each))
    if file.startswith("tests/"):
        arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
        for conftest in _conftests(file):
            found.update(*(_used_by(conftest, name) for name in arguments))
        if (
            _PROGRAM & found
            or "shell" in arguments
            or any("assoc_ingest" in text for text in texts)
        ):
            found.update(*(_commands()[name] for name in texts & _commands().keys()))
        if any(isinstance(node, ast.Import | ast.ImportFrom) and "datasette" in ast.unparse(node)
               for node in nodes) or "datasette" in texts:  # fmt: skip
            found.add(f"{PACKAGE}web/__init__.py")  # its plugin
        found.update(_named_modules(file))
    return frozenset(found - {file})


def _is_listed(file: str) -> bool:
    return file.startswith((f"{PACKAGE}commands/", f"{PACKAGE}sources/"))


def _conftests(file: str) -> list[str]:
    return [name for parent in Path(file).parents if (name := f"{parent}/conftest.py") in _files()]


def _named_modules(file: str) -> Iterator[str]:
    """Yield the modules of sources and questions that a test names, or of all if it reads all."""
    own = Path(file).stem.removeprefix("test_")
    names = {own, *(word for text in _texts(file) for word in _word.findall(text))}
    for module in _files():
        for folder in ("sources", "questions"):
            inner = module.removeprefix(f"{PACKAGE}{folder}/")
            is_named = inner != module and inner.split("/")[0].removesuffix(".py") in names
            if is_named or (inner != module and folder in _parts_of_paths(file)):
                yield module


@cache
def _texts(file: str) -> frozenset[str]:
    """Return the texts that stand in a module."""
    return frozenset(node.value for node in _nodes(file)
                     if isinstance(node, ast.Constant) and isinstance(node.value, str))  # fmt: skip


@cache
def _parts_of_paths(file: str) -> frozenset[str]:
    """Return the names of directories and files in the paths that a module makes."""
    joined = [str(node.right.value) for node in _nodes(file)
              if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
              and isinstance(node.right, ast.Constant)]  # fmt: skip
    paths = [*joined, *(text for text in _texts(file) if "/" in text)]
    return frozenset(part for path in paths for part in path.split("/"))


@cache
def _queries() -> dict[str, str]:
    """Return the file of each query, by what names it in code: its path, for users its stem."""
    from assoc_ingest import sql

    queries = [query for folder in sql.FOLDERS for query in sql.queries(folder).values()]
    paths = {query.path: f"queries/{query.file}" for query in queries}
    reports = {path.removeprefix("reports/"): file for path, file in paths.items()}
    lists = {path.replace("lists/", "list_"): file for path, file in paths.items()}
    return {**reports, **lists, **paths}


def _queries_in(texts: frozenset[str]) -> Iterator[str]:
    """Yield the queries that texts of a module name; a text may be how several names begin."""
    yield from (_queries()[text] for text in texts & _queries().keys())
    beginnings = tuple(text for text in texts if "/" in text and text.endswith(("_", "/")))
    if beginnings:
        yield from (file for name, file in _queries().items() if name.startswith(beginnings))
    for folder in ("reports", "lists"):
        if folder in texts:  # all that are in the folder
            yield from (file for file in _queries().values() if f"/{folder}/" in file)


# -- which tests lead to a change ------------------------------------------------------------------


@cache
def _naming() -> dict[str, set[str]]:
    """Return for each file those that name it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    gc.disable()  # it would look again and again at a million nodes that stay
    try:
        for file in _files():
            for named in _named_by(file):
                found[named].add(file)
    finally:
        gc.enable()
    return found


def is_test(file: str) -> bool:
    """Is it a file of tests?"""
    return (
        file.startswith("tests/") and Path(file).name.startswith("test_") and file.endswith(".py")
    )


def leading_to(changed: str) -> dict[str, int]:
    """Return the files of tests from which a way leads to a file, with the steps it takes."""
    distances = {changed: 0}
    pending = [changed]
    for file in pending:
        for naming in _naming().get(file, ()):
            if naming not in distances:
                distances[naming] = distances[file] + 1
                pending.append(naming)
    return {file: steps for file, steps in distances.items() if is_test(file)}


class Choice(NamedTuple):
    """What runs for a diff."""

    usual: set[str]
    """Files of tests of which those run that `pytest` runs by default."""
    slow: set[str]
    """Files of tests of which slow ones run, too."""
    reason: str = ""
    """Why everything runs: nothing tells what the diff can break."""


def chosen(changed: Iterable[str]) -> Choice:
    """Return the tests that a change of these files can break."""
    usual: set[str] = set()
    slow: set[str] = set()
    for file in changed:
        if file.startswith(_EVERYTHING):
            return Choice(set(), set(), f"any test may depend on {file}")
        if file.endswith((".py", ".sql")) and not (ROOT / file).exists():
            continue  # whoever named it has changed, too
        steps = leading_to(file) or mentioning(file)
        if not steps and file.endswith((".py", ".sql")):
            return Choice(set(), set(), f"no test leads to {file}")
        usual |= steps.keys()
        slow |= near(file, steps)
        if file.endswith(".sql"):  # tests of the modules that run it, too
            for module in _naming().get(file, ()):
                slow |= near(module, leading_to(module))
    return Choice(usual, slow)


def near(file: str, steps: dict[str, int]) -> set[str]:
    """Return the tests nearest to a file, and the next ones if they are not too many.

    Else, those of the next ones that name something else of its package.
    """
    nearest = min(steps.values(), default=0)
    found = {test for test, distance in steps.items() if distance == nearest}
    following = {test for test, distance in steps.items() if distance == nearest + 1}
    package = f"{Path(file).parent}/"
    beside = {test for test in following if any(n.startswith(package) for n in _named_by(test))}
    for more in (following, beside):
        if len(found | more) <= _NEAR:
            return found | more
    return found


def mentioning(file: str) -> dict[str, int]:
    """Return the tests that lead to what names a file, or the directory of data it is in."""
    path = Path(file)
    names = {path.name, path.stem}
    area = path.parts[path.parts[0] == "tests"] if len(path.parts) > 1 else path.name
    found: dict[str, int] = {}
    for reader in (each for each in _files() if each.startswith("tests/")):
        if not names.isdisjoint(_texts(reader)) or area in _parts_of_paths(reader):
            found |= leading_to(reader)
    return found


# -- the diff, and the run -------------------------------------------------------------------------


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name]


def differing(base: str) -> list[str]:
    """Return the files that differ from where this branch left `base`, committed or not."""
    (start,) = _git("merge-base", base, "HEAD")
    tracked = _git("diff", "--name-only", "-z", "--no-renames", start.strip())
    return [*tracked, *_git("ls-files", "-z", "--others", "--exclude-standard")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: that of pytest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", default="main", help="what to compare with [main]")
    parser.add_argument("--list", action="store_true", help="only say what would run")
    parser.add_argument("pytest", nargs="*", help="options of pytest, after --")
    options = parser.parse_args(arguments)
    changed = differing(options.base)
    choice = chosen(changed)
    print(f"{len(changed)} files differ from {options.base}.")
    if choice.reason:
        print(f"Everything runs: {choice.reason}.")
        runs = [["--all"]]
    elif not choice.usual:
        print("No test leads to any of them.")
        return 0
    else:
        print(f"{len(choice.usual)} test files lead to them, + slow tests of {len(choice.slow)}:")
        for test in sorted(choice.usual):
            print("  +" if test in choice.slow else "   ", test)
        runs = [["-m", "not slow", *sorted(choice.usual)], ["-m", "slow", *sorted(choice.slow)]]
    if options.list:
        return 0
    codes = []
    for run in runs:
        command = [sys.executable, "-m", "pytest", "-n", "auto", "-q", *options.pytest, *run]
        codes.append(subprocess.run(command, cwd=ROOT).returncode)
    return max(code for code in codes if code != _NOTHING_RAN or len(set(codes)) == 1)


if __name__ == "__main__":
    sys.exit(main())
