"""Which projects `--project` means, decided in one place: an id, a path, or a name.

1. An absolute path is the project at exactly that path. So are `.`, `~` and paths that begin so.
2. A number is an id, as printed by `list projects --json`.
3. Anything else is a name, or the name of the directory below `projects/`, in the same case.
4. Commands that read also accept another case, and a part of a name or path if only one project
   has it. For them, a name includes the worktrees of that repository: what was said there is
   about it, too.

Commands that remove accept only the first three, and nothing that could mean two projects.
"""

from __future__ import annotations

import posixpath
import sqlite3
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from pathlib import Path, PureWindowsPath
from typing import NoReturn

from .. import sql
from ..errors import NotFoundError, UsageError, did_you_mean
from ..paths import comparable, comparable_name, here, slashed
from .refs import shared_length

_LISTED = 20
_COMPARED = 200
_LEAST_SHARED = 2  # parts of a path, of which the first of most is empty
_ID_DIGITS = 19
_SEE_THEM = "To see them: assoc-ingest list projects"


def find_projects(
    connection: sqlite3.Connection,
    project: str,
    *,
    exactly: bool = False,
    with_worktrees: bool = True,
) -> list[int]:
    """Return the ids of the projects that `project` means: at least one.

    A directory is a project in each root that knows it. With `exactly`, the text must name one
    directory in full. Raises NotFoundError with the nearest, and UsageError with all that the text
    could mean.
    """
    known = sql.ask(connection, "pages/project_names").fetchall()
    path = as_path(project)
    if path is not None:
        return _ids(_at(path, known) or _missing_path(path, known))
    by_id = [row for row in known if _is_id(project) and row["id"] == int(project)]
    by_name = [row for row in known if row["name"] == project]
    by_key = [row for row in known if row["key"] == comparable_name(project)]
    if exactly:
        found = _only(project, _unique(by_id + by_name + by_key))
        return _ids(_same(found or _not_exact(project, known), known))
    if by_id:
        return _ids(_same(by_id, known))
    found = by_name or by_key or _in_other_case(project, known)
    found = found or _only(project, _loosely(project, known)) or _missing(project, known)
    found = _same(found, known)
    if with_worktrees:
        found = _unique([*found, *_same(_worktrees(found, known), known)])
    return _ids(found)


# -- what the text is ------------------------------------------------------------------------------


def as_path(project: str) -> str | None:
    """Return `project` as an absolute path, None if it is an id or a name."""
    text = slashed(project) if PureWindowsPath(project).is_absolute() else project
    if text.split("/")[0] in (".", ".."):
        directory = here()
        if directory is None:
            raise UsageError(
                "The current directory no longer exists. Give a project: --project NAME"
            )
        text = (directory / text).as_posix()
    elif text.startswith("~"):
        text = _expanded(text)
    is_path = text.startswith("/") or PureWindowsPath(text).is_absolute()
    return posixpath.normpath(text) if is_path else None


def _expanded(text: str) -> str:
    """Return a path below a user's home; if there is no such home, it is a name."""
    try:
        return Path(text).expanduser().as_posix()
    except RuntimeError:
        return text


def _is_id(project: str) -> bool:
    digits = project.removeprefix("-")  # an id of a server can be negative
    return digits.isascii() and digits.isdigit() and len(digits) <= _ID_DIGITS


# -- what fits it ----------------------------------------------------------------------------------


def _at(path: str, known: Iterable[sqlite3.Row]) -> list[sqlite3.Row]:
    place = comparable(path)
    return [row for row in known if row["path"] and comparable(row["path"]) == place]


def nearest_above(path: str, known: Iterable[sqlite3.Row]) -> sqlite3.Row | None:
    """Return the project at a path, else the nearest one above it, None if there is none."""
    inside = f"{comparable(path).rstrip('/')}/"
    above = [
        row
        for row in known
        if row["path"] and inside.startswith(f"{comparable(row['path']).rstrip('/')}/")
    ]
    return max(above, key=lambda row: len(row["path"]), default=None)


