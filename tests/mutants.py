"""Plants the bugs of `mutants.toml` one at a time in a copy of the checkout: `make mutants`.

Each must make a test of its area fail. What stays unnoticed is printed: a test is missing. The
summary tells what the tests that `pytest` runs by default notice from what only slow ones do.

A bug is `old` text that becomes `new`, wherever it stands in the package, the queries and the
schema: code that moves takes its bugs along. `test_mutants.py` checks that each still applies.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".toml")
SOURCES = (
    "ingest/assoc_ingest/**/*.py",
    "queries/**/*.sql",
    "schema/new/*.sql",
    "schema/fleet/*.sql",
)
PARTS = {"default": "not slow", "slow": "slow"}
"""Which tests of the area run, in this order, by the mark that selects them."""

_SECONDS = 600  # for the tests of one area: a bug may make a program wait forever
_FAILED, _NOTHING_RAN = 1, 5  # exit codes of pytest
_failure = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.M)  # parameters may have spaces


class Mutant(NamedTuple):
    """A bug: text, what it becomes, and the tests that should notice."""

    kind: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.kind}: {old} -> {new or 'nothing'}"


class Verdict(NamedTuple):
    """Which tests noticed a bug: `default`, `slow`, or nothing; or why it could not be tried."""

    mutant: Mutant
    package: str
    part: str = ""
    test: str = ""
    error: str = ""

    def __str__(self) -> str:
        what = self.error or (f"{self.part}, {self.test}" if self.part else "NOT NOTICED")
        return f"{self.package} | {self.mutant} | {what}"


def listed(path: Path = LIST) -> list[Mutant]:
    """Return the bugs of a list."""
    return [
        Mutant(each["kind"], each["old"], each["new"], tuple(each["tests"].split()))
        for each in tomllib.loads(path.read_text("utf-8"))["mutant"]
    ]


def sources(root: Path) -> dict[Path, str]:
    """Return the text of all files in which bugs are planted."""
    return {file: file.read_text("utf-8") for each in SOURCES for file in sorted(root.glob(each))}


def files_with(text: str, texts: Mapping[Path, str]) -> list[Path]:
    """Return the files that contain a text, once for each time."""
    return [file for file, content in texts.items() for _ in range(content.count(text))]


def package_of(file: Path, root: Path) -> str:
    """Return the package of a file, `root` for a module outside of them, or `queries`, `schema`."""
    first, *inner = file.relative_to(root).parts
    return first if first != "ingest" else inner[1] if len(inner) > 2 else "root"


def copy_into(directory: Path, root: Path = ROOT) -> Path:
    """Copy what git knows or would add of a checkout, as it is now."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, cwd=root, capture_output=True, check=True).stdout.split(
        b"\0"
    ):
        source, target = root / os.fsdecode(name), directory / os.fsdecode(name)
        if name and source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return directory


def run_tests(root: Path, tests: Sequence[str], *options: str) -> tuple[int, str]:
    """Run tests of a copy; return the exit code of pytest and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", *options, *tests]
    paths = os.pathsep.join(map(str, (root / "ingest", root)))
    with subprocess.Popen(
        command, cwd=root, env={**os.environ, "PYTHONPATH": paths}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        try:
            out, _ = process.communicate(timeout=_SECONDS)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return _FAILED, f"FAILED {tests[0]} (no end after {_SECONDS} s)"
    return process.returncode, out


def tried(mutant: Mutant, root: Path) -> Verdict:
    """Plant a bug in a copy, run the tests of its area, and take it out again."""
    texts = sources(root)
    files = files_with(mutant.old, texts)
    if len(files) != 1:
        return Verdict(mutant, "?", error=f"applies {len(files)} times")
    (file,) = files
    package, text = package_of(file, root), texts[file]
    try:
        _write(file, text.replace(mutant.old, mutant.new))
        for part, marked in PARTS.items():
            code, out = run_tests(root, mutant.tests, "-x", "-m", marked)
            if code == _FAILED:
                failure = _failure.search(out)
                return Verdict(mutant, package, part, failure[1] if failure else out[-300:])
            if code not in (0, _NOTHING_RAN):
                return Verdict(mutant, package, error=f"pytest: {code}\n{out[-2000:]}")
        return Verdict(mutant, package)
    finally:
        _write(file, text)


def _write(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()  # one of the same second and size would be taken for the new text


def all_tried(mutants: Iterable[Mutant], jobs: int, root: Path = ROOT) -> list[Verdict]:
    """Try bugs in as many copies at a time, and print each verdict as it comes."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        Path(place).chmod(0o755)  # for tests that run programs as another user
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            copies.put(copy_into(Path(place) / str(number), root))

        def attempt(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                verdict = tried(mutant, copy)
            finally:
                copies.put(copy)
            print(verdict, flush=True)
            return verdict

        with ThreadPoolExecutor(jobs) as threads:
            verdicts = list(threads.map(attempt, mutants))
        noticing = sorted({verdict.test for verdict in verdicts if verdict.test})
        code, out = (
            run_tests(copies.get(), noticing, "-m", "slow or not slow") if noticing else (0, "")
        )
    if code not in (0, _FAILED):
        sys.exit(f"The tests without a bug ended with {code}:\n{out[-2000:]}")
    broken = set(_failure.findall(out))  # what fails without a bug, too, has noticed nothing
    return [
        verdict._replace(part="", error=f"fails without a bug, too: {verdict.test}")
        if verdict.test in broken
        else verdict
        for verdict in verdicts
    ]


def report(verdicts: Sequence[Verdict]) -> str:
    """Say for each package how many bugs were noticed by what, then name those that were not."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        counts[verdict.package][verdict.part] += 1
    total = sum(counts.values(), Counter())
    lines = [f"{'package':<12}{'bugs':>6}{'default':>10}{'all tests':>12}"]
    for name, of in [*sorted(counts.items()), ("all", total)]:
        noticed = of["default"] + of["slow"]
        lines.append(f"{name:<12}{of.total():>6}{of['default']:>10}{noticed:>12}")
    unnoticed = [str(verdict) for verdict in verdicts if not verdict.part]
    return "\n".join([*lines, "", *(unnoticed or ["All are noticed."])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1: a bug is not noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="bugs whose text or tests contain this")
    options = parser.parse_args(arguments)
    mutants = [one for one in listed() if options.only in f"{one.old} {one.new} {one.tests}"]
    verdicts = all_tried(mutants, options.jobs)
    print(f"\n{report(verdicts)}")
    return int(any(not verdict.part for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
