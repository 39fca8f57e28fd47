"""An agent is set up by what the program prints, and nothing is written that nobody asked for."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.shell import Shell
from tests.test_mcp import environment, request

from assoc_ingest import sql
from assoc_ingest.cli import commands
from assoc_ingest.mcp import setup
from assoc_ingest.mcp.server import all_tools
from assoc_ingest.mcp.setup import CLIENTS, NAME
from assoc_ingest.store.database import writing

OPTIONS = ("--project", "a b", "--no-sync")


def words(client: str, printed: str) -> list[str]:
    """Return the command that a client would run, as it reads its configuration."""
    if client == "claude":
        return shlex.split(printed.split(" -- ")[1])
    known: Any = tomllib.loads(printed) if client == "codex" else json.loads(printed)
    outer = {"codex": "mcp_servers", "vscode": "servers", "json": "mcpServers"}[client]
    server = known[outer][NAME]
    return [server["command"], *server["args"]]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_printed_for_a_client_starts_the_server(
    client: str, shell: Shell, tmp_path: Path
) -> None:
    with writing(shell.database):
        pass
    assert shell("mcp", *OPTIONS, "config", "--client", client) == 0
    command = words(client, shell.out)
    at = command.index("mcp")
    assert command[at:] == ["mcp", "--db", str(shell.database), *OPTIONS]
    done = subprocess.run(
        [sys.executable, "-m", "assoc_ingest", *command[at:]], env=environment(tmp_path),
        input=json.dumps(request("initialize", protocolVersion="2025-11-25")) + "\n",
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "assoc-ingest"


def test_a_directory_is_printed_as_its_path(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell("mcp", "--project", ".", "config", "--client", "json") == 0
    assert str(tmp_path) in words("json", shell.out)


def test_without_options_the_server_is_started_without_any(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSOC_INGEST_DB")
    assert shell("mcp", "config", "--client", "codex") == 0
    assert words("codex", shell.out)[-1] == "mcp"
    assert shell("mcp", "config") == 0
    assert all(f"# {what}" in shell.out for what in CLIENTS.values())


# -- the skill -------------------------------------------------------------------------------------


def test_the_skill_is_short_and_says_what_it_is_for(shell: Shell) -> None:
    assert shell("skill", "print") == 0
    assert len(shell.out.encode()) < 5_000
    _, front, body = shell.out.split("---\n", 2)
    known = yaml.safe_load(front)
    assert known.keys() == {"name", "description"}
    assert known["name"] == setup.NAME
    assert len(known["description"]) <= 1_024
    for tool in all_tools():
        assert f"`{tool.name}`" in body


def test_what_the_skill_shows_exists(shell: Shell) -> None:
    text = setup.text()
    shown = re.findall(r"^assoc-ingest (.*?)(?: *#.*)?$", text, re.M)
    assert len(shown) > 5
    with writing(shell.database):
        pass
    for line in shown:
        command, *others = shlex.split(line)
        assert command in commands()
        if command == "list":
            assert others[0] in sql.queries("lists")
        if command not in ("sync", "schema"):
            status = shell(command, *[word for word in others if word not in ("--project", ".")])
            assert status in (0, 1), shell.err


def test_the_skill_is_written_where_it_is_wanted_and_nowhere_else(
    shell: Shell, tmp_path: Path
) -> None:
    place = tmp_path / "new" / "skills"
    assert shell("skill", "install", "--to", str(place)) == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [place / setup.NAME / "SKILL.md"]
    assert files[0].read_text("utf-8") == setup.text()
    assert shell("skill", "install", "--to", str(place)) == 0
    assert "Already installed" in shell.err
    assert shell("skill", "install") == 2


def test_a_file_that_is_not_ours_is_kept(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / setup.NAME / "SKILL.md"
    file.parent.mkdir()
    file.write_text("---\nname: mine\n---\n")
    assert shell("skill", "install", "--to", str(tmp_path)) == 2
    assert "is another file" in shell.err
    assert "mine" in file.read_text()
    assert shell("skill", "install", "--to", str(tmp_path), "--force") == 0
    assert file.read_text("utf-8") == setup.text()
    file.write_text(setup.text() + "of an older version")
    assert shell("skill", "install", "--to", str(tmp_path)) == 0
    assert file.read_text("utf-8") == setup.text()


def test_a_file_is_no_directory_of_skills(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "skills"
    file.write_text("mine")
    assert shell("skill", "install", "--to", str(file)) == 2
    assert "is not a directory" in shell.err
    assert file.read_text() == "mine"


def test_a_link_is_not_followed(shell: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / setup.NAME).symlink_to(elsewhere)
    assert shell("skill", "install", "--to", str(tmp_path), "--force") == 2
    assert "symbolic link" in shell.err
    assert list(elsewhere.iterdir()) == []
