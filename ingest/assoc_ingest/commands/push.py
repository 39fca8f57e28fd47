"""assoc-ingest push"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import asks, confirmed, database_option, yes_option

if TYPE_CHECKING:
    from ..fleet.masks import Masks


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
    from ..fleet.masks import Masks
    from ..fleet.sending import previewed, push_all
    from ..fleet.turns import state_of
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
    from ..fleet.report import Limits
    from ..fleet.sending import push_all
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
