"""assoc-ingest sync, watch, rebuild, service: what brings the database up to date."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import database_option, jobs_option, progress_in_bytes, source_option

if TYPE_CHECKING:
    from ..store.runs import Report


# ------------------------------------------------------------------------------------------------
# assoc-ingest service


_Command = Callable[..., Any]


def _kind_option(command: _Command) -> _Command:
    return click.option(
        "--kind",
        type=click.Choice(["systemd", "launchd"]),
        callback=_chosen,
        help="Service manager; default: the one of this system.",
    )(command)


def _chosen(context: click.Context, _: click.Parameter, value: str | None) -> str:
    from ..sync.service import kind_here

    return value or kind_here()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def service() -> None:
    """Install `watch` as a user service (systemd, launchd).

    print shows the systemd unit or launchd agent, install writes and starts it, uninstall stops and
    removes it.

    \b
    Examples:
      assoc-ingest service print
      assoc-ingest service install
    """


@service.command("print")
@_kind_option
@database_option
def print_unit(kind: str, database: Path) -> None:
    """Print what `install` would write.

    \b
    Example:
      assoc-ingest service print --kind launchd
    """
    from ..ask.output import write
    from ..sync.service import unit

    write([unit(kind, database.absolute(), os.environ)], is_exact=True)


@service.command()
@click.option("--force", is_flag=True, help="Overwrite an existing unit that differs.")
@_kind_option
@database_option
def install(kind: str, database: Path, force: bool) -> None:
    """Write the unit and start the service.

    \b
    Example:
      assoc-ingest service install
    """
    from ..ask.output import say
    from ..sync import service as services

    for line in services.install(kind, database.absolute(), os.environ, force=force):
        say(line)


@service.command()
@_kind_option
def uninstall(kind: str) -> None:
    """Stop the service and remove the unit. The database is kept.

    \b
    Example:
      assoc-ingest service uninstall
    """
    from ..ask.output import say
    from ..sync import service as services

    for line in services.uninstall(kind, os.environ):
        say(line)


# ------------------------------------------------------------------------------------------------
# assoc-ingest rebuild


@click.command()
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def rebuild(database: Path, jobs: int | None, as_json: bool) -> None:
    """Rebuild all tables from the archived files.

    Repairs what `verify` finds: wrong rows, wrong indexes and unreadable pages. Rows of files that
    the agent has deleted are rebuilt too. Other programs can read the database meanwhile. After an
    update with better parsers, the next sync does the same automatically.

    A damaged database is kept next to the new one until you remove it. If data is lost for good,
    rebuild lists it and exits with 1.

    \b
    Example:
      assoc-ingest verify || assoc-ingest rebuild
    """
    from ..upkeep.rebuild import rebuild as run
    from .summary import write_rebuilt

    with progress_in_bytes("Rebuilding") as progress:
        rebuilt = run(database, progress, jobs)
    write_rebuilt(rebuilt, as_json=as_json)
    if not rebuilt.is_whole:
        raise click.exceptions.Exit(1)


# ------------------------------------------------------------------------------------------------
# assoc-ingest watch


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


# ------------------------------------------------------------------------------------------------
# assoc-ingest sync


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
