"""Rollouts of Codex, as many bytes as asked for: the kinds of lines and their sizes were measured.

Each thread has turns, each turn calls with outputs, events that repeat both, and totals of tokens.
Equal arguments give equal bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from .shapes import ANSWER, BASH_OUTPUT, COMMAND, MAIN_LINES, PROMPT
from .words import Words

_START = datetime(2026, 3, 1, 9, tzinfo=UTC)
_INSTRUCTIONS, _ENCRYPTED, _SETTINGS = 16_000, 1_200, 5_000  # letters of what no row has


def write(out: Path, size: int, seed: int = 1) -> int:
    """Write a home of about `size` bytes; return how many rollouts it has."""
    rng = random.Random(seed)
    words = Words(rng)
    count = written = 0
    while written < size:
        thread = f"019d0000-{count >> 16 & 0xFFFF:04x}-7{count & 0xFFF:03x}-8000-{count:012x}"
        start = _START + timedelta(minutes=count)
        name = f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
        path = out / "sessions" / f"{start:%Y/%m/%d}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        turns = 1 + MAIN_LINES.draw(rng) // 40
        written += path.write_bytes(b"".join(_lines(words, rng, thread, start, turns)))
        count += 1
    return count


def _lines(
    words: Words, rng: random.Random, thread: str, start: datetime, turns: int
) -> Iterator[bytes]:
    """Yield the lines of a thread."""
    place = 0

    def line(kind: str, payload: dict[str, Any]) -> bytes:
        nonlocal place
        place += 1
        moment = start + timedelta(seconds=place)
        stated = {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z", "type": kind, "payload": payload}
        return orjson.dumps(stated) + b"\n"

    def event(kind: str, **payload: Any) -> bytes:
        return line("event_msg", {"type": kind, **payload})

    def item(kind: str, **payload: Any) -> bytes:
        return line("response_item", {"type": kind, **payload})

    def said(role: str, kind: str, text: str) -> bytes:
        return item("message", role=role, content=[{"type": kind, "text": text}])

    yield line(
        "session_meta",
        {
            "id": thread, "cwd": "/home/dev/plain", "originator": "codex_cli_rs", "source": "cli",
            "cli_version": "0.130.0", "git": {"branch": "main"},
            "base_instructions": {"text": words.prose(_INSTRUCTIONS)},
        },
    )  # fmt: skip
    yield said("developer", "input_text", words.prose(_INSTRUCTIONS))
    total = [0, 0, 0, 0]
    for turn in range(turns):
        turn_id = f"{thread[:-6]}{turn:06x}"
        yield event("task_started", turn_id=turn_id)
        settings = {"cwd": "/home/dev/plain", "model": "gpt-5.2", "approval_policy": "on-request"}
        yield line(
            "turn_context", {"turn_id": turn_id, **settings, "policy": words.prose(_SETTINGS)}
        )
        prompt, answer = words.prose(PROMPT.draw(rng)), words.prose(ANSWER.draw(rng))
        yield said("user", "input_text", prompt)
        yield event("user_message", message=prompt)
        for number in range(rng.randint(1, 25)):
            call, command = f"call_{turn}_{number}", words.code(COMMAND.draw(rng))
            output, encrypted = words.output(BASH_OUTPUT.draw(rng)), words.base64(_ENCRYPTED)
            yield item("reasoning", summary=[], encrypted_content=encrypted)
            arguments = orjson.dumps({"command": ["bash", "-lc", command]}).decode()
            yield item("function_call", name="shell", arguments=arguments, call_id=call)
            yield event(
                "exec_command_end", call_id=call, command=["bash", "-lc", command],
                aggregated_output=output, exit_code=0, duration={"secs": 0, "nanos": 8_000_000},
            )  # fmt: skip
            text = f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{output}"
            yield item("function_call_output", call_id=call, output=text)
            last = [900 + number, 800, 40, 10]
            total = [now + more for now, more in zip(total, last, strict=True)]
            yield event(
                "token_count",
                info={"total_token_usage": _usage(total), "last_token_usage": _usage(last)},
            )
        yield said("assistant", "output_text", answer)
        yield event("agent_message", message=answer)
        yield event("task_complete", turn_id=turn_id, last_agent_message=answer)


def _usage(counts: list[int]) -> dict[str, int]:
    names = "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"
    return {**dict(zip(names, counts, strict=True)), "total_tokens": counts[0] + counts[2]}
