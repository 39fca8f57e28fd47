"""assoc-ingest watch"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import database_option, source_option
from .progress import progress_in_bytes

if TYPE_CHECKING:
    from ..store.report import Report


@click.command()
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path, readable=False), metavar="[PATH]..."
)
@source_option("Only read roots of this source")
@click.option(
    "--rescan",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Rescan everything at this interval, even without change notifications.",
)
@click.option(
    "--until-eof",
    is_flag=True,
    help="Also stop when standard input is closed, as when the parent process ends.",
)
@click.option("--log-json", is_flag=True, help="Log events as JSON lines on standard output.")
@database_option
def watch(
    paths: tuple[Path, ...],
    database: Path,
    source: str | None,
    rescan: float,
    until_eof: bool,
    log_json: bool,
) -> None:
    """Sync, then keep the database up to date until stopped.

    What an agent writes is searchable moments later. SIGTERM (exit code 0) and Ctrl-C (130) let
    the current batch finish. To start it at login, use `service install`.

    \b
    Examples:
      assoc-ingest watch
      assoc-ingest watch ~/backup/.claude --rescan 5 --log-json
    """
    from ..stopping import stop_at_end_of_input, stopped_by_signals
    from ..sync.watch import WatchOptions
    from ..sync.watch import watch as run
    from .summary import write_news

    options = WatchOptions(source, rescan)
    with stopped_by_signals() as stop, ExitStack() as first_pass:
        if until_eof:
            stop_at_end_of_input(stop)
        progress = first_pass.enter_context(progress_in_bytes("Reading"))

        def tell(news: Report | str) -> None:
            first_pass.close()
            write_news(news, as_json=log_json)

        run(database, paths, options, stop, tell, progress=progress)
    raise click.exceptions.Exit(stop.exit_code)
