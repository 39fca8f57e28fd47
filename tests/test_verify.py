"""`verify` finds each kind of damage, says what mends it, and finds nothing where nothing is wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cases import CASES, home_of
from tests.dump import connect
from tests.pieces import read_in_pieces
from tests.test_conformance import cuts, grow, logs_of, touch
from tests.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    assistant,
    call,
    jsonl,
    result,
    user,
    wait_for_clock,
    write,
    write_bytes,
)

from assoc_ingest import archive, reading, surroundings, tail
from assoc_ingest.cli import cli
from assoc_ingest.errors import DatabaseError
from assoc_ingest.sync import sync
from assoc_ingest.verdict import Finding, Verdict
from assoc_ingest.verify import verify

Fresh = Callable[[], Path]

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
DEMO = Path(__file__).parent / "demo"
REBUILD = "assoc-ingest rebuild"


def nothing(verdict: Verdict) -> None:
    """Fail with what was found."""
    assert verdict.findings == []
    assert verdict.counts["files"] > 0


def told(verdict: Verdict) -> list[tuple[str, str | None, int | None, str]]:
    """Return what was found: which check, in which file, at which byte, what mends it."""
    return [(f.check, f.path, f.byte_offset, f.remedy) for f in verdict.findings]


# -- nothing is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_found_in_a_case(case: str, fresh: Fresh, place: Path) -> None:
    home, database = home_of(case, place), fresh()
    sync(database, [home])
    nothing(verify(database))
    for path in logs_of(home)[:1]:
        whole = path.read_bytes()
        sizes = sorted({size for size in cuts(whole) if size <= len(whole)})
        database = fresh()
        grow(path, database, home, sizes[:: max(1, len(sizes) // 4)])
        nothing(verify(database))


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_found_however_it_was_read(case: str, fresh: Fresh, place: Path) -> None:
    home, database = home_of(case, place), fresh()
    with read_in_pieces(150, batch=150):
        sync(database, [home])
    with read_in_pieces(70, batch=70):
        nothing(verify(database))
    shutil.rmtree(home)
    nothing(verify(database))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="ASSOC_REAL_CORPUS names no transcripts")
def test_nothing_is_found_in_real_homes(fresh: Fresh) -> None:
    database = fresh()
    sync(database, sorted(CORPUS.glob("homes/*")))
    verdict = verify(database)
    nothing(verdict)
    assert verdict.counts["messages"] > 1000
    assert verdict.counts["files"] == verdict.counts["files_on_disk"]
