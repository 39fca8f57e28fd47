"""assoc-ingest prune"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option


@click.command()
@click.option("--gone", is_flag=True, help="What agents deleted. Must be given.")
@click.option("--before", help="Only what is gone for longer: 90d, 12w, or a date.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@database_option
def prune(database: Path, gone: bool, before: str | None, dry_run: bool, as_json: bool) -> None:
    """Remove what agents deleted from their homes, rows and archive.

    A sync keeps all of it; this is the only way in which it goes. It cannot be undone. The file
    gets no smaller: `compact` does that.

    An age counts along the syncs, of which one step is at most half of it. What only a clock that
    was wrong, or one long pause, makes old enough is kept and named; a date removes it.

    \b
    Examples:
      assoc-ingest prune --gone --dry-run
      assoc-ingest prune --gone --before 90d
    """
    from ..errors import UsageError
    from ..upkeep.prune import prune_gone
    from .removals import write_pruned

    if not gone:
        raise UsageError(
            "Say what is to be removed: --gone, for what agents deleted. "
            "To see it first: assoc-ingest prune --gone --dry-run"
        )
    removal = prune_gone(database, before, dry_run=dry_run)
    write_pruned(removal, as_json=as_json, dry_run=dry_run)
