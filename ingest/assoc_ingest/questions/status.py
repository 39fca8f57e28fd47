"""`status`: what is indexed, how far, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import terminal
from ..terminal import many, moment, safe
from .question import Reader, Size, question

_Row = dict[str, object]
_LISTED = 10


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
    unusable_sources: list[_Row]
    """Sources of installed packages that could not be loaded: name, package and reason."""
    absent_sources: list[str]
    """Sources that have conversations here, and that no installed package brings any more."""
    new_lines: list[_Row]
    """Types of lines that no reader knows, with the oldest version of the agent that wrote them."""
    newer_versions: list[_Row]
    """The newest version of an agent that is newer than those with which its reader was checked,
    and how many conversations such versions wrote."""
    new_places: list[_Row]
    """Directories and databases in homes that no reader knows, with the newest version of the agent
    that was read there. They are not opened."""
    pending: int
    """The number of forgotten items that may have left traces in the database file."""

    @property
    def said(self) -> str:
        """The last sync, in a sentence."""
        run = self.last_run
        if run is None:
            return "No sync has run yet."
        text = f"Last sync {moment(str(run['started_at']))}"
        if run["finished_at"] is None:
            return f"{text}, {'still running' if self.is_running else 'interrupted'}"
        counts = [
            many(int(str(run[name])), word)
            for name, word in (("files_read", "file"), ("rows", "block"), ("issues", "issue"))
        ]
        return f"{text}: {', '.join(counts)}, {terminal.size(int(str(run['bytes_read'])))}"

    @property
    def brought(self) -> list[str]:
        """Which packages bring the sources that are not this program's own, in a sentence each."""
        packages = {row["kind"]: row["package"] for row in self.sources if row["package"]}
        return [safe(f"{kind} is read by the package {name}.") for kind, name in packages.items()]

    @property
    def faults(self) -> list[str]:
        """What is wrong, in a sentence each."""
        from ..store.database import of_clock_behind, said

        faults = []
        for run in self.failed_runs[:_LISTED]:
            how = f"failed: {run['error']}" if run["error"] else "was interrupted"
            faults.append(f"The sync of {moment(str(run['started_at']))} {how}")
        if self.clock_behind:
            faults.append(of_clock_behind(self.clock_behind))
        if self.clock_ahead:
            ahead = said(self.clock_ahead)
            faults.append(f"A sync was recorded at {ahead}: the clock was ahead.")
        faults += [f"Could not read {row['root']}: {row['reason']}" for row in self.unreadable]
        faults += [
            safe(f"The source {row['name']} of {row['package']} cannot be used: {row['reason']}.")
            for row in self.unusable_sources
        ]
        return faults + [
            f"No installed package brings the source {name}: what was read stays, and no more is"
            " read."
            for name in self.absent_sources
        ]

    @property
    def news(self) -> list[str]:
        """What no reader knows, in a sentence each."""
        return [
            *sentences_of(self.new_lines),
            *map(sentence_of_version, self.newer_versions),
            *sentences_of_places(self.new_places),
        ]


@question(
    "What is indexed",
    items="",
    about="",
    tables=("sources", "sync_runs", "issues", "line_types"),
    terminal=Size(0), json=Size(0), web=Size(0),
)  # fmt: skip
def status(reader: Reader) -> Status:
    """Show what is indexed, how current it is, and any problems.

    \b
    Example:
      assoc-ingest status
    """
    from ..upkeep.status import facts

    (_, _, path) = reader.db.execute("pragma database_list").fetchone()
    return Status(**facts(reader.db, Path(path), has_disk=reader.has_disk))


def sentences_of(rows: list[_Row]) -> Iterator[str]:
    """Yield a sentence for each version of an agent that writes lines of unknown types."""
    versions: dict[str, list[_Row]] = {}
    for row in rows:
        versions.setdefault(f"{row['label']} {row['version'] or ''}".strip(), []).append(row)
    for version, new in versions.items():
        named = [
            f"{' '.join(filter(None, (str(row['type']), str(row['subtype']))))}"
            f" ({many(int(str(row['lines'])), 'line')})"
            for row in new[:_LISTED]
        ]
        more = f" and {len(new) - _LISTED} more" if len(new) > _LISTED else ""
        are = "kind of line is" if len(new) == 1 else "kinds of lines are"
        yield safe(f"{len(new)} {are} new in {version}: {', '.join(named)}{more}")


def sentence_of_version(row: _Row) -> str:
    """Say that a version of an agent is newer than those with which its reader was checked."""
    conversations = many(int(str(row["sessions"])), "conversation")
    return safe(
        f"{row['label']} {row['version']} is newer than what its reader was checked with"
        f" ({row['checked']}): {conversations}"
    )


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
