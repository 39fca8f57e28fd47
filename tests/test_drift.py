"""What agents write that is newer than their readers is told, with the version that wrote it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.writing import PROJECT, user, write

from assoc_ingest import sql
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import connect
from assoc_ingest.upkeep.status import facts


def session(number: int) -> str:
    return f"{number:08d}-1111-4222-8333-444455556666"


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_says_with_which_versions_it_was_checked_or_that_it_is_not_known(
    name: str,
) -> None:
    checked = SOURCES[name].checked
    assert checked is None or checked.split()[-1].replace(".", "").isdigit()


@pytest.mark.parametrize(
    ("versions", "told"),
    [
        (("2.1.330", "2.1.99", "1.0.0"), []),
        (("2.1.330.4",), []),  # begins like the newest that was checked
        (("2.1.331", "2.1.330", "10.0", "2.1.331"), [("10.0", 3)]),
        (("a riddle", "3-beta"), []),
    ],
)
def test_the_newest_version_that_no_reader_was_checked_with_is_told(
    tmp_path: Path,
    fresh: Callable[[], Path],
    versions: tuple[str, ...],
    told: list[tuple[str, int]],
) -> None:
    for number, version in enumerate(versions):
        key = session(number)
        line = user("a", key, sessionId=key, version=version)
        write(tmp_path, f"{PROJECT}/{key}.jsonl", line)
    sync(database := fresh(), [tmp_path])
    with closing(connect(database)) as connection:
        status = facts(connection, database)
    found = status["newer_versions"]
    assert [(row["version"], row["sessions"]) for row in found] == told
    assert [row["checked"] for row in status["sources"]] == [SOURCES["claude"].checked]


def test_issues_are_grouped_by_the_version_that_wrote_their_line(
    tmp_path: Path, fresh: Callable[[], Path]
) -> None:
    key = session(0)
    lines = [
        user("a", "u1", sessionId=key, version="2.1.330"),
        user("b", "u2", sessionId=key, version="2.1.330", timestamp="soon"),
        user("c", "u3", sessionId=key, version="2.1.331", timestamp="later"),
        user("d", "u4", sessionId=key, version="2.1.331", timestamp="never"),
    ]
    write(tmp_path, f"{PROJECT}/{key}.jsonl", *lines)
    sync(database := fresh(), [tmp_path])
    with closing(connect(database)) as connection:
        rows = sql.ask(connection, "reports/issues_by_version").fetchall()
    assert [(row["version"], row["reason"], row["pieces"], row["kind"]) for row in rows] == [
        ("2.1.330", "timestamp: unusable str", 1, "transcript"),
        ("2.1.331", "timestamp: unusable str", 2, "transcript"),
    ]
    assert {Path(str(row["example"])).name for row in rows} == {f"{key}.jsonl"}
