-- Issues by reason
-- Pieces by reason. Those that are quarantined became no record; the others lost something.
-- Group: database
select
    i.reason,
    count(*) as pieces,
    sum(i.quarantined) as quarantined,
    count(distinct i.file_id) as files,
    sum(i.byte_length) as bytes
from issues i
group by i.reason
order by pieces desc, i.reason
