"""The commands that are questions, such as `assoc-ingest search` and `blame`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

import click

from ..questions.question import (
    Parameter,
    ProjectField,
    Question,
    Reader,
    as_data,
    beside,
    context,
    has_more,
    named,
)
from . import options
from .options import (
    QueryCommand,
    WordsCommand,
    database_option,
    filter_option,
    format_options,
    json_options,
    pager_option,
    reading,
    remotely,
    rows_option,
)

if TYPE_CHECKING:
    import sqlite3

    from ..ask.output import Format
    from ..questions.fit import Cursors, Wanted

_PROJECT = ", given by name, path or id; . is the current directory."
_MOST = 1_000_000  # letters of standard input
ALL = 10**9
_MAX_WIDTH = 120  # columns of a text to read


def command(name: str) -> click.Command:
    """Return the command that asks a question."""
    question = named(name)
    ask = parameter_options(question)(_bounded(question, partial(_run, question)))
    has_query = any(one.field.is_query for one in question.parameters())
    kind = WordsCommand if has_query else QueryCommand
    return click.command(name, cls=kind, help=question.help)(ask)


def parameter_options(question: Question) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the arguments and options that are the parameters of a question."""

    def added(ask: Callable[..., int]) -> Callable[..., int]:
        for parameter in reversed([*question.parameters()]):
            if not parameter.field.is_for_agents:
                ask = _option(parameter)(ask)
        return ask

    return added


def _bounded(question: Question, ask: Callable[..., int]) -> Callable[..., int]:
    """Add the options that every question of this kind has."""
    ask = pager_option(database_option(ask))
    if not question.items:
        json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
        return json_option(ask)
    if question.is_table:
        rows = rows_option(*(question.sizes[name].items for name in ("terminal", "json")))
        return format_options(rows(ask))
    bounds = json_options(ask)
    if question.parts:
        bounds = click.option(
            f"--all-{question.parts}",
            "is_flat",
            is_flag=True,
            help=f"List {question.parts} instead of {question.items}.",
        )(bounds)
    return _limit(question)(bounds)


def _limit(question: Question) -> Callable[[Callable[..., int]], Callable[..., int]]:
    size, many = question.sizes["terminal"].items, question.sizes["json"].items
    text = f"Maximum number of {question.items}"
    if not size:
        return click.option(
            "-n",
            "--limit",
            type=click.IntRange(min=0),
            metavar="N",
            help=f"With --json, at most this many {question.items}; 0 for all.  [default: {many}]",
        )
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        default=None if question.parts else size,
        show_default=not question.parts,
        help=f"{text} ({size}), or of {question.parts} ({many})." if question.parts else f"{text}.",
    )


def _option(parameter: Parameter) -> Callable[[Callable[..., int]], Callable[..., int]]:
    name, field = parameter.name, parameter.field
    complete = getattr(options, field.completes) if field.completes else None
    if field.is_argument or parameter.is_required:
        return click.argument(
            name,
            nargs=1 if complete else -1,
            required=parameter.is_required and not field.is_text,
            metavar=field.name or None,
            shell_complete=complete,
        )
    if get_origin(parameter.type) is dict:
        return click.option(
            f"-{name[0]}",
            f"--{name.removesuffix('s')}",
            name,
            type=(str, str),
            multiple=True,
            metavar=field.name,
            help=field.about,
        )
    if parameter.filters:
        return filter_option(name)
    if get_origin(parameter.type) is list:
        return click.option(
            f"--{name}", multiple=True, metavar=field.name or None, help=field.about
        )
    is_project = isinstance(field, ProjectField)
    return click.option(
        f"--{name.replace('_', '-')}",
        type=click.IntRange(min=field.least) if parameter.type is int
        else click.Path(path_type=Path, dir_okay=False) if parameter.type is Path
        else click.Choice(parameter.choices) if parameter.choices
        else parameter.type,
        is_flag=parameter.type is bool,
        default=parameter.default,
        show_default=parameter.default is not None,
        metavar=field.name or None,
        help=field.about + _PROJECT if is_project else field.about,
        shell_complete=options.projects if is_project else complete,
    )  # fmt: skip


def _run(
    question: Question,
    database: Path,
    limit: int | None = None,
    wanted: Wanted | None = None,
    form: Format | None = None,
    as_json: bool = False,
    is_flat: bool = False,
    **values: Any,
) -> int:
    values = {
        one.name: _value(question, one, values[one.name])
        for one in question.parameters()
        if one.name in values
    }
    given = question.arguments(values)
    connection: Any = None
    if not question.is_static(**given):
        connection = remotely(database) if values.get("remote") else reading(database)
    if form is not None:
        return _write_table(question, connection, given, limit, form, wanted)
    is_flat = is_flat or (wanted is not None and bool(question.parts))
    size = question.sizes["json" if wanted is not None or is_flat else "terminal"]
    most = (size.items if limit is None else limit) or ALL
    each = 0 if is_flat else size.each
    reader = Reader(connection, most, each)
    if wanted is not None:
        return _write_list(question, reader, given, wanted)
    if limit is not None and not size.items:
        raise click.UsageError("--limit belongs to --json. Add it, or leave out --limit.")
    answer = question.ask(reader, **given)
    if as_json:
        from ..ask.output import write
        from ..terminal import safe_json

        write([safe_json(as_data(answer)) + "\n"])
        return 0
    return _show(question, connection, answer)


