"""One run over one home: every command that goes through many bytes, each as a process.

The order is that of a user: a first sync, one that finds nothing, questions; then what keeps the
database sound; then transcripts that grow. So what a step costs does not depend on chance, and two
programs can be compared step by step.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.cost import Answer, Cost, Line, Program, best, scratch
from benchmarks.growing import LINES, Growing, latencies
from benchmarks.homes import Homes, size_of, transcripts
from benchmarks.synthetic.chat import KEY

QUESTION = "why did the migration fail with an error"


@dataclass(frozen=True, slots=True)
class Scale:
    """How large are the things that every run has beside the home that it measures."""

    growing: int = 7_000_000
    """Bytes of the transcript that is appended to and rewritten."""
    chat: int = 100_000
    """Messages of the session that is appended to."""
    shown: int = 20_000
    """Messages of the session whose first page is shown."""
    repeat: int = 5
    """How often a cheap step is repeated within a run."""
    watched: int = 10
    """Lines whose way through a watch is timed."""


@dataclass(slots=True)
class Run:
    """What one run measured."""

    lines: list[Line] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Seconds from an append to its row, under a watch."""


def run(program: Program, homes: Homes, home: Path, scale: Scale) -> Run:
    """Do everything once with a database of its own."""
    with scratch(homes.build) as place:
        found = Run()
        database = place / "assoc.db"
        found.lines.extend(_whole(program, home, database, scale, found))
        found.lines.extend(_growth(program, homes, home, place, scale, found))
        return found


def _whole(
    program: Program, home: Path, database: Path, scale: Scale, found: Run
) -> Iterator[Line]:
    """Yield the steps that go through the whole home."""
    cost = program.run("sync", home, "--db", database)
    stored = database.stat().st_size
    with closing(sqlite3.connect(database)) as connection:
        files, read = connection.execute("select files_read, bytes_read from sync_runs").fetchone()
        (rows,) = connection.execute("select count(*) from messages").fetchone()
        session, directory = connection.execute(
            "select session_key, cwd from sessions where kind = 'main' and cwd is not null"
            " order by ended_at desc limit 1"
        ).fetchone()
    note = f"{_many(files, 'file')}, {_many(rows, 'row')}, database {stored / read:.2f} x source"
    yield Line("first sync", cost, read, note)
    nothing = _repeated(scale, lambda: program.run("sync", home, "--db", database))
    yield Line("no-op sync", nothing, None, _many(len(transcripts(home)), "transcript"))
    found.answers.extend(_answers(program, "ask", database))
    yield Line("start: --version", _repeated(scale, lambda: program.run("--version")))
    event = json.dumps({"hook_event_name": "SessionStart", "session_id": "", "cwd": directory})
    for what, command, given in (
        ("search error", ("search", "error"), ""),
        ("search, a question", ("search", QUESTION), ""),
        ("show", ("show", session), ""),
        ("stats", ("stats",), ""),
        ("recall, for a hook", ("recall", "--hook", "session-start"), event),
    ):
        start = partial(program.run, *command, "--db", database, given=given)
        yield Line(f"start: {what}", _repeated(scale, start))
    yield Line("verify", program.run("verify", "--db", database), read)
    yield Line("rebuild", program.run("rebuild", "--db", database), read)
    yield Line("compact", program.run("compact", "--db", database), stored, "bytes of the database")


def _growth(
    program: Program, homes: Homes, home: Path, place: Path, scale: Scale, found: Run
) -> Iterator[Line]:
    """Yield the steps in which a transcript changes, in the database of the home."""
    database = place / "assoc.db"
    shown = place / "shown.db"
    program.run("sync", homes.chat(scale.shown), "--db", shown)
    found.answers.extend(_answers(program, "show", shown, KEY))
    growing = Growing(homes.one_file(scale.growing), place / "growing", scale.repeat)
    chat = Growing(homes.chat(scale.chat), place / "chat", scale.repeat)
    program.run("sync", growing.home, chat.home, "--db", database)
    for one, what in (
        (growing, f"to {amount(scale.growing)}"),
        (chat, f"to {scale.chat:,} messages"),
    ):
        yield from _appended(program, one, what, database, scale)
    growing.rewrite()
    size = size_of(growing.home)
    yield Line(
        f"rewrite of {amount(scale.growing)}",
        program.run("sync", growing.home, "--db", database),
        size,
    )
    found.latencies.extend(latencies(program, database, growing.home, growing.path, scale.watched))


def _appended(
    program: Program, one: Growing, what: str, database: Path, scale: Scale
) -> Iterator[Line]:
    """Yield what an append costs, and how much of it is the start of a sync that finds nothing."""

    def nothing() -> Cost:
        return program.run("sync", one.home, "--db", database)

    def appended() -> Cost:
        one.grow()
        return nothing()

    start, cost = _repeated(scale, nothing), _repeated(scale, appended)
    beyond = max(0.0, cost.wall - start.wall) * 1000
    note = f"{beyond:.0f} ms beyond the {start.wall:.2f} s of a sync that finds nothing"
    yield Line(f"{LINES} lines {what}", cost, None, note)


def _repeated(scale: Scale, step: Callable[[], Cost]) -> Cost:
    return best([step() for _ in range(scale.repeat)])


def _answers(program: Program, what: str, database: Path, *arguments: str) -> list[Answer]:
    printed = program.module("benchmarks.asking", what, database, *arguments)
    return [Answer(*row) for row in json.loads(printed)]


def amount(size: int) -> str:
    """Return bytes as they are written on the command line: 200 MB, 1 GB."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} bytes"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def folded(runs: list[Run]) -> Run:
    """Return one run of the best of several: each line's least, each answer's fastest."""
    first = runs[0]
    lines = [
        line._replace(cost=best([run.lines[place].cost for run in runs]))
        for place, line in enumerate(first.lines)
    ]
    answers = []
    for same in zip(*(run.answers for run in runs), strict=True):
        fastest = {"cold": min(a.cold for a in same), "warm": min(a.warm for a in same)}
        answers.append(same[0]._replace(**fastest))
    waits = [wait for run in runs for wait in run.latencies]
    return Run(lines, answers, waits)
