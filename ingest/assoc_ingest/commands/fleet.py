"""assoc-ingest remote, push, pull."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..ask.output import say, write, write_lines, write_objects
from ..errors import NotFoundError, UsageError
from ..terminal import many, safe, safe_json, size
from .options import (
    asks,
    confirmed,
    database_option,
    progress_in_bytes,
    reading,
    remotely,
    yes_option,
)

if TYPE_CHECKING:
    import sqlite3

    from ..fleet.administration import Comparison
    from ..fleet.projection import Masks
    from ..fleet.push import Preview, Report
    from ..fleet.state import State


# ------------------------------------------------------------------------------------------------
# What `remote status` and `push` print.


def _write_json(value: dict[str, Any]) -> None:
    write([safe_json(value) + "\n"])


def write_standing(state: State, standing: Comparison, *, as_json: bool) -> None:
    """Print a comparison of this machine with the server."""
    from ..fleet.connect import shown

    if as_json:
        known = standing.known
        _write_json(
            {
                "destination": shown(state.destination),
                "label": state.label,
                "uuid": state.uuid,
                "version": known.version if known else None,
                "is_current": standing.is_current,
                "files": standing.there,
                "gone": standing.gone,
                "outside": standing.outside,
                "kept_since": standing.kept_since or None,
                "too_old": standing.too_old,
                "clock_ahead": round(standing.clock),
                "is_indexed": standing.is_indexed,
                "missing_migrations": standing.missing,
                "all_projects": state.all_projects,
                "allowed": state.allowed,
            }
        )
        return
    write(line + "\n" for line in _lines(state, standing))


_MOST_SECONDS = 120
"""The difference of two clocks that need not be told."""


def _lines(state: State, standing: Comparison) -> list[str]:
    from ..fleet.connect import shown

    what = "everything" if state.all_projects else many(len(state.allowed), "project")
    lines = [f"server: {shown(state.destination)}", f"machine: {state.label} ({state.uuid})"]
    lines.append(f"allowed: {what}")
    if standing.known is None:
        lines.append("pushed: nothing yet")
    else:
        current = "up to date" if standing.is_current else "a push is due"
        lines.append(f"pushed: {many(standing.there, 'file')}, {current}")
    if standing.gone:
        lines.append(
            f"kept: {many(standing.gone, 'file')} no longer here (`remote prune` deletes them)"
        )
    if standing.outside:
        lines.append(
            f"not allowed: {many(standing.outside, 'file')} (`remote withdraw` deletes them)"
        )
    if standing.too_old:
        lines.append(
            f"not pushed: {many(standing.too_old, 'file')} older than {standing.kept_since[:10]}, "
            "which the server does not keep"
        )
    if abs(standing.clock) > _MOST_SECONDS:
        side = "ahead of" if standing.clock > 0 else "behind"
        lines.append(
            f"clock: {abs(standing.clock) / 60:,.0f} min {side} that of the server; set the wrong "
            "one right, or times of conversations are wrong"
        )
    if not standing.is_indexed:
        lines.append("search: no text index yet, so a search reads everything (`remote index`)")
    if standing.missing:
        lines.append(f"schema: {standing.missing[0]} is missing, run `remote migrate`")
    return lines


def write_preview(preview: Preview, *, as_json: bool) -> None:
    """Print what a push would look at."""
    if as_json:
        _write_json(preview.as_json())
    else:
        from ..fleet.push import report

        write_lines(report(preview))


def write_report(done: Report, *, as_json: bool) -> None:
    if as_json:
        _write_json(
            {
                "files": done.files,
                "frames": done.frames,
                "rows": done.rows,
                "bytes": done.size,
                "deleted": done.deleted,
                "calls": done.calls,
                "version": done.version,
                "is_full": done.is_full,
                "waiting": done.waiting,
            }
        )
    elif not (done.rows or done.frames or done.deleted):
        say("The server is up to date.")
    else:
        deleted = f", deleted {done.deleted:,}" if done.deleted else ""
        say(
            f"Pushed {many(done.rows, 'row')} and {many(done.frames, 'stretch', 'stretches')} of "
            f"{many(done.files, 'file')} ({size(done.size)}){deleted}."
        )
    if done.waiting and not as_json:
        say(
            f"Not pushed yet: {many(done.waiting, 'file')} that came back. Their keys in the "
            "database have to change: stop `watch` for one push."
        )


# ------------------------------------------------------------------------------------------------
# assoc-ingest pull


@click.command()
@click.option("--origin", help="Only what this machine pushed, by its label.")
@click.option("--project", help="Only this project, given by name or path.")
@click.option("--since", help="Only files that changed since this time: 12h, 7d, 2w or a date.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def pull(
    database: Path, origin: str | None, project: str | None, since: str | None, as_json: bool
) -> int:
    """Fetch the data of other machines from the server.

    Stores the files in the database, where every command and page shows them. A sync does not
    change them, and they are never pushed. Without options, also removes what was deleted on the
    server.

    \b
    Examples:
      assoc-ingest pull --origin laptop
      assoc-ingest pull --project shop --since 30d -d shop.db
    """
    from dataclasses import asdict

    from ..ask.times import since as time_of
    from ..fleet.pull import Wanted
    from ..fleet.pull import pull as run

    wanted = Wanted(origin, project, time_of(since) if since else None)
    with progress_in_bytes("Pulling") as progress:
        done = run(database, remotely(database), wanted, _finish, progress)
    is_incomplete = bool(done.damaged or done.left_out)
    if as_json:
        _write_json(asdict(done))
        return int(is_incomplete)
    say(f"Fetched {many(done.files, 'file')} ({size(done.bytes)}); {done.unchanged:,} unchanged.")
    if done.removed:
        say(f"Removed {many(done.removed, 'file')} deleted on the server.")
    if done.hidden:
        files = many(done.hidden, "file")
        say(f"Kept {files} pulled before that this server does not show.")
    if done.own:
        say(f"Skipped {many(done.own, 'file')} of this machine.")
    if done.forgotten:
        say(f"Skipped {many(done.forgotten, 'file')} that you have forgotten.")
    if done.without_bytes:
        say(f"Skipped {many(done.without_bytes, 'file')} without bytes on the server.")
    if done.damaged:
        files = many(done.damaged, "file")
        say(
            f"Not updated: {files}, damaged or incomplete on the server. Pull again after the next "
            "push of their machine; if that does not help, run there: assoc-ingest push --full"
        )
    for label in done.left_out:
        say(
            f"Stopped reading from {label}: what the server sent of it takes too much memory. To "
            "fetch a part of it, use: --origin, with --project or --since"
        )
    return int(is_incomplete)


def _finish(connection: sqlite3.Connection) -> None:
    """Refresh prices, and which projects are on this disk."""
    from ..sync.plan import look_at_projects
    from ..sync.prices import refresh_prices

    refresh_prices(connection)
    look_at_projects(connection)


# ------------------------------------------------------------------------------------------------
# assoc-ingest push


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be compared, without text.")
@click.option("--full", "is_full", is_flag=True, help="Compare everything, not only what changed.")
@click.option("--unmasked", is_flag=True, help="Do not mask credentials.")
@click.option("--watch", "is_watching", is_flag=True, help="Keep pushing after every sync.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each push.")
@yes_option
@database_option
def push(
    database: Path,
    dry_run: bool,
    is_full: bool,
    unmasked: bool,
    is_watching: bool,
    as_json: bool,
    yes: bool,
) -> int:
    """Upload allowed projects to the server.

    Sends only differences. Each call applies completely or not at all, so a push can be interrupted
    at any time. Text that looks like a credential is masked, but patterns miss things. What was
    forgotten here is first deleted on the server.

    \b
    Examples:
      assoc-ingest push --dry-run
      assoc-ingest push
      assoc-ingest push --watch
    """
    from ..fleet.administration import previewed, push_all
    from ..fleet.projection import Masks
    from ..fleet.state import state_of

    masks = Masks(is_on=not unmasked)
    if dry_run:
        write_preview(previewed(database, masks), as_json=as_json)
        return 0
    if state_of(database).version == 0 and asks(yes=yes or as_json):
        write_preview(previewed(database, masks), as_json=False)
        if not confirmed("Push this?"):
            return 1
    if is_watching:
        return _watch(database, masks, as_json=as_json)
    write_report(push_all(database, is_full=is_full, masks=masks), as_json=as_json)
    return 0


def _watch(database: Path, masks: Masks, *, as_json: bool) -> int:
    from ..fleet.administration import push_all
    from ..fleet.push import Limits, watch
    from ..stopping import stopped_by_signals

    limits = Limits()
    with stopped_by_signals() as stop:
        watch(
            *(database, stop),
            lambda: push_all(database, masks=masks, limits=limits),
            lambda report: write_report(report, as_json=as_json),
            say,
        )
    return stop.exit_code


# ------------------------------------------------------------------------------------------------
# assoc-ingest remote allow and disallow


@click.command()
@click.argument("directories", nargs=-1, metavar="[DIRECTORY]...")
@click.option(
    "--all-projects",
    is_flag=True,
    help="Everything, including data shared by projects: histories, lists, teams, hooks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@database_option
def allow(database: Path, directories: tuple[str, ...], all_projects: bool, as_json: bool) -> int:
    """Allow the conversations of a project to leave this machine.

    Nothing is sent until you allow a project. DIRECTORY is the exact directory of the project, not
    a part of its path or a parent. Data shared by several projects is sent only with
    --all-projects. Without arguments, this lists what is allowed.

    \b
    Examples:
      assoc-ingest remote allow ~/code/garden
      assoc-ingest remote allow --all-projects
      assoc-ingest remote allow
      assoc-ingest push --dry-run
    """
    from ..fleet.projection import known_paths
    from ..fleet.state import changing, state_of

    state = state_of(database)
    if directories or all_projects:
        connection = reading(database)
        paths = [path for given in directories for path in known_paths(connection, given)]
        with changing(database) as state:
            if paths:
                state.allow(paths)
            if all_projects:
                state.allow_all()
    _write(state, as_json=as_json)
    return 0


@click.command()
@click.argument("directory", metavar="[DIRECTORY]", required=False)
@click.option("--all-projects", is_flag=True, help="Undo `remote allow --all-projects`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@database_option
def disallow(database: Path, directory: str | None, all_projects: bool, as_json: bool) -> int:
    """Undo `remote allow`: later pushes send nothing more of a project.

    Data that was pushed stays on the server; `remote withdraw` deletes it.

    \b
    Examples:
      assoc-ingest remote disallow ~/code/garden
      assoc-ingest remote disallow --all-projects
    """
    from ..ask.projects import as_path
    from ..fleet.state import changing

    if (directory is None) != all_projects:
        raise UsageError("Give the directory of a project, or --all-projects.")
    with changing(database) as state:
        if directory is None:
            state.disallow_all()
        elif state.all_projects:
            raise UsageError(
                "Everything may leave this machine. First run: assoc-ingest remote disallow "
                "--all-projects"
            )
        elif not state.disallow(as_path(directory) or directory):
            raise NotFoundError(
                f"{directory} was not allowed. To see what is: assoc-ingest remote allow"
            )
    _write(state, as_json=as_json)
    say("What was pushed stays on the server. To delete it: assoc-ingest remote withdraw PROJECT")
    return 0


def _write(state: State, *, as_json: bool) -> None:

    if as_json:
        write_objects([{"all_projects": state.all_projects, "allowed": state.allowed}])
    elif state.all_projects:
        write_lines(["Everything may leave this machine."])
    else:
        write_lines(map(safe, state.allowed) if state.allowed else ["Nothing is allowed yet."])


# ------------------------------------------------------------------------------------------------
# assoc-ingest remote


_LONGEST = 200
"""Letters of what the help of the group says of a command; lines are broken."""


class _Sections(click.Group):
    """A group whose help lists the commands by who needs them.

    Those of administrators are imported when one of them is used or listed.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(one.name) for some in self._sections().values() for one in some]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if command := self.commands.get(cmd_name):
            return command
        every = (one for some in self._sections().values() for one in some)
        return next((one for one in every if one.name == cmd_name), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, commands in self._sections().items():
            rows = [(str(one.name), one.get_short_help_str(_LONGEST)) for one in commands]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def _sections(self) -> dict[str, tuple[click.Command, ...]]:
        from .administration import SECTIONS

        return {"This machine": tuple(self.commands.values()), **SECTIONS}


@click.group(cls=_Sections, context_settings={"help_option_names": ["-h", "--help"]})
def remote() -> None:
    """Share one record between several machines on a PostgreSQL server.

    Nothing leaves this machine until `remote allow` names a project. Passwords are read from
    ~/.pgpass or from the file named by ASSOC_FLEET_PASSWORD_FILE, never from an argument.

    \b
    Examples:
      assoc-ingest remote init postgresql://me@db.example.org/fleet
      assoc-ingest remote allow ~/code/garden
      assoc-ingest push
    """
    from ..fleet.connect import bounded

    click.get_current_context().with_resource(bounded())


@remote.command()
@click.argument("destination")
@click.option("--label", help="Label of this machine; default: its host name.")
@click.option("--distributed", is_flag=True, help="Distribute the tables over the nodes of Citus.")
@database_option
def init(database: Path, destination: str, label: str | None, distributed: bool) -> None:
    """Set up the server if necessary, and connect this machine to it.

    With --distributed, the server is a coordinator of Citus, and the tables are spread over its
    workers, by machine; needs the owner of the schema.

    \b
    Example:
      assoc-ingest remote init postgresql://me@db.example.org/fleet --label laptop
    """
    from ..fleet.administration import set_up
    from ..fleet.connect import shown

    state, applied = set_up(database, destination, label, distributed=distributed)
    if applied:
        say("The server is set up.")
    say(f"This machine is {state.label} on {shown(destination)}. Nothing was sent.")
    if not state.all_projects and not state.allowed:
        say("Next: assoc-ingest remote allow PROJECT")


@remote.command()
@click.argument("destination")
@click.option("--label", help="Label of this machine; default: its host name.")
@click.option(
    "--allow", "allowed", multiple=True, metavar="DIRECTORY", help="Allow a project, repeatable."
)
@click.option("--all-projects", is_flag=True, help="Allow everything, as `remote allow` does.")
@click.option("--service", "installs", is_flag=True, help="Then run `service install --push`.")
@database_option
def join(
    database: Path,
    destination: str,
    label: str | None,
    allowed: tuple[str, ...],
    all_projects: bool,
    installs: bool,
) -> None:
    """Set up this machine with the line that `remote invite` printed.

    Asks for the password, checks it, and stores it in ~/.pgpass with mode 600, or in the file named
    by PGPASSFILE or ASSOC_FLEET_PASSWORD_FILE. Without a terminal, reads it from standard input.
    Nothing is sent until you allow a project.

    \b
    Example:
      assoc-ingest remote join postgresql://laptop@db.example.org/fleet --label laptop --service
    """
    from ..fleet.administration import set_up
    from ..fleet.connect import shown
    from ..fleet.passwords import new_parameters, save_password
    from ..fleet.projection import known_paths
    from ..fleet.state import changing

    new_parameters(destination)  # raises before the password is asked for
    reader = reading(database)
    paths = [path for given in allowed for path in known_paths(reader, given)]
    say(f"Stored the password in {save_password(destination, _password(shown(destination)))}.")
    state, _ = set_up(database, destination, label)
    if paths or all_projects:
        with changing(database) as state:
            state.allow(paths)
            if all_projects:
                state.allow_all()
    say(f"This machine is {state.label} on {shown(destination)}. Nothing was sent.")
    if not state.all_projects and not state.allowed:
        say("Next: assoc-ingest remote allow PROJECT")
    if installs:
        _install_services(database)
    else:
        say("To push: assoc-ingest push, or at every login: assoc-ingest service install --push")


def _password(destination: str) -> str:
    import sys

    if sys.stdin.isatty():
        asked: str = click.prompt(f"Password for {safe(destination)}", hide_input=True, err=True)
        return asked
    return sys.stdin.readline().rstrip("\r\n")


def _install_services(database: Path) -> None:
    import os

    from ..sync import service

    kind, both = service.kind_here(), (service.WATCH, service.PUSH)
    for line in service.install(kind, database.absolute(), os.environ, both, force=False):
        say(line)


remote.add_command(allow)
remote.add_command(disallow)


@remote.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def status(database: Path, as_json: bool) -> None:
    """Compare this machine with the server.

    \b
    Example:
      assoc-ingest remote status
    """
    from ..fleet.administration import standing
    from ..fleet.state import state_of

    write_standing(state_of(database), standing(database), as_json=as_json)


@remote.command()
@click.argument("machine", required=False)
@yes_option
@database_option
def adopt(database: Path, machine: str | None, yes: bool) -> int:
    """Continue the pushes of a lost database of this machine.

    MACHINE is its label or uuid on the server; default: the label of this machine. Files at the
    same paths are recognised; all other data stays on the server.

    \b
    Example:
      assoc-ingest remote adopt laptop
    """
    from ..fleet.administration import adopt as run

    if asks(yes=yes) and not confirmed("Is the other database gone for good?"):
        return 1
    origin, count = run(database, machine)
    say(f"This machine continues as {origin.label}. Recognised {many(count, 'file')}. Next: push")
    return 0


@remote.command("new-origin")
@click.option("--label", required=True, help="Label of this machine.")
@yes_option
@database_option
def new_origin(database: Path, label: str, yes: bool) -> int:
    """Give a clone of a machine that also pushes its own identity on the server.

    \b
    Example:
      assoc-ingest remote new-origin --label laptop-2
    """
    from ..fleet.administration import new_origin as run

    if asks(yes=yes) and not confirmed("Push everything again, as another machine?"):
        return 1
    state = run(database, label)
    say(f"The server now knows this machine as {state.label} ({state.uuid}).")
    return 0


@remote.command()
@click.argument("project")
@yes_option
@database_option
def withdraw(database: Path, project: str, yes: bool) -> int:
    """Delete what this machine pushed of a project, and stop pushing it.

    PROJECT is the path of its directory. Backups of the server keep it until they expire.

    \b
    Example:
      assoc-ingest remote withdraw ~/code/garden
    """
    from ..fleet.administration import withdraw as run

    if asks(yes=yes) and not confirmed(f"Delete {project} on the server?"):
        return 1
    say(f"Deleted {many(run(database, project), 'file')} on the server.")
    return 0


@remote.command()
@yes_option
@database_option
def prune(database: Path, yes: bool) -> int:
    """Delete data on the server that this machine pushed and no longer has.

    Without this, the server keeps what `prune` removes here.

    \b
    Example:
      assoc-ingest remote prune
    """
    from ..fleet.administration import prune as run

    if asks(yes=yes) and not confirmed("Delete data on the server that is no longer here?"):
        return 1
    say(f"Deleted {many(run(database), 'file')} on the server.")
    return 0
