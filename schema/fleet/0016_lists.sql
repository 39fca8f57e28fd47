-- What lists of sessions look at beside sessions: branch, version and permission mode of the lines of a
-- file, where they change; and how the agent of a transcript was started.

create table assoc.contexts (
    origin_id integer not null,
    file_no integer not null,
    byte_offset bigint not null,
    row_no integer not null,
    name text collate "C",
    value text collate "C",
    primary key (origin_id, file_no, byte_offset, row_no)
);

create or replace function assoc.placed_tables() returns text[]
language sql immutable
as $$ select array[
    'messages', 'tool_calls', 'usage', 'stated_usage', 'responses', 'prompts', 'links', 'documents', 'plans',
    'todos', 'inbox_items', 'tool_result_files', 'issues', 'line_types',
    'agent_lines', 'contexts'
] $$;

grant select on assoc.contexts to assoc_reader;
grant select, insert, update, delete on assoc.contexts to assoc_admin;
alter table assoc.contexts enable row level security;
create policy readers on assoc.contexts for select to assoc_reader
    using (origin_id = any ((select assoc.visible_origins())::integer[]));
create policy administrators on assoc.contexts to assoc_admin using (true);

create view assoc_read.contexts with (security_barrier = true) as
select
    name, value, byte_offset,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.contexts
where origin_id = any ((select assoc.visible_origins())::integer[]);

alter table assoc.files add column entrypoint text collate "C";
create view assoc_read.transcripts with (security_barrier = true) as
select entrypoint, assoc_read.id(origin_id, file_no) as file_id, origin_id, file_no
from assoc.files
where kind = 'transcript' and origin_id = any ((select assoc.visible_origins())::integer[]);
grant select on assoc_read.contexts, assoc_read.transcripts to assoc_reader, assoc_admin;

-- A machine that finds another version than it left compares everything, and so sends all this.
update assoc.origins set version = version + 1;
