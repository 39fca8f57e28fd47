"""A line that stands in several places has one original, which follows from the files alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.copies import refresh_copies


def read(rows: Rows, *files: int, first: int = 0, **touched: set[int]) -> set[int]:
    """Derive after a batch with these files, whose messages begin with the id `first`."""
    return refresh_copies(rows.connection, rows.touch(files, first_message_id=first, **touched))


def transcript(rows: Rows, key: str, *lines: str, **values: object) -> int:
    """Insert a session whose transcript has these lines: u7 was said at second 7."""
    _, file = rows.session(key)
    rows.set("files", file, **{"path": f"{key}.jsonl", **values})
    rows.add("transcripts", file_id=file)
    for uuid in lines:
        say(rows, file, uuid)
    return file


def say(rows: Rows, file: int, uuid: str | None, kind: str = "prompt", **values: object) -> int:
    second = (uuid or "u0").removeprefix("u")
    values = {"timestamp": f"2026-01-20T10:00:0{second}.000Z", **values}
    return rows.message(file, kind, "hello", uuid=uuid, **values)


def originals(rows: Rows, uuid: str) -> set[str]:
    """Return the files of the occurrences of a line that are no copies, and that copies name."""
    found = rows.all(
        "select f.path from messages m join messages o on o.id = coalesce(m.copy_of, m.id)"
        " join files f on f.id = o.file_id where m.uuid = ? and o.copy_of is null",
        uuid,
    )
    return set(found)


def counts(rows: Rows, file: int) -> tuple[int, int, int]:
    """Return how many lines repeat others, how many of them other sessions', and how many calls."""
    (found,) = rows.all(
        "select repeated_count, copied_count, repeated_call_count from transcripts"
        " where file_id = ?",
        file,
    )
    return tuple(found)


def test_a_line_that_stands_once_is_no_copy(rows: Rows) -> None:
    assert read(rows, transcript(rows, "a", "u1", "u2")) == set()
    assert rows.all("select copy_of from messages") == [None, None]


def test_the_original_is_in_the_session_that_went_its_own_way_first(rows: Rows) -> None:
    fork = transcript(rows, "a", "u1", "u2", "u9")
    session = transcript(rows, "b", "u1", "u2", "u3", "u4")
    assert read(rows, fork, session) == {fork, session}
    assert originals(rows, "u1") == originals(rows, "u2") == {"b.jsonl"}
    assert rows.get("files", session, "own_since") == "2026-01-20T10:00:03.000Z"
    assert counts(rows, fork) == (2, 2, 0)
    assert counts(rows, session) == (0, 0, 0)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"kind": "agent", "path": "a.jsonl"}, "an agent's file comes after a main file"),
        ({"generation": 1}, "a later file of one path comes after the one before"),
        ({"path": "z.jsonl"}, "paths in order, where nothing else tells"),
    ],
)
def test_the_original_is_in_the_file_that_ranks_first(
    rows: Rows, other: dict[str, object], what: str
) -> None:
    second = transcript(rows, "a", "u1", **{"path": "b.jsonl", **other})
    first = transcript(rows, "b", "u1")
    read(rows, second, first)
    assert rows.all("select file_id from messages where copy_of is null") == [first], what


def test_a_background_fork_has_no_originals_of_a_foreground_session(rows: Rows) -> None:
    fork = transcript(rows, "a", "u1", "u2")
    session = transcript(rows, "b", "u1", "u9")
    rows.connection.execute("update transcripts set session_kind = 'bg' where file_id = ?", (fork,))
    read(rows, fork, session)
    assert originals(rows, "u1") == {"b.jsonl"}


def test_the_order_of_reading_does_not_matter(empty: Callable[[], Rows]) -> None:
    lines = {"a": ("u1", "u2", "u7"), "b": ("u1", "u2", "u3"), "c": ("u2", "u1", "u5")}
    for order in permutations(lines):
        rows = empty()
        for key in order:
            (first,) = rows.all("select coalesce(max(id), 0) + 1 from messages")
            read(rows, transcript(rows, key, *lines[key]), first=first)
        assert originals(rows, "u1") == originals(rows, "u2") == {"b.jsonl"}, order
        repeated = rows.all(
            "select repeated_count from transcripts x join files f on f.id = file_id order by path"
        )
        assert repeated == [2, 0, 2], order


def test_a_session_that_goes_its_own_way_later_takes_the_originals_over(rows: Rows) -> None:
    read(rows, transcript(rows, "a", "u1", "u5"), transcript(rows, "b", "u1"))
    (waiting,) = rows.all("select id from files where path = 'b.jsonl'")
    assert rows.get("files", waiting, "own_since") is None
    assert originals(rows, "u1") == {"b.jsonl"}  # nothing in it is known to be later
    grown = say(rows, waiting, "u9")
    assert read(rows, waiting, first=grown) == set(rows.all("select id from files"))
    assert originals(rows, "u1") == {"a.jsonl"}


