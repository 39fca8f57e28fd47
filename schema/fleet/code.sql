-- Functions, views, policies and rights: everything on the server that holds no data. `remote migrate`
-- drops them, applies the migrations of this directory, and creates them again, so a change here needs
-- no migration. Only removing one does: a migration that drops it. The functions that the text index
-- calls are in 0003_words.sql, because a change there invalidates the index.

create schema if not exists assoc_read;

-- Are the tables on several nodes (Citus)?
create function assoc.is_distributed() returns boolean
language plpgsql stable
as $$
begin
    if to_regclass('pg_catalog.pg_dist_partition') is null then
        return false;
    end if;
    return exists (select from pg_dist_partition p where p.logicalrelid = 'assoc.files'::regclass);
end $$;

-- The origins that the caller may see.
--
-- Here and below, a function first says who calls it: a question to tables may be answered by another
-- node (Citus), where somebody else is the user of the session.
create function assoc.visible_origins() returns integer[]
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    caller constant name := session_user;
    sees_all constant boolean := pg_has_role(session_user, 'assoc_admin', 'member');
begin
    return array(
        select o.origin_id
        from assoc.origins o
        where o.team is null
           or sees_all
           or exists (
               select from assoc.team_readers r where r.team = o.team and r.role_name = caller
           )
    );
end $$;

-- The functions that machines call. Each works only on origins of its caller, and those that write
-- apply nothing unless the caller passes the current version, so a late or repeated call does nothing.
-- A name ends in a version number, and is kept for two releases after its successor.

-- May the caller write to the origins of this login? The owner of this function also owns the schema.
-- An origin whose login is empty was removed by an administrator.
create function assoc.may_write(p_role name) returns boolean
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select p_role is not null and (
        p_role = session_user
        or pg_has_role(session_user, 'assoc_admin', 'member')
        or pg_has_role(session_user, current_user, 'member')
    )
$$;

-- The login that pushes an origin.
create function assoc.login_of(p_origin integer) returns name
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    login name;
begin
    select o.role_name into login from assoc.origins o where o.origin_id = p_origin;
    return login;
end $$;

-- Locks an origin until the transaction ends. 42501: it belongs to another login, which this login
-- cannot hold up, because nothing is locked before that is known.
create function assoc.locked_origin(p_origin integer) returns assoc.origin_states
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    state assoc.origin_states;
begin
    perform assoc.check_origin(p_origin);
    select * into state from assoc.origin_states s where s.origin_id = p_origin for update;
    return state;
end $$;

-- 42501: an origin belongs to another login.
create function assoc.check_origin(p_origin integer) returns void
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    login constant name := assoc.login_of(p_origin);
begin
    -- may_write also says so, but takes as long as a statement of a push.
    if login <> session_user and not assoc.may_write(login) or login is null then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
end $$;

