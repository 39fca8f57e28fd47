"""A plugin is what its agent takes, and is written where it is wanted, over nothing else."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import DEMO
from tests.support.shell import Shell
from tests.test_mcp import environment

from assoc_ingest.mcp import setup
from assoc_ingest.mcp.setup import NAME
from assoc_ingest.sync.run import sync

INNER = f"plugins/{NAME}"
FILES = {
    "claude": {".claude-plugin/marketplace.json", ".claude-plugin/plugin.json", ".mcp.json",
               "hooks/hooks.json", f"skills/{NAME}/SKILL.md"},
    "codex": {".agents/plugins/marketplace.json", f"{INNER}/.codex-plugin/plugin.json",
              f"{INNER}/.mcp.json", f"{INNER}/hooks/hooks.json",
              f"{INNER}/skills/{NAME}/SKILL.md"},
    "gemini": {"gemini-extension.json", "hooks/hooks.json", f"skills/{NAME}/SKILL.md"},
    "copilot": {".github/plugin/marketplace.json", ".mcp.json", "hooks.json", "plugin.json",
                f"skills/{NAME}/SKILL.md"},
}  # fmt: skip
EVENTS = {
    "claude": {"SessionStart", "UserPromptSubmit", "PreToolUse", "PreCompact", "SessionEnd"},
    "codex": {"SessionStart", "UserPromptSubmit", "PreToolUse", "PreCompact"},
    "gemini": {"SessionStart", "BeforeAgent", "PreCompress", "SessionEnd"},
    "copilot": {"sessionStart", "PreCompact", "SessionEnd"},
}
"""The hooks of a plugin, as the documents of each agent name them."""


def written(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


def parsed(place: Path, name: str) -> Any:
    (path,) = place.rglob(name)
    return json.loads(path.read_text("utf-8"))


def commands(place: Path) -> dict[str, str]:
    """Return the command of each hook of a plugin."""
    found = {}
    for event, (entry,) in parsed(place, "hooks.json")["hooks"].items():
        (hook,) = entry.get("hooks", [entry])
        assert hook["type"] == "command"
        found[event] = hook["command"]
    return found


@pytest.mark.parametrize("agent", FILES)
def test_a_plugin_has_the_files_that_its_agent_looks_for(
    agent: str, shell: Shell, tmp_path: Path
) -> None:
    place = tmp_path / "new" / "plugin"
    assert shell("plugin", "install", "--to", str(place), "--for", agent) == 0
    assert written(tmp_path) == {f"new/plugin/{path}" for path in FILES[agent]}
    manifest = parsed(place, "gemini-extension.json" if agent == "gemini" else "plugin.json")
    assert manifest["name"] == NAME
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", NAME)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", manifest["version"])
    for field in {"skills", "hooks", "mcpServers"} & manifest.keys() if agent != "gemini" else ():
        (there,) = place.rglob(f"{manifest[field].removeprefix('./').rstrip('/')}")
        assert there.exists()
    (skill,) = place.rglob("SKILL.md")
    assert skill.read_text("utf-8") == setup.text()
    assert commands(place).keys() == EVENTS[agent]
    if agent != "gemini":
        (listed,) = parsed(place, "marketplace.json")["plugins"]
        source = listed["source"]
        there = place / (source["path"] if agent == "codex" else source)
        assert (there / "skills").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("agent", FILES)
def test_what_a_plugin_runs_answers(agent: str, shell: Shell, tmp_path: Path) -> None:
    sync(shell.database, sorted(DEMO.iterdir()))
    place = tmp_path / "plugin"
    database = shutil.copy(shell.database, tmp_path / "a b.db")
    options = ("--to", str(place), "--for", agent, "--db", str(database))
    assert shell("plugin", "install", *options) == 0
    for event, command in commands(place).items():
        name = {"hook_event_name": event, "session_id": "new"}
        name["prompt"] = "can kale stand frost?"
        name |= {"tool_input": {"file_path": "calendar.py"}, "transcript_path": "/nowhere"}
        given = {"cwd": "/srv/fernhill", **({"sessionId": "new"} if event[0] == "s" else name)}
        done = subprocess.run(
            command, shell=True, input=json.dumps(given), env=environment(tmp_path),
            capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        if event.lower() == "sessionstart":
            assert "Our planting calendar" in done.stdout
        elif event in ("UserPromptSubmit", "BeforeAgent"):
            assert "Kale can stand frost" in done.stdout
        elif event == "PreToolUse":
            assert "edited it" in done.stdout
        else:
            assert done.stdout == ""
    server = parsed(place, "gemini-extension.json" if agent == "gemini" else ".mcp.json")
    words = server["mcpServers"][NAME]["args"]
    assert words[words.index("mcp") :] == ["mcp", "--db", str(database)]


@pytest.mark.skipif(sys.platform == "win32", reason="its shell says it in other words")
def test_a_hook_that_cannot_run_is_no_order_to_stop(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents take 2 for that, which is what an older version says of a command that it lacks."""
    for lines in ("exit 2", "exit 70"):
        program = tmp_path / "assoc-ingest"
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
        monkeypatch.setattr(setup.shutil, "which", lambda _, found=program: str(found))
        place = tmp_path / lines[-1]
        assert shell("plugin", "install", "--to", str(place)) == 0
        for command in commands(place).values():
            assert shlex.split(command)[0] == str(program)
            assert subprocess.run(command, shell=True, check=False).returncode == 0
    program.unlink()
    done = subprocess.run(command, shell=True, check=False, capture_output=True)
    assert done.returncode == 0


def test_nothing_is_written_over(shell: Shell, tmp_path: Path) -> None:
    place = tmp_path / "plugin"
    mine = place / ".mcp.json"
    place.mkdir()
    mine.write_text('{"mcpServers": {"past-conversations": {}, "other": {}}}')
    assert shell("plugin", "install", "--to", str(place)) == 2
    assert f"{mine} is another file" in shell.err
    assert written(place) == {".mcp.json"}
    assert "other" in mine.read_text()
    assert shell("plugin", "install", "--to", str(place), "--force") == 0
    assert "other" not in mine.read_text()
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    assert shell("plugin", "install", "--to", str(place)) == 0
    assert "Already installed" in shell.err
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    assert shell("plugin", "install") == 2


@pytest.mark.parametrize("inner", [".mcp.json", "hooks", "skills/past-conversations"])
def test_a_link_is_not_followed(inner: str, shell: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = tmp_path / "plugin"
    (place / inner).parent.mkdir(parents=True)
    (place / inner).symlink_to(elsewhere)
    assert shell("plugin", "install", "--to", str(place), "--force") == 2
    assert "is a symbolic link" in shell.err
    assert list(elsewhere.iterdir()) == []
    assert written(place) == set()


def test_a_file_is_no_directory(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "plugin"
    file.write_text("mine")
    assert shell("plugin", "install", "--to", str(file)) == 5
    assert "cannot be written" in shell.err
    assert file.read_text() == "mine"


def test_what_is_printed_is_what_is_written(shell: Shell, tmp_path: Path) -> None:
    for agent in FILES:
        assert shell("plugin", "install", "--to", str(tmp_path / agent), "--for", agent) == 0
        assert f"{agent} " in shell.err.partition("To use it: ")[2]
        assert shell("plugin", "print", "--for", agent) == 0
        for path in FILES[agent]:
            text = (tmp_path / agent / path).read_text("utf-8")
            assert f"# {path}\n{text}" in shell.out
