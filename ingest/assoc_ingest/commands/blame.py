"""assoc-ingest blame"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import QueryCommand, database_option, json_options, project_option, reading

if TYPE_CHECKING:
    import sqlite3

    from ..ask.answer import Wanted
    from ..ask.blame import Question

_CONVERSATIONS, _PLACES, _PLACES_OF_JSON = 10, 3, 10


@click.command(cls=QueryCommand)
@click.argument("what", metavar="FILE|COMMIT|PR")
@click.option("--line", type=click.IntRange(min=1), help="Of FILE, only who made this line.")
@project_option("Only conversations of this project, and paths relative to it")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=_CONVERSATIONS,
    show_default=True,
    help="Maximum number of conversations.",
)
@json_options
@database_option
def blame(
    what: str,
    database: Path,
    line: int | None,
    project: str | None,
    limit: int,
    wanted: Wanted | None,
) -> int:
    """Show which conversations made a file, a commit or a pull request.

    Evidence has grades, the strongest first: a command made the commit and printed its hash; a
    commit with this subject was made at this time; a rebase repeated it; the file was edited here;
    it was read, talked about, or printed. Each place is one that `show` opens. Git is asked if the
    repository is here. A pull request is a number, `PR 118`, `owner/name#118` or an address.

    \b
    Examples:
      assoc-ingest blame src/pool.py
      assoc-ingest blame src/pool.py --line 42
      assoc-ingest blame 1a2b3c4
      assoc-ingest blame '#118'
    """
    import sys

    from ..ask.answer import Answer, Wanted
    from ..ask.blame import blame as find
    from ..ask.blame import not_found, report
    from ..ask.output import write, write_lines
    from ..terminal import Paint, terminal_width

    connection = reading(database)
    asked = ["blame", what, line, project]
    answer = Answer(connection, asked, wanted or Wanted())
    found = find(connection, _question(connection, what, line, project))
    count = len(found.conversations)
    if wanted is not None:
        shown = found.conversations.shown(answer.start, limit + 1, _PLACES_OF_JSON)
        items = (one.as_json() for one in shown)
        before = {"of": found.of, "notes": found.notes}
        write(answer.pieces(items, total=count, limit=limit, before=before))
        return 0 if count else 1
    if not count:
        raise not_found(connection, found.of)
    lines = report(found, limit, _PLACES, terminal_width(), Paint.for_stream(sys.stdout))
    write_lines(lines)
    return 0


def _question(
    connection: sqlite3.Connection, what: str, line: int | None, project: str | None
) -> Question:
    import json

    from ..ask.blame import Question, directory_of
    from ..ask.project_names import find_projects
    from ..paths import here

    if project is None:
        directory = here()
        return Question(what, line, directory.as_posix() if directory is not None else None)
    ids = find_projects(connection, project)
    return Question(what, line, directory_of(connection, ids), json.dumps(ids))
