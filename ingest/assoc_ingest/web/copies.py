"""What a fork repeats: a run of copied messages is one line, which leads to the originals."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping

from .. import humanize, sql
from .entries import Entry
from .pages import cut
from .permalinks import Place, Row


def folded(entries: Iterable[Entry], rows: Mapping[int, Row], own: str) -> Iterator[Entry]:
    """Yield entries; what follows each other and was first said in one other conversation is one.

    `own` is the key of the conversation whose page it is, and `rows` has the places of its
    messages.
    """
    run: list[Entry] = []
    days: list[Entry] = []  # behind the run: they are part of it if it goes on
    for entry in entries:
        if run and not entry.id:
            days.append(entry)
            continue
        row = rows.get(entry.id)
        source = row.original_session if row is not None and row.original_session != own else None
        if run and source != rows[run[0].id].original_session:
            yield _fold(run, rows[run[0].id])
            yield from days
            run, days = [], []
        if source is None:
            yield entry
        else:
            run += [*days, entry]
            days = []
    if run:
        yield _fold(run, rows[run[0].id])
    yield from days


def _fold(run: list[Entry], row: Row) -> Entry:
    """Return one entry for a run of copies; its link is that of the first."""
    messages = sum(1 + len(entry.ids) for entry in run if entry.id)
    return Entry(
        0, "copies", cut(row.original_title or row.original_session or ""), "copies",
        summary=f"{humanize.many(messages, 'message')} copied from another conversation",
        entries=run,
        is_open=any(entry.is_open for entry in run),
        original=run[0].original,
    )  # fmt: skip


def with_beginning(
    connection: sqlite3.Connection, entries: list[Entry], rows: Mapping[int, Row]
) -> tuple[list[Entry], Place | None]:
    """Return entries with a line before the first message of a fork that is no copy.

    Also return the place of that message, which may be on a later page; None without copies.
    """
    first = next((number for number, one in enumerate(entries) if one.shape == "copies"), None)
    if first is None:
        return entries, None
    place = rows[next(one.id for one in entries[first].entries if one.id)].place
    own = sql.ask(connection, "pages/first_own_message", file=place.file).fetchone()
    if own is None or (own["byte_offset"], own["block"]) < place[1:]:
        return entries, None
    beginning = Place(place.file, own["byte_offset"], own["block"])
    for number, entry in enumerate(entries):
        if own["id"] in (entry.id, *entry.ids):
            rule = Entry(0, "rule", "This conversation becomes new here", "new")
            return [*entries[:number], rule, *entries[number:]], beginning
    return entries, beginning
