"""Prints entries that are no messages: tasks, plans, prompts of the history and the like.

Each is found by the name that `refs` gives it, or by the beginning of that; a document also by the
end of its path. What several homes have under one name is all shown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches

from .. import humanize, sql
from ..errors import NotFoundError, UsageError
from ..files.line_index import LineIndex
from ..terminal import one_line, readable, wrap
from .answer import Answer, Wanted
from .page import Look
from .query_parser import bindable
from .refs import STORES, Names, name_of, prompt_files

_MOST = 200  # entries that are shown of one name
_NEAREST = 3
_LONGEST = 200  # letters of a name that are compared
_DEEP = frozenset({"task", "inbox", "output", "document"})
"""Stores in which a name may end with the name of one of several entries."""
_NUMBERED = frozenset({"inbox", "document"})
"""Those in which that is a number."""
_WHAT = {"output": "tool_result_file"}
"""What the view `searchable` calls a store, where that is not its name."""
_DIGITS = 18  # of a number that SQLite can hold


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry with its text, whole."""

    ref: str | None
    what: str
    kind: str | None
    """status of a task, a thing to do or a plan; kind of a document or a message of an inbox"""
    title: str | None
    text: str | None
    facts: str | None
    """who owns or sent it, or the project of a prompt"""
    time: str | None
    gone_at: str | None
    session_key: str | None
    session: str | None
    file: str
    stated: str | None
    """reference of the line of a transcript that states it"""


def find(connection: sqlite3.Connection, store: str, name: str) -> list[Entry]:
    """Return the entries with a name; raise NotFoundError with the nearest names if none has it."""
    if store == "prompt":
        return [_prompt(connection, name)]
    names = Names(connection)
    found = (_entry(connection, store, id_, names) for id_ in _ids(connection, store, name))
    entries = [entry for entry in found if entry is not None]
    if not entries:
        raise NotFoundError(
            f"There is no {store} {name!r}{_nearest(connection, store, name)}. "
            f"It is named like this: {STORES[store]}"
        )
    return entries


def lines(entries: list[Entry], look: Look) -> Iterator[str]:
    """Yield the lines of entries: what each is, where it stands, and its text."""
    place: tuple[str | None, str] | None = None
    for number, entry in enumerate(entries):
        if number:
            yield ""
        if place != (entry.session_key, entry.file):
            place = entry.session_key, entry.file
            yield from _where(entry, look)
        title = entry.title or (entry.text if entry.what == "todo" else None)
        for line in wrap(one_line(title), look.width) if title else ():
            yield look.paint(line, bold=True)
        known = [
            entry.ref,
            entry.kind,
            entry.facts,
            humanize.moment(entry.time),
            f"gone since {humanize.moment(entry.gone_at)}" if entry.gone_at else None,
            f"stated in {entry.stated}" if entry.stated not in (None, entry.ref) else None,
        ]
        facts = " · ".join(one_line(fact) for fact in known if fact)
        yield from (look.paint(line, "cyan") for line in wrap(facts, look.width))
        if entry.text and entry.text != title:
            yield ""
            yield from wrap(readable(entry.text.strip("\n")), look.width)
    if len(entries) == _MOST:
        yield look.paint(f"· only the first {_MOST} are shown; give a longer name", dim=True)


def _where(entry: Entry, look: Look) -> Iterator[str]:
    """Yield the lines that say to which session an entry belongs, and in which file it is."""
    if entry.session_key and entry.session:
        of = one_line(f"session {entry.session_key} · {entry.session}")
        yield from (look.paint(line, dim=True) for line in wrap(of, look.width))
    if entry.file:
        yield look.paint(one_line(entry.file), dim=True)  # not cut: it is there to be copied


def as_json(
    connection: sqlite3.Connection, reference: str, entries: list[Entry], wanted: Wanted
) -> Iterator[str]:
    """Yield the pieces of the answer: one item for each entry."""
    answer = Answer(connection, ["show", reference], wanted)
    items = (asdict(entry) for entry in entries[answer.start :])
    return answer.pieces(items, total=len(entries))


