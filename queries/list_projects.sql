-- Projects
-- Directories in which agents worked, the newest activity first. Without :all those are left out
-- whose directory is not on this machine, and without :gone those that only a list named, and no
-- longer names.
select
    p.name,
    p.path,
    p.session_count,
    p.last_activity_at,
    p.git_branch,
    o.name as worktree_of,
    p.on_disk,
    r.kind as source,
    p.gone_at,
    p.key
from projects p
join sources r on r.id = p.source_id
left join projects o on o.id = p.parent_id
where (
    coalesce(:all, '') <> ''
    or (p.gone_at is null and coalesce(p.on_disk, 1) = 1)
    or (coalesce(:gone, '') <> '' and p.gone_at is not null)
  )
  and (
    coalesce(:project, '') = ''
    or p.key = lower(:project)
    or lower(p.name) = lower(:project)
    or instr(lower(p.path), lower(:project))
  )
order by p.last_activity_at desc, p.id
limit cast(coalesce(nullif(:limit, ''), 30) as integer)
