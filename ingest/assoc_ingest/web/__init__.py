"""The Datasette plugin: pages made for reading, over the tables that Datasette shows."""

from __future__ import annotations

from datasette import hookimpl

from .routes import View, routes


@hookimpl  # type: ignore[untyped-decorator]
def register_routes() -> list[tuple[str, View]]:
    """Return our pages: a pattern for the path, and what answers it."""
    return routes()
