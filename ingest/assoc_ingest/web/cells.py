"""Readable cells in Datasette's tables: times, links to conversations, addresses.

Only what is known to be harmless becomes HTML, and all text in it is escaped.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from ..humanize import moment, unknown_of

_time = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)
# No letters that end an attribute, cannot be seen, or turn the direction of what is read.
_address = re.compile(
    r"https?://[^\s<>\"'`\\\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]+"
)

_BOUNDED = frozenset({
    "cost_usd", "cost_with_worktrees_usd", "cost_microusd", "output_tokens", "tokens",
})  # fmt: skip
"""Columns that are lower bounds where responses are partial or unpriced."""

_LONG = 100  # letters of an address that are shown


def is_worth_it(column: str, value: object) -> bool:
    """Could the cell become anything but its plain text? Asked of every cell, so it is quick."""
    if isinstance(value, int | float):
        return column in _BOUNDED
    if not isinstance(value, str) or not value:
        return False
    return column in ("session_key", "session", "title") or bool(
        _time.fullmatch(value) or _address.fullmatch(value)
    )


def cell(row: Any, value: str | float, column: str, table: str | None, base: str) -> Markup | None:
    """Return a cell as HTML, None where it stays as it is.

    `table` is None for the rows of a query. `base` is the address of the database, without a slash
    at its end.
    """
    if not isinstance(value, str):
        counts = {name: _get(row, name) for name in ("partial", "unpriced", "is_lower_bound")}
        known = {name: count for name, count in counts.items() if count is not _ABSENT}
        return Markup("≥{}").format(value) if any(unknown_of(column, known)) else None
    if column == "session_key":
        return _conversation(base, value, value)
    if _is_title_of_session(row, column, table):
        return _conversation(base, _get(row, "session_key"), value)
    if _time.fullmatch(value):
        return _moment(value)
    if _address.fullmatch(value):
        shown = value if len(value) <= _LONG else value[:_LONG] + "…"
        return Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>').format(value, shown)
    return None


def conversation_path(key: str) -> str:
    """Return where the page of a conversation is below the address of its database."""
    return f"/-/session/{quote(key, safe='')}"


def _is_title_of_session(row: Any, column: str, table: str | None) -> bool:
    """Is this the title of the conversation whose key is in the same row?

    Where a query has a column `session`, its `title` is that of something else: a plan, a link.
    """
    if table not in (None, "sessions") or not isinstance(_get(row, "session_key"), str):
        return False
    return column == "session" or (column == "title" and _get(row, "session") is _ABSENT)


def _conversation(base: str, key: str, text: str) -> Markup:
    return Markup('<a href="{}{}">{}</a>').format(base, conversation_path(key), text)


def _moment(value: str) -> Markup | None:
    try:
        shown = moment(value)
    except ValueError:  # the thirtieth of February
        return None
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(value, shown)


_ABSENT = object()


def _get(row: Any, column: str) -> Any:
    try:
        return row[column]
    except (KeyError, IndexError):  # a row of SQLite raises the second one
        return _ABSENT
