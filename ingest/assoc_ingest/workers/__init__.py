"""A few worker processes that do jobs ahead of the writer, who gets the results in order.

Why processes: reading and parsing take most of the time of a large sync, and the interpreter runs
one thread at a time. What a worker does depends on its job alone. So the results, and the order in
which the writer takes them, are the same for any number of workers and at any speed.

How it works:

1. Each worker is a process of its own, started by a command, not forked: so it is the
   same on all systems, has no locks of other threads, and holds no file or pipe of another worker.
   A thread here gives it one job at a time, and waits for the result.
2. `results` hands out jobs as long as those that were not yet taken are no larger than
   `_AHEAD` for each worker: that bounds the memory.
3. A result counts only when it is complete. If a worker fails or dies during a job, its result is
   None, and the writer does the job itself; what is wrong then shows as it would without workers.
   A new process takes the next job. After a few deaths, no more are started.
4. If one item of a job takes longer than it may, the worker ends. Doing it again would take as
   long, so the result for this item is what `give_up` says, and the others are done again.
5. At the end, in whatever way, the workers are killed. They write no files, so nothing is left.
   If this process is killed, the workers see their standard input end.

`ProcessPoolExecutor` cannot do 3 and 4: when one of its processes dies, all jobs fail, none can be
ended alone, and a result arrives as a whole.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import BinaryIO, Generic, Protocol, Self, TypeVar, cast

# ------------------------------------------------------------------------------------------------
# A worker: does one job after the other, until its standard input ends.
#
# Standard input has jobs, and standard output messages: a tag, the length of what follows, and
# that. If the writer dies, however it does, standard input ends, and with it the worker. A worker
# has nothing to tidy up: it writes no files.
#
# A job that runs away cannot notice that it does: it may be within one call that never returns.
# So a timer of `faulthandler`, which needs no interpreter, ends the process.


HEAD = struct.Struct(">cQ")
"""What each message begins with: its tag, and the length of what follows."""

READY, AT, PIECE, DONE, FAILED = b"R", b"A", b"P", b"D", b"F"
"""Tags: it can take jobs; it begins with the next item of a job; a piece of the item's result; the
job is done; the job failed."""

RAN_AWAY = 1
"""The exit code of a worker that took longer for an item than it may."""


_NICENESS = 10
"""Workers give way to the writer, for which everything waits, and to the user's other programs."""


_EXTRA = 1.0
"""Seconds that a piece may take beyond its time."""


class Job(Protocol):
    """What a worker does: items, one after the other."""

    @property
    def seconds(self) -> float:
        """What each piece of a result may take."""
        ...

    def items(self) -> Iterator[Iterator[bytes]]:
        """Yield for each item its result, in pieces. Any exception ends the job."""
        ...


def run_worker() -> None:
    """Do jobs until standard input ends."""
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # whatever else is printed is no message
    jobs: SimpleQueue[Job] = SimpleQueue()
    Thread(target=_receive_jobs, args=(os.fdopen(os.dup(0), "rb"), jobs), daemon=True).start()
    gc.disable()  # records have no cycles
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    if os.name != "nt":
        os.set_blocking(out, False)
    watchdog = _Watchdog(nowhere)
    _say(out, watchdog, READY)
    while True:
        _do(jobs.get(), out, watchdog)


def _receive_jobs(given: BinaryIO, jobs: SimpleQueue[Job]) -> None:
    try:
        while True:
            jobs.put(pickle.load(given))  # noqa: S301 - only the writer has the other end
    except EOFError:
        pass
    finally:
        os._exit(0)


class _Watchdog:
    """Ends this process if a piece takes too long.

    Each time it is set, it starts a thread, and jobs have thousands of pieces that take no time.
    So it is set for a second more than a piece may take, and again only when that second is over.
    """

    def __init__(self, nowhere: int) -> None:
        self._nowhere = nowhere
        self._set_at: float | None = None

    def begin(self, seconds: float) -> None:
        """Give the piece that begins its time."""
        now = time.monotonic()
        if self._set_at is None or now - self._set_at > _EXTRA:
            faulthandler.dump_traceback_later(seconds + _EXTRA, exit=True, file=self._nowhere)
            self._set_at = now

    def rest(self) -> None:
        """Wait for the next piece: what is not done here may take as long as it likes."""
        if self._set_at is not None:
            faulthandler.cancel_dump_traceback_later()
            self._set_at = None


