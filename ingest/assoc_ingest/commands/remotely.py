"""The option `--remote`: a command that reads asks the server of the fleet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    import sqlite3

P = ParamSpec("P")
R = TypeVar("R")


def remote_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--remote`."""
    text = "Ask the server of the fleet: what all machines pushed."
    return click.option("--remote", is_flag=True, help=text)(command)


def remotely(database: Path, name: str | None = None) -> sqlite3.Connection:
    """Open the server for reading until the command ends; `name` is the query that it is for."""
    from ..errors import UsageError
    from ..fleet.asking import OF_ONE_MACHINE, central
    from ..fleet.connect import bounded

    if name in OF_ONE_MACHINE:
        raise UsageError(f"{name} is about one machine: run it there, without --remote.")
    context = click.get_current_context()
    context.with_resource(bounded())
    connection = central(database)
    context.call_on_close(connection.close)
    return connection
