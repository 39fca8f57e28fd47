-- Indexed sources
-- All indexed roots: how much they contain, and when they were last read.
-- Group: database
with read as (
    select
        source_id,
        count(*) as file_count,
        sum(gone_at is not null) as gone_count,
        sum("offset") as bytes,
        sum("offset" < size and gone_at is null) as unfinished_count
    from files
    group by source_id
),
said as (
    select
        f.source_id,
        count(*) as block_count
    -- scans messages: counts the entries of an index, which is a fraction of the table.
    from (select file_id from messages) m
    join files f on f.id = m.file_id
    group by f.source_id
)
select
    s.kind,
    s.root,
    coalesce(read.file_count, 0) as file_count,
    coalesce(read.gone_count, 0) as gone_count,
    (select count(*) from sessions x where x.source_id = s.id) as session_count,
    coalesce(said.block_count, 0) as block_count,
    coalesce(read.bytes, 0) as bytes,
    s.last_synced_at,
    s.gone_at
from sources s
left join read on read.source_id = s.id
left join said on said.source_id = s.id
order by s.kind, s.root
