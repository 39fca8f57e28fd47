"""assoc-ingest prune"""

from __future__ import annotations

from pathlib import Path

import click

from .options import asks, confirmed, database_option, yes_option


@click.command()
@click.option("--gone", is_flag=True, help="Remove data of files the agent has deleted (required).")
@click.option("--before", help="Only data gone for longer than this: 90d, 12w or a date.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@yes_option
@database_option
def prune(
    database: Path, gone: bool, before: str | None, dry_run: bool, as_json: bool, yes: bool
) -> int:
    """Remove data of files that agents have deleted.

    A sync keeps this data; only prune removes it, from tables and archive. This cannot be undone.
    The database file does not shrink until you run `compact`.

    An age is measured along the recorded syncs, where the time between two syncs counts for at most
    half of it. Data that is old enough only because of a wrong clock or one long pause is kept and
    listed; give a date to remove it.

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
            "Add --gone to remove data of deleted files. "
            "To preview: assoc-ingest prune --gone --dry-run"
        )
    if asks(yes=yes or as_json or dry_run):
        removal = prune_gone(database, before, dry_run=True)
        write_pruned(removal, as_json=False, dry_run=True)
        if removal.is_nothing:
            return 0
        if not confirmed("Remove all of this?"):
            return 1
    removal = prune_gone(database, before, dry_run=dry_run)
    write_pruned(removal, as_json=as_json, dry_run=dry_run)
    return 0
