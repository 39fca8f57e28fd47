"""assoc-ingest search"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .options import database_option, project_option, reading, source_option

_LONGEST_ECHO = 200  # letters of a query that a message repeats
_CONVERSATIONS, _HITS = 10, 20


class _Search(click.Command):
    """A command whose query may have words that begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave such words to the query; say how to search for what is no option."""
        try:
            return super().parse_args(ctx, _with_words_behind(args))
        except click.NoSuchOption as error:
            hint = f"{error.message} To search for it: {ctx.command_path} -- {error.option_name}."
            raise click.NoSuchOption(
                error.option_name, hint, possibilities=error.possibilities, ctx=ctx
            ) from error


def _with_words_behind(args: list[str]) -> list[str]:
    """Return the arguments with `-word`, which leaves out a word, behind the options.

    What stands behind `--` is words, whatever they begin with: that is for the query to know, too.
    """
    options: list[str] = []
    words: list[str] = []
    for number, arg in enumerate(args):
        if arg == "--":
            return [*options, "--", *words, *args[number:]]
        # `-n50` and `-d/srv/assoc.db` are options with their values.
        is_word = arg[:1] == "-" and arg[1:3].isalpha() and len(arg) > 2
        (words if is_word and not {"/", "."} & set(arg) else options).append(arg)
    return [*options, "--", *words]


@click.command(cls=_Search)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--kind",
    multiple=True,
    help="Only hits of this kind, or these: prompt, text, thinking, tool_use, plan, task ...",
)
@project_option("Only this project")
@click.option("--session", help="Only this session, given by a prefix of its key.")
@source_option("Only this source")
@click.option("--branch", help="Only messages written on this git branch.")
@click.option("--since", help="Only hits newer than this: 12h, 7d, 2w or a date.")
@click.option("--until", help="Only hits older than this, or of this date.")
@click.option("--tool", help="Only calls of this tool, and what it gave.")
@click.option("--tools", is_flag=True, help="Search only tool input and output.")
@click.option("--raw", is_flag=True, help="Interpret QUERY as an FTS5 expression.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    help=f"Maximum number of conversations ({_CONVERSATIONS}), or of hits ({_HITS}).",
)
@click.option("--all-hits", is_flag=True, help="List hits, not conversations.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of hits.")
@database_option
def search(
    query: tuple[str, ...],
    database: Path,
    tools: bool,
    raw: bool,
    limit: int | None,
    all_hits: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Find conversations, and what was said in them.

    Conversations with all words come first, then the closest others. "Several words" in quotes
    match as a phrase, word* every word with that prefix. -word leaves out what has it, OR stands
    between alternatives. The filters can be a part of QUERY, too: kind:prompt, project:shop.

    \b
    Examples:
      assoc-ingest search how did we fix the deadlock
      assoc-ingest search '"connection refused" -docker since:2w project:shop'
    """
    from ..ask.blocks import write_answer, write_hits
    from ..ask.filters import Filters
    from ..ask.hits import with_lines
    from ..ask.output import Format, say, write_objects
    from ..ask.search import search as find
    from ..errors import NotFoundError

    text = " ".join(query)
    connection = reading(database)
    is_flat = all_hits or as_json
    most = limit or (_HITS if is_flat else _CONVERSATIONS)
    answer = find(
        connection, text, Filters(**filters), limit=most, tools=tools, raw=raw,
        shown=0 if is_flat else 3,
    )  # fmt: skip
    answer = answer.with_hits(with_lines(connection, answer.shown()))
    if as_json or not answer.hits:
        for line in answer.said():
            say(line)
    if as_json:
        write_objects((hit.as_json() for hit in answer.hits), Format("json"))
    elif not answer.hits:
        pass
    elif all_hits:
        write_hits(answer, most)
    else:
        write_answer(answer, most)
    if not answer.hits:
        raise NotFoundError(f"No hits for {_in_short(text)}.")


def _in_short(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"
