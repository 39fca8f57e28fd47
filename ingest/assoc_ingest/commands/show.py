"""assoc-ingest show"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .options import database_option, reading


@click.command()
@click.argument("reference", metavar="KEY[:LINE]")
@click.option(
    "--context",
    type=click.IntRange(min=0),
    metavar="N",
    help="With LINE, show N turns before and after it.  [default: 3]",
)
@click.option("--full", is_flag=True, help="Show everything whole, tool input and output too.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Show only the last N turns.")
@click.option("--prompts", is_flag=True, help="Show only what you typed.")
@click.option("--errors", is_flag=True, help="Show only failed tool calls and errors of the API.")
@click.option("--tool", metavar="NAME", help="Show only calls of this tool.")
@click.option("--no-tools", is_flag=True, help="Leave out tool calls, results and hooks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the full texts.")
@database_option
def show(reference: str, database: Path, no_tools: bool, as_json: bool, **others: Any) -> None:
    """Print a conversation, or open what `search` found.

    KEY is the beginning of the key of a session or of a subagent, as printed by `search` and
    `list`. With LINE, the number of a line in its file, only the turns around that line are shown:
    a turn is a prompt and what follows up to the next one. Subagents appear below the calls that
    spawned them.

    What is no line of a conversation has a name: task:LIST/TASK, todo:SESSION, plan:NAME,
    inbox:TEAM/NAME/NUMBER, document:PATH, prompt:LINE, output:SESSION/FILE.

    \b
    Examples:
      assoc-ingest show 0b7c2f4e
      assoc-ingest show 0b7c2f4e:212 --context 1
      assoc-ingest show plan:brave-green-hedge
    """
    import sys

    from ..ask import opening
    from ..ask.excerpt import Options
    from ..ask.output import write, write_lines
    from ..ask.page import Look
    from ..ask.show import MAX_WIDTH
    from ..terminal import Paint, terminal_width

    options = Options(tools=not no_tools, **others)
    found = opening.opened(reading(database), reference, options)
    if as_json:
        write(opening.as_json(found, options))
    else:
        look = Look(terminal_width(MAX_WIDTH), Paint.for_stream(sys.stdout))
        write_lines(opening.lines(found, look, options), has_mark=opening.has_mark(found))
