-- The functions of SQLite that the queries in queries/ call, for PostgreSQL.
--
-- Views and functions with the names of the local schema are in assoc_read: a connection with the
-- search path "assoc_read" runs a report or a list as a local database does. Each function gives
-- what that of SQLite gives, also NULL where SQLite answers bad input with NULL.

create schema assoc_read;

create function assoc_read.iif(boolean, anycompatible, anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select case when $1 then $2 else $3 end $$;

-- PostgreSQL has it for numeric only.
create function assoc_read.round(double precision, integer) returns double precision
    language sql immutable strict parallel safe
    as $$ select pg_catalog.round($1::numeric, $2)::double precision $$;

-- What is true counts as 1.
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

-- The elements of a JSON array. JSON may name the character 0, which text here cannot hold.
create function assoc_read.json_each(text) returns table (value text)
    language sql immutable parallel safe
    as $$
        select json_array_elements_text(replace($1, '\u0000', '\ufffd')::json)
        where $1 is not null
    $$;

-- A time as SQLite reads it: 'now' or a text like 2026-01-20T10:00:00.000Z, then modifiers, of
-- which it knows 'N days' and 'weekday N'. NULL for what is no time.
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