def _do(job: Job, out: int, watchdog: _Watchdog) -> None:
    try:
        for item in job.items():
            _say(out, watchdog, AT)
            watchdog.begin(job.seconds)
            for piece in item:
                _say(out, watchdog, PIECE, piece)
                del piece
                watchdog.begin(job.seconds)
    except Exception as error:
        watchdog.rest()
        _say(out, watchdog, FAILED, repr(error).encode(errors="replace"))
    else:
        watchdog.rest()
        _say(out, watchdog, DONE)


def _say(out: int, watchdog: _Watchdog, tag: bytes, data: bytes = b"") -> None:
    if os.name == "nt":  # where no write says that it would have to wait
        watchdog.rest()
    rest = memoryview(HEAD.pack(tag, len(data)) + data)
    try:
        while rest:
            try:
                rest = rest[os.write(out, rest) :]
            except BlockingIOError:  # the writer takes its time
                watchdog.rest()
                select.select([], [out], [])
    except OSError:  # the writer is gone
        os._exit(0)


def command() -> list[str]:
    """Return the command that runs a worker with the interpreter and the modules of this process.

    The main module of this process is not imported again, and the worker finds no module where it
    happens to be started.
    """
    places = [place or str(Path.cwd()) for place in sys.path]
    code = (
        f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import run_worker; run_worker()"
    )
    return [sys.executable, "-I", "-X", f"utf8={sys.flags.utf8_mode}", "-c", code, *places]


# ------------------------------------------------------------------------------------------------
# How many worker processes are used.


MOST = 8
"""Workers that are used unless the user says otherwise: more would wait for the writer."""

PAYS_FROM = 32 * 1024 * 1024
"""From this many bytes on, workers take less time than they take to start."""


def usual_jobs() -> int:
    """Return how many workers are used if the user does not say: one for each core, at most 8."""
    if getattr(sys, "frozen", False) or not sys.executable:
        return 1  # there is no interpreter to run workers with
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(cores, MOST)


def worker_count(jobs: int | None, size: int) -> int:
    """Return how many workers read so many bytes; 1: none, since they pay only for much input.

    `jobs` is what the user said, None if nothing.
    """
    if size < PAYS_FROM:
        return 1
    return usual_jobs() if jobs is None else jobs


_AHEAD = 16 * 1024 * 1024  # bytes of input for each worker that are handed out before they are used
_PIPE_BYTES = 1024 * 1024
_M_ARENA_MAX = -8  # of mallopt, in malloc.h
_LIVES = 8  # workers that may die before no more are started


class PoolJob(Job, Protocol):
    """A job of a pool; it is pickled on its way to a worker."""

    @property
    def size(self) -> int:
        """Bytes of input."""
        ...

    @property
    def is_for_writer(self) -> bool:
        """Must no worker do it? Then its result is None."""
        ...

    def around(self, number: int) -> tuple[Self, Self]:
        """Return the job without an item, as those before it and those after it."""
        ...

    def give_up(self, number: int) -> bytes:
        """Return the result for an item that cannot be processed."""
        ...


Result = list[list[bytes]] | None
"""The pieces of the result for each item of a job; None: the job was not done."""


J = TypeVar("J", bound=PoolJob)


class _WorkerDiedError(Exception):
    """The process is not there any more, or cannot be started."""


class _RanAwayError(Exception):
    """The worker ended itself, since it took too long for this item."""

    def __init__(self, item: int) -> None:
        super().__init__(item)
        self.item = item


