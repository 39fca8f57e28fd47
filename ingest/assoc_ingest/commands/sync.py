"""assoc-ingest sync"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import database_option

if TYPE_CHECKING:
    from ..sync import Progress


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--source", help="Only roots of this kind: claude, associate, chorus ...")
@click.option("--full", is_flag=True, help="Compare every byte that was read before.")
@click.option("--dry-run", is_flag=True, help="Only say what would be read.")
@click.option("--strict", is_flag=True, help="Exit with 1 if something could not be read.")
@click.option("--git", is_flag=True, help="Also ask git about the projects on this disk.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object, the row of sync_runs.")
@database_option
def sync(
    paths: tuple[Path, ...],
    database: Path,
    source: str | None,
    full: bool,
    dry_run: bool,
    strict: bool,
    git: bool,
    as_json: bool,
) -> None:
    """Bring the database up to date with what agents left on this disk.

    Without PATH, the homes of all agents on this machine and every PATH given before.

    \b
    Examples:
      assoc-ingest sync
      assoc-ingest sync ~/backup/.claude --strict
    """
    from ..summary import write_summary
    from ..sync import SyncOptions
    from ..sync import sync as run

    options = SyncOptions(source, full, dry_run, git)
    with _progress() as progress:
        report = run(database, paths, options, progress)
    write_summary(report, as_json=as_json, dry_run=dry_run)
    if strict and (report.quarantined or report.unreadable):
        raise click.exceptions.Exit(1)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show a bar in bytes on a terminal, and nothing elsewhere."""
    import sys

    from .. import display
    from ..terminal import is_terminal

    bar = click.progressbar(
        length=1,  # known only when the directories have been walked: with the first call
        label="Reading",
        file=sys.stderr,
        hidden=not is_terminal(sys.stderr),
        item_show_func=lambda item: item,
    )
    with bar:

        def advance(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos, f"{display.size(done)} of {display.size(total)}")

        yield advance