-- Raises the version. Only calls of a reindex send a nonce that is already stored; any other nonce
-- comes from the machine itself, which ends the reindex.
create function assoc.raised_version(p_origin integer, p_nonce uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    moment constant timestamptz := now();
    raised bigint;
begin
    update assoc.origin_states s
    set version = s.version + 1,
        nonce = p_nonce,
        reindexed_after = case when s.nonce = p_nonce then s.reindexed_after else '{}' end,
        pushed_at = case
            when s.nonce = p_nonce and s.reindexed_after <> '{}' then s.pushed_at else moment
        end
    where s.origin_id = p_origin
    returning s.version into raised;
    return raised;
end $$;

-- The columns of a table's primary key, in order.
create function assoc.key_of(p_table text) returns text[]
language sql stable set search_path = pg_catalog, assoc, pg_temp
as $$
    select array_agg(a.attname::text order by array_position(i.indkey::int2[], a.attnum))
    from pg_index i
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
    where i.indisprimary and i.indrelid = ('assoc.' || quote_ident(p_table))::regclass
$$;

-- What the server knows about a machine; no row: it never pushed.
create function assoc.hello_v2(p_uuid uuid)
returns table (origin_id integer, version bigint, nonce uuid, db_uuid uuid, label text,
               reindexed_after uuid[])
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    caller constant name := session_user;
begin
    select o.origin_id, o.label into hello_v2.origin_id, hello_v2.label
    from assoc.origins o
    where o.uuid = p_uuid and o.role_name = caller;
    return query
    select s.origin_id, s.version, s.nonce, s.db_uuid, hello_v2.label, s.reindexed_after
    from assoc.origin_states s
    where s.origin_id = hello_v2.origin_id;
end $$;

-- hello_v2 without the nonces that a reindex has replaced since the machine last wrote.
create function assoc.hello_v1(p_uuid uuid)
returns table (origin_id integer, version bigint, nonce uuid, db_uuid uuid, label text)
language sql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
    select h.origin_id, h.version, h.nonce, h.db_uuid, h.label from assoc.hello_v2(p_uuid) h
$$;

-- The machines that push with the caller's login.
create function assoc.mine_v1()
returns table (origin_id integer, uuid uuid, label text, pushed_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    caller constant name := session_user;
begin
    return query
    select o.origin_id, o.uuid, o.label, s.pushed_at
    from assoc.origins o
    join assoc.origin_states s on s.origin_id = o.origin_id
    where o.role_name = caller
    order by s.pushed_at desc;
end $$;

-- Creates an origin that belongs to the caller. 54000: the login has reached its limit of origins.
-- 23505: the uuid or the label is taken, or an administrator removed the machine. 23514: the label is too
-- long, or one that a removal or a uuid would be mistaken for.
create function assoc.register_v1(p_uuid uuid, p_label text, p_db_uuid uuid, p_nonce uuid)
returns integer
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    caller constant name := session_user;
    is_owner boolean := pg_has_role(session_user, current_user, 'member');
    most integer;
    team_of_login text;
    most_bytes bigint;
    made integer;
begin
    -- Otherwise two calls at once could both count one too few. Not an advisory lock, because each login
    -- can take those that others need.
    if not is_owner then
        insert into assoc.logins (role_name) values (caller) on conflict do nothing;
    end if;
    select l.most_origins, l.team, l.most_bytes into most, team_of_login, most_bytes
    from assoc.logins l where l.role_name = caller for update;
    if length(p_label) > 63 or p_label ~ '^(removed-)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'
    then
        raise check_violation using message = 'this label is too long, or looks like a uuid',
            constraint = 'origins_label_plain';
    end if;
    if not is_owner
        and (select count(*) from assoc.origins o where o.role_name = caller) >= most
    then
        raise program_limit_exceeded using
            message = format('the login %s may push as %s machines', caller, most),
            constraint = 'origins_of_login';
    end if;
    if exists (select from assoc.origins o where o.uuid = p_uuid and o.role_name = '') then
        raise unique_violation using message = 'this machine was removed',
            constraint = 'origin_removed';
    end if;
    insert into assoc.labels as l (label, role_name) values (p_label, caller)
    on conflict (label) do nothing;
    if (select l.role_name from assoc.labels l where l.label = p_label) <> caller
        and not exists (select from assoc.origins o where o.uuid = p_uuid)
    then
        raise unique_violation using message = 'another login has used this label',
            constraint = 'origins_label_key';
    end if;
    insert into assoc.origins (uuid, role_name, label, team)
    values (p_uuid, caller, p_label, team_of_login)
    returning origin_id into made;
    insert into assoc.origin_states (origin_id, db_uuid, nonce) values (made, p_db_uuid, p_nonce);
    if most_bytes is not null then
        insert into assoc.stored (origin_id, bytes) values (made, 0);
    end if;
    return made;
end $$;

-- Lets another local database continue an origin.
create function assoc.adopt_v1(p_origin integer, p_db_uuid uuid, p_nonce uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.locked_origin(p_origin);
    update assoc.origin_states set db_uuid = p_db_uuid where origin_id = p_origin;
    return assoc.raised_version(p_origin, p_nonce);
end $$;

-- Raises the version of an origin, so that a late call of a push that was killed applies nothing.
create function assoc.fence_v1(p_origin integer, p_nonce uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.locked_origin(p_origin);
    return assoc.raised_version(p_origin, p_nonce);
end $$;

-- The first frame of each file of an origin, newest of a path first: a machine that lost its database
-- recognises its files by it.
create function assoc.beginnings_v1(p_origin integer)
returns table (file_key bytea, kind text, root text, path text, data bytea)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    caller constant name := session_user;
begin
    if not exists (
        select from assoc.origins o where o.origin_id = p_origin and o.role_name = caller
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

-- The digests of the frames of some files.
create function assoc.frames_v1(p_origin integer, p_files integer[])
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

-- The numbers of those of some files that the server has, and the digests of their frames; null for a
-- file without frames.
create function assoc.frames_v2(p_origin integer, p_keys bytea[])
returns table (file_key bytea, file_no integer, start bigint, digest bytea, rows_digest bytea)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.check_origin(p_origin);
    return query
    select f.file_key, f.file_no, r.start, r.digest, r.rows_digest
    from assoc.files f
    left join assoc.frames r on r.origin_id = f.origin_id and r.file_no = f.file_no
    where f.origin_id = p_origin and f.file_key = any (p_keys);
end $$;

-- The keys of a keyed table, each value as text, and the digests of its rows.
create function assoc.keyed_v1(p_origin integer, p_table text)
returns table (key text[], digest bytea)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
    set bytea_output = 'hex'
as $$
declare
    caller constant name := session_user;
begin
    if not exists (
        select from assoc.origins o where o.origin_id = p_origin and o.role_name = caller
    ) then
        raise insufficient_privilege using message = 'this origin is pushed by another login';
    end if;
    return query execute format(
        'select array[%s]::text[], digest from assoc.%I where origin_id = $1',
        (select string_agg(format('%I::text', k), ', ') from unnest((assoc.key_of(p_table))[2:]) k),
        p_table
    ) using p_origin;
end $$;

-- The bytes of all rows of an origin, without indexes. Large values are not read for it.
create function assoc.stored_bytes(p_origin integer) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    name text;
    size bigint;
    total bigint := 0;
begin
    foreach name in array assoc.placed_tables() || assoc.keyed_tables()
        || array['frames', 'files', 'deleted_files']
    loop
        execute format(
            'select coalesce(sum(24 + %s), 0) from assoc.%I t where t.origin_id = $1',
            (select string_agg(format('coalesce(pg_column_size(t.%I), 0)', attname), ' + ')
             from pg_attribute
             where attrelid = ('assoc.' || quote_ident(name))::regclass
               and attnum > 0 and not attisdropped),
            name
        ) into size using p_origin;
        total := total + size;
    end loop;
    return total;
end $$;

-- Adds what a call sent to what an origin stores, if it has a limit. 53400: it, or all origins of its login,
-- would store more than they may. All is counted only when the sums say so, because they count twice what
-- replaced something.
create function assoc.check_quota(p_origin integer, p_sent bigint) returns void
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    login name;
    most_of_login bigint;
    most bigint;
    origins integer[];
    other integer;
    used bigint;
    used_by_login bigint;
begin
    select o.role_name, o.most_bytes into login, most from assoc.origins o where o.origin_id = p_origin;
    -- Otherwise several machines of a login could each find the same room.
    select l.most_bytes into most_of_login
    from assoc.logins l where l.role_name = login for update;
    origins := case
        when most_of_login is null then array[p_origin]
        else array(select o.origin_id from assoc.origins o where o.role_name = login)
    end;
    update assoc.stored s set bytes = s.bytes + p_sent where s.origin_id = p_origin
    returning s.bytes into used;
    select sum(s.bytes) into used_by_login from assoc.stored s where s.origin_id = any (origins);
    if used <= coalesce(most, used) and used_by_login <= coalesce(most_of_login, used_by_login) then
        return;
    end if;
    used_by_login := 0;
    foreach other in array origins loop
        used := assoc.stored_bytes(other);
        update assoc.stored set bytes = used where origin_id = other;
        used_by_login := used_by_login + used;
        if other = p_origin and used > most then
            raise configuration_limit_exceeded using
                message = format('this machine: %s of %s MB', round(used / 1e6, 1), round(most / 1e6, 1)),
                constraint = 'quota_of_login';
        end if;
    end loop;
    if used_by_login > most_of_login then
        raise configuration_limit_exceeded using
            message = format(
                'the login %s: %s of %s MB', login, round(used_by_login / 1e6, 1),
                round(most_of_login / 1e6, 1)
            ),
            constraint = 'quota_of_login';
    end if;
end $$;

-- How many bytes a machine may store: its own limit, or that of its login with what its login's other
-- machines store taken off; null: no limit.
create function assoc.room_v1(p_uuid uuid) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    caller constant name := session_user;
    most_of_login constant bigint := (select l.most_bytes from assoc.logins l where l.role_name = caller);
    most constant bigint := (
        select o.most_bytes from assoc.origins o where o.role_name = caller and o.uuid = p_uuid
    );
    others constant integer[] := array(
        select o.origin_id from assoc.origins o where o.role_name = caller and o.uuid <> p_uuid
    );
    used bigint;
begin
    select sum(s.bytes) into used from assoc.stored s where s.origin_id = any (others);
    return least(most, most_of_login - coalesce(used, 0));
end $$;

-- Inserts files or updates their attributes, and returns their numbers in the same order.
create function assoc.files_v1(
    p_origin integer, p_version bigint, p_nonce uuid, p_files json,
    out applied boolean, out version bigint, out nonce uuid, out numbers integer[]
)
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origin_states := assoc.locked_origin(p_origin);
    keys bytea[];
    statement text;
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
    select s.writes into statement from assoc.statements s where s.name = 'files';
    execute statement using p_origin, null::integer[], null::bigint[], null::bigint[], p_files;
    get diagnostics changed = row_count;
    numbers := array(
        select f.file_no
        from unnest(keys) with ordinality as u (key, n)
        join assoc.files f on f.origin_id = p_origin and f.file_key = key
        order by n
    );
    if exists (select from assoc.stored s where s.origin_id = p_origin) then
        perform assoc.check_quota(p_origin, octet_length(p_files::text));
    end if;
    if added + changed > 0 then
        update assoc.origin_states set next_file_no = next_file_no + added where origin_id = p_origin;
        version := assoc.raised_version(p_origin, p_nonce);
        nonce := p_nonce;
    end if;
end $$;

-- Replaces stretches of files: their frames, and the rows that begin in them. Writes attributes of files
-- and keyed rows.
--   p_files        [file]: attributes of files that the server has
--   p_file_no to p_rows_digest
--                  a stretch each, from p_start to p_end (null: everything from p_start on), with its
--                  frame. p_data is not sent if the frame there has this p_digest. Rows before
--                  p_rows_start stay. p_row_tables has a bit for each table with rows in the stretch
--   p_tables       the tables of p_rows, one JSON text each, so that each text is parsed once
--   p_rows         [row]: all rows of a table in the stretches, and the keyed rows that differ
--   p_gone         {table: [key]}: keyed rows to delete
create function assoc.push_v2(
    p_origin integer, p_version bigint, p_nonce uuid, p_files json,
    p_file_no integer[], p_start bigint[], p_rows_start bigint[], p_end bigint[],
    p_row_tables integer[], p_data bytea[], p_digest bytea[], p_rows_digest bytea[],
    p_tables text[], p_rows json[], p_gone json,
    out applied boolean, out version bigint, out nonce uuid
)
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origin_states := assoc.locked_origin(p_origin);
    is_changed boolean := p_file_no <> '{}' or p_tables <> '{}' or p_gone::text <> '{}';
    row_tables integer[];
    statement text;
    rows json;
    changed bigint;
begin
    applied := o.version = p_version;
    version := o.version;
    nonce := o.nonce;
    if not applied then
        return;
    end if;
    if p_file_no <> '{}' then
        -- Rows may lie in a stretch, or behind it up to the next frame, only in tables of the frames in
        -- it and of the one before it.
        row_tables := array(
            select coalesce(bit_or(f.row_tables), 0)
            from unnest(p_file_no, p_start, p_end) with ordinality as r (file_no, start, "end", n)
            join assoc.files k on k.origin_id = p_origin and k.file_no = r.file_no
            left join assoc.frames f
                on f.origin_id = p_origin and f.file_no = r.file_no
                and (r."end" is null or f.start < r."end")
                and f.start >= coalesce((
                    select max(b.start)
                    from assoc.frames b
                    where b.origin_id = p_origin and b.file_no = r.file_no and b.start < r.start
                ), r.start)
            group by r.n
            order by r.n
        );
        if cardinality(row_tables) < cardinality(p_file_no) then -- nothing would delete these rows
            raise foreign_key_violation using message = 'a stretch is of no file';
        end if;
        with sent as materialized (
            select * from unnest(
                p_file_no, p_start, p_end, p_row_tables, row_tables, p_data, p_digest, p_rows_digest
            ) as u (file_no, start, "end", row_tables, old_tables, data, digest, rows_digest)
        ), gone as (
            delete from assoc.frames t
            using sent r
            where t.origin_id = p_origin and t.file_no = r.file_no and t.start > r.start
              and (r."end" is null or t.start < r."end")
              and not exists (select from sent s where s.file_no = t.file_no and s.start = t.start)
        )
        insert into assoc.frames as t
            (origin_id, file_no, start, data, digest, rows_digest, row_tables)
        select p_origin, file_no, start, data, digest, rows_digest,
            s.row_tables | case when "end" is null then 0 else old_tables end
        from sent s
        on conflict (origin_id, file_no, start) do update
        set data = case when t.digest = excluded.digest then t.data else excluded.data end,
            digest = excluded.digest, rows_digest = excluded.rows_digest,
            row_tables = excluded.row_tables;
    end if;
    if p_gone::text <> '{}' then
        for statement, rows in
            select s.deletes, g.value
            from json_each(p_gone) g
            join assoc.statements s on s.name = g.key and s.bit is null
        loop
            execute statement using p_origin, rows;
        end loop;
    end if;
    -- One question for all statements: each more is planned again for every push, because a machine
    -- connects for each.
    for statement, rows in
        select case when w.rows is null then s.deletes else s.writes end, w.rows
        from assoc.statements s
        left join unnest(p_tables || 'files'::text, p_rows || nullif(p_files::text, '[]')::json)
            as w (name, rows) on w.name = s.name
        where w.rows is not null
           or s.bit & (select bit_or(bits) from unnest(row_tables || p_row_tables) bits) <> 0
    loop
        execute statement using p_origin, p_file_no, p_rows_start, p_end, rows;
        get diagnostics changed = row_count;
        is_changed := is_changed or changed > 0;
    end loop;
    if exists (select from assoc.stored s where s.origin_id = p_origin) then
        perform assoc.check_quota(p_origin, (
            coalesce(octet_length(p_files::text), 0)
            + (select coalesce(sum(octet_length(b)), 0) from unnest(p_data || p_digest || p_rows_digest) b)
            + (select coalesce(sum(octet_length(r::text)), 0) from unnest(p_rows) r)
            + 48 * cardinality(p_file_no)
        )::bigint);
    end if;
    if is_changed then
        version := assoc.raised_version(p_origin, p_nonce);
        nonce := p_nonce;
    end if;
end $$;

-- push_v2 without files. p_ranges are the stretches, [{"file_no", "start", "end"}]; where p_keep, only
-- the rows of the frame differ.
create function assoc.push_v1(
    p_origin integer, p_version bigint, p_nonce uuid, p_ranges json,
    p_file_no integer[], p_start bigint[], p_keep boolean[], p_data bytea[],
    p_digest bytea[], p_rows_digest bytea[], p_tables text[], p_rows json[], p_gone json,
    out applied boolean, out version bigint, out nonce uuid
)
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    ends bigint[] := array(
        select r."end"
        from unnest(p_file_no, p_start) with ordinality as f (file_no, start, n)
        join json_to_recordset(p_ranges) as r (file_no int, start bigint, "end" bigint)
            using (file_no, start)
        order by f.n
    );
begin
    select p.applied, p.version, p.nonce into push_v1.applied, push_v1.version, push_v1.nonce
    from assoc.push_v2(
        p_origin, p_version, p_nonce, '[]', p_file_no, p_start, p_start, ends,
        array_fill(-1, array[cardinality(p_file_no)]), p_data, p_digest, p_rows_digest, p_tables,
        p_rows, p_gone
    ) p;
end $$;

-- The tables whose rows have a place in a file. New ones come last: frames.row_tables has a bit for each.
create function assoc.placed_tables() returns text[]
language sql immutable
as $$ select array[
    'messages', 'tool_calls', 'usage', 'stated_usage', 'responses', 'prompts', 'links', 'documents', 'plans',
    'todos', 'inbox_items', 'tool_result_files', 'issues', 'line_types',
    'agent_lines', 'contexts'
] $$;

-- The tables whose rows outlive files.
create function assoc.keyed_tables() returns text[]
language sql immutable
as $$ select array[
    'sources', 'projects', 'agents', 'sessions', 'subagents', 'teams', 'team_members', 'tasks',
    'task_dependencies', 'prices', 'notes'
] $$;

-- The statements of a push. To look up the columns in every push would take longer than most of them do.
--   placed tables  deletes: of origin $1, the rows in stretches of files, which are given by files, $2,
--                  starts, $3, and ends, $4. writes: rows $5, which replace all others there
--   keyed tables   deletes: of origin $1, the rows with the keys $2. writes: rows $5
--   files          writes: attributes $5 of files that are there
-- Rows that are there with the same values stay untouched.
delete from assoc.statements;
insert into assoc.statements (name, bit, deletes, writes)
select
    t.name,
    case when t.place is not null then 1 << t.place - 1 end,
    case
        when t.place is not null then t.deletion
        when t.name <> 'files' then format(
            'delete from assoc.%1$I t using json_populate_recordset(null::assoc.%1$I, $2) n'
            ' where t.origin_id = $1 and %2$s', t.name, t.same_key
        )
    end,
    format(
        case
            when t.place is not null then
                'with n as materialized ('
                'select * from json_populate_recordset(null::assoc.%1$I, $5)'
                ' where file_no = any ($2)),'
                ' gone as (%7$s and not exists (select from n where n.file_no = t.file_no and %6$s))'
                ' insert into assoc.%1$I as t (origin_id, file_no, %2$s) select $1, file_no, %2$s from n'
                ' on conflict (%5$s) do update set (%2$s) = (%3$s) where (%4$s) is distinct from (%3$s)'
            when t.name = 'files' then
                'update assoc.%1$I t set (%2$s) = (%3$s)'
                ' from json_populate_recordset(null::assoc.%1$I, $5) excluded'
                ' where t.origin_id = $1 and t.file_key = excluded.file_key'
                ' and (%4$s) is distinct from (%3$s)'
            else
                'insert into assoc.%1$I as t (origin_id, %2$s)'
                ' select $1, %2$s from json_populate_recordset(null::assoc.%1$I, $5)'
                ' on conflict (%5$s) do update set (%2$s) = (%3$s) where t.digest <> excluded.digest'
        end,
        t.name, c.columns, c.new_columns, c.old_columns, array_to_string(t.key, ', '), t.same_key,
        t.deletion
    )
from (
    select
        n.name, array_position(assoc.placed_tables(), n.name) as place, k.key,
        (
            select string_agg(format('n.%1$I = t.%1$I', column_name), ' and ')
            from unnest(k.key) as column_name where column_name not in ('origin_id', 'file_no')
        ) as same_key,
        format(
            'delete from assoc.%I t using unnest($2, $3, $4) as r (file_no, start, "end")'
            ' where t.origin_id = $1 and t.file_no = r.file_no and t.byte_offset >= r.start'
            ' and (r."end" is null or t.byte_offset < r."end")', n.name
        ) as deletion
    from unnest(assoc.placed_tables() || assoc.keyed_tables() || array['files']) as n (name)
    cross join lateral (select assoc.key_of(n.name) as key) k
) t
cross join lateral (
    select
        string_agg(a.name, ', ' order by a.attnum) as columns,
        string_agg('excluded.' || a.name, ', ' order by a.attnum) as new_columns,
        string_agg('t.' || a.name, ', ' order by a.attnum) as old_columns
    from (
        select attnum, quote_ident(attname) as name
        from pg_attribute
        where attrelid = ('assoc.' || t.name)::regclass
          and attnum > 0 and not attisdropped and attname not in ('origin_id', 'file_no')
    ) a
) c;

-- Deletes files with all their frames and rows.
create function assoc.forget_v1(
    p_origin integer, p_version bigint, p_nonce uuid, p_keys bytea[],
    out applied boolean, out version bigint, out nonce uuid
)
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origin_states := assoc.locked_origin(p_origin);
    numbers integer[];
    is_known_only boolean;
    name text;
begin
    applied := o.version = p_version;
    version := o.version;
    nonce := o.nonce;
    if not applied then
        return;
    end if;
    numbers := array(
        select file_no from assoc.files f where f.origin_id = p_origin and f.file_key = any (p_keys)
    );
    -- Those of files that the server has not, for example after its restore, only within limits: a login
    -- could fill the disk with them.
    is_known_only := o.next_file_no + 10000 < cardinality(p_keys)
        + (select count(*) from assoc.deleted_files d where d.origin_id = p_origin);
    insert into assoc.deleted_files (origin_id, file_key)
    select distinct p_origin, k
    from unnest(p_keys) k
    left join assoc.files f on f.origin_id = p_origin and f.file_key = k
    where f.file_no is not null or not is_known_only and octet_length(k) <= 32
    on conflict do nothing;
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

-- May the caller reindex an origin?
create function assoc.may_reindex_v1(p_origin integer) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    return assoc.may_write(assoc.login_of(p_origin));
end $$;

-- Starts a reindex of an origin: the calls that follow send this nonce.
create function assoc.reindex_v1(p_origin integer, p_nonce uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    o assoc.origin_states := assoc.locked_origin(p_origin);
begin
    update assoc.origin_states
    set version = o.version + 1, nonce = p_nonce,
        -- That of the machine, not those of reindexes since: a login could make as many as it likes.
        reindexed_after = case when o.reindexed_after = '{}' then array[o.nonce] else o.reindexed_after end
    where origin_id = p_origin;
    return o.version + 1;
end $$;

-- All files of a machine with the project of each file's session, or of the file if it has no session,
-- and the directory of that project. `remote withdraw` also finds files here that the machine has pruned.
create function assoc.files_of_v1(p_origin integer)
returns table (file_key bytea, file_no integer, source_no integer, path text, session_key text,
               project_source_no integer, project_key text, team_key text,
               session_project_source_no integer, session_project_key text, project_path text)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.check_origin(p_origin);
    return query
    select f.file_key, f.file_no, f.source_no, f.path, f.session_key, f.project_source_no,
        f.project_key, f.team_key, s.project_source_no, s.project_key, p.path
    from assoc.files f
    left join assoc.sessions s
        on s.origin_id = f.origin_id and s.source_no = f.source_no
        and s.session_key = f.session_key
    left join assoc.projects p
        on p.origin_id = f.origin_id
        and (p.source_no, p.key) = (
            case when s.session_key is null then f.project_source_no else s.project_source_no end,
            case when s.session_key is null then f.project_key else s.project_key end
        )
    where f.origin_id = p_origin;
end $$;

-- The files with the same paths as new files that a machine is about to push: perhaps a file that was
-- pruned locally and came back, or one that a restored database did not know yet.
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

-- Machines push no file that was last changed before this time; null: all.
create function assoc.kept_since_v1() returns text
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    return (select max(kept_since) from assoc.retention);
end $$;

-- The machines that the caller may see, with what they have pushed, and the logins that have never
-- pushed. An administrator sees all, another login its own and the machines that it may read.
create function assoc.devices_v1()
returns table (
    label text, uuid uuid, role_name name, can_login boolean, team text, pushed_at timestamptz,
    synced_at timestamptz, errors bigint, files bigint, bytes bigint, stored_bytes bigint,
    quota_used double precision
)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    is_reader boolean := pg_has_role(session_user, 'assoc_reader', 'member');
    logins name[] := array(
        select o.role_name from assoc.origins o union select l.role_name from assoc.logins l
    );
    readable integer[] := case when is_reader then assoc.visible_origins() else '{}' end;
    visible integer[];
begin
    logins := array(select l from unnest(logins) l where assoc.may_write(l));
    visible := array(
        select o.origin_id from assoc.origins o
        where o.role_name = any (logins) or o.origin_id = any (readable)
    );
    return query
    with o as materialized (
        select t.*, s.pushed_at
        from assoc.origins t
        join assoc.origin_states s using (origin_id)
        where t.origin_id = any (visible)
    ), c as materialized (
        select t.origin_id, t.bytes from assoc.stored t where t.origin_id = any (visible)
    ), f as materialized (
        select t.origin_id, count(*) as files, sum(t.size)::bigint as bytes
        from assoc.files t where t.origin_id = any (visible) group by t.origin_id
    ), d as materialized (
        select t.origin_id, sum(octet_length(t.data))::bigint as bytes
        from assoc.frames t where t.origin_id = any (visible) group by t.origin_id
    ), i as materialized (
        select t.origin_id, count(*) as errors
        from assoc.issues t where t.origin_id = any (visible) group by t.origin_id
    ), s as materialized (
        select t.origin_id, max(t.last_synced_at) as synced_at
        from assoc.sources t where t.origin_id = any (visible) group by t.origin_id
    )
    select
        o.label, o.uuid, o.role_name,
        exists (select from pg_roles r where r.rolname = o.role_name and r.rolcanlogin),
        o.team, o.pushed_at, assoc_read.moment(s.synced_at, '{}') at time zone 'UTC',
        coalesce(i.errors, 0), coalesce(f.files, 0), coalesce(f.bytes, 0), coalesce(d.bytes, 0),
        greatest(
            c.bytes / nullif(o.most_bytes, 0)::float8,
            sum(c.bytes) over (partition by o.role_name) / nullif(l.most_bytes, 0)::float8
        )
    from o
    left join assoc.logins l on l.role_name = o.role_name
    left join c on c.origin_id = o.origin_id
    left join f on f.origin_id = o.origin_id
    left join d on d.origin_id = o.origin_id
    left join i on i.origin_id = o.origin_id
    left join s on s.origin_id = o.origin_id
    where not (o.role_name = '' and o.label = 'removed-' || o.uuid)
    union all
    select
        null, null, l.role_name,
        exists (select from pg_roles r where r.rolname = l.role_name and r.rolcanlogin),
        l.team, null, null, 0, 0, 0, 0, null
    from assoc.logins l
    where l.role_name = any (logins)
      and not exists (select from assoc.origins r where r.role_name = l.role_name);
end $$;

-- The SQLite functions that the files in queries/ call, for PostgreSQL.
--
-- Views and functions with the names of the local schema are in assoc_read: a connection with the
-- search path "assoc_read" runs a report or a list as a local database does. Each function returns
-- what that of SQLite returns, also NULL where SQLite answers bad input with NULL.

create function assoc_read.iif(boolean, anycompatible, anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select case when $1 then $2 else $3 end $$;

create function assoc_read.instr(text, text) returns integer
    language sql immutable strict parallel safe
    as $$ select strpos($1, $2) $$;

-- PostgreSQL has only round(numeric, integer).
create function assoc_read.round(double precision, integer) returns double precision
    language sql immutable strict parallel safe
    as $$ select pg_catalog.round($1::numeric, $2)::double precision $$;

-- The sum of a condition counts the rows where it is true.
create function assoc_read.add_truth(bigint, boolean) returns bigint
    language sql immutable parallel safe
    as $$ select case when $2 is null then $1 else coalesce($1, 0) + $2::integer end $$;

create aggregate assoc_read.sum(boolean) (
    sfunc = assoc_read.add_truth, stype = bigint, combinefunc = int8pl, parallel = safe
);

create function assoc_read.joined(text, text, text) returns text
    language sql immutable parallel safe
    as $$ select case when $2 is null then $1 when $1 is null then $2 else $1 || $3 || $2 end $$;

create function assoc_read.joined(text, text) returns text
    language sql immutable parallel safe
    as $$ select assoc_read.joined($1, $2, ',') $$;

create aggregate assoc_read.group_concat(text, text) (sfunc = assoc_read.joined, stype = text);

create aggregate assoc_read.group_concat(text) (sfunc = assoc_read.joined, stype = text);

-- The elements of a JSON array. JSON may contain the character 0, which PostgreSQL's text cannot.
create function assoc_read.json_each(text) returns table (key bigint, value text)
    language sql immutable parallel safe
    as $$
        select e.place - 1, e.value
        from json_array_elements_text(replace($1, '\u0000', '\ufffd')::json)
            with ordinality as e (value, place)
        where $1 is not null
    $$;

-- An element of a JSON array: the path is '$[0]'.
create function assoc_read.json_extract(text, text) returns text
    language sql immutable strict parallel safe
    as $$ select $1::json ->> trim('$[]' from $2)::integer $$;

-- A time as SQLite reads it: 'now' or a text like 2026-01-20T10:00:00.000Z, then the modifiers
-- 'N days', 'weekday N' and 'localtime'. Local time is in the time zone of the connection, so that
-- days, weeks and hours of a report are those of the person who asks. NULL for anything else.
create function assoc_read.moment(at text, modifiers text[]) returns timestamp
    language plpgsql stable parallel safe
    as $$
declare
    result timestamp;
    modifier text;
begin
    if at = 'now' then
        result := now() at time zone 'UTC';
    elsif at ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?Z?)?$' then
        result := rtrim(at, 'Z')::timestamp;
    else
        return null;
    end if;
    foreach modifier in array modifiers loop
        if modifier ~ '^[+-]?[0-9]{1,6} days$' then
            result := result + modifier::interval;
        elsif modifier = 'localtime' then
            result := (result at time zone 'UTC') at time zone current_setting('TimeZone');
        elsif modifier ~ '^weekday [0-6]$' then
            result := result + make_interval(
                days => (right(modifier, 1)::integer - extract(dow from result)::integer + 7) % 7
            );
        else
            return null;
        end if;
    end loop;
    return result;
end $$;

create function assoc_read.strftime(format text, at text, variadic modifiers text[] default '{}')
    returns text
    language sql stable parallel safe
    as $$
        select case when format = '%w' then extract(dow from m.at)::text else to_char(m.at,
            replace(replace(replace(replace(replace(replace(replace(format,
                'T', '"T"'), '%Y', 'YYYY'), '%m', 'MM'), '%d', 'DD'), '%H', 'HH24'), '%M', 'MI'),
                '%f', 'SS.MS')) end
        from (select assoc_read.moment(at, modifiers) as at) m
    $$;

create function assoc_read.date(at text, variadic modifiers text[] default '{}') returns text
    language sql stable parallel safe
    as $$ select to_char(assoc_read.moment(at, modifiers), 'YYYY-MM-DD') $$;

create function assoc_read.julianday(at text, variadic modifiers text[] default '{}')
    returns double precision
    language sql stable parallel safe
    as $$
        select (
            extract(epoch from assoc_read.moment(at, modifiers)) / 86400.0 + 2440587.5
        )::double precision
    $$;

-- The rows of all machines under the names of the local tables and views, so that the same queries run.
--
-- An id is a hash of the origin and the key of a row. Data that two machines share counts once, as in
-- one database that has read both homes: a response counts by the line with the most output tokens, a
-- message that an earlier origin has too is a copy of that one, and the counts of a session leave out
-- what the same session of an earlier origin has.
--
-- That is worked out when it is read, not when it is pushed. Which origin counts depends on who reads:
-- a reader of one team gets the answer of a database that has read the homes of this team only. And a
-- table of what several origins have would need a lock: two machines that push the same line at once
-- do not see each other's, so each would have to wait until the other's transaction ends, for which a
-- login can take as long as it likes. With several nodes, such a push would write to all of them.
--
-- Tables that describe a single machine and travel only as bytes are missing: hook events, changes in
-- git, runs of sync.

create function assoc_read.id(origin integer, no integer) returns bigint
    language sql immutable strict parallel safe
    as $$ select (origin::bigint << 32) + no $$;

create function assoc_read.id(origin integer, no integer, key text) returns bigint
    language sql immutable strict parallel safe
    as $$ select hashtextextended(no::text || '/' || key, origin) $$;

create function assoc_read.id(origin integer, no integer, first text, second text) returns bigint
    language sql immutable parallel safe
    as $$
        select hashtextextended(no::text || '/' || coalesce(first, '') || '/' || second, origin)
    $$;

create function assoc_read.id(origin integer, no integer, byte_offset bigint, place integer)
    returns bigint
    language sql immutable strict parallel safe
    as $$
        select hashtextextended(no::text || '/' || byte_offset::text || '/' || place::text, origin)
    $$;

-- A message that a search found, with what it is ranked by, and as it is shown.
create type assoc_read.found_message as (
    origin_id integer, file_no integer, byte_offset bigint, block integer, "timestamp" text, uuid text,
    session_key text, source text, file text, agent_key text, has_transcript boolean,
    is_verbatim boolean, rank real
);
create type assoc_read.shown_message as (
    message assoc_read.found_message, origin text, found bigint, conversations bigint, place bigint,
    conversation bigint, in_conversation bigint
);

-- What a session shares with the same session of an earlier origin.
create type assoc_read.repetition as (
    lines bigint, prompts bigint, calls bigint, input_tokens bigint, output_tokens bigint,
    cache_read_tokens bigint, cache_write_tokens bigint
);

create function assoc_read.repeated(origin integer, no integer, key text)
    returns assoc_read.repetition
    language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
    set enable_nestloop = on
    as $$
declare
    others constant integer[] := array_remove(assoc.visible_origins(), origin);
    uuids text[];
    files integer[];
    offsets bigint[];
    blocks integer[];
    keys text[];
    machines integer[];
    outputs bigint[];
    result assoc_read.repetition;
begin
    if not origin = any (assoc.visible_origins()) then
        return null;
    end if;
    uuids := array(
        select m.uuid
        from assoc.messages m
        where m.origin_id = origin and m.source_no = no and m.session_key = key and m.is_copy = 0
        union
        select m.uuid
        from assoc.tool_calls t
        join assoc.messages m using (origin_id, file_no, byte_offset, block)
        where t.origin_id = origin and t.source_no = no and t.session_key = key and m.is_copy = 0
    );
    select array_agg(o.uuid), array_agg(o.block) into uuids, blocks
    from assoc.messages o
    where o.uuid = any (uuids) and o.is_copy = 0 and o.origin_id < origin
      and o.origin_id = any (others);
    -- The places of these messages here: a join of calls with messages by uuid would read each
    -- message for each call.
    select array_agg(m.file_no), array_agg(m.byte_offset), array_agg(m.block)
    into files, offsets, blocks
    from assoc.messages m
    where m.origin_id = origin and m.is_copy = 0 and m.uuid = any (uuids)
      and (m.uuid, m.block) in (select * from unnest(uuids, blocks));
    select
        count(distinct (m.file_no, m.byte_offset)) filter (where m.role in ('user', 'assistant')),
        count(distinct (m.file_no, m.byte_offset)) filter (
            where m.kind in ('prompt', 'command', 'bash_input', 'queued_prompt')
        )
    into result.lines, result.prompts
    from assoc.messages m
    where m.origin_id = origin and m.source_no = no and m.session_key = key
      and m.agent_key is null
      and (m.file_no, m.byte_offset, m.block) in (select * from unnest(files, offsets, blocks));
    select count(*) into result.calls
    from assoc.tool_calls t
    where t.origin_id = origin and t.source_no = no and t.session_key = key
      and (t.file_no, t.byte_offset, t.block) in (select * from unnest(files, offsets, blocks));
    keys := array(
        select r.response_key
        from assoc.responses r
        where r.origin_id = origin and r.source_no = no and r.session_key = key
    );
    select array_agg(o.response_key), array_agg(o.origin_id), array_agg(o.output_tokens)
    into keys, machines, outputs
    from assoc.responses o
    where o.response_key = any (keys) and o.origin_id = any (others);
    select
        coalesce(sum(r.input_tokens), 0),
        coalesce(sum(r.output_tokens), 0),
        coalesce(sum(r.cache_read_tokens), 0),
        coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0)
    into result.input_tokens, result.output_tokens, result.cache_read_tokens,
        result.cache_write_tokens
    from assoc.responses r
    where r.origin_id = origin and r.source_no = no and r.session_key = key
      and exists (
        select from unnest(keys, machines, outputs) as o (response_key, origin_id, output_tokens)
        where o.response_key = r.response_key
          and (o.output_tokens, origin) > (r.output_tokens, o.origin_id)
      );
    return result;
end $$;

-- The rows that the views below read. With the tables on several nodes (Citus), a question may not join
-- machines with each other, nor rows by their ids. So there, a function fetches the rows of a table
-- that the caller may see to the coordinator, and everything after that is as on one server. Texts of
-- messages stay where they are until one is asked for.

create schema if not exists assoc_rows;

do $$
declare
    name text;
    definitions text;
    columns text;
    chosen text;
begin
    if assoc.is_distributed() then -- only the coordinator needs these
        perform set_config('citus.enable_ddl_propagation', 'off', true);
    end if;
    foreach name in array array_remove(assoc.placed_tables(), 'messages') || assoc.keyed_tables()
        || array['origins', 'files', 'origin_states']
    loop
        if assoc.is_distributed() then
            select
                string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', '),
                string_agg(
                    format(case when a.attcollation = 0 then '%1$I' else '%1$I collate "C" as %1$I' end,
                        a.attname), ', '
                ),
                string_agg(format('t.%I', a.attname), ', ')
            into definitions, columns, chosen
            from pg_attribute a
            where a.attrelid = format('assoc.%I', name)::regclass
              and a.attnum > 0 and not a.attisdropped;
            execute format(
                'create function assoc_rows.%I() returns table (%s)'
                ' language plpgsql stable security definer rows 100000'
                ' set search_path = pg_catalog, pg_temp as %L',
                name, definitions,
                format(
                    'declare origins constant integer[] := assoc.visible_origins(); begin'
                    ' return query select %s from assoc.%I t where t.origin_id = any (origins); end',
                    chosen, name
                )
            );
            execute format(
                'create view assoc_rows.%1$I as select %2$s from assoc_rows.%1$I()', name, columns
            );
        else
            execute format('create view assoc_rows.%1$I as select * from assoc.%1$I', name);
        end if;
    end loop;
end $$;

-- The messages with the id of the message of which each is a copy, or 0 if that is one of its origin;
-- and the last message of each file that shows how a conversation ended.
do $$
begin
    if assoc.is_distributed() then
        create function assoc_rows.messages() returns table (
            origin_id integer, file_no integer, byte_offset bigint, block integer,
            kind text, role text, "timestamp" text, source_no integer, session_key text,
            agent_session_key text, agent_key text, model text, uuid text, parent_uuid text,
            is_meta integer, is_sidechain integer, is_error integer, is_cut integer, has_cjk integer,
            is_copy integer, has_invisible integer, is_superseded integer, byte_length bigint,
            letters integer, copy_of bigint
        )
        language plpgsql stable security definer rows 1000000
        set search_path = pg_catalog, pg_temp
        as $body$
        #variable_conflict use_column
        declare
            origins constant integer[] := assoc.visible_origins();
        begin
            return query
            with shared as materialized (
                select m.uuid, m.block, min(m.origin_id) as origin_id
                from assoc.messages m
                where m.uuid is not null and m.is_copy = 0 and m.origin_id = any (origins)
                group by m.uuid, m.block
                having min(m.origin_id) < max(m.origin_id)
            ),
            originals as materialized (
                select
                    s.uuid, s.block, s.origin_id,
                    min(assoc_read.id(m.origin_id, m.file_no, m.byte_offset, m.block)) as id
                from shared s
                join assoc.messages m
                    on m.origin_id = s.origin_id and m.uuid = s.uuid and m.block = s.block
                where m.is_copy = 0
                group by s.uuid, s.block, s.origin_id
            )
            select
                m.origin_id, m.file_no, m.byte_offset, m.block, m.kind, m.role, m.timestamp,
                m.source_no, m.session_key, m.agent_session_key, m.agent_key, m.model, m.uuid,
                m.parent_uuid, m.is_meta, m.is_sidechain, m.is_error, m.is_cut, m.has_cjk,
                m.is_copy, m.has_invisible, m.is_superseded, m.byte_length,
                length(coalesce(m.tool_text, m.text)),
                case when m.is_copy = 1 then 0 when o.origin_id < m.origin_id then o.id end
            from assoc.messages m
            left join originals o on o.uuid = m.uuid and o.block = m.block
            where m.origin_id = any (origins);
        end $body$;
        -- Strict, so that it is called for the rows of the answer only.
        create function assoc_rows.text_of(
            name text, origin_id integer, file_no integer, byte_offset bigint, block integer
        ) returns text
        language plpgsql stable strict security definer cost 100000
        set search_path = pg_catalog, pg_temp
        as $body$
        declare
            result text;
        begin
            execute format(
                'select m.%I from assoc.messages m where m.origin_id = $1 and m.file_no = $2'
                ' and m.byte_offset = $3 and m.block = $4', name
            ) into result using origin_id, file_no, byte_offset, block;
            return result;
        end $body$;
        create view assoc_rows.messages as
        select
            origin_id, file_no, byte_offset, block, letters, copy_of,
            kind collate "C" as kind, role collate "C" as role,
            "timestamp" collate "C" as "timestamp", session_key collate "C" as session_key,
            agent_session_key collate "C" as agent_session_key, agent_key collate "C" as agent_key,
            model collate "C" as model, uuid collate "C" as uuid,
            parent_uuid collate "C" as parent_uuid,
            source_no, is_meta, is_sidechain, is_error, is_cut, has_cjk, is_copy, has_invisible,
            is_superseded, byte_length,
            assoc_rows.text_of('text', origin_id, file_no, byte_offset, block) collate "C" as text,
            assoc_rows.text_of('tool_text', origin_id, file_no, byte_offset, block) collate "C"
                as tool_text,
            assoc_rows.text_of('joined_text', origin_id, file_no, byte_offset, block) collate "C"
                as joined_text,
            assoc_rows.text_of('joined_tool_text', origin_id, file_no, byte_offset, block)
                collate "C" as joined_tool_text
        from assoc_rows.messages();
        create function assoc_rows.file_ends() returns table (
            origin_id integer, file_no integer, kind text
        )
        language plpgsql stable security definer rows 100000
        set search_path = pg_catalog, pg_temp
        as $body$
        #variable_conflict use_column
        declare
            origins constant integer[] := assoc.visible_origins();
        begin
            return query
            select
                m.origin_id, m.file_no,
                (array_agg(m.kind order by m.byte_offset desc, m.block desc))[1]
            from assoc.messages m
            where m.origin_id = any (origins) and m.agent_key is null
              and m.kind in (
                  'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error', 'interrupt'
              )
            group by m.origin_id, m.file_no;
        end $body$;
        create view assoc_rows.file_ends as
        select origin_id, file_no, kind collate "C" as kind from assoc_rows.file_ends();
    else
        create view assoc_rows.messages as
        select
            m.*,
            length(coalesce(m.tool_text, m.text)) as letters,
            case
                when m.is_copy = 1 then 0
                -- Of many messages, PostgreSQL gathers all that several origins have, once.
                when exists (
                    select
                    from (
                        select o.uuid, o.block
                        from assoc.messages o
                        where o.uuid is not null and o.is_copy = 0
                          and o.origin_id = any ((select assoc.visible_origins())::integer[])
                        group by o.uuid, o.block
                        having min(o.origin_id) < max(o.origin_id)
                    ) s
                    where s.uuid = m.uuid and s.block = m.block
                ) then (
                    select assoc_read.id(o.origin_id, o.file_no, o.byte_offset, o.block)
                    from assoc.messages o
                    where o.uuid = m.uuid and o.block = m.block and o.is_copy = 0
                      and o.origin_id < m.origin_id
                      and o.origin_id = any ((select assoc.visible_origins())::integer[])
                    order by o.origin_id
                    limit 1
                )
            end as copy_of
        from assoc.messages m;
        create view assoc_rows.file_ends as
        select
            f.origin_id, f.file_no,
            (
                select m.kind
                from assoc.messages m
                where m.origin_id = f.origin_id and m.file_no = f.file_no and m.agent_key is null
                  and m.kind in (
                      'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error',
                      'interrupt'
                  )
                order by m.byte_offset desc, m.block desc
                limit 1
            ) as kind
        from assoc.files f;
    end if;
end $$;

create view assoc_read.files as
select
    path, kind, size, "offset", line_count, issue_count, mtime, first_seen_at, last_synced_at,
    gone_at, team_key, workflow, own_since, generation, file_key,
    assoc_read.id(origin_id, file_no) as id,
    stated_session_key as session_key,
    stated_agent_key as agent_key,
    stated_project_key as project_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, source_no, team_key) as team_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id, file_no
from assoc_rows.files
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.sources as
select
    kind, root, first_synced_at, last_synced_at, gone_at, cleanup_period_days, label, is_agent,
    lists_sessions, retention_days,
    (select o.label from assoc_rows.origins o where o.origin_id = s.origin_id) as machine,
    assoc_read.id(origin_id, source_no) as id,
    origin_id
from assoc_rows.sources s
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.projects as
select
    name, path, key, is_worktree, on_disk, git_branch, is_dirty, head_branch, session_count,
    last_activity_at, gone_at, git_seen_at, change_count, repository, git_repository,
    remote, git_remote, first_commit, git_first_commit, repository_name,
    -- A directory is one of its machine.
    case when repository_key ~ '^(/|[a-z]:)' then origin_id || ' ' else '' end || repository_key
        as repository_key,
    assoc_read.id(origin_id, source_no, key) as id,
    assoc_read.id(origin_id, parent_source_no, parent_key) as parent_id,
    assoc_read.id(origin_id, source_no) as source_id,
    assoc_read.id(origin_id, same_source_no, same_key) as same_as,
    origin_id
from assoc_rows.projects
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.agents as
select
    name, type, description, path, is_general, extra, agent_key, gone_at,
    assoc_read.id(origin_id, source_no, stated_project_key, agent_key) as id,
    nullif(stated_project_key, '') as project_key,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc_rows.agents
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.sessions as
select
    s.title, s.title_source, s.started_at, s.ended_at,
    s.message_count - coalesce((d).lines, 0) as message_count,
    s.copied_message_count + coalesce((d).lines, 0) as copied_message_count,
    s.prompt_count - coalesce((d).prompts, 0) as prompt_count,
    s.tool_call_count - coalesce((d).calls, 0) as tool_call_count,
    s.input_tokens - coalesce((d).input_tokens, 0) as input_tokens,
    s.output_tokens - coalesce((d).output_tokens, 0) as output_tokens,
    s.cache_read_tokens - coalesce((d).cache_read_tokens, 0) as cache_read_tokens,
    s.cache_write_tokens - coalesce((d).cache_write_tokens, 0) as cache_write_tokens,
    s.stated_cost_usd, s.models, s.git_branch, s.cwd, s.agent_version, s.kind, s.status,
    s.is_listed, s.context_tokens, s.context_window, s.permission_mode, s.ts_zone, s.slug,
    s.session_key, s.gone_at,
    assoc_read.id(origin_id, source_no, session_key) as id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, forked_source_no, forked_key) as forked_from,
    assoc_read.id(origin_id, linked_source_no, linked_key) as linked_session_id,
    assoc_read.id(origin_id, source_no) as source_id,
    assoc_read.id(origin_id, agent_source_no, agent_project_key, agent_key) as agent_id,
    origin_id
from (
    select
        s.*,
        case when k.session_key is not null
            then assoc_read.repeated(s.origin_id, s.source_no, s.session_key) end as d
    from assoc_rows.sessions s
    left join ( -- those of several origins
        select session_key
        from assoc_rows.sessions
        where origin_id = any ((select assoc.visible_origins())::integer[])
        group by session_key
        having min(origin_id) < max(origin_id)
    ) k on k.session_key = s.session_key
    where s.origin_id = any ((select assoc.visible_origins())::integer[])
    offset 0 -- else what is repeated would be counted once for each column
) s;

create view assoc_read.subagents as
select
    agent_type, description, kind, link_method, workflow, name, model, started_at, ended_at,
    message_count, tokens, agent_key, tool_call_count,
    assoc_read.id(origin_id, source_no, stated_session_key, agent_key) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, parent_source_no, parent_session_key, parent_key) as parent_id,
    nullif(stated_session_key, '') as session_key,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id, spawned_by_file_key, spawned_by_tool_use_id
from assoc_rows.subagents
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.teams as
select
    name, description, created_at, gone_at, lead_agent_key, key,
    assoc_read.id(origin_id, source_no, key) as id,
    stated_lead_session_key as lead_session_key,
    assoc_read.id(origin_id, lead_source_no, lead_session_key) as lead_session_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc_rows.teams
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.team_members as
select
    name, agent_type, model, cwd, color, joined_at, prompt, subscriptions, backend_type,
    plan_mode_required, is_active, agent_id, gone_at, ordinal, extra,
    assoc_read.id(origin_id, 0, encode(file_key, 'hex'), member_key || '/' || ordinal::text) as id,
    assoc_read.id(origin_id, team_source_no, team_key) as team_id,
    origin_id
from assoc_rows.team_members
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.tasks as
select
    subject, description, status, owner, active_form, metadata, task_number, task_key, list_key,
    gone_at, channel, stated_at, blocked_by, tool_use_id, byte_offset, joined,
    assoc_read.id(origin_id, source_no, list_key, task_key || '/' || channel) as id,
    assoc_read.id(origin_id, session_source_no, session_key) as session_id,
    assoc_read.id(origin_id, team_source_no, team_key) as team_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc_rows.tasks
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.task_dependencies as
select
    task_key, blocker_key, list_key,
    assoc_read.id(origin_id, source_no, list_key, task_key || '/' || blocker_key) as id,
    assoc_read.id(origin_id, source_no, list_key, task_key || '/' || task_channel) as task_id,
    assoc_read.id(origin_id, source_no, list_key, blocker_key || '/' || blocker_channel)
        as blocker_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc_rows.task_dependencies
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.prices as
select
    model, valid_from, above_tokens, input, output, cache_read, cache_write_5m, cache_write_1h,
    web_search, origin,
    assoc_read.id(origin_id, 0, model, valid_from || '/' || above_tokens::text) as id,
    origin_id
from assoc_rows.prices
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.notes as
select
    text, verdict, title, is_starred, noted_at,
    nullif(path, '') as path,
    nullif(session_key, '') as session_key,
    nullif(line_key, '') as line_key,
    null::text as origin,
    null::text as joined,
    assoc_read.id(origin_id, 0, session_key || '/' || line_key, path) as id,
    origin_id
from assoc_rows.notes
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.messages as
select
    kind, text, tool_text, role, timestamp, model, uuid, parent_uuid, is_meta, is_sidechain,
    is_error, is_cut, has_cjk, byte_offset, byte_length, block, has_invisible, joined_text,
    joined_tool_text, is_superseded,
    assoc_read.id(origin_id, file_no, byte_offset, block) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    copy_of, letters,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.messages m
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.tool_calls as
select
    name, target, status, started_at, ended_at, duration_ms, exit_code, output_file,
    tool_use_id, byte_offset, byte_length, block, search_count, response_key, action, paths,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    case when is_call = 1
        then assoc_read.id(origin_id, file_no, byte_offset, block) end as call_id,
    assoc_read.id(origin_id, file_no, result_offset, result_block) as result_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no, is_call, result_offset, result_block,
    coalesce(result_offset, byte_offset) as last_offset,
    coalesce(result_block, block) as last_block
from assoc_rows.tool_calls
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.usage as
select
    response_key, api_message_id, request_id, stated_session_key, model, timestamp,
    input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, web_searches, partial, stated_cost_usd, line_count, all_input_tokens,
    all_output_tokens, all_cache_read_tokens, all_cache_write_tokens, byte_offset, byte_length,
    stop_reason,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no, written_bytes
from assoc_rows.usage
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.stated_usage as
select
    model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
    is_lower_bound, byte_offset, byte_length,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.stated_usage
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.responses as
select
    model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, web_searches, partial, stated_cost_usd, api_message_id, request_id,
    response_key, byte_offset, byte_length, stop_reason,
    hashtextextended(response_key, 0) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no, written_bytes
from assoc_rows.responses r
where origin_id = any ((select assoc.visible_origins())::integer[])
  and not exists (
    select from assoc_rows.responses o
    where o.response_key = r.response_key and o.origin_id <> r.origin_id
      and (o.output_tokens, r.origin_id) > (r.output_tokens, o.origin_id)
      and o.origin_id = any ((select assoc.visible_origins())::integer[])
);

create view assoc_read.prompts as
select
    text, timestamp, project_path, pasted, paste_hashes, byte_offset, byte_length, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_project_key as project_key,
    stated_session_key as session_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.prompts
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.links as
select
    kind, url, title, timestamp, byte_offset, byte_length, gone_at, origin,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.links
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.documents as
select
    kind, title, text, path, project_path, modified_at, ordinal, gone_at, extra, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    stated_project_key as project_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.documents
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.plans as
select
    title, text, name, status, modified_at, channel, tool_use_id, byte_offset, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.plans
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.todos as
select
    content, status, priority, active_form, position, gone_at, ordinal, channel, stated_at,
    tool_use_id, byte_offset, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    stated_agent_key as agent_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.todos
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.inbox_items as
select
    text, sender, recipient, kind, summary, timestamp, is_read, color, payload, channel,
    gone_at, team_name, message_key, text_hash, tool_use_id, ordinal, byte_offset, byte_length,
    joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, team_source_no, team_key) as team_id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    case when is_copy = 1 then 0 end as copy_of,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.inbox_items
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.tool_result_files as
select
    name, size, media_type, text, tool_use_id, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.tool_result_files
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.issues as
select
    reason, quarantined, sample, byte_offset, byte_length,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.issues
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.line_types as
select
    type, subtype, count,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.line_types
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.agent_lines as
select
    agent_key, byte_offset,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.agent_lines
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.contexts as
select
    name, value, byte_offset,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc_rows.contexts
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.transcripts as
select entrypoint, assoc_read.id(origin_id, file_no) as file_id, origin_id, file_no
from assoc_rows.files
where kind = 'transcript' and origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.archive as
select
    f.start,
    coalesce(lead(f.start) over (partition by origin_id, file_no order by f.start), o."offset")
        as "end",
    f.data, null::bigint as line_count, assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.frames f
