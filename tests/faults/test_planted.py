"""The tests of this directory are worth something: bugs that are planted do not pass them.

Each bug is one that a change could really bring. The checks that look for it are the functions
that the other tests call, so a check that is weakened fails here.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.faults.changing import (
    Fresh,
    Home,
    assert_ends_as_from_scratch,
    assert_survives_a_kill_at_any_step,
)
from tests.faults.test_failing_reads import assert_any_read_may_fail
from tests.support.writing import TRANSCRIPT, jsonl, user, write

from assoc_ingest.derive import refresh
from assoc_ingest.files import archive, changes, tail
from assoc_ingest.files.changes import Step
from assoc_ingest.files.tail import Prefix, Stretch, read_at
from assoc_ingest.source import Checkpoint, Line
from assoc_ingest.store.batch import Batch
from assoc_ingest.store.rows import RowBuffer, Written
from assoc_ingest.sync import batches
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, connect
from assoc_ingest.testing.promises import read_in_pieces

Bug = Callable[[], Any]


# -- the checks ----------------------------------------------------------------------------------


def follows_changes(fresh: Fresh, place: Path) -> None:
    """Append to, cut, rewrite and replace files, with a sync after each."""
    home, database = Home(place / "home", 6), fresh()
    with read_in_pieces(chunk=1500, batch=2000):
        for _ in range(8):
            sync(database, [home.root])
            home.change()
            home.rewrite()
            sync(database, [home.root])
            check(database, home.root)
            assert sync(database, [home.root]).files_read == 0
    assert_ends_as_from_scratch(database, home.root, fresh)


def follows_a_writer(fresh: Fresh, place: Path) -> None:
    """A transcript grows by pieces of lines, with a sync after each."""
    database = fresh()
    data = jsonl(*(user(f"line {number}", f"u{number}") for number in range(5)))
    for size in range(0, len(data) + 60, 60):
        file = write(place / "home", TRANSCRIPT)
        file.write_bytes(data[:size])
        sync(database, [place / "home"])
        check(database, place / "home")
    assert_ends_as_from_scratch(database, place / "home", fresh)


@pytest.mark.slow
@pytest.mark.parametrize("check_", [follows_changes, follows_a_writer])
def test_without_a_bug_every_check_passes(
    check_: Callable[[Fresh, Path], None], fresh: Fresh, place: Path
) -> None:
    check_(fresh, place)


# -- the bugs ------------------------------------------------------------------------------------


def offset_before_rows() -> Any:
    """Checkpoints commit first: a kill behind them loses the rows."""

    def prepare(batch: Batch) -> None:
        buffer = batch._buffer
        (last,) = batch.connection.execute("select max(id) from messages").fetchone()
        first, end, buffer.next_id = (
            buffer.first_id,
            buffer.next_id,
            (last or 0) + 1,
        )
        for table in ("messages_fts", "messages_cjk_fts"):
            batch._index(table)  # so that it is the missing rows that tell, and not the index
        batch._file_rows.write_checkpoints(batch._files.values())
        batch.connection.execute("commit")
        batch.connection.execute("begin immediate")
        buffer.first_id, buffer.next_id = buffer.next_id, end
        buffer.flush()
        batch._file_rows.write_checkpoints(batch._files.values())
        batch._touched.first_message_id = first
        refresh(batch.connection, batch._touched)

    return patch.object(Batch, "prepare", prepare)


def offset_after_rows() -> Any:
    """Checkpoints commit last, on their own: a kill before them leaves rows beyond the offset."""

    def prepare(batch: Batch) -> None:
        batch._buffer.flush()
        batch._touched.first_message_id = batch._buffer.first_id
        refresh(batch.connection, batch._touched)

    def finish(batch: Batch) -> Written:
        for table in ("messages_fts", "messages_cjk_fts"):
            batch._index(table)
        batch.connection.execute("commit")
        batch.connection.execute("begin immediate")
        batch._file_rows.write_checkpoints(batch._files.values())
        batch.connection.execute("commit")
        return batch.written

    return patch.multiple(Batch, prepare=prepare, finish=finish)


def index_after_rows() -> Any:
    """The full-text index follows in a transaction of its own."""

    def finish(batch: Batch) -> Written:
        batch.connection.execute("commit")
        batch.connection.execute("begin immediate")
        for table in ("messages_fts", "messages_cjk_fts"):
            batch._index(table)
        batch.connection.execute("commit")
        return batch.written

    return patch.object(Batch, "finish", finish)


def marker_ignored() -> Any:
    """A file that is large enough is taken for one that only grew."""

    def resume(descriptor: int, size: int, known: Checkpoint, *, thorough: bool) -> Prefix | None:
        if size < known.offset:
            return None
        data = read_at(descriptor, known.offset, 0)
        return Prefix(known.offset, data[:1024], data[-1024:], known.prefix_crc)

    return patch.object(changes, "resume", resume)


def stale_rows() -> Any:
    """A rewritten file keeps the rows that stand where nothing new does."""

    def clear(batch: Batch, file_id: int) -> None:
        batch._buffer.flush()
        batch._touched.before_clearing(batch.connection, file_id)
        archive.clear(batch.connection, file_id)
        batch.connection.execute(
            "delete from messages where file_id = ? and byte_offset < 600", (file_id,)
        )
        for table in ("tool_calls", "usage", "issues", "line_types", "transcripts"):
            batch.connection.execute(f"delete from {table} where file_id = ?", (file_id,))

    return patch.object(Batch, "_clear", clear)


@contextmanager
def index_rows_stay() -> Iterator[None]:
    """Rows are deleted, and the words that the index has of them are not."""
    begin = Batch.__post_init__

    def without_trigger(batch: Batch) -> None:
        batch.connection.execute("drop trigger if exists messages_fts_delete")
        begin(batch)

    with patch.object(Batch, "__post_init__", without_trigger):
        yield


def last_come_first_served() -> Any:
    """Steps that waited for a commit are applied from the wrong end of the queue."""

    class Stack(deque[Step]):
        def popleft(self) -> Step:
            return self.pop()

    finish = Batch.finish

    def finish_late(batch: Batch) -> Written:
        if threading.current_thread() is not threading.main_thread():
            threading.Event().wait(0.02)  # long enough for two steps to wait
        return finish(batch)

    return _both(patch.object(batches, "deque", Stack), patch.object(Batch, "finish", finish_late))


def waiting_steps_dropped() -> Any:
    """What still waits when all files are read is forgotten."""
    leave = batches.Batches.__exit__

    def forget(waiting: batches.Batches, *arguments: Any) -> None:
        waiting._waiting.clear()
        leave(waiting, *arguments)

    finish = Batch.finish

    def finish_late(batch: Batch) -> Written:
        if threading.current_thread() is not threading.main_thread():
            threading.Event().wait(0.02)
        return finish(batch)

    return _both(
        patch.object(batches.Batches, "__exit__", forget),
        patch.object(batches.Batches, "mark_gone", lambda waiting, ids: None),
        patch.object(Batch, "finish", finish_late),
    )


def torn_line_consumed() -> Any:
    """The offset is the size of the file: the rest of a torn line is read as a line of its own."""

    def stretches(descriptor: int, start: int, size: int, complete: object) -> Iterator[Stretch]:
        data = read_at(descriptor, size - start, start)
        if data:
            lines = tail.lines_of(start, data)
            yield Stretch(start, data, [Line(*line) for line in lines])

    return patch.object(changes, "stretches", stretches)


def errors_passed_over() -> Any:
    """An insert that fails is passed over, and the rest of its batch is committed."""
    flush = RowBuffer.flush

    def go_on(buffer: RowBuffer) -> None:
        pending = buffer._pending
        try:
            flush(buffer)
        except sqlite3.Error:
            pending.clear()

    return patch.object(RowBuffer, "flush", go_on)


def halves_kept() -> Any:
    """What was read of a rewritten file before a read failed is committed with the rest."""
    return patch.object(batches.Batches, "_undo", lambda _: None)


@contextmanager
def _both(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


@pytest.mark.parametrize(
    ("bug", "check_"),
    [
        (offset_before_rows, assert_survives_a_kill_at_any_step),
        (offset_after_rows, assert_survives_a_kill_at_any_step),
        (index_after_rows, assert_survives_a_kill_at_any_step),
        (marker_ignored, follows_changes),
        (stale_rows, follows_changes),
        (index_rows_stay, follows_changes),
        (last_come_first_served, follows_changes),
        (waiting_steps_dropped, follows_changes),
        (torn_line_consumed, follows_a_writer),
        (halves_kept, assert_any_read_may_fail),
    ],
)
def test_a_planted_bug_is_caught(
    bug: Bug, check_: Callable[[Fresh, Path], None], fresh: Fresh, place: Path
) -> None:
    with bug(), pytest.raises((AssertionError, sqlite3.DatabaseError)) as caught:
        check_(fresh, place)
    print(bug.__name__, "was caught:", str(caught.value)[:200])


def test_an_error_that_is_passed_over_is_caught(fresh: Fresh, place: Path) -> None:
    database = fresh()
    connection = connect(database)
    connection.execute(
        "create trigger fails before insert on messages when new.uuid = 'u5'"
        " begin select raise(abort, 'disk I/O error'); end"
    )
    connection.close()
    write(place / "home", TRANSCRIPT, *(user(f"line {n}", f"u{n}") for n in range(9)))
    with errors_passed_over():
        sync(database, [place / "home"])
    with pytest.raises(AssertionError):
        check(database, place / "home")
