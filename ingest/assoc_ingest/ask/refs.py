"""References: short names by which `show` opens what `search` found; keys, files, line numbers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

from .. import sql, terminal
from ..errors import ArchiveError, NotFoundError, UsageError, nearest
from ..fields import bindable
from ..files.archive import LineIndex
from ..terminal import cut, one_line, to_copy

# ------------------------------------------------------------------------------------------------
# Numbers of lines in archived files, as far as the archive still has them.


class Lines:
    """The line numbers of files. It keeps one file open: look up all lines of a file together.

    A line that the archive has lost is None.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._last: tuple[int, LineIndex] | None = None

    def number(self, file: int, offset: int) -> int | None:
        """Return the number, from 1, of the line at an offset."""
        with suppress(ArchiveError):
            return self._of(file).number(offset)
        return None

    def is_start(self, file: int, offset: int) -> bool:
        """Is a line known to begin at an offset? Several objects may be in one."""
        with suppress(ArchiveError):
            index = self._of(file)
            return index.number(offset) is not None and index.is_start(offset)
        return False

    def count(self, file: int) -> int | None:
        with suppress(ArchiveError):
            return self._of(file).count()
        return None

    def _of(self, file: int) -> LineIndex:
        if self._last is None or self._last[0] != file:
            self._last = file, LineIndex(self._connection, file)
        return self._last[1]


# ------------------------------------------------------------------------------------------------
# Finds sessions and subagents by a prefix of their key.


_SHORTEST = 8
_LISTED = 100
_NEAREST = 3
_NEAR = 3  # letters that a key shares with one that is near it


class KeyMatch(NamedTuple):
    """The session, or the subagent of a session, that a key means."""

    session_key: str
    agent_key: str | None = None
    session_id: int | None = None
    """The session of a subagent; several homes can have it."""

    @property
    def text(self) -> str:
        """Return the key itself."""
        return self.agent_key or self.session_key


def find_key(connection: sqlite3.Connection, prefix: str) -> KeyMatch:
    """Return the session or subagent whose key is `prefix` or, if there is none, begins with it.

    A session comes before a subagent. Raises NotFoundError if there is no such key, and UsageError
    if there are several.
    """
    wanted = prefix.strip()
    sessions = sessions_beginning_with(connection, wanted)
    agents = agents_beginning_with(connection, wanted)
    for row in agents:
        if row["agent_key"] == wanted and wanted not in (row["session_key"] for row in sessions):
            return KeyMatch(row["session_key"], wanted, row["session_id"])
    if sessions or not agents:
        return KeyMatch(find_session(connection, prefix))
    keys = dict.fromkeys(str(row["agent_key"]) for row in agents)
    if len(keys) > 1:
        raise UsageError(_ambiguous_agent(prefix, agents))
    return KeyMatch(agents[0]["session_key"], agents[0]["agent_key"], agents[0]["session_id"])


def find_session(connection: sqlite3.Connection, prefix: str) -> str:
    """Return the one session key that begins with `prefix`."""
    wanted = prefix.strip()
    rows = sessions_beginning_with(connection, wanted)
    if not rows:
        if agents := agents_beginning_with(connection, wanted):
            session = one_line(short_key(connection, agents[0]["session_key"]))
            raise NotFoundError(f"{prefix!r} is a subagent. Give its session: {session}")
        raise NotFoundError(
            f"No session matches {prefix!r}{_nearest_keys(connection, wanted)}. "
            "To see them: assoc-ingest list sessions"
        )
    keys = dict.fromkeys(str(row["session_key"]) for row in rows)
    exact = next((key for key in keys if key in (wanted, wanted.lower())), None)
    if exact is None and len(keys) > 1:
        raise UsageError(_ambiguous(prefix, rows))
    return exact or next(iter(keys))


def short_key(connection: sqlite3.Connection, key: str) -> str:
    """Return the shortest beginning of `key`, eight letters at least, that means only it."""
    return shortest(key, _neighbours(connection, key))


def short_keys(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, str]:
    """Return the `short_key` of each key; a server is asked once for all of them."""
    together: Callable[[Iterable[str]], dict[str, str]] | None
    together = getattr(connection, "short_keys", None)
    return together(keys) if together else {key: short_key(connection, key) for key in keys}


