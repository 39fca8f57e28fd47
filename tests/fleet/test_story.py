"""The tasks of docs/fleet.md work as they stand there, and print what the page shows.

`pytest --golden` writes what they print into the page; read the difference.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.postgres import OwnPostgres, own_server

pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="every machine has an address of its own"),
]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "fleet.md"
HOMES = {"laptop": {".claude": "claude"}, "desktop": {".codex": "codex", ".pi/agent": "pi"}}
"""Which demonstration homes each machine has, and where."""

_OWNER = "owner of the server"
_block = re.compile(r"(?<=^```console\n)(\w+\$ .*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_command = re.compile(r"^(\w+)\$ assoc-ingest (.*)$", re.MULTILINE)
_password = re.compile(r"^[\w-]{32}$", re.MULTILINE)
_NOT_FIXED = [
    (r"in \d+\.\d s", "in 0.1 s"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "6f1c2a90-5a3b-4c1e-9d55-0c4b7e21f3a8"),
]
"""What is another text each time, and the one that the page has."""


@dataclass
class Machine:
    """A home, and the environment of who lives there."""

    home: Path
    server: OwnPostgres
    address: str
    password: str = ""

    def run(self, line: str) -> str:
        """Return what commands print; each reads the password that was printed last."""
        return "".join(map(self._run, line.split(" && assoc-ingest ")))

    def _run(self, line: str) -> str:
        environment = {
            **{key: value for key, value in os.environ.items() if key == "PATH"},
            "HOME": str(self.home),
            "PGHOSTADDR": self.address,
            "PYTHONPATH": str(ROOT / "ingest"),
            "PYTHONUNBUFFERED": "1",  # so that lines come in the order in which they are printed
            "COLUMNS": "100",
            "TZ": "UTC",
        }
        done = subprocess.run(
            [sys.executable, "-c", "import shlex, sys; from assoc_ingest.__main__ import main;"
             " sys.argv[1:] = shlex.split(sys.argv[1]); sys.exit(main())", line],
            cwd=self.home, env=environment, input=f"{self.password}\n", text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}: {done.stdout}"
        return done.stdout.replace(str(self.home), "/home/ada")


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[dict[str, Machine]]:
    """Two machines, and a server that each reaches by name, with a password."""
    address = f"127.{random.randrange(1, 255)}.{random.randrange(255)}.{random.randrange(1, 255)}"
    settings = {"listen_addresses": address, "fsync": "on", "autovacuum": "on", "timezone": "UTC"}
    with own_server(**settings) as server:
        import psycopg

        with (server.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 127.0.0.0/8 scram-sha-256\n")
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("select pg_reload_conf()")
            connection.execute(f"create role fleet_owner login createrole password '{_OWNER}'")
            connection.execute(
                "create database fleet owner fleet_owner template template0 encoding 'UTF8'"
            )
        made = {}
        for name, homes in HOMES.items():
            home = tmp_path / name
            for place, demo in homes.items():
                shutil.copytree(ROOT / "tests" / "demo" / demo, home / place)
            for path in home.rglob("*"):
                os.utime(path, (1_772_700_000, 1_772_700_000))
            made[name] = Machine(home, server, address)
        passwords = made["laptop"].home / ".pgpass"
        passwords.write_text(f"db.example.org:5432:fleet:fleet_owner:{_OWNER}\n")
        passwords.chmod(0o600)
        yield made


def test_the_story_of_the_page(
    machines: dict[str, Machine], request: pytest.FixtureRequest
) -> None:
    page = PAGE.read_text("utf-8")

    def printed(block: re.Match[str]) -> str:
        shown = []
        for name, line in _command.findall(block[0]):
            output = machines[name].run(line)
            for given in _password.findall(output):
                for machine in machines.values():
                    machine.password = given
            shown.append(f"{name}$ assoc-ingest {line}\n{_password.sub('(a password)', output)}")
        text = "\n".join(shown)
        for varying, fixed in _NOT_FIXED:
            text = re.sub(varying, fixed, text)
        return block[0] if _comparable(text) == _comparable(block[0]) else text

    now = _block.sub(printed, page)
    assert len(_command.findall(page)) > 12
    if request.config.getoption("--golden"):
        PAGE.write_text(now, "utf-8")
    assert now == page


def _comparable(text: str) -> str:
    """Return a text without sizes, moments and versions, which depend on the machine."""
    text = re.sub(r"(ok +(?:version|size|age)).*|(Rewrote) \d+ tables", r"\1\2", text)
    text = re.sub(r"[\d,.]+ (?:bytes|[kMG]B)", "SIZE", text)
    text = re.sub(r"\d+ (?:s|seconds?|minutes?)\b(?: ago)?", "MOMENT", text)
    return re.sub(r"[─-]{3,}|\s+", " ", text)
