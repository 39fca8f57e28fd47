-- Files of a machine in the places of others that it is about to push and that are new here: a file
-- that was pruned there and came back, or one that a restored database did not have yet.
create function assoc.same_places_v1(
    p_origin integer, p_keys bytea[], p_kinds text[], p_roots text[], p_paths text[]
)
returns table (
    file_key bytea, kind text, root text, path text, data bytea, size bigint, is_whole boolean
)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.check_origin(p_origin);
    return query
    select f.file_key, s.kind, s.root, f.path, r.data, f.size, not exists (
        select from assoc.frames more
        where more.origin_id = f.origin_id and more.file_no = f.file_no and more.start > 0
    )
    from (
        select distinct g.kind, g.root, g.path
        from unnest(p_keys, p_kinds, p_roots, p_paths) as g(file_key, kind, root, path)
        where not exists (
            select from assoc.files k
            where k.origin_id = p_origin and k.file_key = g.file_key
        )
    ) g
    join assoc.sources s
        on s.origin_id = p_origin and s.kind = g.kind collate "C" and s.root = g.root collate "C"
    join assoc.files f
        on f.origin_id = p_origin and f.source_no = s.source_no and f.path = g.path collate "C"
    left join assoc.frames r
        on r.origin_id = f.origin_id and r.file_no = f.file_no and r.start = 0
    order by s.kind, s.root, f.path, f.generation desc, f.file_no desc;
end $$;

revoke all on function assoc.same_places_v1(integer, bytea[], text[], text[], text[]) from public;
grant execute on function assoc.same_places_v1(integer, bytea[], text[], text[], text[])
    to assoc_device, assoc_admin;
