"""Shows what is indexed, how far, and what is wrong."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import sql, terminal
from ..ask.output import write, write_table
from ..fields import number
from ..files.exclusions import load_secrets
from ..files.stored_names import original_root, stored_name
from ..files.walk import DIRECTORY, FILE, Walk, entries, kind_of_entry
from ..paths import unlisted
from ..source import FOREIGN, FOREIGN_DOCUMENT, Source
from ..sources import SOURCES
from ..store.database import Clock, lock_of, log_of, of_clock_behind, said
from ..terminal import Paint, safe, safe_json

_Row = dict[str, object]
_LISTED = 10
_DATABASES = (".sqlite", ".sqlite3", ".db", ".vscdb")


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a database; its fields are those of the JSON output."""

    database: str
    size: int
    sources: list[_Row]
    last_run: _Row | None
    is_running: bool
    """The last run has no end yet, and the process with the writer's lock is alive."""
    failed_runs: list[_Row]
    """Recent runs that were cut off or ended with an error."""
    clock_behind: str | None
    """The newest time in the database, if the system clock is behind it."""
    clock_ahead: str | None
    """The newest time in the database, if a wrong clock recorded it."""
    issues: list[_Row]
    unreadable: list[_Row]
    """The roots that cannot be read now, and why."""
    new_lines: list[_Row]
    """Types of lines that no reader knows, with the oldest version of the agent that wrote them."""
    new_places: list[_Row]
    """Directories and databases in homes that no reader knows, with the newest version of the agent
    that was read there. They are not opened."""
    pending: int
    """The number of forgotten items that may have left traces in the database file."""


def look(connection: sqlite3.Connection, database: Path) -> Status:
    runs = _rows(connection, "reports/status_runs")
    clock = Clock(connection)
    is_running = bool(runs) and _is_cut_off(runs[0]) and has_writer(database)
    failed = [run for run in runs if run["error"] is not None or _is_cut_off(run)]
    beside = (database, log_of(database))
    sources = _rows(connection, "reports/status_sources")
    return Status(
        str(database),
        sum(path.stat().st_size for path in beside if path.exists()),
        sources,
        runs[0] if runs else None,
        is_running,
        failed[1:] if is_running else failed,
        clock.behind,
        clock.ahead,
        _rows(connection, "reports/issues_by_reason"),
        _unreadable(sources),
        _new_lines(connection),
        _new_places(connection, sources),
        _pending(connection),
    )


def _unreadable(sources: list[_Row]) -> list[_Row]:
    roots = dict.fromkeys(str(source["root"]) for source in sources)
    reasons = ((root, unlisted(original_root(root))) for root in roots)
    return [{"root": root, "reason": reason} for root, reason in reasons if reason is not None]


def _new_lines(connection: sqlite3.Connection) -> list[_Row]:
    """Return the types of lines that their source does not know, those of the newest first."""
    rows = connection.execute(
        "select distinct r.kind, l.type, l.subtype from line_types l"
        " join files f on f.id = l.file_id join sources r on r.id = f.source_id"
        " where l.type <> '' and l.first_offset is not null and f.kind not in (?, ?)",
        (FOREIGN, FOREIGN_DOCUMENT),
    )
    unknown = [
        tuple(row)
        for row in rows
        if row[0] in SOURCES and not SOURCES[row[0]].knows(row[1], row[2])
    ]
    if not unknown:
        return []
    found: dict[tuple[object, ...], _Row] = {}
    for row in sql.ask(connection, "pages/new_lines", unknown=json.dumps(unknown)):
        kept = found.setdefault((row["source"], row["type"], row["subtype"]), dict(row))
        if kept["version"] != row["version"]:
            kept["lines"] = int(str(kept["lines"])) + int(str(row["lines"]))
            kept["version"] = min(filter(None, (kept["version"], row["version"])), key=_numbers)
    return sorted(found.values(), key=lambda row: (str(row["label"]), _numbers(row["version"])))


def _new_places(connection: sqlite3.Connection, sources: list[_Row]) -> list[_Row]:
    homes: dict[str, list[Source]] = {}
    for row in sources:
        if row["kind"] in SOURCES:
            homes.setdefault(str(row["root"]), []).append(SOURCES[str(row["kind"])])
    secrets = load_secrets(connection)
    rows: list[_Row] = []
    for root, readers in homes.items():
        of = next((source for source in readers if source.unread_places is not None), None)
        for entry in entries(str(original_root(root)), Walk()) if of is not None else ():
            name, kind = stored_name(entry.name), kind_of_entry(entry, Walk())
            if kind == FILE and entry.name.endswith(_DATABASES):
                kind = "database"
            elif kind != DIRECTORY:
                continue
            is_known = name.startswith(".") or any(source.knows_place(name) for source in readers)
            if of is not None and not is_known:
                about = {"source": of.name, "label": of.label, "root": root}
                rows.append({**about, "name": secrets.covered(name), "kind": kind})
    for row in rows:
        (row["version"],) = connection.execute(
            "select max(x.agent_version) from transcripts x join files f on f.id = x.file_id"
            " join sources r on r.id = f.source_id where r.kind = ? and r.root = ?"
            " and x.ended_at = (select max(y.ended_at) from transcripts y"
            "  join files g on g.id = y.file_id"
            "  where g.source_id = f.source_id and y.agent_version is not null)",
            (row["source"], row["root"]),
        ).fetchone()
    return rows


