"""assoc-ingest stats"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import database_option, filter_options, format_options, reading, rows_option

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
@filter_options("project", "session", "source", "model", "since", "until")
@format_options
@rows_option
@database_option
def stats(
    by: str,
    database: Path,
    form: Format,
    limit: int | None,
    **filters: Any,
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
    from ..ask.filters import Filters
    from ..ask.usage import write_usage

    write_usage(reading(database), by, Filters.of(filters), form, limit or 0)
