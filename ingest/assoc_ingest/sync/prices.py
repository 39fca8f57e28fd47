"""Prices of the models in the database: those of the user, else of the library `genai-prices`.

The library contains its data: nothing is fetched. A model is looked up when it first appears, and
again after an update of the library. A model whose prices the user has changed or added is left
alone. One that the library does not know has no price: its cost is unknown, not guessed. That is
remembered, too, since importing the library takes a fifth of a second. Most syncs find no new
model: they only look whether the library is the one that was asked before.

What one version of the library says of most models is in `prices.json` (`make prices`), and the
library is not imported for these. If another version is installed, the library is asked.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from .. import sql
from ..errors import NotFoundError
from ..store.database import transaction

OWN = "user"
"""The value of `prices.origin` for prices of the user."""

TABLE = "prices.json"
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
    origin = _asked_before(connection) or _of_table() or installed()
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
    known = {model: _prices(model, origin) for model in models}
    with transaction(connection):
        for model, prices in known.items():
            _replace(connection, model, prices, origin)


def _replace(
    connection: sqlite3.Connection, model: str, prices: Sequence[Price], origin: str
) -> None:
    """Store these prices in place of all others of the model, or that it has none."""
    connection.execute("delete from unpriced where model = ?", (model,))
    if not prices:
        connection.execute("insert into unpriced (model, origin) values (?, ?)", (model, origin))
        return
    connection.execute("delete from prices where model = ?", (model,))
    columns = ("model", *Price._fields, "origin")
    connection.executemany(
        f"insert into prices ({', '.join(columns)}) values ({', '.join('?' * len(columns))})",
        ((model, *price, origin) for price in prices),
    )


# -- prices of the user --------------------------------------------------------------------------


def set_price(connection: sqlite3.Connection, model: str, dollars: Mapping[str, float]) -> None:
    """Store the user's price of a model, for all days, in place of any other.

    `dollars` for a million tokens, by column. Costs are computed from prices when they are asked
    for, so they follow at once.
    """
    from decimal import Decimal

    amounts = [
        None if (amount := dollars.get(column)) is None else round(Decimal(str(amount)) * _MICRO)
        for column, _ in _UNITS
    ]
    with transaction(connection):
        _replace(connection, model, [Price("", 0, *amounts)], OWN)


def remove_price(connection: sqlite3.Connection, model: str) -> None:
    """Remove the user's price of a model; that of the library takes its place.

    Raises NotFoundError if the user has set none.
    """
    if not connection.execute(
        "select 1 from prices where model = ? and origin = ?", (model, OWN)
    ).fetchone():
        raise NotFoundError(
            f"You have set no price for {model!r}. To see all prices: assoc-ingest price list"
        )
    prices = list(library_prices(model))
    with transaction(connection):
        connection.execute("delete from prices where model = ?", (model,))
        if prices or used(connection, model):
            _replace(connection, model, prices, installed())


def used(connection: sqlite3.Connection, model: str) -> bool:
    """Is there a response of this model?"""
    query = "select 1 from responses where model = ? limit 1"
    return connection.execute(query, (model,)).fetchone() is not None


def all_prices(connection: sqlite3.Connection, model: str | None = None) -> list[dict[str, object]]:
    """Return the prices in dollars, and the models of responses that have none."""
    rows = connection.execute(
        "select p.model, nullif(p.valid_from, '') as valid_from,"
        " nullif(p.above_tokens, 0) as above_tokens, p.input / 1e6 as input,"
        " p.output / 1e6 as output, p.cache_read / 1e6 as cache_read,"
        " p.cache_write_5m / 1e6 as cache_write, p.cache_write_1h / 1e6 as cache_write_1h,"
        " p.web_search / 1e6 as web_search, p.origin"
        " from prices p where p.model = coalesce(:model, p.model)"
        " union all select u.model, null, null, null, null, null, null, null, null, null"
        " from unpriced u where u.model = coalesce(:model, u.model)"
        " and not exists (select 1 from prices p where p.model = u.model)"
        " order by 1, 2, 3",
        {"model": model},
    )
    names = [column[0] for column in rows.description]
    return [dict(zip(names, row, strict=True)) for row in rows]


# -- prices of the library -----------------------------------------------------------------------


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
    try:
        (Path(package.origin).parents[1] / f"{_PACKAGE}-{number}.dist-info").stat()
    except FileNotFoundError:
        return False
    except OSError:  # this user may not look there, so no other version can be asked either
        return True
    return True


@cache
def installed() -> str:
    """Return the value of `prices.origin` for prices from the installed library."""
    from importlib.metadata import version

    return f"{_LIBRARY} {version(_LIBRARY)}"


def _of_table() -> str | None:
    """Return the version of the library that the table is from, if it is installed."""
    origin = _table()["origin"]
    return origin if is_installed(origin) else None


def _prices(model: str, origin: str) -> list[Price]:
    """Return the prices of a model in this version of the library, which is installed."""
    if _table()["origin"] == origin and (prices := _table()["models"].get(model)):
        return [Price(*price) for price in prices]
    return list(library_prices(model))


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(sql.data(TABLE).read_text("utf-8"))
    return table


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
