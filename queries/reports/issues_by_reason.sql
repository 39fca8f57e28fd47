-- Issues by reason
-- Number of issues by reason. Quarantined records could not be read; the others are stored
-- incompletely.
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
