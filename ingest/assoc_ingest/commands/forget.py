"""assoc-ingest forget"""

from __future__ import annotations

from pathlib import Path

import click

from .completion import sessions
from .options import asks, confirmed, database_option, project_option, yes_option


@click.command()
@click.argument("name", required=False, metavar="[SESSION|FILE]", shell_complete=sessions)
@project_option("Everything stored so far for this project")
@click.option(
    "--secret", metavar="FINGERPRINT", help="A credential, as `secrets` names it, wherever it is."
)
@click.option("--root", help="Only in this root, if several contain it.")
@click.option("--copies", is_flag=True, help="Also forget conversations that repeat it.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--list", "is_list", is_flag=True, help="List what has been forgotten.")
@click.option("--remember", is_flag=True, help="Undo: let the next sync read it again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@yes_option
@database_option
def forget(
    database: Path,
    name: str | None,
    project: str | None,
    secret: str | None,
    root: str | None,
    copies: bool,
    dry_run: bool,
    is_list: bool,
    remember: bool,
    as_json: bool,
    yes: bool,
) -> int:
    """Remove a conversation, a file or a credential for good.

    Removes everything that belongs to it (rows, full-text index and archive), rewrites the database
    so that no trace remains, and excludes it from all later syncs. The agent's own files are not
    touched. SESSION is a prefix of a session's key, FILE a path or a file name.

    \b
    Examples:
      assoc-ingest forget 0b7c2f4e --dry-run
      assoc-ingest forget 0b7c2f4e --yes
      assoc-ingest forget --secret 3f9a0c11d2e4b5a6
      assoc-ingest forget --list
      assoc-ingest forget --remember 0b7c2f4e
    """
    from ..errors import UsageError
    from ..upkeep.forget import forget as run
    from ..upkeep.forget_secret import forget_secret
    from ..upkeep.forget_target import Target
    from ..upkeep.tombstones import remember as take_back
    from ..upkeep.tombstones import tombstones
    from .removals import write_forgotten, write_remembered, write_secret, write_tombstones

    if is_list:
        write_tombstones(tombstones(database), as_json=as_json)
        return 0
    given = _given(name, project, secret, remember=remember)
    if remember:
        write_remembered(take_back(database, given), as_json=as_json)
        return 0
    if secret is not None and (root is not None or copies):
        raise UsageError(
            "--secret removes the credential everywhere. Leave out --root and --copies."
        )

    def carry_out(*, dry_run: bool) -> None:
        if secret is not None:
            forget_secret(
                database,
                secret,
                dry_run=dry_run,
                announce=lambda done: write_secret(done, as_json=as_json, dry_run=dry_run),
            )
            return
        run(
            database,
            Target(name, project, root),
            with_copies=copies,
            dry_run=dry_run,
            announce=lambda done: write_forgotten(done, as_json=as_json, dry_run=dry_run),
        )

    if asks(yes=yes or as_json or dry_run):
        carry_out(dry_run=True)
        if not confirmed("Forget all of this for good?"):
            return 1
    carry_out(dry_run=dry_run)
    return 0


def _given(name: str | None, project: str | None, secret: str | None, *, remember: bool) -> str:
    """Return what is to be forgotten or remembered; raise UsageError if it is not one thing."""
    from ..errors import UsageError

    given = [one for one in (name, project, secret) if one is not None]
    if len(given) != 1 or (remember and project is not None):
        raise UsageError(
            "Give one session or file, or use --project or --secret. To preview: "
            "assoc-ingest forget SESSION --dry-run"
        )
    return given[0]
