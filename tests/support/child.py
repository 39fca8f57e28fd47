"""Running a function in a child process: to kill it, or to let it be somebody else."""

from __future__ import annotations

import math
import mmap
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from assoc_ingest.sync.prices import installed, library_prices

NOBODY = 65534


def usual_seconds(function: Callable[[], Any]) -> float:
    """Return how long a child takes for a function: the time in which to kill others like it."""
    started = time.monotonic()
    Child(function).result()
    return time.monotonic() - started


class Child:
    """A forked process that runs a function; what it returns, or raises, comes back."""

    def __init__(self, function: Callable[[], Any], *, user: int | None = None) -> None:
        self._reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the child touches no thread of its parent
            self.pid = os.fork()
        if self.pid:
            os.close(writing)
            return
        try:
            if user is not None:
                os.setgid(user)
                os.setuid(user)
            os.write(writing, pickle.dumps(function()))
        except BaseException as error:
            os.write(writing, pickle.dumps(repr(error)))
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(0)

    def is_done_within(self, seconds: float) -> bool:
        """Wait for its end, but not for longer."""
        return bool(select.select([self._reading], [], [], seconds)[0])

    def kill(self) -> bool:
        """End it at once, wherever it is. Was it still running?"""
        os.kill(self.pid, signal.SIGKILL)
        return os.WIFSIGNALED(self._end())

    def result(self) -> Any:
        """Wait for its end and return what the function returned."""
        with os.fdopen(os.dup(self._reading), "rb") as pipe:
            data = pipe.read()
        self._end()
        return pickle.loads(data)

    def _end(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        os.close(self._reading)
        return status


def is_done_with(cpu_seconds: int, function: Callable[[], object]) -> bool:
    """Run a function in a child that the system ends when it has used so much of a processor.

    It bounds work, and not time: a machine that is busy with something else changes nothing. What
    grows with its input needs a fraction of it; what grows with the square would need minutes.
    """
    return not_done_with(cpu_seconds, {"": function}) is None


def not_done_with(
    cpu_seconds: int, functions: Mapping[object, Callable[[], object]]
) -> object | None:
    """Return the name of the first function that needs more of a processor than this, if any.

    All run in one child: to fork takes longer than most of them.
    """
    import resource

    reached = mmap.mmap(-1, 8)  # of the child, too

    def run() -> bool:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        for number, function in enumerate(functions.values()):
            reached[:] = number.to_bytes(8, "big")
            used = math.ceil(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_seconds, hard))
            function()
        return True

    child = Child(run)
    try:
        result = child.result()
    except EOFError:  # it was killed and wrote nothing
        return list(functions)[int.from_bytes(reached, "big")]
    assert result is True, result
    return None


def as_nobody(function: Callable[[], Any]) -> Any:
    """Run a function as a user without rights, and return what it returns."""
    list(library_prices(installed()))  # that user may not read the environment that we run in
    return Child(function, user=NOBODY if os.geteuid() == 0 else None).result()
