-- Uncommitted changes by project
-- Changed files of the projects on this disk, as git listed them at the last sync --git: staged,
-- unstaged and untracked, at most 1,000 per project. seen_at is the time of that sync. A directory
-- that several agents know is listed once. git_diff has what the changes add and remove; is_diff_cut
-- says that it has only a part.
-- Group: open
select
    p.name as project,
    c.status,
    c.letter,
    c.path,
    c.seen_at,
    c.is_diff_cut,
    p.change_count as changes_of_project,
    p.head_branch as branch,
    p.path as project_path,
    c.project_id
from git_changes c
join projects p on p.id = c.project_id
where p.same_as is null
  and (
    coalesce(:project, '') = ''
    or p.id in (
        select coalesce(o.same_as, o.id)
        from json_each(:project) i
        join projects o on o.id = i.value
    )
  )
order by p.name, p.path, c.project_id, c.status, c.path
