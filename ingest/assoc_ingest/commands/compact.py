"""assoc-ingest compact"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object, in bytes.")
@database_option
def compact(database: Path, as_json: bool) -> None:
    """Write the database anew: smaller, and without traces of what was removed.

    Needs about twice the size of the database on its disk, half of it elsewhere if SQLITE_TMPDIR
    names a directory. Ids of rows stay. While another program reads, old pages may have to stay:
    then it says so, and exits with 3.

    \b
    Example:
      assoc-ingest compact
    """
    from ..upkeep.compact import compact as run
    from .removals import write_compacted

    write_compacted(run(database), as_json=as_json)
