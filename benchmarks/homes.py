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

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "bench"


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes below one build directory."""

    build: Path = BUILD

    def of_size(self, size: int, profile: str = "usual") -> Path:
        """Return a home of about `size` bytes that has everything a real one has."""
        return self._made("bytes", size, profile)

    def one_file(self, size: int) -> Path:
        """Return a home with nothing but one transcript of about `size` bytes."""
        return self._made("one-file", size)

    def small_files(self, count: int) -> Path:
        """Return a home of `count` transcripts of ten lines."""
        return self._made("files", count)

    def chat(self, messages: int) -> Path:
        """Return a home with one session of so many short messages."""
        return self._made("chat", messages)

    def _made(self, option: str, amount: int, profile: str = "usual") -> Path:
        place = self.build / "homes" / f"{option}-{amount}-{profile}-{_digest()}"
        if not place.exists():
            new = place.with_name(f"{place.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            # In a process of its own: the one that measures has to stay small, see `cost.measure`.
            subprocess.run(
                [
                    *(sys.executable, "-m", "benchmarks.generate", new),
                    *(f"--{option}", str(amount), "--profile", profile),
                ],
                cwd=ROOT,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            new.rename(place)
        return place


def transcripts(home: Path) -> list[Path]:
    """Return the files of a home that hold lines of JSON."""
    return sorted(path for path in home.glob("projects/**/*.jsonl") if path.is_file())


def size_of(home: Path) -> int:
    """Return the bytes of the transcripts of a home."""
    return sum(path.stat().st_size for path in transcripts(home))


def _digest() -> str:
    """Return a digest of the code that writes homes."""
    code = hashlib.sha256()
    for path in sorted((ROOT / "benchmarks" / "synthetic").glob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()[:12]
