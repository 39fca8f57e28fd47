"""What a conversation took back is marked, and nothing else is, wherever the file was cut."""

from __future__ import annotations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.copies import refresh_superseded


class Log:
    """A transcript of messages, some of which a later line takes back."""

    def __init__(self, rows: Rows, key: str = "one") -> None:
        self.rows = rows
        _, self.file = rows.session(key)
        self.offset = 0

    def say(self, *names: str) -> None:
        for name in names:
            self.rows.message(self.file, "text", name, uuid=name, byte_offset=self.offset, block=0)
            self.offset += 10

    def take_back(self, uuid: str | None = None, offset: int | None = None) -> None:
        self.rows.add(
            "superseded", first_uuid=uuid, first_offset=offset, file_id=self.file,
            byte_offset=self.offset,
        )  # fmt: skip
        self.offset += 10

    def marked(self) -> list[str]:
        self.rows.touch([self.file])
        refresh_superseded(self.rows.connection)
        query = "select text from messages where is_superseded and file_id = ? order by byte_offset"
        return [text for (text,) in self.rows.connection.execute(query, (self.file,))]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"uuid": "b"}, ["b", "c"]),
        ({"offset": 20}, ["c"]),
        ({"uuid": "x"}, ["a", "b", "c"]),
        ({}, ["a", "b", "c"]),
    ],
)  # fmt: skip
def test_everything_from_there_up_to_the_line_that_says_so_is_taken_back(
    start: dict[str, object], expected: list[str], rows: Rows
) -> None:
    log = Log(rows)
    log.say("a", "b", "c")
    log.take_back(**start)  # type: ignore[arg-type]
    log.say("d")
    assert log.marked() == expected


def test_what_is_said_again_after_it_is_not_taken_back(rows: Rows) -> None:
    log = Log(rows)
    log.say("a", "b")
    log.take_back("a")
    log.say("a", "c")
    assert log.marked() == ["a", "b"]
    assert len(log.marked()) == 2
    log.take_back("c")
    assert log.marked() == ["a", "b", "c"]


def test_another_file_with_the_same_lines_keeps_its_own(rows: Rows) -> None:
    first, second = Log(rows), Log(rows, "two")
    first.say("a", "b")
    second.say("x", "a", "b")
    second.take_back("b")
    assert first.marked() == []
    assert second.marked() == ["b"]
