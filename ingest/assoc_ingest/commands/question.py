"""The commands that are questions: `assoc-ingest blame`, `fix`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..questions.question import (
    Answer,
    Parameter,
    ProjectField,
    Question,
    Reader,
    beside,
    context,
    named,
)
from .options import QueryCommand, database_option, json_options, projects, reading

if TYPE_CHECKING:
    import sqlite3

    from ..ask.answer import Wanted

_PROJECT = ", given by name, path or id; . is the current directory."
_MOST = 1_000_000  # letters of standard input


def command(name: str) -> click.Command:
    """Return the command that asks a question."""
    question = named(name)
    size = question.sizes["terminal"]

    @click.command(name, cls=QueryCommand, help=question.help)
    @click.option(
        "-n",
        "--limit",
        type=click.IntRange(min=1),
        default=size.items,
        show_default=True,
        help=f"Maximum number of {question.items}.",
    )
    @json_options
    @database_option
    def ask(database: Path, limit: int, wanted: Wanted | None, **given: Any) -> int:
        given = {one.name: _value(question, one, given[one.name]) for one in question.parameters()}
        connection = reading(database)
        if wanted is not None:
            return _write_json(question, connection, given, limit, wanted)
        found = question.ask(Reader(connection, limit, size.each), **given)
        return _show(question, connection, found)

    ask.params[:0] = [_parameter(parameter) for parameter in question.parameters()]
    return ask


def _parameter(parameter: Parameter) -> click.Parameter:
    name, field = parameter.name, parameter.field
    if parameter.is_required:
        return click.Argument(
            [name], nargs=-1, required=not field.is_text, metavar=field.name or None
        )
    return click.Option(
        [f"--{name.replace('_', '-')}"],
        type=click.IntRange(min=1) if parameter.type is int else parameter.type,
        help=field.about + _PROJECT if isinstance(field, ProjectField) else field.about,
        shell_complete=projects if isinstance(field, ProjectField) else None,
    )


def _value(question: Question, parameter: Parameter, value: Any) -> Any:
    """Return what is given for a parameter, a text without what no database can hold."""
    from ..ask.query import bindable

    if isinstance(value, tuple):
        value = _joined(question, parameter, value)
    return bindable(value) if isinstance(value, str) else value


def _joined(question: Question, parameter: Parameter, words: tuple[str, ...]) -> str:
    """Return the words of an argument as one text; where it may be long, standard input."""
    import sys

    from ..errors import UsageError
    from ..terminal import is_terminal, to_copy

    field, what, text = parameter.field, parameter.name, " ".join(words)
    if field.is_text and not text:
        if is_terminal(sys.stdin):
            example = f'assoc-ingest {question.name} "{what.upper()} TEXT"'
            raise UsageError(f"Give the text of the {what}: {example}")
        return sys.stdin.read(_MOST)
    if len(words) > 1 and not (field.is_text or field.joins(text)):
        quoted = to_copy("assoc-ingest", question.name, name=text)
        raise UsageError(
            f"{question.name} takes one {field.name or what.upper()}. "
            f"A name with spaces needs quotes: {quoted}"
        )
    return text


def _write_json(
    question: Question,
    connection: sqlite3.Connection,
    given: dict[str, Any],
    limit: int,
    wanted: Wanted,
) -> int:
    from ..ask import answer as json_answer
    from ..ask.output import write

    asked = json_answer.Answer(connection, [question.name, *given.values()], wanted)
    each = question.sizes["json"].each
    found = question.ask(Reader(connection, limit + 1, each, asked.start), **given)
    items = map(asdict, found.items)
    write(asked.pieces(items, total=found.total, limit=limit, before=beside(found)))
    return 0 if found.total else 1


def _show(question: Question, connection: sqlite3.Connection, found: Answer) -> int:
    import sys

    from .. import sql
    from ..ask.output import write_lines
    from ..errors import NotFoundError
    from ..questions.view import rendered
    from ..terminal import Paint, terminal_width

    known = context(found)
    if not found.items:
        known["fresh"] = sql.ask(connection, "pages/fresh").fetchone()
        known["coverage"] = sql.ask(connection, "pages/coverage").fetchone()
        raise NotFoundError(" ".join(rendered(question.name, "txt", "empty", known).split()))
    known |= {"width": terminal_width(), "paint": Paint.for_stream(sys.stdout)}
    write_lines(rendered(question.name, "txt", "answer", known).split("\n"))
    return 0
