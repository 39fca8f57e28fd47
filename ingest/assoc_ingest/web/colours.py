"""The colour of each model: the same on all pages, whatever else is shown.

It follows from the name. Where two names have the same colour, the model that was used later takes
the next one that is free; when all are taken, one with stripes. So a model that is new changes
none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from zlib import crc32

from .. import sql

COLOURS = 12
"""Colours of assoc.css, `--c0` and so on. Their numbers plus 12 are the same with stripes."""

_MOST = 200  # models that are compared; their colours are all taken long before


class Colours:
    """The numbers of the colours of models, which are given in the order of their first use."""

    def __init__(self, models: Iterable[str]) -> None:
        self._known: dict[str, int] = {}
        free = set(range(2 * COLOURS))
        for model in models:
            own = _own(model)
            plain = [(own + step) % COLOURS for step in range(COLOURS)]
            order = (*plain, *(COLOURS + one for one in plain))
            colour = next((one for one in order if one in free), own)
            free.discard(colour)
            self._known[model] = colour

    def __call__(self, model: str) -> int:
        """Return the colour of a model, whether or not it is known."""
        return self._known.get(model, _own(model))


def of_models(connection: sqlite3.Connection) -> Colours:
    """Return the colours of the models of a database."""
    return Colours(row["model"] for row in sql.ask(connection, "pages/models", limit=_MOST))


def _own(model: str) -> int:
    return crc32(model.encode("utf-8", "replace")) % COLOURS
