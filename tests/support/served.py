"""Pages of Datasette with our plugin, as a browser asks for them, on the line that is installed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from assoc_ingest import sql

_made: list[Any] = []


def made(*databases: Path | str, **parts: Any) -> Any:
    """Return a new Datasette over the databases, which `closed_at_end` closes."""
    from datasette.app import Datasette

    _made.append(Datasette([str(path) for path in databases], **parts))
    return _made[-1]


@contextmanager
def closed_at_end() -> Iterator[None]:
    """Close what is made meanwhile.

    Datasette 0.65 keeps its connections as long as the process lives. After a few hundred pages
    there are too many descriptors for `select`. Datasette 1.0 does this itself.
    """
    before = len(_made)
    yield
    while len(_made) > before:
        datasette = _made.pop()
        if not is_line_1():
            datasette.executor.shutdown()
            for database in datasette.databases.values():
                database.close()


def bare(*databases: Path) -> Any:
    """Return a Datasette over the databases that was told nothing of them."""
    datasette = made(*databases)
    asyncio.run(datasette.invoke_startup())
    return datasette


def served(
    *databases: Path,
    plugins: object = None,
    denied: str | None = None,
    queries: object = None,
    settings: object = None,
) -> Any:
    """Return a Datasette over the databases, with metadata.yml keyed to the first one's name.

    `denied` is a table of it that nobody may see; '' is the whole database. `queries` are those
    that its user has made.
    """
    metadata = yaml.safe_load(sql.data("metadata.yml").read_text("utf-8"))
    entry = metadata["databases"][databases[0].stem] = metadata["databases"].pop("assoc")
    if denied is not None:
        (entry["tables"][denied] if denied else entry)["allow"] = False
    if queries:
        entry["queries"] = queries
    parts: dict[str, Any] = {"metadata": metadata}
    if is_line_1():
        parts["config"] = metadata  # 1.0 takes the settings of tables from its configuration
    if settings:
        parts["settings"] = settings
    if plugins:
        metadata["plugins"] = plugins
    datasette = made(*databases, **parts)
    asyncio.run(datasette.invoke_startup())
    return datasette


def is_line_1() -> bool:
    """Is Datasette 1.0, or one on the way to it, installed?"""
    from datasette.version import __version__

    return not str(__version__).startswith("0.")


def get(datasette: Any, path: str, **headers: str) -> Any:
    """Return the answer to a GET; in names of headers, _ stands for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def ask() -> Any:
        return await datasette.client.get(path, headers=named)

    return asyncio.run(ask())


def data(datasette: Any, path: str) -> Any:
    """Return the rows that a page has, as objects."""
    answer = get(datasette, f"{path}{'&' if '?' in path else '?'}_shape=array")
    assert answer.status_code == 200, answer.text
    return answer.json()


def links(page: str) -> set[str]:
    """Return where the links of a page lead."""
    return set(re.findall(r'<a [^>]*href="([^"]*)"', page))
