"""assoc-ingest rebuild"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option
from .progress import progress_in_bytes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@database_option
def rebuild(database: Path, as_json: bool) -> None:
    """Derive every table again from the archived bytes.

    Mends what `verify` finds: wrong rows, wrong indexes, and pages that cannot be read. Rows of
    files that the agent deleted come back like all others. Readers are not disturbed. A sync does
    the same by itself when a new version understands more of the bytes.

    A database with damaged pages is kept as it was, beside the new one, until you remove it. Exits
    with 1 if something is lost for good, and says what.

    \b
    Example:
      assoc-ingest verify || assoc-ingest rebuild
    """
    from ..upkeep.rebuild import rebuild as run
    from .summary import write_rebuilt

    with progress_in_bytes("Deriving") as progress:
        rebuilt = run(database, progress)
    write_rebuilt(rebuilt, as_json=as_json)
    if not rebuilt.is_whole:
        raise click.exceptions.Exit(1)
