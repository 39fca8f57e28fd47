"""What a shell may complete: keys of sessions, projects, sources, kinds, queries and lists.

A completion never fails and never waits: where there is no database, there is nothing to complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import sqlite3

    from click.shell_completion import CompletionItem

_MOST = 50
_TITLE = 60  # columns


def sessions(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the key of a session; its title explains it."""
    from ..ask.lookup import sessions_beginning_with
    from ..terminal import cut, one_line

    with _reading(context) as connection:
        rows = sessions_beginning_with(connection, begun)[:_MOST] if connection else []
        return _items(
            {row["session_key"]: cut(one_line(row["title"] or ""), _TITLE) for row in rows}
        )


def projects(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a project; its path explains it."""
    from .. import sql

    with _reading(context) as connection:
        rows = sql.ask(connection, "pages/project_names") if connection else []
        named = {row["name"]: row["path"] for row in rows if row["name"]}
    found = [(name, path) for name, path in sorted(named.items()) if name.startswith(begun)]
    return _items(dict(found[:_MOST]))


def sources(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Complete the name of a source."""
    from ..ask.filters import source_names

    return [name for name in source_names() if name.startswith(begun)]


def kinds(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Complete the kind of a hit."""
    from ..ask.filters import MESSAGE_KINDS, WHAT

    return [kind for kind in dict.fromkeys((*WHAT, *MESSAGE_KINDS)) if kind.startswith(begun)]


def reports(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a report; its title explains it."""
    return _queries("reports", begun)


def lists(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a list; its title explains it."""
    return _queries("lists", begun)


def _queries(folder: str, begun: str) -> list[CompletionItem]:
    from .. import sql

    found = sql.queries(folder).items()
    return _items({name: one.title for name, one in found if name.startswith(begun)})


def _items(explained: dict[str, str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(value, help=text) for value, text in explained.items()]


@contextmanager
def _reading(context: click.Context) -> Iterator[sqlite3.Connection | None]:
    """Open the database that the command line names; None if it cannot be read."""
    import sqlite3

    from ..errors import AssocIngestError
    from ..store.database import open_reader

    try:
        connection = open_reader(Path(context.params["database"]))
    except (AssocIngestError, sqlite3.Error, OSError, KeyError, TypeError):
        yield None
        return
    with closing(connection):
        yield connection
