"""A result that names no call answers the last open one before it, wherever the file was cut."""

from __future__ import annotations

from tests.support.rows import Rows, at

from assoc_ingest.derive.copies import refresh_answers, take_back


class Log:
    """A transcript with calls, and with results that do not say which call they answer."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        _, self.file = rows.session("one")

    def call(self, name: str | None = "Bash", second: int = 0, **values: object) -> int:
        message = self.rows.message(self.file, "tool_use", "{}", **values)
        offset, block = self.rows.get("messages", message, "byte_offset", "block")
        return self.rows.add(
            "tool_calls", name=name, status="pending", call_id=message, file_id=self.file,
            tool_use_id=f"t{message}", byte_offset=offset, block=block, started_at=at(second),
        )  # fmt: skip

    def result(
        self, name: str | None = None, second: int = 0, is_error: int = 0, **values: object
    ) -> int:
        message = self.rows.message(self.file, "tool_result", "done", **values)
        offset, block = self.rows.get("messages", message, "byte_offset", "block")
        self.rows.add(
            "unmatched_results", file_id=self.file, name=name, is_error=is_error,
            timestamp=at(second), byte_offset=offset, block=block,
        )  # fmt: skip
        return message

    def answers(self, *touched: int) -> dict[int, int | None]:
        """Derive, and return the result of each call."""
        self.rows.touch(touched or [self.file])
        refresh_answers(self.rows.connection)
        return dict(self.rows.all("select id, result_id from tool_calls"))


def test_a_result_answers_the_last_open_call_before_it(rows: Rows) -> None:
    log = Log(rows)
    first, second = log.call(), log.call()
    inner, outer = log.result(), log.result()
    late = log.call()
    assert log.answers() == {second: inner, first: outer, late: None}


def test_a_result_that_names_a_tool_answers_the_last_open_call_of_it(rows: Rows) -> None:
    log = Log(rows)
    bash, read, grep = log.call("Bash"), log.call("Read"), log.call("Grep")
    assert log.answers() == {bash: None, read: None, grep: None}
    named, other, unnamed = log.result("Read"), log.result("Grep"), log.result()
    assert log.answers() == {read: named, grep: other, bash: unnamed}


def test_a_call_that_is_answered_by_its_id_is_not_open(rows: Rows) -> None:
    log = Log(rows)
    first, second = log.call(), log.call()
    stated = rows.message(log.file, "tool_result", "done")
    rows.set("tool_calls", second, result_id=stated)
    result = log.result()
    assert log.answers() == {first: result, second: stated}


def test_a_result_without_an_open_call_answers_nothing(rows: Rows) -> None:
    log = Log(rows)
    log.result()
    call = log.call()
    log.result("Read")
    assert log.answers() == {call: None}


def test_the_call_learns_how_it_ended_and_how_long_it_took(rows: Rows) -> None:
    log = Log(rows)
    well, badly = log.call("Read", second=1), log.call("Bash", second=2)
    log.result("Bash", second=5, is_error=1)
    log.result("Read", second=4)
    log.answers()
    columns = ("status", "ended_at", "duration_ms")
    assert rows.get("tool_calls", well, *columns) == ("ok", at(4), 3000)
    assert rows.get("tool_calls", badly, *columns) == ("error", at(5), 3000)


def test_a_result_on_the_line_of_its_call_says_nothing_of_its_end(rows: Rows) -> None:
    log = Log(rows)
    call = log.call(byte_offset=0)
    result = log.result(byte_offset=0, block=1)
    assert log.answers() == {call: result}
    assert rows.get("tool_calls", call, "status", "ended_at", "duration_ms") == ("ok", None, None)


def test_a_clock_that_went_back_gives_no_negative_duration(rows: Rows) -> None:
    log = Log(rows)
    call = log.call(second=9)
    log.result(second=1)
    log.answers()
    assert rows.get("tool_calls", call, "duration_ms") == 0


def test_the_place_in_the_file_counts_and_not_the_order_of_reading(rows: Rows) -> None:
    log = Log(rows)
    outer, inner = log.result(byte_offset=250), log.result(byte_offset=200)
    later, last, first = (log.call(byte_offset=offset) for offset in (300, 101, 100))
    assert log.answers() == {last: inner, first: outer, later: None}


def test_a_file_that_grew_is_worked_out_again(rows: Rows) -> None:
    log = Log(rows)
    first, second = log.call(), log.call()
    result = log.result()
    assert log.answers() == {first: None, second: result}
    take_back(rows.connection, log.file)
    assert rows.get("tool_calls", second, "result_id", "status") == (None, "pending")
    stated = rows.message(log.file, "tool_result", "done")
    rows.set("tool_calls", second, result_id=stated, status="ok")
    assert log.answers() == {first: result, second: stated}


def test_other_files_are_left_alone(rows: Rows) -> None:
    log = Log(rows)
    call = log.call()
    log.result()
    assert log.answers(rows.file("other.jsonl")) == {call: None}


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    log = Log(rows)
    log.call(), log.call(), log.call("Read")
    log.result("Read", 3), log.result()
    log.answers()
    found = rows.all("select * from tool_calls")
    log.answers()
    assert rows.all("select * from tool_calls") == found
