-- How many lines a stretch of the archive has, so that the place of a line is found without reading
-- all that stands before it.
alter table archive add column line_count integer /* line breaks in the stretch; null: not counted when it was written */;
create index archive_lines on archive (file_id, start, "end", line_count);