join assoc.files o using (origin_id, file_no)
where f.start >= 0 and origin_id = any ((select assoc.visible_origins())::integer[]);

-- How fresh an answer is: the last push of each origin.
create view assoc_read.sync_runs as
select
    origin_id as id, pushed as started_at, pushed as finished_at, null::text as error
from (
    select
        origin_id,
        to_char(pushed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as pushed
    from assoc_rows.origin_states
    where origin_id = any ((select assoc.visible_origins())::integer[])
) o;

-- The local views that reports query.

create view assoc_read.coverage as
select l.type, l.subtype, sum(l.count) as lines, count(*) as files, r.kind as source
from assoc_read.line_types l
join assoc_read.files f on f.id = l.file_id
join assoc_read.sources r on r.id = f.source_id
group by r.kind, l.type, l.subtype;

create view assoc_read.orphaned_projects as
select p.name, p.path, p.last_activity_at, p.session_count, r.kind as source, p.id
from assoc_read.projects p
join assoc_read.sources r on r.id = p.source_id
where p.path is not null and p.on_disk = 0;

create view assoc_read.notes_full as
select
    n.text, n.verdict, n.is_starred, n.title, n.noted_at,
    s.title as session,
    p.name as project,
    n.path, n.origin, s.git_branch, n.session_key, n.line_key,
    r.kind as source,
    s.id as session_id,
    p.id as project_id,
    null::bigint as file_id,
    null::bigint as byte_offset,
    n.id, n.origin_id
from assoc_read.notes n
left join assoc_read.sessions s on s.id = (
    select o.id from assoc_read.sessions o
    where o.origin_id = n.origin_id and o.session_key = n.session_key
    order by o.message_count desc, o.id limit 1
)
left join assoc_read.sources r on r.id = s.source_id
left join assoc_read.projects p on p.id = coalesce(s.project_id, (
    select o.id from assoc_read.projects o
    where o.origin_id = n.origin_id and o.path <> ''
      and left(n.path, length(o.path) + 1) = replace(o.path, E'\\', '/') || '/'
    order by length(o.path) desc, o.same_as is not null, o.id limit 1
));

-- What a response is compared with is gathered before, once for all: a response has few prices, and few
-- branches in its file.
create view assoc_read.response_costs as
select
    r.model, r.timestamp,
    (
        select (
            r.input_tokens * x.input
            + r.output_tokens * x.output
            + r.cache_read_tokens * coalesce(x.cache_read, x.input)
            + r.cache_write_5m_tokens * coalesce(x.cache_write_5m, x.input)
            + r.cache_write_1h_tokens * coalesce(x.cache_write_1h, x.cache_write_5m, x.input)
            + (r.web_searches + coalesce(q.searches, 0)) * coalesce(x.web_search, 0) * 1000
            + 500000
        ) / 1000000
        from unnest(l.prices) x
        where x.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              x.above_tokens = 0
              or x.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by x.valid_from desc, x.above_tokens desc
        limit 1
    ) as cost_microusd,
    r.partial, r.stated_cost_usd, r.input_tokens, r.output_tokens, r.cache_read_tokens,
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens,
    s.title as session, p.name as project, s.session_key, o.kind as source,
    r.session_id, s.project_id, r.subagent_id, r.id, r.written_bytes,
    (
        select x.output
        from unnest(l.prices) x
        where x.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              x.above_tokens = 0
              or x.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by x.valid_from desc, x.above_tokens desc
        limit 1
    ) as output_price,
    nullif(coalesce((
        select x.value
        from unnest(b.branches) x
        where x.byte_offset <= r.byte_offset
        order by x.byte_offset desc
        limit 1
    ), s.git_branch), '') as git_branch
from assoc_read.responses r
left join assoc_read.sessions s on s.id = r.session_id
left join assoc_read.projects p on p.id = s.project_id
left join assoc_read.files f on f.id = r.file_id
left join assoc_read.sources o on o.id = f.source_id
left join (
    select x.origin_id, x.model, array_agg(x) as prices
    from assoc_rows.prices x
    where x.origin_id = any ((select assoc.visible_origins())::integer[])
    group by x.origin_id, x.model
) l on l.origin_id = r.origin_id and l.model = r.model
left join (
    select x.origin_id, x.file_no, array_agg(x) as branches
    from assoc_rows.contexts x
    where x.name = 'git_branch'
      and x.origin_id = any ((select assoc.visible_origins())::integer[])
    group by x.origin_id, x.file_no
) b on b.origin_id = r.origin_id and b.file_no = r.file_no
left join (
    select x.response_key, sum(x.searches)::bigint as searches
    from (
        select c.response_key, max(c.search_count) as searches
        from assoc_rows.tool_calls c
        where c.search_count is not null
          and c.origin_id = any ((select assoc.visible_origins())::integer[])
        group by c.response_key, c.tool_use_id
    ) x
    group by x.response_key
) q on q.response_key = r.response_key
where s.linked_session_id is null
   or not exists (select from assoc_read.responses o where o.session_id = s.linked_session_id);

create view assoc_read.retention as
select
    f.path, f.kind, s.title as session, p.name as project, f.size, f.mtime,
    case when f.gone_at is null then assoc_read.strftime(
        '%Y-%m-%dT%H:%M:%fZ', f.mtime, coalesce(r.cleanup_period_days, r.retention_days) || ' days'
    ) end as due_at,
    case when f.gone_at is null then trunc(
        assoc_read.julianday(f.mtime) + coalesce(r.cleanup_period_days, r.retention_days)
        - assoc_read.julianday('now')
    )::bigint end as days_left,
    (f.gone_at is not null)::integer as is_gone,
    f.gone_at, s.session_key, r.kind as source, f.session_id, f.project_id, f.id,
    nullif(s.git_branch, '') as git_branch
from assoc_read.files f
join assoc_read.sources r on r.id = f.source_id and r.retention_days is not null
left join assoc_read.sessions s on s.id = f.session_id
left join assoc_read.projects p on p.id = f.project_id
where f.kind <> 'file_history';

create view assoc_read.session_ends as
select
    assoc_read.id(s.origin_id, s.source_no, s.session_key) as session_id,
    case coalesce((
        select e.kind
        from assoc_rows.file_ends e
        where e.origin_id = s.origin_id
          and e.file_no = (
            select f.file_no
            from assoc_rows.files f
            where f.origin_id = s.origin_id and f.source_no = s.source_no
              and f.session_key = s.session_key
              and f.kind = 'transcript' and f.agent_key is null
            order by f.gone_at is not null, f.mtime desc nulls last, f.file_no desc
            limit 1
          )
    ), 'text')
        when 'text' then null
        when 'error' then 'ended with an error'
        when 'interrupt' then 'interrupted'
        else 'unfinished'
    end as state,
    s.ended_at as last_at, s.session_key, r.kind as source,
    nullif(s.git_branch, '') as git_branch
from assoc_rows.sessions s
join assoc_rows.sources r using (origin_id, source_no)
where s.kind in ('main', 'background') and s.message_count > 0
  and s.origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.stated_by_model as
select distinct on (f.session_id, u.model)
    u.model, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.cost_usd,
    u.is_lower_bound, u.timestamp,
    exists (
        select from assoc_read.responses r
        where r.file_id = u.file_id and r.byte_offset > u.byte_offset
    )::integer as is_followed,
    (select s.session_key from assoc_read.sessions s where s.id = f.session_id) as session_key,
    (select o.kind from assoc_read.sources o where o.id = f.source_id) as source,
    f.session_id, u.file_id, u.byte_offset,
    (select nullif(s.git_branch, '') from assoc_read.sessions s where s.id = f.session_id)
        as git_branch
from assoc_read.stated_usage u
join assoc_read.files f on f.id = u.file_id
where f.kind = 'transcript'
  and u.byte_offset = (
    select max(o.byte_offset) from assoc_read.stated_usage o where o.file_id = u.file_id
  )
order by
    f.session_id, u.model, f.gone_at is not null, f.generation desc,
    (select max(o.cost_usd) from assoc_read.stated_usage o where o.file_id = u.file_id)
        desc nulls last,
    f.path, f.id;

create view assoc_read.stated_sessions as
select
    s.title, s.ended_at as last_at, coalesce(m.cost_usd, s.stated_cost_usd) as cost_usd,
    coalesce(m.input_tokens, case when n.session_id is null then s.input_tokens end)
        as input_tokens,
    coalesce(m.output_tokens, case when n.session_id is null then s.output_tokens end)
        as output_tokens,
    coalesce(m.cache_read_tokens, case when n.session_id is null then s.cache_read_tokens end)
        as cache_read_tokens,
    coalesce(m.cache_write_tokens, case when n.session_id is null then s.cache_write_tokens end)
        as cache_write_tokens,
    coalesce(m.is_lower_bound, 0) as is_lower_bound,
    s.session_key, o.kind as source, s.id as session_id,
    coalesce(s.linked_session_id, s.id) as counted_session_id,
    nullif(s.git_branch, '') as git_branch
from assoc_read.sessions s
join assoc_read.sources o on o.id = s.source_id
left join assoc_read.stated_by_model m on m.session_id = s.id and m.model = ''
left join (select distinct session_id from assoc_read.responses) n on n.session_id = s.id
where (s.stated_cost_usd is not null or m.session_id is not null)
  and (s.linked_session_id is null or o.is_agent = 0);

create view assoc_read.usage_reconciliation as
with used as (
    select u.*, s.kind as agent
    from assoc_read.usage u
    join assoc_read.files f on f.id = u.file_id
    join assoc_read.sources s on s.id = f.source_id
    where s.is_agent = 1
),
counted as (
    select r.*, s.kind as agent
    from assoc_read.responses r
    join assoc_read.files f on f.id = r.file_id
    join assoc_read.sources s on s.id = f.source_id
    where s.is_agent = 1
)
select
    'every line' as counting,
    'adds up all lines of a response, and all copies of a conversation' as explanation,
    sum(line_count) as counted,
    sum(all_input_tokens) as input_tokens,
    sum(all_output_tokens) as output_tokens,
    sum(all_cache_read_tokens) as cache_read_tokens,
    sum(all_cache_write_tokens) as cache_write_tokens,
    null::double precision as cost_usd,
    sum(partial) as partial,
    null::bigint as unpriced,
    agent as source
from used
group by agent
union all
select
    'once in each file', 'takes a response once, and again in each forked or resumed copy',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from used
group by agent
union all
select
    'once, without subagents', 'takes a response once, of main conversations only',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted
where subagent_id is null
group by agent
union all
select
    'once, without agents that have no file',
    'leaves out subagents whose messages only stand in the progress lines of their caller',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted c
where not exists (
    select from assoc_rows.agent_lines l
    where l.origin_id = c.origin_id and l.file_no = c.file_no and l.byte_offset = c.byte_offset
)
group by agent
union all
select
    'once', 'takes each response once, subagents included: what this program counts',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted
group by agent
union all
select
    'stated by the agent',
    'adds up what the agent, or the application, says of its sessions: the last time of each',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_tokens), assoc_read.round(sum(cost_usd), 6), sum(is_lower_bound), null, source
