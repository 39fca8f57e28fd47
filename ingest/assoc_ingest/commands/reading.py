"""assoc-ingest show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    database_option,
    json_options,
    reading,
    sessions,
)

if TYPE_CHECKING:
    from ..ask.answer import Wanted


# ------------------------------------------------------------------------------------------------
# assoc-ingest show


_AFFORDABLE = 50  # messages of a JSON answer


@click.command()
@click.argument("reference", metavar="KEY[:LINE]", shell_complete=sessions)
@click.option(
    "--context",
    type=click.IntRange(min=0),
    metavar="N",
    help="With LINE, show N turns before and after it.  [default: 3]",
)
@click.option(
    "--full", is_flag=True, help="Show everything uncut, including tool input and output."
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Show only the last N turns.")
@click.option("--prompts", is_flag=True, help="Show only what you typed.")
@click.option("--errors", is_flag=True, help="Show only failed tool calls and API errors.")
@click.option("--tool", metavar="NAME", help="Show only calls of this tool.")
@click.option("--no-tools", is_flag=True, help="Leave out tool calls, results and hooks.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"With --json, at most this many messages; 0 for all.  [default: {_AFFORDABLE}]",
)
@json_options
@database_option
def show(
    reference: str,
    database: Path,
    no_tools: bool,
    limit: int | None,
    wanted: Wanted | None,
    **others: Any,
) -> None:
    """Print a conversation, or open a search result.

    KEY is a prefix of the key of a session or subagent, as printed by `search` and `list`. With
    LINE, the number of a line in its file, only the turns around that line are shown; a turn is a
    prompt and everything up to the next one. Subagents appear below the calls that spawned them.

    Everything outside of conversations has a name: task:LIST/TASK, todo:SESSION, plan:NAME,
    inbox:TEAM/NAME/NUMBER, document:PATH, prompt:LINE, output:SESSION/FILE.

    \b
    Examples:
      assoc-ingest show 0b7c2f4e
      assoc-ingest show 0b7c2f4e:212 --context 1
      assoc-ingest show plan:brave-green-hedge
    """
    import sys

    from ..ask.excerpt import Options
    from ..ask.output import write, write_lines
    from ..ask.show import MAX_WIDTH, Look
    from ..errors import UsageError
    from ..questions.show import as_json, has_mark, lines, opened
    from ..terminal import Paint, terminal_width

    options = Options(tools=not no_tools, **others)
    connection = reading(database)
    if wanted is not None:
        most = (_AFFORDABLE if limit is None else limit) or None
        write(as_json(connection, reference, options, wanted, most))
    elif limit is not None:
        raise UsageError("--limit belongs to --json. To see the end: --last N")
    else:
        found = opened(connection, reference, options)
        look = Look(terminal_width(MAX_WIDTH), Paint.for_stream(sys.stdout))
        write_lines(lines(found, look, options), has_mark=has_mark(found))
