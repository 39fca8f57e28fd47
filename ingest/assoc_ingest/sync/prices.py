"""Prices of the models in the database, taken from the library `genai-prices`.

The library contains its data: nothing is fetched. A model is looked up when it first appears, and
again after an update of the library. A model whose prices the user has changed or added is left
alone. One that the library does not know has no price: its cost is unknown, not guessed. That is
remembered, too, since importing the library takes half a second. Most syncs find no new model: they
only look whether the library is the one that was asked before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..store.transaction import transaction

_LIBRARY, _PACKAGE = "genai-prices", "genai_prices"
_MICRO = 1_000_000
# Columns of `prices` and the library's names, in its unit: dollars per million tokens.
_UNITS = (
    ("input", "input_mtok"),
    ("output", "output_mtok"),
    ("cache_read", "cache_read_mtok"),
    ("cache_write_5m", "cache_write_mtok"),
    ("cache_write_1h", "cache_write_1h_mtok"),
    ("web_search", "web_searches_kcount"),
)


class Price(NamedTuple):
    """A row of `prices`, without model and origin; amounts in millionths of a dollar."""

    valid_from: str
    above_tokens: int
    input: int | None
    output: int | None
    cache_read: int | None
    cache_write_5m: int | None
    cache_write_1h: int | None
    web_search: int | None


def refresh_prices(connection: sqlite3.Connection) -> None:
    """Add the prices of models that have none, or have them from another library version."""
    origin = _asked_before(connection) or installed()
    models = [
        model
        for (model,) in connection.execute(
            # From one model to the next in the index: `distinct` would scan all responses.
            "with recursive used (model) as ("
            " select min(model) from responses"
            " union all select (select min(r.model) from responses r where r.model > used.model)"
            " from used where used.model is not null)"
            " select model from used where model is not null"
            " except select model from prices where origin in (?1, 'user')"
            " except select model from unpriced where origin = ?1",
            (origin,),
        )
    ]
    if not models:
        return
    known = {model: list(library_prices(model)) for model in models}
    columns = ("model", *Price._fields, "origin")
    with transaction(connection):
        for model, prices in known.items():
            connection.execute("delete from unpriced where model = ?", (model,))
            if not prices:
                connection.execute(
                    "insert into unpriced (model, origin) values (?, ?)", (model, origin)
                )
                continue
            connection.execute("delete from prices where model = ?", (model,))
            connection.executemany(
                f"insert into prices ({', '.join(columns)})"
                f" values ({', '.join('?' * len(columns))})",
                ((model, *price, origin) for price in prices),
            )


def _asked_before(connection: sqlite3.Connection) -> str | None:
    """Return the origin that all prices have that are not the user's, if it is still installed."""
    rows = connection.execute(
        "select origin from prices where origin <> 'user' union select origin from unpriced limit 2"
    )
    found = [origin for (origin,) in rows]
    return found[0] if len(found) == 1 and is_installed(found[0]) else None


def is_installed(origin: str) -> bool:
    """Is this version of the library installed? False if that takes longer to find out.

    The name of a directory says so. `importlib.metadata` reads what is in it, and to import that
    takes as long as the sync of a line.
    """
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None:
        return False
    number = origin.removeprefix(f"{_LIBRARY} ")
    return (Path(package.origin).parents[1] / f"{_PACKAGE}-{number}.dist-info").is_dir()


@cache
def installed() -> str:
    """Return the value of `prices.origin` for prices from the installed library."""
    from importlib.metadata import version

    return f"{_LIBRARY} {version(_LIBRARY)}"


def library_prices(model: str) -> Iterator[Price]:
    """Yield the prices of a model as the library states them; none if it does not know it."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return
    stated = found.prices
    by_start: dict[str, Any] = {}
    for entry in stated if isinstance(stated, list) else [stated]:
        constraint = getattr(entry, "constraint", None)
        start = getattr(constraint, "start_date", None)
        if constraint is None or start is not None:  # prices by time of day are not kept
            by_start[start.isoformat() if start else ""] = getattr(entry, "prices", entry)
    for start, amounts in sorted(by_start.items()):
        for above in sorted({0, *_thresholds(amounts)}):
            yield Price(start, above, *(_amount(amounts, name, above) for _, name in _UNITS))


def _thresholds(amounts: Any) -> Iterator[int]:
    """Yield the input sizes from which another price applies to the whole request."""
    for _, name in _UNITS:
        for tier in getattr(getattr(amounts, name, None), "tiers", ()):
            yield tier.start


def _amount(amounts: Any, name: str, above: int) -> int | None:
    value = getattr(amounts, name, None)
    if value is None:
        return None
    if hasattr(value, "tiers"):
        price = value.base
        for tier in value.tiers:
            if tier.start <= above:
                price = tier.price
        value = price
    from decimal import Decimal

    return round(Decimal(value) * _MICRO)
