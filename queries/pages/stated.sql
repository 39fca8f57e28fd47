-- The line that states a task, a todo or a plan
-- Where it stands in a transcript. No row: it comes from a file of its own.
select x.file_id, x.byte_offset
from (
    select 'task' as what, id, file_id, byte_offset, channel
    from tasks
    union all
    select 'todo', id, file_id, byte_offset, channel
    from todos
    union all
    select 'plan', id, file_id, byte_offset, channel
    from plans
) x
where x.what = :what
  and x.id = :id
  and x.channel = 'transcript'
