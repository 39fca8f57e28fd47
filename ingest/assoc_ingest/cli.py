"""The command line: one group, one module for each command.

The module of a command is imported when the command is used, and commands import what they need
where they need it, so that starting costs little more than click.
"""

from __future__ import annotations

from importlib import import_module

import click

from . import __version__
from .commands.options import any_database_option, pager_option, verbose_option
from .errors import did_you_mean
from .questions import QUESTIONS


def groups() -> dict[str, dict[str, str]]:
    """Return the place of each command by what it is for, in the order of the help."""
    others = {
        "For agents and programs": {
            "mcp": "serve:mcp",
            "skill": "serve:skill",
            "plugin": "recall:plugin",
            "recall": "recall:recall",
            "schema": "question",
        },
        "Share": {
            "export": "export:export",
            "secrets": "secrets:secrets",
            "remote": "fleet:remote",
            "push": "fleet:push",
            "pull": "fleet:pull",
        },
        "Look after": {
            "note": "note:note",
            "status": "question",
            "price": "upkeep:price",
            "verify": "upkeep:verify",
            "rebuild": "sync:rebuild",
            "restore": "upkeep:restore",
            "compact": "upkeep:compact",
            "prune": "upkeep:prune",
            "forget": "upkeep:forget",
        },
    }
    placed = set().union(*others.values())
    asked = {name: "question" for name in QUESTIONS if name not in placed}
    return {
        "Keep up to date": {"sync": "sync:sync", "watch": "sync:watch", "service": "sync:service"},
        "Ask": {**asked, "serve": "serve:serve"},
        **others,
    }


def commands() -> dict[str, str]:
    """Return the place of each command."""
    return {name: place for group in groups().values() for name, place in group.items()}


_DONE_BY = {
    "open": "list open",
    "sessions": "list sessions",
    "projects": "list projects",
    "tasks": "list tasks",
    "find": "search QUERY",
    "grep": "search QUERY",
    "cost": "stats",
    "costs": "stats",
    "usage": "stats",
    "prices": "price list",
    "pricing": "price list",
    "credentials": "secrets",
    "scan": "secrets",
    "resume": "show SESSION, which prints the command that resumes it",
    "delete": "forget SESSION",
    "import": "sync",
    "index": "sync",
    "web": "serve",
}
"""What people type for what another command does."""


class _Commands(click.Group):
    """The commands, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(commands())

    _is_listed = False

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, without making the options of those that are questions."""
        width = max(map(len, commands()))
        self._is_listed = True
        try:
            for heading, names in groups().items():
                listed = [(name, self.get_command(ctx, name)) for name in names]
                room = formatter.width - width - 6
                with formatter.section(heading):
                    formatter.write_dl(
                        [
                            (name.ljust(width), command.get_short_help_str(room))
                            for name, command in listed
                            if command
                        ]
                    )
        finally:
            self._is_listed = False

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in commands():
            return None
        place, _, name = commands()[cmd_name].partition(":")
        if self._is_listed and cmd_name in QUESTIONS:
            from .questions.question import named

            return click.Command(cmd_name, help=named(cmd_name).help)
        module = import_module(f".commands.{place}", __package__)
        command: click.Command = getattr(module, name) if name else module.command(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with the nearest and with the one that does it."""
        name = args[0]
        if name in commands() or name.startswith("-"):
            return super().resolve_command(ctx, args)
        if name in _DONE_BY:
            hint = f" Run: assoc-ingest {_DONE_BY[name]}"
        else:
            hint = did_you_mean(name, commands()) or " To see all commands: assoc-ingest --help"
        raise click.UsageError(f"No such command {name!r}.{hint}", ctx)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, package_name="assoc-ingest", message="%(prog)s %(version)s")
@any_database_option
@pager_option
@verbose_option
def cli() -> None:
    """Index everything that coding agents leave on disk in one searchable SQLite file.

    \b
    Getting started:
      assoc-ingest sync
      assoc-ingest search deadlock pool
    """
