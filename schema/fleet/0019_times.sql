-- A message without a time counts as said when its session began, as it does locally. Of `search_v1`
-- only these two conditions change.
do $$
declare
    definition text := pg_get_functiondef('assoc.search_v1'::regproc);
    conditions constant text := 'and (p_since is null or m.timestamp >= p_since)
          and (p_until is null or m.timestamp < p_until)';
begin
    if strpos(definition, conditions) = 0 then
        raise 'assoc.search_v1 is not that of 0012_search';
    end if;
    execute replace(definition, conditions, 'and (
            (p_since is null and p_until is null)
            or exists (
                select from (
                    select coalesce(m.timestamp, (
                        select s.started_at
                        from assoc.sessions s
                        where s.origin_id = m.origin_id and s.source_no = m.source_no
                          and s.session_key = m.session_key
                    )) as said_at
                ) t
                where (p_since is null or t.said_at >= p_since)
                  and (p_until is null or t.said_at < p_until)
            )
          )');
end $$;
