"""assoc-ingest serve"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("others", nargs=-1, type=click.UNPROCESSED, metavar="[DATASETTE OPTIONS]...")
@click.option(
    "--watch", "watched", is_flag=True, help="Keep the database up to date while serving."
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port on 127.0.0.1; 0 picks a free one.",
)
@click.option("-o", "--open", "opened", is_flag=True, help="Open the search page in a browser.")
@database_option
def serve(others: tuple[str, ...], database: Path, watched: bool, port: int, opened: bool) -> None:
    """Browse and search the database with Datasette.

    Listens on 127.0.0.1 only and rejects requests from other sites. Other options are passed on to
    Datasette: `datasette serve --help` lists them. Exits with 0 on SIGTERM and with 130 on Ctrl-C.

    \b
    Examples:
      assoc-ingest serve --watch --open
      assoc-ingest serve --port 0 --setting default_page_size 50 other.db
    """
    from ..web.serve import ServeOptions
    from ..web.serve import serve as run

    raise click.exceptions.Exit(run(database, ServeOptions(port, watched, opened, others)))
