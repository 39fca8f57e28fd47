"""What a push would send, counted: `push --dry-run`, and what a first push asks about.

No text of a conversation is in it. Nothing is sent, and the server is not asked: it is what would
be compared with the server, all of it or what changed since the last push.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import humanize
from ..terminal import safe, table, table_width
from .local import Local
from .projection import COUNTS_START


@dataclass(slots=True)
class ProjectPart:
    """What would be sent of one project."""

    path: str | None
    """None: what belongs to no project, or to one whose directory is not known."""
    files: int = 0
    messages: int = 0
    bytes: int = 0
    """Compressed, as they are sent."""


@dataclass(slots=True)
class Preview:
    """What would be compared with the server, and sent where it differs."""

    destination: str
    label: str
    is_everything: bool
    """All projects may leave this machine, and what several share."""
    is_full: bool
    """Everything is compared, not only what changed since the last push."""
    projects: list[ProjectPart] = field(default_factory=list)
    keyed_rows: int = 0
    """Rows about sessions, tasks and the like."""
    forgotten_files: int = 0
    masks: dict[str, int] | None = None
    """How many credentials are covered, by kind; None: none is looked for."""

    def as_json(self) -> dict[str, Any]:
        """Return it as it is printed with `--json`."""
        sums = {
            name: sum(getattr(part, name) for part in self.projects)
            for name in ("files", "messages", "bytes")
        }
        return {**asdict(self), **sums}


def preview(local: Local, since: int | None, destination: str, label: str) -> Preview:
    """Return what a push of the local database would look at. The caller holds a snapshot."""
    found = Preview(destination, label, local.scope.projects is None, since is None)
    parts: dict[str | None, ProjectPart] = {}
    for file in local.files(since):
        content = local.content(file)
        path = _project_path(local.connection, file.id)
        part = parts.setdefault(path, ProjectPart(path))
        part.files += 1
        for frame in content.frames:
            part.bytes += len(frame.data or b"")
            if frame.start != COUNTS_START:
                part.messages += len(frame.rows.get("messages", ()))
    found.projects = sorted(parts.values(), key=lambda part: (-part.bytes, part.path or ""))
    found.keyed_rows = sum(len(keyed.rows) for keyed in local.keyed(since))
    found.forgotten_files = len(local.gone_file_keys(since))
    if local.masks.is_on:
        found.masks = dict(sorted(local.masks.counts.items()))
    return found


def _project_path(connection: sqlite3.Connection, file_id: int) -> str | None:
    row = connection.execute(
        "select p.path from files f left join sessions s on s.id = f.session_id"
        " left join projects p on p.id = iif(f.session_id is null, f.project_id, s.project_id)"
        " where f.id = ?",
        (file_id,),
    ).fetchone()
    return None if row is None else row[0]


def report(found: Preview) -> Iterator[str]:
    """Yield the lines that a person reads."""
    yield f"To {safe(found.destination)}, as {safe(found.label)}"
    if not found.projects and not found.forgotten_files:
        yield _NOTHING_ALLOWED if found.is_full else "Nothing has changed since the last push."
        return
    rows = [
        [
            part.path or "(no project)",
            f"{part.files:,}",
            f"{part.messages:,}",
            humanize.size(part.bytes),
        ]
        for part in found.projects
    ]
    yield from table(("Project", "Files", "Messages", "Size"), rows, table_width())
    yield f"{humanize.many(found.keyed_rows, 'row')} about sessions, tasks and the like"
    if found.forgotten_files:
        yield f"{humanize.many(found.forgotten_files, 'forgotten file')} would be deleted there"
    if found.masks is None:
        yield "Credentials are NOT covered."
        return
    counts = ", ".join(f"{kind} ({count:,})" for kind, count in found.masks.items()) or "none found"
    yield f"Credentials that are covered: {counts}. No pattern finds all of them."


_NOTHING_ALLOWED = (
    "Nothing may leave this machine yet. Allow a project: assoc-ingest remote allow DIRECTORY"
)
