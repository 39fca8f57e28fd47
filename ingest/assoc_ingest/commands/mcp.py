"""assoc-ingest mcp"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from click.core import ParameterSource

from .options import database_option, project_option


@click.group(invoke_without_command=True)
@project_option("Limit every tool to this project")
@click.option("--no-sync", is_flag=True, help="Do not read what is new before an answer.")
@click.option("--no-redact", is_flag=True, help="Do not mask credentials.")
@database_option
@click.pass_context
def mcp(
    context: click.Context, database: Path, project: str | None, no_sync: bool, no_redact: bool
) -> None:
    """Answer an agent over standard input and output: the Model Context Protocol.

    The tools search, open a place, say what was done lately, why code is as it is and how an error
    was ended before, and run SQL. They only read. Before each answer what is new is read, unless a
    watch does that.

    \b
    Examples:
      assoc-ingest mcp config
      assoc-ingest mcp --project .
    """
    if context.invoked_subcommand is not None:
        return
    import sys

    from ..ask.output import say
    from ..mcp.index import Index, Settings
    from ..mcp.protocol import Protocol
    from ..mcp.server import serve
    from ..mcp.tools import INSTRUCTIONS, Tools
    from ..terminal import is_terminal

    news: Callable[[], list[str]] | None = None

    def look() -> list[str]:
        nonlocal news
        if news is None:  # it is loaded with the first question, not at the start
            from ..sync.news import News

            news = News(database).read
        return news()

    if is_terminal(sys.stdin):
        say("Waiting for a client. To set one up: assoc-ingest mcp config")
    index = Index(Settings(database, project, None if no_sync else look, not no_redact))
    tools = Tools(index)
    try:
        serve(Protocol(INSTRUCTIONS, tools.offered, tools.call), index.interrupt)
    finally:
        index.close()


@mcp.command()
@click.option(
    "--client",
    type=click.Choice(["claude", "json", "codex", "vscode"]),
    help="Only for this client; else for all that are known.",
)
@click.pass_context
def config(context: click.Context, client: str | None) -> None:
    """Print what a client needs to start the server; nothing is written.

    Options that stand before `config` become those of the server.

    \b
    Examples:
      assoc-ingest mcp config
      assoc-ingest mcp --project ~/shop --no-sync config --client json
    """
    from ..ask.output import write
    from ..mcp.clients import CLIENTS, lines

    arguments = ["mcp", *_given(context.parent or context)]
    if client is not None:
        write([lines(client, arguments)])
        return
    for number, (name, what) in enumerate(CLIENTS.items()):
        write(["\n" * bool(number), f"# {what}\n", lines(name, arguments)])


def _given(context: click.Context) -> list[str]:
    """Return the options of the server that were given, as words: paths in full."""
    words: list[str] = []
    given = context.params
    is_given = context.get_parameter_source("database") is not ParameterSource.DEFAULT
    if is_given or (context.find_root().obj or {}).get("database"):
        words += ["--db", str(Path(given["database"]).absolute())]
    if project := given["project"]:
        words += ["--project", _in_full(project)]
    return words + ["--no-sync"] * given["no_sync"] + ["--no-redact"] * given["no_redact"]


def _in_full(project: str) -> str:
    """Return a project as it is named from anywhere: a directory by its path."""
    is_directory = project.split("/")[0] in (".", "..", "~")
    return str(Path(project).expanduser().resolve()) if is_directory else project
