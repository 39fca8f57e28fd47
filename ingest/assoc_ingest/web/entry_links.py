"""Gives the entries of a page their addresses, those that are inside of others included."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from . import permalinks
from .entries import Entry
from .permalinks import Permalinks, Row


def set_links(
    connection: sqlite3.Connection,
    addresses: Permalinks,
    entries: Iterable[Entry],
    targets: frozenset[int],
) -> dict[int, Row]:
    """Set the addresses of entries, and mark the first that shows one of the messages `targets`.

    Returns the places of their messages.
    """
    every = list(nested_in(entries))
    rows = permalinks.rows(connection, {one for entry in every for one in (entry.id, *entry.ids)})
    places = {row.place for row in rows.values()}
    links = addresses.of(places | {row.original for row in rows.values() if row.original})
    is_marked = False
    for entry in every:
        row = rows.get(entry.id)
        if row is None:
            continue
        entry.link = links.get(row.place)
        for picture in entry.pictures:
            if picture.message in rows:
                picture.address = addresses.image(rows[picture.message].place, picture.number)
        inside = [links.get(rows[one].place) for one in entry.ids if one in rows]
        entry.inside = [link.anchor for link in inside if link is not None]
        if row.original is not None and row.original in links:
            entry.original = links[row.original].address
        if not is_marked and not targets.isdisjoint((entry.id, *entry.ids)):
            entry.is_target = is_marked = True
    return rows


def nested_in(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries and those of the subagents in them, in order."""
    for entry in entries:
        yield entry
        for agent in entry.agents:
            yield from nested_in(agent.entries or ())
