-- Days, weeks and hours of reports are those of who asks, as in a local database: the time zone of the
-- connection.

create or replace function assoc_read.moment(at text, modifiers text[]) returns timestamp
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
