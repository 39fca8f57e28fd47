"""A task of Cline or Roo Code is one conversation, although two files tell it, and of one agent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import home_of

from assoc_ingest.files.walk import recognised
from assoc_ingest.source import Member
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.task_store import lines
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows

Fresh = Callable[[], Path]
MESSAGES, SHOWN = "api_conversation_history.json", "ui_messages.json"
TASK = "tasks/1767258000000"


@pytest.fixture
def home(place: Path) -> Path:
    return home_of("cline/demonstration", place)


def arranged(messages: list[dict[str, Any]], shown: list[dict[str, Any]]) -> list[str]:
    """Return the texts of a task's lines in their order."""
    contents = [
        (Member("shown", SHOWN, ()), json.dumps(shown).encode()),
        (Member("message", MESSAGES, ()), json.dumps(messages).encode()),
    ]
    values = [json.loads(data or b"{}") for _, _, _, data in lines(contents)]
    return [value.get("text") or value.get("content") for value in values]


QUESTION = {"role": "user", "content": "question"}
ANSWER = {"role": "assistant", "content": "answer"}


def say(kind: str, text: str, **more: int) -> dict[str, Any]:
    return {"type": "say", "say": kind, "text": text, **more}


@pytest.mark.parametrize(
    ("messages", "facts"),
    [
        pytest.param([QUESTION, ANSWER], [{}] * 3, id="in the order of requests"),
        pytest.param(
            [QUESTION, ANSWER],
            [{"conversationHistoryIndex": index} for index in (-1, 0, 1)],
            id="by the message that is next",
        ),
        pytest.param(
            [{**QUESTION, "ts": 1_767_258_000_000}, {**ANSWER, "ts": 1_767_258_002_000}],
            [{"ts": 1_767_258_000_000 + after} for after in (-1, 1000, 3000)],
            id="by time",
        ),
    ],
)
def test_what_only_was_shown_stands_where_it_was_shown(
    messages: list[dict[str, Any]], facts: list[dict[str, int]]
) -> None:
    first, second, third = facts
    request = say("api_req_started", "{}", **first)
    thought, spoken = say("reasoning", "thought", **second), say("text", "answer", **second)
    shown = [request, thought, spoken]
    assert arranged(messages, shown) == ["question", "{}", "thought", "answer"]
    if third:
        assert arranged(messages, [*shown, say("error", "late", **third)])[-1] == "late"


def test_a_text_that_both_files_have_counts_once(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    texts = [text for (text,) in rows(database, "select text from messages where text <> ''")]
    assert len(texts) == len(set(texts))
    assert {"Bed 5 is dry.", "Not before sunset."} < set(texts)


def test_a_task_that_goes_on_is_read_again_alone(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    shutil.copytree(home / TASK, home / "tasks/1767258999999")
    sync(database, [home])
    messages = json.loads((home / TASK / MESSAGES).read_bytes())
    messages.append({"role": "user", "content": "<task>\nAnd bed 6?\n</task>"})
    (home / TASK / MESSAGES).write_text(json.dumps(messages))
    assert sync(database, [home]).files_read == 1
    assert ("And bed 6?",) in rows(database, "select text from messages where kind = 'prompt'")
    sync(other, [home])
    assert_same(dump(database), dump(other))


@pytest.mark.parametrize("name", [MESSAGES, SHOWN])
def test_a_file_that_is_being_written_is_read_when_it_is_whole(
    home: Path, fresh: Fresh, name: str
) -> None:
    database, other = fresh(), fresh()
    path = home / TASK / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    sync(database, [home])
    assert rows(database, "select quarantined from issues") == [(1,)]
    assert "Bed 5 is dry." in dict.fromkeys(
        text for (text,) in rows(database, "select text from messages")
    ), "the other file has it, too"
    path.write_bytes(whole)
    sync(database, [home])
    check(database, home)
    sync(other, [home])
    assert_same(dump(database), dump(other))


def test_homes_that_lie_side_by_side_are_each_its_own_agents(
    place: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = Path.home() / ".config/Code - Insiders/User/globalStorage"
    for name, directory in (
        ("cline", "saoudrizwan.claude-dev"), ("roo", "rooveterinaryinc.roo-cline"),
    ):  # fmt: skip
        home = home_of(f"{name}/demonstration", place, name)
        assert [root.source.name for root in recognised(home, SOURCES)] == [name]
        shutil.copytree(home, above / directory)
    monkeypatch.chdir(place)
    database = fresh()
    report: Report = sync(database, [])
    assert report.files_read == 3
    assert rows(database, "select kind, count(*) from sources group by 1 order by 1") == [
        ("cline", 1), ("roo", 1),
    ]  # fmt: skip


def test_a_task_is_a_subagent_from_when_on_it_says_so(place: Path, fresh: Fresh) -> None:
    """An editor that is updated states it of the tasks that there are."""
    home = home_of("roo/tasks-that-others-began", place)
    items = {path: path.read_bytes() for path in home.rglob("history_item.json")}
    for path in items:
        path.unlink()
    database, other = fresh(), fresh()
    sync(database, [home])
    count = "select count(*) from sessions"
    assert rows(database, count) == [(3,)]
    for path, content in items.items():
        path.write_bytes(content)
    sync(database, [home])
    assert rows(database, count) == [(1,)]
    sync(other, [home])
    assert_same(dump(database), dump(other))
