-- How much a machine may store, besides all machines of its login; null: as much as those.
alter table assoc.origins add column most_bytes bigint;

-- A machine has a row in assoc.stored if it, or its login, has a limit.
insert into assoc.stored (origin_id, bytes)
select o.origin_id, 0
from assoc.origins o
join assoc.logins l on l.role_name = o.role_name
where l.most_bytes is not null
on conflict do nothing;