def _ids(connection: sqlite3.Connection, store: str, name: str) -> list[int]:
    """Return the ids of the entries with a name: this very one, else what begins with it."""
    name = bindable(name.strip())
    head, slash, tail = name.rpartition("/")
    if store == "output":  # a file of it may lie in a directory
        head, slash, tail = name.partition("/")
    parts: list[tuple[str, str | int | None]] = [(name, None)]
    if slash and store in _DEEP:
        is_number = store in _NUMBERED and tail.isdecimal()
        parts.append((head, int(tail[:_DIGITS]) if is_number else tail))
    for is_prefix in (None, 1):
        for first, second in parts:
            if not first:
                continue
            given = {"head": first, "tail": second, "is_prefix": is_prefix, "limit": _MOST}
            if store == "inbox":  # counts the messages of an inbox once, not once for each of them
                found = sql.ask(connection, "pages/open_inbox", **given).fetchall()
            else:
                found = sql.ask(
                    connection, "pages/open_entries", what=_WHAT.get(store, store), **given
                ).fetchall()
            if found:
                return [row["id"] for row in found]
    return []


def _prompt(connection: sqlite3.Connection, name: str) -> Entry:
    """Return the prompt at LINE, or at LINE of the N-th history: `N/LINE`."""
    number, slash, line = name.strip().rpartition("/")
    number = number if slash else "1"
    if not all(part.isascii() and part.isdigit() for part in (number, line)):
        raise UsageError(f"A prompt is named by its line in the history: {STORES['prompt']}")
    files = prompt_files(connection)
    if not 1 <= int(number[:_DIGITS]) <= len(files):
        raise NotFoundError(
            f"There is no history {number}: {humanize.many(len(files), 'history', 'histories')} "
            "of prompts are indexed."
        )
    file = files[int(number[:_DIGITS]) - 1]["id"]
    index, wanted = LineIndex(connection, file), int(line[:_DIGITS])
    start = index.start(wanted) if wanted else None
    if start is None:
        raise NotFoundError(
            f"The history of prompts has no line {line}: it has lines 1 to {index.count()}."
        )
    row = sql.ask(connection, "pages/open_prompt", file=file, byte_offset=start).fetchone()
    if row is None:
        raise NotFoundError(f"The history of prompts has no prompt behind line {line}.")
    entry = _entry(connection, "prompt", row["id"], Names(connection))
    if entry is None:
        raise NotFoundError("The history of prompts is being read again. Ask once more.")
    return entry


def _entry(connection: sqlite3.Connection, store: str, id_: int, names: Names) -> Entry | None:
    """Return an entry; None if a sync has replaced it since its id was read."""
    row = sql.ask(connection, "pages/entry", what=_WHAT.get(store, store), id=id_).fetchone()
    if row is None:
        return None
    path = f"{row['root']}/{row['path']}" if row["path"] else ""
    ref = name_of(connection, row) or names.of(row["file_id"], row["byte_offset"])
    stated = None
    if row["channel"] == "transcript" and row["file_id"] is not None:
        stated = names.of(row["file_id"], row["byte_offset"])
    return Entry(
        ref=ref,
        what=store,
        kind=row["kind"],
        title=row["title"],
        text=row["text"],
        facts=row["facts"],
        time=row["timestamp"],
        gone_at=row["gone_at"],
        session_key=row["session_key"],
        session=row["session"],
        file=path,
        stated=stated,
    )


def _nearest(connection: sqlite3.Connection, store: str, name: str) -> str:
    rows = sql.ask(connection, "pages/reference_names", what=_WHAT.get(store, store))
    names = [str(row["name"])[:_LONGEST] for row in rows]
    found = get_close_matches(name[:_LONGEST], names, _NEAREST, 0.4)
    listed = ", ".join(one_line(f"{store}:{near}") for near in found)
    return f"; the nearest are {listed}" if listed else ""
