"""Messages that are there twice: copied lines, prompts that were queued, results without ids,
taken back turns.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .. import tags
from ..fields import milliseconds
from ..sql import id_list
from .changeset import FILE_RANK, Touched, fill

# ------------------------------------------------------------------------------------------------
# Matches tool results that do not say which call they answer.
#
# Such a result answers the last open call before it, of the tool that it names, if it names one.
# A call that any result in the file answers by its id is not open. So the match depends on the
# whole file, and is made again when the file has grown.


_MESSAGE = (
    "(select m.id from messages m where m.file_id = u.file_id"
    " and m.byte_offset = u.byte_offset and m.block = u.block)"
)


def take_back(connection: sqlite3.Connection, file_id: int) -> None:
    """Undo the matches of such results in a file.

    Has to run before more of the file is merged: a result that states an id takes precedence.
    """
    connection.execute(
        "update tool_calls set result_id = null, status = 'pending', ended_at = null,"
        " duration_ms = null where file_id = ?1 and result_id in"
        f" (select {_MESSAGE} from unmatched_results u where u.file_id = ?1)",
        (file_id,),
    )


def refresh_answers(connection: sqlite3.Connection) -> None:
    """Match the results of changed files with their calls."""
    rows = connection.execute(
        "select distinct u.file_id from touched_files t"
        " cross join unmatched_results u on u.file_id = t.id"
    ).fetchall()
    for (file_id,) in rows:
        take_back(connection, file_id)
        pair(connection, file_id)


def pair(connection: sqlite3.Connection, file_id: int, message_id: str = _MESSAGE) -> None:
    """Match the results of a file with their calls; `message_id` is SQL for a result's message."""
    calls = connection.execute(
        "select byte_offset, block, id, name, started_at from tool_calls"
        " where file_id = ? and call_id is not null and result_id is null",
        (file_id,),
    ).fetchall()
    results = connection.execute(
        f"select u.byte_offset, u.block, {message_id}, u.name, u.timestamp, u.is_error"
        " from unmatched_results u where u.file_id = ?",
        (file_id,),
    ).fetchall()
    waiting = deque(sorted(calls, key=_place))
    is_open: dict[str | None, list[Any]] = {None: []}
    answered = set()
    for byte_offset, block, result_id, name, ended_at, is_error in sorted(results, key=_place):
        while waiting and waiting[0][:2] < (byte_offset, block):
            call = waiting.popleft()
            for key in {None, call[3]}:
                is_open.setdefault(key, []).append(call)
        candidates = is_open.get(name, [])
        while candidates and candidates[-1][2] in answered:
            candidates.pop()
        if not candidates:
            continue
        line, _, call_id, _, started_at = candidates.pop()
        answered.add(call_id)
        if line == byte_offset:  # the time of the line is that of the call
            ended_at = None
        duration = None
        if started_at is not None and ended_at is not None:
            duration = max(0, milliseconds(ended_at) - milliseconds(started_at))
        connection.execute(
            "update tool_calls set result_id = ?, status = ?, ended_at = ?,"
            " duration_ms = iif(action is 'ask', null, ?) where id = ?",
            (result_id, "error" if is_error else "ok", ended_at, duration, call_id),
        )


def _place(row: tuple[int, ...]) -> tuple[int, ...]:
    return row[:2]


# ------------------------------------------------------------------------------------------------
# Messages that a conversation took back: rewound, rolled back, reverted.
#
# The line that takes back follows what it takes back. So what it marks is complete when it is
# read, and later lines change nothing.


def refresh_superseded(connection: sqlite3.Connection) -> None:
    """Mark the messages that changed files say were taken back."""
    rows = connection.execute("""
        select s.file_id, s.byte_offset, coalesce(s.first_offset, (
            select min(m.byte_offset) from messages m
            where m.uuid = s.first_uuid and +m.file_id = s.file_id and m.byte_offset < s.byte_offset
        ), 0)
        from touched_files t cross join superseded s on s.file_id = t.id
    """).fetchall()
    connection.executemany(
        "update messages set is_superseded = 1"
        " where file_id = ?1 and byte_offset >= ?3 and byte_offset < ?2 and is_superseded = 0",
        rows,
    )


# ------------------------------------------------------------------------------------------------
# Text that was typed while the agent was busy counts once, wherever it was delivered.
#
# A text in the queue leaves an `enqueue` line, which has no uuid, and then usually a second row
# where it was delivered. The entry is a copy of that row:
#
# 1. An entry is delivered by the first row after it in the file that has the same text and did not
#    deliver an earlier one. Slash commands and shell commands are delivered inside tags.
# 2. `popAll` returns the waiting texts to the input line. In a file that has one, an undelivered
#    entry is a draft if a later text begins with it: then it is a copy of that text.
# 3. A session can have several transcripts that repeat each other's lines. Entries in them are the
#    same if time and text are equal; an entry is delivered if it is in any of the files.
#
# An undelivered entry is the only record of what was typed, and counts as a prompt.