from assoc_read.stated_sessions
group by source
union all
select
    'once, where the agent states it', 'takes each response of these sessions once, to compare',
    count(*), sum(c.input_tokens), sum(c.output_tokens), sum(c.cache_read_tokens),
    sum(c.cache_write_tokens), assoc_read.round(sum(c.cost_microusd) / 1000000.0, 6),
    sum(c.partial), count(*) filter (where c.cost_microusd is null), t.source
from assoc_read.stated_sessions t
join assoc_read.response_costs c on c.session_id = t.counted_session_id
group by t.source;

-- The search of `search --remote`.

-- A query for a word, a phrase or a prefix in assoc.words of a text. For Chinese, Japanese and Korean
-- all pairs of letters must occur; their order is checked later.
create function assoc.query_of(p_text text, p_is_prefix boolean) returns tsquery
language sql immutable parallel safe
as $$
    select case
        when p_text ~ '[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]' then (
            select string_agg(
                quote_literal(lexeme) || case when length(lexeme) = 1 then ':*' else '' end, ' & '
            )::tsquery
            from unnest(assoc.words(p_text))
        )
        when p_is_prefix then (
            nullif(phraseto_tsquery('simple', assoc.plain_text(p_text))::text, '') || ':*'
        )::tsquery
        else phraseto_tsquery('simple', assoc.plain_text(p_text))
    end
