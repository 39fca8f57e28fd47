-- Projects
-- Directories in which agents worked, the newest activity first. Directories that are not on this
-- machine (on_disk is 0) are shown only with :all. A directory that several agents or homes know is
-- one row with the conversations of all, and source lists their kinds. session_count counts the
-- conversations that the list of conversations shows, and sessions_with_worktrees those of a
-- repository and its worktrees. Projects that were removed from the only list that had them are
-- shown only with :gone or :all.
with shown as materialized (
    select s.project_id, count(*) as session_count
    from sessions s
    where s.kind in ('main', 'background')
      and s.message_count + s.copied_message_count > 0
      and not exists (
        select 1
        from sessions l
        where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
      )
    group by s.project_id
),
places as materialized (
    select
        k.id,
        sum(k.session_count) as session_count,
        max(k.last_activity_at) as last_activity_at,
        iif(count(*) = count(k.gone_at), max(k.gone_at), null) as gone_at,
        group_concat(distinct k.source) as source
    from (
        select
            coalesce(p.same_as, p.id) as id,
            coalesce(s.session_count, 0) as session_count,
            p.last_activity_at,
            p.gone_at,
            r.kind as source
        from projects p
        join sources r on r.id = p.source_id
        left join shown s on s.project_id = p.id
        order by r.kind
    ) k
    group by k.id
)
select
    p.name,
    x.session_count,
    x.last_activity_at,
    p.path,
    p.on_disk,
    (
        select x.session_count + sum(coalesce(s.session_count, 0))
        from projects w
        left join shown s on s.project_id = w.id
        join projects o on o.id = w.parent_id
        where coalesce(o.same_as, o.id) = p.id
    ) as sessions_with_worktrees,
    p.git_branch,
    o.name as worktree_of,
    x.source,
    x.gone_at,
    p.key,
    p.id
from places x
join projects p on p.id = x.id
left join projects o on o.id = p.parent_id
where (coalesce(:all, '') <> '' or coalesce(:gone, '') <> '' or x.gone_at is null)
  and (
    coalesce(:all, '') <> '' or not coalesce(:project, '') = ''
    or p.path is null or coalesce(p.on_disk, 1) <> 0 or x.gone_at is not null
  )
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (
    coalesce(:since, :until, '') = ''
    or exists (
        select 1
        from projects q
        join sessions s on s.project_id = q.id
        where coalesce(q.same_as, q.id) = p.id
          and (coalesce(:since, '') = '' or s.ended_at >= :since)
          and (coalesce(:until, '') = '' or s.started_at < :until)
    )
  )
  and (
    coalesce(:source, '') = ''
    or exists (
        select 1
        from projects s
        join sources r on r.id = s.source_id
        where (s.id = p.id or s.same_as = p.id) and r.kind = :source
    )
  )
order by x.last_activity_at desc, p.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)
