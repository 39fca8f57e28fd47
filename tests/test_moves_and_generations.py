"""Nothing vanishes because a file did, and nothing is read twice because one moved.

A path that returns with what was read of it continues; one that returns as something else is a
new generation, and the old stays. A moved file keeps its rows and their ids.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    agent,
    assistant,
    user,
    wait_for_clock,
    write,
    write_bytes,
)

from assoc_ingest.files import tail, walk
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows

MOVED = f"projects/-srv-moved/{SESSION}.jsonl"
AGENT = f"{PROJECT}/{SESSION}/subagents/agent-a1b2c3d.jsonl"
META = f"{PROJECT}/{SESSION}/subagents/agent-a1b2c3d.meta.json"
HELLO, ANSWER, MORE = user("hello", "u1"), assistant("yes", "a1"), user("more", "u2", second=9)


class Index:
    """A home and its database."""

    def __init__(self, home: Path, fresh: Callable[[], Path]) -> None:
        self.home = home
        self.database = fresh()
        self._fresh = fresh
        (home / "projects" / "-srv-demo").mkdir(parents=True)

    def sync(self, *, full: bool = False) -> int:
        """Sync, check, and return how many files were read."""
        report = sync(self.database, [self.home], SyncOptions(full=full))
        check(self.database)
        return report.files_read

    def rows(self, columns: str, table: str) -> list[tuple[object, ...]]:
        return rows(self.database, f"select {columns} from {table} order by id")

    def files(self) -> list[tuple[object, ...]]:
        return self.rows("path, generation, gone_at is not null", "files")

    def texts(self) -> list[tuple[object, ...]]:
        return self.rows("id, text", "messages")

    def is_as_from_scratch(self) -> None:
        other = self._fresh()
        sync(other, [self.home])
        assert_same(dump(self.database), dump(other))


@pytest.fixture
def index(place: Path, fresh: Callable[[], Path]) -> Index:
    return Index(place / "home", fresh)


# -- moves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [[], [MORE]], ids=["as-it-was", "grown"])
def test_a_moved_file_keeps_its_rows_and_their_ids(index: Index, more: list[dict]) -> None:
    write(index.home, TRANSCRIPT, HELLO, ANSWER)
    index.sync()
    before = index.texts()
    (index.home / "projects/-srv-moved").mkdir()
    (index.home / TRANSCRIPT).rename(write(index.home, MOVED, b""))
    write(index.home, MOVED, HELLO, ANSWER, *more)
    index.sync()
    assert index.texts()[:2] == before
    assert len(index.texts()) == 2 + len(more)
    assert index.files() == [(MOVED, 0, 0)]
    assert index.sync() == 0
    index.is_as_from_scratch()


@pytest.mark.slow
def test_a_renamed_project_directory_takes_all_its_files_along(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO, ANSWER)
    write(index.home, AGENT, agent("a1b2c3d", user("Survey", "f1")))
    write_bytes(index.home, META, b'{"agentType":"Explore"}')
    index.sync()
    before = index.texts()
    (index.home / PROJECT).rename(index.home / "projects/-srv-moved")
    index.sync()
    assert index.texts() == before
    assert [gone for *_, gone in index.files()] == [0, 0, 0]
    assert index.rows("key", "projects") == [("-srv-moved",)]
    assert index.sync() == 0
    index.is_as_from_scratch()


@pytest.mark.slow
def test_a_second_generation_that_moves_is_the_first_of_its_new_path(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    (index.home / TRANSCRIPT).unlink()
    index.sync()
    write(index.home, TRANSCRIPT, MORE, ANSWER)
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 1), (TRANSCRIPT, 1, 0)]
    (index.home / "projects/-srv-demo").rename(index.home / "projects/-srv-moved")
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 1), (MOVED, 0, 0)]


def test_another_session_key_makes_it_another_file(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    (index.home / TRANSCRIPT).rename(index.home / f"{PROJECT}/{OTHER}.jsonl")
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 1), (f"{PROJECT}/{OTHER}.jsonl", 0, 0)]
    assert [text for _, text in index.texts()] == ["hello", "hello"]


def test_a_file_with_other_content_has_not_moved(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    (index.home / TRANSCRIPT).unlink()
    write(index.home, MOVED, user("another hello", "u9"))
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 1), (MOVED, 0, 0)]


def test_a_copy_beside_the_original_has_not_moved(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    write(index.home, MOVED, HELLO)
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 0), (MOVED, 0, 0)]
    index.is_as_from_scratch()


def test_two_files_that_change_places_are_read_for_what_they_are(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    write(index.home, f"{PROJECT}/{OTHER}.jsonl", MORE)
    index.sync()
    one, two = index.home / TRANSCRIPT, index.home / f"{PROJECT}/{OTHER}.jsonl"
    aside = one.rename(one.with_suffix(".tmp"))
    two.rename(one)
    aside.rename(two)
    index.sync()
    index.is_as_from_scratch()


# -- gone and back -------------------------------------------------------------------------------


def test_a_deleted_file_keeps_its_rows(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO, ANSWER)
    index.sync()
    before = dump(index.database)
    (index.home / TRANSCRIPT).unlink()
    assert index.sync() == 0
    assert index.files() == [(TRANSCRIPT, 0, 1)]
    after = dump(index.database)
    (project,) = after["projects"]
    assert project["directory"] == "-srv-demo", "it is empty now"
    project["directory"] = None
    for table in ("messages", "sessions", "tool_calls", "responses", "projects", "line_types"):
        assert after[table] == before[table]
    (since,) = index.rows("gone_at", "files")
    index.sync()
    assert index.rows("gone_at", "files") == [since]  # since it was first found missing


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], [MORE]], ids=["as-it-was", "grown"])
def test_a_file_that_returns_continues(index: Index, more: list[dict]) -> None:
    write(index.home, TRANSCRIPT, HELLO, ANSWER)
    index.sync()
    before = index.texts()
    (index.home / TRANSCRIPT).unlink()
    index.sync()
    write(index.home, TRANSCRIPT, HELLO, ANSWER, *more)
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 0)]
    assert index.texts()[:2] == before
    assert index.sync() == 0
    index.is_as_from_scratch()


@pytest.mark.slow
def test_a_path_that_returns_as_something_else_is_a_new_generation(index: Index) -> None:
    for number in range(3):
        write(index.home, TRANSCRIPT, user(f"life {number}", f"u{number}"))
        index.sync()
        (index.home / TRANSCRIPT).unlink()
        index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 1), (TRANSCRIPT, 1, 1), (TRANSCRIPT, 2, 1)]
    assert [text for _, text in index.texts()] == ["life 0", "life 1", "life 2"]
    write(index.home, TRANSCRIPT, user("life 2", "u2"), MORE)
    index.sync()
    assert index.files()[2] == (TRANSCRIPT, 2, 0)
    assert [text for _, text in index.texts()] == ["life 0", "life 1", "life 2", "more"]
    assert index.sync() == 0


def test_a_file_replaced_between_two_syncs_is_a_rewrite(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    (index.home / TRANSCRIPT).unlink()
    write(index.home, TRANSCRIPT, user("quite another", "u7"))
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 0)]
    assert [text for _, text in index.texts()] == ["quite another"]
    index.is_as_from_scratch()


@pytest.mark.parametrize("content", [b"", b'{"type":"user","mess'], ids=["empty", "torn"])
def test_a_file_of_which_nothing_was_read_can_go_and_come_back(
    index: Index, content: bytes
) -> None:
    write_bytes(index.home, TRANSCRIPT, content)
    index.sync()
    (index.home / TRANSCRIPT).unlink()
    index.sync()
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    assert index.files() == [(TRANSCRIPT, 0, 0)]
    index.is_as_from_scratch()


def test_a_missing_root_makes_nothing_gone(index: Index, place: Path) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    index.home.rename(place / "unmounted")
    report = sync(index.database, [])
    assert report.missing_roots == [str(index.home)]
    assert index.files() == [(TRANSCRIPT, 0, 0)]
    assert index.rows("gone_at is not null", "sources") == [(1,)]
    (place / "unmounted").rename(index.home)
    assert index.sync() == 0
    assert index.rows("gone_at", "sources") == [(None,)]
    index.is_as_from_scratch()


# -- changes that hide ---------------------------------------------------------------------------


def test_a_byte_changed_in_place_is_seen_though_size_and_time_are_as_before(
    index: Index, place: Path
) -> None:
    file = write(index.home, TRANSCRIPT, HELLO, ANSWER)
    index.sync()
    wait_for_clock(place)
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b"hello", b"hullo"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    index.sync()
    assert [text for _, text in index.texts()] == ["hullo", "yes"]
    index.is_as_from_scratch()


@pytest.mark.slow
@pytest.mark.parametrize("step", [200_000_000, 1_000_000_000, 0], ids=["tick", "second", "real"])
def test_a_file_that_is_written_again_at_once_with_as_many_bytes_is_read_again(
    step: int, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a file moves in steps, and both times may lie in one."""
    waits: list[float] = []
    sleep, found, present = time.sleep, walk._found, tail.present

    def cut(moment: int) -> int:
        return moment // step * step + (step < 10**9) if step else moment

    def cut_found(*arguments: Any) -> walk.FoundFile | None:
        file = found(*arguments)
        return file and file._replace(mtime_ns=cut(file.mtime_ns), ctime_ns=cut(file.ctime_ns))

    def wait(seconds: float) -> None:
        waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(walk, "_found", cut_found)
    monkeypatch.setattr(tail, "present", lambda: cut(present()) if step < 10**9 else present())
    monkeypatch.setattr(time, "sleep", wait)
    for number in range(1 if step == 1_000_000_000 else 6):
        for word in ("hello", "hullo"):
            write(index.home, TRANSCRIPT, user(f"{word} {number:02d}", "u1"))
            index.sync()
            assert [text for _, text in index.texts()] == [f"{word} {number:02d}"]
        before = len(waits)
        assert index.sync() == 0
        assert len(waits) == before, "nothing changed, and it waited"
    assert waits or not step


