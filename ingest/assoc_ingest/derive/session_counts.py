"""The counts of a session, without copies, its tokens, and the models that it used.

They are made anew whenever a session grows, so they cost as little as an index allows: a session of
a hundred thousand messages may get another one each second.
"""

from __future__ import annotations

import sqlite3

_PROMPT_KINDS = "('prompt', 'command', 'bash_input', 'queued_prompt')"

_LINE_OF_PROMPT = "p.file_id, p.subagent_id, p.uuid, p.copy_of, p.byte_offset"
"""The line of a prompt, as a part of the index that begins with its session.

All but the file and the offset are the same in all blocks of a line; with these columns, and a plus
before those of a condition, SQLite counts in the order of the index and does not sort.
"""

_USED_MODELS = """
    with recursive used (model) as (
        select min(r.model) from responses r where r.session_id = t.id
        union all
        select (select min(r.model) from responses r where r.session_id = t.id
            and r.model > used.model)
        from used where used.model is not null
    )
    select json_group_array(model) from used where model is not null
"""
"""The models of a session, sorted: from one to the next in the index, not through all responses."""


def count(connection: sqlite3.Connection) -> None:
    """Write the counts of a session, without copies, and its tokens."""
    connection.execute(f"""
        update sessions set
            message_count = x.message_count,
            copied_message_count = x.copied_count,
            prompt_count = x.prompt_count,
            tool_call_count = x.tool_call_count,
            input_tokens = coalesce(x.used_input, x.input),
            output_tokens = iif(x.used_input is null, x.output, x.used_output),
            cache_read_tokens = iif(x.used_input is null, x.cache_read, x.used_cache_read),
            cache_write_tokens = iif(x.used_input is null, x.cache_write, x.used_cache_write),
            stated_cost_usd = coalesce(x.cost, x.stated_cost, x.used_cost),
            context_tokens = x.context_tokens,
            context_window = x.context_window,
            models = coalesce(nullif(x.used_models, '[]'),
                iif(x.model is null, '[]', json_array(x.model)))
        from (
            select t.id, coalesce(m.message_count, e.message_count, 0) as message_count,
                coalesce(m.copied_count, 0) as copied_count,
                (
                    select count(*) from (
                        select distinct {_LINE_OF_PROMPT} from messages p
                        where p.session_id = t.id and p.kind in {_PROMPT_KINDS}
                        and +p.copy_of is null and +p.subagent_id is null
                    )
                ) as prompt_count,
                (
                    select count(*) from tool_calls c
                    where c.session_id = t.id and c.name is not null
                ) - (
                    select coalesce(sum(y.repeated_call_count), 0)
                    from files f join transcripts y on y.file_id = f.id
                    where f.session_id = t.id
                ) as tool_call_count,
                e.input, e.output, e.cache_read, e.cache_write, e.cost, e.model,
                e.context_tokens, e.context_window,
                u.input as used_input, u.output as used_output, u.cache_read as used_cache_read,
                u.cache_write as used_cache_write, u.cost as used_cost,
                (
                    select y.cost_usd from stated_by_model y
                    where y.session_id = t.id and y.model = ''
                ) as stated_cost,
                ({_USED_MODELS}) as used_models
            from touched_sessions t
            left join told m on m.session_id = t.id
            left join stated e on e.session_id = t.id
            left join (
                select t.id as session_id, sum(input_tokens) as input, sum(output_tokens) as output,
                    sum(cache_read_tokens) as cache_read,
                    sum(cache_write_5m_tokens + cache_write_1h_tokens) as cache_write,
                    sum(stated_cost_usd) as cost
                from touched_sessions t cross join responses r on r.session_id = t.id
                group by t.id -- in whose order they come: those of one session need no sorting
            ) u on u.session_id = t.id
        ) x where x.id = sessions.id and sessions.id in (select id from touched_sessions)
    """)
