-- What newer versions of Claude Code write: a person's label, lineage, and lines of types that nobody
-- knew before.

alter table transcripts add column tag text /* label that a person gave it; empty: taken back */;
alter table transcripts add column agent_color text /* color that a person gave it */;
alter table transcripts add column forked_from_uuid text /* last line that a branch has of the session that it comes from */;
alter table line_types add column first_offset integer /* first byte of the first such line that the system itself wrote, if that is known */;

create index links_lineage on links (url) where kind in ('continued_in', 'derived_from');
