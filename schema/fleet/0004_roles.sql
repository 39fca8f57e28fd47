-- Roles belong to the whole server, so another database may have made them. Their rights are in code.sql.

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