def _value(question: Question, parameter: Parameter, value: Any) -> Any:
    """Return what is given for a parameter, a text without what no database can hold."""
    from ..fields import bindable

    if isinstance(value, tuple) and (parameter.is_required or parameter.field.is_argument):
        text = _joined(question, parameter, value)
        value = text if text or parameter.is_required else parameter.default
    elif get_origin(parameter.type) is dict:
        return {name: bindable(text) for name, text in value}
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
    if len(words) > 1 and not (field.is_text or field.is_query or field.joins(text)):
        quoted = to_copy("assoc-ingest", question.name, name=text)
        raise UsageError(
            f"{question.name} takes one {field.name or what.upper()}. "
            f"A name with spaces needs quotes: {quoted}"
        )
    return text


def _write_list(question: Question, reader: Reader, given: dict[str, Any], wanted: Wanted) -> int:
    cursors = cursors_of(question, reader.db, given)
    reader = replace(reader, cursor=cursors.numbers(wanted.cursor), is_program=True)
    answer = question.ask(reader, **given)
    write_json(cursors, reader, answer, wanted)
    return 0 if answer.items or answer.total or question.is_table else 1


def cursors_of(question: Question, connection: Any, given: dict[str, Any]) -> Cursors:
    """Return what makes and reads the cursors of a question with these arguments."""
    from ..questions.fit import Cursors

    is_static = connection is None  # what is answered comes with the program
    database = None if is_static else connection.execute("pragma database_list").fetchone()[2]
    return Cursors(database, question.name, *given.values())


def write_json(cursors: Cursors, reader: Reader, answer: Any, wanted: Wanted) -> None:
    """Print an answer that is a list, as JSON."""
    from ..ask.output import write
    from ..questions.fit import Answer, freshness, pieces

    head: dict[str, Any] = beside(answer)
    relaxed, start = head.pop("relaxed", None), reader.start
    listed = Answer(
        items=map(as_data, answer.items),
        cursor=lambda number, _: cursors.made(start + number),
        is_continued=False,
        head=head,
        behind=lambda count: cursors.made(start + count) if has_more(answer, start) else None,
    )
    fresh = None if reader.db is None else freshness(reader.db)
    write(pieces(listed, wanted, total=answer.total, relaxed=relaxed, fresh=fresh))


def _write_table(
    question: Question,
    connection: sqlite3.Connection,
    given: dict[str, Any],
    limit: int | None,
    form: Format,
    wanted: Wanted | None,
) -> int:
    import sys

    from ..ask.output import say, write_lines, write_rows, write_table
    from ..terminal import Paint

    has_limit = limit is not None or wanted is not None
    if limit is None:
        limit = question.sizes["terminal" if wanted is None else "json"].items
    reader = Reader(connection, limit or ALL, has_limit=has_limit)
    if wanted is not None:
        return _write_list(question, reader, given, wanted)
    answer = question.ask(reader, **given)
    is_exact = form.name in ("nl", "csv")
    table = answer.table(limit, is_exact=is_exact)
    if table.lines and form.name == "table":
        write_lines(table.lines(Paint.for_stream(sys.stdout)))
    elif is_exact:
        write_rows(connection, answer.columns, table.rows, form)
    elif table.rows:
        write_table(
            connection, answer.columns, table.rows,
            whole=form.name == "whole", has_total=table.has_total,
        )  # fmt: skip
    if table.lines is None or form.name == "table":
        for note in table.notes:
            say(note)
    return 0


def _show(question: Question, connection: sqlite3.Connection, answer: Any) -> int:
    import sys

    from ..ask.output import say, write_lines
    from ..errors import NotFoundError
    from ..terminal import Paint, terminal_width

    if not hasattr(answer, "lines"):
        return _show_by_template(question, connection, answer)
    if not question.items or not hasattr(answer, "empty") or answer.items:
        lines = answer.lines(terminal_width(_MAX_WIDTH), Paint.for_stream(sys.stdout))
        write_lines(lines, has_mark=getattr(answer, "has_mark", False))
        return 0
    *reasons, last = answer.empty
    for reason in reasons:
        say(reason)
    raise NotFoundError(last)


def _show_by_template(question: Question, connection: sqlite3.Connection, answer: Any) -> int:
    import sys

    from .. import sql
    from ..ask.output import table_lines, write_lines
    from ..errors import NotFoundError
    from ..questions.view import Shown, rendered
    from ..terminal import Paint, terminal_width

    known = context(answer)
    if question.items and not answer.items:
        known["fresh"] = sql.ask(connection, "pages/fresh").fetchone()
        known["coverage"] = sql.ask(connection, "pages/coverage").fetchone()
        raise NotFoundError(" ".join(rendered(question.name, "txt", "empty", known).split()))

    def table(rows: list[dict[str, object]]) -> Shown:
        cells = [tuple(row.values()) for row in rows]
        return Shown("\n".join(table_lines(connection, list(rows[0]), cells, whole=False)))

    known |= {"width": terminal_width(), "paint": Paint.for_stream(sys.stdout), "table": table}
    write_lines(rendered(question.name, "txt", "answer", known).split("\n"))
    return 0
