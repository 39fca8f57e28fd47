"""How long the pages of `serve --watch` take while an agent writes.

    python -m benchmarks.pages                      a home of 1 GB and a session of 20,000 messages
    python -m benchmarks.pages --size 200MB --write

A real server, a watch beside it, and a transcript that grows by five lines a second. Each page is
asked for once after the server has started, and then ten times more.
"""

from __future__ import annotations

import argparse
import socket
import sqlite3
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import report
from benchmarks.cost import PATIENCE, Program, scratch
from benchmarks.generate import parse_size
from benchmarks.homes import Homes
from benchmarks.synthetic.chat import KEY, spoken_line

_TIMES = 10
_PAUSE = 0.2  # seconds between two lines that are written
_LONG_SESSION = 20_000  # messages

_PAGES = (
    ("the front page", "/-/assoc"),
    ("all tables", "/assoc"),
    ("table messages", "/assoc/messages"),
    ("table sessions", "/assoc/sessions"),
    ("table tool_calls", "/assoc/tool_calls"),
    ("table responses", "/assoc/responses"),
    ("table files", "/assoc/files"),
    ("search, rare", "/-/assoc/search?q=zanzibar0001"),
    ("search, common", "/-/assoc/search?q=error"),
    ("search, very common", "/-/assoc/search?q=the"),
    ("search, two words", "/-/assoc/search?q=error+file"),
    ("search, prefix", "/-/assoc/search?q=migrat*"),
    ("conversation of 20,000, first page", "/assoc/-/session/{long}"),
    ("conversation of 20,000, in its middle", "/assoc/-/session/{long}?at={middle}"),
    ("the largest other conversation", "/assoc/-/session/{largest}"),
    ("usage, all by day", "/assoc/-/stats?when=all"),
    ("usage, all by repository and model", "/assoc/-/stats?when=all&by=repository&split=model"),
    ("the largest project", "/assoc/-/project/{project}"),
)


class Page(NamedTuple):
    """What a page took: seconds the first time, in the middle and at worst, and its bytes."""

    what: str
    first: float
    middle: float
    worst: float
    size: int


def pages(program: Program, homes: Homes, home: Path, place: Path) -> tuple[str, list[Page]]:
    """Return what was in the database, and what each page took."""
    database, growing = place / "assoc.db", place / "growing"
    transcript = growing / "projects" / "-home-dev-plain" / "growing.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(spoken_line("growing"))
    roots = (home, homes.chat(_LONG_SESSION), growing)
    program.run("sync", *roots, "--db", database)
    with closing(sqlite3.connect(database)) as connection:
        names = _names(connection)
        (messages,) = connection.execute("select count(*) from messages").fetchone()
    with _serving(program, database) as address, _growing(transcript) as written:
        found = [_asked(what, address + path.format_map(names)) for what, path in _PAGES]
    return f"{messages:,} messages; {written[0]:,} lines written meanwhile", found


def _names(connection: sqlite3.Connection) -> dict[str, object]:
    def one(query: str, *values: object) -> object:
        return connection.execute(query, values).fetchone()[0]

    return {
        "long": KEY,
        "middle": _LONG_SESSION // 2,  # a line
        "largest": one(
            "select session_key from sessions where session_key <> ? order by message_count desc",
            KEY,
        ),
        "project": one("select id from projects order by session_count desc"),
    }  # fmt: skip


def _asked(what: str, address: str) -> Page:
    times = []
    for _ in range(_TIMES + 1):
        started = time.perf_counter()
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            size = len(answer.read())
        times.append(time.perf_counter() - started)
    first, *others = times
    return Page(what, first, median(others), max(others), size)


@contextmanager
def _serving(program: Program, database: Path) -> Iterator[str]:
    """Run `serve --watch` and yield its address, as soon as it answers."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with program.running("serve", "--watch", "--port", str(port), "--db", database):
        _wait_for(address)
        yield address


def _wait_for(address: str) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(f"{address}/-/versions.json", timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@contextmanager
def _growing(transcript: Path) -> Iterator[list[int]]:
    """Append to a transcript until the end, and count the lines."""
    ended, written = threading.Event(), [0]

    def write() -> None:
        while not ended.wait(_PAUSE):
            with transcript.open("ab") as file:
                file.write(spoken_line(f"growing {written[0]}"))
            written[0] += 1

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield written
    finally:
        ended.set()
        writer.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the pages of `serve --watch`.")
    parser.add_argument("--size", type=parse_size, default="1GB", metavar="SIZE")
    report.add_options(parser)
    given = parser.parse_args(arguments)
    homes = Homes(given.build)
    home = homes.of_size(given.size)
    with scratch(given.build) as user, scratch(given.build) as place:
        about, found = pages(Program(user), homes, home, place)
    rows = [
        (
            page.what,
            *(f"{1000 * seconds:.0f}" for seconds in (page.first, page.middle, page.worst)),
            f"{page.size / 1000:.0f}",
        )
        for page in found
    ]
    columns = ("", "first ms", "middle ms", "worst ms", "KB")
    report.show(given, "", [report.table(f"Pages of `serve --watch`: {about}", columns, rows)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
