"""What questions cost: searches, and what a page of lists and sums asks.

    python -m benchmarks.asking ask DATABASE     searches and the questions of a page
    python -m benchmarks.asking show DATABASE SESSION    the first page of a conversation

Runs in a process of its own, beside the program that `PYTHONPATH` names, and prints JSON: for each
question [name, scope, milliseconds cold, milliseconds warm, rows]. *Cold* is a new connection to a
database that was put out of the page cache, so that its pages come from the disk again: only this
file, with `posix_fadvise`, which needs no privilege and slows down nobody else. *Warm* is the best
of some repetitions on that connection.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

from assoc_ingest import sql
from assoc_ingest.ask.conversation import Conversation
from assoc_ingest.ask.filters import Filters
from assoc_ingest.ask.search import find
from assoc_ingest.questions.question import Reader
from assoc_ingest.questions.stats import stats
from assoc_ingest.questions.status import status as current
from assoc_ingest.questions.transcript import Look, lines
from assoc_ingest.store.database import open_reader
from assoc_ingest.terminal import Paint
from benchmarks.cost import Answer
from benchmarks.synthetic.words import NEEDLE, PHRASE

SEARCHES = {
    "rare": NEEDLE.format(1),
    "common": "error",
    "very common": "the",
    "phrase": f'"{PHRASE}"',
    "prefix": "migrat*",
    "two words": "error migration",
    "Chinese": "数据库",
}
"""The generator plants them: `error` in a fifth of all rows, `the` in most, the rest rarer."""

PAGE_LINES = 100
_LIMIT = 20
_LISTED = 30
_REPEAT = 5
_ENOUGH = 2.0  # seconds after which a question is not repeated

Ask = Callable[[sqlite3.Connection], int]
"""Asks a question and returns how many rows it has for an answer."""


def searches() -> dict[tuple[str, str], Ask]:
    """Return the searches by name and scope."""
    return {
        (name, scope): _search(query, is_tools=scope == "tools")
        for scope in ("prose", "tools")
        for name, query in SEARCHES.items()
    }


def _search(query: str, *, is_tools: bool) -> Ask:
    return lambda connection: len(
        find(connection, query, limit=_LIMIT, tools=is_tools).read(_LIMIT).hits
    )


def pages(database: Path) -> dict[tuple[str, str], Ask]:
    """Return the questions of a page by name."""
    return {
        ("list sessions", ""): _query("lists/sessions", limit=_LISTED),
        ("stats", ""): lambda connection: len(
            stats.ask(Reader(connection, _LISTED), filters=Filters()).items
        ),
        ("tool_use", ""): _query("reports/tool_use"),
        ("status", ""): lambda connection: len(current.ask(Reader(connection, 0)).sources),
    }


def _query(name: str, **given: object) -> Ask:
    query = sql.query(name)
    parameters = {**dict.fromkeys(query.parameters), **given}
    return lambda connection: len(connection.execute(query.sql, parameters).fetchall())


def shown(session: str) -> dict[tuple[str, str], Ask]:
    """Return the question for the first page of a conversation."""

    def ask(connection: sqlite3.Connection) -> int:
        page = lines(Conversation(connection, session), Look(100, Paint(False)))
        return len(list(islice(page, PAGE_LINES)))

    return {("show, first page", ""): ask}


def measured(database: Path, asked: dict[tuple[str, str], Ask]) -> list[Answer]:
    """Ask each question, by name and scope, cold and warm."""
    answers = []
    for (name, scope), ask in asked.items():
        _put_out_of_the_cache(database)
        with closing(open_reader(database)) as connection:
            cold, rows = _timed(ask, connection)
            warm, left = cold, _ENOUGH
            for _ in range(_REPEAT):
                if left > 0:
                    again, rows = _timed(ask, connection)
                    warm, left = min(warm, again), left - again
        answers.append(Answer(name, scope, cold * 1000, warm * 1000, rows))
    return answers


def _timed(ask: Ask, connection: sqlite3.Connection) -> tuple[float, int]:
    started = time.perf_counter()
    rows = ask(connection)
    return time.perf_counter() - started, rows


def _put_out_of_the_cache(database: Path) -> None:
    """Let the system forget the pages of the database, where it can be asked to."""
    if hasattr(os, "posix_fadvise"):
        for path in (database, Path(f"{database}-wal")):
            if path.exists():
                descriptor = os.open(path, os.O_RDWR)
                os.fsync(descriptor)  # what is not on the disk yet stays in memory
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)


if __name__ == "__main__":
    what, place, *rest = sys.argv[1:]
    file = Path(place)
    questions = shown(*rest) if what == "show" else searches() | pages(file)
    print(json.dumps(measured(file, questions)))
