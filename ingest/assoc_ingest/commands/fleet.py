"""assoc-ingest remote, push, pull."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

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

    from ..fleet.projection import Masks
    from ..fleet.state import State


# ------------------------------------------------------------------------------------------------
# assoc-ingest pull


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

    from .. import terminal
    from ..ask.filters import since as time_of
    from ..ask.output import say, write
    from ..fleet.pull import Wanted
    from ..fleet.pull import pull as run
    from ..terminal import safe_json

    wanted = Wanted(origin, project, time_of(since) if since else None)
    with progress_in_bytes("Pulling") as progress:
        done = run(database, remotely(database), wanted, _finish, progress)
    if as_json:
        write([safe_json(asdict(done)) + "\n"])
        return int(done.damaged > 0)
    files, size = terminal.many(done.files, "file"), terminal.size(done.bytes)
    say(f"Fetched {files} ({size}); {done.unchanged:,} were here already.")
    if done.removed:
        say(f"Removed {terminal.many(done.removed, 'file')} deleted on the server.")
    if done.hidden:
        files = terminal.many(done.hidden, "file")
        say(f"{files} pulled before, which this server does not show, left alone.")
    if done.own:
        say(f"{terminal.many(done.own, 'file')} of this machine's own left alone.")
    if done.forgotten:
        say(f"{terminal.many(done.forgotten, 'file')} that you have forgotten left out.")
    if done.without_bytes:
        say(f"{terminal.many(done.without_bytes, 'file')} without bytes on the server left out.")
    if done.damaged:
        files = terminal.many(done.damaged, "file")
        say(
            f"{files} damaged or incomplete on the server left as before. Pull again after the next"
            " push of their machine; if that does not help, run there: assoc-ingest push --full"
        )
    return int(done.damaged > 0)


def _finish(connection: sqlite3.Connection) -> None:
    """Refresh prices, and which projects are on this disk."""
    from ..sync.plan import look_at_projects
    from ..sync.prices import refresh_prices

    refresh_prices(connection)
    look_at_projects(connection)


# ------------------------------------------------------------------------------------------------
# assoc-ingest push


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be looked at, without texts.")
@click.option("--full", "is_full", is_flag=True, help="Compare everything, not only what changed.")
@click.option("--unmasked", is_flag=True, help="Do not cover credentials.")
@click.option("--watch", "is_watching", is_flag=True, help="Go on pushing after every sync.")
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
    """Let the server of `remote init` have what may leave this machine.

    Only what differs is sent, and each call applies as a whole or not at all, so a push may be
    interrupted anywhere. What looks like a credential is covered by stars; patterns miss things.
    What was forgotten here is deleted there first.

    \b
    Examples:
      assoc-ingest push --dry-run
      assoc-ingest push
      assoc-ingest push --watch
    """
    from ..fleet.administration import previewed, push_all
    from ..fleet.projection import Masks
    from ..fleet.state import state_of
    from .remote_report import write_preview, write_report

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
    from ..ask.output import say
    from ..fleet.administration import push_all
    from ..fleet.push import Limits
    from ..fleet.watch import watch
    from ..stopping import stopped_by_signals
    from .remote_report import write_report

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
    help="Everything, also what several projects share: histories, lists, teams, hooks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@database_option
def allow(database: Path, directories: tuple[str, ...], all_projects: bool, as_json: bool) -> int:
    """Let the conversations of a project leave this machine.

    Nothing is sent until a project is allowed here. DIRECTORY is the directory of the project,
    exactly: not a part of its path, and not one around it. What several projects share is sent only
    with --all-projects. Without arguments, this lists what is allowed.

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
@click.option("--all-projects", is_flag=True, help="Only projects that were named may leave again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@database_option
def disallow(database: Path, directory: str | None, all_projects: bool, as_json: bool) -> int:
    """Take back what `remote allow` allowed: the next push sends no more of it.

    What was pushed stays on the server: `remote withdraw` deletes it there.

    \b
    Examples:
      assoc-ingest remote disallow ~/code/garden
      assoc-ingest remote disallow --all-projects
    """
    from ..ask.filters import as_path
    from ..ask.output import say
    from ..errors import NotFoundError, UsageError
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
    say("What was pushed stays on the server: `assoc-ingest remote withdraw` deletes it there.")
    return 0


def _write(state: State, *, as_json: bool) -> None:
    from ..ask.output import write_lines, write_objects
    from ..terminal import safe

    if as_json:
        write_objects([{"all_projects": state.all_projects, "allowed": state.allowed}])
    elif state.all_projects:
        write_lines(["Everything may leave this machine."])
    else:
        write_lines(map(safe, state.allowed) if state.allowed else ["Nothing is allowed yet."])


# ------------------------------------------------------------------------------------------------
# assoc-ingest remote


_destination_option = click.option(
    "--to",
    "destination",
    metavar="DESTINATION",
    help="The server, if not the one of this machine: postgresql://user@host/database.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def remote() -> None:
    """Set up a PostgreSQL server on which several machines keep their record together.

    Nothing leaves this machine before `remote allow` names a project. Passwords are read from
    ~/.pgpass or from the file that ASSOC_FLEET_PASSWORD_FILE names, and never from an argument.

    \b
    Examples:
      assoc-ingest remote init postgresql://me@db.example.org/fleet
      assoc-ingest remote allow ~/code/garden
      assoc-ingest push
    """


@remote.command()
@click.argument("destination")
@click.option("--label", help="What to call this machine; default: its host name.")
@database_option
def init(database: Path, destination: str, label: str | None) -> None:
    """Set up the server if nobody has yet, and note it as that of this machine.

    \b
    Example:
      assoc-ingest remote init postgresql://me@db.example.org/fleet --label laptop
    """
    from ..ask.output import say
    from ..fleet.administration import set_up
    from ..fleet.connect import shown

    state, applied = set_up(database, destination, label)
    if applied:
        say(f"Set up the server ({', '.join(applied)}).")
    say(f"This machine is {state.label} on {shown(destination)}. Nothing was sent.")
    if not state.all_projects and not state.allowed:
        say("Next: assoc-ingest remote allow PROJECT")


remote.add_command(allow)
remote.add_command(disallow)


@remote.command()
@_destination_option
@database_option
def migrate(database: Path, destination: str | None) -> None:
    """Bring the schema of the server up to date. Needs the owner of the schema.

    \b
    Example:
      assoc-ingest remote migrate
    """
    from ..ask.output import say
    from ..fleet import server
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect

    with connect(destination_of(database, destination)) as connection:
        applied = server.migrate(connection)
    say(f"Applied {', '.join(applied)}." if applied else "The server is up to date.")


@remote.command("add-device")
@click.argument("login")
@click.option("--reader", "reads", is_flag=True, help="It may also search and pull.")
@click.option("--only-reader", is_flag=True, help="It may search and pull, but push nothing.")
@click.option("--team", help="Only readers of this team see what it pushes.")
@click.option("--no-team", is_flag=True, help="All readers see what it pushed and pushes.")
@_destination_option
@database_option
def add_device(
    database: Path,
    login: str,
    reads: bool,
    only_reader: bool,
    team: str | None,
    no_team: bool,
    destination: str | None,
) -> None:
    """Make a login for a machine, or give one a new password and other rights.

    Prints the line that the machine needs in ~/.pgpass: the password is shown this once. A login
    that exists keeps its team, and loses the rights that are not asked for again. Needs a login
    that may create others.

    \b
    Example:
      assoc-ingest remote add-device laptop --reader
    """
    from ..ask.output import say, write
    from ..errors import UsageError
    from ..fleet import administration
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect

    if team is not None and no_team:
        raise UsageError("Give --team or --no-team, not both.")
    with connect(destination_of(database, destination)) as connection:
        administration.check_name(login)
        password = administration.add_login(
            connection,
            login,
            pushes=not only_reader,
            reads=reads or only_reader,
            team=team,
            no_team=no_team,
        )
        line = administration.password_line(connection, login, password)
    say("Put this line into ~/.pgpass of the machine, and chmod 600 it:")
    write([f"{line}\n"])


@remote.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def status(database: Path, as_json: bool) -> None:
    """Show how this machine and the server stand to each other.

    \b
    Example:
      assoc-ingest remote status
    """
    from ..fleet.administration import standing
    from ..fleet.state import state_of
    from .remote_report import write_standing

    write_standing(state_of(database), standing(database), as_json=as_json)


@remote.command()
@click.argument("machine", required=False)
@yes_option
@database_option
def adopt(database: Path, machine: str | None, yes: bool) -> int:
    """Go on with what another database of this machine pushed, after that one was lost.

    MACHINE is the label or the uuid by which the server knows it; default: that of this machine.
    Files that are where they were are recognised; whatever else the server has stays there.

    \b
    Example:
      assoc-ingest remote adopt laptop
    """
    from ..ask.output import say
    from ..fleet.administration import adopt as run

    if asks(yes=yes) and not confirmed("Is the other database gone for good?"):
        return 1
    origin, count = run(database, machine)
    say(f"This machine goes on as {origin.label}: {count:,} files were recognised. Next: push")
    return 0


@remote.command("new-origin")
@click.option("--label", required=True, help="How people call this machine.")
@yes_option
@database_option
def new_origin(database: Path, label: str, yes: bool) -> int:
    """Let this machine be another one for the server: for a copy of a machine that pushes itself.

    \b
    Example:
      assoc-ingest remote new-origin --label laptop-2
    """
    from ..ask.output import say
    from ..fleet.administration import new_origin as run

    if asks(yes=yes) and not confirmed("Push everything again, as another machine?"):
        return 1
    state = run(database, label)
    say(f"This machine is a new one for the server ({state.label}, {state.uuid}).")
    return 0


@remote.command()
@click.argument("project")
@yes_option
@database_option
def withdraw(database: Path, project: str, yes: bool) -> int:
    """Delete what this machine pushed of a project, and send no more of it.

    PROJECT is the path of its directory. Backups of the server keep it until they expire.

    \b
    Example:
      assoc-ingest remote withdraw ~/code/garden
    """
    from ..ask.output import say
    from ..fleet.administration import withdraw as run

    if asks(yes=yes) and not confirmed(f"Delete {project} on the server?"):
        return 1
    say(f"Deleted {run(database, project):,} files on the server.")
    return 0


@remote.command()
@yes_option
@database_option
def prune(database: Path, yes: bool) -> int:
    """Delete on the server what this machine pushed and its database no longer has.

    Without this the server keeps what `prune` removes here.

    \b
    Example:
      assoc-ingest remote prune
    """
    from ..ask.output import say
    from ..fleet.administration import prune as run

    if asks(yes=yes) and not confirmed("Delete on the server what is not here any more?"):
        return 1
    say(f"Deleted {run(database):,} files on the server.")
    return 0


@remote.command()
@click.option("--drop", is_flag=True, help="Remove it, before a large first push.")
@_destination_option
@database_option
def index(database: Path, destination: str | None, drop: bool) -> None:
    """Make the text index of the server, without which a search reads everything.

    Needs the owner of the schema. Pushes go on meanwhile, and are slower from then on.

    \b
    Example:
      assoc-ingest remote index --to postgresql://fleet_owner@db.example.org/fleet
    """
    from ..ask.output import say
    from ..fleet.administration import destination_of, drop_text_index, make_text_index
    from ..fleet.connect import connect

    with connect(destination_of(database, destination)) as connection:
        (drop_text_index if drop else make_text_index)(connection)
    say("Removed the text index." if drop else "The text index is complete.")


@remote.command()
@click.argument("origin")
@_destination_option
@database_option
def reindex(database: Path, origin: str, destination: str | None) -> None:
    """Make the rows of a machine on the server anew: for one that is gone, after an update.

    ORIGIN is its label or uuid. The rows are derived from the bytes that it pushed, which stay as
    they are; what does not follow from bytes stays, too. Needs the login of that machine with
    `add-device --reader`, one with the role assoc_admin, or the owner of the schema.

    \b
    Example:
      assoc-ingest remote reindex old-laptop
    """
    from .. import terminal
    from ..ask.output import say
    from ..fleet.administration import destination_of
    from ..fleet.administration import reindex as run
    from .options import progress_in_bytes

    with progress_in_bytes("Deriving") as progress:
        done = run(destination_of(database, destination), origin, progress)
    say(f"Made the rows of {terminal.many(done.files, 'file')} of {done.label} anew.")
    if done.kept:
        say(f"{terminal.many(done.kept, 'file')} kept theirs: they do not follow from bytes alone.")
