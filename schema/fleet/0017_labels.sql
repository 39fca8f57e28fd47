-- A login cannot take all labels: it may register a limited number of machines, and a label that was
-- used by a machine of another login stays with that login.

alter table assoc.logins add column most_origins integer not null default 5;

create table assoc.labels (
    label text primary key,
    role_name name not null
);
insert into assoc.labels select label, role_name from assoc.origins;
