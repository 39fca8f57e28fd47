"""A line of any length is archived; one too long to be decoded is quarantined, and costs no memory.

Everything around it is read as ever, however the file came to be.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.child import Child
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    assistant,
    jsonl,
    user,
    write,
    write_bytes,
)
from tests.test_forget import forget_as, forgotten

from assoc_ingest.files import archive, changes, tail
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows
from assoc_ingest.testing.promises import read_in_pieces
from assoc_ingest.upkeep.verify import verify

META = f"projects/-srv-demo/{SESSION}/subagents/agent-a1b2c3d.meta.json"
REASON = "line is longer than 64 MiB"


@pytest.fixture
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MAX_LINE", 20_000)
    monkeypatch.setattr(changes, "MAX_LINE", 20_000)
    monkeypatch.setattr(tail, "CHUNK", 5_000)


BEFORE = jsonl(user("before", "u1"))
LONG = jsonl(user("x" * 50_000, "u2"))
AFTER = jsonl(assistant("after", "a1"))


def issues(database: Path) -> list[tuple[object, ...]]:
    return rows(
        database, "select reason, quarantined, sample, byte_offset, byte_length from issues"
    )


def texts(database: Path) -> list[str]:
    return [text for (text,) in rows(database, "select text from messages order by byte_offset")]


@pytest.mark.usefixtures("_short_limit")
def test_a_line_that_is_too_long_is_one_issue_between_its_neighbours(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, database = place / "home", fresh()
    file = write_bytes(home, TRANSCRIPT, BEFORE + LONG + AFTER)
    sync(database, [home])
    assert issues(database) == [(REASON, 1, None, len(BEFORE), len(LONG) - 1)]
    assert texts(database) == ["before", "after"]
    connection = connect(database)
    (offset,) = connection.execute("select offset from files").fetchone()
    assert b"".join(archive.read(connection, 1)) == file.read_bytes()
    connection.close()
    assert offset == file.stat().st_size
    assert sync(database, [home]).files_read == 0


@pytest.mark.usefixtures("_short_limit")
@pytest.mark.parametrize("before", range(0, 5_000, 500))
def test_where_reading_began_does_not_decide_what_is_too_long(
    before: int, fresh: Callable[[], Path], place: Path
) -> None:
    home, database = place / "home", fresh()
    longest, longer = b"{" + b"x" * 19_999, b"{" + b"x" * 20_000
    write(home, TRANSCRIPT, user("x" * before, "u1"), longest, longer, user("after", "u2"))
    sync(database, [home])
    reasons = [reason for reason, *_ in issues(database)]
    assert [reason == REASON for reason in reasons] == [False, True]
    assert len(texts(database)) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("_short_limit")
@pytest.mark.parametrize(
    "cut",
    [100, len(BEFORE) + 100, len(BEFORE) + 30_000, len(BEFORE + LONG) - 1, len(BEFORE + LONG)],
)
def test_it_may_be_written_in_parts(cut: int, fresh: Callable[[], Path], place: Path) -> None:
    home, database, other = place / "home", fresh(), fresh()
    whole = BEFORE + LONG + AFTER
    write_bytes(home, TRANSCRIPT, whole[:cut])
    sync(database, [home])
    write_bytes(home, TRANSCRIPT, whole)
    sync(database, [home])
    sync(other, [home])
    assert_same(dump(database), dump(other))


def whole(size: int, uuid: str) -> bytes:
    """Return an object of so many bytes, without a line feed."""
    line = jsonl(user("", uuid))[:-1]
    return line.replace(b'"content":""', b'"content":"' + b"x" * (size - len(line)) + b'"')


@pytest.mark.slow
@pytest.mark.usefixtures("_short_limit")
@pytest.mark.parametrize("end", [b"", b"\n", b"\n" + AFTER], ids=["open", "ended", "followed"])
@pytest.mark.parametrize("before", [b"", BEFORE], ids=["first", "second"])
@pytest.mark.parametrize("sizes", [(12_000, 7_999), (12_000, 9_000), (9_000, 9_000, 9_000)])
def test_objects_on_one_line_may_become_too_long_together(
    sizes: tuple[int, ...], before: bytes, end: bytes, fresh: Callable[[], Path], place: Path
) -> None:
    """Each was whole when it was read, and its line was not too long yet."""
    home, database = place / "home", fresh()
    file = write_bytes(home, TRANSCRIPT, before)
    parts = [whole(size, f"w{number}") for number, size in enumerate(sizes)]
    parts[-1] += end
    for number, part in enumerate(parts):
        with file.open("ab") as stream:
            stream.write(part)
        sync(database, [home])
        check(database, home)
        oracle = fresh()
        sync(oracle, [home])
        assert_same(dump(database), dump(oracle))
        assert len(texts(database)) > number + bool(before), "one is no longer there"
    assert issues(database) == []
    assert verify(database).findings == []


@pytest.mark.slow
@pytest.mark.usefixtures("_short_limit")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_appended_to_a_line_it_is_read_as_if_it_came_at_once(
    seed: int, fresh: Callable[[], Path], place: Path
) -> None:
    home, database, chance = place / "home", fresh(), random.Random(seed)
    file = write_bytes(home, TRANSCRIPT, b"")
    for number in range(18):
        part = chance.choice([
            *(whole(chance.randint(300, size), f"w{number}") for size in (9_000, 9_000, 21_000)),
            b"\n", b"  ", b"\0" * 9, b"garbage", whole(400, f"w{number}")[:200],
        ])  # fmt: skip
        with file.open("ab") as stream:
            stream.write(part)
        sync(database, [home])
        oracle = fresh()
        sync(oracle, [home])
        assert_same(dump(database), dump(oracle))
        oracle.unlink()
    check(database, home)
    assert verify(database).findings == []
    longest = max(map(len, file.read_bytes().split(b"\n")))
    assert longest > 20_000


@pytest.mark.slow
@pytest.mark.usefixtures("_short_limit")
def test_what_follows_a_line_of_just_the_limit_is_read_though_it_is_open(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, database, other = place / "home", fresh(), fresh()
    longest, tail_ = whole(20_000, "u1") + b"\n", whole(3_000, "u2")
    file = write_bytes(home, TRANSCRIPT, longest)
    sync(database, [home])
    file.write_bytes(longest + tail_)
    sync(database, [home])
    sync(other, [home])
    assert len(texts(other)) == 2
    assert_same(dump(database), dump(other))


@pytest.mark.slow
@pytest.mark.usefixtures("_short_limit")
@pytest.mark.parametrize("long", [b"{" + b"x" * 50_000, b'{"a": "' + b"x" * 50_000 + b'"} \t'])
def test_in_a_log_without_what_is_forgotten_it_is_the_same_issue(
    long: bytes, fresh: Callable[[], Path], place: Path
) -> None:
    """Nobody can tell whom it names, so of its bytes none is kept, whenever it was forgotten."""
    home, late, early = place / "home", fresh(), fresh()
    said = [
        {"display": word, "timestamp": 1783300000000 + n, "project": "/srv/demo", "sessionId": key}
        for n, (word, key) in enumerate([("mine", SESSION), ("theirs", OTHER), ("more", SESSION)])
    ]
    write(home, "history.jsonl", said[0], said[1], long, said[2], said[1])
    sync(late, [home])
    (issue,) = issues(late)
    forgotten(late, SESSION)
    check(late)
    assert issue in issues(late)
    forget_as(late, early)
    sync(early, [home])
    assert issue in issues(early)
    assert_same(dump(late), dump(early))
    assert not verify(late).findings
    for database in (late, early):
        connection = connect(database)
        assert b"xx" not in b"".join(archive.read(connection, 1))
        connection.close()


@pytest.mark.usefixtures("_short_limit")
def test_a_log_of_which_only_such_a_line_is_forgotten_is_as_it_was_read(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, late, early = place / "home", fresh(), fresh()
    said = {"display": "x", "timestamp": 1783300000000, "project": "/srv/demo", "sessionId": OTHER}
    long = b'{"a": "' + SESSION.encode() + b"x" * 50_000 + b'"}'
    write(home, f"{PROJECT}/{SESSION}.jsonl", user("mine", "u1"))
    write(home, "history.jsonl", said, long, said)
    sync(late, [home])
    forgotten(late, SESSION)
    check(late)
    forget_as(late, early)
    sync(early, [home])
    assert_same(dump(late), dump(early))
    assert not verify(late).findings


@pytest.mark.slow
@pytest.mark.usefixtures("_short_limit")
def test_small_batches_do_not_part_it_from_its_offset(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, database, other = place / "home", fresh(), fresh()
    write_bytes(home, TRANSCRIPT, BEFORE + LONG + AFTER)
    with read_in_pieces(chunk=700, batch=1):
        sync(database, [home])
    sync(other, [home])
    assert_same(dump(database), dump(other))


@pytest.mark.usefixtures("_short_limit")
def test_a_document_that_is_too_long_is_an_issue_until_it_is_shorter(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, database = place / "home", fresh()
    write(home, TRANSCRIPT, user("hello", "u1"))
    write_bytes(home, META, b'{"agentType":"' + b"x" * 30_000 + b'"}')
    sync(database, [home])
    assert issues(database) == [(REASON, 1, None, 0, 30_016)]
    write_bytes(home, META, b'{"agentType":"Explore"}')
    sync(database, [home])
    assert issues(database) == []


def test_a_line_of_megabytes_is_read_and_its_text_is_cut(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, database = place / "home", fresh()
    write(home, TRANSCRIPT, user("y" * 3_000_000, "u1"), user("z" * (256 * 1024), "u2"))
    sync(database, [home])
    check(database, home)
    rows = {row["uuid"]: row for row in dump(database)["messages"]}
    assert (len(rows["u1"]["text"]), rows["u1"]["is_cut"]) == (256 * 1024, 1)
    assert (len(rows["u2"]["text"]), rows["u2"]["is_cut"]) == (256 * 1024, 0)
    assert issues(database) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux does")
def test_a_line_of_a_hundred_megabytes_takes_no_hundred_megabytes(
    fresh: Callable[[], Path], tmp_path: Path, place: Path
) -> None:
    import resource

    home, database = tmp_path / "home", fresh()
    file = write_bytes(home, TRANSCRIPT, BEFORE)
    with file.open("ab") as stream:
        for _ in range(100):
            stream.write(b"x" * 1_000_000)
        stream.write(b"\n" + AFTER)

    def run() -> tuple[int, int]:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sync(database, [home])
        return before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before, after = Child(run).result()
    assert issues(database) == [(REASON, 1, None, len(BEFORE), 100_000_000)]
    assert texts(database) == ["before", "after"]
    assert os.path.getsize(file) > 100_000_000
    assert after - before < 180 * 1024, "kilobytes"
