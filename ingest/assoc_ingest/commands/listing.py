"""assoc-ingest list"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .completion import lists
from .options import database_option, format_options, project_option, reading, source_option

if TYPE_CHECKING:
    from ..ask.output import Format


@click.command("list")
@click.argument("what", shell_complete=lists)
@project_option("Only this project")
@source_option("Only this source")
@click.option("--branch", help="Only sessions on this git branch.")
@click.option("--since", help="Only what is newer than this: 12h, 7d, 2w or a date.")
@click.option("--until", help="Only what is older than this; a date includes that day.")
@click.option("--cwd", help="Only teams with a member in this directory; all teams if none has.")
@click.option("--all", "everything", is_flag=True, help="Include rows that are hidden by default.")
@click.option(
    "--gone", is_flag=True, help="Include entries that no longer exist; --all includes them too."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    help="Maximum number of rows; 0 for no limit.",
)
@format_options
@database_option
def listing(
    what: str,
    database: Path,
    everything: bool,
    limit: int,
    form: Format,
    project: str | None,
    source: str | None,
    branch: str | None,
    since: str | None,
    until: str | None,
    cwd: str | None,
    gone: bool,
) -> None:
    """List sessions, projects, tasks and more.

    WHAT is one of: sessions, projects, open (what waits for somebody), tasks, todos, plans, inbox,
    teams, agents, subagents, prompts, links, files, issues.

    \b
    Examples:
      assoc-ingest list sessions --project shop --since 7d
      assoc-ingest list open
      assoc-ingest list tasks --all --json
    """
    from ..ask.queries import Listed, write_list
    from ..paths import is_directory, real_path

    connection = reading(database)
    if cwd is not None and is_directory(cwd):
        cwd = str(real_path(cwd))
    wanted = Listed(project, source, branch, since, until, cwd, everything, gone)
    write_list(connection, what, form, wanted, limit)
