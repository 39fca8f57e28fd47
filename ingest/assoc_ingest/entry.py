"""Conversations that are not files of their own: how a source describes where they are.

A conversation can be rows of a program's own SQLite database, or many small files. Either way it is
an *entry* of a store, the database or the directory: a document that is always read as a whole, and
that consists of lines, one for each row or file, in reading order:

    {"table":"part","id":"prt_1","message_id":"msg_1","data":{"type":"text","text":"hello"}}

The path of an entry is `<store>#<key>`; that of a subagent is `<store>#<key of the conversation>#
<key>`. There is no such file on disk; `restore` writes the lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_MARK = "#"
_DEEPEST = 100  # subagents below each other; a circle of parents would have no end
_is_key = re.compile(r"[A-Za-z0-9_.:@+-]{1,200}").fullmatch


class Table(NamedTuple):
    """The rows of a table that belong to an entry, or to a row of another table."""

    name: str
    columns: tuple[str, ...]
    """The columns that are read, and no others. One that a version lacks is left out."""
    where: str
    """An SQL condition with `:key`, the key of the entry, and `:above`, the id of the row that
    these rows follow."""
    order: str = "id"
    id: str = "id"
    json: str | None = None
    """A column that has JSON: it becomes `data`, byte for byte."""
    rows: tuple[Table, ...] = ()
    """Tables whose rows follow each row of this one."""


class Database(NamedTuple):
    """How the entries of a database are found and read. Only these statements run on it."""

    listing: str
    """Selects of each entry its key, the key of the one above it if it is a subagent's, when it
    changed (in milliseconds), and whatever else shows that it has changed."""
    counts: tuple[str, ...]
    """Select of each entry its key, a number of rows, and more that shows that it has changed."""
    tables: tuple[Table, ...]
    unread: tuple[str, ...] = ()
    """Tables that this version cannot read: an issue says so if they have rows."""


class Member(NamedTuple):
    """A file that is a row of an entry: its table and id, and its path as names."""

    table: str
    id: str
    parts: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    """Fields of its object that are never read."""


class Gathered(NamedTuple):
    """An entry that consists of files, in reading order; `above` is as in `Database.listing`."""

    key: str
    above: str | None
    members: list[Member]


def is_entry_key(key: object) -> bool:
    """Can this be the key of an entry, and so a part of its path?"""
    return isinstance(key, str) and _is_key(key) is not None


def entry_path(store: str, key: str, above: Mapping[str, str | None]) -> str:
    """Return the path of an entry; `above` has the key above each entry, as far as it has one."""
    top = key
    for _ in range(_DEEPEST):
        parent = above.get(top)
        if parent is None or parent == key or not is_entry_key(parent):
            break
        top = parent
    return _MARK.join([store, key] if top == key else [store, top, key])


def entry_names(name: str) -> tuple[str, str, str | None] | None:
    """Return store, conversation and subagent of an entry's path; None if it is not one."""
    store, *keys = name.split(_MARK)
    if not keys or len(keys) > 2 or not all(map(is_entry_key, keys)):
        return None
    return store, keys[0], keys[1] if len(keys) == 2 else None
