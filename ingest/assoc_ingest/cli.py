"""The command line: one group, one module for each command.

A command's module is imported when its name is used, and `commands` say what they need where
they need it, so that starting costs little more than click.
"""

from __future__ import annotations

from importlib import import_module

import click

from . import __version__
from .commands.options import verbose_option

# In the order of a first day with the program.
_COMMANDS = {
    "sync": "sync:sync",
    "watch": "watch:watch",
    "serve": "serve:serve",
    "search": "search:search",
    "show": "show:show",
    "export": "export:export",
    "list": "listing:listing",
    "query": "query:query",
    "stats": "stats:stats",
    "status": "status:status",
    "service": "service:service",
    "verify": "verify:verify",
    "rebuild": "rebuild:rebuild",
    "restore": "restore:restore",
    "prune": "prune:prune",
    "forget": "forget:forget",
    "compact": "compact:compact",
}


class _Commands(click.Group):
    """The commands, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(f".commands.{module}", __package__), name)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, package_name="assoc-ingest", message="%(prog)s %(version)s")
@verbose_option
def cli() -> None:
    """Index everything that coding agents leave on disk in one searchable SQLite file.

    \b
    Getting started:
      assoc-ingest sync
      assoc-ingest search deadlock pool
    """
