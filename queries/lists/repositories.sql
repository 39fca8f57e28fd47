-- Repositories
-- All clones and worktrees of a repository as one row, the newest activity first. directories counts
-- them, branches the last branches of their conversations. session_count counts the conversations
-- that the list of sessions shows. A repository in which nobody worked is shown only with :all.
with shown as materialized (
    select s.project_id, s.git_branch, s.started_at, s.ended_at, s.source_id
    from sessions s
    where s.kind in ('main', 'background')
      and s.message_count + s.copied_message_count > 0
      and not exists (
        select 1
        from sessions l
        where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
      )
)
select
    max(p.repository_name) as repository,
    count(s.project_id) as session_count,
    max(s.ended_at) as last_activity_at,
    count(distinct coalesce(p.same_as, p.id)) as directories,
    count(distinct nullif(s.git_branch, '')) as branches,
    max(coalesce(p.git_remote, p.remote)) as remote,
    p.repository_key
from projects p
left join shown s on s.project_id = p.id
    and (coalesce(:since, '') = '' or s.ended_at >= :since)
    and (coalesce(:until, '') = '' or s.started_at < :until)
    and (
        coalesce(:source, '') = ''
        or s.source_id in (select r.id from sources r where r.kind = :source)
    )
where coalesce(:project, '') = ''
   or p.id in (select value from json_each(:project))
group by p.repository_key
having coalesce(:all, '') <> '' or count(s.project_id) > 0
order by last_activity_at desc, p.repository_key
limit cast(coalesce(nullif(:limit, ''), '30') as integer)
