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
@source_option("Only roots of this kind")
@click.option(
    "--rescan",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Look at everything this often, whatever the system tells of changes.",
)
@click.option(
    "--until-eof", is_flag=True, help="Stop, too, when standard input ends: with what started it."
)
@click.option("--log-json", is_flag=True, help="What happens, as JSON lines on standard output.")
@database_option
def watch(
    paths: tuple[Path, ...],
    database: Path,
    source: str | None,
    rescan: float,
    until_eof: bool,
    log_json: bool,
) -> None:
    """Sync, then keep the database up to date until it is stopped.

    What an agent writes can be found a moment later. SIGTERM ends it with 0, Ctrl-C with 130, the
    batch finished. `service install` starts it with your session.

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
