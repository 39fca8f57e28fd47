"""assoc-ingest recall."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .options import database_option

_PATIENCE = 100  # milliseconds


@click.command()
@click.option(
    "--hook",
    type=click.Choice(["session-start", "compact"]),
    required=True,
    help="The moment: a conversation begins, or its messages are replaced by a summary.",
)
@database_option
@click.pass_context
def recall(context: click.Context, database: Path, hook: str) -> None:
    """Answer the hook of an agent with what is remembered at this moment.

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

        News(database).read()
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
