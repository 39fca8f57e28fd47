-- Uncommitted lines by project
-- The diffs of uncommitted changes, as git printed them at the last sync --git: at most 1,000 lines a
-- file and 512 KiB a project, for staged changes and for the others. is_cut says that a diff has
-- more. What looks like a credential is covered by stars.
-- Group: open
select
    p.name as project,
    d.path,
    d.status,
    d.kind,
    d.text,
    d.position,
    c.is_diff_cut as is_cut,
    d.seen_at,
    p.path as project_path,
    d.project_id
from git_diff_lines d
join projects p on p.id = d.project_id
join git_changes c on c.project_id = d.project_id and c.path = d.path and c.status = d.status
where p.same_as is null
  and (
    coalesce(:project, '') = ''
    or p.id in (
        select coalesce(o.same_as, o.id)
        from json_each(:project) i
        join projects o on o.id = i.value
    )
  )
order by p.name, p.path, d.project_id, d.path, d.status, d.position
