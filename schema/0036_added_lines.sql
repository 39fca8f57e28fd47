-- Lines that edits added: a commit or a line is found by its content, wherever its file lies now.

create table added_lines ( -- A line that an edit added to a file, without blanks around it; short lines, and those of an input that is cut, are left out
    id integer primary key,
    line_hash integer not null,         -- first 6 bytes of the BLAKE2b of the line, as a number
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line of the transcript
    block integer not null              -- with byte_offset the message with the call
) strict;
create index added_lines_hash on added_lines (line_hash);
create index added_lines_file on added_lines (file_id);
