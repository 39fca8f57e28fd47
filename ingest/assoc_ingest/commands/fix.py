"""assoc-ingest fix"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import QueryCommand, database_option, json_options, project_option, reading

if TYPE_CHECKING:
    from ..ask.answer import Wanted

_FIXES, _ERRORS, _ERRORS_OF_JSON = 5, 2, 5
_MOST = 1_000_000  # letters of standard input


@click.command(cls=QueryCommand)
@click.argument("error", nargs=-1)
@project_option("Only conversations of this project")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=_FIXES,
    show_default=True,
    help="Maximum number of different endings.",
)
@json_options
@database_option
def fix(
    error: tuple[str, ...],
    database: Path,
    project: str | None,
    limit: int,
    wanted: Wanted | None,
) -> int:
    """Show where an error occurred before, and what ended it.

    Without ERROR, it is read from standard input, such as a traceback. Numbers, paths, hashes and
    quotes in it do not matter. An error has ended where the same check later succeeded in the same
    conversation; what was edited and run in between is shown. What only suggests an end, such as
    another command that succeeded, is marked as a guess.

    \b
    Examples:
      assoc-ingest fix "cannot find module"
      pytest 2>&1 | assoc-ingest fix
    """
    import sys

    from ..ask.answer import Answer, Wanted
    from ..ask.fix import fixes_of, report
    from ..ask.output import write, write_lines
    from ..ask.project_names import project_ids
    from ..ask.query_parser import bindable
    from ..errors import NotFoundError
    from ..terminal import Paint, terminal_width

    text = bindable(" ".join(error) or _given())
    connection = reading(database)
    answer = Answer(connection, ["fix", text, project], wanted or Wanted())
    projects = project_ids(connection, project) if project else None
    found = fixes_of(connection, text, projects)
    if wanted is not None:
        shown = found.shown(connection, answer.start, limit + 1, _ERRORS_OF_JSON)
        before = {"of": found.facts(), "notes": found.notes}
        items = (one.as_json() for one in shown)
        write(answer.pieces(items, total=len(found), limit=limit, before=before))
        return 0 if found else 1
    if not found:
        notes = "".join(f" {note}" for note in found.notes)
        raise NotFoundError(
            f"No failed call has this error: {found.error[:200]}.{notes} To look for its words: "
            "assoc-ingest search --tools WORDS"
        )
    width, paint = terminal_width(), Paint.for_stream(sys.stdout)
    write_lines(report(connection, found, limit, _ERRORS, width, paint))
    return 0


def _given() -> str:
    """Return what stands on standard input; raise if that is a terminal."""
    import sys

    from ..errors import UsageError
    from ..terminal import is_terminal

    if is_terminal(sys.stdin):
        raise UsageError('Give the text of the error: assoc-ingest fix "ERROR TEXT"')
    return sys.stdin.read(_MOST)