def _in_other_case(project: str, known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return the projects whose name differs only in case, if they all have the same name."""
    rows = [row for row in known if (row["name"] or "").casefold() == project.casefold()]
    return rows if len({row["name"] for row in rows}) == 1 else []


def _loosely(project: str, known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return the projects with this name in any case or, if none, with the text in name or path."""
    wanted = project.casefold()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda text: text == wanted,
        lambda text: bool(wanted) and wanted.replace("\\", "/") in text,
    )
    for fits in tests:
        rows = [row for row in known if any(fits(text.casefold()) for text in _texts(row))]
        if rows:
            return rows
    return []


def _texts(row: sqlite3.Row) -> tuple[str, ...]:
    return tuple(filter(None, (row["name"], row["key"], row["path"])))


def _ids(rows: Iterable[sqlite3.Row]) -> list[int]:
    return [int(row["id"]) for row in rows]


def _unique(rows: Iterable[sqlite3.Row]) -> list[sqlite3.Row]:
    return list({row["id"]: row for row in rows}.values())


def _place(row: sqlite3.Row) -> str:
    return comparable(row["path"]) if row["path"] else str(row["key"])


def _same(found: list[sqlite3.Row], known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return all projects in the same directories: each agent and home has its own."""
    directories = {row["same_as"] or row["id"] for row in found}
    return [row for row in known if (row["same_as"] or row["id"]) in directories]


def _worktrees(found: list[sqlite3.Row], known: list[sqlite3.Row]) -> list[sqlite3.Row]:
    ids = set(_ids(found))
    return [row for row in known if row["parent_id"] in ids]


# -- what does not ---------------------------------------------------------------------------------


def _only(project: str, rows: list[sqlite3.Row]) -> list[sqlite3.Row]:
    """Return the rows; raise if they are of several directories."""
    if len({_place(row) for row in rows}) > 1:
        raise UsageError(
            f"{project!r} matches {len(rows)} projects; give the path or id of one:{_listed(rows)}"
        )
    return rows


def _listed(rows: list[sqlite3.Row]) -> str:
    lines = [f"\n  {row['id']}  {row['path'] or row['key']}" for row in rows[:_LISTED]]
    return "".join(lines) + (f"\n  and {len(rows) - _LISTED} more" if rows[_LISTED:] else "")


def _not_exact(project: str, known: list[sqlite3.Row]) -> NoReturn:
    if found := _loosely(project, known):
        raise UsageError(
            f"No project is named exactly {project!r}; give the name, path or id of one:"
            f"{_listed(found)}"
        )
    _missing(project, known)


def _missing(project: str, known: list[sqlite3.Row]) -> NoReturn:
    hint = did_you_mean(project, (row["name"] for row in known if row["name"]), show=repr)
    raise NotFoundError(f"No project is named {project!r}.{hint} {_SEE_THEM}")


def _missing_path(path: str, known: list[sqlite3.Row]) -> NoReturn:
    parts = {row["path"]: comparable(row["path"]).split("/") for row in known if row["path"]}
    nearest = _nearest(comparable(path).split("/"), parts)
    hint = f" Did you mean {nearest!r}?" if nearest else ""
    raise NotFoundError(f"No project has the path {path!r}.{hint} {_SEE_THEM}")


def _nearest(wanted: list[str], known: dict[str, list[str]]) -> str | None:
    """Return the path that shares most of its first parts, among those the most similar one."""
    if not known:
        return None
    shared = {text: shared_length(wanted, parts) for text, parts in known.items()}
    longest = max(shared.values())
    if longest < _LEAST_SHARED:
        return None
    candidates = sorted(text for text, length in shared.items() if length == longest)
    matcher = SequenceMatcher(b="/".join(wanted).casefold(), autojunk=False)

    def likeness(text: str) -> float:
        matcher.set_seq1(text.casefold())
        return matcher.ratio()

    return max(candidates[:_COMPARED], key=likeness)