def test_a_line_that_only_its_own_file_repeats_is_its_own(rows: Rows) -> None:
    file = transcript(rows, "a", "u1", "u2", "u2")
    read(rows, file, transcript(rows, "b", "u1", "u9"))
    assert rows.get("files", file, "own_since") == "2026-01-20T10:00:02.000Z"


def test_a_compaction_repeats_lines_of_its_own_file(rows: Rows) -> None:
    file = transcript(rows, "a", "u1", "u2", "u1")
    assert read(rows, file) == set()
    first, _, again = rows.all("select id from messages order by byte_offset")
    assert rows.get("messages", again, "copy_of") == first
    assert counts(rows, file) == (1, 0, 0)


def test_each_block_is_a_copy_of_the_same_block(rows: Rows) -> None:
    for key in "ab":
        file = transcript(rows, key)
        for block in (0, 1):
            say(rows, file, "u1", byte_offset=0, block=block)
    read(rows, *rows.all("select id from files"))
    pairs = rows.all(
        "select m.block, o.block from messages m join messages o on o.id = m.copy_of order by 1"
    )
    assert pairs == [(0, 0), (1, 1)]


def test_a_line_counts_as_repeated_only_if_all_of_its_blocks_are(rows: Rows) -> None:
    session, fork = transcript(rows, "a", "u1", "u2"), transcript(rows, "b", "u2", "u9")
    say(rows, fork, "u1", byte_offset=0)
    say(rows, fork, "u1", byte_offset=0, block=1)
    read(rows, session, fork)
    assert counts(rows, fork) == (1, 1, 0)


def test_a_line_without_a_name_is_nobodys_copy(rows: Rows) -> None:
    files = [transcript(rows, key) for key in "ab"]
    for file in files:
        say(rows, file, None)
    assert read(rows, *files) == set()
    assert rows.all("select copy_of from messages") == [None, None]


def test_a_repeated_call_is_counted(rows: Rows) -> None:
    files = [transcript(rows, key, "u1") for key in "ab"]
    for file in files:
        call = say(rows, file, "u2", "tool_use")
        rows.add("tool_calls", name="Bash", call_id=call, file_id=file, tool_use_id="t1")
    read(rows, *files)
    assert [counts(rows, file) for file in files] == [(0, 0, 0), (2, 2, 1)]


def test_a_copy_in_the_same_session_is_no_copy_of_another(rows: Rows) -> None:
    first = transcript(rows, "a", "u1")
    second = rows.file("z.jsonl", session_id=rows.get("files", first, "session_id"))
    rows.add("transcripts", file_id=second)
    say(rows, second, "u1")
    read(rows, first, second)
    assert counts(rows, second) == (1, 0, 0)


def test_a_copy_whose_original_was_rewritten_becomes_the_original(rows: Rows) -> None:
    rewritten, left = transcript(rows, "a", "u1"), transcript(rows, "b", "u1")
    read(rows, rewritten, left)
    rows.connection.execute("update messages set uuid = 'u8' where file_id = ?", (rewritten,))
    assert left in read(rows, rewritten, shared={left})
    assert originals(rows, "u1") == {"b.jsonl"}
    assert counts(rows, left) == (0, 0, 0)


def test_a_file_that_moved_has_another_rank(rows: Rows) -> None:
    one, two = transcript(rows, "a", "u1", "u5"), transcript(rows, "b", "u1")
    say(rows, two, "u6", timestamp="2026-01-20T10:00:05.000Z")
    read(rows, one, two)
    assert originals(rows, "u1") == {"a.jsonl"}
    rows.set("files", one, path="z.jsonl")
    assert read(rows, one, first=99, moved={one}) == {one, two}
    assert originals(rows, "u1") == {"b.jsonl"}


def test_an_append_to_a_fork_leaves_what_it_repeats_alone(rows: Rows) -> None:
    read(rows, transcript(rows, "a", "u1", "u2"), transcript(rows, "b", "u1", "u3"))
    copies = rows.all("select copy_of from messages")
    (fork,) = rows.all("select id from files where path = 'b.jsonl'")
    grown = say(rows, fork, "u4")
    before = rows.connection.total_changes
    assert read(rows, fork, first=grown) == set()
    assert rows.all("select copy_of from messages where id < ?", grown) == copies
    assert rows.connection.total_changes - before < 10


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    files = [transcript(rows, key, "u1", own) for key, own in (("a", "u3"), ("b", "u2"))]
    assert read(rows, *files) == set(files)
    found = rows.all("select id, copy_of from messages")
    assert read(rows, *files, first=99) == set()
    assert read(rows, *files) == set(files)
    assert rows.all("select id, copy_of from messages") == found
