-- Columns that the local tables and views have gained: the branch of what belongs to a conversation, the
-- length of what a response wrote, and the price of its output.

alter table assoc.usage add column written_bytes bigint;
alter table assoc.responses add column written_bytes bigint;

create or replace view assoc_read.usage with (security_barrier = true) as
select
    response_key, api_message_id, request_id, stated_session_key, model, timestamp,
    input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, web_searches, partial, stated_cost_usd, line_count, all_input_tokens,
    all_output_tokens, all_cache_read_tokens, all_cache_write_tokens, byte_offset, byte_length,
    stop_reason,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no, written_bytes
from assoc.usage
where origin_id = any ((select assoc.visible_origins())::integer[]);

create or replace view assoc_read.responses with (security_barrier = true) as
select
    model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, web_searches, partial, stated_cost_usd, api_message_id, request_id,
    response_key, byte_offset, byte_length, stop_reason,
    hashtextextended(response_key, 0) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no, written_bytes
from assoc.responses r
where origin_id = any ((select assoc.visible_origins())::integer[])
  and not exists (
    select from assoc.responses o
    where o.response_key = r.response_key and o.origin_id <> r.origin_id
      and (o.output_tokens, r.origin_id) > (r.output_tokens, o.origin_id)
      and o.origin_id = any ((select assoc.visible_origins())::integer[])
);

create or replace view assoc_read.response_costs with (security_barrier = true) as
select
    r.model, r.timestamp,
    (
        select (
            r.input_tokens * p.input
            + r.output_tokens * p.output
            + r.cache_read_tokens * coalesce(p.cache_read, p.input)
            + r.cache_write_5m_tokens * coalesce(p.cache_write_5m, p.input)
            + r.cache_write_1h_tokens * coalesce(p.cache_write_1h, p.cache_write_5m, p.input)
            + (
                r.web_searches
                + coalesce((
                    select sum(searches)::bigint
                    from (
                        select max(c.search_count) as searches
                        from assoc.tool_calls c
                        where c.response_key = r.response_key and c.search_count is not null
                          and c.origin_id = any ((select assoc.visible_origins())::integer[])
                        group by c.tool_use_id
                    ) one
                ), 0)
            ) * coalesce(p.web_search, 0) * 1000
            + 500000
        ) / 1000000
        from assoc.prices p
        where p.origin_id = r.origin_id
          and p.model = r.model
          and p.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              p.above_tokens = 0
              or p.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by p.valid_from desc, p.above_tokens desc
        limit 1
    ) as cost_microusd,
    r.partial, r.stated_cost_usd, r.input_tokens, r.output_tokens, r.cache_read_tokens,
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens,
    s.title as session, p.name as project, s.session_key, o.kind as source,
    r.session_id, s.project_id, r.subagent_id, r.id, r.written_bytes,
    (
        select p.output
        from assoc.prices p
        where p.origin_id = r.origin_id
          and p.model = r.model
          and p.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              p.above_tokens = 0
              or p.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by p.valid_from desc, p.above_tokens desc
        limit 1
    ) as output_price,
    nullif(coalesce((
        select b.value
        from assoc_read.contexts b
        where b.origin_id = r.origin_id and b.file_no = r.file_no
          and b.name = 'git_branch' and b.byte_offset <= r.byte_offset
        order by b.byte_offset desc
        limit 1
    ), s.git_branch), '') as git_branch
from assoc_read.responses r
left join assoc_read.sessions s on s.id = r.session_id
left join assoc_read.projects p on p.id = s.project_id
left join assoc_read.files f on f.id = r.file_id
left join assoc_read.sources o on o.id = f.source_id
where s.linked_session_id is null
   or not exists (select from assoc_read.responses o where o.session_id = s.linked_session_id);

create or replace view assoc_read.retention with (security_barrier = true) as
select
    f.path, f.kind, s.title as session, p.name as project, f.size, f.mtime,
    case when f.gone_at is null then assoc_read.strftime(
        '%Y-%m-%dT%H:%M:%fZ', f.mtime, coalesce(r.cleanup_period_days, r.retention_days) || ' days'
    ) end as due_at,
    case when f.gone_at is null then trunc(
        assoc_read.julianday(f.mtime) + coalesce(r.cleanup_period_days, r.retention_days)
        - assoc_read.julianday('now')
    )::bigint end as days_left,
    (f.gone_at is not null)::integer as is_gone,
    f.gone_at, s.session_key, r.kind as source, f.session_id, f.project_id, f.id,
    nullif(s.git_branch, '') as git_branch
