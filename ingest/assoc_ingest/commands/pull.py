"""assoc-ingest pull"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import database_option
from .progress import progress_in_bytes
from .remotely import remotely

if TYPE_CHECKING:
    import sqlite3


@click.command()
@click.option("--origin", help="Only what this machine pushed, by its label.")
@click.option("--project", help="Only this project, given by name or path.")
@click.option("--since", help="Only files that changed since then: 12h, 7d, 2w or a date.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def pull(
    database: Path, origin: str | None, project: str | None, since: str | None, as_json: bool
) -> int:
    """Fetch what other machines pushed.

    The files come into the database, where every command and page shows them. A sync leaves them
    alone, and they are never pushed. Without options, what was deleted on the server is removed.

    \b
    Examples:
      assoc-ingest pull --origin laptop
      assoc-ingest pull --project shop --since 30d -d shop.db
    """
    from dataclasses import asdict

    from .. import humanize
    from ..ask.output import say
    from ..ask.since import since as time_of
    from ..fleet.pull import Wanted
    from ..fleet.pull import pull as run

    wanted = Wanted(origin, project, time_of(since) if since else None)
    with progress_in_bytes("Pulling") as progress:
        done = run(database, remotely(database), wanted, _finish, progress)
    if as_json:
        click.echo(json.dumps(asdict(done)))
        return int(done.damaged > 0)
    files, size = humanize.many(done.files, "file"), humanize.size(done.bytes)
    say(f"Fetched {files} ({size}); {done.unchanged:,} were here already.")
    if done.removed:
        say(f"Removed {humanize.many(done.removed, 'file')} deleted on the server.")
    if done.hidden:
        files = humanize.many(done.hidden, "file")
        say(f"{files} pulled before, which this server does not show, left alone.")
    if done.own:
        say(f"{humanize.many(done.own, 'file')} of this machine's own left alone.")
    if done.forgotten:
        say(f"{humanize.many(done.forgotten, 'file')} that you have forgotten left out.")
    if done.without_bytes:
        say(f"{humanize.many(done.without_bytes, 'file')} without bytes on the server left out.")
    if done.damaged:
        files = humanize.many(done.damaged, "file")
        say(
            f"{files} damaged or incomplete on the server left as before. Pull again after the next"
            " push of their machine; if that does not help, run there: assoc-ingest push --full"
        )
    return int(done.damaged > 0)


def _finish(connection: sqlite3.Connection) -> None:
    """Refresh prices, and which projects are on this disk."""
    from ..sync.prices import refresh_prices
    from ..sync.project_dirs import look_at_projects

    refresh_prices(connection)
    look_at_projects(connection)
