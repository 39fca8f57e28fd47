"""assoc-ingest show"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option, reading


@click.command()
@click.argument("session")
@click.option("--no-tools", is_flag=True, help="Leave out tool calls, results and hooks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the full texts.")
@database_option
def show(session: str, database: Path, no_tools: bool, as_json: bool) -> None:
    """Print one conversation.

    Subagents appear below the calls that spawned them. SESSION is a prefix of the session's key, as
    printed by `search` and `list sessions`.

    \b
    Example:
      assoc-ingest show 0b7c2f4e
    """
    import sys

    from ..ask import conversation
    from ..ask.output import write, write_lines
    from ..ask.show import MAX_WIDTH, Look, lines
    from ..terminal import Paint, terminal_width

    found = conversation.Conversation(reading(database), session)
    if as_json:
        write(conversation.as_json(found, tools=not no_tools))
    else:
        look = Look(terminal_width(MAX_WIDTH), Paint.for_stream(sys.stdout), tools=not no_tools)
        write_lines(lines(found, look))
