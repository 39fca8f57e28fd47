"""Lines of transcripts, as small as they can be, and the directories they lie in.

Everything is invented. A line is a dictionary until it is written, so that a test shows only what
it is about; `jsonl` makes the bytes of a file.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

Object = dict[str, Any]

SESSION = "0b7c2f4e-1111-4222-8333-444455556666"
OTHER = "1c8d3a5f-2222-4333-9444-555566667777"
THIRD = "2d9e4b60-3333-4444-a555-666677778888"
PROJECT = "projects/-srv-demo"
TRANSCRIPT = f"{PROJECT}/{SESSION}.jsonl"


def at(seconds: int) -> str:
    """Return a time of the day on which everything here happens."""
    return f"2026-01-20T10:{seconds // 60 % 60:02d}:{seconds % 60:02d}.000Z"


def chain(kind: str, uuid: str | None, parent: str | None, second: int, **more: Any) -> Object:
    """Return the envelope of a chain line."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": "/srv/demo",
        "sessionId": SESSION,
        "version": "2.1.100",
        "type": kind,
        "uuid": uuid,
        "timestamp": at(second),
        **more,
    }


def user(
    content: Any, uuid: str = "u1", parent: str | None = None, second: int = 0, **more: Any
) -> Object:
    message = {"role": "user", "content": content}
    return chain("user", uuid, parent, second, message=message, **more)


def assistant(
    content: Any,
    uuid: str = "a1",
    parent: str | None = "u1",
    second: int = 1,
    *,
    id: str | None = "msg_1",
    usage: Any = None,
    model: str = "claude-sonnet-5",
    stop_reason: str | None = "end_turn",
    **more: Any,
) -> Object:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    message: Object = {"role": "assistant", "model": model, "content": content}
    message |= {"stop_reason": stop_reason}
    message |= {"id": id} if id is not None else {}
    message |= {"usage": usage} if usage is not None else {}
    return chain("assistant", uuid, parent, second, message=message, **more)


def agent(key: str, line: Object) -> Object:
    """Return the line as one of a subagent."""
    return {**line, "isSidechain": True, "agentId": key}


def call(id: str, name: str = "Bash", **arguments: Any) -> Object:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: Any = "done", **more: Any) -> Object:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def dumps(value: Any) -> bytes:
    """Return compact JSON, as agents write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def jsonl(*lines: Object | bytes) -> bytes:
    """Return the bytes of a file with these lines; bytes are lines as they are."""
    return b"".join((line if isinstance(line, bytes) else dumps(line)) + b"\n" for line in lines)


def write(home: Path, path: str, *lines: Object | bytes) -> Path:
    """Write a file of these lines below `home`."""
    return write_bytes(home, path, jsonl(*lines))


def write_bytes(home: Path, path: str, data: bytes) -> Path:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def wait_for_clock(place: Path) -> None:
    """Return when a change made now has another time than one made before.

    The times of files move in steps of some milliseconds.
    """
    probe = place / ".probe"
    probe.touch()
    before = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == before:
        os.utime(probe)
    probe.unlink()


def in_memory(room: int = 64) -> str | None:
    """Return a directory that is no disk, None if there is none with so many megabytes to spare."""
    memory = "/dev/shm"
    if not os.path.isdir(memory) or not os.access(memory, os.W_OK):
        return None
    return memory if shutil.disk_usage(memory).free > room * 1024 * 1024 else None
