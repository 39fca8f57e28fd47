"""What the program prints: help texts, and a worked example over the demonstration homes.

The example runs the real program in an empty home directory, over a copy of `tests/demo/`. All of
that is fixed, file times too, so the output is the same everywhere, but for the seconds that a sync
took.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from assoc_ingest.cli import cli, groups

PROGRAM = "assoc-ingest"
DEMO = Path(__file__).parents[1] / "tests" / "demo"

_WIDTH = 80
_DAY = 1_772_700_000  # the time of every file: 5 March 2026


# -- help ----------------------------------------------------------------------------------------


def command_table() -> str:
    """Return a table of the commands with what each does, in the groups of the help."""
    context = click.Context(cli, info_name=PROGRAM)
    rows = []
    for group, names in groups().items():
        for name in names:
            command = cli.get_command(context, name)
            does = command.get_short_help_str(100) if command else ""
            rows.append(f"| {group} | [`{name}`](#{name}) | {does} |\n")
            group = ""
    return "".join(("| to | command | does |\n|---|---|---|\n", *rows))


def help_texts() -> str:
    """Return the help text of every command."""
    settings = {**cli.context_settings, "terminal_width": _WIDTH}
    context = click.Context(cli, info_name=PROGRAM, **settings)
    texts = []
    for name in cli.list_commands(context):
        if command := cli.get_command(context, name):
            text = command.get_help(click.Context(command, context, name))
            texts.append(f"### {name}\n\n```console\n$ {PROGRAM} {name} --help\n{text}\n```\n")
    return "\n".join(texts)


# -- the example ---------------------------------------------------------------------------------


def example(*lines: str, prepare: bool = False) -> str:
    """Return what a terminal shows when these commands run, one after the other, at home.

    With `prepare` the demonstration homes are synced first, which is not shown.
    """
    with _home() as home:
        if prepare:
            _run(home, f"{PROGRAM} sync tests/demo/*")
        shown = "\n".join(f"$ {line}\n{_run(home, line)}" for line in lines)
    return f"```console\n{shown}```\n"


def questions(*asked: tuple[str, str]) -> str:
    """Return questions with the commands that answer them, over the demonstration homes."""
    with at_home() as (home, _):
        return "\n".join(
            f"**{question}**\n\n```console\n$ {line}\n{_run(home, line)}```\n"
            for question, line in asked
        )


@contextmanager
def at_home() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a home with the demonstration homes, synced, and the environment of who lives there."""
    with _home() as home:
        _run(home, f"{PROGRAM} sync tests/demo/*")
        yield home, _environment(home)


@contextmanager
def _home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place).resolve()
        copy = shutil.copytree(DEMO, home / "tests" / "demo")
        for path in copy.rglob("*"):
            os.utime(path, (_DAY, _DAY))
        yield home


def _run(home: Path, line: str) -> str:
    arguments = []
    for word in shlex.split(line)[1:]:
        found = sorted(home.glob(word)) if "*" in word else []
        arguments += [str(path.relative_to(home)) for path in found] or [word]
    done = subprocess.run(
        [sys.executable, "-m", "assoc_ingest", *arguments],
        cwd=home,
        env=_environment(home),
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{line} failed: {done.stderr}")
    shown = (done.stdout + done.stderr).replace(str(home), "/home/ada")
    return re.sub(r"in \d+\.\d s", "in 0.1 s", shown)


def _environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "SYSTEMROOT")}
    return {
        **kept,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "ASSOC_INGEST_DB": str(home / "assoc.db"),
        "PYTHONPATH": str(Path(__file__).parents[1] / "ingest"),
        "COLUMNS": str(_WIDTH),
        "TZ": "UTC",
    }
