"""pi's conversations are found where it puts them, and go on with the command that it accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assoc_ingest.records import Message, ToolCall
from assoc_ingest.source import Claim, Line
from assoc_ingest.sources.pi import Pi, encoded


@pytest.mark.parametrize(
    ("environment", "roots"),
    [
        ({}, ["/home/ada/.pi/agent"]),
        ({"PI_CODING_AGENT_DIR": "/srv/pi"}, ["/srv/pi"]),
        ({"PI_CODING_AGENT_SESSION_DIR": "~/talks"}, ["/home/ada/.pi/agent", "~/talks"]),
    ],
)
def test_its_homes_are_those_that_the_environment_names(
    environment: dict[str, str], roots: list[str]
) -> None:
    assert Pi().default_roots(environment, "/home/ada") == roots
    assert Pi().default_roots({}, None) == []


def test_a_conversation_goes_on_by_its_id_and_never_by_an_option() -> None:
    assert Pi().resume_command("01a2-7b") == ["pi", "--session", "01a2-7b"]
    assert Pi().resume_command("--help") is None
    assert Pi().resume_command("before compaction") is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/my garden", "--srv-my garden--"),
        ("C:\\Users\\ada", "--C--Users-ada--"),
    ],
)
def test_a_directory_of_sessions_is_named_after_the_working_directory(path: str, name: str) -> None:
    assert encoded(path) == name


def test_nothing_beside_its_conversations_is_claimed() -> None:
    other = ["pi-debug.log", "sessions/notes/x.jsonl", "sessions/--srv--/x.json", "x.jsonl"]
    assert [path for path in other if Pi().claim(Path(path).parts)] == []


def test_a_phrase_of_another_agent_does_not_say_that_a_person_refused() -> None:
    said = "User rejected tool use"  # what Claude Code writes in place of a result
    message = {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "isError": True}
    message["content"] = [{"type": "text", "text": said}]
    line = {"type": "message", "id": "a1", "timestamp": "2026-03-02T08:00:00.000Z"}
    records = Pi().parse(
        Claim("pi", "transcript", "s1"),
        [Line(0, json.dumps({**line, "message": message}).encode())],
    )
    assert [call.status for call in records if isinstance(call, ToolCall)] == ["error"]
    assert [row.is_error for row in records if isinstance(row, Message)] == [1]
