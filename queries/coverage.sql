-- What the files hold
-- Every type of line that was ever seen, also those that this program does not know.
select
    type,
    subtype,
    lines,
    files
from coverage
order by lines desc, type, subtype
