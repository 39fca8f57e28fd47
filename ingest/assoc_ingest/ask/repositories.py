"""Which repository `--repository` means: a directory, an address, or a name.

1. An absolute path, `.` and `~` are the repository of the project there, or of the nearest above.
2. An address of its remote is that repository, in any spelling.
3. Anything else is its name, else the end of its name (`shop` of `me/shop`), else a part of it, in
   any case, if only one repository has it.

All clones and worktrees of a repository are meant, as `derive` has found them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import NoReturn

from .. import sql
from ..errors import NotFoundError, UsageError, did_you_mean
from ..remotes import remote_of
from .projects import as_path, nearest_above

_LISTED = 20
_SEE_THEM = "To see them: assoc-ingest list repositories"


def find_repository(connection: sqlite3.Connection, repository: str) -> list[int]:
    """Return the ids of the projects of a repository: at least one.

    Raises NotFoundError with the nearest name, and UsageError with all that the text could mean.
    """
    known = sql.ask(connection, "pages/project_names").fetchall()
    names = {str(row["repository_key"]): str(row["repository"]) for row in known}
    key = _key(repository, known, names)
    return [int(row["id"]) for row in known if row["repository_key"] == key]


def repositories(connection: sqlite3.Connection) -> dict[str, str]:
    """Return for the id of each project what names its repository, and no other one."""
    known = sql.ask(connection, "pages/project_names").fetchall()
    keys: dict[str, set[str]] = {}
    for row in known:
        keys.setdefault(row["repository"], set()).add(row["repository_key"])
    shared = {name for name, of_name in keys.items() if len(of_name) > 1}
    return {
        str(row["id"]): row["repository_key" if row["repository"] in shared else "repository"]
        for row in known
    }


def _key(repository: str, known: list[sqlite3.Row], names: dict[str, str]) -> str:
    if repository in names:  # what `repositories` calls one whose name others have, too
        return repository
    named = [key for key, name in names.items() if name == repository]
    if len(named) == 1:
        return named[0]
    path = as_path(repository)
    if path is not None:
        above = nearest_above(path, known)
        if above is None:
            raise NotFoundError(f"No repository has the path {path!r}. {_SEE_THEM}")
        return str(above["repository_key"])
    remote = remote_of(repository)
    if remote is not None and str(remote).casefold() in names:
        return str(remote).casefold()
    wanted = repository.casefold().strip("/")
    ways: tuple[Callable[[str], bool], ...] = (
        lambda text: text == repository,
        lambda text: text.casefold() == wanted,
        lambda text: text.casefold().endswith(f"/{wanted}"),
        lambda text: wanted in text.casefold(),
    )
    for fits in ways if wanted else ():
        meant = [key for key, name in names.items() if fits(name)]
        if len(meant) > 1:
            _is_unclear(repository, [names[key] for key in meant])
        if meant:
            return meant[0]
    hint = did_you_mean(repository, names.values(), show=repr)
    raise NotFoundError(f"No repository is named {repository!r}.{hint} {_SEE_THEM}")


def _is_unclear(repository: str, names: list[str]) -> NoReturn:
    listed = "".join(f"\n  {name}" for name in sorted(names)[:_LISTED])
    more = f"\n  and {len(names) - _LISTED} more" if names[_LISTED:] else ""
    raise UsageError(
        f"{repository!r} names {len(names)} repositories; give the whole name of one:{listed}{more}"
    )
