-- Conversations
-- Conversations, newest first. Conversations that have no messages, only sidechains, or only side
-- files are shown only with :all, and conversations that were removed from the only list that had
-- them only with :gone. A conversation recorded both by an app and by its agent is one row, that of
-- the agent, and source names both; the app's own row is shown with :all, or if :source asks for
-- it. :since and :until keep conversations that were active at any time between them, :branch
-- conversations with a message on that branch. The output is a lower bound if responses are
-- partial, without a final count.
select
    s.session_key,
    s.title,
    coalesce(p.repository_name, p.name) as repository,
    s.ended_at,
    s.prompt_count,
    s.message_count,
    s.copied_message_count,
    s.tool_call_count,
    s.output_tokens,
    r.kind || coalesce(
        ','
        || (
            select group_concat(distinct x.kind)
            from sessions l
            join sources x on x.id = l.source_id
            where l.linked_session_id = s.id and x.kind <> r.kind
        ),
        ''
    ) as source,
    a.name as agent,
    p.name as project,
    s.started_at,
    s.git_branch,
    s.kind,
    s.agent_version,
    s.models,
    s.cwd,
    s.gone_at,
    (select count(*) from responses u where u.session_id = s.id and u.partial = 1) as partial,
    iif(
        exists (select 1 from responses u where u.session_id = s.id and u.partial = 1), 1, 0
    ) as is_lower_bound,
    s.id
from sessions s
join sources r on r.id = s.source_id
left join projects p on p.id = s.project_id
left join agents a on a.id = s.agent_id
where (
    coalesce(:all, '') <> ''
    or (s.kind in ('main', 'background') and s.message_count + s.copied_message_count > 0)
    or (coalesce(:gone, '') <> '' and s.gone_at is not null)
  )
  and (
    coalesce(:all, '') <> ''
    or not exists (
      select 1
      from sessions l
      join sources y on y.id = l.source_id
      where l.id = s.linked_session_id
        and l.message_count + l.copied_message_count > 0
        and (coalesce(:source, '') = '' or y.kind = :source)
    )
  )
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:since, '') = '' or s.ended_at >= :since)
  and (coalesce(:until, '') = '' or s.started_at < :until)
  and (coalesce(:source, '') = '' or r.kind = :source)
  and (
    coalesce(:branch, '') = ''
    or s.git_branch = :branch
    or exists (
        select 1
        from files f
        join contexts c on c.file_id = f.id
        where f.session_id = s.id and c.name = 'git_branch' and c.value = :branch
    )
  )
  and (
    coalesce(:model, '') = ''
    or exists (select 1 from json_each(s.models) m where m.value = :model)
  )
  and (
    coalesce(:status, '') = ''
    or exists (
        select 1
        from session_ends e
        where e.session_id = s.id
          and ' ' || coalesce(e.state, 'finished') like '% ' || :status || '%'
    )
  )
  and (
    coalesce(:errors, '') = ''
    or exists (select 1 from messages e where e.session_id = s.id and e.kind = 'error')
    or exists (select 1 from tool_calls c where c.session_id = s.id and c.status = 'error')
  )
  and (
    coalesce(:min_cost, '') = ''
    or (select sum(c.cost_microusd) from response_costs c where c.session_id = s.id)
        >= cast(nullif(:min_cost, '') as double precision) * 1000000
  )
order by s.ended_at desc, s.id desc
limit cast(coalesce(nullif(:limit, ''), '30') as integer)
