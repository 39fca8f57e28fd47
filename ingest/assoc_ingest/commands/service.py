"""assoc-ingest service"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .options import database_option

_Command = Callable[..., Any]


def _kind_option(command: _Command) -> _Command:
    return click.option(
        "--kind",
        type=click.Choice(["systemd", "launchd"]),
        callback=_chosen,
        help="Service manager; default: the one of this system.",
    )(command)


def _chosen(context: click.Context, _: click.Parameter, value: str | None) -> str:
    from ..sync.service import kind_here

    return value or kind_here()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def service() -> None:
    """Install `watch` as a user service (systemd, launchd).

    print shows the systemd unit or launchd agent, install writes and starts it, uninstall stops and
    removes it.

    \b
    Examples:
      assoc-ingest service print
      assoc-ingest service install
    """


@service.command("print")
@_kind_option
@database_option
def print_unit(kind: str, database: Path) -> None:
    """Print what `install` would write.

    \b
    Example:
      assoc-ingest service print --kind launchd
    """
    from ..ask.output import write
    from ..sync.service import unit
    from ..terminal import safe

    write([safe(unit(kind, database.absolute(), os.environ))])


@service.command()
@click.option("--force", is_flag=True, help="Overwrite an existing unit that differs.")
@_kind_option
@database_option
def install(kind: str, database: Path, force: bool) -> None:
    """Write the unit and start the service.

    \b
    Example:
      assoc-ingest service install
    """
    from ..ask.output import say
    from ..sync import service as services

    for line in services.install(kind, database.absolute(), os.environ, force=force):
        say(line)


@service.command()
@_kind_option
def uninstall(kind: str) -> None:
    """Stop the service and remove the unit. The database is kept.

    \b
    Example:
      assoc-ingest service uninstall
    """
    from ..ask.output import say
    from ..sync import service as services

    for line in services.uninstall(kind, os.environ):
        say(line)
