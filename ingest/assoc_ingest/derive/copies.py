"""Lines that occur several times: each block has one canonical occurrence.

Forks and resumed sessions repeat the lines of another file, and a compaction appends lines of its
own file again. `copy_of` points to the canonical occurrence, which views and searches show. It
follows from the files, never from the order in which they were read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..sql import id_list
from .changeset import FILE_RANK, Touched, fill


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


def _partners(connection: sqlite3.Connection, files: Iterable[int]) -> set[int]:
    rows = connection.execute(
        "select distinct m.file_id, o.file_id from messages m"
        " cross join messages o on o.uuid = m.uuid and o.file_id <> m.file_id"
        f" where m.file_id in ({id_list(files)}) and m.uuid is not null"
    )
    return {file_id for pair in rows for file_id in pair}
