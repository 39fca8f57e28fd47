alter table projects add column same_as integer references projects (id) on delete set null /* the project that stands for this directory, where several agents or homes know it; null for that one */;
create index projects_path on projects (lower(path));
create index projects_same_as on projects (same_as) where same_as is not null;
update projects set same_as = (
    select nullif(o.id, projects.id)
    from projects o
    join sources r on r.id = o.source_id
    where lower(o.path) = lower(projects.path)
      and (o.path = projects.path or o.path glob '[A-Za-z]:*' or o.path glob '//*') -- Windows
    order by r.is_agent desc, r.root, o.key
    limit 1
);