$$;

-- A query without the order of words, which the text index does not know: it finds the same and more.
-- Words consist of letters and digits, so <-> is never part of one.
create function assoc.without_order(p_query tsquery) returns tsquery
language sql immutable parallel safe
as $$
    select replace(p_query::text, '<->', '&')::tsquery
$$;

-- The same for a whole query: {"clauses": [[{"text": ..., "is_prefix": ...}, ...], ...], "without":
-- [...]}. A clause matches if one of its alternatives does. NULL: there is no word to search for.
-- Without p_is_exact, the order of words and excluded phrases are ignored.
create function assoc.query_of(p_terms json, p_is_exact boolean) returns tsquery
language plpgsql immutable parallel safe
as $$
declare
    clause json;
    term json;
    part tsquery;
    any_of tsquery;
    result tsquery;
begin
    for clause in select * from json_array_elements(p_terms -> 'clauses') loop
        any_of := null;
        for term in select * from json_array_elements(clause) loop
            part := assoc.query_of(term ->> 'text', (term ->> 'is_prefix')::boolean);
            if numnode(part) > 0 then
                part := case when p_is_exact then part else assoc.without_order(part) end;
                any_of := coalesce(any_of || part, part);
            end if;
        end loop;
        result := coalesce(result && any_of, any_of, result);
    end loop;
    for term in select * from json_array_elements(p_terms -> 'without') loop
        part := assoc.query_of(term ->> 'text', (term ->> 'is_prefix')::boolean);
        if numnode(part) > 0 and (p_is_exact or part::text not like '%<->%') then
            result := result && !!part;
        end if;
    end loop;
    return result;
