"""Text that was typed while the agent was busy counts once, wherever it was delivered.

A text in the queue leaves an `enqueue` line, which has no uuid, and then usually a second row where
it was delivered. The entry is a copy of that row:

1. An entry is delivered by the first row after it in the file that has the same text and did not
   deliver an earlier one. Slash commands and shell commands are delivered inside tags.
2. `popAll` returns the waiting texts to the input line. In a file that has one, an undelivered
   entry is a draft if a later text begins with it: then it is a copy of that text.
3. A session can have several transcripts that repeat each other's lines. Entries in them are the
   same if time and text are equal; an entry is delivered if it is in any of the files.

An undelivered entry is the only record of what was typed, and counts as a prompt.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator

from .. import tags
from ..sql import id_list
from .changeset import FILE_RANK, Touched

_QUEUED = "kind in ('queued_prompt', 'task_notification') and uuid is null"

Targets = dict[int, int | None]
"""For each entry, the row that it is a copy of."""


def refresh_queued(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> None:
    """Set `copy_of` of all entries that were delivered.

    Rows are only appended, so earlier matches stay, and an open entry can only be delivered by a
    new row. A file is matched from its beginning if its originals may have changed (`affected`), if
    drafts are possible, or if its session has several transcripts.
    """
    files = {
        file_id
        for file_id in touched.files | affected
        if connection.execute(
            f"select 1 from messages where file_id = ? and {_QUEUED} limit 1", (file_id,)
        ).fetchone()
    }
    shared = _shared_sessions(connection, files)
    beside = {file_id for group in shared.values() for file_id in group}
    for file_id in files | beside:
        gives_back = _gives_back(connection, file_id)
        is_anew = gives_back or file_id in affected or file_id in beside
        first_id = 0 if is_anew else touched.first_message_id
        targets = _targets(connection, file_id, first_id, gives_back=gives_back)
        _write(connection, targets)
    for session_id in shared:
        _join_files(connection, session_id)


def _shared_sessions(connection: sqlite3.Connection, files: Iterable[int]) -> dict[int, set[int]]:
    """Return the sessions of these files that have queue entries in several files, by id."""
    rows = connection.execute(
        "select distinct o.session_id, o.id from files f"
        " join files o on o.session_id = f.session_id"
        f" where f.id in ({id_list(files)}) and exists"
        f" (select 1 from messages m where m.file_id = o.id and {_QUEUED})"
    )
    sessions: dict[int, set[int]] = {}
    for session_id, file_id in rows:
        sessions.setdefault(session_id, set()).add(file_id)
    return {session_id: group for session_id, group in sessions.items() if len(group) > 1}


def _gives_back(connection: sqlite3.Connection, file_id: int) -> bool:
    row = connection.execute(
        "select 1 from line_types"
        " where file_id = ? and type = 'queue-operation' and subtype = 'popAll'",
        (file_id,),
    ).fetchone()
    return row is not None


def _write(connection: sqlite3.Connection, targets: Targets) -> None:
    connection.executemany(
        "update messages set copy_of = ?1 where id = ?2 and copy_of is not ?1",
        ((target, entry_id) for entry_id, target in targets.items()),
    )


# -- one file ------------------------------------------------------------------------------------


def _targets(
    connection: sqlite3.Connection, file_id: int, first_id: int, *, gives_back: bool
) -> Targets:
    """Match the entries of a file with its rows from `first_id` on; 0 means all of them again."""
    rows = connection.execute(
        "select id, byte_offset, kind, text, copy_of from messages"
        " where file_id = ? and id >= ? and role in ('user', 'system') and text <> ''"
        f" and not ({_QUEUED})"
        " order by byte_offset, block",
        (file_id, first_id),
    ).fetchall()
    if not rows and first_id:
        return {}
    entries = connection.execute(
        # Without the plus, the planner would scan all rows of the file, for their order.
        "select id, byte_offset, text from messages"
        f" where file_id = ? and {_QUEUED} and (copy_of is null or ?) order by +byte_offset",
        (file_id, first_id == 0),
    ).fetchall()
    waiting: dict[str, list[tuple[int, int]]] = {}
    for entry_id, offset, text in reversed(entries):
        waiting.setdefault(text, []).append((entry_id, offset))
    targets: Targets = dict.fromkeys((entry[0] for entry in entries), None)
    for row_id, offset, kind, text, copy_of in rows:
        for typed in _as_typed(kind, text):
            candidates = waiting.get(typed)
            if candidates and candidates[-1][1] < offset:
                targets[candidates.pop()[0]] = copy_of or row_id
                break
    if gives_back:
        said = [(offset, row_id, text, copy_of) for row_id, offset, _, text, copy_of in rows]
        _find_drafts(entries, said, targets)
    return targets


def _as_typed(kind: str, text: str) -> Iterator[str]:
    """Yield what was typed for this row, in all forms that the queue may have."""
    if kind == "command":
        words = (tags.inside(text, "command-name"), tags.inside(text, "command-args"))
        yield " ".join(filter(None, words))
    elif kind == "bash_input":
        command = tags.inside(text, "bash-input") or ""
        yield from (command, f"!{command}", f"! {command}")
    else:
        yield text


def _find_drafts(
    entries: Iterable[tuple[int, int, str]],
    said: Iterable[tuple[int, int, str, int | None]],
    targets: Targets,
) -> None:
    """Make each open entry a copy of a later text that begins with it.

    Works backwards from the end of the file, with all later texts sorted: those that begin with a
    text come right after its own place in that order.
    """
    later: list[tuple[str, int]] = []
    places = [(offset, row_id, text, copy_of or row_id) for offset, row_id, text, copy_of in said]
    places += [(offset, entry_id, text, 0) for entry_id, offset, text in entries]
    for _, row_id, text, original in sorted(places, reverse=True):
        if not original:
            place = bisect_left(later, (text, 0))
            is_draft = place < len(later) and later[place][0].startswith(text)
            if targets[row_id] is None and is_draft:
                targets[row_id] = later[place][1]
            original = targets[row_id] or row_id
        insort(later, (text, original))


# -- several files of a session ------------------------------------------------------------------


def _join_files(connection: sqlite3.Connection, session_id: int) -> None:
    """Make entries that several files of a session repeat copies of one row."""
    rows = connection.execute(
        "select m.id, m.file_id, m.timestamp, m.text, m.copy_of"
        f" from (select * from messages where session_id = ? and {_QUEUED}) m"
        f" join files f on f.id = m.file_id order by {FILE_RANK}, m.byte_offset",
        (session_id,),
    ).fetchall()
    seen: Counter[tuple[object, ...]] = Counter()
    groups: dict[tuple[object, ...], list[tuple[int, int | None]]] = {}
    for entry_id, file_id, moment, text, copy_of in rows:
        ordinal = seen[file_id, moment, text]
        seen[file_id, moment, text] += 1
        groups.setdefault((moment, text, ordinal), []).append((entry_id, copy_of))
    targets: Targets = {}
    for group in groups.values():
        delivered = next((copy_of for _, copy_of in group if copy_of), None)
        for entry_id, _ in group:
            target = delivered or group[0][0]
            targets[entry_id] = target if target != entry_id else None
    _write(connection, {entry_id: _end(targets, entry_id) for entry_id in targets})


def _end(targets: Targets, entry_id: int) -> int | None:
    """Follow copies of copies to the original."""
    passed = {entry_id}
    target = targets[entry_id]
    while target is not None and targets.get(target) is not None and target not in passed:
        passed.add(target)
        target = targets[target]
    return target if target != entry_id else None
