"""Messages between agents: the team that they belong to, and which rows are the same message.

A message can be in the inbox of its recipient, in the transcripts of its sender and its recipient,
and in forks of both. The row of the inbox is the original; rows of transcripts have `copy_of`:

1. the team is the one that a transcript names, or that its session leads;
2. the original is the inbox row of the same team with the same text, sender and recipient, if there
   are several the nearest in time;
3. otherwise the first row, by time and path, with the same `message_key`;
4. otherwise the row of the line that this line is a copy of.

This is derived again for all rows that a batch can affect, so it does not depend on the order in
which files were read.
"""

from __future__ import annotations

import sqlite3

FOLDED = "replace(replace(replace(replace(lower({}), '_', '-'), ' ', '-'), '.', '-'), '/', '-')"
"""SQL for the key of a team from its name: lower case, hyphens."""

_IS_TOUCHED = """
select 1 from touched_files t cross join inbox_items i on i.file_id = t.id
union all select 1 from touched_files t cross join files f on f.id = t.id
    where f.team_id is not null
union all select 1 from touched_sessions t cross join teams x on x.lead_session_id = t.id
limit 1
"""

_AFFECTED = """
insert or ignore into affected_mail
select i.id from inbox_items i
where i.channel = 'transcript' and (
    i.copy_of is null
    or i.team_id is null
    or i.team_name is null -- its team depends on who leads it
    or i.file_id in (select id from touched_files)
    or i.text_hash in (
        select t.text_hash from inbox_items t where t.file_id in (select id from touched_files)
    )
    or i.message_key in (
        select t.message_key from inbox_items t
        where t.file_id in (select id from touched_files) and t.message_key is not null
    )
)
"""

_TEAM = f"""
select t.id from teams t
join files f on f.id = inbox_items.file_id and f.source_id = t.source_id
where case
    when inbox_items.team_name is null
    then t.lead_session_id = inbox_items.session_id and inbox_items.session_id is not null
    else t.key = {FOLDED.format("inbox_items.team_name")}
end
order by t.key limit 1
"""

# Rows are ordered by a column of an inner query: in SQLite, `order by` cannot refer to the row that
# is updated.
_IN_INBOX = """
select id from (
select o.id, o.timestamp, f.path, o.ordinal,
    abs(julianday(o.timestamp) - julianday(inbox_items.timestamp)) as distance
from inbox_items o join files f on f.id = o.file_id
where o.text_hash = inbox_items.text_hash and o.channel = 'inbox'
    and o.team_id = inbox_items.team_id
    and o.sender = coalesce(inbox_items.sender, o.sender)
    and o.recipient = coalesce(inbox_items.recipient, o.recipient)
    and inbox_items.text is not null
) order by distance is null, distance, timestamp, path, ordinal limit 1
"""

_SAME_KEY = """
select nullif(coalesce(o.copy_of, o.id), inbox_items.id) from inbox_items o
join files f on f.id = o.file_id
where o.message_key = inbox_items.message_key and o.channel = 'transcript'
order by o.copy_of is null, o.timestamp, f.path, o.byte_offset, o.ordinal limit 1
"""

_OF_ORIGINAL_LINE = """
select original from (
select nullif(coalesce(o.copy_of, o.id), inbox_items.id) as original,
    o.ordinal <> inbox_items.ordinal as is_other, o.ordinal, m.block
from messages m join messages c on c.id = m.copy_of
join inbox_items o on o.file_id = c.file_id and o.byte_offset = c.byte_offset
    and o.text_hash = inbox_items.text_hash and o.channel = 'transcript'
where m.file_id = inbox_items.file_id and m.byte_offset = inbox_items.byte_offset
) order by is_other, ordinal, block limit 1
"""


def refresh_mail(connection: sqlite3.Connection) -> None:
    """Link messages in transcripts to their teams, and to the rows that they repeat."""
    if connection.execute(_IS_TOUCHED).fetchone() is None:
        return
    connection.execute("create temp table if not exists affected_mail (id integer primary key)")
    connection.execute("delete from affected_mail")
    connection.execute(_AFFECTED)
    if connection.execute("select 1 from affected_mail limit 1").fetchone() is None:
        return
    _set(connection, "team_id", _TEAM)
    _set(connection, "copy_of", _IN_INBOX)
    _set(connection, "copy_of", _SAME_KEY, "copy_of is null and message_key is not null")
    _set(connection, "copy_of", _OF_ORIGINAL_LINE, "copy_of is null and message_key is null")


def _set(connection: sqlite3.Connection, column: str, target: str, condition: str = "1") -> None:
    connection.execute(
        f"update inbox_items set {column} = ({target})"
        f" where id in (select id from affected_mail) and {condition}"
        f" and {column} is not ({target})"
    )
