-- Where each line was said, and what a search of the web cost.

create table contexts ( -- Branch, version and permission mode of the lines of a file, where they change
    id integer primary key,
    name text not null,                 -- git_branch, agent_version or permission_mode
    value text not null,                -- its value from here on; '': none, as outside of a repository
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the first line that states it
    unique (file_id, name, byte_offset)
) strict;

alter table tool_calls add column search_count integer /* web searches that the call made as its result states them */;
alter table tool_calls add column response_key text /* response that called, where the call's searches are charged: see responses */;
create index tool_calls_searches on tool_calls (response_key, tool_use_id, search_count) where search_count is not null;

-- Sums over sessions count what stands in several of them once.
alter table transcripts add column repeated_count integer not null default 0 /* user and assistant lines that repeat others in this file or another */;
alter table transcripts add column copied_count integer not null default 0 /* those of them that repeat lines of another session */;
alter table transcripts add column repeated_call_count integer not null default 0 /* tool calls that repeat others */;
alter table sessions add column copied_message_count integer not null default 0 /* user and assistant lines that repeat those of another session and are not in message_count */;

drop view conversation;
create view conversation as -- Messages with the titles of their session and project; copies in forked sessions left out
select
    m.kind, m.text, m.tool_text, m.role, m.timestamp,
    s.title as session,                 -- title of its session
    p.name as project,                  -- name of its project
    g.name as agent,                    -- name of the application's agent with whom it is held
    a.agent_type as subagent,           -- type of its subagent; null in the main conversation
    m.model,
    (
        select nullif(c.value, '')
        from contexts c
        where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ) as git_branch,                    -- branch on which it was said
    (
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'agent_version' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ) as agent_version,                 -- version of the agent that wrote it
    (
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'permission_mode' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ) as permission_mode,               -- permission mode in which it was said
    s.session_key,
    r.kind as source,                   -- the system that wrote it
    m.id, m.session_id, m.subagent_id, m.file_id, m.byte_offset, m.block
from messages m
join files f on f.id = m.file_id
join sources r on r.id = f.source_id
left join sessions s on s.id = m.session_id
left join projects p on p.id = s.project_id
left join agents g on g.id = s.agent_id
left join subagents a on a.id = m.subagent_id
where m.copy_of is null;

drop view response_costs;
create view response_costs as -- What each response cost
select
    r.model,                            -- model that answered
    r.timestamp,                        -- of the line that counts
    (
        select cast(
            (
                r.input_tokens * p.input
                + r.output_tokens * p.output
                + r.cache_read_tokens * coalesce(p.cache_read, p.input)
                + r.cache_write_5m_tokens * coalesce(p.cache_write_5m, p.input)
                + r.cache_write_1h_tokens * coalesce(p.cache_write_1h, p.cache_write_5m, p.input)
                + (
                    r.web_searches
                    -- A tool that searches states in its result how often it did. A copied call
                    -- did it once.
                    + coalesce((
                        select sum(searches)
                        from (
                            select max(c.search_count) as searches
                            from tool_calls c
                            where c.response_key = r.response_key and c.search_count is not null
                            group by c.tool_use_id
                        )
                    ), 0)
                ) * coalesce(p.web_search, 0) * 1000
                + 500000
            ) / 1000000 as integer
        )
        from prices p
        where p.model = r.model
          and p.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              p.above_tokens = 0
              or p.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by p.valid_from desc, p.above_tokens desc
        limit 1
    ) as cost_microusd,                 -- cost in millionths of a dollar; null where the model has no price
    r.stated_cost_usd,                  -- cost as an application stated it
    r.input_tokens,                     -- tokens that were not cached
    r.output_tokens,                    -- output tokens
    r.cache_read_tokens,                -- tokens read from the cache
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    r.session_id,                       -- the session
    r.subagent_id,                      -- the subagent
    r.id                                -- the response, in responses
from responses r
left join sessions s on s.id = r.session_id
where s.linked_session_id is null
   or not exists (select 1 from responses o where o.session_id = s.linked_session_id);
