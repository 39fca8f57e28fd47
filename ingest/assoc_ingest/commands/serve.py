"""assoc-ingest serve, mcp, skill."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from .options import database_option, project_option, verbose_option

# ------------------------------------------------------------------------------------------------
# assoc-ingest skill


@click.group()
@verbose_option
def skill() -> None:
    """Print or install a skill: how an agent looks up its past.

    A skill is a directory with a file SKILL.md that an agent reads when it fits its task. This one
    works with the command line alone, and uses the tools of `assoc-ingest mcp` if it has them.

    \b
    Examples:
      assoc-ingest skill print
      assoc-ingest skill install --to ~/.claude/skills
    """


@skill.command("print")
@verbose_option
def print_skill() -> None:
    """Print the file."""
    from ..ask.output import write
    from ..mcp.setup import text

    write([text()])


@skill.command()
@click.option(
    "--to",
    "directory",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The agent's directory for skills.",
)
@click.option("--force", is_flag=True, help="Replace a different skill.")
@verbose_option
def install(directory: Path, force: bool) -> None:
    """Write DIR/past-conversations/SKILL.md, and nothing else."""
    from ..ask.output import say
    from ..mcp.setup import install as put

    path, is_new = put(directory, is_forced=force)
    say(f"Written: {path}" if is_new else f"Already installed: {path}")


# ------------------------------------------------------------------------------------------------
# assoc-ingest mcp


@click.group(invoke_without_command=True)
@project_option("Limit every tool to this project")
@click.option("--no-sync", is_flag=True, help="Do not read new files before an answer.")
@click.option("--no-redact", is_flag=True, help="Do not mask credentials.")
@click.option("--structured", is_flag=True, help="Answer with JSON objects instead of text.")
@database_option
@click.pass_context
def mcp(
    context: click.Context,
    database: Path,
    project: str | None,
    no_sync: bool,
    no_redact: bool,
    structured: bool,
) -> None:
    """Serve an agent over the Model Context Protocol (MCP).

    The tools search, open a reference, list recent work, explain why code looks the way it does or
    how an error was fixed, and run SQL. They are read-only. Before each answer, the server reads
    new files, unless a watch does.

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
    from ..mcp.server import INSTRUCTIONS, Tools, sent, serve
    from ..terminal import is_terminal

    news: Callable[[], list[str]] | None = None

    def look() -> list[str]:
        nonlocal news
        if news is None:  # it is loaded with the first question, not at the start
            from ..sync.watch import News

            news = News(database).read
        return news()

    if is_terminal(sys.stdin):
        say("Waiting for a client. To set one up: assoc-ingest mcp config")
    index = Index(Settings(database, project, None if no_sync else look, not no_redact))
    tools = Tools(index)

    def call(name: str, arguments: dict[str, object]) -> dict[str, Any]:
        return sent(tools.call(name, arguments), is_structured=structured)

    offered = partial(tools.offered, is_structured=structured)
    try:
        serve(Protocol(INSTRUCTIONS, offered, call), index.interrupt)
    finally:
        index.close()


@mcp.command()
@click.option(
    "--client",
    type=click.Choice(["claude", "json", "codex", "vscode"]),
    help="Only for this client; default: all known clients.",
)
@click.pass_context
def config(context: click.Context, client: str | None) -> None:
    """Print the settings with which a client starts the server; nothing is written.

    Options before `config` become options of the server.

    \b
    Examples:
      assoc-ingest mcp config
      assoc-ingest mcp --project ~/shop --no-sync config --client json
    """
    from ..ask.output import write
    from ..mcp.setup import CLIENTS, lines

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
    flags = ("no_sync", "no_redact", "structured")
    return [*words, *(f"--{name.replace('_', '-')}" for name in flags if given[name])]


def _in_full(project: str) -> str:
    """Return a project as it is named from anywhere: a directory by its path."""
    is_directory = project.split("/")[0] in (".", "..", "~")
    return str(Path(project).expanduser().resolve()) if is_directory else project


# ------------------------------------------------------------------------------------------------
# assoc-ingest serve


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("others", nargs=-1, type=click.UNPROCESSED, metavar="[DATASETTE OPTIONS]...")
@click.option(
    "--watch", "watched", is_flag=True, help="Keep the database up to date while serving."
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port on 127.0.0.1; 0 picks a free one.",
)
@click.option("-o", "--open", "opened", is_flag=True, help="Open the first page in a browser.")
@click.option(
    "--remote", is_flag=True, help="Show the fleet server, with the data of all machines."
)
@database_option
def serve(
    others: tuple[str, ...], database: Path, watched: bool, port: int, opened: bool, remote: bool
) -> None:
    """Browse and search the database with Datasette.

    Listens on 127.0.0.1 only and rejects requests from other sites. Other options are passed on to
    Datasette: `datasette serve --help` lists them. Exits with 0 on SIGTERM and with 130 on Ctrl-C.

    \b
    Examples:
      assoc-ingest serve --watch --open
      assoc-ingest serve --port 0 --setting default_page_size 50 other.db
      assoc-ingest serve --remote --open
    """
    from ..web import serve as web

    chosen = web.ServeOptions(port, watched, opened, others)
    if not remote:
        raise click.exceptions.Exit(web.serve(database, chosen))
    from ..fleet.connect import bounded, destination_of
    from ..fleet.pages import CONNECTIONS, Pool
    from ..fleet.search import central

    central(database).close()  # a wrong destination or password is told now, not by each page
    with bounded(CONNECTIONS):
        code = web.serve_remote(Pool(destination_of(database)), chosen)
    raise click.exceptions.Exit(code)
