"""assoc-ingest remote allow and disallow"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import database_option, reading

if TYPE_CHECKING:
    from ..fleet.state import State


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
    from ..fleet.scope import known_paths
    from ..fleet.turns import changing, state_of

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
    from ..ask.output import say
    from ..ask.project_names import as_path
    from ..errors import NotFoundError, UsageError
    from ..fleet.turns import changing

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