def short_agent_key(connection: sqlite3.Connection, key: str) -> str:
    """Return the shortest beginning of a subagent's key that means only it, as `short_key` does."""
    (row,) = sql.ask(connection, "pages/agent_key_neighbours", key=key)
    return shortest(key, (row["before"], row["after"]))


def shortest(key: str, neighbours: Iterable[str | None]) -> str:
    """Return the shortest beginning of `key`, eight letters at least, that none of these has."""
    shared = max(shared_length(key, other or "") for other in neighbours)
    return key[: max(_SHORTEST, shared + 1)]


def sessions_beginning_with(connection: sqlite3.Connection, prefix: str) -> list[sqlite3.Row]:
    """Return the sessions whose key begins with `prefix` or, if there are none, in lower case."""
    for wanted in (prefix.strip(), prefix.strip().lower()):
        cursor = sql.ask(connection, "pages/sessions_by_prefix", prefix=bindable(wanted))
        if rows := cursor.fetchall():
            return rows
    return []


def _ambiguous(prefix: str, rows: list[sqlite3.Row]) -> str:
    lines = [f"{len(rows)} sessions begin with {prefix!r}; give a longer prefix:"]
    for row in rows[:_LISTED]:
        title = cut(one_line(row["title"] or ""), 60)
        lines.append(f"  {row['session_key']}  {(row['ended_at'] or '')[:10]:10}  {title}".rstrip())
    if len(rows) > _LISTED:
        lines.append(f"  and {len(rows) - _LISTED} more")
    return "\n".join(lines)


def _ambiguous_agent(prefix: str, rows: list[sqlite3.Row]) -> str:
    keys = {row["agent_key"]: row["description"] or row["agent_type"] or "" for row in rows}
    lines = [f"{len(keys)} subagents begin with {prefix!r}; give a longer prefix:"]
    for key, text in list(keys.items())[:_LISTED]:
        lines.append(f"  {one_line(key)}  {cut(one_line(text), 60)}".rstrip())
    return "\n".join(lines)


def agents_beginning_with(connection: sqlite3.Connection, prefix: str) -> list[sqlite3.Row]:
    """Return the subagents whose key begins with `prefix`."""
    cursor = sql.ask(connection, "pages/agents_by_prefix", prefix=bindable(prefix))
    return cursor.fetchall() if prefix else []


def nearest_keys(connection: sqlite3.Connection, key: str) -> list[str]:
    """Return the existing keys that are most similar to a wrong one, the nearest first."""
    wanted = key.strip()
    neighbours = filter(None, _neighbours(connection, bindable(wanted)))
    shared = {other: shared_length(wanted, other) for other in neighbours}
    near = [other for other, length in shared.items() if length >= _NEAR]
    return sorted(near, key=lambda other: -shared[other])[:_NEAREST]


def _nearest_keys(connection: sqlite3.Connection, key: str) -> str:
    near = nearest_keys(connection, key)
    listed = ", ".join(one_line(short_key(connection, other)) for other in near)
    return f"; the nearest {'key is' if len(near) == 1 else 'keys are'} {listed}" if near else ""


def _neighbours(connection: sqlite3.Connection, key: str) -> tuple[str | None, ...]:
    (row,) = sql.ask(connection, "pages/key_neighbours", key=key)
    return tuple(row)


def shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many letters, or parts of a path, two of them have in common at the start."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


# ------------------------------------------------------------------------------------------------
# References: the short names by which `show` opens again what `search` found.
#
#     KEY:LINE        a line of a conversation: KEY is the beginning of the key of a session or of a
#                     subagent, LINE the number of the line, from 1, in the file that holds it
#     KEY/2:LINE      the same in the second file of KEY
#     task:LIST/TASK  an entry of another kind, see `STORES`
#
# A session may have several files with messages: two projects, two homes, a path that came back
# with other content. KEY:LINE means the one that `show KEY` shows first: of the home with more of
# the conversation, a transcript before other files, the oldest first. A subagent's file has the
# subagent's key. If a subagent has no file of its own, its lines are those of the session.


STORES = {
    "note": "note:NUMBER",
    "task": "task:LIST/TASK",
    "todo": "todo:SESSION",
    "plan": "plan:NAME",
    "inbox": "inbox:TEAM/NAME/NUMBER",
    "document": "document:PATH",
    "prompt": "prompt:LINE",
    "output": "output:SESSION/FILE",
}
"""What is no line of a conversation, and how it is named. LINE is a line of the prompt history."""