end $$;

-- The phrases of a query as patterns for text in lower case. For most texts they decide whether a
-- phrase occurs, in a twentieth of the time that splitting a long text into words takes. A text that
-- matches the strict pattern contains the phrase, delimited by ASCII characters. One that does not
-- match the loose pattern does not contain it: that one lets a letter beyond ASCII be any word or stand
-- between words, and some of them be several words, as fractions are. NULL: patterns cannot decide,
-- because a phrase is one of several alternatives, or is excluded.
create function assoc.phrases_of(p_terms json, p_is_strict boolean) returns text[]
language plpgsql immutable parallel safe
as $$
declare
    clause json;
    term json;
    is_phrase boolean;
    is_prefix boolean;
    sign constant text :=
        case when p_is_strict then '[\u0001-\u002f:-@\[-`{-\u007f]' else '[^0-9a-z]' end;
    word constant text :=
        -- Punctuation and symbols beyond ASCII, and CJK letters, are never part of a word.
        case
            when p_is_strict then '\1'
            else '(?:\1|[0-9a-z]*'
                '[^\u0001-\u007f\u2000-\u200a\u2010-\u205f\u2190-\u23ff\u2500-\u2bff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff0f]'
                '[^\u0001-/:-@\[-`{-\u007f]*)'
        end;
    patterns text[] := '{}';
