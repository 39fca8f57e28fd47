"""Running commands, in this process or in one of their own, and looking at what they print."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from assoc_ingest import __main__ as program


def running(*arguments: str) -> list[str]:
    """Return what runs the program with these arguments in a process of its own.

    It heeds SIGINT, which a program ignores whose tests somebody runs in the background.
    """
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    entry = "import sys; from assoc_ingest.__main__ import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", f"{heeding}; {entry}", *arguments]


class Shell:
    """Runs the program in this process."""

    def __init__(self, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.database = database
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        self._capsys.readouterr()
        code = program.main(arguments)
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *arguments: str) -> object:
        assert self(*arguments) == 0, self.err + self.out
        return json.loads(self.out)

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command with `--json`, and return the items of its answer."""
        assert self(*arguments, "--json") == 0, self.err
        items: list[dict[str, Any]] = json.loads(self.out)["items"]
        return items


def statements_below(process: int) -> list[str]:
    """Return the processes that run SQL below one, if they have run for a moment."""
    running_now = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            for child in path.read_text().split():
                _, _, numbers = Path(f"/proc/{child}/stat").read_text().rpartition(")")
                program = Path(f"/proc/{child}/cmdline").read_text()
                ticks = int(numbers.split()[11])  # more than it takes to start
                if "sql_child" in program and ticks > 7:
                    running_now.append(child)
    return running_now
