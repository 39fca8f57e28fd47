"""assoc-ingest stats"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import database_option, format_options, reading

if TYPE_CHECKING:
    from ..ask.output import Format

# What `--by` means, as the query that answers it.
_QUERIES = {
    "day": "usage_by_day",
    "model": "usage_by_model",
    "project": "usage_by_project",
    "session": "usage_by_session",
    "tool": "tool_use",
}


@click.command()
@click.option(
    "--by",
    type=click.Choice(list(_QUERIES)),
    default="day",
    show_default=True,
    help="What to group by.",
)
@click.option("--since", help="Only usage newer than this: 12h, 7d, 2w or a date.")
@format_options
@database_option
def stats(by: str, database: Path, since: str | None, form: Format) -> None:
    """Show token counts and costs.

    Each API response is counted once. Costs are computed from the table of prices; models without
    a price are left out. `query usage_reconciliation` explains why other tools count more or less.

    \b
    Examples:
      assoc-ingest stats --since 7d
      assoc-ingest stats --by model --json
    """
    from ..ask.queries import write_query
    from ..ask.since import since as time_of

    connection = reading(database)
    parameters = {"since": time_of(since)} if since else {}
    write_query(connection, _QUERIES[by], parameters, form)
