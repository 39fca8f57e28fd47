"""assoc-ingest search"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    QueryCommand,
    database_option,
    filter_options,
    json_options,
    reading,
)
from .remotely import remote_option, remotely

if TYPE_CHECKING:
    from ..ask.answer import Wanted

_LONGEST_ECHO = 200  # letters of a query that a message repeats
_CONVERSATIONS, _HITS = 10, 20


class _Search(QueryCommand):
    """A command whose query may have words that begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; `-word`, which leaves out a word, is one of the query."""
        return super().parse_args(ctx, _with_words_behind(args))


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
    return [*options, "--", *words] if words else options  # else it would be a missing value


@click.command(cls=_Search)
@click.argument("query", nargs=-1, required=True)
@filter_options("kind", "project", "session", "source", "branch", "model", "since", "until", "tool")
@click.option("--tools", is_flag=True, help="Search only tool input and output.")
@click.option("--raw", is_flag=True, help="Interpret QUERY as an FTS5 expression.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    help=f"Maximum number of conversations ({_CONVERSATIONS}), or of hits ({_HITS}).",
)
@click.option("--all-hits", is_flag=True, help="List hits, not conversations.")
@remote_option
@click.option("--origin", help="With --remote: only what this machine pushed, by its label.")
@json_options
@database_option
def search(
    query: tuple[str, ...],
    database: Path,
    tools: bool,
    raw: bool,
    limit: int | None,
    all_hits: bool,
    wanted: Wanted | None,
    remote: bool,
    origin: str | None,
    **filters: Any,
) -> int:
    """Find conversations, and what was said in them.

    Conversations with all words come first, then the closest others. "Several words" in quotes
    match as a phrase, word* every word with that prefix. -word leaves out what has it, OR stands
    between alternatives. The filters can be a part of QUERY, too: kind:prompt, project:shop.

    \b
    Examples:
      assoc-ingest search how did we fix the deadlock
      assoc-ingest search '"connection refused" -docker since:2w project:shop'
    """
    from ..ask.answer import Answer, Wanted
    from ..ask.blocks import write_hits, write_result
    from ..ask.filters import Filters
    from ..ask.hits import with_lines
    from ..ask.output import say, write
    from ..ask.search import search as find
    from ..errors import NotFoundError, UsageError

    text, asked = " ".join(query), Filters.of(filters)
    if not text.strip():
        raise UsageError("Give at least one word to search for.")
    _check_remote(remote=remote, raw=raw, origin=origin)
    connection = remotely(database) if remote else reading(database)
    is_flat = all_hits or wanted is not None
    most = limit or (_HITS if is_flat else _CONVERSATIONS)
    answer = Answer(connection, ["search", text, tools, raw, filters], wanted or Wanted())
    number, shown = answer.start + most + (wanted is not None), 0 if is_flat else 3
    if remote:
        from ..fleet.search import search as find_there
        from ..fleet.search import with_machines

        result = find_there(
            connection, text, asked,
            limit=number, tools=tools, origin=origin, shown=shown,
        )  # fmt: skip
        result = with_machines(result) if wanted is None else result
    else:
        result = find(connection, text, asked, limit=number, tools=tools, raw=raw, shown=shown)
        if wanted is None:
            result = result.with_hits(with_lines(connection, result.shown()))
    if wanted is not None:
        hits = result.hits[answer.start :]
        items = (hit.as_json() for hit in (hits if remote else with_lines(connection, hits)))
        total, relaxed = result.count, result.relaxed()
        why = {"nothing": result.nothing.as_json()} if result.nothing else {}
        write(answer.pieces(items, total=total, limit=most, relaxed=relaxed, before=why))
        return 0 if result.hits else 1
    if not result.hits:
        for line in result.said():
            say(line)
        raise NotFoundError(f"No hits for {_in_short(text)}.")
    (write_hits if all_hits else write_result)(result, most)
    return 0


def _check_remote(*, remote: bool, raw: bool, origin: str | None) -> None:
    from ..errors import UsageError

    if remote and raw:
        raise UsageError("--raw is an expression of SQLite; leave it out with --remote.")
    if origin is not None and not remote:
        raise UsageError("--origin limits a search with --remote; add it.")


def _in_short(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"
