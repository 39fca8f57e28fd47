"""What `remote status` and `push` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ask.output import say, write, write_lines
from ..fleet.connect import shown
from ..fleet.push import report
from ..terminal import safe_json, size

if TYPE_CHECKING:
    from ..fleet.administration import Comparison
    from ..fleet.push import Preview, Report
    from ..fleet.state import State


def write_standing(state: State, standing: Comparison, *, as_json: bool) -> None:
    """Print a comparison of this machine with the server."""
    if as_json:
        known = standing.known
        write(
            [
                safe_json(
                    {
                        "destination": shown(state.destination),
                        "label": state.label,
                        "uuid": state.uuid,
                        "version": known.version if known else None,
                        "is_current": standing.is_current,
                        "files": standing.there,
                        "gone": standing.gone,
                        "outside": standing.outside,
                        "is_indexed": standing.is_indexed,
                        "missing_migrations": standing.missing,
                        "all_projects": state.all_projects,
                        "allowed": state.allowed,
                    }
                )
                + "\n"
            ]
        )
        return
    write(line + "\n" for line in _lines(state, standing))


def _lines(state: State, standing: Comparison) -> list[str]:
    what = "everything" if state.all_projects else f"{len(state.allowed):,} projects"
    lines = [f"server: {shown(state.destination)}", f"machine: {state.label} ({state.uuid})"]
    lines.append(f"allowed: {what}")
    if standing.known is None:
        lines.append("pushed: nothing yet")
    else:
        current = "up to date" if standing.is_current else "a push is due"
        lines.append(f"pushed: {standing.there:,} files, {current}")
    if standing.gone:
        lines.append(
            f"kept: {standing.gone:,} files that are no longer here (`remote prune` deletes them)"
        )
    if standing.outside:
        lines.append(f"not allowed: {standing.outside:,} files (`remote withdraw` deletes them)")
    if not standing.is_indexed:
        lines.append("search: no text index yet, so a search reads everything (`remote index`)")
    if standing.missing:
        lines.append(f"schema: {standing.missing[0]} is missing, run `remote migrate`")
    return lines


def write_preview(preview: Preview, *, as_json: bool) -> None:
    """Print what a push would look at."""
    if as_json:
        write([safe_json(preview.as_json()) + "\n"])
    else:
        write_lines(report(preview))


def write_report(done: Report, *, as_json: bool) -> None:
    if as_json:
        write(
            [
                safe_json(
                    {
                        "files": done.files,
                        "frames": done.frames,
                        "rows": done.rows,
                        "bytes": done.size,
                        "deleted": done.deleted,
                        "calls": done.calls,
                        "version": done.version,
                        "is_full": done.is_full,
                        "waiting": done.waiting,
                    }
                )
                + "\n"
            ]
        )
    elif not (done.rows or done.frames or done.deleted):
        say("The server is up to date.")
    else:
        deleted = f", deleted {done.deleted:,}" if done.deleted else ""
        say(
            f"Pushed {done.rows:,} rows and {done.frames:,} stretches of {done.files:,} "
            f"files ({size(done.size)}){deleted}."
        )
    if done.waiting and not as_json:
        say(
            f"Not pushed yet: {done.waiting:,} files that came back. Their keys in the database "
            "have to change: stop `watch` for one push."
        )
