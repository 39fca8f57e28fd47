"""One row per API response, from the best of its lines in all files."""

from __future__ import annotations

import sqlite3

from ..sql import id_list
from .changeset import FILE_RANK, Touched, fill

_COLUMNS = (
    "model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,"
    " cache_write_1h_tokens, web_searches, partial, stated_cost_usd, session_id, subagent_id,"
    " api_message_id, request_id, stop_reason, file_id, byte_offset, byte_length"
)


def refresh_responses(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> None:
    """Write one row for each changed API response.

    The line with the most output tokens counts, as a whole; of several, the last one in the
    canonical file. The response belongs to the session and the subagent of its canonical
    occurrence. Gateways use the same message id in several sessions, so an id that is not
    Anthropic's and comes without a request id is one response per session.
    """
    keys = _touched_keys(connection, touched, affected)
    if not keys:
        return
    fill(connection, "touched_responses", keys)
    _rank_files(connection)
    _find_best(connection)
    connection.execute(
        "insert or ignore into touched_sessions"
        " select r.session_id from best b join responses r on r.response_key = b.unique_key"
        " where r.session_id is not null"
        " union select session_id from best where session_id is not null"
    )
    connection.execute(
        "delete from responses where id in (select r.id from touched_responses t"
        " cross join responses r on r.response_key = t.response_key"
        " or r.response_key between t.response_key || ' in ' and t.response_key || ' in!'"
        " where r.response_key not in (select unique_key from best))"
    )
    _write_best(connection)


def _touched_keys(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> set[str]:
    """Return the keys of responses with new lines, or lines that may now count elsewhere."""
    keys = set(touched.responses)
    if affected:
        rows = connection.execute(
            f"select distinct response_key from usage where file_id in ({id_list(affected)})"
        )
        keys.update(key for (key,) in rows)
    if touched.sidechains:  # rows may have moved to other subagents
        rows = connection.execute(
            f"select response_key from usage where file_id in ({id_list(touched.sidechains)})"
        )
        keys.update(key for (key,) in rows)
    return keys


def _rank_files(connection: sqlite3.Connection) -> None:
    """Rank the files of changed responses, once for all lines: ranking is slow."""
    connection.execute("delete from ranked")
    connection.execute(f"""
        insert into ranked (id, session_id, subagent_id, rank)
        select f.id, f.session_id, f.subagent_id, row_number() over (order by {FILE_RANK})
        from files f
        where f.id in (
            select u.file_id from touched_responses t
            cross join usage u on u.response_key = t.response_key
        )
    """)


def _find_best(connection: sqlite3.Connection) -> None:
    """Put every line of changed responses into `best`, with the response that it belongs to."""
    connection.execute("delete from best")
    connection.execute("""
        insert into best (id, unique_key, session_id, subagent_id, rank)
        select u.id, u.unique_key, first_value(f.session_id) over canonical,
            first_value(coalesce(f.subagent_id, (
                select m.subagent_id from messages m
                where m.file_id = u.file_id and m.byte_offset = u.byte_offset limit 1
            ))) over canonical, f.rank
        from (
            select usage.id, usage.file_id, usage.byte_offset, case
                when usage.response_key like 'msg\\_%' escape '\\' or usage.api_message_id is null
                    or max(usage.request_id) over (partition by usage.response_key) is not null
                then usage.response_key
                else usage.response_key || ' in ' || coalesce(usage.stated_session_key, '')
            end as unique_key
            from touched_responses t
            cross join usage on usage.response_key = t.response_key
        ) u
        cross join ranked f on f.id = u.file_id
        window canonical as (partition by u.unique_key order by f.rank, u.byte_offset)
    """)


def _write_best(connection: sqlite3.Connection) -> None:
    """Write the responses from the lines that count."""
    assignments = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", "))
    connection.execute(f"""
        insert into responses (response_key, {_COLUMNS})
        select unique_key, {_COLUMNS} from (
            select b.*, row_number() over (
                partition by b.unique_key
                order by u.output_tokens desc, b.rank, u.byte_offset desc
            ) as place
            from best b cross join usage u on u.id = b.id
        ) b cross join usage u on u.id = b.id
        where place = 1
        on conflict (response_key) do update set {assignments}
    """)


def refresh_tokens(connection: sqlite3.Connection) -> None:
    """Sum up the tokens of the subagents of changed sessions.

    If there are no responses of a subagent, the result of its call states the sum.
    """
    total = (
        "select sum(r.input_tokens + r.output_tokens + r.cache_read_tokens"
        " + r.cache_write_5m_tokens + r.cache_write_1h_tokens)"
        " from responses r where r.subagent_id = subagents.id"
    )
    stated = (
        "select max(t.tokens) from agent_totals t join files f on f.id = t.file_id"
        " where t.agent_key = subagents.agent_key and f.session_id = subagents.session_id"
    )
    tokens = f"coalesce(({total}), ({stated}))"
    connection.execute(
        f"update subagents set tokens = {tokens}"
        f" where session_id in (select id from touched_sessions) and tokens is not {tokens}"
    )