class Workers(Generic[J]):
    """Worker processes. As a context manager, it ends them."""

    def __init__(self, count: int) -> None:
        self._count = count
        _use_one_heap()
        self._threads = ThreadPoolExecutor(count, "worker")
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._lives = _LIVES
        self._lock = Lock()
        self._is_over = False

    def __enter__(self) -> Workers[J]:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_over = True
            workers = list(self._all)
        for worker in workers:
            worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in workers:
            worker.wait()

    def results(self, jobs: Iterable[J]) -> Iterator[tuple[J, Result]]:
        """Yield the jobs in their order, each with its result; None: do it yourself."""
        waiting: deque[tuple[J, Future[Result]]] = deque()
        size = 0
        for job in jobs:
            while waiting and size + job.size > self._count * _AHEAD:
                done, future = waiting.popleft()
                yield done, future.result()
                size -= done.size
            waiting.append((job, self._threads.submit(self._result, job)))
            size += job.size
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()

    def _result(self, job: J) -> Result:
        if not job.size:
            return []
        if job.is_for_writer:
            return None
        worker = self._take()
        if worker is None:
            return None
        try:
            result = worker.do(job)
        except _WorkerDiedError:
            self._bury(worker)
            self._lives -= 1
            return None
        except _RanAwayError as error:
            self._bury(worker)
            before, after = map(self._result, job.around(error.item))
            if before is None or after is None:
                return None
            return [*before, [job.give_up(error.item)], *after]
        self._idle.append(worker)
        return result

    def _take(self) -> _Worker | None:
        """Return an idle worker, None if there is none."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._is_over or self._lives <= 0:
                return None
            try:
                worker = _ahead.pop() if _ahead else _Worker()
            except OSError:
                self._lives = 0
                return None
            self._all.add(worker)
            return worker

    def _bury(self, worker: _Worker) -> None:
        worker.kill()
        worker.wait()
        with self._lock:
            self._all.discard(worker)


@contextmanager
def started_ahead(count: int) -> Iterator[None]:
    """Start workers that are about to be needed, unless it is one: that is this process.

    Those that were not needed are ended.
    """
    with suppress(OSError):  # told when one is needed
        _ahead.extend(_Worker() for _ in range(count if count > 1 else 0))
    try:
        yield
    finally:
        while _ahead:
            worker = _ahead.pop()
            worker.kill()
            worker.wait()


_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Lets the memory of a process have pages of 2 MB, with glibc 2.35 and later. The hash table of an
index is read at random: a fifth of the time of indexing is spent looking for its small pages."""


class SingleWorker:
    """A worker that keeps something from one job to the next, so that no other can replace it."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None
        self._is_alive = True

    def has_done(self, job: Job) -> bool:
        """Do a job, if all before it were done."""
        try:
            if self._is_alive and self._worker is None:
                self._worker = _Worker({**_HUGE_PAGES, **os.environ})
            self._is_alive = (
                self._is_alive and self._worker is not None and self._worker.do(job) is not None
            )
        except (OSError, _WorkerDiedError, _RanAwayError):
            self._is_alive = False
        return self._is_alive

    def kill(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.wait()


def _use_one_heap() -> None:
    """Let the threads of this process share one heap, if its C library is glibc.

    It would give each thread a heap of its own. What one of them receives, the writer frees, and
    the heaps keep it: after four gigabytes, a hundred megabytes that nothing was stored in.
    """
    if sys.platform == "linux":
        with suppress(ImportError, AttributeError):  # another C library, or none that can be called
            from ctypes import CDLL

            CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _enlarge(pipe: BinaryIO) -> None:
    """Let a pipe hold a megabyte where that can be said, so that no end waits for the other."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # a user may have only so much in pipes
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class _Worker:
    """A process, and the pipes to and from it."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Start the process, with our own environment unless given another. Raises OSError."""
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with our own module
            command(),
            env=environment,
            bufsize=_PIPE_BYTES,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
            | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            process_group=None if os.name == "nt" else 0,  # Ctrl-C is for the writer
        )
        self._jobs = cast(BinaryIO, self._process.stdin)
        self._messages = cast(BinaryIO, self._process.stdout)
        for pipe in (self._jobs, self._messages):
            _enlarge(pipe)
        self._is_ready = False

    def do(self, job: Job) -> Result:
        """Return the result of a job, None if it failed."""
        try:
            data = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError):  # what a source needs stays here
            return None
        try:
            if not self._is_ready:
                self._next()
                self._is_ready = True
            self._jobs.write(data)
            self._jobs.flush()
        except (OSError, ValueError) as error:  # a closed pipe is a ValueError
            raise _WorkerDiedError from error
        result: list[list[bytes]] = []
        while True:
            try:
                tag, data = self._next()
            except _WorkerDiedError:
                if result and self._process.wait() == RAN_AWAY:
                    raise _RanAwayError(len(result) - 1) from None
                raise
            if tag == AT:
                result.append([])
            elif tag == PIECE:
                result[-1].append(data)
            else:
                return result if tag == DONE else None

    def _next(self) -> tuple[bytes, bytes]:
        """Wait for the next message. Raises _WorkerDiedError."""
        with suppress(OSError, ValueError):
            head = self._messages.read(HEAD.size)
            if len(head) == HEAD.size:
                tag, length = HEAD.unpack(head)
                data = self._messages.read(length)
                if len(data) == length:
                    return tag, data
        raise _WorkerDiedError

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def wait(self) -> None:
        """Wait for its end, and close the pipes."""
        self._process.wait()
        for pipe in (self._jobs, self._messages):
            with suppress(OSError):
                pipe.close()


_ahead: list[_Worker] = []
"""Workers that were started before anything was known for them to do."""
