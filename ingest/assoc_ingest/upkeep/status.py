"""What is indexed, how far, and what is wrong: the facts of `status`."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from .. import sql
from ..fields import number
from ..files.exclusions import load_secrets
from ..files.walk import DIRECTORY, FILE, Walk, entries, kind_of_entry, original_root, stored_name
from ..paths import unlisted
from ..source import FOREIGN, FOREIGN_DOCUMENT, Source
from ..sources import SOURCES
from ..store.database import Clock, lock_of, log_of

_Row = dict[str, object]
_DATABASES = (".sqlite", ".sqlite3", ".db", ".vscdb")


def facts(
    connection: sqlite3.Connection, database: Path, *, has_disk: bool = True
) -> dict[str, Any]:
    """Return the fields of a `Status`; without a disk, no home is looked at."""
    runs = _rows(connection, "reports/status_runs")
    clock = Clock(connection)
    is_running = bool(runs) and _is_cut_off(runs[0]) and has_writer(database)
    failed = [run for run in runs if run["error"] is not None or _is_cut_off(run)]
    beside = (database, log_of(database))
    sources = _rows(connection, "reports/status_sources")
    for row in sources:
        source = SOURCES.get(str(row["kind"]))
        row["package"] = source.package if source is not None else None
        row["checked"] = source.checked if source is not None else None
    return {
        "database": str(database),
        "size": sum(path.stat().st_size for path in beside if path.exists()),
        "sources": sources,
        "last_run": runs[0] if runs else None,
        "is_running": is_running,
        "failed_runs": failed[1:] if is_running else failed,
        "clock_behind": clock.behind,
        "clock_ahead": clock.ahead,
        "issues": _rows(connection, "reports/issues_by_reason"),
        "unreadable": _unreadable(sources) if has_disk else [],
        "unusable_sources": [unusable._asdict() for unusable in SOURCES.unusable],
        "absent_sources": sorted({str(row["kind"]) for row in sources} - SOURCES.keys()),
        "new_lines": _new_lines(connection),
        "newer_versions": _newer_versions(connection),
        "new_places": _new_places(connection, sources) if has_disk else [],
        "pending": _pending(connection),
    }


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


def _newer_versions(connection: sqlite3.Connection) -> list[_Row]:
    """Return of each source the newest version that its reader was not checked with, if any."""
    found: dict[str, _Row] = {}
    for row in sql.ask(connection, "pages/agent_versions"):
        source = SOURCES.get(str(row["source"]))
        words = (source.checked or "").split() if source is not None else []
        if source is None or not words:
            continue
        checked, version = _numbers(words[-1]), _numbers(row["version"])
        if version[: len(checked)] <= checked:
            continue
        about = {**row, "label": source.label, "checked": source.checked}
        kept = found.setdefault(source.name, {**about, "sessions": 0})
        sessions = int(str(kept["sessions"])) + int(str(row["sessions"]))
        newest = max(kept, about, key=lambda one: _numbers(one["version"]))
        found[source.name] = {**newest, "sessions": sessions}
    return sorted(found.values(), key=lambda row: str(row["label"]))


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


def _rows(connection: sqlite3.Connection, name: str) -> list[_Row]:
    return [dict(row) for row in sql.ask(connection, name)]
