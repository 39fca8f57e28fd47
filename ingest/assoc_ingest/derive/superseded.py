"""Messages that a conversation took back: rewound, rolled back, reverted.

The line that takes back follows what it takes back. So what it marks is complete when it is read,
and later lines change nothing.
"""

from __future__ import annotations

import sqlite3


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
