"""assoc-ingest schema"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option

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
    from ..ask import contract
    from ..ask.output import write, write_lines
    from ..terminal import terminal_width

    if as_json:
        write([contract.as_json()])
    else:
        write_lines(contract.lines(terminal_width(_MAX_WIDTH)))
