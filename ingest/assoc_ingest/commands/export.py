"""assoc-ingest export, and where it may write."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import NotFoundError, UsageError
from ..paths import is_directory, is_file
from ..terminal import is_terminal
from .options import (
    database_option,
    project_option,
    reading,
    repositories,
    sessions,
)

if TYPE_CHECKING:
    import sqlite3

    from ..ask.export import Choice, ExportedConversation
    from ..ask.filters import Filters


# ------------------------------------------------------------------------------------------------
# Where `export` may write: never over a file that it was not told to, nor in an agent's home.


def checked_file(connection: sqlite3.Connection, output: Path, *, force: bool) -> bool:
    """Return whether the file may be overwritten. Raises UsageError if it cannot be written."""
    from ..files.private import known_roots, outside_roots

    if is_directory(output):
        raise UsageError(f"{output} is a directory. Give a file in it: -o {output / 'NAME'}")
    _check_parent(output)
    outside_roots(output.parent, known_roots(connection), "-o FILE")
    return _may_overwrite([output], force=force)


def checked_directory(
    connection: sqlite3.Connection, output: Path, names: Sequence[str], *, force: bool
) -> bool:
    """Make the directory; return whether the files in it may be overwritten.

    Raises UsageError if they cannot be written.
    """
    from ..files.private import known_roots, outside_roots

    if os.path.lexists(output) and not is_directory(output):
        raise UsageError(f"{output} is a file. Give a directory: -o DIR")
    _check_parent(output)
    outside_roots(output, known_roots(connection), "-o DIR")
    overwrite = _may_overwrite([output / name for name in names], force=force)
    output.mkdir(mode=0o700, exist_ok=True)
    return overwrite


def _check_parent(output: Path) -> None:
    if not is_directory(output.parent):
        raise UsageError(
            f"{output.parent} is not a directory. Create it first, or give another place"
        )


def _may_overwrite(files: Sequence[Path], *, force: bool) -> bool:
    """Return whether files that are there may be overwritten; a person is asked.

    Raises UsageError if something is there and nobody allows it.
    """
    there = [file for file in files if os.path.lexists(file)]
    if not there:
        return False
    odd = next((file for file in there if not is_file(file) and not file.is_symlink()), None)
    if odd is not None:
        raise UsageError(f"{odd} is not a regular file. Give another place with -o")
    if force:
        return True
    more = f" and {len(there) - 1:,} more files are" if len(there) > 1 else " is"
    said = f"{there[0]}{more} already there."
    if is_terminal(sys.stdin) and is_terminal(sys.stderr):
        if click.confirm(f"{said} Overwrite?", err=True):
            return True
        raise UsageError("Nothing was written.")
    raise UsageError(f"{said} To overwrite, add --force")


# ------------------------------------------------------------------------------------------------
# assoc-ingest export


_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".jsonl": "jsonl"}
_INDEXES = ("html", "md")


@click.command()
@click.argument("session", required=False, shell_complete=sessions)
@project_option("Export all conversations of this project")
@click.option(
    "--repository",
    shell_complete=repositories,
    help="Export all conversations of this repository, with all its clones and worktrees.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "jsonl"]),
    help="Format; default: by the extension of the file, else html.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="File to write, or of a project the directory; - is standard output. Default: on a "
    "terminal a file that is called after the conversation, else standard output.",
)
@click.option("--no-tools", is_flag=True, help="Leave out tool calls, results and hooks.")
@click.option("--no-thinking", is_flag=True, help="Leave out thinking.")
@click.option("--no-redact", is_flag=True, help="Do not mask credentials.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@database_option
def export(
    session: str | None,
    database: Path,
    project: str | None,
    repository: str | None,
    form: str | None,
    output: Path | None,
    no_tools: bool,
    no_thinking: bool,
    no_redact: bool,
    force: bool,
) -> None:
    """Export a conversation to a file.

    HTML is one self-contained file; Markdown is for pull requests; jsonl has the records of the
    database. SESSION is a prefix of the session's key. Tokens, keys and passwords are masked if
    they are recognised: read a file before you publish it.

    \b
    Examples:
      assoc-ingest export 0b7c2f4e -o fix.html
      assoc-ingest export 0b7c2f4e --format md --no-tools
      assoc-ingest export --project shop -o shop-conversations
    """
    from ..ask.export import Choice
    from ..ask.filters import Filters

    if (session is None) == (project is None and repository is None):
        raise click.UsageError("Give a session, or a project: --project NAME")
    form = form or _FORMATS.get(output.suffix.lower() if output else "", "html")
    choice = Choice(
        tools=not no_tools,
        thinking=not no_thinking,
        redacts=not no_redact,
        every_record=form == "jsonl",
    )
    connection = reading(database)
    if session is not None:
        _export_session(connection, session, form, output, choice, force=force)
    else:
        filters = Filters(project=project, repository=repository)
        _export_project(connection, filters, form, output, choice, force=force)


def _export_session(
    connection: sqlite3.Connection,
    session: str,
    form: str,
    output: Path | None,
    choice: Choice,
    *,
    force: bool,
) -> None:
    from ..ask.export import ExportedConversation, stem_of
    from ..ask.output import say, write
    from ..files.private import write_private
    from ..store.database import snapshot

    said = ""
    with snapshot(connection):  # a sync may be writing
        conversation = ExportedConversation(connection, session, choice)
        pieces = _pieces(connection, conversation, form)
        if output is None and is_terminal(sys.stdout):  # else a pipe, or `> fix.html`
            about: Any = conversation.session
            at, title = about["started_at"] or about["ended_at"], about["title"] or ""
            output = Path(f"{stem_of(connection, at, title, about['session_key'])}.{form}")
            said = f"Written to {output}."
        if output is None or str(output) == "-":
            write(pieces, is_exact=True)
        else:
            overwrite = checked_file(connection, output, force=force)
            write_private(output, pieces, overwrite=overwrite)
    if said:
        say(said)
    _say_masked(conversation.masked)


def _export_project(
    connection: sqlite3.Connection,
    filters: Filters,
    form: str,
    output: Path | None,
    choice: Choice,
    *,
    force: bool,
) -> None:
    from .. import terminal
    from ..ask.export import ExportedConversation, conversations_of
    from ..ask.output import say
    from ..files.private import write_private
    from ..store.database import snapshot

    if output is None or str(output) == "-":
        raise click.UsageError("A project becomes several files. Give a directory: -o DIR")
    named = conversations_of(connection, filters, form, redacts=choice.redacts)
    if not named:
        name = filters.project or filters.repository
        raise NotFoundError(f"{name!r} has no conversations.")
    index = f"index.{form}" if form in _INDEXES else None
    names = [one.name for one in named] + ([index] if index else [])
    overwrite = checked_directory(connection, output, names, force=force)
    masked: Counter[str] = Counter()
    for one in named:
        with snapshot(connection):  # a sync may be writing
            conversation = ExportedConversation(connection, one.session_key, choice)
            pieces = _pieces(connection, conversation, form)
            write_private(output / one.name, pieces, overwrite=overwrite)
        masked.update(conversation.masked)
    if index is not None:
        rows = [(one.name, one.title, one.about) for one in named]
        write_private(output / index, _index(form, rows), overwrite=overwrite)
    say(f"{terminal.many(len(named), 'conversation')} written to {output}.")
    _say_masked(masked)


def _pieces(
    connection: sqlite3.Connection, conversation: ExportedConversation, form: str
) -> Iterator[str]:
    if form == "jsonl":
        from ..ask import export as export_json

        return export_json.lines(conversation)
    if form == "md":
        from ..ask import export as export_json

        return export_json.pieces(connection, conversation)
    from ..web import entries as export_html

    return export_html.pieces(connection, conversation)


def _index(form: str, rows: list[tuple[str, str, str]]) -> Iterator[str]:
    if form == "md":
        from ..ask import export as export_json

        return export_json.index("Conversations", rows)
    from ..web import entries as export_html

    return export_html.index("Conversations", rows)


def _say_masked(masked: Counter[str]) -> None:
    from ..ask.export import counted
    from ..ask.output import say

    if masked:
        say(f"Masked: {counted(masked)}.")
