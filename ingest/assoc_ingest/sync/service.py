"""User services that run `watch` and `push --watch`: systemd units or launchd agents.

They are two, so that a sync never waits for the network and does not end with a push. A unit names
the database, and repeats the variables that say where agents keep their files, or where passwords
are, because a service does not see the environment of the user's shell. It runs with low priority,
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import NotFoundError, UsageError
from ..files.walk import variables_of_roots
from ..paths import home
from ..terminal import safe, to_copy

SYSTEMD, LAUNCHD = "systemd", "launchd"

_TIMEOUT = 60  # seconds that a service manager may take


class Service(NamedTuple):
    """A service, and what managers call it."""

    name: str
    unit: str
    label: str
    about: str
    arguments: tuple[str, ...]
    variables: Callable[[Mapping[str, str]], dict[str, str]]
    """What it needs of the user's environment."""


def _of_connections(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that say where passwords and certificates are; they contain neither."""
    return {name: environment[name] for name in _PLACES if environment.get(name)}


_PLACES = (
    *("ASSOC_FLEET_PASSWORD_FILE", "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR"),
    *("PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY"),
)

WATCH = Service(
    *("watch", "assoc-ingest.service", "assoc-ingest.watch"),
    "Keep the index of coding agents' conversations up to date",
    ("watch",),
    variables_of_roots,
)
PUSH = Service(
    *("push", "assoc-ingest-push.service", "assoc-ingest.push"),
    "Push allowed conversations of coding agents to the server",
    ("push", "--watch", "--yes"),
    _of_connections,
)

_SYSTEMD_UNIT = """\
# Written by: assoc-ingest service install
[Unit]
Description={about}

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


def unit(
    kind: str, database: Path, environment: Mapping[str, str], service: Service = WATCH
) -> str:
    """Return the text of a service for `database`, an absolute path."""
    # Without -P, modules in the directory in which the service is started could be imported.
    program = [sys.executable, "-P", "-m", "assoc_ingest"]
    command = [*program, *service.arguments, "--db", str(database)]
    repeated = service.variables(environment)
    if kind == SYSTEMD:
        variables = (_quoted(f"{name}={value}") for name, value in repeated.items())
        return _SYSTEMD_UNIT.format(
            about=service.about,
            command=" ".join(_quoted(word).replace("$", "$$") for word in command),
            environment="".join(f"Environment={variable}\n" for variable in variables),
            directory=_quoted(str(database.parent)),
        )
    log = str(database.with_name(f"{service.name}.log"))
    agent = {
        "Label": service.label,
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


def unit_path(kind: str, environment: Mapping[str, str], service: Service = WATCH) -> Path:
    configured = environment.get("XDG_CONFIG_HOME", "")
    if kind == SYSTEMD and configured.startswith("/"):
        return Path(configured) / "systemd" / "user" / service.unit
    above = home()
    if above is None:
        raise UsageError("Cannot determine your home directory for the service file: set HOME.")
    if kind == LAUNCHD:
        return above / "Library" / "LaunchAgents" / f"{service.label}.plist"
    return above / ".config" / "systemd" / "user" / service.unit


def install(
    kind: str,
    database: Path,
    environment: Mapping[str, str],
    services: Sequence[Service] = (WATCH,),
    *,
    force: bool,
) -> list[str]:
    """Write the units and start the services; return the messages for the user.

    Raises UsageError if a different unit exists, unless `force` says that it may be overwritten.
    """
    texts = {service: unit(kind, database, environment, service) for service in services}
    paths = {service: unit_path(kind, environment, service) for service in services}
    for service, path in paths.items():
        is_other = path.exists() and path.read_text("utf-8", "replace") != texts[service]
        if is_other and not force:
            raise UsageError(
                f"{path} already exists and differs from what would be installed. Compare it with "
                "`assoc-ingest service print`, or overwrite it with --force."
            )
    replaced = [service for service, path in paths.items() if path.exists()]
    for service, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[service], "utf-8")
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the service needs it to start
    if kind == SYSTEMD:
        units = [service.unit for service in services]
        commands = [_systemctl("daemon-reload"), _systemctl("enable", *units)]
        commands.append(_systemctl("restart", *units))  # an older unit may be running
    else:
        for service in replaced:  # launchd does not load it twice; unloading may fail
            _problem(["launchctl", "bootout", f"gui/{_user()}/{service.label}"])
        commands = [
            ["launchctl", "bootstrap", f"gui/{_user()}", str(path)] for path in paths.values()
        ]
    wrote = [f"Wrote {path}." for path in paths.values()]
    what = "The service is running and starts" if len(wrote) == 1 else "Both services run and start"
    return [*wrote, *_run(commands, f"{what} at every login.")]


def uninstall(kind: str, environment: Mapping[str, str]) -> list[str]:
    """Stop the services and remove their units; return the messages for the user.

    Keeps the database. Raises NotFoundError if there is none.
    """
    paths = {service: unit_path(kind, environment, service) for service in (WATCH, PUSH)}
    installed = {service: path for service, path in paths.items() if path.exists()}
    if not installed:
        raise NotFoundError(f"No service is installed (looked at {paths[WATCH]}).")
    if kind == SYSTEMD:
        units = [service.unit for service in installed]
        commands = [_systemctl("disable", "--now", *units)]
    else:
        commands = [
            ["launchctl", "bootout", f"gui/{_user()}/{service.label}"] for service in installed
        ]
    stopped = _run(commands, "The service was stopped.")
    for path in installed.values():
        path.unlink()
    reloaded = _run([_systemctl("daemon-reload")], "") if kind == SYSTEMD else []
    removed = [f"Removed {path}. The database is kept." for path in installed.values()]
    return [*stopped, *removed, *filter(None, reloaded)]


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
