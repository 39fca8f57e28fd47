"""What a reference opens, as text and as JSON: a conversation, a part of it, or an entry of a
store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import islice

from .. import sql, terminal
from ..errors import NotFoundError, UsageError
from ..files.archive import LineIndex
from ..terminal import one_line, readable, wrap
from . import excerpt as excerpts
from . import show
from .answer import Answer, Item, Wanted
from .conversation import Conversation
from .excerpt import Excerpt, Options
from .query import bindable
from .refs import STORES, KeyMatch, Line, Names, name_of, prompt_files, resolve, split
from .show import Look, spent_of

# ------------------------------------------------------------------------------------------------
# Prints entries that are no messages: tasks, plans, prompts of the history and the like.
#
# Each is found by the name that `refs` gives it, or by the beginning of that; a document also by
# the end of its path. What several homes have under one name is all shown.


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
            f"Its names look like this: {STORES[store]}"
        )
    return entries


def entry_lines(entries: list[Entry], look: Look) -> Iterator[str]:
    """Yield the lines of entries: their facts, place and text."""
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
            terminal.moment(entry.time),
            f"gone since {terminal.moment(entry.gone_at)}" if entry.gone_at else None,
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


def entry_as_json(
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
        raise UsageError(f"Name a prompt by its line in the history: {STORES['prompt']}")
    files = prompt_files(connection)
    if not 1 <= int(number[:_DIGITS]) <= len(files):
        raise NotFoundError(
            f"There is no history {number}: {terminal.many(len(files), 'history', 'histories')} "
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
        raise NotFoundError(f"The history of prompts has no prompt after line {line}.")
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


# ------------------------------------------------------------------------------------------------
# A conversation, or a part of it, as the JSON answer of `answer`: one item for each message.
#
# Beside the frame it has `session`, with what is known of the conversation, and `subagent`, the
# key of the one that was asked for. The messages of subagents come behind those of the
# conversation that called them, each with its `agent_key`.


PLACE = {
    "ref": "string or null",
    "line": "integer or null",
    "is_marked": "integer, where a line was asked for",
    "agent_key": "string or null",
}
"""The fields of an item with the place of its message, before those of the message."""

_MOST_FILES = 20
_MOST_COUNTED = 5_000
"""Messages of a session that are counted for `total`: they are read to know which are shown."""


def excerpt_as_json(
    conversation: Conversation,
    what: KeyMatch | Line | None = None,
    options: Options | None = None,
    wanted: Wanted | None = None,
    limit: int | None = None,
) -> Iterator[str]:
    """Yield the pieces of the answer, with at most `limit` messages.

    Of a part of a conversation, the items are that part, and a message of the line that was asked
    for has is_marked 1.
    """
    options = options or Options()
    what = what or KeyMatch(str(conversation.session["session_key"]))
    excerpt = excerpts.choose(conversation, what, options)
    place = what.number if isinstance(what, Line) else None
    asked = ["show", conversation.session["session_key"], whose(excerpt), place, repr(options)]
    answer = Answer(conversation.connection, asked, wanted or Wanted())
    items = islice(_items(conversation, excerpt, options), answer.start, None)
    total = None
    (rows,) = conversation.connection.execute(
        "select count(*) from messages where session_id = ?", (conversation.session["id"],)
    ).fetchone()
    if rows <= _MOST_COUNTED:
        found = excerpts.selections(conversation, excerpt, options)
        total = sum(1 for _, messages in found for _ in messages)
    before = {"session": _session(conversation), "subagent": whose(excerpt)}
    yield from answer.pieces(items, total=total, limit=limit, before=before)


def whose(excerpt: Excerpt) -> str | None:
    """Return the key of the requested subagent, None for a conversation."""
    return excerpt.subagent.agent_key if excerpt.subagent else None


def _session(conversation: Conversation) -> dict[str, object]:
    """Return what is known of a session; of very many files only the first."""
    files = [file._asdict() for file in conversation.files[:_MOST_FILES]]
    return {
        **conversation.session,
        **spent_of(conversation).as_json(),
        "models": conversation.models,
        "file_count": len(conversation.files),
        "files": files,
        "subagent_count": len(conversation.subagents),
        "resume": conversation.resume,
    }


def _items(conversation: Conversation, excerpt: Excerpt, options: Options) -> Iterator[Item]:
    names = conversation.names()
    for subagent, messages in excerpts.selections(conversation, excerpt, options):
        agent_key = subagent.agent_key if subagent else None
        for message in messages:
            line = names.line(message.file_id, message.byte_offset)
            place: Item = {"ref": names.at(message.file_id, line), "line": line}
            marked = {"is_marked": int(message.id in excerpt.marks)} if excerpt.marks else {}
            yield {**place, **marked, "agent_key": agent_key, **message.as_json()}


# ------------------------------------------------------------------------------------------------
# What a reference opens: a conversation, a part of it, or an entry of another kind.


Opened = tuple[Conversation, KeyMatch | Line] | list[Entry]


def opened(connection: sqlite3.Connection, reference: str, options: Options) -> Opened:
    """Return what a reference means: a place in a conversation, or entries of another kind.

    Raises NotFoundError or UsageError where it means nothing, or not what the options ask for.
    """
    if (named := split(reference)) is not None:
        options.check(None)
        try:
            return find(connection, *named)
        except NotFoundError as error:
            try:  # a session may be called like a store
                what = resolve(connection, reference)
            except (NotFoundError, UsageError):
                raise error from None
    else:
        what = resolve(connection, reference)
    options.check(what)
    key = what.key if isinstance(what, Line) else what
    session = what.file.session_id if isinstance(what, Line) else what.session_id
    return Conversation(connection, key.session_key, session_id=session), what


def has_mark(found: Opened) -> bool:
    return not isinstance(found, list) and isinstance(found[1], Line)


def lines(found: Opened, look: Look, options: Options) -> Iterator[str]:
    if isinstance(found, list):
        return entry_lines(found, look)
    return show.lines(found[0], look, found[1], options)


def as_json(
    connection: sqlite3.Connection,
    reference: str,
    options: Options,
    wanted: Wanted,
    limit: int | None = None,
) -> Iterator[str]:
    """Yield the pieces of what a reference opens as one JSON object, see `answer`."""
    found = opened(connection, reference, options)
    if isinstance(found, list):
        return entry_as_json(connection, reference, found, wanted)
    return excerpt_as_json(found[0], found[1], options, wanted, limit)
