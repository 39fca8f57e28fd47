"""assoc-ingest search, show, list, query, schema: what only reads and is no question yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    QueryCommand,
    database_option,
    filter_options,
    format_options,
    json_options,
    lists,
    reading,
    remote_option,
    remotely,
    reports,
    rows_option,
    sessions,
)

if TYPE_CHECKING:
    from ..ask.answer import Wanted
    from ..ask.output import Format


# ------------------------------------------------------------------------------------------------
# assoc-ingest schema


_MAX_WIDTH = 100


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as data.")
@database_option
def schema(database: Path, as_json: bool) -> None:
    """Print what programs can rely on: the fields of answers with --json.

    The tables of the database are described in docs/schema.md, and in the database itself.

    \b
    Examples:
      assoc-ingest schema
      assoc-ingest schema --json
    """
    del database  # every command takes one; the contract is the same for all
    from ..ask.output import write, write_lines
    from ..questions import contract
    from ..terminal import terminal_width

    if as_json:
        write([contract.as_json()])
    else:
        write_lines(contract.lines(terminal_width(_MAX_WIDTH)))


# ------------------------------------------------------------------------------------------------
# assoc-ingest query


@click.command()
@click.argument("name", required=False, shell_complete=reports)
@click.option(
    "-p",
    "--parameter",
    "parameters",
    type=(str, str),
    multiple=True,
    metavar="NAME VALUE",
    help="Set a parameter of the query; parameters not given are NULL.",
)
@format_options
@rows_option
@remote_option
@database_option
def query(
    name: str | None,
    database: Path,
    parameters: tuple[tuple[str, str], ...],
    limit: int | None,
    form: Format,
    remote: bool,
) -> None:
    """Run a built-in query.

    Without NAME, list the queries by subject, one line each.

    \b
    Examples:
      assoc-ingest query
      assoc-ingest query most_edited_files -p project shop --csv
      assoc-ingest query usage_by_day --remote
    """
    from ..ask.queries import write_query, write_query_names

    if name is None:
        write_query_names(form)
    else:
        connection = remotely(database, name) if remote else reading(database)
        write_query(connection, name, dict(parameters), form, limit)


# ------------------------------------------------------------------------------------------------
# assoc-ingest list


@click.command("list")
@click.argument("what", shell_complete=lists)
@filter_options(
    "project", "source", "branch", "model", "status", "since", "until", "errors", "min_cost"
)
@click.option(
    "--cwd", help="Only teams with a member in this directory; all teams if there are none."
)
@click.option("--all", is_flag=True, help="Include rows that are hidden by default.")
@click.option(
    "--gone", is_flag=True, help="Include entries that no longer exist; --all includes them too."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    help="Maximum number of rows; 0 for no limit.",
)
@format_options
@database_option
def listing(
    what: str,
    database: Path,
    limit: int,
    form: Format,
    cwd: str | None,
    **filters: Any,
) -> None:
    """List sessions, projects, tasks and more.

    WHAT is one of: sessions, projects, open (unfinished work), tasks, todos, plans, inbox, teams,
    agents, subagents, prompts, links, files, issues.

    \b
    Examples:
      assoc-ingest list sessions --project shop --since 7d
      assoc-ingest list open
      assoc-ingest list tasks --all --json
    """
    from ..ask.filters import Filters
    from ..ask.queries import write_list
    from ..paths import is_directory, real_path

    if cwd is not None and is_directory(cwd):
        cwd = str(real_path(cwd))
    write_list(reading(database), what, form, Filters.of({**filters, "cwd": cwd}), limit)


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


# ------------------------------------------------------------------------------------------------
# assoc-ingest search


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
@click.option("--all-hits", is_flag=True, help="List hits instead of conversations.")
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
    """Search conversations, plans, tasks and notes.

    Conversations with all words come first, then the closest others. "Several words" in quotes
    match as a phrase, and word* matches every word with that prefix. -word excludes messages with
    it, and OR separates alternatives. QUERY can contain filters: kind:prompt, project:shop.

    \b
    Examples:
      assoc-ingest search how did we fix the deadlock
      assoc-ingest search '"connection refused" -docker since:2w project:shop'
    """
    from ..ask.answer import Answer, Wanted
    from ..ask.blocks import write_hits, write_result
    from ..ask.filters import Filters
    from ..ask.output import say, write
    from ..ask.search import search as find
    from ..ask.search import with_lines
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
        raise UsageError("--raw is a SQLite expression; leave it out with --remote.")
    if origin is not None and not remote:
        raise UsageError("--origin limits a search with --remote; add it.")


def _in_short(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"