def sentences_of_places(rows: list[_Row]) -> Iterator[str]:
    """Yield a sentence for each home that has directories or databases that no reader knows."""
    homes: dict[tuple[object, ...], list[_Row]] = {}
    for row in rows:
        homes.setdefault((row["root"], row["label"], row["version"]), []).append(row)
    for (root, label, version), new in homes.items():
        named = ", ".join(f"{row['kind']} {row['name']}" for row in new[:_LISTED])
        more = f" and {len(new) - _LISTED} more" if len(new) > _LISTED else ""
        read = f" (last read there: {label} {version})" if version else ""
        yield safe(f"Not known and not opened in {root}: {named}{more}{read}")


def _numbers(version: object) -> list[int]:
    return [number(part) or 0 for part in str(version).split(".")]


def _pending(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute(
        "select (select count(*) from forgotten where is_pending = 1)"
        " + (select count(*) from forgotten_secrets where is_pending = 1)"
    ).fetchone()
    return int(count)


def _is_cut_off(run: _Row) -> bool:
    return run["finished_at"] is None and run["error"] is None


def has_writer(database: Path) -> bool:
    """Is another process alive that took the writer's lock? The lock is not taken for this.

    If its process id was reused, the answer is wrong until the next process takes the lock.
    """
    try:
        holder = lock_of(Path(os.path.realpath(database))).read_text().strip()
    except PermissionError:
        return os.name == "nt"  # there, a lock keeps readers out
    except OSError:
        return False
    if os.name == "nt" or not holder.isdigit() or int(holder) == os.getpid():
        return False
    try:
        os.kill(int(holder), 0)
    except PermissionError:
        return True  # a process of another user
    except (ProcessLookupError, OverflowError):
        return False
    return True


def write_status(connection: sqlite3.Connection, status: Status, *, as_json: bool) -> None:
    """Print the state, as text or as one JSON object."""
    if as_json:
        write([safe_json(asdict(status)) + "\n"])
        return
    paint = Paint.for_stream(sys.stdout)
    write([f"{status.database}, {terminal.size(status.size)}\n"])
    if status.last_run is None:
        write(["No sync has run yet.\n"])
    else:
        write([_of_run(status.last_run, is_running=status.is_running) + "\n"])
    if status.sources:
        write(["\n"])
        _table(connection, status.sources)
    for run in status.failed_runs[:_LISTED]:
        how = f"failed: {run['error']}" if run["error"] else "was interrupted"
        started = terminal.moment(str(run["started_at"]))
        write([paint(f"\nThe sync of {started} {how}\n", "red")])
    if status.clock_behind:
        write([paint(f"\n{of_clock_behind(status.clock_behind)}\n", "red")])
    if status.clock_ahead:
        ahead = said(status.clock_ahead)
        write([paint(f"\nA sync was recorded at {ahead}: the clock was ahead.\n", "red")])
    for row in status.unreadable:
        write([paint(f"\nCould not read {row['root']}: {row['reason']}\n", "red")])
    write(paint(f"\n{line}\n", "yellow") for line in sentences_of(status.new_lines))
    places = sentences_of_places(status.new_places)
    write(paint(f"\n{line}\n", "yellow") for line in places)
    if status.pending:
        remedy = "Traces of forgotten data may remain in the file. Run: assoc-ingest compact"
        write([paint(f"\n{remedy}\n", "red")])
    if status.issues:
        write(["\n"])
        _table(connection, status.issues[:_LISTED])
        write(["\nTo list them: assoc-ingest list issues\n"])


def _of_run(run: _Row, *, is_running: bool) -> str:
    text = f"Last sync {terminal.moment(str(run['started_at']))}"
    if run["finished_at"] is None:
        return f"{text}, {'still running' if is_running else 'interrupted'}"
    counts = [
        terminal.many(int(str(run[name])), word)
        for name, word in (("files_read", "file"), ("rows", "block"), ("issues", "issue"))
    ]
    return f"{text}: {', '.join(counts)}, {terminal.size(int(str(run['bytes_read'])))}"


def sentences_of(rows: list[_Row]) -> Iterator[str]:
    """Yield a sentence for each version of an agent that writes lines of unknown types."""
    versions: dict[str, list[_Row]] = {}
    for row in rows:
        versions.setdefault(f"{row['label']} {row['version'] or ''}".strip(), []).append(row)
    for version, new in versions.items():
        named = [
            f"{' '.join(filter(None, (str(row['type']), str(row['subtype']))))}"
            f" ({terminal.many(int(str(row['lines'])), 'line')})"
            for row in new[:_LISTED]
        ]
        more = f" and {len(new) - _LISTED} more" if len(new) > _LISTED else ""
        are = "kind of line is" if len(new) == 1 else "kinds of lines are"
        yield safe(f"{len(new)} {are} new in {version}: {', '.join(named)}{more}")


def _table(connection: sqlite3.Connection, rows: list[_Row]) -> None:
    names = list(rows[0])
    write_table(connection, names, [list(row.values()) for row in rows], whole=False)


def _rows(connection: sqlite3.Connection, name: str) -> list[_Row]:
    return [dict(row) for row in sql.ask(connection, name)]
