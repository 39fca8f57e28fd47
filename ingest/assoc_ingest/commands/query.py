"""assoc-ingest query"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .completion import reports
from .options import database_option, format_options, reading, rows_option
from .remotely import remote_option, remotely

if TYPE_CHECKING:
    from ..ask.output import Format


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
    from ..ask.queries import write_query
    from ..ask.query_names import write_query_names

    if name is None:
        write_query_names(form)
    else:
        connection = remotely(database, name) if remote else reading(database)
        write_query(connection, name, dict(parameters), form, limit)