_QUEUED = "kind in ('queued_prompt', 'task_notification') and uuid is null"

Targets = dict[int, int | None]
"""For each entry, the row that it is a copy of."""


def refresh_queued(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> bool:
    """Set `copy_of` of all entries that were delivered; say whether one is older than the batch.

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
    written: list[int] = []
    for file_id in files | beside:
        gives_back = _gives_back(connection, file_id)
        is_anew = gives_back or file_id in affected or file_id in beside
        first_id = 0 if is_anew else touched.first_message_id
        targets = _targets(connection, file_id, first_id, gives_back=gives_back)
        written += _write(connection, targets)
    for session_id in shared:
        written += _join_files(connection, session_id)
    return any(entry_id < touched.first_message_id for entry_id in written)


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


def _write(connection: sqlite3.Connection, targets: Targets) -> list[int]:
    """Write where entries were delivered; return those of which that was not known."""
    return [
        entry_id
        for entry_id, target in targets.items()
        if connection.execute(
            "update messages set copy_of = ?1 where id = ?2 and copy_of is not ?1",
            (target, entry_id),
        ).rowcount
    ]


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
        yield tags.command(text)
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


def _join_files(connection: sqlite3.Connection, session_id: int) -> list[int]:
    """Make entries that several files of a session repeat copies of one row; return these."""
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
    return _write(connection, {entry_id: _end(targets, entry_id) for entry_id in targets})


def _end(targets: Targets, entry_id: int) -> int | None:
    """Follow copies of copies to the original."""
    passed = {entry_id}
    target = targets[entry_id]
    while target is not None and targets.get(target) is not None and target not in passed:
        passed.add(target)
        target = targets[target]
    return target if target != entry_id else None


# ------------------------------------------------------------------------------------------------
# Lines that occur several times: each block has one canonical occurrence.
#
# Forks and resumed sessions repeat the lines of another file, and a compaction appends lines of
# its own file again. `copy_of` points to the canonical occurrence, which views and searches show.
# It follows from the files, never from the order in which they were read.


def refresh_copies(connection: sqlite3.Connection, touched: Touched) -> set[int]:
    """Set `copy_of` of all blocks that occur several times.

    A file is *affected* if it shares a line with another file and one of the two has just changed:
    then the time at which it diverged may have changed, and so which of its lines are originals.
    Returns the affected files, and those of which a `copy_of` changed.
    """
    repeated, sharing = _new_lines_that_stand_twice(connection, touched)
    affected = touched.shared | sharing | _files_on_their_own_way(connection, touched)
    if touched.moved:
        affected.update(_partners(connection, touched.moved))
    affected |= _in_other_homes(connection, affected)
    _note_own_way(connection, affected, touched.files)
    if affected or repeated:
        _find_originals(connection, affected, repeated)
        changed = _point_to_originals(connection)
        _count_repeated(connection, affected | changed.keys())
        # What hangs on originals must be looked at in other files, too. New rows are looked at
        # anyway: for them alone no file is gone through from its beginning.
        affected.update(file for file, first in changed.items() if first < touched.first_message_id)
    return affected


def _note_own_way(connection: sqlite3.Connection, affected: set[int], grown: set[int]) -> None:
    """Note when each file had its first line that no other file has."""
    fill(connection, "touched_files", affected | grown)
    connection.execute(
        "update files set own_since = ("
        " select m.timestamp from messages m"
        " where m.file_id = files.id and m.uuid is not null and m.timestamp is not null"
        " and not exists (select 1 from messages o"
        "  where o.uuid = m.uuid and o.file_id <> m.file_id)"
        " order by m.byte_offset, m.block limit 1)"
        " where id in (select id from touched_files)"
        f" and (own_since is null or id in ({id_list(affected)}))"
    )


def _find_originals(
    connection: sqlite3.Connection, affected: Iterable[int], repeated: Iterable[str]
) -> None:
    """Put every occurrence of these lines, and of those of these files, into `canonical`."""
    fill(connection, "touched_files", affected)
    fill(connection, "touched_uuids", repeated)
    connection.execute(
        "insert or ignore into touched_uuids"
        " select m.uuid from touched_files t cross join messages m on m.file_id = t.id"
        " where m.uuid is not null and (m.copy_of is not null or exists ("
        "  select 1 from messages o where o.uuid = m.uuid and o.id <> m.id))"
    )
    connection.execute("delete from canonical")
    connection.execute(
        "insert into canonical (id, copy_of) select id, nullif(first, id) from ("
        " select m.id, first_value(m.id) over ("
        f" partition by m.uuid, m.block order by {FILE_RANK}, m.byte_offset) as first"
        " from touched_uuids u"
        " cross join messages m on m.uuid = u.uuid"
        " join files f on f.id = m.file_id)"
    )


def _point_to_originals(connection: sqlite3.Connection) -> dict[int, int]:
    """Write what `canonical` says. Returns the files it changes, with the first message of each."""
    changed = (
        "from canonical c cross join messages m on m.id = c.id where m.copy_of is not c.copy_of"
    )
    rows = connection.execute(f"select m.file_id, min(m.id) {changed} group by 1").fetchall()
    connection.execute(  # not `update ... from`: the planner would scan all messages
        "update messages set copy_of = (select c.copy_of from canonical c where c.id = messages.id)"
        f" where id in (select c.id {changed})"
    )
    return dict(rows)


def _count_repeated(connection: sqlite3.Connection, files: Iterable[int]) -> None:
    """Count the lines and calls of these files that repeat others.

    A line repeats another one if all of its blocks do. Lines of subagents inside a transcript are
    left out, as they are no lines of the session. With these counts, sums over sessions are right,
    and an append to a fork costs what was appended, not what the fork repeats.
    """
    connection.execute(f"""
        update transcripts set (repeated_count, copied_count) = (
            select count(*), coalesce(sum(is_of_another), 0) from (
                select max(o.session_id is not m.session_id) as is_of_another
                from messages m join files f on f.id = m.file_id
                left join messages o on o.id = m.copy_of
                where m.file_id = transcripts.file_id
                and m.role in ('user', 'assistant') and m.kind <> 'queued_prompt'
                and m.byte_offset not in (
                    select l.byte_offset from agent_lines l where l.file_id = transcripts.file_id
                )
                and (m.is_sidechain = 0 or f.kind <> 'transcript')
                group by m.byte_offset having count(*) = count(m.copy_of)
            )
        ), repeated_call_count = (
            select count(*) from tool_calls c join messages m on m.id = c.call_id
            where c.file_id = transcripts.file_id and c.name is not null and m.copy_of is not null
        ) where file_id in ({id_list(files)})
    """)


def _new_lines_that_stand_twice(
    connection: sqlite3.Connection, touched: Touched
) -> tuple[set[str], set[int]]:
    """Find other occurrences of the lines of this batch.

    Returns the uuids of lines that a file repeats (a compaction appends lines again), and the files
    that share lines with each other.
    """
    rows = connection.execute(
        # Not indexed: for `distinct`, the planner would scan an index of all messages.
        "select distinct n.file_id, o.file_id, iif(n.file_id = o.file_id, n.uuid, null)"
        " from messages n not indexed"
        " cross join messages o on o.uuid = n.uuid and o.id <> n.id"
        " where n.id >= ? and n.uuid is not null"
        " and (o.file_id <> n.file_id or o.byte_offset <> n.byte_offset)",
        (touched.first_message_id,),
    ).fetchall()
    repeated = {uuid for _, _, uuid in rows if uuid is not None}
    sharing = {file_id for *pair, uuid in rows if uuid is None for file_id in pair}
    return repeated, sharing


def _files_on_their_own_way(connection: sqlite3.Connection, touched: Touched) -> set[int]:
    """Return grown files that had no line of their own so far: they may have one now."""
    rows = connection.execute(
        f"select f.id from files f where f.id in ({id_list(touched.files)}) and f.own_since is null"
        " and exists (select 1 from messages m where m.file_id = f.id and m.id < ?"
        "  and m.uuid is not null)",
        (touched.first_message_id,),
    )
    return {file_id for (file_id,) in rows}


def _in_other_homes(connection: sqlite3.Connection, files: Collection[int]) -> set[int]:
    """Return all files of the sessions of these that another home has, too: one ranks them all."""
    if not files:
        return set()  # without an id, SQLite would go through all sessions
    rows = connection.execute(
        "select o.id from files f cross join sessions s on s.id = f.session_id"
        " cross join sessions h on h.session_key = s.session_key"
        " cross join files o on o.session_id in (h.id, s.id)"
        f" where f.id in ({id_list(files)}) and h.source_id <> s.source_id"
    )
    return {file_id for (file_id,) in rows}


def _partners(connection: sqlite3.Connection, files: Iterable[int]) -> set[int]:
    rows = connection.execute(
        "select distinct m.file_id, o.file_id from messages m"
        " cross join messages o on o.uuid = m.uuid and o.file_id <> m.file_id"
        f" where m.file_id in ({id_list(files)}) and m.uuid is not null"
    )
    return {file_id for pair in rows for file_id in pair}