def test_a_time_of_another_clock_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(seconds: float) -> None:
        raise AssertionError(f"it waits for {seconds} s")

    monkeypatch.setattr(time, "sleep", fail)
    monkeypatch.setattr(tail, "present", lambda: 1_768_903_200_123_456_789)
    for ahead in (60_000_000, 3_000_000_000, 10**18, -1, -(10**18)):
        tail.wait_out(tail.present() + ahead)


@pytest.mark.slow
def test_a_changed_middle_of_a_large_file_that_grew_is_found_by_a_full_sync(index: Index) -> None:
    many = [user("x" * 1000, f"u{number}") for number in range(1500)]
    file = write(index.home, TRANSCRIPT, *many)
    assert file.stat().st_size > 1024 * 1024
    index.sync()
    middle = file.read_bytes().replace(b'"u750"', b'"v750"', 1)
    file.write_bytes(middle + (index.home / TRANSCRIPT).read_bytes()[:0])
    write_bytes(index.home, TRANSCRIPT, middle + b'{"type":"mode","mode":"x","sessionId":"s"}\n')
    index.sync(full=True)
    index.is_as_from_scratch()


def test_a_large_file_that_a_longer_one_replaces_is_compared_as_a_whole(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins like the old one, and has the end of what was read where that was."""
    monkeypatch.setattr(tail, "_ALWAYS_CHECKED", 0)
    lines = [user("x" * 500, f"u{number}") for number in range(12)]
    file = write(index.home, TRANSCRIPT, *lines)
    index.sync()
    lines[6] = user("y" * 500, "u6")
    write(index.home, "new", *lines, MORE).replace(file)
    index.sync()
    index.is_as_from_scratch()


def test_a_file_that_was_only_touched_is_not_read_again(index: Index) -> None:
    file = write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    before = index.texts()
    os.utime(file, ns=(1, 2 * 10**18))
    assert index.sync() == 0
    assert index.texts() == before
    assert index.rows("mtime_ns", "files") == [(2 * 10**18,)]


def test_deleting_and_creating_reuses_inodes_and_deceives_nobody(index: Index) -> None:
    for number in range(8):
        write(index.home, TRANSCRIPT, user(f"try {number}", "u1"))
        index.sync()
        assert [text for _, text in index.texts()] == [f"try {number}"]
        (index.home / TRANSCRIPT).unlink()


# -- documents -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_broken_document_keeps_its_rows_until_it_is_whole_again(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    whole, other = b'{"agentType":"Explore"}', b'{"agentType":"Plan"}'
    for content, kind, issues in (
        (whole, "Explore", 0),
        (whole[:9], "Explore", 1),
        (b"", "Explore", 1),
        (whole, "Explore", 0),
        (b"[]", "Explore", 1),
        (other, "Plan", 0),
    ):
        write_bytes(index.home, META, content)
        index.sync()
        assert index.rows("agent_type", "subagents") == [(kind,)]
        assert index.rows("reason is not null", "issues") == [(1,)] * issues
        assert index.sync() == 0
    index.is_as_from_scratch()


@pytest.mark.slow
def test_a_document_that_returns_is_no_longer_gone(index: Index) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    write_bytes(index.home, META, b'{"agentType":"Explore"}')
    index.sync()
    for content in (b'{"agentType":"Explore"}', b'{"agentType":"Plan"}'):
        (index.home / META).unlink()
        index.sync()
        assert (META, 0, 1) in index.files()
        write_bytes(index.home, META, content)
        index.sync()
        assert (META, 0, 0) in index.files()
        index.is_as_from_scratch()


def test_a_whole_home_that_was_copied_is_read_once_more(index: Index, place: Path) -> None:
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    shutil.copytree(index.home, place / "backup")
    assert sync(index.database, [place / "backup"]).files_read == 1
    check(index.database, index.home, place / "backup")
    query = "select count(*) from messages where copy_of is null"
    assert rows(index.database, query) == [(1,)]


def test_a_title_that_a_rewrite_takes_back_is_gone_from_the_session_it_titled(
    tmp_path: Path, fresh: Callable[[], Path]
) -> None:
    index = Index(tmp_path / "home", fresh)
    write(index.home, TRANSCRIPT, user("hello", "u1"))
    other = f"{PROJECT}/{OTHER}.jsonl"
    own = user("mine", "o1", sessionId=OTHER)
    write(index.home, other, {"type": "summary", "summary": "A title", "leafUuid": "u1"}, own)
    index.sync()
    assert ("A title",) in index.rows("title", "sessions")
    write(index.home, other, own)
    index.sync()
    assert ("A title",) not in index.rows("title", "sessions")


def test_nothing_is_left_of_a_project_whose_only_file_moved(
    place: Path, fresh: Callable[[], Path]
) -> None:
    """Its session has a file in another project, too, and belongs to that one."""
    index = Index(place / "home", fresh)
    write(index.home, f"projects/-srv-Demo/{SESSION}.jsonl", HELLO, ANSWER)
    write(index.home, TRANSCRIPT, HELLO)
    index.sync()
    assert {key for (key,) in index.rows("key", "projects")} == {"-srv-Demo", "-srv-demo"}
    (index.home / "projects" / "-srv-demo").rename(index.home / "projects" / "-srv-moved")
    index.sync()
    assert {key for (key,) in index.rows("key", "projects")} == {"-srv-Demo", "-srv-moved"}
