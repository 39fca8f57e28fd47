-- One project
-- What is known of a project, by :id or by the text :name, which is its name or its key.
select
    p.name,
    p.path,
    p.key,
    coalesce(p.head_branch, p.git_branch) as git_branch,
    p.is_worktree,
    p.on_disk,
    p.session_count,
    p.last_activity_at,
    o.name as parent,
    r.kind as source,
    r.root,
    p.parent_id,
    p.id
from projects p
join sources r on r.id = p.source_id
left join projects o on o.id = p.parent_id
where p.id = :id
   or (
    coalesce(:id, '') = ''
    and p.same_as is null
    and exists (
        select 1
        from projects s
        where (s.id = p.id or s.same_as = p.id)
          and (lower(s.name) = lower(:name) or s.key in (:name, lower(:name)))
    )
   )
order by p.last_activity_at desc, p.id
