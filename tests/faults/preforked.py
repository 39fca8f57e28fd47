"""Running the program where writing fails: one process with the shim, a fork of it for each run.

Starting Python and importing the program costs ten times what a small sync does, so a process
that has done both waits for orders and forks. The order arms the shim (`shim.c`) in the child.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("shim.c")


class Run(NamedTuple):
    """How a run of the program went, and what the shim counted meanwhile."""

    code: int
    calls: int
    failures: int
    words: str


class Preforked:
    """Runs the program in forks of one process; writing to databases fails as ordered."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self,
        arguments: Sequence[str],
        *,
        call: int = 0,
        error: int = 0,
        for_ever: bool = False,
        is_built: bool = False,
    ) -> Run:
        """Run the program; its `call`-th write to a database fails, or all from that one on.

        A new database is made beside its place if it `is_built`, however little there is to read.
        """
        assert self._process.stdin
        assert self._process.stdout
        order = [list(arguments), call, error, for_ever, is_built]
        print(json.dumps(order), file=self._process.stdin)
        self._process.stdin.flush()
        return Run(*json.loads(self._process.stdout.readline()))


def compiler() -> str | None:
    """Return the C compiler of this machine, None if there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@contextmanager
def preforked(place: Path) -> Iterator[Preforked]:
    """Compile the shim, and hold a process that it is loaded into."""
    library = place / "shim.so"
    command = [compiler() or "cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"]
    subprocess.run(command, check=True)
    path = os.pathsep.join([str(ROOT / "ingest"), str(ROOT)])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.preforked", library],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield Preforked(process)
    finally:
        process.communicate()


# -- in the process ------------------------------------------------------------------------------


def _serve(shim: ctypes.CDLL) -> None:
    for order in sys.stdin:
        reading, writing = os.pipe()
        if not (child := os.fork()):
            os.write(writing, json.dumps(_run(shim, *json.loads(order))).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            print(pipe.read(), flush=True)
        os.waitpid(child, 0)


def _run(
    shim: ctypes.CDLL, arguments: list[str], call: int, error: int, for_ever: bool, is_built: bool
) -> tuple[Any, ...]:
    from tests.support.pieces import every_new_database_is_built

    from assoc_ingest.__main__ import main
    from assoc_ingest.testing.promises import read_in_pieces

    with tempfile.TemporaryFile("w+") as words:
        os.dup2(words.fileno(), 1)
        os.dup2(words.fileno(), 2)
        with ExitStack() as stack:
            stack.enter_context(read_in_pieces(chunk=1500, batch=2000))
            if is_built:
                stack.enter_context(every_new_database_is_built())
            shim.arm(ctypes.c_long(call), error, int(for_ever))
            code = main(arguments)
            shim.disarm()
        sys.stdout.flush()
        sys.stderr.flush()
        words.seek(0)
        return code, shim.counted_calls(), shim.counted_failures(), words.read()


if __name__ == "__main__":
    import assoc_ingest.sync.prices
    import assoc_ingest.sync.run  # noqa: F401

    _serve(ctypes.CDLL(sys.argv[1]))
