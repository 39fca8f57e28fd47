"""assoc-ingest secrets"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import database_option, filter_options, json_options, reading
from .progress import progress_in_bytes

if TYPE_CHECKING:
    from ..ask.answer import Wanted

_SHOWN = 20


@click.command()
@filter_options("project", "session", "source", "since", "until")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Leave out the credentials whose fingerprints are in this file.",
)
@click.option(
    "--write-baseline",
    "new_baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the fingerprints of all that was found to this file.",
)
@click.option("--rules", "is_rules", is_flag=True, help="Print what is looked for.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=_SHOWN,
    show_default=True,
    help="Maximum number of credentials, with --json of places; 0 for no limit.",
)
@json_options
@database_option
def secrets(
    database: Path,
    baseline: Path | None,
    new_baseline: Path | None,
    is_rules: bool,
    limit: int,
    wanted: Wanted | None,
    **filters: Any,
) -> int:
    """Find credentials in what was read, without printing them.

    Keys and tokens of known providers, private keys, and values that look random where a name such
    as PASSWORD says what they are. Each has a fingerprint, by which `forget --secret` removes it.
    Exits with 1 if any is found that the baseline does not have.

    \b
    Examples:
      assoc-ingest secrets
      assoc-ingest secrets --project shop --since 7d --json
      assoc-ingest secrets --write-baseline known.txt
      assoc-ingest secrets --baseline known.txt
    """
    from ..ask.answer import Answer, Wanted
    from ..ask.filters import Filters
    from ..ask.output import write
    from ..ask.secrets import report, rules, secret_places
    from .baseline import read_baseline, write_baseline

    if is_rules:
        write(rules())
        return 0
    accepted = read_baseline(baseline) if baseline is not None else frozenset()
    connection = reading(database)
    answer = Answer(connection, ["secrets", filters, sorted(accepted)], wanted or Wanted())
    with progress_in_bytes("Looking") as progress:
        places = list(secret_places(connection, Filters.of(filters), accepted, progress))
    found = {place.fingerprint for place in places}
    if new_baseline is not None:
        write_baseline(connection, new_baseline, found | accepted)
    if wanted is not None:
        items = (place.as_json() for place in places[answer.start :])
        write(answer.pieces(items, total=len(places), limit=limit or None))
    else:
        write(report(places, limit))
        _say_counts(len(found), len(places), new_baseline)
    return 1 if found else 0


def _say_counts(count: int, places: int, written: Path | None) -> None:
    from .. import humanize
    from ..ask.output import say

    if not count:
        say("No credentials found. What cannot be found: docs/secrets.md")
        return
    where = humanize.many(places, "place")
    say(f"{humanize.many(count, 'credential')} in {where}.")
    say("Forgetting one does not make it safe: replace it where it was issued.")
    if written is not None:
        say(f"Written to {written}. To be told of new ones only: --baseline {written}")
