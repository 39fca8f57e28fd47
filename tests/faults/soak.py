"""A watch that is killed every few seconds while agents write, for as long as one likes.

    python -m tests.faults.soak --minutes 60

A process writes into a home, appends, rewrites, cuts, forks, now and then removes a file. Another
one runs `assoc-ingest watch`, and is killed with SIGKILL at random moments. After each kill the
database has to be as some commit left it. In the end it has to have the rows of a sync from
scratch, and `verify` has to find nothing. It prints what happened, and ends with 1 if that failed.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.changing import Home

from assoc_ingest.store.database import writing
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, differences, dump
from assoc_ingest.upkeep.verify import verify

_LIFE = (0.5, 8.0)  # seconds from the start of a watch to its kill
_PAUSE = 0.4  # seconds between two changes, at most
_RESCAN = 5  # seconds
_UUIDS = 20_000  # an hour makes some hundred thousand lines: each stands in a dozen files


def soak(place: Path, minutes: float, seed: int) -> list[str]:
    """Do it below `place`; return what is wrong in the end, a line each."""
    home, database = Home(place / "home", seed, _UUIDS), place / "watched.db"
    chance = random.Random(seed)
    with writing(database):
        pass
    end = time.monotonic() + minutes * 60
    kills = changes = 0
    while time.monotonic() < end:
        watch = _start(database, home.root)
        dies_at = time.monotonic() + chance.uniform(*_LIFE)
        while time.monotonic() < dies_at:
            home.change()
            changes += 1
            time.sleep(chance.random() * _PAUSE)
        watch.kill()
        watch.wait()
        kills += 1
        check(database)
        print(f"\r{kills} kills, {changes} changes", end="", file=sys.stderr, flush=True)
    watch = _start(database, home.root)
    time.sleep(2 * _RESCAN)
    watch.terminate()
    code = watch.wait()
    print(f"\r{kills} kills, {changes} changes; SIGTERM ended it with {code}", file=sys.stderr)
    return [*_differences(place, database, home), *([f"exit code {code}"] if code else [])]


def _start(database: Path, root: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "assoc_ingest", "watch", str(root), "-d", str(database)]
    return subprocess.Popen(
        [*command, "--rescan", str(_RESCAN)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _differences(place: Path, database: Path, home: Home) -> list[str]:
    check(database, home.root)
    scratch = place / "scratch.db"
    sync(scratch, [home.root])
    found = differences(dump(database), dump(scratch))
    return found + [f"verify: {finding}" for finding in verify(database).findings]


def main() -> int:
    """Run the soak with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        wrong = soak(Path(directory), arguments.minutes, arguments.seed)
    print("\n".join(wrong) or "equal to a sync from scratch")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
