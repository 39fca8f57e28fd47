-- Types of lines in the files
-- All types of lines ever seen in the files of each source, including unknown ones.
-- Group: database
select
    type,
    subtype,
    lines,
    files,
    source
from coverage
order by lines desc, type, subtype, source
