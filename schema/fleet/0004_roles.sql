-- Who may do what. A device pushes, and sees nothing; a reader sees the origins of its teams; an
-- administrator manages. Roles belong to the whole server, so another database may have made them.

do $$
declare
    name text;
begin
    foreach name in array array['assoc_device', 'assoc_reader', 'assoc_admin'] loop
        if not exists (select from pg_roles where rolname = name) then
            execute format('create role %I nologin', name);
        end if;
    end loop;
end $$;

-- The origins that the caller may see.
create function assoc.visible_origins() returns integer[]
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select coalesce(array_agg(o.origin_id), '{}')
    from assoc.origins o
    where o.team is null
       or pg_has_role(session_user, 'assoc_admin', 'member')
       or exists (
           select from assoc.team_readers r
           where r.team = o.team and r.role_name = session_user
       )
$$;

revoke all on all functions in schema assoc from public;
grant usage on schema assoc to assoc_device, assoc_reader, assoc_admin;
grant execute on function
    assoc.hello_v1(uuid), assoc.mine_v1(), assoc.register_v1(uuid, text, uuid, uuid),
    assoc.adopt_v1(integer, uuid, uuid), assoc.fence_v1(integer, uuid),
    assoc.beginnings_v1(integer),
    assoc.frames_v1(integer, integer[]), assoc.keyed_v1(integer, text),
    assoc.files_v1(integer, bigint, uuid, json),
    assoc.push_v1(integer, bigint, uuid, json, integer[], bigint[], boolean[], bytea[], bytea[],
                  bytea[], text[], json[], json),
    assoc.forget_v1(integer, bigint, uuid, bytea[])
    to assoc_device;
grant execute on function
    assoc.visible_origins(), assoc.words(text), assoc.plain_text(text), assoc.cjk_pairs(text)
    to assoc_reader, assoc_device, assoc_admin;
grant select on all tables in schema assoc to assoc_reader;
revoke select on assoc.logins, assoc.team_readers from assoc_reader;
grant select on assoc.schema_version to assoc_device;
grant select, insert, update, delete on all tables in schema assoc to assoc_admin;

do $$
declare
    name text;
begin
    foreach name in array
        assoc.placed_tables() || assoc.keyed_tables()
        || array['origins', 'files', 'frames', 'deleted_files']
    loop
        execute format('alter table assoc.%I enable row level security', name);
        execute format(
            'create policy readers on assoc.%I for select to assoc_reader'
            ' using (origin_id = any ((select assoc.visible_origins())::integer[]))', name
        );
        execute format(
            'create policy administrators on assoc.%I to assoc_admin using (true)', name
        );
    end loop;
end $$;
