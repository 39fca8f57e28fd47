"""The generated homes that are measured: made once, kept in a build directory, used again.

The name of a home holds a digest of the code that wrote it: a changed generator makes a new one.
Nothing ever writes into a kept home; what has to grow is copied first.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.floors import transcripts

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "bench"


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes below one build directory."""

    build: Path = BUILD

    def of_size(self, size: int) -> Path:
        """Return a home of about `size` bytes that has everything a real one has."""
        return self._made(f"home-{size}", "benchmarks.generate", "--bytes", str(size))

    def one_file(self, size: int) -> Path:
        """Return a home with nothing but one transcript of about `size` bytes."""
        return self._made(f"file-{size}", "benchmarks.generate", "--one-file", str(size))

    def small_files(self, count: int) -> Path:
        """Return a home of `count` transcripts of ten lines."""
        return self._made(f"small-{count}", "benchmarks.generate", "--files", str(count))

    def plain(self, kind: str, amount: int) -> Path:
        """Return a home of a kind in `plain.KINDS`."""
        return self._made(f"{kind}-{amount}", "benchmarks.plain", kind, str(amount))

    def _made(self, name: str, module: str, *arguments: str) -> Path:
        place = self.build / "homes" / f"{name}-{_digest(module)}"
        if not place.exists():
            new = place.with_name(f"{place.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            # In a process of its own: the one that measures has to stay small, see `cost.measure`.
            subprocess.run(
                [sys.executable, "-m", module, new, *arguments],
                cwd=ROOT,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            new.rename(place)
        return place


def size_of(home: Path) -> int:
    """Return the bytes of the transcripts of a home."""
    return sum(path.stat().st_size for path in transcripts(home))


def _digest(module: str) -> str:
    """Return a digest of the code that writes a home: `plain`, or `generate` and its parts."""
    folder = ROOT / "benchmarks"
    is_plain = module == "benchmarks.plain"
    paths = [folder / "plain.py"] if is_plain else sorted((folder / "synthetic").glob("*.py"))
    code = hashlib.sha256()
    for path in paths:
        code.update(path.read_bytes())
    return code.hexdigest()[:12]
