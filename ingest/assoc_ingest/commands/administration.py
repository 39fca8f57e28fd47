"""assoc-ingest remote, what an administrator of the server does: machines, logins, schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..ask.output import say, write, write_lines
from ..errors import NotFoundError, UsageError
from ..terminal import many, safe, safe_json, size, table, table_width, to_copy
from .options import asks, confirmed, database_option, progress_in_bytes, yes_option

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from ..fleet.devices import Device


_destination_option = click.option(
    "--to",
    "destination",
    metavar="DESTINATION",
    help="The server, if not the one of this machine: postgresql://user@host/database.",
)


# ------------------------------------------------------------------------------------------------
# Machines and logins.


@click.command("devices")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_destination_option
@database_option
def list_devices(database: Path, destination: str | None, as_json: bool) -> None:
    """List the machines that push to the server, and their logins.

    An owner or administrator sees all, another login its own and those that it may read. "Last
    push" is how long ago a push last changed something. "Lag" is the time since the last sync that
    the machine has told of, and includes any difference between its clock and that of the server. A
    machine without news sends nothing, so both grow although nothing is missing. "Errors" are lines
    and files that could not be read. "Bytes" is the size of the files on the machine. "Quota" is
    how much is used of what the machine, or its login, may store.

    \b
    Examples:
      assoc-ingest remote devices
      assoc-ingest remote devices --json --to postgresql://fleet_owner@db.example.org/fleet
    """
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect
    from ..fleet.devices import devices

    with connect(destination_of(database, destination)) as connection:
        found = devices(connection)
    if as_json:
        write([safe_json({"devices": [_device_json(device) for device in found]}) + "\n"])
    elif found:
        headers = (
            "Label",
            "Login",
            "Team",
            "Last push",
            "Lag",
            "Errors",
            "Files",
            "Bytes",
            "Quota",
        )
        shown = len(headers) - all(device.quota_used is None for device in found)
        rows = [_device_row(device)[:shown] for device in found]
        write_lines(table(headers[:shown], rows, table_width()))
    else:
        say("The server shows this login no machine.")


def _device_json(device: Device) -> dict[str, object]:
    def shown(at: datetime | None) -> str | None:
        return at.astimezone(UTC).isoformat() if at else None

    from datetime import UTC

    times = {"pushed_at": shown(device.pushed_at), "synced_at": shown(device.synced_at)}
    return {**device._asdict(), **times}


def _device_row(device: Device) -> tuple[object, ...]:
    login = device.login or "(being removed)"
    return (
        device.label or "(never pushed)",
        login if device.can_login or not device.login else f"{login} (cannot log in)",
        device.team,
        _ago(device.since_push),
        _ago(device.lag),
        device.errors,
        device.files,
        size(device.bytes),
        "" if device.quota_used is None else f"{100 * device.quota_used:.0f} %",
    )


def _ago(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < -1:
        return f"{_ago(-seconds)} ahead"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


@click.command("add-device")
@click.argument("login")
@click.option("--reader", "reads", is_flag=True, help="The login may also search and pull.")
@click.option("--only-reader", is_flag=True, help="The login may search and pull, but not push.")
@click.option("--team", help="Only readers of this team see what the machine pushes.")
@click.option("--no-team", is_flag=True, help="All readers see everything that the machine pushes.")
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
    """Create a login for a machine, or give one a new password and other rights.

    Prints the line for the machine's ~/.pgpass; the password is shown only once. An existing login
    keeps its team, and loses the rights that you do not give again. Needs a login that can create
    others.

    \b
    Example:
      assoc-ingest remote add-device laptop --reader
    """
    from ..fleet import devices
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect
    from ..fleet.server import patient

    if team is not None and no_team:
        raise UsageError("Give --team or --no-team, not both.")
    with connect(destination_of(database, destination)) as connection, patient(connection):
        password = devices.add_login(
            connection,
            login,
            pushes=not only_reader,
            reads=reads or only_reader,
            team=team,
            no_team=no_team,
        )
        line = devices.password_line(connection, login, password)
    say("Put this line into ~/.pgpass on the machine, with mode 600:")
    write([f"{line}\n"])


@click.command()
@click.argument("label")
@click.option("--login", help="Login of the machine; default: its label.")
@click.option("--reader", "reads", is_flag=True, help="The login may also search and pull.")
@click.option("--team", help="Only readers of this team see what the machine pushes.")
@click.option("--all-projects", is_flag=True, help="Let the line allow all projects to leave.")
@_destination_option
@database_option
def invite(
    database: Path,
    label: str,
    login: str | None,
    reads: bool,
    team: str | None,
    all_projects: bool,
    destination: str | None,
) -> None:
    """Create a login for a new machine, and print the line that sets the machine up.

    The line asks for the password, which is printed below it and shown only once: send the two to
    the machine in different ways. No other login can use the label. Run this again for a new
    password.

    \b
    Example:
      assoc-ingest remote invite laptop --team web --reader
    """
    from ..fleet import devices
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect
    from ..fleet.server import patient

    with connect(destination_of(database, destination)) as connection, patient(connection):
        place, password = devices.invite(connection, label, login or label, reads=reads, team=team)
    allowed = ("--all-projects",) if all_projects else ()
    join = to_copy("assoc-ingest", "remote", "join", place, "--label", label, *allowed, "--service")
    say("Run this line on the machine:")
    write([f"assoc-ingest sync && {join}\n"])
    say("It asks for this password:")
    write([f"{password}\n"])


@click.command()
@click.argument("name", metavar="[LOGIN]", required=False)
@click.argument("most", metavar="[SIZE]", required=False)
@click.option("--machine", is_flag=True, help="The name is the label of one machine, not a login.")
@_destination_option
@database_option
def quota(
    database: Path, name: str | None, most: str | None, machine: bool, destination: str | None
) -> None:
    """Limit what the machines of a login may store, for example 2GB; `none` removes the limit.

    A login can push as several machines: its limit is for all together, and with --machine, the
    machine with this label has a limit of its own as well. What counts is the size of all rows and
    bytes without indexes. A push that cannot fit is refused before anything is sent, and any other
    where it would exceed the limit; deletions still work. Without SIZE, shows the limit and what is
    stored, without LOGIN all limits.

    \b
    Examples:
      assoc-ingest remote quota laptop 2GB
      assoc-ingest remote quota --machine build-7 500MB
      assoc-ingest remote quota
    """
    from ..fleet import devices
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect
    from ..fleet.server import patient

    if name is None and machine:
        raise UsageError("Give the label of a machine.")
    with connect(destination_of(database, destination)) as connection, patient(connection):
        if name is not None and most is not None:
            limit = None if most.lower() == "none" else devices.bytes_of(most)
            devices.set_quota(connection, name, limit, of_machine=machine)
        quotas = devices.quotas(connection, name, of_machine=machine)
    rows = [(quota.login, quota.label, size(quota.stored), _limit(quota.most)) for quota in quotas]
    if rows:
        write_lines(table(("Login", "Machine", "Stored", "Limit"), rows, table_width()))
    elif name is None:
        say("There is no limit.")
    else:
        what = "machine with the label" if machine else "login"
        raise NotFoundError(
            f"The server has no {what} {name!r}. To see them: assoc-ingest remote devices"
        )


def _limit(most: int | None) -> str:
    return "none" if most is None else size(most)


@click.command("remove-device")
@click.argument("login")
@click.option("--data", is_flag=True, help="Also delete what its machines pushed.")
@yes_option
@_destination_option
@database_option
def remove_device(
    database: Path, login: str, data: bool, yes: bool, destination: str | None
) -> int:
    """Remove a login: it cannot connect any more, and its open connections are ended.

    What its machines pushed stays, and can be searched, unless you give --data; see
    `remote remove-origin`. Needs a login that can create others.

    \b
    Example:
      assoc-ingest remote remove-device laptop --data
    """
    from ..fleet import devices
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect
    from ..fleet.deletion import origin_named, remove_origin
    from ..fleet.server import patient

    with connect(destination_of(database, destination)) as connection, patient(connection):
        devices.check_removable(connection, login)
        labels = devices.labels_of(connection, login)
        also = f", and delete all that {', '.join(labels)} pushed" if data and labels else ""
        if asks(yes=yes) and not confirmed(f"Remove the login {login}{also}?"):
            return 1
        removed = devices.remove_login(connection, login)
        say(f"{login} cannot log in any more; ended {many(removed.connections, 'connection')}.")
        if not removed.is_dropped:
            say(f"The role {login} stays without rights, because objects belong to it.")
        for label in labels if data else ():
            deleted = remove_origin(connection, origin_named(connection, label))
            say(f"Deleted {many(deleted.files, 'file')} of {label} ({size(deleted.bytes)}).")
    if labels and not data:
        say(f"What {', '.join(labels)} pushed stays. To delete it: remote remove-origin LABEL")
    return 0


@click.command("remove-origin")
@click.argument("label")
@click.option("--bytes-only", is_flag=True, help="Delete only the original bytes, and keep rows.")
@yes_option
@_destination_option
@database_option
def remove_origin(
    database: Path, label: str, bytes_only: bool, yes: bool, destination: str | None
) -> int:
    """Delete all that a machine pushed, for example a lost one.

    LABEL is its label or uuid. Other machines keep what they pushed themselves, even if it is the
    same; those that pulled its files delete them with the next `pull`. The machine cannot push
    again, except as a new one (`remote new-origin`). Can be interrupted and repeated.

    With --bytes-only, its conversations can still be searched and counted, but no longer pulled,
    nor derived again (`remote reindex`). Needs the owner of the schema, or assoc_admin.

    \b
    Example:
      assoc-ingest remote remove-origin old-laptop
    """
    from ..fleet import deletion
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect
    from ..fleet.server import patient

    with connect(destination_of(database, destination)) as connection, patient(connection):
        origin = deletion.origin_named(connection, label)
        what = f"{many(origin.size.files, 'file')} ({size(origin.size.bytes)}) of {origin.label}"
        what = f"the bytes of {what}" if bytes_only else what
        if asks(yes=yes) and not confirmed(f"Delete {what}?"):
            return 1
        if bytes_only:
            deletion.remove_bytes(connection, origin)
        else:
            deletion.remove_origin(connection, origin)
    say(f"Deleted {what}. To erase it from the disk of the server: remote erase")
    return 0


# ------------------------------------------------------------------------------------------------
# The schema, the text index, and the rows of a machine.


@click.command()
@click.option("--force", is_flag=True, help="End connections of machines that hold it up.")
@_destination_option
@database_option
def migrate(database: Path, destination: str | None, force: bool) -> None:
    """Update the schema of the server. Needs the owner of the schema.

    Waits ten seconds for locks that others hold, then says who does.

    \b
    Example:
      assoc-ingest remote migrate
    """
    from ..fleet import devices, server
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect

    with connect(destination_of(database, destination)) as connection:
        applied = devices.migrate_by_force(connection) if force else server.migrate(connection)
    say(f"Applied {', '.join(applied)}." if applied else "The server is up to date.")


@click.command()
@click.option("--drop", is_flag=True, help="Remove the index, before a large first push.")
@_destination_option
@database_option
def index(database: Path, destination: str | None, drop: bool) -> None:
    """Create the full-text index on the server; without it, a search reads everything.

    Needs the owner of the schema. Pushes continue meanwhile, and are slower afterwards.

    \b
    Example:
      assoc-ingest remote index --to postgresql://fleet_owner@db.example.org/fleet
    """
    from ..fleet.administration import destination_of, drop_text_index, make_text_index
    from ..fleet.connect import connect

    with connect(destination_of(database, destination)) as connection:
        (drop_text_index if drop else make_text_index)(connection)
    say("Removed the text index." if drop else "The text index is complete.")


@click.command()
@click.argument("origin")
@_destination_option
@database_option
def reindex(database: Path, origin: str, destination: str | None) -> None:
    """Rebuild the rows of a machine on the server, for example of a lost machine after an update.

    ORIGIN is its label or uuid. The rows are derived again from the pushed bytes, which do not
    change; rows that cannot be derived from bytes stay. Needs the login of that machine with
    `add-device --reader`, one with the role assoc_admin, or the owner of the schema.

    \b
    Example:
      assoc-ingest remote reindex old-laptop
    """
    from ..fleet.administration import destination_of
    from ..fleet.administration import reindex as run

    with progress_in_bytes("Deriving") as progress:
        done = run(destination_of(database, destination), origin, progress)
    say(f"Rebuilt the rows of {many(done.files, 'file')} of {done.label}.")
    if done.kept:
        say(f"Kept the rows of {many(done.kept, 'file')}, which bytes alone cannot yield.")


# ------------------------------------------------------------------------------------------------
# The state of the server, and what is deleted for good.


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_destination_option
@database_option
def health(database: Path, destination: str | None, as_json: bool) -> int:
    """Check the server: schema, size, indexes, vacuum, transactions, connections, quotas.

    Prints what to do about everything that is wrong, and exits with 1 then. "?" marks what this
    login cannot see. The free space of its disk cannot be seen through a connection.

    \b
    Example:
      assoc-ingest remote health --to postgresql://fleet_owner@db.example.org/fleet
    """
    from ..fleet import health as checks
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect

    with connect(destination_of(database, destination)) as connection:
        found = checks.health(connection)
    is_ok = all(check.is_ok is not False for check in found)
    if as_json:
        rows = [check._asdict() | ({"advice": None} if check.is_ok else {}) for check in found]
        write([safe_json({"is_ok": is_ok, "checks": rows}) + "\n"])
        return int(not is_ok)
    marks = {True: "ok", False: "WRONG", None: "?"}
    width = max(len(check.name) for check in found)
    for check in found:
        write([f"{marks[check.is_ok]:<5}  {check.name:<{width}}  {safe(check.found)}\n"])
        if not check.is_ok and check.advice:
            write([f"{'':{width + 9}}{check.advice}\n"])
    return int(not is_ok)


@click.command()
@click.option("--older-than", metavar="SPAN", help="Delete and refuse what is older: 180d, 26w.")
@click.option("--off", is_flag=True, help="Keep everything again; what was deleted comes back.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@yes_option
@_destination_option
@database_option
def retention(
    database: Path,
    older_than: str | None,
    off: bool,
    dry_run: bool,
    yes: bool,
    destination: str | None,
) -> int:
    """Delete old files of all machines on the server, and let machines not push them again.

    A file is as old as its last line, by the time in that line; without times in its lines, as its
    conversation, or else as its last change. It is deleted with its rows, and a conversation with
    its last file. A history that still grows stays as a whole. The limit is a date: run this
    regularly, for example daily, to move it. Machines leave out the same files, push a file that
    grows again as a whole, and delete what they pulled of a deleted one. Times before the year 2000
    or in the future come from a wrong clock, and such files stay. Without options, shows the limit.
    Needs the owner of the schema, or assoc_admin.

    \b
    Examples:
      assoc-ingest remote retention --older-than 180d --dry-run
      assoc-ingest remote retention --older-than 180d
    """
    from ..fleet import deletion
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect
    from ..fleet.server import patient

    if off and older_than is not None:
        raise UsageError("Give --older-than or --off, not both.")
    span = _span(older_than) if older_than is not None else None
    with connect(destination_of(database, destination)) as connection, patient(connection):
        if span is None:
            if off:
                deletion.keep_since(connection, None)
            limit = deletion.kept_since(connection)
            say(f"Kept since {limit}." if limit else "Everything is kept.")
            return 0
        limit = deletion.limit_before(connection, span)
        old = deletion.older(connection, limit)
        rows = [(one.label, one.deleted.files, size(one.deleted.bytes)) for one in old]
        if rows:
            write_lines(table(("Label", "Files", "Bytes"), rows, table_width()))
        files = sum(one.deleted.files for one in old)
        say(f"Older than {limit}: {many(files, 'file')} of {many(len(old), 'machine')}.")
        if dry_run:
            return 0
        if asks(yes=yes) and not confirmed("Delete them, and refuse what is older?"):
            return 1
        deletion.keep_since(connection, limit)
        deleted, locked = deletion.delete_older(connection, limit)
    say(f"Deleted {many(deleted.files, 'file')} ({size(deleted.bytes)}).")
    if locked:
        say(f"Still in use, so perhaps not done: {', '.join(map(safe, locked))}. Run this again.")
    return int(bool(locked))


def _span(text: str) -> timedelta:
    from datetime import timedelta

    from ..ask.times import ago

    span = ago(text)
    if span is None or span < timedelta(days=1):
        raise UsageError(f"{text!r} is no span of at least a day: give 180d or 26w.")
    return span


@click.command()
@yes_option
@_destination_option
@database_option
def erase(database: Path, yes: bool, destination: str | None) -> int:
    """Erase what was deleted on the server from its tables, indexes and statistics.

    After `forget`, `withdraw` and the like, no answer has the deleted text, but it stays in the
    files of the server until its space is used again. This rewrites every table (VACUUM FULL),
    which takes as long as copying them and as much free space as the largest; nobody can use a
    table while it is rewritten. It does not reach the write-ahead log and its archive, base
    backups, snapshots of disks, and space that the file system has freed. Needs the owner of the
    schema.

    \b
    Example:
      assoc-ingest remote erase --to postgresql://fleet_owner@db.example.org/fleet
    """
    from ..fleet import deletion
    from ..fleet.administration import destination_of
    from ..fleet.connect import connect

    question = "Rewrite all tables? Pushes and searches wait meanwhile."
    if asks(yes=yes) and not confirmed(question):
        return 1
    with (
        connect(destination_of(database, destination)) as connection,
        progress_in_bytes("Rewriting") as progress,
    ):
        done = deletion.erase(connection, progress)
    say(
        f"Rewrote {many(done.tables, 'table')}: {size(done.before)} before, {size(done.after)} now."
    )
    if done.locked:
        say(f"Still in use, so not rewritten: {', '.join(done.locked)}. Run this again.")
    if done.refused:
        say(f"This login may not rewrite {', '.join(done.refused)}: the owner of the database can.")
    if done.visible:
        rows = ", ".join(f"{many(count, 'row')} of {name}" for name, count in done.visible.items())
        say(
            f"An open transaction may still see {rows}. Wait until it ends, or end it (`remote "
            "health` shows the longest), then run this again."
        )
    if done.is_whole:
        say("Not reached: write-ahead log and its archive, base backups, snapshots, freed space.")
    return int(not done.is_whole)


SECTIONS = {
    "Machines and logins": (
        list_devices,
        invite,
        add_device,
        quota,
        remove_device,
        remove_origin,
    ),
    "The server": (health, migrate, index, reindex, retention, erase),
}
"""The commands by what they are about, for the help."""
