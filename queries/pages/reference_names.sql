-- Names of entries that are no messages
-- What `show` could have been asked for instead of a name that it does not know, of the store :what.
select distinct e.head || iif(e.tail is null or e.what in ('inbox', 'document'), '', '/' || e.tail) as name
from searchable e
where e.what = :what
  and e.is_repeated = 0
  and e.head <> ''
limit 5000
