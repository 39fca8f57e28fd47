"""A service is installed once, never over another's, and says what it could not do."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.hostile import EVIL, SHELL
from tests.test_every_command import LONG_NAME, harmful_in, touched_by

from assoc_ingest import __main__ as program
from assoc_ingest.sync.service import LAUNCHD, PUSH, SYSTEMD, WATCH, unit, unit_path

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")


class Services:
    """The command, with a service manager that notes what it is asked."""

    def __init__(self, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.database = place / "data" / "assoc.db"
        self.asked = place / "asked"
        self._bin = place / "bin"
        self._bin.mkdir()
        self._capfd = capfd
        self.out = self.err = ""

    def answers(self, name: str, status: int = 0, complaint: str = "") -> None:
        """Put a service manager in place that ends with this status."""
        script = self._bin / name
        script.write_text(
            f'#!/bin/sh\necho "{name} $*" >> {shlex.quote(str(self.asked))}\n'
            f"[ -z '{complaint}' ] || echo '{complaint}' >&2\nexit {status}\n"
        )
        script.chmod(0o700)

    def __call__(self, *arguments: str) -> int:
        if arguments[0] != "uninstall":
            arguments = (*arguments, "--db", str(self.database))
        code = program.main(["service", *arguments])
        self.out, self.err = self._capfd.readouterr()
        return code

    def was_asked(self) -> list[str]:
        return self.asked.read_text().split("\n")[:-1] if self.asked.exists() else []


@pytest.fixture
def services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Services:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return Services(tmp_path, capfd)


@posix
def test_install_writes_the_unit_that_print_shows_and_starts_it(services: Services) -> None:
    services.answers("systemctl")
    assert services("print", "--kind", SYSTEMD) == 0
    shown = services.out
    assert services("install", "--kind", SYSTEMD) == 0
    path = unit_path(SYSTEMD, os.environ)
    assert path.read_text() == shown
    assert f"Wrote {path}." in services.err
    assert services.was_asked() == [
        "systemctl --user daemon-reload",
        "systemctl --user enable assoc-ingest.service",
        "systemctl --user restart assoc-ingest.service",
    ]
    assert services.database.parent.stat().st_mode & 0o777 == 0o700
    assert not services.database.exists()


@posix
def test_uninstall_reverses_it_and_keeps_the_database(services: Services) -> None:
    services.answers("systemctl")
    services("install", "--kind", SYSTEMD)
    services.database.write_text("kept")
    services.asked.unlink()
    assert services("uninstall", "--kind", SYSTEMD) == 0
    assert not unit_path(SYSTEMD, os.environ).exists()
    assert services.was_asked() == [
        "systemctl --user disable --now assoc-ingest.service",
        "systemctl --user daemon-reload",
    ]
    assert services.database.read_text() == "kept"
    assert services("uninstall", "--kind", SYSTEMD) == 1
    assert "No service is installed" in services.err


@posix
def test_another_unit_is_overwritten_by_force_only(services: Services) -> None:
    services.answers("systemctl")
    path = unit_path(SYSTEMD, os.environ)
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/bin/true\n")
    assert services("install", "--kind", SYSTEMD) == 2
    assert "--force" in services.err
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert services.was_asked() == []
    assert services("install", "--kind", SYSTEMD, "--force") == 0
    assert "assoc_ingest watch" in path.read_text()
    assert services("install", "--kind", SYSTEMD) == 0  # the same once more is no other


@posix
@pytest.mark.parametrize("is_there", [True, False])
def test_without_a_session_it_says_what_to_run(is_there: bool, services: Services) -> None:
    if is_there:
        services.answers("systemctl", 1, "Failed to connect to bus")
    assert services("install", "--kind", SYSTEMD) == 0
    assert unit_path(SYSTEMD, os.environ).exists()
    assert ("Failed to connect to bus" if is_there else "systemctl not found") in services.err
    assert "\n  systemctl --user daemon-reload\n" in services.err
    assert "\n  systemctl --user restart assoc-ingest.service\n" in services.err


@posix
def test_an_agent_of_launchd_is_loaded_and_unloaded(services: Services) -> None:
    services.answers("launchctl")
    assert services("install", "--kind", LAUNCHD) == 0
    path = unit_path(LAUNCHD, os.environ)
    assert path == Path.home() / "Library" / "LaunchAgents" / "assoc-ingest.watch.plist"
    assert services("uninstall", "--kind", LAUNCHD) == 0
    user = f"gui/{os.getuid()}"
    assert services.was_asked() == [
        f"launchctl bootstrap {user} {path}",
        f"launchctl bootout {user}/assoc-ingest.watch",
    ]
    assert not path.exists()


@posix
@pytest.mark.parametrize(("kind", "manager"), [(SYSTEMD, "systemctl"), (LAUNCHD, "launchctl")])
def test_hostile_names_and_complaints_are_said_harmlessly(
    kind: str, manager: str, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.database = tmp_path / LONG_NAME / "assoc.db"
    monkeypatch.setenv("HOME", str(tmp_path / LONG_NAME))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / LONG_NAME / "config"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", EVIL)
    (tmp_path / "complaint").write_text(EVIL)
    services.answers(manager)
    if kind == LAUNCHD:
        assert services("install", "--kind", kind) == 2
        assert "control characters" in services.err
        assert harmful_in(services.err) == []
        for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):  # some agents keep files there
            monkeypatch.delenv(name)
        services.database = tmp_path / SHELL.partition("\n")[0].replace("/", "") / "assoc.db"
    said = ""
    for status in (0, 1):
        script = tmp_path / "bin" / manager
        script.write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/complaint >&2\nexit {status}\n")
        for words in (["print"], ["install"], ["install", "--force"], ["uninstall"]):
            assert services(*words, "--kind", kind) in (0, 2), services.err
            said += services.out + services.err
        unit_path(kind, os.environ).parent.mkdir(parents=True, exist_ok=True)
        unit_path(kind, os.environ).write_text("another\n")
        assert services("install", "--kind", kind) == 2
        assert services("uninstall", "--kind", kind) == 0
        said += services.err
    assert harmful_in(said) == []
    assert touched_by(said, tmp_path) == []


# -- what is in a unit ---------------------------------------------------------------------------

ODD = Path("/home/ada/my data/50% \"off\" $HOME 'x'/assoc.db")


def test_a_unit_of_systemd_is_private_polite_and_tries_again() -> None:
    lines = unit(SYSTEMD, Path("/data/assoc.db"), {}).split("\n")
    for line in ("Restart=on-failure", "Nice=10", "UMask=0077", "ReadWritePaths=/data"):
        assert line in lines
    command = f"{sys.executable} -P -m assoc_ingest watch --db /data/assoc.db"
    assert f"ExecStart={command}" in lines
    assert not [line for line in lines if line.startswith("Environment=")]


def test_an_agent_of_launchd_says_the_same() -> None:
    agent = plistlib.loads(unit(LAUNCHD, ODD, {"CLAUDE_CONFIG_DIR": "/a & b"}).encode())
    assert agent["ProgramArguments"][1:] == [
        *("-P", "-m", "assoc_ingest", "watch", "--db", str(ODD))
    ]
    assert agent["EnvironmentVariables"] == {"CLAUDE_CONFIG_DIR": "/a & b"}
    assert (agent["Nice"], agent["Umask"]) == (10, 0o077)
    assert agent["KeepAlive"] == {"SuccessfulExit": False}


def test_the_unit_repeats_where_agents_keep_their_files_and_nothing_else() -> None:
    given = {"CODEX_HOME": "/c", "XDG_DATA_HOME": "/x", "SECRET_TOKEN": "t", "COPILOT_HOME": ""}
    agent = plistlib.loads(unit(LAUNCHD, ODD, given).encode())
    assert agent["EnvironmentVariables"] == {"CODEX_HOME": "/c", "XDG_DATA_HOME": "/x"}


def test_odd_names_are_quoted_as_systemd_reads_them() -> None:
    text = unit(SYSTEMD, ODD, {"CLAUDE_CONFIG_DIR": "/a b/%c"})
    quoted = "/home/ada/my data/50%% \\\"off\\\" {}HOME 'x'"
    assert f'--db "{quoted.format("$$")}/assoc.db"\n' in text
    assert f'ReadWritePaths="{quoted.format("$")}"\n' in text
    assert 'Environment="CLAUDE_CONFIG_DIR=/a b/%%c"\n' in text


@posix
def test_the_service_that_pushes_is_one_of_its_own(services: Services) -> None:
    services.answers("systemctl")
    assert services("print", "--push", "--kind", SYSTEMD) == 0
    shown = services.out
    assert services("install", "--push", "--kind", SYSTEMD) == 0
    paths = [unit_path(SYSTEMD, os.environ, service) for service in (WATCH, PUSH)]
    assert paths[1].read_text() == shown
    assert "-m assoc_ingest push --watch --yes --db" in shown
    units = "assoc-ingest.service assoc-ingest-push.service"
    assert services.was_asked()[1:] == [
        f"systemctl --user enable {units}",
        f"systemctl --user restart {units}",
    ]
    paths[1].write_text("changed")
    paths[0].unlink()
    assert services("install", "--push", "--kind", SYSTEMD) == 2
    assert not paths[0].exists()  # both or none
    assert services("install", "--kind", SYSTEMD) == 0
    assert services("uninstall", "--kind", SYSTEMD) == 0
    assert [path.exists() for path in paths] == [False, False]


def test_the_service_that_pushes_knows_where_passwords_are_and_none_of_them() -> None:
    given = {"PGPASSFILE": "/p", "PGPASSWORD": "secret", "CODEX_HOME": "/c", "PGSSLROOTCERT": ""}
    agent = plistlib.loads(unit(LAUNCHD, ODD, given, PUSH).encode())
    assert agent["EnvironmentVariables"] == {"PGPASSFILE": "/p"}
    assert agent["Label"] != plistlib.loads(unit(LAUNCHD, ODD, given).encode())["Label"]
    assert agent["StandardErrorPath"].endswith("push.log")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("database", [Path("/tmp/assoc.db"), ODD])
def test_systemd_has_nothing_to_say_about_the_unit(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "assoc-ingest.service"
    path.write_text(unit(SYSTEMD, database, {"CLAUDE_CONFIG_DIR": "/a b,/c%d"}))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", path], capture_output=True, text=True
    )
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_system_without_services_is_told_what_to_do_instead(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    assert services("print") == 2
    assert "assoc-ingest watch" in services.err
