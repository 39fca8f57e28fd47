"""assoc-ingest rebuild"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option, jobs_option
from .progress import progress_in_bytes


@click.command()
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def rebuild(database: Path, jobs: int | None, as_json: bool) -> None:
    """Rebuild all tables from the archived files.

    Repairs what `verify` finds: wrong rows, wrong indexes and unreadable pages. Rows of files that
    the agent has deleted are rebuilt too. Other programs can read the database meanwhile. After an
    update with better parsers, the next sync does the same automatically.

    A damaged database is kept next to the new one until you remove it. If data is lost for good,
    rebuild lists it and exits with 1.

    \b
    Example:
      assoc-ingest verify || assoc-ingest rebuild
    """
    from ..upkeep.rebuild import rebuild as run
    from .summary import write_rebuilt

    with progress_in_bytes("Rebuilding") as progress:
        rebuilt = run(database, progress, jobs)
    write_rebuilt(rebuilt, as_json=as_json)
    if not rebuilt.is_whole:
        raise click.exceptions.Exit(1)
