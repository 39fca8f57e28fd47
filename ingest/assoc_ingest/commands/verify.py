"""assoc-ingest verify"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option
from .progress import progress_in_bytes


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@database_option
def verify(database: Path, as_json: bool) -> None:
    """Prove the database against its files and itself.

    Every archived byte is decompressed and parsed again, and compared with the tables; every
    checksum with the files that are still there. Each problem comes with the command that mends
    it. Exits with 1 if there is one; warnings are none.

    \b
    Example:
      assoc-ingest verify
    """
    from ..upkeep.verify import verify as run
    from .verify_report import write_verdict

    with progress_in_bytes("Checking") as progress:
        verdict = run(database, progress)
    write_verdict(verdict, as_json=as_json)
    if not verdict.ok:
        raise click.exceptions.Exit(1)