begin
    for clause in select * from json_array_elements(p_terms -> 'clauses') loop
        for term in select * from json_array_elements(clause) loop
            is_phrase := assoc.query_of(term ->> 'text', false)::text like '%<->%';
            is_prefix := (term ->> 'is_prefix')::boolean;
            if is_phrase and json_array_length(clause) > 1 then
                return null;
            elsif is_phrase then
                patterns := patterns || format(
                    '(?:^|%1$s)%2$s' || case when is_prefix then '' else '(?:$|%1$s)' end
                    || case when p_is_strict then '' else '|[\u00bc-\u00be\u013f\u0140\u2100-\u2109\u2150-\u215f\u2189\u2474-\u24b5\u3200-\u33ff\ufdfa\ufdfb\U0001f100-\U0001f2ff]' end,
                    sign,
                    replace(
                        regexp_replace(
                            btrim(assoc.plain_text(term ->> 'text')), '([^ ]+)', word, 'g'
                        ),
                        ' ', sign || '+'
                    )
                );
            end if;
        end loop;
    end loop;
    for term in select * from json_array_elements(p_terms -> 'without') loop
        if assoc.query_of(term ->> 'text', false)::text like '%<->%' then
            return null;
        end if;
    end loop;
    return patterns;
end $$;

-- The messages that match p_terms, best first: among the newest 500, those that contain the query as it
-- was typed (p_literal) come first, then by the rank of their first 1,000 letters; tool output counts a
-- fifth. A text must contain each of p_parts verbatim. A message that several origins have is one hit.
--
-- The order of words and p_parts are checked in the text itself. If very many messages contain the
-- words, only the newest 5,000 are checked.
--
-- The rows are the best p_limit messages, and the best p_shown of each of the best p_limit
-- conversations: texts are large, and most of them would not be shown. So each row says how many
-- messages were `found` among the newest 500 and in how many `conversations`, whether there are more
-- (`has_more`), the rank of its conversation, and how many matching messages that has.
--
-- It reads with the rights of its owner, because row-level security keeps PostgreSQL from using the
-- text index; the condition on visible origins takes its place. It asks for the keys of the newest
-- messages, then for what ranks them, and then for what is shown. With several nodes (Citus) each of
-- these is one question to the nodes that have the messages: they are given keys as values, because
-- what a CTE finds would first be copied to each of them.
create function assoc.search_v1(
    p_terms json, p_parts text[], p_literal text, p_kinds text[], p_since text, p_until text,
    p_projects bigint[], p_session text, p_source text, p_origin text, p_tools boolean,
    p_limit integer, p_shown integer
)
returns table (
    found bigint, conversations bigint, has_more boolean, place bigint, conversation bigint,
    in_conversation bigint, is_verbatim boolean, rank real, scope text, kind text, "text" text, session text,
    session_kind text, cwd text, project text, project_path text, subagent text, agent_key text,
    tool text, model text, branch text, "timestamp" text, source text, session_key text, file text,
    byte_offset bigint, has_transcript boolean, origin text, origin_id integer, file_no integer,
    id bigint
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    query constant tsquery := assoc.query_of(p_terms, true);
    words constant tsquery := assoc.query_of(p_terms, false);
    is_read constant boolean := query is distinct from words or p_parts is not null;
    strict_phrases constant text[] := assoc.phrases_of(p_terms, true);
    loose_phrases constant text[] := assoc.phrases_of(p_terms, false);
    most constant integer := case when is_read then 5000 else 500 end;
    visible constant integer[] := assoc.visible_origins();
    origins integer[];
    labels text[];
    key_origins integer[];
    key_files integer[];
    key_offsets bigint[];
    key_blocks integer[];
    nodes integer[]; -- the origins that tell on which nodes messages are
    message assoc_read.found_message;
    messages assoc_read.found_message[] := '{}';
    shown assoc_read.shown_message[];
begin
    select array_agg(o.origin_id), array_agg(o.label)
    into origins, labels
    from assoc.origins o
    where o.origin_id = any (visible) and (p_origin is null or o.label = p_origin);

    -- No joins here: the text index must be read first, and once.
    select
        array_agg(n.origin_id), array_agg(n.file_no), array_agg(n.byte_offset), array_agg(n.block)
    into key_origins, key_files, key_offsets, key_blocks
    from (
        select m.origin_id, m.file_no, m.byte_offset, m.block
        from assoc.messages m
        where assoc.words(coalesce(m.text, m.tool_text)) @@ words
          and m.is_copy = 0
          -- Not `m.origin_id`: nearly all rows have one of these, and an index would list them all.
          and m.origin_id + 0 = any (origins)
          and (p_kinds is null or m.kind = any (p_kinds))
          -- A message without a time is as old as its session.
          and (
            (p_since is null and p_until is null)
            or (m.timestamp >= coalesce(p_since, '') and (p_until is null or m.timestamp < p_until))
            or (m.timestamp is null and (m.origin_id, m.source_no, m.session_key) in (
                select s.origin_id, s.source_no, s.session_key
                from assoc.sessions s
                where s.started_at >= coalesce(p_since, '')
                  and (p_until is null or s.started_at < p_until)
            ))
          )
          and (p_session is null or m.session_key = p_session)
          and (
            p_source is null
            or (m.origin_id, m.source_no) in (
                select r.origin_id, r.source_no from assoc.sources r where r.kind = p_source
            )
          )
          and (not p_tools or m.tool_text is not null)
          and (
            p_projects is null
            or (m.origin_id, m.source_no, m.session_key) in (
                select s.origin_id, s.source_no, s.session_key
                from assoc.sessions s
                where assoc_read.id(s.origin_id, s.project_source_no, s.project_key)
                    = any (p_projects)
            )
          )
        order by
            m.timestamp desc nulls last, m.origin_id, m.file_no, m.byte_offset, m.block
        limit most
    ) n;

    nodes := array(select distinct unnest(key_origins));
    for message in
        select
            m.origin_id, m.file_no, m.byte_offset, m.block, m.timestamp, m.uuid, m.session_key, r.kind,
            r.root || '/' || f.path, f.agent_key, f.gone_at is null and f.kind = 'transcript',
            coalesce(strpos(lower(coalesce(m.text, m.tool_text)), nullif(lower(p_literal), '')) > 0, false),
            -- Words of a long text cost more than all else.
            ts_rank(assoc.words(left(coalesce(m.text, m.tool_text), 1000)), query)
                * case when m.text is null then 0.2 else 1 end
        from unnest(key_origins, key_files, key_offsets, key_blocks) with ordinality
            as k (origin_id, file_no, byte_offset, block, no)
        join assoc.messages m
            on m.origin_id = k.origin_id and m.file_no = k.file_no
            and m.byte_offset = k.byte_offset and m.block = k.block
        join assoc.files f on f.origin_id = m.origin_id and f.file_no = m.file_no
        join assoc.sources r on r.origin_id = f.origin_id and r.source_no = f.source_no
        where m.origin_id = any (nodes)
          and (
            not is_read
            or (
                case
                    when exists (
                        select from unnest(loose_phrases) phrase
                        where lower(coalesce(m.text, m.tool_text)) !~ phrase
                    ) then false
                    when strict_phrases is not null and not exists (
                        select from unnest(strict_phrases) phrase
                        where lower(coalesce(m.text, m.tool_text)) !~ phrase
                    ) then true
                    else assoc.words(coalesce(m.text, m.tool_text)) @@ query
                end
                and not exists (
                    select from unnest(p_parts) part
                    where strpos(lower(coalesce(m.text, m.tool_text)), lower(part)) = 0
                )
            )
          )
        order by k.no -- as they are read, so that reading stops at the 500th
        limit 500
    loop
        messages := messages || message;
    end loop;

    has_more := cardinality(messages) = 500 or cardinality(key_origins) = 5000;

    -- No tables here: Citus would have a node do it.
    with once as (
        select
            m.*, m as message,
            row_number() over (
                partition by
                    coalesce(m.uuid, format('%s/%s/%s', m.origin_id, m.file_no, m.byte_offset)),
                    m.block
                order by m.origin_id, m.file_no, m.byte_offset
            ) as occurrence
        from unnest(messages) m
    ),
    placed as (
        select
            o.*,
            row_number() over (
                order by o.is_verbatim desc, o.rank desc, o.timestamp desc nulls last, o.origin_id,
                    o.file_no, o.byte_offset, o.block
            ) as place,
            -- A message without a session is a conversation of its own.
            array[
                o.source,
                coalesce(
                    o.session_key, format('%s/%s/%s/%s', o.origin_id, o.file_no, o.byte_offset, o.block)
                ),
                (o.session_key is null)::text
            ] as conversation_key
        from once o
        where o.occurrence = 1
    ),
    grouped as (
        select
            p.*, count(*) over () as found,
            min(p.place) over conversation as first_place,
            row_number() over (partition by p.conversation_key order by p.place) as place_within,
            count(*) over conversation as in_conversation
        from placed p
        window conversation as (partition by p.conversation_key)
    ),
    numbered as (
        select g.*, dense_rank() over (order by g.first_place) as conversation from grouped g
    ),
    counted as (
        select n.*, max(n.conversation) over () as conversations from numbered n
    )
    select
        array_agg(
            row(
                c.message, labels[array_position(origins, c.origin_id)], c.found, c.conversations,
                c.place, c.conversation, c.in_conversation
            )::assoc_read.shown_message
        ),
        array_agg(distinct c.origin_id)
    into shown, nodes
    from counted c
    where c.place <= p_limit or (c.conversation <= p_limit and c.place_within <= p_shown);

    return query
    select
        k.found, k.conversations, has_more, k.place, k.conversation, k.in_conversation, (k.message).is_verbatim,
        (k.message).rank,
        case when m.text is null then 'tools' else 'said' end,
        m.kind, left(coalesce(m.text, m.tool_text), 20000), s.title, s.kind, s.cwd, p.name, p.path,
        a.agent_type, (k.message).agent_key,
        (
            select min(t.name)
            from assoc.tool_calls t
            where t.origin_id = m.origin_id and t.file_no = m.file_no
              and (
                (t.byte_offset = m.byte_offset and t.block = m.block)
                or (t.result_offset = m.byte_offset and t.result_block = m.block)
              )
        ),
        m.model, s.git_branch, m.timestamp, (k.message).source, s.session_key, (k.message).file, m.byte_offset,
        (k.message).has_transcript, k.origin, m.origin_id, m.file_no,
        assoc_read.id(m.origin_id, m.file_no, m.byte_offset, m.block)
    from unnest(shown) k
    join assoc.messages m
        on m.origin_id = (k.message).origin_id and m.file_no = (k.message).file_no
        and m.byte_offset = (k.message).byte_offset and m.block = (k.message).block
    left join assoc.sessions s
        on s.origin_id = m.origin_id and s.source_no = m.source_no and s.session_key = m.session_key
    left join assoc.projects p
        on p.origin_id = s.origin_id and p.source_no = s.project_source_no and p.key = s.project_key
    left join assoc.subagents a
        on a.origin_id = m.origin_id and a.source_no = m.source_no
        and a.stated_session_key = m.agent_session_key and a.agent_key = m.agent_key
    where m.origin_id = any (nodes)
    order by k.place;
end $$;

-- The neighbours of each of p_keys among the keys of visible sessions and subagents: they show how
-- short an unambiguous prefix can be.
create function assoc.key_neighbours_v1(p_keys text[])
returns table (
    "key" text, before text, after text, agent_before text, agent_after text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    origins constant integer[] := assoc.visible_origins();
begin
    if assoc.is_distributed() then
        -- One question to all nodes for all keys. A prefix has eight letters at least, so neighbours
        -- that have others do not matter.
        return query
        select
            k.key,
            max(n.key) filter (where not n.is_agent and n.key < k.key),
            min(n.key) filter (where not n.is_agent and n.key > k.key),
            max(n.key) filter (where n.is_agent and n.key < k.key),
            min(n.key) filter (where n.is_agent and n.key > k.key)
        from unnest(p_keys) as k (key)
        left join (
            select s.origin_id, s.session_key as key, false as is_agent
            from unnest(p_keys) as k (key)
            join assoc.sessions s
                on s.session_key >= left(k.key, 8) and s.session_key < left(k.key, 8) || chr(1114111)
            where s.origin_id = any (origins)
            union all
            select a.origin_id, a.agent_key, true
            from unnest(p_keys) as k (key)
            join assoc.subagents a
                on a.agent_key >= left(k.key, 8) and a.agent_key < left(k.key, 8) || chr(1114111)
            where a.origin_id = any (origins)
        ) n on left(n.key, 8) = left(k.key, 8)
        group by k.key;
        return;
    end if;
    foreach key in array coalesce(p_keys, '{}') loop
        select max(s.session_key) into before
        from assoc.sessions s
        where s.session_key < key and s.origin_id = any (origins);
        select min(s.session_key) into after
        from assoc.sessions s
        where s.session_key > key and s.origin_id = any (origins);
        select max(a.agent_key) into agent_before
        from assoc.subagents a
        where a.agent_key < key and a.origin_id = any (origins);
        select min(a.agent_key) into agent_after
        from assoc.subagents a
        where a.agent_key > key and a.origin_id = any (origins);
        return next;
    end loop;
end $$;

-- Views read with the rights of their owner. Without the barrier, PostgreSQL may pass rows to a
-- reader's own function, or to a failing cast, before it checks whether the reader may see them.
do $$
declare
    name text;
begin
    if assoc.is_distributed() then
        perform set_config('citus.enable_ddl_propagation', 'on', true);
        return; -- the functions that fetch rows are a barrier
    end if;
    for name in select viewname from pg_views where schemaname = 'assoc_read' loop
        execute format('alter view assoc_read.%I set (security_barrier = true)', name);
    end loop;
end $$;

-- Who may do what: a device pushes and sees nothing, a reader sees the origins of its teams, an
-- administrator manages.

grant usage on schema assoc to assoc_device, assoc_reader, assoc_admin;
grant usage on schema assoc_read to assoc_reader, assoc_admin;

grant select on all tables in schema assoc to assoc_reader;
revoke select on assoc.logins, assoc.team_readers, assoc.labels, assoc.stored from assoc_reader;
grant select on assoc.schema_version to assoc_device;
grant select, insert, update, delete on all tables in schema assoc to assoc_admin;
revoke all on assoc.statements from assoc_reader, assoc_admin; -- they run with the rights of the owner
grant select on all tables in schema assoc_read to assoc_reader, assoc_admin;

revoke all on all functions in schema assoc from public;
grant execute on function
    assoc.hello_v1(uuid), assoc.hello_v2(uuid), assoc.mine_v1(), assoc.room_v1(uuid),
    assoc.register_v1(uuid, text, uuid, uuid), assoc.adopt_v1(integer, uuid, uuid),
    assoc.fence_v1(integer, uuid), assoc.beginnings_v1(integer), assoc.keyed_v1(integer, text),
    assoc.forget_v1(integer, bigint, uuid, bytea[])
    to assoc_device;
grant execute on function
    assoc.frames_v1(integer, integer[]), assoc.frames_v2(integer, bytea[]),
    assoc.files_v1(integer, bigint, uuid, json),
    assoc.push_v1(integer, bigint, uuid, json, integer[], bigint[], boolean[], bytea[], bytea[],
                  bytea[], text[], json[], json),
    assoc.push_v2(integer, bigint, uuid, json, integer[], bigint[], bigint[], bigint[], integer[],
                  bytea[], bytea[], bytea[], text[], json[], json),
    assoc.reindex_v1(integer, uuid), assoc.files_of_v1(integer),
    assoc.same_places_v1(integer, bytea[], text[], text[], text[])
    to assoc_device, assoc_admin;
grant execute on function
    assoc.search_v1(json, text[], text, text[], text, text, bigint[], text, text, text, boolean,
                    integer, integer),
    assoc.key_neighbours_v1(text[])
    to assoc_reader, assoc_admin;
grant execute on function
    assoc.visible_origins(), assoc.may_reindex_v1(integer), assoc.words(text), assoc.words_of(text),
    assoc.plain_text(text), assoc.cjk_pairs(text), assoc.devices_v1(), assoc.kept_since_v1()
    to assoc_reader, assoc_device, assoc_admin;
-- These read no table.
grant execute on function
    assoc.query_of(text, boolean), assoc.without_order(tsquery), assoc.query_of(json, boolean),
    assoc.phrases_of(json, boolean)
    to public, assoc_reader, assoc_admin;

-- A second line of defence, should somebody reach the tables in another way.
do $$
declare
    name text;
    -- A policy of Citus may have no subquery; without one, it is asked for each row.
    visible constant text := case
        when assoc.is_distributed() then 'assoc.visible_origins()'
        else '(select assoc.visible_origins())::integer[]'
    end;
begin
    if assoc.is_distributed() then
        alter function assoc.visible_origins() set citus.allow_nested_distributed_execution = on;
        -- A second connection to a node, which knows no table yet, costs more than what it is for;
        -- milliseconds.
        foreach name in array array['search_v1', 'key_neighbours_v1'] loop
            execute format('alter function assoc.%I set citus.executor_slow_start_interval = 100', name);
        end loop;
    end if;
    foreach name in array
        assoc.placed_tables() || assoc.keyed_tables()
        || array['origins', 'origin_states', 'files', 'frames', 'deleted_files']
    loop
        execute format('alter table assoc.%I enable row level security', name);
        execute format(
            'create policy readers on assoc.%I for select to assoc_reader'
            ' using (origin_id = any (%s))', name, visible
        );
        execute format(
            'create policy administrators on assoc.%I to assoc_admin using (true)', name
        );
    end loop;
end $$;
