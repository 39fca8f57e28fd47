"""Sessions of nothing but short prompts and answers, as many as asked for.

Equal arguments give equal bytes, and memory stays small.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

KEY = "00000000-0000-4000-8000-000000000000"
"""The key of the session."""

_TEXT = (
    "the pool waits for a lock while every worker reads the queue again and finds nothing new"
    " so we measure what one more message costs when the session has become very long"
)
_START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def write(out: Path, messages: int) -> None:
    """Write a home with one session of so many messages of twelve words."""
    words = _TEXT.split()
    path = out / "projects" / "-home-dev-plain" / f"{KEY}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for number in range(messages):
            some = (words[(number * 7 + place) % len(words)] for place in range(12))
            file.write(_line(0, number, " ".join(some)))


def spoken_line(text: str) -> bytes:
    """Return a line that somebody typed, for the end of any transcript; equal texts are equal."""
    return _line(0xF00D, sum(text.encode()) * 2, text)


def _line(session: int, number: int, text: str) -> bytes:
    """Return line `number` of a session: prompts and answers in turn."""
    is_prompt = number % 2 == 0
    document: dict[str, object] = {
        "parentUuid": _uuid(session, number - 1) if number else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/dev/plain",
        "sessionId": f"{session:08x}{KEY[8:]}",
        "version": "2.1.100",
        "gitBranch": "main",
        "type": "user" if is_prompt else "assistant",
        "uuid": _uuid(session, number),
        "timestamp": (_START + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }
    if is_prompt:
        document["message"] = {"role": "user", "content": text}
    else:
        document["requestId"] = f"req_{session:x}_{number:x}"
        document["message"] = {
            "id": f"msg_{session:x}_{number:x}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
    return orjson.dumps(document) + b"\n"


def _uuid(session: int, number: int) -> str:
    return f"{session:08x}-{number >> 16 & 0xFFFF:04x}-4{number & 0xFFF:03x}-8000-{number:012x}"
