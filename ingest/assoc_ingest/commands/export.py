"""assoc-ingest export"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import NotFoundError
from .completion import sessions
from .options import database_option, project_option, reading

if TYPE_CHECKING:
    import sqlite3

    from ..ask.export import Choice, ExportedConversation

_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".jsonl": "jsonl"}
_INDEXES = ("html", "md")


@click.command()
@click.argument("session", required=False, shell_complete=sessions)
@project_option("Export all conversations of this project")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "jsonl"]),
    help="Format; default: by the name of the file, else html.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="File to write, or with --project the directory; - is standard output.",
)
@click.option("--no-tools", is_flag=True, help="Leave out tool calls, results and hooks.")
@click.option("--no-thinking", is_flag=True, help="Leave out what models thought.")
@click.option("--no-redact", is_flag=True, help="Do not mask credentials.")
@click.option("--force", is_flag=True, help="Overwrite files that are already there.")
@database_option
def export(
    session: str | None,
    database: Path,
    project: str | None,
    form: str | None,
    output: Path | None,
    no_tools: bool,
    no_thinking: bool,
    no_redact: bool,
    force: bool,
) -> None:
    """Write a conversation to a file, to keep it or to send it.

    HTML is one file that needs nothing else; Markdown is for pull requests; jsonl has the records
    of the database. SESSION is a prefix of the session's key. Tokens, keys and passwords are
    masked where they are recognised: read a file before you publish it.

    \b
    Examples:
      assoc-ingest export 0b7c2f4e -o fix.html
      assoc-ingest export 0b7c2f4e --format md --no-tools
      assoc-ingest export --project shop -o shop-conversations
    """
    from ..ask.export import Choice

    if (session is None) == (project is None):
        raise click.UsageError("Give a session, or a project: --project NAME")
    if output is not None and str(output) == "-":
        output = None
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
    elif project is not None:
        _export_project(connection, project, form, output, choice, force=force)


def _export_session(
    connection: sqlite3.Connection,
    session: str,
    form: str,
    output: Path | None,
    choice: Choice,
    *,
    force: bool,
) -> None:
    from ..ask.export import ExportedConversation
    from ..ask.output import write
    from ..store.transaction import snapshot
    from ..upkeep.private_file import write_private
    from .export_target import checked_file

    with snapshot(connection):  # a sync may be writing
        conversation = ExportedConversation(connection, session, choice)
        pieces = _pieces(connection, conversation, form)
        if output is None:
            write(pieces)
        else:
            overwrite = checked_file(connection, output, force=force)
            write_private(output, pieces, overwrite=overwrite)
    _say_masked(conversation.masked)


def _export_project(
    connection: sqlite3.Connection,
    project: str,
    form: str,
    output: Path | None,
    choice: Choice,
    *,
    force: bool,
) -> None:
    from .. import humanize
    from ..ask.export import ExportedConversation
    from ..ask.export_names import conversations_of
    from ..ask.output import say
    from ..store.transaction import snapshot
    from ..upkeep.private_file import write_private
    from .export_target import checked_directory

    if output is None:
        raise click.UsageError("A project becomes several files. Give a directory: -o DIR")
    named = conversations_of(connection, project, form, redacts=choice.redacts)
    if not named:
        raise NotFoundError(f"The project {project!r} has no conversations.")
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
    say(f"{humanize.many(len(named), 'conversation')} written to {output}.")
    _say_masked(masked)


def _pieces(
    connection: sqlite3.Connection, conversation: ExportedConversation, form: str
) -> Iterator[str]:
    """Return the text of a conversation in a format, piece by piece."""
    if form == "jsonl":
        from ..ask import export_json

        return export_json.lines(conversation)
    if form == "md":
        from ..ask import export_markdown

        return export_markdown.pieces(connection, conversation)
    from ..web import export as export_html

    return export_html.pieces(connection, conversation)


def _index(form: str, rows: list[tuple[str, str, str]]) -> Iterator[str]:
    if form == "md":
        from ..ask import export_markdown

        return export_markdown.index("Conversations", rows)
    from ..web import export as export_html

    return export_html.index("Conversations", rows)


def _say_masked(masked: Counter[str]) -> None:
    from ..ask.export_facts import counted
    from ..ask.output import say

    if masked:
        say(f"Masked: {counted(masked)}.")
