-- What is not in the index yet
-- Files that were read, and have grown since, and records that could not be parsed. A file of which
-- nothing is ever read, such as one with credentials, does not count, unless it is a transcript.
select
    count(*) as files,
    coalesce(sum(f.size - f.offset), 0) as bytes,
    (select count(*) from issues where quarantined = 1) as unparsed
from files f
where f.gone_at is null
  and f.offset < f.size
  and (f.offset > 0 or f.kind = 'transcript')
