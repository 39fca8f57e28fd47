"""No conversation is left out silently: what is not read as one is an issue that says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import PROJECT, SESSION, TRANSCRIPT, user, write, write_bytes

from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows
from assoc_ingest.upkeep.verify import verify

ODD = f"{PROJECT}/notes.jsonl"
KINDS = "select kind from files where path like '%.jsonl'"
ISSUES = "select reason, quarantined, byte_offset, byte_length from issues"
TEXTS = "select kind, text from messages order by byte_offset, block"

Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def home(place: Path) -> Path:
    write(place / "home", f"{PROJECT}/11111111-0000-4000-8000-000000000000.jsonl")
    return place / "home"


@pytest.fixture
def database(fresh: Callable[[], Path]) -> Path:
    return fresh()


@pytest.fixture
def ask(database: Path, home: Path) -> Ask:
    """Syncs the home, verifies the database, and returns the rows of a query."""

    def run(query: str) -> list[tuple[Any, ...]]:
        sync(database, [home])
        check(database, home)
        assert verify(database).findings == []
        return rows(database, query)

    return run


def summaries(count: int) -> list[dict[str, Any]]:
    return [{"type": "summary", "summary": f"t{n}", "leafUuid": f"x{n}"} for n in range(count)]


@pytest.mark.parametrize("count", [1, 19, 20, 21, 3000])
def test_a_transcript_may_begin_with_any_number_of_summaries(
    home: Path, ask: Ask, count: int
) -> None:
    write(home, ODD, *summaries(count), user("behind them", sessionId="notes"))
    assert ask(TEXTS) == [("prompt", "behind them")]


@pytest.mark.slow
def test_a_file_of_nothing_but_summaries_is_a_transcript(home: Path, ask: Ask) -> None:
    write(home, ODD, *summaries(3))
    assert ("transcript",) in ask(KINDS)
    assert ask(ISSUES) == []


@pytest.mark.slow
def test_a_name_that_ends_in_a_uuid_proves_enough(home: Path, ask: Ask) -> None:
    write(home, f"{PROJECT}/2026-01-20-{SESSION}.jsonl", {"type": "user", "message": "hello"})
    assert ("transcript",) in ask(KINDS)
    assert ask("select count(*) from sessions where session_key = '" + SESSION + "'") == [(1,)]


@pytest.mark.slow
def test_what_is_no_transcript_is_an_issue_that_says_so(home: Path, ask: Ask) -> None:
    write(home, ODD, {"kind": "note", "text": "UNSEEN"}, {"n": 2})
    reason = "not a transcript: no line names a session"
    assert ask(ISSUES) == [(reason, 0, 0, 0)]
    write(home, ODD, {"kind": "note", "text": "UNSEEN"}, {"n": 2}, {"n": 3})
    assert ask(ISSUES) == [(reason, 0, 0, 0)]
    assert ask(TEXTS) == []


@pytest.mark.slow
def test_a_line_that_comes_later_makes_it_one(
    home: Path, ask: Ask, database: Path, fresh: Callable[[], Path]
) -> None:
    notes = [{"n": n} for n in range(30)]
    write(home, ODD, *notes)
    assert ("foreign",) in ask(KINDS)
    write(home, ODD, *notes, user("late", sessionId="notes"))
    assert ask(TEXTS) == [("prompt", "late")]
    assert ask(ISSUES) == []
    scratch = fresh()
    sync(scratch, [home])
    assert_same(dump(database), dump(scratch))


# -- lines that leave out what others have -------------------------------------------------------


@pytest.mark.parametrize(("role", "kind"), [("user", "prompt"), ("assistant", "text")])
def test_a_line_without_a_type_is_read_by_its_role(
    home: Path, ask: Ask, role: str, kind: str
) -> None:
    seed = {"uuid": "s1", "parentUuid": None, "message": {"role": role, "content": "hello"}}
    write(home, TRANSCRIPT, {**seed, "sessionId": SESSION})
    assert ask(TEXTS) == [(kind, "hello")]
    assert ask("select message_count from sessions where session_key = '" + SESSION + "'") == [(1,)]


def test_a_notice_may_stand_in_a_message(home: Path, ask: Ask) -> None:
    line = user("x", "s1") | {"type": "system", "message": {"role": "system", "content": "Resumed"}}
    write(home, TRANSCRIPT, line)
    assert ask(TEXTS) == [("system", "Resumed")]


def test_model_and_tokens_may_stand_on_the_line_itself(home: Path, ask: Ask) -> None:
    line = user("x", "a1") | {
        "type": "assistant",
        "message": {"id": "msg_1", "role": "assistant", "content": "hi"},
        "model": "claude-sonnet-5",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    write(home, TRANSCRIPT, line)
    rows = ask("select model, input_tokens, output_tokens from responses")
    assert rows == [("claude-sonnet-5", 3, 4)]


# -- documents that are named like logs ----------------------------------------------------------

PRETTY = json.dumps({"sessionId": SESSION, "messages": [1, {"a": 2}]}, indent=2).encode()


@pytest.mark.slow
@pytest.mark.parametrize("path", [ODD, TRANSCRIPT, f"{PROJECT}/agent-a1.jsonl"])
def test_a_document_over_many_lines_is_one_issue(home: Path, ask: Ask, path: str) -> None:
    write_bytes(home, path, PRETTY)
    assert ask(ISSUES) == [("not JSON lines", 1, 0, len(PRETTY))]
    assert ("foreign_document",) in ask(KINDS)
    assert ask(ISSUES) == [("not JSON lines", 1, 0, len(PRETTY))]


@pytest.mark.slow
def test_a_transcript_that_becomes_a_document_and_back_is_read_anew(
    home: Path, ask: Ask, database: Path, fresh: Callable[[], Path]
) -> None:
    write(home, TRANSCRIPT, user("one"))
    assert ask(TEXTS) == [("prompt", "one")]
    write_bytes(home, TRANSCRIPT, PRETTY)
    assert ask(TEXTS) == []
    scratch = fresh()
    sync(scratch, [home])
    assert_same(dump(database), dump(scratch))
    write(home, TRANSCRIPT, user("one"), user("two", "u2"))
    assert ask(TEXTS) == [("prompt", "one"), ("prompt", "two")]
    assert ask(ISSUES) == []
