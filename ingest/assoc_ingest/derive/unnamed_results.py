"""Matches tool results that do not say which call they answer.

Such a result answers the last open call before it, of the tool that it names, if it names one. A
call that any result in the file answers by its id is not open. So the match depends on the whole
file, and is made again when the file has grown.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from typing import Any

from ..when import milliseconds

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
