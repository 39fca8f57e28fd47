"""assoc-ingest secrets: the question, and the file with the credentials that a user knows of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..questions.question import Reader, context, named
from .options import database_option, json_options, progress_in_bytes, reading
from .question import ALL, cursors_of, parameter_options, write_json

if TYPE_CHECKING:
    import sqlite3

    from ..questions.fit import Wanted

_QUESTION = named("secrets")
_HEAD = "# Fingerprints of credentials that are known; written by assoc-ingest secrets\n"


@click.command(help=_QUESTION.help)
@parameter_options(_QUESTION)
@click.option(
    "--write-baseline",
    "new_baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the fingerprints of all credentials found to this file.",
)
@click.option("--rules", "is_rules", is_flag=True, help="Print the rules of the search.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=_QUESTION.sizes["terminal"].items,
    show_default=True,
    help="Maximum number of credentials, with --json of places; 0 for no limit.",
)
@json_options
@database_option
def secrets(
    database: Path,
    new_baseline: Path | None,
    is_rules: bool,
    limit: int,
    wanted: Wanted | None,
    **values: Any,
) -> int:
    from ..ask.output import say, write
    from ..questions.secrets import read_baseline, rules
    from ..questions.view import rendered

    if is_rules:
        write(rules())
        return 0
    given = _QUESTION.arguments(values)
    connection = reading(database)
    cursors = cursors_of(_QUESTION, connection, given)
    with progress_in_bytes("Scanning") as progress:
        cursor = cursors.numbers(wanted.cursor) if wanted is not None else ()
        reader = Reader(connection, limit or ALL, cursor=cursor, progress=progress)
        answer = _QUESTION.ask(reader, **given)
    if new_baseline is not None:
        known = read_baseline(values["baseline"]) if values["baseline"] else frozenset()
        _write_baseline(connection, new_baseline, answer.fingerprints | known)
    if wanted is not None:
        write_json(cursors, reader, answer, wanted)
    elif answer.items:
        write([rendered("secrets", "txt", "answer", context(answer)) + "\n"])
        _say_counts(len(answer.fingerprints), answer.total, new_baseline)
    else:
        say(rendered("secrets", "txt", "empty", context(answer)))
    return 1 if answer.total else 0


def _write_baseline(
    connection: sqlite3.Connection, path: Path, fingerprints: Iterable[str]
) -> None:
    """Write a baseline, over an earlier one only. Raises UsageError if something else is there."""
    from ..files.private import write_private
    from ..questions.secrets import read_baseline
    from .export import checked_file

    is_there = path.is_file()
    if is_there:
        read_baseline(path)
    overwrite = checked_file(connection, path, force=is_there)
    lines = [f"{name}\n" for name in sorted(fingerprints)]
    write_private(path, [_HEAD, *lines], overwrite=overwrite)


def _say_counts(count: int, places: int, written: Path | None) -> None:
    from .. import terminal
    from ..ask.output import say
    from ..terminal import to_copy

    where = terminal.many(places, "place")
    say(f"{terminal.many(count, 'credential')} in {where}.")
    say("Removing a credential here does not revoke it: rotate it.")
    if written is not None:
        known = to_copy("--baseline", str(written))
        say(f"Written to {written}. To report only new ones: {known}")
