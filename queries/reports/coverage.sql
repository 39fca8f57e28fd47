-- Types of lines in the files
-- Every type of line that was ever seen in files of each system, also those that this program does
-- not know.
-- Group: database
select
    type,
    subtype,
    lines,
    files,
    source
from coverage
order by lines desc, type, subtype, source
