-- Names of entries that are no messages
-- What `show` could have been asked for instead of a name that it does not know, of the store :what.
select distinct x.name
from (
    select 'task' as what, t.list_key || '/' || t.task_key as name
    from tasks t
    union all
    select 'todo', t.session_key
    from todos t
    union all
    select 'plan', p.name
    from plans p
    union all
    select 'inbox', f.team_key || '/' || i.recipient
    from inbox_items i
    join files f on f.id = i.file_id
    where i.channel = 'inbox'
    union all
    select 'document', d.path
    from documents d
    union all
    select 'output', o.session_key || '/' || o.name
    from tool_result_files o
) x
where x.what = :what
  and x.name <> ''
limit 5000