_WORDS = {"tool_result_file": "output"}
"""Kinds of hits that are called something else in a reference."""

_MANY_LINES = 10**15  # more than any file has
_MOST_CALLED = 200  # documents with one file name


class Referable(Protocol):
    """A hit of a search, as far as its reference depends on it."""

    @property
    def what(self) -> str:
        """Return what was found: message, session, task ..."""

    @property
    def id(self) -> int:
        """Return the id of its row."""

    @property
    def session_key(self) -> str | None:
        """Return the key of its session."""


class File(NamedTuple):
    """A file with messages that a key can mean."""

    path: str
    root: str
    gone_at: str | None
    session_id: int
    subagent_id: int | None
    session_key: str
    id: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a conversation that has messages."""

    key: KeyMatch
    file: File
    number: int
    byte_offset: int
    end: int | None
    """Where the next line begins; None after the last one."""
    notes: tuple[str, ...] = ()
    """A note for a reader who asked for another line."""
    is_nearest: bool = False
    """Did the line that was asked for hold no message?"""


def resolve(connection: sqlite3.Connection, text: str) -> KeyMatch | Line:
    """Return the conversation, the subagent or the line that a reference means.

    Raises NotFoundError or UsageError with the nearest ones if it means nothing.
    """
    head, colon, tail = text.strip().rpartition(":")
    if not colon or not head or _is_key(connection, text.strip()):
        return find_key(connection, text)
    if tail.startswith("B") and tail[1:].isascii() and tail[1:].isdigit():
        return _line_at(connection, head, int(tail[1:19]))
    if not (tail.isascii() and tail.isdigit()):
        find_key(connection, head)
        raise UsageError(f"{tail!r} is not the number of a line. An example: {head}:14")
    return _line(connection, head, min(int(tail[:16]), _MANY_LINES))


def split(text: str) -> tuple[str, str] | None:
    """Return the store and the name in a reference such as `plan:NAME`; None for any other."""
    store, _, name = text.strip().partition(":")
    return (store, name) if store in STORES and name else None


class _Place(NamedTuple):
    """Where a hit stands."""

    name: str | None = None
    """Its reference, if that needs no line."""
    line: tuple[int, int] | None = None
    """The file and the offset of its line."""
    is_told: bool = True
    """Does the line help a reader? Not in a file of its own."""


def of_hits(
    connection: sqlite3.Connection, hits: Iterable[Referable]
) -> list[tuple[str | None, int | None]]:
    """Return the reference and the number of the line of each hit, None where it has none.

    Each file is opened once for all hits in it. If the archive has lost the line, the reference is
    the key of the conversation.
    """
    names = Names(connection)
    places = [_place(connection, hit) for hit in hits]
    lines = {
        line: names.line(*line) for line in sorted({place.line for place in places if place.line})
    }
    return [
        (
            place.name or (names.at(place.line[0], lines[place.line]) if place.line else None),
            lines[place.line] if place.line and place.is_told else None,
        )
        for place in places
    ]


class Names:
    """Makes references to lines.

    A server has the bytes of files and would have to send them all, so a line of it is named by its
    offset: `KEY:B3456`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keys: dict[int, tuple[str | None, str]] = {}
        self._lines = Lines(connection)
        self._is_by_byte = getattr(connection, "is_server", False)

    def look_up(self, files: Iterable[int]) -> None:
        """Look up the keys of files together: to ask a server for each would take long."""
        wanted = {*files} - self._keys.keys()
        owners = owners_of(self._connection, wanted)
        numbers = _numbers_of_all(self._connection, owners.values())
        short = short_keys(self._connection, {key.text for key in owners.values()})
        for file, key in owners.items():
            self._keys[file] = short[key.text], _before_line(numbers[key].get(file, 1))

    def of(self, file: int, offset: int) -> str | None:
        """Return the reference to the line at an offset of a file, None if there is none."""
        if self._is_by_byte:
            return self.at(file, f"B{offset}")
        return self.at(file, self.line(file, offset))

    def line(self, file: int, offset: int) -> int | None:
        """Return the number of the line at an offset, None if the archive has lost it."""
        return self._lines.number(file, offset)

    def at(self, file: int, line: int | str | None) -> str | None:
        """Return the reference to a line of a file; its key alone if the line is not known."""
        if file not in self._keys:
            self.look_up([file])
        if file not in self._keys:
            self._keys[file] = self._of_prompts(file)
        key, separator = self._keys[file]
        return f"{key}{separator}{line}" if key and line is not None else key

    def _of_prompts(self, file: int) -> tuple[str | None, str]:
        """Return the name of a file of the prompt history, and what is between it and the line."""
        prompts = [row["id"] for row in prompt_files(self._connection)]
        number = prompts.index(file) + 1 if file in prompts else 0
        return ("prompt" if number else None), f":{number}/" if number > 1 else ":"


