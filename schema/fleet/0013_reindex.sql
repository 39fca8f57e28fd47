-- Lets a login of assoc_admin, or the owner of the schema, make the rows of a machine anew. The machine
-- has to see afterwards that an administrator wrote, and not a copy of itself: until it writes again,
-- its origin keeps the nonces that were there before.

alter table assoc.origins add column reindexed_after uuid[] not null default '{}';

-- May the caller write for origins of this login? The owner of this function is that of the schema.
create function assoc.may_write(p_role name) returns boolean
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select p_role is not null and (
        p_role = session_user
        or pg_has_role(session_user, 'assoc_admin', 'member')
        or pg_has_role(session_user, current_user, 'member')
    )
$$;

create or replace function assoc.locked_origin(p_origin integer) returns assoc.origins
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    found_origin assoc.origins;
begin
    select * into found_origin from assoc.origins o where o.origin_id = p_origin for update;
    if not assoc.may_write(found_origin.role_name) then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
    return found_origin;
end $$;

-- 42501: an origin belongs to another login.
create function assoc.check_origin(p_origin integer) returns void
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    if not exists (
        select from assoc.origins o where o.origin_id = p_origin and assoc.may_write(o.role_name)
    ) then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
end $$;

-- Only the nonce of a reindex is sent after it is there: what another call sends is the machine's.
create or replace function assoc.raised_version(p_origin integer, p_nonce uuid) returns bigint
language sql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    update assoc.origins
    set version = version + 1,
        nonce = p_nonce,
        reindexed_after = case when nonce = p_nonce then reindexed_after else '{}' end,
        pushed_at = case
            when nonce = p_nonce and reindexed_after <> '{}' then pushed_at else now()
        end
    where origin_id = p_origin
    returning version
$$;

-- As hello_v1, with the nonces that administrators have replaced since the machine wrote.
create function assoc.hello_v2(p_uuid uuid)
returns table (origin_id integer, version bigint, nonce uuid, db_uuid uuid, label text,
               reindexed_after uuid[])
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select o.origin_id, o.version, o.nonce, o.db_uuid, o.label, o.reindexed_after
    from assoc.origins o
    where o.uuid = p_uuid and o.role_name = session_user
$$;

-- May the caller make the rows of an origin anew?
create function assoc.may_reindex_v1(p_origin integer) returns boolean
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select coalesce(
        (select assoc.may_write(o.role_name) from assoc.origins o where o.origin_id = p_origin), false
    )
$$;

-- Begins to make the rows of an origin anew: the calls that follow have this nonce.
create function assoc.reindex_v1(p_origin integer, p_nonce uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origins := assoc.locked_origin(p_origin);
begin
    update assoc.origins
    set version = o.version + 1, nonce = p_nonce, reindexed_after = o.reindexed_after || o.nonce
    where origin_id = p_origin;
    return o.version + 1;
end $$;

create or replace function assoc.frames_v1(p_origin integer, p_files integer[])
returns table (file_no integer, start bigint, digest bytea, rows_digest bytea)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.check_origin(p_origin);
    return query
    select f.file_no, f.start, f.digest, f.rows_digest
    from assoc.frames f
    where f.origin_id = p_origin and f.file_no = any (p_files);
end $$;

revoke all on function
    assoc.may_write(name), assoc.check_origin(integer), assoc.hello_v2(uuid),
    assoc.may_reindex_v1(integer), assoc.reindex_v1(integer, uuid)
    from public;
grant execute on function assoc.hello_v2(uuid), assoc.reindex_v1(integer, uuid) to assoc_device;
grant execute on function assoc.may_reindex_v1(integer) to assoc_reader, assoc_device, assoc_admin;
grant execute on function
    assoc.reindex_v1(integer, uuid),
    assoc.frames_v1(integer, integer[]), assoc.files_v1(integer, bigint, uuid, json),
    assoc.push_v1(integer, bigint, uuid, json, integer[], bigint[], boolean[], bytea[], bytea[],
                  bytea[], text[], json[], json)
    to assoc_admin;
