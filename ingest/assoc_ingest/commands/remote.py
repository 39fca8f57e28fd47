"""assoc-ingest remote"""

from __future__ import annotations

from pathlib import Path

import click

from .options import asks, confirmed, database_option, yes_option
from .remote_allow import allow, disallow

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
    from ..fleet.connect import shown
    from ..fleet.machine import set_up

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
    from ..fleet import server_schema
    from ..fleet.connect import connect
    from ..fleet.machine import destination_of

    with connect(destination_of(database, destination)) as connection:
        applied = server_schema.migrate(connection)
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
    from ..fleet.connect import connect
    from ..fleet.machine import destination_of

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
    from ..fleet.machine import standing
    from ..fleet.turns import state_of
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
    from ..fleet.adopt import adopt as run

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
    from ..fleet.machine import new_origin as run

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
    from ..fleet.machine import withdraw as run

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
    from ..fleet.machine import prune as run

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
    from ..fleet.administration import drop_text_index, make_text_index
    from ..fleet.connect import connect
    from ..fleet.machine import destination_of

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
    from .. import humanize
    from ..ask.output import say
    from ..fleet.machine import destination_of
    from ..fleet.reindex import reindex as run
    from .progress import progress_in_bytes

    with progress_in_bytes("Deriving") as progress:
        done = run(destination_of(database, destination), origin, progress)
    say(f"Made the rows of {humanize.many(done.files, 'file')} of {done.label} anew.")
    if done.kept:
        say(f"{humanize.many(done.kept, 'file')} kept theirs: they do not follow from bytes alone.")