def _before_line(number: int) -> str:
    """Return what is between a key and the line in the file of this number."""
    return f"/{number}:" if number > 1 else ":"


def owner_of(connection: sqlite3.Connection, file: int) -> KeyMatch | None:
    """Return the key that means a file, None if it belongs to no conversation."""
    return owners_of(connection, [file]).get(file)


def owners_of(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, KeyMatch]:
    """Return the key that means each of the files that belong to conversations."""
    rows = sql.ask(connection, "pages/file_owners", files=json.dumps([*files]))
    return {
        row["id"]: KeyMatch(row["session_key"], row["agent_key"])
        for row in rows
        if row["session_key"] is not None
    }


def numbers_of(connection: sqlite3.Connection, key: KeyMatch) -> dict[int, int]:
    """Return the number, from 1, of each file that a key can mean."""
    return _numbers_of_all(connection, [key])[key]


def _numbers_of_all(
    connection: sqlite3.Connection, keys: Iterable[KeyMatch]
) -> dict[KeyMatch, dict[int, int]]:
    return {
        key: {file.id: number for number, file in enumerate(files, start=1)}
        for key, files in _files_of_all(connection, {*keys}).items()
    }


def files_of(connection: sqlite3.Connection, key: KeyMatch) -> list[File]:
    """Return the files with messages that a key means, as references number them."""
    return _files_of_all(connection, {key})[key]


def _files_of_all(
    connection: sqlite3.Connection, keys: Collection[KeyMatch]
) -> dict[KeyMatch, list[File]]:
    agents = {key.agent_key for key in keys if key.agent_key is not None}
    sessions = {key.session_key for key in keys if key.agent_key is None}
    files: dict[tuple[str, bool], list[File]] = {}
    if agents:
        asked = json.dumps([*agents])
        for *row, agent in sql.ask(connection, "pages/agent_key_files", agent_keys=asked):
            files.setdefault((agent, True), []).append(File(*row))
    if sessions:
        asked = json.dumps([*sessions])
        for row in sql.ask(connection, "pages/session_key_files", session_keys=asked):
            files.setdefault((row["session_key"], False), []).append(File(*row))
    return {key: files.get((key.text, key.agent_key is not None), []) for key in keys}


