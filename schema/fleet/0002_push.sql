-- What machines call. Each function works for the origins of its caller alone, and those that write
-- apply nothing unless the caller knows the present version: what is late or repeated does nothing.
-- A name ends in its version, and stays for two releases after a newer one.

-- Locks an origin until the transaction ends. 42501: it belongs to another login.
create function assoc.locked_origin(p_origin integer) returns assoc.origins
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    found_origin assoc.origins;
begin
    select * into found_origin from assoc.origins o where o.origin_id = p_origin for update;
    if found_origin.role_name is distinct from session_user then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
    return found_origin;
end $$;

-- Counts one more version.
create function assoc.raised_version(p_origin integer, p_nonce uuid) returns bigint
language sql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    update assoc.origins
    set version = version + 1, nonce = p_nonce, pushed_at = now()
    where origin_id = p_origin
    returning version
$$;

-- Columns of a table but `origin_id` and `file_no`, quoted; with a prefix.
create function assoc.columns_of(p_table text, p_prefix text) returns text
language sql stable set search_path = pg_catalog, assoc, pg_temp
as $$
    select string_agg(p_prefix || quote_ident(attname), ', ' order by attnum)
    from pg_attribute
    where attrelid = ('assoc.' || quote_ident(p_table))::regclass
      and attnum > 0 and not attisdropped and attname not in ('origin_id', 'file_no')
$$;

-- Columns of a table's key, in order.
create function assoc.key_of(p_table text) returns text[]
language sql stable set search_path = pg_catalog, assoc, pg_temp
as $$
    select array_agg(a.attname::text order by array_position(i.indkey::int2[], a.attnum))
    from pg_index i
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
    where i.indisprimary and i.indrelid = ('assoc.' || quote_ident(p_table))::regclass
$$;

-- Who the server thinks a machine is; no row: it never pushed.
create function assoc.hello_v1(p_uuid uuid)
returns table (origin_id integer, version bigint, nonce uuid, db_uuid uuid, label text)
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select o.origin_id, o.version, o.nonce, o.db_uuid, o.label
    from assoc.origins o
    where o.uuid = p_uuid and o.role_name = session_user
$$;

-- The machines that push with the caller's login.
create function assoc.mine_v1()
returns table (origin_id integer, uuid uuid, label text, pushed_at timestamptz)
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select o.origin_id, o.uuid, o.label, o.pushed_at
    from assoc.origins o
    where o.role_name = session_user
    order by o.pushed_at desc
$$;

-- Makes an origin that belongs to the caller. 23505: somebody has this uuid or label.
create function assoc.register_v1(p_uuid uuid, p_label text, p_db_uuid uuid, p_nonce uuid)
returns integer
language sql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    insert into assoc.origins (uuid, role_name, label, db_uuid, nonce, team)
    values (p_uuid, session_user, p_label, p_db_uuid, p_nonce,
            (select team from assoc.logins where role_name = session_user))
    returning origin_id
$$;

