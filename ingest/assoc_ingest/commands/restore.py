"""assoc-ingest restore"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .completion import sessions
from .options import database_option, reading
from .progress import progress_in_bytes

if TYPE_CHECKING:
    from ..upkeep.restore import Restored


@click.command()
@click.argument("name", required=False, metavar="[SESSION|FILE]", shell_complete=sessions)
@click.option("--all", "everything", is_flag=True, help="Restore every file of every root.")
@click.option(
    "--to",
    "directory",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Target directory; created if missing.",
)
@click.option(
    "--generation",
    type=int,
    help="Which file to restore if several have had this path, counted from 0.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def restore(
    name: str | None,
    database: Path,
    everything: bool,
    directory: Path,
    generation: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write the original files back, byte for byte.

    SESSION is a prefix of a session's key and restores its transcript, the files of its subagents,
    its tool results, tasks, todos, plan, pasted texts and team. FILE is a path as printed by `list
    files`, or a file name with or without extension. Files keep their path relative to the root; if
    two roots contain the same path, each root gets its own directory. Existing files are never
    overwritten.

    \b
    Examples:
      assoc-ingest restore 0b7c2f4e --to rescued
      assoc-ingest restore --all --to rescued --dry-run
    """
    from ..upkeep.restore import restore as run
    from ..upkeep.restore_selection import select, select_all
    from .restore_report import write_report

    if (name is None) != everything:
        raise click.UsageError("Give a session or a file, or use --all.")
    connection = reading(database)
    selected = (
        select_all(connection, generation) if name is None else select(connection, name, generation)
    )
    total = sum(file.known.checkpoint.offset for file in selected)
    done: list[Restored] = []
    written = 0
    with progress_in_bytes("Writing") as progress:
        for file in run(connection, selected, directory, dry_run=dry_run):
            done.append(file)
            written += file.bytes
            progress(written, total)
    if not write_report(done, directory, as_json=as_json, dry_run=dry_run):
        raise click.exceptions.Exit(1)
