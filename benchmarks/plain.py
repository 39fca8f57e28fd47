"""Writes homes of plain transcripts: as many lines, files or letters as asked for.

    python -m benchmarks.plain OUT chat 100000      one session of so many messages of a few words
    python -m benchmarks.plain OUT words 1000000    one session of so many messages of one word
    python -m benchmarks.plain OUT files 100000     so many sessions of one line, 100 to a project
    python -m benchmarks.plain OUT line 60MB        one line: a message of so many bytes of words
    python -m benchmarks.plain OUT solid 20MB       one message of so many bytes without a space

What `generate` writes looks like a real home. These do not: each has one thing in excess, for
measuring what that thing costs. Equal arguments give equal bytes, and memory stays small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from benchmarks.generate import parse_size

_SENTENCE = (
    "the pool waits for a lock while every worker reads the queue again and finds nothing new"
    " so we measure what one more message costs when the session has become very long"
)
_WORDS = _SENTENCE.split()
_START = datetime(2026, 3, 1, 9, tzinfo=UTC)
_FILES_PER_PROJECT = 100
_CWD = "/home/dev/plain"
_VERSION = "2.1.100"


def session_key(number: int) -> str:
    """Return the key of the session with this number."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def spoken_line(text: str) -> bytes:
    """Return a line that somebody typed, for the end of any transcript; equal texts are equal."""
    return _line(0xF00D, sum(text.encode()) * 2, text)


def _line(session: int, number: int, text: str) -> bytes:
    """Return line `number` of a session: prompts and answers in turn."""
    key = session_key(session)
    is_prompt = number % 2 == 0
    document: dict[str, object] = {
        "parentUuid": _uuid(session, number - 1) if number else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": _CWD,
        "sessionId": key,
        "version": _VERSION,
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


def _words(number: int, count: int) -> str:
    return " ".join(_WORDS[(number * 7 + place) % len(_WORDS)] for place in range(count))


def _write(out: Path, session: int, lines: Iterator[bytes], project: str = "plain") -> None:
    path = out / "projects" / f"-home-dev-{project}" / f"{session_key(session)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(lines)


def _chat(out: Path, count: int) -> None:
    _write(out, 0, (_line(0, number, _words(number, 12)) for number in range(count)))


def _one_word(out: Path, count: int) -> None:
    _write(out, 0, (_line(0, number, _words(number, 1)) for number in range(count)))


def _files(out: Path, count: int) -> None:
    for number in range(count):
        project = f"plain-{number // _FILES_PER_PROJECT:05d}"
        _write(out, number, iter([_line(number, 0, _words(number, 12))]), project)


def _long_line(out: Path, size: int) -> None:
    sentence = f"{_SENTENCE} "
    text = (sentence * (size // len(sentence) + 1))[:size]
    _write(out, 0, iter([_line(0, 0, text)]))


def _solid(out: Path, size: int) -> None:
    letters = "".join(_WORDS)
    text = (letters * (size // len(letters) + 1))[:size]
    _write(out, 0, iter([_line(0, 0, text)]))


KINDS: dict[str, Callable[[Path, int], None]] = {
    "chat": _chat,
    "words": _one_word,
    "files": _files,
    "line": _long_line,
    "solid": _solid,
}


def write(out: Path, kind: str, amount: int) -> None:
    """Write a home of `amount` messages, files or bytes, as the kind says."""
    KINDS[kind](out, amount)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], parse_size(sys.argv[3]))
