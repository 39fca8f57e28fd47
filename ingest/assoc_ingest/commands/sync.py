"""assoc-ingest sync"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option, jobs_option, source_option
from .progress import progress_in_bytes


@click.command()
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path, readable=False), metavar="[PATH]..."
)
@source_option("Only read roots of this source")
@click.option("--full", is_flag=True, help="Compare whole files, not only their ends.")
@click.option("--dry-run", is_flag=True, help="Only show what would be read.")
@click.option("--strict", is_flag=True, help="Exit with 1 if anything could not be read.")
@click.option("--git", is_flag=True, help="Also query git for projects on this disk.")
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print the row of sync_runs as JSON.")
@database_option
def sync(
    paths: tuple[Path, ...],
    database: Path,
    source: str | None,
    full: bool,
    dry_run: bool,
    strict: bool,
    git: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Read new and changed agent files into the database.

    Without PATH, this reads the home directories of all agents found on this machine and every
    PATH given before.

    \b
    Examples:
      assoc-ingest sync
      assoc-ingest sync ~/backup/.claude --strict
    """
    from ..sync.run import SyncOptions
    from ..sync.run import sync as run
    from .summary import write_summary

    options = SyncOptions(source, full, dry_run, git, jobs=jobs)
    with progress_in_bytes("Reading") as progress:
        report = run(database, paths, options, progress)
    write_summary(report, as_json=as_json, dry_run=dry_run)
    if strict and (report.quarantined or report.unreadable):
        raise click.exceptions.Exit(1)
