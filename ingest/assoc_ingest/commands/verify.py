"""assoc-ingest verify"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option, jobs_option
from .progress import progress_in_bytes


@click.command(short_help="Check the database against the source files and itself.")
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def verify(database: Path, jobs: int | None, as_json: bool) -> None:
    """Check the database against the source files and for internal consistency.

    All archived files are decompressed, parsed again and compared with the tables; checksums are
    compared with the files that still exist. Each problem is printed with the command that repairs
    it. Exits with 1 if a problem was found; warnings do not count.

    \b
    Example:
      assoc-ingest verify
    """
    from ..upkeep.verify import verify as run
    from .verify_report import write_verdict

    with progress_in_bytes("Checking") as progress:
        verdict = run(database, progress, jobs)
    write_verdict(verdict, as_json=as_json)
    if not verdict.ok:
        raise click.exceptions.Exit(1)
