-- Distributes the tables over the nodes of Citus: by machine, and those that are not about one machine
-- as a copy on each node. Tables that are distributed already stay as they are.
--
-- A search asks each shard several times, whatever is in it, so there are two for each worker, unless
-- an administrator has set another number.

do $$
declare
    is_new constant boolean := not exists (
        select from pg_catalog.pg_dist_partition p where p.logicalrelid = 'assoc.files'::regclass
    );
    name text;
    is_of_machine boolean;
begin
    if is_new then
        -- Otherwise Citus would turn `files` into a table of another kind when it copies `origins`.
        alter table assoc.files drop constraint files_origin_id_fkey;
        if exists (
            select from pg_settings s where s.name = 'citus.shard_count' and s.source = 'default'
        ) then
            perform set_config(
                'citus.shard_count',
                (select greatest(2, 2 * count(*))::text from citus_get_active_worker_nodes()), true
            );
        end if;
    end if;
    for name, is_of_machine in
        select c.relname, a.attname is not null and c.relname <> 'origins'
        from pg_catalog.pg_class c
        left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'origin_id'
        where c.relnamespace = 'assoc'::regnamespace and c.relkind = 'r'
          and c.relname not in ('schema_version', 'statements')
          and not exists (
            select from pg_catalog.pg_dist_partition p where p.logicalrelid = c.oid
          )
        order by 2, c.relname <> 'files', c.relname
    loop
        if is_of_machine then
            perform create_distributed_table(
                format('assoc.%I', name), 'origin_id',
                colocate_with := case name when 'files' then 'none' else 'assoc.files' end
            );
        else
            perform create_reference_table(format('assoc.%I', name));
        end if;
    end loop;
    if is_new then
        alter table assoc.files add constraint files_origin_id_fkey
            foreign key (origin_id) references assoc.origins (origin_id);
    end if;
end $$;
