"""assoc-ingest recall, plugin."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from .options import database_option, verbose_option

_PATIENCE = 100  # milliseconds


@click.command()
@click.option(
    "--hook",
    type=click.Choice(["session-start", "prompt", "tool", "compact"]),
    required=True,
    help="The moment: a conversation begins, something was typed, a tool is about to be called, or "
    "a summary replaces messages.",
)
@database_option
@click.pass_context
def recall(context: click.Context, database: Path, hook: str) -> None:
    """Answer the hook of an agent with what is remembered.

    Reads the JSON that an agent writes to its hooks from standard input, and prints the answer in
    the form that it takes: at most 1,500 characters, quoted, with references, and nothing if
    nothing is known. Exits with 0 whatever happens, so that the agent's work goes on; -v says what
    went wrong.

    \b
    Examples:
      echo '{"cwd": "/srv/shop"}' | assoc-ingest recall --hook session-start
    """
    from ..terminal import is_terminal

    if is_terminal(sys.stdin):
        raise click.UsageError("Give what the agent writes to its hook on standard input.")
    try:
        _answer(database, hook)
    except Exception:  # an agent does not fail because its memory does
        if "verbose" in (context.find_root().obj or {}):
            import traceback

            traceback.print_exc()


def _answer(database: Path, hook: str) -> None:
    from ..mcp.recall import event_of, printed, read_input, recall
    from ..store.database import open_reader

    event = event_of(read_input())
    if event is None:
        return
    if event.is_end:
        from ..sync.watch import News

        News(database, _PATIENCE).read()
        return
    if not event.is_answered:
        return
    connection = open_reader(database, _PATIENCE)
    try:
        text = recall(connection, hook, event)
    finally:
        connection.close()
    if text:
        sys.stdout.write(printed(event, text) + "\n")


# ------------------------------------------------------------------------------------------------
# assoc-ingest plugin


_agent_option = click.option(
    "--for",
    "agent",
    type=click.Choice(["claude", "codex", "gemini", "copilot"]),
    default="claude",
    show_default=True,
    help="The agent that uses it.",
)


@click.group()
@verbose_option
def plugin() -> None:
    """Print or install a plugin that gives an agent a memory.

    A plugin is a directory with hooks that run `assoc-ingest recall`, the server of `assoc-ingest
    mcp` and the skill of `assoc-ingest skill`. The agent itself is told of it by a command of its
    own, which is printed.

    \b
    Examples:
      assoc-ingest plugin print --for codex
      assoc-ingest plugin install --to ~/my-plugins/past-conversations
    """


@plugin.command("print")
@_agent_option
@database_option
@click.pass_context
def print_plugin(context: click.Context, database: Path, agent: str) -> None:
    """Print its files; nothing is written."""
    from ..ask.output import write
    from ..mcp.plugin import files

    for number, (path, text) in enumerate(files(agent, _database(context, database)).items()):
        write(["\n" * bool(number), f"# {path}\n", text])


@plugin.command()
@click.option(
    "--to",
    "directory",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The directory of the plugin, which is made if it is not there.",
)
@_agent_option
@click.option("--force", is_flag=True, help="Replace files that are there and say something else.")
@database_option
@click.pass_context
def install(
    context: click.Context, database: Path, directory: Path, agent: str, force: bool
) -> None:
    """Write its files into DIR, and nothing else."""
    from ..ask.output import say
    from ..mcp.plugin import files, how_to_use
    from ..mcp.plugin import install as put

    written = put(directory, files(agent, _database(context, database)), is_forced=force)
    say(f"Written: {len(written)} files." if written else "Already installed.")
    say(f"To use it: {how_to_use(agent, directory)}")


def _database(context: click.Context, database: Path) -> list[str]:
    """Return the option that names the database, if one was named."""
    is_given = context.get_parameter_source("database") is not ParameterSource.DEFAULT
    if is_given or (context.find_root().obj or {}).get("database"):
        return ["--db", str(database.absolute())]
    return []
