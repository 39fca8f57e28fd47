"""The server over standard streams: a line is a request, a line is its answer.

One thread reads lines, the main one answers them in order: there signals arrive, and the connection
to the database belongs to one thread. What a client cancels is interrupted, or never begun, and not
answered. The server ends when its input ends, after it has answered what was asked before, or when
nobody reads its output.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Lock, Thread

from ..streams import lost
from ..terminal import safe
from .messages import (
    INVALID_REQUEST,
    Id,
    Request,
    RequestError,
    failure,
    parse,
    response,
)
from .protocol import Protocol

LONGEST = 4 * 1024 * 1024
"""Bytes of a line: no request is longer."""

_CHUNK = 65_536
_INTERNAL = -32603

Event = Request | RequestError | None


def serve(protocol: Protocol, interrupt: Callable[[], None], input: int = 0) -> None:
    """Answer the requests that are read from the file descriptor `input` until it ends.

    `interrupt` is called from another thread to stop what is being answered.
    """
    events: SimpleQueue[Event] = SimpleQueue()
    cancelling = _Cancelling(interrupt)
    Thread(target=_read, args=(input, events, cancelling), daemon=True).start()
    while (event := events.get()) is not None and lost() is None:
        if isinstance(event, RequestError):
            _write(failure(event.id, event))
        elif event.id is not None and cancelling.begin(event.id):
            answer = _answer(protocol, event)
            if not cancelling.end(event.id):
                _write(answer)


def _answer(protocol: Protocol, request: Request) -> str:
    try:
        return response(request.id, protocol.answer(request))
    except RequestError as error:
        return failure(request.id, error)
    except Exception as error:  # a bug: this request fails, and the next one is answered
        print(safe(traceback.format_exc()), file=sys.stderr, flush=True)
        told = RequestError(_INTERNAL, f"internal error: {type(error).__name__}: {error}")
        return failure(request.id, told)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class _Cancelling:
    """Which requests a client no longer waits for; used by both threads."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._lock = Lock()
        self._waiting: set[Id] = set()
        self._cancelled: set[Id] = set()
        self._running: Id | None = None

    def wait(self, id: Id) -> None:
        """Remember a request that was read."""
        with self._lock:
            self._waiting.add(id)

    def begin(self, id: Id) -> bool:
        """Begin to answer a request; return False if it was cancelled."""
        with self._lock:
            self._waiting.discard(id)
            is_wanted = id not in self._cancelled
            self._cancelled.discard(id)
            self._running = id if is_wanted else None
            return is_wanted

    def end(self, id: Id) -> bool:
        """Note that a request was answered; return whether it was cancelled meanwhile."""
        with self._lock:
            self._running = None
            is_cancelled = id in self._cancelled
            self._cancelled.discard(id)
            return is_cancelled

    def cancel(self, id: object) -> None:
        """Stop a request, or do not begin it; one that is unknown is ignored."""
        with self._lock:
            if not isinstance(id, int | str) or isinstance(id, bool):
                return
            if id in self._waiting or id == self._running:
                self._cancelled.add(id)
            if id == self._running:
                self._interrupt()


def _read(input: int, events: SimpleQueue[Event], cancelling: _Cancelling) -> None:
    for line in _lines(input):
        if line is None:
            events.put(RequestError(INVALID_REQUEST, f"A request has at most {LONGEST:,} bytes."))
            continue
        if not line.strip():
            continue
        try:
            request = parse(line)
        except RequestError as error:
            events.put(error)
            continue
        if request is None:
            continue
        if request.id is None:
            if request.method == "notifications/cancelled":
                cancelling.cancel(request.params.get("requestId"))
            continue
        cancelling.wait(request.id)
        events.put(request)
    events.put(None)


def _lines(input: int) -> Iterator[bytes | None]:
    """Yield the lines of an input, None for one that is too long.

    Read without sys.stdin: if a thread holds its lock at exit, the interpreter fails.
    """
    parts: list[bytes] = []
    size = 0
    while data := os.read(input, _CHUNK):
        *ends, rest = data.split(b"\n")
        for end in ends:
            yield b"".join((*parts, end)) if size + len(end) <= LONGEST else None
            parts, size = [], 0
        size += len(rest)
        if size <= LONGEST:
            parts.append(rest)
    if size:
        yield b"".join(parts) if size <= LONGEST else None
