-- The search of `search --remote`.

-- What finds a word, a phrase, or the words that begin with one, in assoc.words of a text. Of
-- Chinese, Japanese and Korean all pairs of letters must be there, whose order is checked later.
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

-- The same of a whole query: {"clauses": [[{"text": ..., "is_prefix": ...}, ...], ...], "without":
-- [...]}. A clause is met by any of its alternatives. NULL: it has no word to look for.
create function assoc.query_of(p_terms json) returns tsquery
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
                any_of := coalesce(any_of || part, part);
            end if;
        end loop;
        result := coalesce(result && any_of, any_of, result);
    end loop;
    for term in select * from json_array_elements(p_terms -> 'without') loop
        part := assoc.query_of(term ->> 'text', (term ->> 'is_prefix')::boolean);
        if numnode(part) > 0 then
            result := result && !!part;
        end if;
    end loop;
    return result;
end $$;

-- The messages that hold everything that p_terms asks for, best first: of the newest 500 those that
-- have the query just as it was typed (p_literal) come first, then by the rank of their first 1,000
-- letters; what tools gave counts a fifth. Each of p_parts stands in the text as it is. A message
-- that several origins have is one hit. `found` says how many there are among the 500.
--
-- It reads with the rights of its owner, because row-level security keeps PostgreSQL from using the
-- text index; which origins the caller may see is asked for here.
create function assoc.search_v1(
    p_terms json, p_parts text[], p_literal text, p_kinds text[], p_since text, p_until text,
    p_projects bigint[], p_session text, p_source text, p_origin text, p_tools boolean,
    p_limit integer
)
returns table (
    found bigint, is_verbatim boolean, rank real, scope text, kind text, "text" text, session text,
    session_kind text, cwd text, project text, project_path text, subagent text, agent_key text,
    tool text, model text, branch text, "timestamp" text, source text, session_key text, file text,
    byte_offset bigint, has_transcript boolean, origin text, origin_id integer, file_no integer,
    id bigint
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    with asked as materialized (
        select assoc.query_of(p_terms) as query, lower(p_literal) as literal
    ),
    -- No joins here: the text index is to be asked once, and first.
    candidates as materialized (
        select m.*
        from assoc.messages m
        where assoc.words(coalesce(m.text, m.tool_text)) @@ (select query from asked)
          and m.is_copy = 0
          and m.origin_id = any ((select assoc.visible_origins())::integer[])
          and (
            p_origin is null
            or m.origin_id in (select o.origin_id from assoc.origins o where o.label = p_origin)
          )
          and (p_kinds is null or m.kind = any (p_kinds))
          and (p_since is null or m.timestamp >= p_since)
          and (p_until is null or m.timestamp < p_until)
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
          and not exists (
            select from unnest(p_parts) part
            where strpos(lower(coalesce(m.text, m.tool_text)), lower(part)) = 0
          )
        order by m.timestamp desc nulls last
        limit 500
    ),
    ranked as (
        select
            c.*,
            coalesce(strpos(lower(coalesce(c.text, c.tool_text)), nullif(a.literal, '')) > 0, false)
                as is_verbatim,
            -- Words of a long text cost more than all else.
            ts_rank(assoc.words(left(coalesce(c.text, c.tool_text), 1000)), a.query)
                * case when c.text is null then 0.2 else 1 end as rank,
            row_number() over (
                partition by
                    coalesce(c.uuid, format('%s/%s/%s', c.origin_id, c.file_no, c.byte_offset)),
                    c.block
                order by c.origin_id, c.file_no, c.byte_offset
            ) as occurrence
        from candidates c
        cross join asked a
    )
    select
        count(*) over (), m.is_verbatim, m.rank::real,
        case when m.text is null then 'tools' else 'said' end,
        m.kind, left(coalesce(m.text, m.tool_text), 20000), s.title, s.kind, s.cwd, p.name, p.path,
        a.agent_type, f.agent_key,
        (
            select min(t.name)
            from assoc.tool_calls t
            where t.origin_id = m.origin_id and t.file_no = m.file_no
              and (
                (t.byte_offset = m.byte_offset and t.block = m.block)
                or (t.result_offset = m.byte_offset and t.result_block = m.block)
              )
        ),
        m.model, s.git_branch, m.timestamp, r.kind, s.session_key, r.root || '/' || f.path,
        m.byte_offset, f.gone_at is null and f.kind = 'transcript', o.label, m.origin_id, m.file_no,
        assoc_read.id(m.origin_id, m.file_no, m.byte_offset, m.block)
    from ranked m
    join assoc.origins o on o.origin_id = m.origin_id
    join assoc.files f on f.origin_id = m.origin_id and f.file_no = m.file_no
    join assoc.sources r on r.origin_id = f.origin_id and r.source_no = f.source_no
    left join assoc.sessions s
        on s.origin_id = m.origin_id and s.source_no = m.source_no and s.session_key = m.session_key
    left join assoc.projects p
        on p.origin_id = s.origin_id and p.source_no = s.project_source_no and p.key = s.project_key
    left join assoc.subagents a
        on a.origin_id = m.origin_id and a.source_no = m.source_no
        and a.stated_session_key = m.agent_session_key and a.agent_key = m.agent_key
    where m.occurrence = 1
    order by m.is_verbatim desc, m.rank desc, m.timestamp desc nulls last, m.origin_id, m.file_no,
        m.byte_offset, m.block
    limit p_limit
$$;

revoke execute on function assoc.search_v1(
    json, text[], text, text[], text, text, bigint[], text, text, text, boolean, integer
) from public;
grant execute on function assoc.search_v1(
    json, text[], text, text[], text, text, bigint[], text, text, text, boolean, integer
) to assoc_reader, assoc_admin;
grant execute on function assoc.query_of(text, boolean), assoc.query_of(json)
    to assoc_reader, assoc_admin;
