"""The pages of the plugin: which address is answered by which view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

View = Callable[[Any, Any], Awaitable[Any]]


def routes() -> list[tuple[str, View]]:
    """Return a regular expression and a view for each page."""
    return []
