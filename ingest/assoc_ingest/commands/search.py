"""assoc-ingest search"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .options import database_option, project_option, reading, source_option

_LONGEST_ECHO = 200  # letters of a query that a message repeats


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--kind",
    multiple=True,
    help="Only hits of this kind: prompt, text, thinking, tool_use, plan, task ...",
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
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of hits.")
@database_option
def search(
    query: tuple[str, ...],
    database: Path,
    tools: bool,
    raw: bool,
    kind: tuple[str, ...],
    limit: int,
    as_json: bool,
    **filters: Any,
) -> None:
    """Search conversations first, then tool output.

    QUERY is plain words, all of which must match. "Several words" in quotes match as a phrase;
    word* matches every word with that prefix.

    \b
    Examples:
      assoc-ingest search deadlock pool
      assoc-ingest search '"connection refused"' --since 2w --project shop
    """
    from ..ask.blocks import write_hits
    from ..ask.filters import Filters
    from ..ask.hits import with_lines
    from ..ask.output import Format, say, write_objects
    from ..ask.search import search as find
    from ..errors import NotFoundError

    text = " ".join(query)
    connection = reading(database)
    found = find(connection, text, Filters(kind=kind, **filters), limit=limit, tools=tools, raw=raw)
    hits = with_lines(connection, found.hits)
    if as_json:
        write_objects((hit.as_json() for hit in hits), Format("json"))
    else:
        write_hits(connection, hits)
    for note in found.notes:
        say(note)
    if not hits:
        raise NotFoundError(f"No hits for {_in_short(text)}.")


def _in_short(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"