from assoc_read.files f
join assoc_read.sources r on r.id = f.source_id and r.retention_days is not null
left join assoc_read.sessions s on s.id = f.session_id
left join assoc_read.projects p on p.id = f.project_id
where f.kind <> 'file_history';

create or replace view assoc_read.session_ends with (security_barrier = true) as
select
    assoc_read.id(s.origin_id, s.source_no, s.session_key) as session_id,
    case coalesce((
        select m.kind
        from assoc.messages m
        where m.origin_id = s.origin_id
          and m.file_no = (
            select f.file_no
            from assoc.files f
            where f.origin_id = s.origin_id and f.source_no = s.source_no
              and f.session_key = s.session_key
              and f.kind = 'transcript' and f.agent_key is null
            order by f.gone_at is not null, f.mtime desc nulls last, f.file_no desc
            limit 1
          )
          and m.agent_key is null
          and m.kind in (
              'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error', 'interrupt'
          )
        order by m.byte_offset desc, m.block desc
        limit 1
    ), 'text')
        when 'text' then null
        when 'error' then 'ended with an error'
        when 'interrupt' then 'interrupted'
        else 'in the middle of a turn'
    end as state,
    s.ended_at as last_at, s.session_key, r.kind as source,
    nullif(s.git_branch, '') as git_branch
from assoc.sessions s
join assoc.sources r using (origin_id, source_no)
where s.kind in ('main', 'background') and s.message_count > 0
  and s.origin_id = any ((select assoc.visible_origins())::integer[]);

create or replace view assoc_read.stated_by_model with (security_barrier = true) as
select distinct on (f.session_id, u.model)
    u.model, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.cost_usd,
    u.is_lower_bound, u.timestamp,
    exists (
        select from assoc_read.responses r
        where r.file_id = u.file_id and r.byte_offset > u.byte_offset
    )::integer as is_followed,
    (select s.session_key from assoc_read.sessions s where s.id = f.session_id) as session_key,
    (select o.kind from assoc_read.sources o where o.id = f.source_id) as source,
    f.session_id, u.file_id, u.byte_offset,
    (select nullif(s.git_branch, '') from assoc_read.sessions s where s.id = f.session_id)
        as git_branch
from assoc_read.stated_usage u
join assoc_read.files f on f.id = u.file_id
where f.kind = 'transcript'
  and u.byte_offset = (
    select max(o.byte_offset) from assoc_read.stated_usage o where o.file_id = u.file_id
  )
order by
    f.session_id, u.model, f.gone_at is not null, f.generation desc,
    (select max(o.cost_usd) from assoc_read.stated_usage o where o.file_id = u.file_id)
        desc nulls last,
    f.path, f.id;

create or replace view assoc_read.stated_sessions with (security_barrier = true) as
select
    s.title, s.ended_at as last_at, coalesce(m.cost_usd, s.stated_cost_usd) as cost_usd,
    coalesce(m.input_tokens, case when n.session_id is null then s.input_tokens end)
        as input_tokens,
    coalesce(m.output_tokens, case when n.session_id is null then s.output_tokens end)
        as output_tokens,
    coalesce(m.cache_read_tokens, case when n.session_id is null then s.cache_read_tokens end)
        as cache_read_tokens,
    coalesce(m.cache_write_tokens, case when n.session_id is null then s.cache_write_tokens end)
        as cache_write_tokens,
    coalesce(m.is_lower_bound, 0) as is_lower_bound,
    s.session_key, o.kind as source, s.id as session_id,
    coalesce(s.linked_session_id, s.id) as counted_session_id,
    nullif(s.git_branch, '') as git_branch
from assoc_read.sessions s
join assoc_read.sources o on o.id = s.source_id
left join assoc_read.stated_by_model m on m.session_id = s.id and m.model = ''
left join (select distinct session_id from assoc_read.responses) n on n.session_id = s.id
where s.stated_cost_usd is not null or m.session_id is not null;

-- A machine that finds another version than it left compares everything, and so sends all this.
update assoc.origins set version = version + 1;