-- Says that another local database continues an origin.
create function assoc.adopt_v1(p_origin integer, p_db_uuid uuid, p_nonce uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.locked_origin(p_origin);
    update assoc.origins set db_uuid = p_db_uuid where origin_id = p_origin;
    return assoc.raised_version(p_origin, p_nonce);
end $$;

-- Raises the version of an origin, so that a call of a push that died applies nothing when it comes.
create function assoc.fence_v1(p_origin integer, p_nonce uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.locked_origin(p_origin);
    return assoc.raised_version(p_origin, p_nonce);
end $$;

-- How the files of an origin begin, the newest of a path first, for a machine that lost its database.
create function assoc.beginnings_v1(p_origin integer)
returns table (file_key bytea, kind text, root text, path text, data bytea)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    if not exists (
        select from assoc.origins o where o.origin_id = p_origin and o.role_name = session_user
    ) then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
    return query
    select f.file_key, s.kind, s.root, f.path, r.data
    from assoc.files f
    join assoc.sources s on s.origin_id = f.origin_id and s.source_no = f.source_no
    left join assoc.frames r
        on r.origin_id = f.origin_id and r.file_no = f.file_no and r.start = 0
    where f.origin_id = p_origin
    order by s.kind, s.root, f.path, f.generation desc, f.file_no desc;
end $$;

-- The frames of some files, by their digests.
create function assoc.frames_v1(p_origin integer, p_files integer[])
returns table (file_no integer, start bigint, digest bytea, rows_digest bytea)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    if not exists (
        select from assoc.origins o where o.origin_id = p_origin and o.role_name = session_user
    ) then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
    return query
    select f.file_no, f.start, f.digest, f.rows_digest
    from assoc.frames f
    where f.origin_id = p_origin and f.file_no = any (p_files);
end $$;

-- The keys of a keyed table, each value as text, and the digests of its rows.
create function assoc.keyed_v1(p_origin integer, p_table text)
returns table (key text[], digest bytea)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
    set bytea_output = 'hex'
as $$
begin
    if not exists (
        select from assoc.origins o where o.origin_id = p_origin and o.role_name = session_user
    ) then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
    return query execute format(
        'select array[%s]::text[], digest from assoc.%I where origin_id = $1',
        (select string_agg(format('%I::text', name), ', ' order by n)
         from unnest(assoc.key_of(p_table)) with ordinality as u (name, n)
         where name <> 'origin_id'),
        p_table
    ) using p_origin;
end $$;

-- Makes files known, or their attributes those that are given, and says their numbers in that order.
create function assoc.files_v1(
    p_origin integer, p_version bigint, p_nonce uuid, p_files json,
    out applied boolean, out version bigint, out nonce uuid, out numbers integer[]
)
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origins := assoc.locked_origin(p_origin);
    keys bytea[];
    added integer;
    changed bigint;
begin
    applied := o.version = p_version;
    version := o.version;
    nonce := o.nonce;
    if not applied then
        return;
    end if;
    keys := array(
        select (file->>'file_key')::bytea from json_array_elements(p_files) with ordinality as e (file, n)
        order by n
    );
    insert into assoc.files (origin_id, file_no, file_key)
    select p_origin, o.next_file_no - 1 + row_number() over (order by n), key
    from unnest(keys) with ordinality as u (key, n)
    where not exists (
        select from assoc.files f where f.origin_id = p_origin and f.file_key = key
    );
    get diagnostics added = row_count;
    execute format(
        'update assoc.files f set (%s) = (%s)'
        ' from json_populate_recordset(null::assoc.files, $2) r'
        ' where f.origin_id = $1 and f.file_key = r.file_key and (%s) is distinct from (%s)',
        assoc.columns_of('files', ''), assoc.columns_of('files', 'r.'),
        assoc.columns_of('files', 'f.'), assoc.columns_of('files', 'r.')
    ) using p_origin, p_files;
    get diagnostics changed = row_count;
    numbers := array(
        select f.file_no
        from unnest(keys) with ordinality as u (key, n)
        join assoc.files f on f.origin_id = p_origin and f.file_key = key
        order by n
    );
    if added + changed > 0 then
        update assoc.origins set next_file_no = next_file_no + added where origin_id = p_origin;
        version := assoc.raised_version(p_origin, p_nonce);
        nonce := p_nonce;
    end if;
end $$;

-- Makes the rows of placed tables in ranges of files those that are given.
create function assoc.write_placed(p_origin integer, p_table text, p_ranges json, p_rows json)
returns void
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    key text[];
    columns text;
    new_columns text;
    gone text := format(
        'delete from assoc.%I t using json_to_recordset($2) as r (file_no int, start bigint, "end" bigint)'
        ' where t.origin_id = $1 and t.file_no = r.file_no and t.byte_offset >= r.start'
        ' and (r."end" is null or t.byte_offset < r."end")', p_table
    );
begin
    if p_rows is null then
        execute gone using p_origin, p_ranges;
        return;
    end if;
    key := assoc.key_of(p_table);
    columns := assoc.columns_of(p_table, '');
    new_columns := assoc.columns_of(p_table, 'excluded.');
    execute format(
        'with n as materialized (select * from json_populate_recordset(null::assoc.%1$I, $3)),'
        ' gone as (%2$s and not exists (select from n where %3$s))'
        ' insert into assoc.%1$I as t (origin_id, file_no, %4$s) select $1, file_no, %4$s from n'
        ' on conflict (%5$s) do update set (%4$s) = (%6$s) where (%7$s) is distinct from (%6$s)',
        p_table, gone,
        (select string_agg(format('n.%I = t.%I', k, k), ' and ') from unnest(key[2:]) k),
        columns, array_to_string(key, ', '), new_columns, assoc.columns_of(p_table, 't.')
    ) using p_origin, p_ranges, p_rows;
end $$;

-- Writes rows of a keyed table, and deletes those whose keys are given.
create function assoc.write_keyed(p_origin integer, p_table text, p_rows json, p_gone json)
returns void
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    key text[] := assoc.key_of(p_table);
begin
    execute format(
        'delete from assoc.%1$I t using json_populate_recordset(null::assoc.%1$I, $2) n'
        ' where t.origin_id = $1 and %2$s', p_table,
        (select string_agg(format('n.%I = t.%I', k, k), ' and ') from unnest(key[2:]) k)
    ) using p_origin, coalesce(p_gone, '[]');
    execute format(
        'insert into assoc.%1$I as t (origin_id, %2$s)'
        ' select $1, %2$s from json_populate_recordset(null::assoc.%1$I, $2)'
        ' on conflict (%3$s) do update set (%2$s) = (%4$s) where t.digest <> excluded.digest',
        p_table, assoc.columns_of(p_table, ''), array_to_string(key, ', '),
        assoc.columns_of(p_table, 'excluded.')
    ) using p_origin, coalesce(p_rows, '[]');
end $$;

-- Makes the frames and rows in ranges of files those that are given, and writes keyed rows.
--   p_ranges   [{"file_no", "start", "end"}]: end is null for everything from start on
--   p_keep     the frame has the bytes that it had, and only its rows differ: data is not sent
--   p_tables   the tables of p_rows, one JSON text for each: a text is parsed once
--   p_rows     [row]: all rows of a table that lie in the ranges, and the keyed rows that differ
--   p_gone     {table: [key]}: keyed rows to delete
create function assoc.push_v1(
    p_origin integer, p_version bigint, p_nonce uuid, p_ranges json,
    p_file_no integer[], p_start bigint[], p_keep boolean[], p_data bytea[],
    p_digest bytea[], p_rows_digest bytea[], p_tables text[], p_rows json[], p_gone json,
    out applied boolean, out version bigint, out nonce uuid
)
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origins := assoc.locked_origin(p_origin);
    name text;
begin
    applied := o.version = p_version;
    version := o.version;
    nonce := o.nonce;
    if not applied then
        return;
    end if;
    if json_array_length(p_ranges) > 0 then
        with sent as materialized (
            select * from unnest(p_file_no, p_start, p_keep, p_data, p_digest, p_rows_digest)
                as u (file_no, start, keep, data, digest, rows_digest)
        ), gone as (
            delete from assoc.frames t
            using json_to_recordset(p_ranges) as r (file_no int, start bigint, "end" bigint)
            where t.origin_id = p_origin and t.file_no = r.file_no and t.start >= r.start
              and (r."end" is null or t.start < r."end")
              and not exists (select from sent s where s.file_no = t.file_no and s.start = t.start)
        ), kept as (
            update assoc.frames t
            set rows_digest = s.rows_digest
            from sent s
            where s.keep and t.origin_id = p_origin and t.file_no = s.file_no and t.start = s.start
        )
        insert into assoc.frames as t
            (origin_id, file_no, start, data, digest, rows_digest)
        select p_origin, file_no, start, data, digest, rows_digest
        from sent
        where not keep
        on conflict (origin_id, file_no, start) do update
        set data = excluded.data, digest = excluded.digest, rows_digest = excluded.rows_digest;
        foreach name in array assoc.placed_tables() loop
            perform assoc.write_placed(
                p_origin, name, p_ranges, p_rows[array_position(p_tables, name)]
            );
        end loop;
    end if;
    foreach name in array assoc.keyed_tables() loop
        if name = any (p_tables) or p_gone->name is not null then
            perform assoc.write_keyed(
                p_origin, name, p_rows[array_position(p_tables, name)], p_gone->name
            );
        end if;
    end loop;
    version := assoc.raised_version(p_origin, p_nonce);
    nonce := p_nonce;
end $$;

-- Tables whose rows stand in files.
create function assoc.placed_tables() returns text[]
language sql immutable
as $$ select array[
    'messages', 'tool_calls', 'usage', 'stated_usage', 'responses', 'prompts', 'links', 'documents', 'plans',
    'todos', 'inbox_items', 'tool_result_files', 'issues', 'line_types',
    'agent_lines'
] $$;

-- Tables whose rows outlive files.
create function assoc.keyed_tables() returns text[]
language sql immutable
as $$ select array[
    'sources', 'projects', 'agents', 'sessions', 'subagents', 'teams', 'team_members', 'tasks',
    'task_dependencies', 'prices'
] $$;

-- Deletes files with all that they have here.
create function assoc.forget_v1(
    p_origin integer, p_version bigint, p_nonce uuid, p_keys bytea[],
    out applied boolean, out version bigint, out nonce uuid
)
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origins := assoc.locked_origin(p_origin);
    numbers integer[];
    name text;
begin
    applied := o.version = p_version;
    version := o.version;
    nonce := o.nonce;
    if not applied then
        return;
    end if;
    insert into assoc.deleted_files (origin_id, file_key)
    select distinct p_origin, k from unnest(p_keys) k
    on conflict do nothing;
    numbers := array(
        select file_no from assoc.files f where f.origin_id = p_origin and f.file_key = any (p_keys)
    );
    if numbers = '{}' then
        return;
    end if;
    foreach name in array assoc.placed_tables() || array['frames', 'files'] loop
        execute format('delete from assoc.%I where origin_id = $1 and file_no = any ($2)', name)
            using p_origin, numbers;
    end loop;
    version := assoc.raised_version(p_origin, p_nonce);
    nonce := p_nonce;
end $$;
