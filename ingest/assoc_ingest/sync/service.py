"""A user service that runs `watch`: a systemd unit or a launchd agent.

The unit names the database, and repeats the variables that say where agents keep their files,
because a service does not see the environment of the user's shell. It runs with low priority,
creates files with mode 0600, and under systemd can write only to the directory of the database.

A unit that the user has changed is not overwritten. If the service manager cannot be reached (over
ssh without a session, in a container), the commands to run by hand are printed.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import NotFoundError, UsageError
from ..files.walk import variables_of_roots
from ..paths import home
from ..terminal import safe, to_copy

SYSTEMD, LAUNCHD = "systemd", "launchd"

_UNIT = "assoc-ingest.service"
_LABEL = "assoc-ingest.watch"
_TIMEOUT = 60  # seconds that a service manager may take

_SYSTEMD_UNIT = """\
# Written by: assoc-ingest service install
[Unit]
Description=Keep the index of coding agents' conversations up to date

[Service]
ExecStart={command}
{environment}Restart=on-failure
RestartSec=10
# Restarting does not help with a wrong option or an unusable database.
RestartPreventExitStatus=2 4
Nice=10
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths={directory}

[Install]
WantedBy=default.target
"""


def kind_here() -> str:
    """Return the kind of service that this system runs. Raises UsageError if none is supported."""
    if sys.platform == "darwin":
        return LAUNCHD
    if sys.platform == "linux":
        return SYSTEMD
    raise UsageError(
        "Services are not supported on this system. Start it yourself: assoc-ingest watch"
    )


def unit(kind: str, database: Path, environment: Mapping[str, str]) -> str:
    """Return the text of the service that keeps `database`, an absolute path, up to date."""
    # Without -P, modules in the directory in which the service is started could be imported.
    command = [sys.executable, "-P", "-m", "assoc_ingest", "watch", "--db", str(database)]
    repeated = variables_of_roots(environment)
    if kind == SYSTEMD:
        variables = (_quoted(f"{name}={value}") for name, value in repeated.items())
        return _SYSTEMD_UNIT.format(
            command=" ".join(_quoted(word).replace("$", "$$") for word in command),
            environment="".join(f"Environment={variable}\n" for variable in variables),
            directory=_quoted(str(database.parent)),
        )
    log = str(database.with_name("watch.log"))
    agent = {
        "Label": _LABEL,
        "ProgramArguments": command,
        "EnvironmentVariables": repeated,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ProcessType": "Background",
        "Nice": 10,
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    try:
        return plistlib.dumps(agent).decode()
    except ValueError:
        raise UsageError(
            "launchd cannot be told of a path with control characters. Rename the directory of the "
            "database, give another one with --db, or correct the variables that name the homes of "
            "agents."
        ) from None


def unit_path(kind: str, environment: Mapping[str, str]) -> Path:
    configured = environment.get("XDG_CONFIG_HOME", "")
    if kind == SYSTEMD and configured.startswith("/"):
        return Path(configured) / "systemd" / "user" / _UNIT
    above = home()
    if above is None:
        raise UsageError("Cannot determine your home directory for the service file: set HOME.")
    if kind == LAUNCHD:
        return above / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
    return above / ".config" / "systemd" / "user" / _UNIT


def install(kind: str, database: Path, environment: Mapping[str, str], *, force: bool) -> list[str]:
    """Write the unit and start the service; return the messages for the user.

    Raises UsageError if a different unit exists, unless `force` says that it may be overwritten.
    """
    path = unit_path(kind, environment)
    text = unit(kind, database, environment)
    if path.exists() and path.read_text("utf-8", "replace") != text and not force:
        raise UsageError(
            f"{path} already exists and differs from what would be installed. Compare it with "
            "`assoc-ingest service print`, or overwrite it with --force."
        )
    was_there = path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the service needs it to start
    if kind == SYSTEMD:
        commands = [_systemctl("daemon-reload"), _systemctl("enable", _UNIT)]
        commands.append(_systemctl("restart", _UNIT))  # an older unit may be running
    else:
        if was_there:  # launchd does not load it twice; it does not matter if unloading fails
            _problem(["launchctl", "bootout", f"gui/{_user()}/{_LABEL}"])
        commands = [["launchctl", "bootstrap", f"gui/{_user()}", str(path)]]
    return [f"Wrote {path}.", *_run(commands, "The service is running and starts at every login.")]


def uninstall(kind: str, environment: Mapping[str, str]) -> list[str]:
    """Stop the service and remove its unit; return the messages for the user. Keeps the database.

    Raises NotFoundError if there is none.
    """
    path = unit_path(kind, environment)
    if not path.exists():
        raise NotFoundError(f"No service is installed (looked at {path}).")
    if kind == SYSTEMD:
        stopped = _run([_systemctl("disable", "--now", _UNIT)], "The service was stopped.")
    else:
        command = ["launchctl", "bootout", f"gui/{_user()}/{_LABEL}"]
        stopped = _run([command], "The service was stopped.")
    path.unlink()
    reloaded = _run([_systemctl("daemon-reload")], "") if kind == SYSTEMD else []
    return [*stopped, f"Removed {path}. The database is kept.", *filter(None, reloaded)]


def _systemctl(*arguments: str) -> list[str]:
    return ["systemctl", "--user", *arguments]


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _run(commands: Sequence[list[str]], success: str) -> list[str]:
    """Run the commands; if one fails, say which are to be run by hand."""
    for done, command in enumerate(commands):
        if problem := _problem(command):
            left = [f"  {to_copy(*each)}" for each in commands[done:]]
            return [
                f"The service manager failed ({problem}). Run these commands yourself:",
                *left,
            ]
    return [success]


def _problem(command: list[str]) -> str | None:
    """Run a command; return what went wrong, None if nothing did."""
    program = shutil.which(command[0])
    if program is None:
        return f"{command[0]} not found"
    try:
        done = subprocess.run(  # noqa: S603
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return done.stderr.strip() or f"{command[0]} exited with {done.returncode}"


def _quoted(text: str) -> str:
    """Return a word for a systemd unit, quoted if necessary."""
    text = text.replace("%", "%%")
    if text and safe(text) == text and not set(text) & set(" \t\n\"'\\;#"):
        return text
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + safe(text).replace("\n", "\\n") + '"'  # systemd reads these escapes
