"""Running commands in this process, and looking at what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assoc_ingest import __main__ as program


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
        assert self(*arguments) == 0, self.err
        return json.loads(self.out)

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command with `--json`, and return the items of its answer."""
        assert self(*arguments, "--json") == 0, self.err
        items: list[dict[str, Any]] = json.loads(self.out)["items"]
        return items
