"""assoc-ingest sync, watch, rebuild, service: what brings the database up to date."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import terminal
from ..ask.output import say, write
from ..terminal import safe_json
from .options import database_option, jobs_option, progress_in_bytes, source_option

if TYPE_CHECKING:
    from ..sync.plan import Report
    from ..upkeep.rebuild import Rebuilt


# ------------------------------------------------------------------------------------------------
# What a sync did: a summary on standard error, and a JSON object on standard output.


_COLUMNS = (
    "id", "started_at", "finished_at", "files_read", "bytes_read", "rows", "issues", "error",
)  # fmt: skip
_NAMED = 20  # unreadable files that are named one by one


def write_summary(report: Report, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        write([safe_json({name: getattr(report, name) for name in _COLUMNS}) + "\n"])
    if report.files_rebuilt:
        files = terminal.many(report.files_rebuilt, "file")
        say(f"The parser was updated: {files} re-parsed from the archive.")
    if report.clock_behind:
        from ..store.database import of_clock_behind

        say(of_clock_behind(report.clock_behind))
    say(_summary(report, dry_run))
    for root in report.missing_roots:
        say(f"Root is missing; its rows are kept: {root}")
    for path, reason in report.unreadable[:_NAMED]:
        say(f"Could not read {path}: {reason}")
    if len(report.unreadable) > _NAMED:
        say(f"Could not read {len(report.unreadable) - _NAMED:,} more files.")
    if report.quarantined:
        records = terminal.many(report.quarantined, "record")
        say(f"{records} could not be parsed. To list them: assoc-ingest list issues")


def write_news(news: Report | str, *, as_json: bool) -> None:
    """Print what a watch reports, at once: text, or with `as_json` one JSON object per line.

    A sentence becomes `{"event": "notice", "text": ...}`, a report `{"event": "pass", ...}` with
    the columns of `sync_runs` and some more.
    """
    if as_json:
        write([safe_json(_news(news)) + "\n"])
        sys.stdout.flush()
    elif isinstance(news, str):
        say(news)
    else:
        write_summary(news, as_json=False, dry_run=False)


def _news(news: Report | str) -> dict[str, object]:
    if isinstance(news, str):
        return {"event": "notice", "text": news}
    columns = (*_COLUMNS, "files_gone", "quarantined", "missing_roots", "unreadable")
    shown = {name: getattr(news, name) for name in columns}
    return {"event": "pass", **shown, "seconds": round(news.seconds, 3)}


def _summary(report: Report, dry_run: bool) -> str:
    gone = ""
    if report.files_gone:
        gone = f"; {terminal.many(report.files_gone, 'file')} deleted, rows kept"
    if not report.files_read:
        return f"Nothing new in {terminal.many(report.files_seen, 'file')}{gone}."
    read = terminal.many(report.files_read, "file")
    if report.files_seen:
        read = f"{report.files_read:,} of {terminal.many(report.files_seen, 'file')}"
    size = terminal.size(report.bytes_read)
    if dry_run:
        return f"Would read {read} ({size}){gone}."
    blocks = terminal.many(report.rows, "block")
    return f"Read {read} ({size}) in {report.seconds:.1f} s: {blocks} added{gone}."


def write_rebuilt(rebuilt: Rebuilt, *, as_json: bool) -> None:
    if as_json:
        write([safe_json(asdict(rebuilt)) + "\n"])
    if rebuilt.kept_aside is not None:
        kept = rebuilt.kept_aside
        if rebuilt.is_outdated:
            say(
                f"The database of an older version was copied into a new one, and is kept as {kept}"
            )
        else:
            say(f"The database was damaged. The damaged file is kept as {kept}")
    for table, places in rebuilt.rows_lost.items():
        say(f"Rows of table {table} were unreadable in {terminal.many(places, 'place')}.")
    lost = {file.path for file in rebuilt.lost}
    for path in [path for path in rebuilt.files_damaged if path not in lost][:_NAMED]:
        say(f"Archived data is damaged, rows are kept: {path}")
    for path in rebuilt.files_unnamed[:_NAMED]:
        say(f"Path is lost; the next sync looks for the file: {path}")
    files = terminal.many(rebuilt.files, "file")
    kept = ""
    if rebuilt.files_kept:
        files = f"{rebuilt.files:,} of {terminal.many(rebuilt.files + rebuilt.files_kept, 'file')}"
        are = "is" if rebuilt.files_kept == 1 else "are"
        kept = f"; {rebuilt.files_kept:,} {are} not archived, so the rows stay"
    size = terminal.size(rebuilt.bytes_read)
    blocks = terminal.many(rebuilt.rows, "block")
    say(f"Rebuilt {blocks} from {files} ({size}) in {rebuilt.seconds:.1f} s{kept}.")
    if rebuilt.rows_lost or rebuilt.files_damaged:
        say("To re-read files that are still on disk: assoc-ingest sync --full")
    _write_losses(rebuilt)


def _write_losses(rebuilt: Rebuilt) -> None:
    for file in rebuilt.lost[:_NAMED]:
        say(f"Lost: {file.bytes:,} bytes of {file.root}/{file.path}")
    if rebuilt.lost:
        files = terminal.many(len(rebuilt.lost), "file")
        say(
            f"{rebuilt.bytes_lost:,} archived bytes of {files} are lost and no longer on disk. "
            "Rows made from them are kept."
        )
    for table in rebuilt.only_here:
        if table in ("forgotten", "forgotten_secrets"):
            what = "conversations" if table == "forgotten" else "credentials"
            say(
                f"The list of forgotten {what} may be incomplete, so the next sync may read "
                "some of them again. To see what is left: assoc-ingest forget --list"
            )
        else:
            say(f"Rows of table {table} may be lost for good: no file contains them.")
    if not rebuilt.is_whole and rebuilt.kept_aside is not None:
        say("Keep the damaged copy if you want to try to recover more from it.")


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
    """Run `watch` and `push` as user services (systemd, launchd).

    print shows the systemd unit or launchd agent, install writes and starts it, uninstall stops and
    removes it.

    \b
    Examples:
      assoc-ingest service print
      assoc-ingest service install
      assoc-ingest service install --push
    """


@service.command("print")
@click.option("--push", "pushes", is_flag=True, help="The service that pushes, not `watch`.")
@_kind_option
@database_option
def print_unit(kind: str, database: Path, pushes: bool) -> None:
    """Print what `install` would write.

    \b
    Example:
      assoc-ingest service print --kind launchd
    """
    from ..ask.output import write
    from ..sync.service import PUSH, WATCH, unit

    text = unit(kind, database.absolute(), os.environ, PUSH if pushes else WATCH)
    write([text], is_exact=True)


@service.command()
@click.option("--push", "pushes", is_flag=True, help="Also push after every sync, as a service.")
@click.option("--force", is_flag=True, help="Overwrite an existing unit that differs.")
@_kind_option
@database_option
def install(kind: str, database: Path, pushes: bool, force: bool) -> None:
    """Write the unit and start the service.

    With --push, a second service runs `push --watch`, after `remote init` or `remote join`. It
    waits until a project is allowed to leave.

    \b
    Example:
      assoc-ingest service install
    """
    from ..ask.output import say
    from ..sync import service as services

    chosen = (services.WATCH, services.PUSH) if pushes else (services.WATCH,)
    for line in services.install(kind, database.absolute(), os.environ, chosen, force=force):
        say(line)


@service.command()
@_kind_option
def uninstall(kind: str) -> None:
    """Stop the services and remove their units. The database is kept.

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
    metavar="SECONDS",
    help="Rescan everything at this interval, even without change notifications.  [default: 30; "
    "longer with very many files]",
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
    rescan: float | None,
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

    options = SyncOptions(source, full, dry_run, git, jobs=jobs)
    try:
        with progress_in_bytes("Reading") as progress:
            report = run(database, paths, options, progress)
    except KeyboardInterrupt:
        if not dry_run:
            is_kept = database.exists()  # a first sync that was given up leaves none
            end = (
                "What was read is kept. To go on" if is_kept else "Nothing was kept. To begin again"
            )
            say(f"Interrupted. {end}: assoc-ingest sync")
        raise
    write_summary(report, as_json=as_json, dry_run=dry_run)
    if strict and (report.quarantined or report.unreadable):
        raise click.exceptions.Exit(1)
