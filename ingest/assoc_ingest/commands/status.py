"""assoc-ingest status"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option, reading


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def status(database: Path, as_json: bool) -> None:
    """Show what is indexed, how current it is, and any problems.

    \b
    Example:
      assoc-ingest status
    """
    from ..upkeep.status import look, write_status

    connection = reading(database)
    write_status(connection, look(connection, database), as_json=as_json)
