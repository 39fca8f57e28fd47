"""What a sync did: a summary on standard error, and a JSON object on standard output."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from .. import terminal
from ..ask.output import say, write
from ..store.transaction import of_clock_behind
from ..terminal import safe_json

if TYPE_CHECKING:
    from ..store.runs import Report
    from ..upkeep.rebuild import Rebuilt

_COLUMNS = (
    "id", "started_at", "finished_at", "files_read", "bytes_read", "rows", "issues", "error",
)  # fmt: skip
_NAMED = 20  # unreadable files that are named one by one


def write_summary(report: Report, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        write([safe_json({name: getattr(report, name) for name in _COLUMNS}) + "\n"])
    if report.files_rebuilt:
        files = terminal.many(report.files_rebuilt, "file")
        say(f"The parser was updated: {files} re-parsed from the archive.")
    if report.clock_behind:
        say(of_clock_behind(report.clock_behind))
    say(_summary(report, dry_run))
    for root in report.missing_roots:
        say(f"Root is missing; its rows are kept: {root}")
    for path, reason in report.unreadable[:_NAMED]:
        say(f"Could not read {path}: {reason}")
    if len(report.unreadable) > _NAMED:
        say(f"Could not read {len(report.unreadable) - _NAMED:,} more files.")
    if report.quarantined:
        records = terminal.many(report.quarantined, "record")
        say(f"{records} could not be parsed. To list them: assoc-ingest list issues")


def write_news(news: Report | str, *, as_json: bool) -> None:
    """Print what a watch reports, at once: text, or with `as_json` one JSON object per line.

    A sentence becomes `{"event": "notice", "text": ...}`, a report `{"event": "pass", ...}` with
    the columns of `sync_runs` and some more.
    """
    if as_json:
        write([safe_json(_news(news)) + "\n"])
        sys.stdout.flush()
    elif isinstance(news, str):
        say(news)
    else:
        write_summary(news, as_json=False, dry_run=False)


def _news(news: Report | str) -> dict[str, object]:
    if isinstance(news, str):
        return {"event": "notice", "text": news}
    columns = (*_COLUMNS, "files_gone", "quarantined", "missing_roots", "unreadable")
    shown = {name: getattr(news, name) for name in columns}
    return {"event": "pass", **shown, "seconds": round(news.seconds, 3)}


def _summary(report: Report, dry_run: bool) -> str:
    gone = ""
    if report.files_gone:
        gone = f"; {terminal.many(report.files_gone, 'file')} deleted, rows kept"
    if not report.files_read:
        return f"Nothing new in {terminal.many(report.files_seen, 'file')}{gone}."
    read = terminal.many(report.files_read, "file")
    if report.files_seen:
        read = f"{report.files_read:,} of {terminal.many(report.files_seen, 'file')}"
    size = terminal.size(report.bytes_read)
    if dry_run:
        return f"Would read {read} ({size}){gone}."
    blocks = terminal.many(report.rows, "block")
    return f"Read {read} ({size}) in {report.seconds:.1f} s: {blocks} added{gone}."


def write_rebuilt(rebuilt: Rebuilt, *, as_json: bool) -> None:
    if as_json:
        write([safe_json(asdict(rebuilt)) + "\n"])
    if rebuilt.kept_aside is not None:
        kept = rebuilt.kept_aside
        if rebuilt.is_outdated:
            say(
                f"The database of an older version was copied into a new one, and is kept as {kept}"
            )
        else:
            say(f"The database was damaged. The damaged file is kept as {kept}")
    for table, places in rebuilt.rows_lost.items():
        say(f"Rows of table {table} were unreadable in {terminal.many(places, 'place')}.")
    lost = {file.path for file in rebuilt.lost}
    for path in [path for path in rebuilt.files_damaged if path not in lost][:_NAMED]:
        say(f"Archived data is damaged, rows are kept: {path}")
    for path in rebuilt.files_unnamed[:_NAMED]:
        say(f"Path is lost; the next sync looks for the file: {path}")
    files = terminal.many(rebuilt.files, "file")
    kept = ""
    if rebuilt.files_kept:
        files = f"{rebuilt.files:,} of {terminal.many(rebuilt.files + rebuilt.files_kept, 'file')}"
        are = "is" if rebuilt.files_kept == 1 else "are"
        kept = f"; {rebuilt.files_kept:,} {are} not archived, so the rows stay"
    size = terminal.size(rebuilt.bytes_read)
    blocks = terminal.many(rebuilt.rows, "block")
    say(f"Rebuilt {blocks} from {files} ({size}) in {rebuilt.seconds:.1f} s{kept}.")
    if rebuilt.rows_lost or rebuilt.files_damaged:
        say("To re-read files that are still on disk: assoc-ingest sync --full")
    _write_losses(rebuilt)


def _write_losses(rebuilt: Rebuilt) -> None:
    for file in rebuilt.lost[:_NAMED]:
        say(f"Lost: {file.bytes:,} bytes of {file.root}/{file.path}")
    if rebuilt.lost:
        files = terminal.many(len(rebuilt.lost), "file")
        say(
            f"{rebuilt.bytes_lost:,} archived bytes of {files} are lost and no longer on disk. "
            "Rows made from them are kept."
        )
    for table in rebuilt.only_here:
        if table in ("forgotten", "forgotten_secrets"):
            what = "conversations" if table == "forgotten" else "credentials"
            say(
                f"The list of forgotten {what} may be incomplete, so the next sync may read "
                "some of them again. To see what is left: assoc-ingest forget --list"
            )
        else:
            say(f"Rows of table {table} may be lost for good: no file contains them.")
    if not rebuilt.is_whole and rebuilt.kept_aside is not None:
        say("Keep the damaged copy if you want to try to recover more from it.")
