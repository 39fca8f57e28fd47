"""Which conversations edited a file, read it, ran something on it, or talked about it.

The full-text index finds the calls that were given the name; the path that a call was applied to
says whether it is this file. One file has several paths: in worktrees of its repository, and
relative to the directory in which an agent worked.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from .. import sql
from ..project_paths import comparable, in_repository, is_windows, slashed
from ..records import EDIT, READ, RUN
from . import terms
from .changed_text import shortly
from .evidence import Evidence, line_of, strings_of, texts_of
from .expressions import SAID, TOOLS, in_scope
from .terms import Term

_CALLS = 3000  # that were given a name
_TEXTS = 300  # of edits that are read
_SAID = 100


class Places:
    """Paths of files in the form that is the same in all worktrees of a repository."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = sql.ask(connection, "pages/project_names").fetchall()
        paths = {row["id"]: comparable(row["path"]) for row in rows if row["path"]}
        self._moved = {
            paths[row["id"]]: paths[row["parent_id"]]
            for row in rows
            if row["id"] in paths and row["parent_id"] in paths
        }
        self.roots = sorted(set(paths.values()), key=len, reverse=True)

    def of(self, path: str, directory: str | None = None) -> str:
        """Return the path of a file; `directory` is where a relative one begins."""
        text = slashed(path)
        if not text.startswith("/") and not is_windows(text) and directory:
            text = f"{slashed(directory)}/{text}"
        place = comparable(posixpath.normpath(text))
        for top, parent in self._moved.items():
            if place.startswith(f"{top}/"):
                return parent + place[len(top) :]
        return in_repository(place)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that is asked for: all paths that it may have, or the end of one."""

    places: Places
    paths: tuple[str, ...] = ()
    end: str = ""

    @classmethod
    def at(cls, connection: sqlite3.Connection, *paths: str) -> Wanted:
        """Return the file with one of these absolute paths."""
        places = Places(connection)
        return cls(places, tuple(places.of(path) for path in paths))

    @property
    def names(self) -> list[str]:
        """The last components of its paths."""
        return list(dict.fromkeys(posixpath.basename(path) for path in (*self.paths, self.end)))

    def fits(self, place: str) -> bool:
        """Is this its path?"""
        if self.paths:
            return place in self.paths
        end = self.end.casefold() if is_windows(place) else self.end
        return place == end or place.endswith(f"/{end}")


@dataclass(frozen=True, slots=True)
class Use:
    """A call that was applied to a file."""

    row: sqlite3.Row
    place: str
    """The path of the file, as `Places` has it."""


def uses_of(
    connection: sqlite3.Connection, wanted: Wanted, actions: tuple[str, ...], project: str | None
) -> list[Use]:
    """Return the calls that were applied to a file, the last read first."""
    rows = sql.ask(
        connection, "pages/blame_calls",
        match=in_scope(TOOLS, _phrases(wanted)), actions=json.dumps(actions), project=project,
        limit=_CALLS,
    )  # fmt: skip
    found = []
    for row in rows:
        paths = json.loads(row["paths"]) if row["paths"] else [row["target"]]
        for path in paths if isinstance(paths, list) else ():
            place = wanted.places.of(str(path), row["cwd"]) if path else ""
            if place and wanted.fits(place):
                found.append(Use(row, place))
    return found


def edits_of(
    connection: sqlite3.Connection, wanted: Wanted, project: str | None, line: str = ""
) -> Iterator[Evidence]:
    """Yield the edits of a file; those that wrote a line first."""
    uses = uses_of(connection, wanted, (EDIT,), project)
    texts = texts_of(connection, [use.row["call_id"] for use in uses[:_TEXTS]])
    for use in uses:
        text = texts.get(use.row["call_id"], "")
        wrote = bool(line) and line in strings_of(text)
        changed = f"wrote this line · {_changed(text)}" if wrote else _changed(text)
        yield _evidence(use.row, "edited", changed or use.place, 0 if wrote or not line else 1)


def evidence_of_file(
    connection: sqlite3.Connection, wanted: Wanted, project: str | None, line: str = ""
) -> Iterator[Evidence]:
    """Yield what was done with a file, and said of it."""
    yield from edits_of(connection, wanted, project, line)
    for use in uses_of(connection, wanted, (READ,), project):
        yield _evidence(use.row, "read", str(use.row["target"]))
    yield from _mentions(connection, wanted, project)


def _mentions(
    connection: sqlite3.Connection, wanted: Wanted, project: str | None
) -> Iterator[Evidence]:
    """Yield the commands and texts that name a file, by as much of its path as tells it apart."""
    ends = _told_apart(wanted)
    phrases = " OR ".join(Term(end).expression() for end in ends)
    rows = sql.ask(
        connection, "pages/blame_calls", match=in_scope(TOOLS, phrases),
        actions=json.dumps([RUN]), project=project, limit=_SAID,
    ).fetchall()  # fmt: skip
    for row in rows:
        if any(end in (row["target"] or "") for end in ends):
            yield _evidence(row, "mentioned", row["target"], 1)
    rows = sql.ask(
        connection, "pages/blame_said", match=in_scope(SAID, phrases), project=project, limit=_SAID
    ).fetchall()
    texts = texts_of(connection, [row["id"] for row in rows])
    for row in rows:
        text = texts[row["id"]]
        for end in ends:
            if (at := text.find(end)) >= 0:
                yield Evidence(
                    "mentioned", row["session_id"], row["subagent_id"], row["file_id"],
                    row["byte_offset"], row["timestamp"], line_of(text, at),
                )  # fmt: skip
                break


def _told_apart(wanted: Wanted) -> list[str]:
    """Return the paths below their projects, which is how people and commands name a file."""
    if not wanted.paths:
        return [wanted.end]
    ends = []
    for path in wanted.paths:
        top = next((root for root in wanted.places.roots if path.startswith(f"{root}/")), None)
        ends.append(path[len(top) + 1 :] if top else path)
    return list(dict.fromkeys(ends))


def _phrases(wanted: Wanted) -> str:
    known = [name for name in wanted.names if terms.TOKEN.search(name)]
    return " OR ".join(Term(name).expression() for name in known) or '""'


def _changed(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:  # it was cut
        return ""
    return shortly(value) if isinstance(value, dict) else ""


def _evidence(row: sqlite3.Row, grade: str, text: str, rank: int = 0) -> Evidence:
    return Evidence(
        grade, row["session_id"], row["subagent_id"], row["file_id"], row["byte_offset"],
        row["timestamp"], line_of(text), row["tool"], rank,
    )  # fmt: skip
