-- What to call an entry that is no message
-- The two parts of the name by which `show` opens the entry :id of the store :what; is_session: the
-- first part is the key of a session. Without a first part it is named by its line.
select
    x.head,
    x.tail,
    exists (
        select 1
        from sessions s
        where s.session_key = x.head
    ) as is_session,
    x.file_id,
    x.byte_offset
from (
    select 'task' as what, t.id, t.list_key as head, t.task_key as tail, t.file_id, t.byte_offset
    from tasks t
    union all
    select 'todo', t.id, coalesce(t.session_key, f.path), null, t.file_id, t.byte_offset
    from todos t
    join files f on f.id = t.file_id
    union all
    select 'plan', p.id, nullif(p.name, ''), null, p.file_id, p.byte_offset
    from plans p
    union all
    select
        'inbox',
        i.id,
        coalesce(f.team_key, f.path) || '/' || coalesce(i.recipient, ''),
        -- its place among those of the inbox, by the index that keeps them apart
        (
            select count(*)
            from inbox_items o
            where o.file_id = i.file_id
              and o.byte_offset = i.byte_offset
              and (coalesce(o.timestamp, ''), coalesce(o.sender, ''), coalesce(o.text_hash, ''), o.ordinal)
                <= (coalesce(i.timestamp, ''), coalesce(i.sender, ''), coalesce(i.text_hash, ''), i.ordinal)
        ),
        i.file_id,
        i.byte_offset
    from inbox_items i
    join files f on f.id = i.file_id
    union all
    select 'document', d.id, d.path, nullif(d.ordinal, 0), d.file_id, 0
    from documents d
    union all
    select 'prompt', p.id, null, null, p.file_id, p.byte_offset
    from prompts p
    union all
    select 'tool_result_file', o.id, coalesce(o.session_key, o.name), iif(o.session_key is null, null, o.name), o.file_id, 0
    from tool_result_files o
) x
where x.what = :what
  and x.id = :id
