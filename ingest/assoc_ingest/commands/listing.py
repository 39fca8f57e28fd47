"""assoc-ingest list"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .completion import lists
from .options import database_option, filter_options, format_options, reading

if TYPE_CHECKING:
    from ..ask.output import Format


@click.command("list")
@click.argument("what", shell_complete=lists)
@filter_options(
    "project", "source", "branch", "model", "status", "since", "until", "errors", "min_cost"
)
@click.option("--cwd", help="Only teams with a member in this directory; all teams if none has.")
@click.option("--all", is_flag=True, help="Include rows that are hidden by default.")
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
    limit: int,
    form: Format,
    cwd: str | None,
    **filters: Any,
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
    from ..ask.filters import Filters
    from ..ask.queries import write_list
    from ..paths import is_directory, real_path

    if cwd is not None and is_directory(cwd):
        cwd = str(real_path(cwd))
    write_list(reading(database), what, form, Filters.of({**filters, "cwd": cwd}), limit)
