"""The Datasette plugin: pages made for reading, over the tables that Datasette shows."""

from __future__ import annotations

from pluggy import HookimplMarker

from .routes import View, routes

# Datasette's own name for it; taken from pluggy, so that importing this loads no Datasette.
hookimpl = HookimplMarker("datasette")


@hookimpl
def register_routes() -> list[tuple[str, View]]:
    """Return our pages: a pattern for the path, and what answers it."""
    return routes()
