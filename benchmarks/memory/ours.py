"""Asks this program the cases, through the same questions as its commands."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir, closing
from dataclasses import replace
from pathlib import Path

from assoc_ingest.ask.blame import GRADES
from assoc_ingest.ask.refs import sessions_beginning_with
from assoc_ingest.errors import AssocIngestError
from assoc_ingest.questions.blame import blame
from assoc_ingest.questions.fix import fix
from assoc_ingest.questions.question import Reader
from assoc_ingest.questions.search import search
from assoc_ingest.store.database import open_reader
from benchmarks import search as searches
from benchmarks.cost import Program, scratch

from .case import BLAMES, KINDS, Case, read

CASES = Path(__file__).with_name("cases.jsonl")

_MOST = 100  # conversations of an answer, and places of each
_CLAIMS = GRADES[: GRADES.index("read")]

_BEFORE = {
    "calendar.py": "from crops import load\n\ncrops = load('crops.toml')\n\n\n"
    "def days(crop):\n    return range(crop.sown, crop.harvested)\n",
    "crops.toml": "[beans]\nsow = 'May'\n\n[kale]\nsow = 'March'\n",
}
_EDITED = {
    "calendar.py": (
        "def days(crop):",
        "def warnings(crop, forecast):\n"
        "    return [night for night in forecast if night.low < 0 and crop.is_tender]\n"
        "\n\ndef days(crop):",
    ),
    "crops.toml": ("[beans]", "[beans]\ntender = true"),
}
"""What the conversation about frost in `tests/demo` edited."""


def by_hand(build: Path) -> list[Case]:
    """Answer the cases made by hand whose homes are there."""
    homes = searches.homes()
    cases = [case for case in known() if case.home in homes]
    roots = [root for some in homes.values() for root in some]
    with scratch(build) as place:
        _demonstration(place / "repository")
        return list(_answers(place, roots, place / "repository", cases))


def of_set(place: Path, build: Path, most: int | None) -> list[Case]:
    """Answer the cases of a set, and those made by hand for it.

    `most` limits the first to so many of each kind, evenly spread over them.
    """
    cases = read(place / "cases.jsonl")
    if most:
        kinds = [[case for case in cases if case.kind == kind] for kind in KINDS]
        cases = [case for some in kinds for case in some[:: -(-len(some) // most) or 1]]
    cases += [case for case in read(CASES) if case.home == place.name]
    with scratch(build) as run:
        homes = sorted((place / "homes").iterdir())
        return list(_answers(run, homes, place / "repository", cases))


def known() -> list[Case]:
    """Return the cases made by hand, and those of searches that are questions."""
    asked = (
        Case(case.kind, case.query, case.right, case.home)
        for case in searches.cases()
        if case.kind in KINDS
    )
    return [*asked, *read(CASES)]


def _demonstration(place: Path) -> None:
    """Make the repository of the demonstration: a person's commit, and that of a conversation."""
    place.mkdir()
    _git(place, "", "init", "--quiet")
    for name, text in _BEFORE.items():
        (place / name).write_text(text, "utf-8")
    _commit(place, "Days of the planting calendar", "2026-02-10T18:00:00+0000")
    for name, (old, new) in _EDITED.items():
        (place / name).write_text(_BEFORE[name].replace(old, new), "utf-8")
    _commit(place, "Warn before a night below zero", "2026-03-02T08:19:00+0000")


def _commit(place: Path, subject: str, time: str) -> None:
    _git(place, time, "add", "--all")
    _git(place, time, "commit", "--quiet", "--message", subject)


def _git(place: Path, time: str, *arguments: str) -> None:
    """Run git so that a commit has the same hash everywhere."""
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", time))
    }
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(place), *arguments]
    subprocess.run(command, check=True, env={**os.environ, **who, **nothing})


def _answers(
    place: Path, roots: Sequence[Path], repository: Path, cases: Iterable[Case]
) -> Iterator[Case]:
    with scratch(place) as user:
        Program(user).run("sync", *roots, "--db", place / "assoc.db")
    with closing(open_reader(place / "assoc.db")) as connection, chdir(repository):
        for case in cases:
            yield _answer(connection, case)


def _answer(connection: sqlite3.Connection, case: Case) -> Case:
    reader = Reader(connection, _MOST, _MOST, is_program=True)
    if case.kind == "error":
        return _fixed(reader, case)
    if case.kind in BLAMES:
        return _blamed(reader, case)
    return _found(replace(reader, limit=10, each=1), case)


def _found(reader: Reader, case: Case) -> Case:
    answer = search.ask(reader, **search.arguments({"query": case.query}))
    keys = [one.best.session_key for one in answer.items]
    evidence = getattr(answer, "evidence", None) or ""
    return replace(case, found=tuple(filter(None, keys)), evidence=evidence)


def _blamed(reader: Reader, case: Case) -> Case:
    try:
        answer = blame.ask(reader, **blame.arguments({"what": case.query, "line": case.line}))
    except AssocIngestError:  # it means several things, or git does not know it
        return replace(case, found=())
    claims = sum(one.grade in _CLAIMS for one in answer.items)
    return replace(case, found=tuple(one.session_key for one in answer.items), claims=claims)


def _fixed(reader: Reader, case: Case) -> Case:
    answer = fix.ask(reader, **fix.arguments({"error": case.query}))
    if not answer.items:
        return replace(case, found=())
    first = answer.items[0]
    keys = [
        sessions_beginning_with(reader.db, one.key)[0]["session_key"]
        for one in first.occurrences
        if one.key
    ]
    ended = first.what if first.certainty else ""
    return replace(case, found=tuple(keys), fix=ended)
