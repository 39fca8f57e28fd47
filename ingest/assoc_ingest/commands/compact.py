"""assoc-ingest compact"""

from __future__ import annotations

from pathlib import Path

import click

from .options import asks, confirmed, database_option, yes_option


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with sizes in bytes.")
@yes_option
@database_option
def compact(database: Path, as_json: bool, yes: bool) -> int:
    """Shrink the database and erase traces of removed data.

    Rewrites the whole file. Needs free space of about twice the size of the database; half of that
    can be on another disk if SQLITE_TMPDIR names a directory there. Row ids do not change. If
    another program is reading, old pages may have to stay; compact then reports it and exits with
    3.

    \b
    Example:
      assoc-ingest compact
    """
    from ..upkeep.compact import compact as run
    from ..upkeep.compact import unused
    from .removals import write_compacted, write_unused

    if asks(yes=yes or as_json):
        write_unused(unused(database))
        if not confirmed("Rewrite the database now?"):
            return 1
    write_compacted(run(database), as_json=as_json)
    return 0
