-- Projects
-- Directories in which agents worked, the newest activity first. on_disk is 0 if a directory is not
-- on this machine. sessions_with_worktrees counts the sessions of a repository and its worktrees.
-- Projects that only a list named, and no longer names, are shown only with :gone or :all.
select
    p.name,
    p.path,
    p.on_disk,
    p.session_count,
    p.last_activity_at,
    (
        select p.session_count + sum(w.session_count)
        from projects w
        where w.parent_id = p.id
    ) as sessions_with_worktrees,
    p.git_branch,
    o.name as worktree_of,
    r.kind as source,
    p.gone_at,
    p.key,
    p.id
from projects p
join sources r on r.id = p.source_id
left join projects o on o.id = p.parent_id
where (coalesce(:all, '') <> '' or coalesce(:gone, '') <> '' or p.gone_at is null)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:since, '') = '' or p.last_activity_at >= :since)
  and (coalesce(:until, '') = '' or p.last_activity_at < :until)
  and (coalesce(:source, '') = '' or r.kind = :source)
order by p.last_activity_at desc, p.id
limit cast(coalesce(nullif(:limit, ''), 30) as integer)
