"""Check the database against its source files and its own invariants.

1. Pages: if SQLite cannot read one, that is reported, and nothing else is checked.
2. Schema, full-text indexes, references, and what was derived from rows (`check_database`).
3. Each file: its archive has exactly the bytes that were read, and their checksum; parsing them
   again (`replay`) gives the stored rows (`check_rows`); every line is accounted for; the counts
   agree. Only the first of these checks that fails is reported, because the others fail with it.
   For a file whose archive has gaps, the missing bytes are counted.
4. The files that are still on disk have the checksums of what was read (`check_files`).
5. Warnings about what is only partly known after a repair, about the location of the database, and
   about the version of SQLite (`check_environment`).

Each file is checked in its own read transaction, so a sync can run at the same time. If there is
much to parse, worker processes check the files, while this one checks the rest. Nothing is repaired
here; every finding names the command that does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from .. import humanize
from ..failures import is_damage
from ..files import lost
from ..files.exclusions import REASONS
from ..store.database import checking
from ..store.report import Progress
from ..workers.amount import worker_count
from . import check_database, check_environment, damaged_copies
from .check_archived import Checked, FileCheck, Listed, listed
from .check_files import compare_with_disk
from .check_jobs import begun
from .check_rows import scratch
from .findings import REBUILD, Finding, Verdict

_FOUND_AGAIN = "A sync restores the path if a file with the same content is still on disk."
_COUNTS = ("files", "messages", "archived_bytes", "files_on_disk")
_CHECKS = (
    check_database.check_indexes, check_database.check_references, check_database.check_derived,
    check_database.check_statements,
)  # fmt: skip


def verify(database: Path, progress: Progress | None = None, jobs: int | None = None) -> Verdict:
    """Check everything, and return what was found.

    Raises DatabaseError if the database is missing or belongs to another program or another
    version, and sqlite3.Error if it cannot be read or another process keeps it busy.
    """
    verdict = Verdict()
    with checking(database) as connection, _damage_is_found(verdict), ExitStack() as stack:

        def begin() -> _Work:
            return stack.enter_context(_begun(connection, database, progress, jobs))

        work = None
        with suppress(sqlite3.DatabaseError, UnicodeDecodeError):  # the next checks say why
            work = begin()
        verdict.findings += check_database.check_pages(connection)
        if verdict.ok:
            with check_database.fresh_schema() as schema:
                _check_schema(connection, schema, verdict)
                if verdict.ok:  # else every other check would report the same missing tables
                    _check_readable(connection, schema, verdict, work or begin())
    verdict.warnings += _kept_aside(database)
    verdict.warnings += check_environment.check_environment(database)
    return verdict


def _kept_aside(database: Path) -> Iterator[Finding]:
    for path in damaged_copies.kept_aside(database):
        size = humanize.size(path.stat().st_size)
        yield Finding(
            "kept aside",
            f"A damaged copy of the database is kept: {path} ({size}). It may still contain"
            " forgotten conversations.",
            "Delete it when you no longer need it.",
        )


@contextmanager
def _damage_is_found(verdict: Verdict) -> Iterator[None]:
    """Turn SQLite's error that the file is damaged into a finding; let other errors through."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # it quotes the damaged text
        if isinstance(error, sqlite3.DatabaseError) and not is_damage(error):
            raise
        verdict.findings.append(Finding("pages", f"The database is damaged: {error}.", REBUILD))


class _Work(NamedTuple):
    """Files whose check has begun."""

    files: list[Listed]
    results: Callable[[], Sequence[Checked | None]]
    """Waits for the workers; None for a file that is left to this process."""
    advance: Callable[[int], None]
    """Reports that so many more bytes were compared."""


@contextmanager
def _begun(
    connection: sqlite3.Connection, database: Path, progress: Progress | None, jobs: int | None
) -> Iterator[_Work]:
    """Let workers begin with the files: what they find counts if the pages turn out to be sound."""
    archived, on_disk = connection.execute(
        "select coalesce(sum(offset), 0), coalesce(sum(iif(gone_at is null, size, 0)), 0)"
        " from files"
    ).fetchone()
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, archived + on_disk)

    files = listed(connection)
    with begun(database, files, worker_count(jobs, archived), advance) as results:
        yield _Work(files, results, advance)


def _check_schema(
    connection: sqlite3.Connection, schema: sqlite3.Connection, verdict: Verdict
) -> None:
    verdict.findings += check_database.check_schema(connection, schema)
    for name in check_database.foreign_objects(connection, schema):
        remedy = "Store it in another database if you need it: rebuild may drop it."
        verdict.warnings.append(
            Finding("schema", f"The {name} was not created by assoc-ingest.", remedy)
        )


def _check_readable(
    connection: sqlite3.Connection, schema: sqlite3.Connection, verdict: Verdict, work: _Work
) -> None:
    """Run the checks of a database whose tables SQLite can read."""
    counts = verdict.counts = dict.fromkeys(_COUNTS, 0)
    for check in _CHECKS:
        verdict.findings += check(connection)
    with scratch(schema) as tables:
        checked = FileCheck(connection, tables).checked
        for file, result in zip(work.files, work.results(), strict=True):
            if result is None:
                result = checked(file)
                work.advance(file.size)
            verdict.findings += result.findings
            for name in _COUNTS[:3]:
                counts[name] += getattr(result, name)
    verdict.warnings += _known_in_part(connection)
    seen = compare_with_disk(connection, work.advance)
    verdict.counts["files_on_disk"] = seen.compared
    reported = {(finding.root, finding.path) for finding in verdict.findings}
    verdict.findings += [
        finding for finding in seen.findings if (finding.root, finding.path) not in reported
    ]
    verdict.warnings += seen.warnings()


def _known_in_part(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Yield warnings about what is only partly known after a repair."""
    rows = connection.execute(
        "select s.root, f.path, i.reason from issues i join files f on f.id = i.file_id"
        " join sources s on s.id = f.source_id where i.reason in (?, ?) order by s.root, f.path",
        (lost.PATH_LOST, lost.PATH_FROM_LINES),
    )
    for root, path, reason in rows.fetchall():
        yield Finding("path", f"Its {reason}.", _FOUND_AGAIN, root, path)
    for (kind,) in connection.execute("select distinct kind from sources").fetchall():
        for _, root in lost.unnamed_roots(connection, kind):
            yield Finding(
                "path",
                f"The directory of this root was lost with a damaged page: {root}.",
                "Give its directory to find it again: assoc-ingest sync PATH",
            )
    (count,) = connection.execute(
        "select count(distinct f.id) from issues i join files f on f.id = i.file_id"
        " where f.head_hash is not null"
        " and (i.reason = ? and not exists (select 1 from forgotten)"
        "  or i.reason = ? and not exists (select 1 from forgotten_secrets))",
        REASONS,
    ).fetchone()
    if count:
        yield Finding(
            "forgotten",
            f"Parts of {humanize.many(count, 'file')} were excluded as forgotten, but the list of"
            " what is forgotten is empty: the next sync reads them again.",
            "Forget it again, or run: assoc-ingest sync",
        )
