"""Conversations, written call by call: what an agent ran and edited, and what it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.writing import Object, at, call, dumps, result


class Transcript:
    """Writes one conversation, call by call."""

    def __init__(
        self,
        home: Path,
        session: str,
        cwd: str | Path,
        key: str = "-srv-demo",
        branch: str = "main",
    ) -> None:
        self._path = home / "projects" / key / f"{session}.jsonl"
        self._envelope = {"sessionId": session, "cwd": str(cwd), "version": "2.1.100",
                          "isSidechain": False, "gitBranch": branch}  # fmt: skip
        self._name = session[:4] + session[-4:]
        self._count = 0
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def say(self, text: str, second: int = 0, timestamp: str = "") -> None:
        self._line("user", second, timestamp, role="user", content=text)

    def answer(self, text: str, second: int = 0) -> None:
        self._assistant(second, {"type": "text", "text": text})

    def tool(self, second: int, name: str, printed: str = "done", *, is_error: bool = False,
             **arguments: Any) -> None:  # fmt: skip
        id_ = f"toolu_{self._name}_{self._count}"
        self._assistant(second, call(id_, name, **arguments))
        more = {"is_error": True} if is_error else {}
        self._line("user", second + 1, role="user", content=[result(id_, printed, **more)])

    def bash(self, second: int, command: str, printed: str = "", *, is_error: bool = False) -> None:
        self.tool(second, "Bash", printed, is_error=is_error, command=command)

    def _assistant(self, second: int, block: Object) -> None:
        self._line("assistant", second, id=f"msg_{self._count}", role="assistant",
                   model="claude-sonnet-5", content=[block])  # fmt: skip

    def _line(self, kind: str, second: int, timestamp: str = "", **message: Any) -> None:
        self._count += 1
        line = {"type": kind, "uuid": f"{self._name}-{self._count}",
                "parentUuid": None,
                "timestamp": timestamp or at(second), "message": message,
                **self._envelope}  # fmt: skip
        with self._path.open("ab") as file:
            file.write(dumps(line) + b"\n")
