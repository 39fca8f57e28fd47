"""assoc-ingest search"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    QueryCommand,
    database_option,
    json_options,
    project_option,
    reading,
    source_option,
)

if TYPE_CHECKING:
    from ..ask.answer import Wanted

_LONGEST_ECHO = 200  # letters of a query that a message repeats


@click.command(cls=QueryCommand)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--kind", help="Only hits of this kind: prompt, text, thinking, tool_use, plan, task ..."
)
@project_option("Only this project")
@click.option("--session", help="Only this session, given by a prefix of its key.")
@source_option("Only this source")
@click.option("--branch", help="Only messages written on this git branch.")
@click.option("--since", help="Only hits newer than this: 12h, 7d, 2w or a date.")
@click.option("--tools", is_flag=True, help="Search only tool input and output.")
@click.option("--raw", is_flag=True, help="Interpret QUERY as an FTS5 expression.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Maximum number of hits.",
)
@json_options
@database_option
def search(
    query: tuple[str, ...],
    database: Path,
    tools: bool,
    raw: bool,
    limit: int,
    wanted: Wanted | None,
    **filters: Any,
) -> int:
    """Search conversations first, then tool output.

    QUERY is plain words, all of which must match. "Several words" in quotes match as a phrase;
    word* matches every word with that prefix.

    \b
    Examples:
      assoc-ingest search deadlock pool
      assoc-ingest search '"connection refused"' --since 2w --project shop
    """
    from ..ask.answer import Answer
    from ..ask.filters import Filters
    from ..ask.hits import write_hits
    from ..ask.output import say, write
    from ..ask.query_parser import parse
    from ..ask.search import search as find
    from ..ask.search import with_lines
    from ..errors import NotFoundError

    text = " ".join(query)
    connection = reading(database)
    found = find(connection, text, Filters(**filters), limit=limit, tools=tools, raw=raw)
    hits = with_lines(connection, found)
    if wanted is not None:
        items = [hit.as_json() for hit in hits]
        write(Answer(connection, ["search", text], wanted).pieces(items, total=len(items)))
    else:
        write_hits(connection, hits)
    left_out = None if raw else parse(text).note
    if left_out:
        say(left_out)
    if not hits and wanted is not None:
        return 1
    if not hits:
        raise NotFoundError(f"No hits for {_in_short(text)}.")
    return 0


def _in_short(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"
