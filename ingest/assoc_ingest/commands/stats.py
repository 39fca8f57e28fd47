"""assoc-ingest stats"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import database_option, format_options, project_option, reading, rows_option

if TYPE_CHECKING:
    from ..ask.output import Format

_BY = ("day", "week", "month", "model", "project", "session", "tool")


@click.command()
@click.option(
    "--by",
    type=click.Choice(_BY),
    default="day",
    show_default=True,
    help="What to group by.",
)
@project_option("Only this project")
@click.option("--session", help="Only this session, given by a prefix of its key.")
@click.option("--model", help="Only this model.")
@click.option("--since", help="Only usage newer than this: 12h, 7d, 2w or a date.")
@click.option("--until", help="Only usage older than this; a date includes that day.")
@format_options
@rows_option
@database_option
def stats(
    by: str,
    database: Path,
    form: Format,
    limit: int | None,
    project: str | None,
    session: str | None,
    model: str | None,
    since: str | None,
    until: str | None,
) -> None:
    """Show token counts and costs, with a total.

    Each API response is counted once. Costs are computed from the table of prices. ≥ means at
    least: responses without a final count of tokens, or of a model without a price. `query
    usage_reconciliation` explains why other tools count more or less. -n limits the days, weeks or
    months of a table.

    \b
    Examples:
      assoc-ingest stats --since 7d
      assoc-ingest stats --by month --project shop
      assoc-ingest stats --by model --json
    """
    from ..ask.usage import Usage, write_usage

    usage = Usage(project, session, model, since, until)
    write_usage(reading(database), by, usage, form, limit or 0)
