-- Prompts of the history by their place
-- The prompt that begins at :byte_offset in the history :file, or the first one behind it.
select
    null as name,
    null as title,
    trim(i.text || char(10) || coalesce(i.pasted, ''), char(10)) as text,
    null as kind,
    i.project_path as facts,
    i.timestamp,
    f.gone_at,
    s.session_key,
    s.title as session,
    r.root,
    f.path,
    'file' as channel,
    i.byte_offset,
    i.file_id,
    i.id
from prompts i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
where i.file_id = :file
  and i.byte_offset >= :byte_offset
order by i.byte_offset
limit 1