def prompt_files(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the files of the prompt history, as references number them."""
    return sql.ask(connection, "pages/prompt_files").fetchall()


def name_of(connection: sqlite3.Connection, row: sqlite3.Row) -> str | None:
    """Return the reference of an entry, a row of pages/entry; None if its line is its name."""
    what, head, tail = row["what"], row["head"], row["tail"]
    if head is None:
        return None
    if row["is_session"]:
        head = short_key(connection, head)
    elif what == "document":
        head = _short_path(connection, head)
    name = head if tail is None else f"{head}/{tail}"
    return f"{_WORDS.get(what, what)}:{name}"


def _short_path(connection: sqlite3.Connection, path: str) -> str:
    """Return the shortest end of a document's path that no other document has."""
    parts = path.split("/")
    called = sql.ask(connection, "pages/documents_called", name=parts[-1]).fetchall()
    if len(called) == _MOST_CALLED:
        return path
    others = [f"/{row['path']}" for row in called if row["path"] != path]
    for start in range(len(parts) - 1, 0, -1):
        end = "/".join(parts[start:])
        if not any(other.endswith(f"/{end}") for other in others):
            return end
    return path


def _place(connection: sqlite3.Connection, hit: Referable) -> _Place:
    if hit.what == "session":
        return _Place(short_key(connection, hit.session_key) if hit.session_key else None)
    if hit.what == "message":
        row = sql.ask(connection, "pages/message_place", id=hit.id).fetchone()
        return _Place(None, (row["file_id"], row["byte_offset"])) if row else _Place()
    if hit.what == "note":
        note = sql.ask(connection, "pages/notes", id=hit.id).fetchone()
        return _Place(note and ref_of_note(connection, Names(connection), note))
    row = sql.ask(connection, "pages/entry", what=hit.what, id=hit.id).fetchone()
    if row is None:
        return _Place()
    name, is_told = name_of(connection, row), row["channel"] == "transcript"
    line = (row["file_id"], row["byte_offset"]) if is_told or name is None else None
    return _Place(name, line, is_told)


def _is_key(connection: sqlite3.Connection, text: str) -> bool:
    """Is this the whole key of a session? A key can look like any reference."""
    cursor = sql.ask(connection, "pages/session", session_key=bindable(text))
    return cursor.fetchone() is not None


def _line(connection: sqlite3.Connection, head: str, wanted: int) -> Line:
    key, file = _file(connection, head)
    return line_of(connection, key, file, wanted, head)


def _line_at(connection: sqlite3.Connection, head: str, offset: int) -> Line:
    key, file = _file(connection, head)
    number = Lines(connection).number(file.id, offset)
    if number is None:
        raise NotFoundError(f"{head} has no byte {offset:,}. Its first line: {head}:1")
    return line_of(connection, key, file, number, head)


def line_of(
    connection: sqlite3.Connection, key: KeyMatch, file: File, wanted: int, head: str
) -> Line:
    """Return a line of a file, or the nearest line with messages. Messages call the file `head`.

    Raises NotFoundError if the file has fewer lines.
    """
    if wanted < 1:
        raise UsageError(f"Lines are counted from 1: {head}:1")
    index = LineIndex(connection, file.id)
    start = index.start(wanted)
    if start is None:
        lines = index.count()
        raise NotFoundError(
            f"Line {wanted:,} is beyond the end ({terminal.many(lines, 'line')}) of {head}. "
            f"Its last line: {head}:{lines}"
        )
    line = Line(key, file, wanted, start, index.start(wanted + 1))
    messages = messages_of(connection, line)
    if not messages:
        return _nearest(connection, index, line, head)
    if all(row["is_elsewhere"] for row in messages):
        return _original(connection, line, messages[0])
    return line


def messages_of(connection: sqlite3.Connection, line: Line) -> list[sqlite3.Row]:
    return sql.ask(
        connection,
        "pages/line_messages",
        file=line.file.id,
        byte_offset=line.byte_offset,
        end_offset=line.end,
    ).fetchall()


def texts_of(connection: sqlite3.Connection, ids: Iterable[int | None]) -> dict[int, str]:
    """Return the texts of messages by their ids."""
    asked = json.dumps([one for one in ids if one is not None])
    rows = sql.ask(connection, "pages/blame_texts", ids=asked)
    return {row["id"]: row["text"] or "" for row in rows}


def _file(connection: sqlite3.Connection, head: str) -> tuple[KeyMatch, File]:
    """Return the key and the file that `KEY` or `KEY/N` means."""
    number = 1
    name, slash, end = head.rpartition("/")
    if slash and end.isascii() and end.isdigit() and not _is_key(connection, head):
        head, number = name, int(end[:9])
    key = find_key(connection, head)
    return key, file_of(connection, key, number, head)


def file_of(connection: sqlite3.Connection, key: KeyMatch, number: int, head: str) -> File:
    """Return one of the files that a key means. Raises NotFoundError if there are fewer."""
    files = files_of(connection, key)
    if not files:
        see = to_copy("show", name=head)
        raise NotFoundError(f"No messages of {head} are indexed. To see it: {see}")
    if not 1 <= number <= len(files):
        raise NotFoundError(
            f"{head} has {terminal.many(len(files), 'file')} with messages, not {number}. "
            f"The first: {head}:1"
        )
    return files[number - 1]


def _nearest(connection: sqlite3.Connection, index: LineIndex, asked: Line, head: str) -> Line:
    file = asked.file
    (row,) = sql.ask(
        connection, "pages/nearest_lines", file=file.id, byte_offset=asked.byte_offset
    ).fetchall()
    lines = {offset: index.number(offset) or 0 for offset in row if offset is not None}
    offset = min(lines, key=lambda at: abs(lines[at] - asked.number))
    note = (
        f"Line {asked.number:,} of {head} holds no message; the nearest that does is "
        f"line {lines[offset]:,}."
    )
    number = lines[offset]
    return Line(asked.key, file, number, offset, index.start(number + 1), (note,), is_nearest=True)


def _original(connection: sqlite3.Connection, asked: Line, row: sqlite3.Row) -> Line:
    """Return the line that another line of the same session repeats."""
    file, offset = row["original_file_id"], row["original_offset"]
    files = files_of(connection, asked.key)
    other = next((one for one in files if one.id == file), None)
    if other is None:
        return asked
    index = LineIndex(connection, file)
    number = index.number(offset) or 0
    reference = Names(connection).at(file, number)
    note = f"Line {asked.number:,} repeats {reference}, which is shown."
    return Line(asked.key, other, number, offset, index.start(number + 1), (note,))


# ------------------------------------------------------------------------------------------------
# Entries that are no messages: tasks, plans, prompts of the history and the like.
#
# An entry is found by the name that `name_of` returns, or by its beginning; a document also by the
# end of its path. If several homes have an entry of this name, all of them are found.


MOST_ENTRIES = 200
"""Entries of one name that are found."""

_LONGEST = 200  # letters of a name that are compared
_DEEP = frozenset({"task", "inbox", "output", "document"})
"""Stores in which a name may end with the name of one of several entries."""
_NUMBERED = frozenset({"inbox", "document"})
"""Those in which that is a number."""
_WHAT = {word: what for what, word in _WORDS.items()}
_DIGITS = 18  # of a number that SQLite can hold


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry with its text, whole."""

    ref: str | None
    what: str
    kind: str | None
    """Status of a task, a to-do or a plan; kind of a document or an inbox message."""
    title: str | None
    text: str | None
    facts: str | None
    """Who owns or sent it, or the project of a prompt."""
    time: str | None
    gone_at: str | None
    session_key: str | None
    session: str | None
    file: str
    stated: str | None
    """The reference of the transcript line that states it, of a note what opens its target."""


def entries_of(connection: sqlite3.Connection, store: str, name: str) -> list[Entry]:
    """Return the entries with a name; raise NotFoundError with the nearest names if none has it."""
    if store == "prompt":
        return [_prompt(connection, name)]
    names = Names(connection)
    rows = (_entry(connection, store, id_, names) for id_ in _ids(connection, store, name))
    entries = [entry for entry in rows if entry is not None]
    if not entries:
        raise NotFoundError(
            f"There is no {store} {name!r}{_nearest_entries(connection, store, name)}. "
            f"Its names look like this: {STORES[store]}"
        )
    return entries


def _ids(connection: sqlite3.Connection, store: str, name: str) -> list[int]:
    """Return the ids of the entries with this name or, if there are none, that begin with it."""
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
            given = {"head": first, "tail": second, "is_prefix": is_prefix, "limit": MOST_ENTRIES}
            if store == "inbox":  # counts the messages of an inbox once, not once for each of them
                rows = sql.ask(connection, "pages/open_inbox", **given).fetchall()
            else:
                rows = sql.ask(
                    connection, "pages/open_entries", what=_WHAT.get(store, store), **given
                ).fetchall()
            if rows:
                return [row["id"] for row in rows]
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
    if store == "note":
        stated = ref_of_note(
            connection, names, sql.ask(connection, "pages/notes", id=id_).fetchone()
        )
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


def ref_of_note(
    connection: sqlite3.Connection, names: Names, row: sqlite3.Row | Mapping[str, Any]
) -> str:
    """Return what opens the target of a note, a row of notes_full; or the note, if nothing does."""
    if row["file_id"] is not None and (ref := names.of(row["file_id"], row["byte_offset"])):
        return ref
    if row["session_id"] is not None and row["line_key"] is None:
        return short_key(connection, row["session_key"])
    return f"note:{row['id']}"


def _nearest_entries(connection: sqlite3.Connection, store: str, name: str) -> str:
    rows = sql.ask(connection, "pages/reference_names", what=_WHAT.get(store, store))
    names = [str(row["name"])[:_LONGEST] for row in rows]
    near = nearest(name, names, _NEAREST, cutoff=0.4)
    listed = ", ".join(one_line(f"{store}:{other}") for other in near)
    return f"; the nearest are {listed}" if listed else ""
